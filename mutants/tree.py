"""A copy of the checkout, in which mutations are planted; the checkout itself is never touched."""

from __future__ import annotations

import shutil
from pathlib import Path

from mutants.catalogue import Edit, Mutation
from tools.checkout import ROOT

PLACES = ("src", "tests", "tools", "pyproject.toml", "README.md", "CHANGELOG.md", "docs")
PACKAGE = "src/django_once"


class Tree:
    """The copy."""

    def __init__(self, place: Path) -> None:
        self.place = place
        for name in PLACES:
            source = ROOT / name
            if source.is_dir():
                shutil.copytree(source, place / name, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy2(source, place / name)

    def plant(self, mutation: Mutation) -> dict[Path, str]:
        """Make the changes; return what the files held. Raises LookupError where none applies."""
        before = {self._file(edit): self._file(edit).read_text() for edit in mutation.edits}
        planted = dict(before)
        for edit in mutation.edits:
            file = self._file(edit)
            if planted[file].count(edit.before) != 1:
                count = planted[file].count(edit.before)
                raise LookupError(f"{edit.file} holds this {count} times: {edit.before.strip()!r}")
            planted[file] = planted[file].replace(edit.before, edit.after)
        for file, text in planted.items():
            file.write_text(text)
        return before

    def heal(self, before: dict[Path, str]) -> None:
        """Put back what the files held."""
        for file, text in before.items():
            file.write_text(text)

    def _file(self, edit: Edit) -> Path:
        return self.place / PACKAGE / edit.file
