"""Which Pythons this machine has, found by running each candidate.

A name on PATH proves nothing: a version manager's shim can be found and still
refuse to run. So each candidate is executed, with a time limit, and says itself
which version it is and whether it can import what an environment needs.
"""

from __future__ import annotations

import glob
import json
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Sequence

from tools.checkout import short_path
from tools.errors import Refusal, remedy_for_missing

OLDEST = (3, 11)
NEWEST = (3, 14)
SECONDS_TO_ANSWER = 20
NEEDED = ("sqlite3", "ssl", "venv", "ensurepip")

PROBE = """
import json, sys
missing = []
for name in %r:
    try:
        __import__(name)
    except ImportError:
        missing.append(name)
print(json.dumps({
    "path": getattr(sys, "_base_executable", None) or sys.executable,
    "version": list(sys.version_info[:3]),
    "is_final": sys.version_info[3] == "final",
    "missing": missing,
}))
""" % (NEEDED,)

PLACES = (
    "~/.pyenv/versions/*/bin/python3",
    "~/.local/share/uv/python/*/bin/python3",
    "/usr/local/bin/python3*",
    "/usr/bin/python3*",
    "/opt/homebrew/bin/python3*",
    "/opt/homebrew/opt/python@3.*/bin/python3*",
    "/home/linuxbrew/.linuxbrew/bin/python3*",
    "/Library/Frameworks/Python.framework/Versions/3.*/bin/python3",
)


@dataclass(frozen=True)
class Interpreter:
    """A Python that ran and answered."""

    path: str
    version: tuple[int, int, int]
    is_final: bool = True
    missing: tuple[str, ...] = ()

    @property
    def series(self) -> tuple[int, int]:
        return self.version[:2]

    @property
    def series_text(self) -> str:
        return "%d.%d" % self.series

    @property
    def version_text(self) -> str:
        return "%d.%d.%d" % self.version

    @property
    def why_not(self) -> str:
        """Return why this one cannot be used, or nothing when it can."""
        if self.series < OLDEST:
            return "older than 3.11"
        if self.series > NEWEST:
            return "newer than 3.14, which is not supported yet"
        if not self.is_final:
            return "a pre-release"
        if self.missing:
            remedy = remedy_for_missing(self.missing[0], self.series_text)
            return "cannot import %s; remedy: %s" % (", ".join(self.missing), remedy)
        return ""


@dataclass(frozen=True)
class Discovery:
    """What was found: the Pythons that answered, and those that did not, with the reason."""

    interpreters: tuple[Interpreter, ...]
    silent: tuple[tuple[str, str], ...] = ()

    @property
    def usable(self) -> list[Interpreter]:
        """Return those that can be used, newest first."""
        usable = [one for one in self.interpreters if not one.why_not]
        return sorted(usable, key=lambda one: one.version, reverse=True)

    def newest(self) -> Interpreter:
        """Return the newest that can be used.

        Raises Refusal with the reason for each one that was found.
        """
        if self.usable:
            return self.usable[0]
        reasons = [
            "%s (%s): %s" % (one.version_text, one.path, one.why_not) for one in self.interpreters
        ]
        raise Refusal(
            "No Python from 3.11 to 3.14 that works was found. Install one (Debian, Ubuntu: "
            "apt-get install python3 python3-venv), or name one with --python. Found: %s."
            % ("; ".join(reasons) or "none at all")
        )

    def in_series(self, oldest: tuple[int, int], newest: tuple[int, int]) -> list[Interpreter]:
        """Return the usable ones from one series to another, newest first."""
        return [one for one in self.usable if oldest <= one.series <= newest]


def discover(only: str | None = None) -> Discovery:
    """Return every Python this machine has, or just what was named: a path, or 3.12."""
    if only and not re.match(r"^3\.\d+$", only):
        return Discovery((_named(only),))
    candidates = candidate_paths(os.environ.get("PATH", ""))
    with ThreadPoolExecutor(max_workers=4) as pool:
        answers = list(pool.map(probe, candidates))
    found: dict[str, Interpreter] = {}
    silent = []
    for candidate, answer in zip(candidates, answers):
        if isinstance(answer, Interpreter):
            found.setdefault(os.path.realpath(answer.path), answer)
        else:
            silent.append((candidate, answer))
    every = Discovery(tuple(found.values()), tuple(silent))
    return _of_series(every, only) if only else every


def candidate_paths(path: str) -> list[str]:
    """Return the files that may be a Python 3, without those that are the same file."""
    candidates = [sys.executable] if sys.executable else []
    for directory in path.split(os.pathsep):
        candidates.extend(
            sorted(glob.glob(os.path.join(glob.escape(directory), "python3*")), reverse=True)
        )
    for place in PLACES:
        candidates.extend(sorted(glob.glob(os.path.expanduser(place)), reverse=True))
    uv_directory = os.environ.get("UV_PYTHON_INSTALL_DIR")
    if uv_directory:
        candidates.extend(glob.glob(os.path.join(uv_directory, "*", "bin", "python3")))
    seen: set[str] = set()
    kept = []
    for candidate in candidates:
        if not is_python_name(os.path.basename(candidate)) or not os.access(candidate, os.X_OK):
            continue
        # A shim directory holds many names of one script, which differ by their name.
        identity = os.path.realpath(candidate) if not _is_shim(candidate) else candidate
        if identity not in seen:
            seen.add(identity)
            kept.append(candidate)
    return kept


def is_python_name(name: str) -> bool:
    return re.match(r"^python3?(\.\d+)?$", name) is not None


def probe(path: str) -> Interpreter | str:
    """Run a candidate and return what it says of itself, or why it said nothing."""
    try:
        answer = subprocess.run(
            [path, "-I", "-c", PROBE],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            timeout=SECONDS_TO_ANSWER,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return "no answer within %d s" % SECONDS_TO_ANSWER
    except OSError as error:
        return "cannot be run: %s" % (error.strerror or error)
    return read_answer(answer.returncode, answer.stdout, answer.stderr)


def read_answer(returncode: int, output: bytes, complaint: bytes) -> Interpreter | str:
    """Return the interpreter that a probe's output describes, or why it describes none."""
    if returncode != 0:
        first_line = complaint.decode("utf-8", "replace").strip().splitlines()[:1]
        return "exits with %d%s" % (returncode, ": " + first_line[0] if first_line else "")
    try:
        facts = json.loads(output.decode())
        major, minor, micro = facts["version"]
        return Interpreter(
            facts["path"], (major, minor, micro), facts["is_final"], tuple(facts["missing"])
        )
    except (ValueError, KeyError, TypeError):
        return "answers with something else"


def describe(interpreters: Sequence[Interpreter]) -> str:
    return ", ".join("%s (%s)" % (one.version_text, short_path(one.path)) for one in interpreters)


def _named(path: str) -> Interpreter:
    found = probe(path)
    if isinstance(found, str):
        raise Refusal("--python %s %s. Name a Python from 3.11 to 3.14." % (path, found))
    if found.why_not:
        raise Refusal("--python %s is Python %s: %s." % (path, found.version_text, found.why_not))
    return found


def _of_series(every: Discovery, series: str) -> Discovery:
    fitting = tuple(one for one in every.interpreters if one.series_text == series)
    if not any(not one.why_not for one in fitting):
        reasons = "; ".join("%s: %s" % (one.path, one.why_not) for one in fitting)
        raise Refusal(
            "--python %s: no such Python that works was found (%s)."
            % (series, reasons or "none at all")
        )
    return Discovery(fitting, every.silent)


def _is_shim(path: str) -> bool:
    return os.path.basename(os.path.dirname(path)) == "shims"
