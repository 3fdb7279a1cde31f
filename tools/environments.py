"""Environments: one virtual environment per lock and Python, ready or not there at all.

An environment is ready when its stamp, written last, holds the hash of its lock
and names its interpreter. Whoever is killed before leaves no stamp, and the next
run begins anew. Nothing of the checkout is installed: a .pth line points to src/.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from tools.checkout import REQUIREMENTS, SOURCE, state_directory
from tools.children import ask
from tools.errors import NO_SPACE, Refusal, disk_is_full, remedy_for_missing
from tools.installers import install, uv_for
from tools.interpreters import Interpreter
from tools.mutex import held
from tools.progress import Step

BYTES_OF_AN_EMPTY_ONE = 32 * 1024 * 1024
SHAPE = "1"  # grows when an environment made by older code must be made anew


@dataclass(frozen=True)
class Environment:
    """A virtual environment that holds exactly what one lock names."""

    lock: str
    interpreter: Interpreter
    directory: Path

    @property
    def python(self) -> str:
        return str(self.directory / "bin" / "python")

    @property
    def lock_file(self) -> Path:
        return REQUIREMENTS / (self.lock + ".lock")

    @property
    def packages(self) -> Path:
        return self.directory / "lib" / ("python" + self.interpreter.series_text) / "site-packages"

    @property
    def stamp(self) -> dict[str, str]:
        """Return what the stamp of this environment must say."""
        # One Python is found under many names.
        real = os.path.realpath(self.interpreter.path)
        return {
            "shape": SHAPE,
            "lock": hashlib.sha256(self.lock_file.read_bytes()).hexdigest(),
            "interpreter": "%s %s" % (self.interpreter.version_text, real),
            "source": str(SOURCE),
        }

    @property
    def is_ready(self) -> bool:
        try:
            written = json.loads((self.directory / "stamp.json").read_text())
        except (OSError, ValueError):
            return False
        return written == self.stamp and os.access(self.python, os.X_OK)

    def version_of(self, package: str) -> str:
        """Return the installed version of a package, or nothing."""
        for found in self.packages.glob("*.dist-info"):
            name, _, version = found.name[: -len(".dist-info")].partition("-")
            if name.lower().replace("_", "-") == package:
                return version
        return ""


def environment_for(lock: str, interpreter: Interpreter) -> Environment:
    """Return the environment of a lock on a Python, whether it is there or not."""
    name = "%s-%s" % (lock, interpreter.series_text)
    return Environment(lock, interpreter, state_directory() / "environments" / name)


def ready_environment(lock: str, interpreter: Interpreter, offline: bool = False) -> Environment:
    """Return an environment that is ready; make it if need be.

    Raises Refusal when it cannot be made, with the reason and the remedy.
    """
    wanted = environment_for(lock, interpreter)
    if not wanted.lock_file.exists():
        raise Refusal("The checkout is not whole: %s is missing." % wanted.lock_file)
    with Step("environment %s, Python %s" % (lock, interpreter.version_text)) as step:
        wanted.directory.parent.mkdir(parents=True, exist_ok=True)
        with held(wanted.directory.parent / (wanted.directory.name + ".mutex")) as mutex:
            if wanted.is_ready:
                step.note = "ready"
            else:
                step.note = make(wanted, offline, mutex)
    return wanted


def make(wanted: Environment, offline: bool, mutex: int) -> str:
    """Make an environment from nothing and return who installed it; the stamp comes last."""
    uv = uv_for(wanted.interpreter.path)
    installer = ""
    for tool in ([uv] if uv else []) + [""]:
        remove(wanted.directory)
        create(wanted, not tool, mutex)
        complaint = install(wanted.python, wanted.lock_file, tool, offline, mutex)
        installer = "uv" if tool else "pip"
        if not complaint:
            break
    else:
        raise Refusal(complaint)
    (wanted.packages / "checkout.pth").write_text("%s\n" % SOURCE)
    unfinished = wanted.directory / "stamp.unfinished"
    unfinished.write_text(json.dumps(wanted.stamp))
    os.replace(str(unfinished), str(wanted.directory / "stamp.json"))
    return "made with " + installer


def create(wanted: Environment, with_pip: bool, mutex: int) -> None:
    """Make an empty virtual environment."""
    options = [] if with_pip else ["--without-pip"]
    argv = [wanted.interpreter.path, "-m", "venv", *options, str(wanted.directory)]
    answer = ask(argv, seconds=180, keep=[mutex])
    if answer.is_good:
        return
    # What venv starts dies of a full disk, and venv says only that it died.
    if NO_SPACE in answer.output or free_bytes(wanted.directory.parent) < BYTES_OF_AN_EMPTY_ONE:
        raise Refusal(disk_is_full("the environment " + wanted.directory.name))
    version = wanted.interpreter.series_text
    for module in ("ensurepip", "venv"):
        if module in answer.output:
            remedy = remedy_for_missing(module, version)
            raise Refusal(
                "Python %s (%s) cannot make virtual environments: its %s does not work. Remedy: %s."
                % (version, wanted.interpreter.path, module, remedy)
            )
    last_lines = "\n".join("    " + line for line in answer.output.strip().splitlines()[-4:])
    raise Refusal(
        "%s -m venv failed. The last lines were:\n%s" % (wanted.interpreter.path, last_lines)
    )


def free_bytes(directory: Path) -> int:
    return shutil.disk_usage(str(directory)).free


def remove(directory: Path) -> None:
    """Remove an environment; the stamp goes first, so that half of it never counts as ready."""
    try:
        (directory / "stamp.json").unlink()
    except FileNotFoundError:
        pass
    if directory.exists():
        shutil.rmtree(str(directory))
