"""Packages of the distribution, unpacked in private: nothing is installed, nobody must be root."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from tools.checkout import state_directory
from tools.children import ask
from tools.errors import Refusal
from tools.mutex import held

TOOLS = ("apt-get", "dpkg")


def unpacked(package: str, offline: bool) -> Path:
    """Return a directory that holds a package, with those that it needs and this machine lacks.

    Raises Refusal when this is no Debian or Ubuntu, or the package cannot be fetched.
    """
    root = state_directory() / "packages" / package
    with held_for(root):
        if root.exists():
            return root
        for tool in TOOLS:
            if not shutil.which(tool):
                raise Refusal(
                    "no %s here, so that the distribution's package cannot be fetched" % tool
                )
        if offline:
            raise Refusal("--offline, and the distribution's package was not fetched before")
        with tempfile.TemporaryDirectory(dir=str(root.parent)) as scratch:
            fetch_into(Path(scratch), package)
            whole = Path(scratch) / "whole"
            for file in sorted(Path(scratch).glob("*.deb")):
                answer = ask(["dpkg", "-x", str(file), str(whole)], seconds=120)
                if not answer.is_good:
                    raise Refusal("dpkg cannot unpack %s: %s" % (file.name, tail(answer.output)))
            # The name appears when everything is there, so half of it is never used.
            whole.chmod(0o755)
            whole.rename(root)
    return root


def held_for(root: Path):  # type: ignore[no-untyped-def]
    root.parent.mkdir(parents=True, exist_ok=True)
    return held(root.parent / (root.name + ".mutex"))


def fetch_into(directory: Path, package: str) -> None:
    """Fetch a package and those it needs that this machine lacks."""
    simulated = ask(
        ["apt-get", "install", "-s", "--no-install-recommends", package],
        seconds=60,
        more={"LC_ALL": "C"},
    )
    if not simulated.is_good:
        raise Refusal("apt-get knows no %s: %s" % (package, tail(simulated.output)))
    names = packages_to_install(simulated.output)
    names = names if package in names else [*names, package]
    fetched = ask(["apt-get", "download", *names], seconds=300, cwd=directory)
    if not fetched.is_good:
        raise Refusal("apt-get cannot fetch %s: %s" % (package, tail(fetched.output)))


def packages_to_install(simulated: str) -> list[str]:
    """Return the packages that a simulated installation would add."""
    lines = [line.split() for line in simulated.splitlines() if line.startswith("Inst ")]
    return [words[1] for words in lines]


def tail(output: str) -> str:
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    return lines[-1][:200] if lines else "it said nothing"
