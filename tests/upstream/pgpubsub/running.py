"""Running: the suite, read from its sdist, with our names in the place of theirs."""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests.upstream.building import read, write
from tools.checkout import ROOT, state_directory
from tools.counts import Counts, read_counts
from tools.errors import Refusal
from tools.upstream import fetched, sdist_of

SUITE = "pgpubsub_suite"
SETTINGS = "tests.upstream.pgpubsub.settings"
# A pattern, what stands in its place, and why.
RULES = (
    (r"pgpubsub\.tests\b", SUITE, "its folder has another name"),
    (r"from pgpubsub(\.\w+)? import", "from tests.upstream.pgpubsub.mapping import",
     "all of its names stand in one module"),
    (r"(?m)^import pgpubsub$", "from tests.upstream.pgpubsub import mapping as pgpubsub",
     "the same"),
    (r"'pgpubsub\.listen\.POLL'", "'tests.upstream.pgpubsub.mapping.POLL'", "the same"),
    (r"(?m)^    default_auto_field = ", "    label = 'tests'\n\\g<0>",
     "its tests ask for migrations of an app of this label"),
)  # fmt: skip


def run(report: Path | None, for_pytest: list[str]) -> int:
    """Run the suite, print its counts as the last line, and return pytest's exit code."""
    try:
        folder = built()
    except Refusal as refusal:
        print(refusal, file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory() as place:
        report = (report or Path(place) / "report.xml").absolute()
        code = int(
            pytest.main([
                "-q", f"--junitxml={report}", "-c", str(ROOT / "pyproject.toml"),
                "--rootdir", str(folder), "-o", f"pythonpath={modules(folder)}",
                "-p", "tests.upstream.pgpubsub.plugin", "-p", "no:cacheprovider",
                "--ds", SETTINGS, "-W", "ignore::DeprecationWarning",
                "-W", "ignore::RuntimeWarning", str(folder / SUITE), *for_pytest,
            ])
        )  # fmt: skip
        counts = read_counts(report) or Counts(failed=1)
    print(counts.line)
    return code


def modules(folder: Path) -> str:
    return shlex.join(str(place) for place in (ROOT / "src", ROOT, folder))


def built() -> Path:
    """Return the folder of the suite that is ready to run; make it if need be."""
    sdist = fetched(sdist_of("django-pgpubsub", "1.3"), sys.executable)
    files = {
        f"{SUITE}/{name}": rewritten(text) for name, text in read(sdist, "pgpubsub/tests").items()
    }
    files |= {f"{SUITE}/__init__.py": "", f"{SUITE}/migrations/__init__.py": ""}
    content = hashlib.sha256(repr(sorted(files.items())).encode()).hexdigest()[:12]
    folder = state_directory() / "upstream" / f"pgpubsub-{content}"
    if not folder.exists():
        # Race: two runs make it at once. Each makes its own, and the first to rename wins.
        unfinished = Path(tempfile.mkdtemp(dir=folder.parent))
        write(files, unfinished)
        make_migrations(unfinished)
        try:
            unfinished.rename(folder)
        except OSError:
            shutil.rmtree(unfinished)
    return folder


def make_migrations(folder: Path) -> None:
    """Let Django write the migrations of its models: theirs make triggers, too."""
    django = [sys.executable, "-W", "ignore", "-m", "django"]
    command = [*django, "makemigrations", "tests", "-v", "0", "--skip-checks"]
    paths = os.pathsep.join(map(str, (ROOT / "src", ROOT, folder)))
    environment = {
        **os.environ, "PYTHONPATH": paths, "DJANGO_SETTINGS_MODULE": SETTINGS,
        # It asks a database what was applied; this one is empty.
        "ONCE_TEST_DATABASE_URL": f"sqlite://{folder}/nothing.sqlite3",
    }  # fmt: skip
    subprocess.run(command, env=environment, check=True)


def rewritten(text: str) -> str:
    """Return a file in which our names stand for theirs."""
    for pattern, replacement, _ in RULES:
        text = re.sub(pattern, replacement, text)
    return text
