"""Building: a suite, read from its sdist and rewritten, as a folder that pytest can run."""

from __future__ import annotations

import hashlib
import shlex
import shutil
import sys
import tarfile
import tempfile
from collections.abc import Mapping
from pathlib import Path

from tests.upstream.exclusions import exclusions_of
from tests.upstream.rewriting import FOLDERS, rewritten
from tests.upstream.suites import Suite
from tools.checkout import ROOT, state_directory
from tools.errors import Refusal
from tools.upstream import fetched, sdist_of


def built(suite: Suite) -> Path:
    """Return the folder of a suite that is ready to run; make it if need be.

    Raises Refusal when the source cannot be had, or is not what the rules are for.
    """
    sdist = fetched(sdist_of(suite.project, suite.series), sys.executable)
    files = rewritten(read(sdist, suite.folder), suite)
    refuse_idle_exclusions(suite, files)
    content = hashlib.sha256(repr(sorted(files.items())).encode()).hexdigest()[:12]
    folder = state_directory() / "upstream" / f"{suite.name}-{content}"
    if not folder.exists():
        # Race: two runs make it at once. Each makes its own, and the first to rename wins.
        unfinished = Path(tempfile.mkdtemp(dir=folder.parent))
        write(files, unfinished)
        try:
            unfinished.rename(folder)
        except OSError:
            shutil.rmtree(unfinished)
    return folder


def read(sdist: Path, folder: str) -> dict[str, str]:
    """Return the Python files in a folder of an sdist, by their names; nothing is unpacked."""
    texts = {}
    with tarfile.open(sdist) as archive:
        for member in archive.getmembers():
            parent, _, name = member.name.partition("/")[2].rpartition("/")
            file = archive.extractfile(member) if parent == folder else None
            if file is not None and name.endswith(".py"):
                texts[name] = file.read().decode()
    if not texts:
        raise Refusal(f"{sdist.name} has no tests in {folder}.")
    return texts


def write(files: Mapping[str, str], folder: Path) -> None:
    for path, text in files.items():
        place = folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)


def refuse_idle_exclusions(suite: Suite, files: Mapping[str, str]) -> None:
    """Refuse a list of exclusions that names a test which is not there."""
    text = "\n".join(files.values())
    for name in exclusions_of(suite):
        if f"def {name.rpartition('::')[2]}(" not in text:
            raise Refusal(f"exclusions.py names {name}, and {suite.name} has no such test.")


def pytest_arguments(suite: Suite, folder: Path) -> list[str]:
    """Return what pytest must be told to run a suite that is built."""
    modules = shlex.join(str(place) for place in (ROOT / "src", ROOT, folder))
    return [
        *("-c", str(ROOT / "pyproject.toml"), "--rootdir", str(folder)),
        *("-o", f"pythonpath={modules}"),
        *("-p", "tests.upstream.plugin", "--upstream", suite.name),
        *("-p", "no:cacheprovider", "--ds", "tests.upstream.settings"),
        *(str(folder / name) for name in FOLDERS),
    ]
