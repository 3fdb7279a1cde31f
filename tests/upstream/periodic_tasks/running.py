"""Running: the suite, read from its sdist, with our names in the place of theirs."""

from __future__ import annotations

import hashlib
import re
import shlex
import shutil
import sys
import tempfile
from pathlib import Path

import pytest

from tests.upstream.building import read, write
from tests.upstream.periodic_tasks.exclusions import FILES
from tools.checkout import ROOT, state_directory
from tools.counts import Counts, read_counts
from tools.errors import Refusal
from tools.upstream import fetched, sdist_of

NAME = "periodic"
# A pattern, what stands in its place, and why.
RULES = (
    (r"from django_periodic_tasks\.\w+ import", "from tests.upstream.periodic_tasks.mapping import",
     "all of its names stand in one module"),
    (r"\"tests\.test_", f'"{NAME}_suite.test_', "its folder has another name"),
)  # fmt: skip


def run(report: Path | None, for_pytest: list[str]) -> int:
    """Run the suite, print its counts as the last line, and return pytest's exit code."""
    try:
        folder = built()
    except Refusal as refusal:
        print(refusal, file=sys.stderr)
        return 1
    for name, reason in FILES.items():
        print(f"{name} is left out: {reason}")
    modules = shlex.join(str(place) for place in (ROOT / "src", ROOT, folder))
    with tempfile.TemporaryDirectory() as place:
        report = (report or Path(place) / "report.xml").absolute()
        code = int(
            pytest.main([
                "-q", f"--junitxml={report}", "-c", str(ROOT / "pyproject.toml"),
                "--rootdir", str(folder), "-o", f"pythonpath={modules}",
                "-p", "tests.upstream.periodic_tasks.plugin", "-p", "no:cacheprovider",
                "--ds", "tests.upstream.periodic_tasks.settings", str(folder / f"{NAME}_suite"),
                *for_pytest,
            ])
        )  # fmt: skip
        counts = read_counts(report) or Counts(failed=1)
    print(counts.line)
    return code


def built() -> Path:
    """Return the folder of the suite that is ready to run; make it if need be."""
    sdist = fetched(sdist_of("django-periodic-tasks", "0.2"), sys.executable)
    tests = read(sdist, "tests")
    if missing := set(FILES) - set(tests):
        raise Refusal(f"exclusions.py names files that are not there: {', '.join(missing)}.")
    files = {
        f"{NAME}_suite/{name}": rewritten(text) for name, text in tests.items() if name not in FILES
    }
    files |= {
        f"sandbox/testapp/{name}": rewritten(text)
        for name, text in read(sdist, "sandbox/testapp").items()
        if name in ("__init__.py", "tasks.py")
    }
    files["sandbox/__init__.py"] = ""
    # What a row names must be loaded: in a project, Django does that.
    files[f"{NAME}_suite/conftest.py"] = "import sandbox.testapp.tasks  # noqa: F401\n"
    content = hashlib.sha256(repr(sorted(files.items())).encode()).hexdigest()[:12]
    folder = state_directory() / "upstream" / f"{NAME}-{content}"
    if not folder.exists():
        # Race: two runs make it at once. Each makes its own, and the first to rename wins.
        unfinished = Path(tempfile.mkdtemp(dir=folder.parent))
        write(files, unfinished)
        try:
            unfinished.rename(folder)
        except OSError:
            shutil.rmtree(unfinished)
    return folder


def rewritten(text: str) -> str:
    """Return a file in which our names stand for theirs."""
    for pattern, replacement, _ in RULES:
        text = re.sub(pattern, replacement, text)
    return text
