"""Upstream: the sdists whose tests run against our backend, fetched once and checked by hash.

pip fetches them, from wherever it is set up to look. Wheels would be easier to
have, but no tests are in them. What is in an sdist is read, never installed.
"""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
from dataclasses import dataclass
from pathlib import Path

from tools.checkout import REQUIREMENTS, state_directory
from tools.children import ask
from tools.errors import Refusal, why_install_failed
from tools.mutex import held

LOCK = REQUIREMENTS / "upstream.lock"
PINNED = re.compile(r"^([a-z0-9-]+)==(\S+) \\\n +--hash=sha256:([0-9a-f]{64})$", re.MULTILINE)
SECONDS = 600


@dataclass(frozen=True)
class Sdist:
    """A source as its project publishes it: whose, which version, and the hash of its file."""

    project: str
    version: str
    sha256: str

    @property
    def path(self) -> Path:
        """Return where it is kept."""
        name = "%s-%s.tar.gz" % (self.project, self.version)
        return state_directory() / "upstream" / name

    @property
    def requirement(self) -> str:
        return "%s==%s --hash=sha256:%s\n" % (self.project, self.version, self.sha256)

    @property
    def is_here(self) -> bool:
        return self.path.exists() and sha256_of(self.path) == self.sha256


def pinned(lock: Path = LOCK) -> list[Sdist]:
    """Return every sdist that the lock pins."""
    return [Sdist(*found) for found in PINNED.findall(lock.read_text())]


def sdist_of(project: str, series: str) -> Sdist:
    """Return the sdist that is pinned for a series of a project's versions."""
    for one in pinned():
        if one.project == project and one.version.startswith(series + "."):
            return one
    raise Refusal("%s pins no %s %s." % (LOCK.name, project, series))


def fetched(sdist: Sdist, python: str, offline: bool = False) -> Path:
    """Return the path of an sdist, which that Python's pip has fetched if it was not here.

    Raises Refusal when it cannot be had, with the reason.
    """
    sdist.path.parent.mkdir(parents=True, exist_ok=True)
    with held(sdist.path.parent / "mutex"):
        if not sdist.is_here:
            fetch(sdist, python, offline)
    return sdist.path


def fetch(sdist: Sdist, python: str, offline: bool) -> None:
    """Fetch one sdist and keep it; what has another hash is refused."""
    if offline:
        raise Refusal("--offline: %s is not on this machine." % sdist.path.name)
    with tempfile.TemporaryDirectory(dir=str(sdist.path.parent)) as place:
        wanted = Path(place) / LOCK.name
        wanted.write_text(sdist.requirement)
        # pip asks every source whom it is for; that Python's Django may be another.
        options = ["--no-deps", "--no-binary", sdist.project, "--ignore-requires-python"]
        command = [*pip_of(python), "download", "--require-hashes", *options]
        more = {"PIP_NO_INPUT": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
        answer = ask([*command, "--dest", place, "-r", str(wanted)], seconds=SECONDS, more=more)
        found = list(Path(place).glob("*.tar.gz"))
        if not answer.is_good or not found or sha256_of(found[0]) != sdist.sha256:
            raise Refusal(why_install_failed(LOCK.name, answer.output))
        os.replace(str(found[0]), str(sdist.path))


def pip_of(python: str) -> list[str]:
    """Return how to call pip: that Python's, or one made for it, since uv makes none."""
    if ask([python, "-m", "pip", "--version"]).is_good:
        return [python, "-m", "pip"]
    directory = state_directory() / "upstream" / "pip"
    answer = ask([python, "-m", "venv", "--clear", str(directory)], seconds=180)
    if not answer.is_good:
        raise Refusal("%s has no pip and can make none:\n%s" % (python, answer.output))
    return [str(directory / "bin" / "python"), "-m", "pip"]


def sha256_of(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
