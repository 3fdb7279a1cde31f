"""Installing what a lock names: with pip, or with uv where it is on PATH; hashes checked."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from tools.children import ask
from tools.errors import why_install_failed

SECONDS = 900

# What tells pip where packages come from. uv reads none of it.
PLACES = ("index-url", "extra-index-url", "find-links", "no-index", "proxy", "cert")


def uv_for(python: str) -> str:
    """Return the path of uv when it would fetch from where pip would, else nothing."""
    uv = shutil.which("uv")
    if not uv or not ask([uv, "--version"], seconds=20).is_good:
        return ""
    configured = ask([python, "-m", "pip", "config", "list"], seconds=30)
    lines = configured.output.splitlines() if configured.is_good else []
    settings = [line.partition("=")[0].rpartition(".")[2] for line in lines]
    settings += [name[4:].lower().replace("_", "-") for name in os.environ if name[:4] == "PIP_"]
    return "" if set(settings) & set(PLACES) else uv


def install(python: str, lock: Path, uv: str, offline: bool, mutex: int | None = None) -> str:
    """Install a lock into an environment; return nothing, or what went wrong as a sentence."""
    keep = [] if mutex is None else [mutex]
    more = {"PIP_NO_INPUT": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    if not offline:
        answer = ask(command(python, lock, uv), seconds=SECONDS, more=more, keep=keep)
        return "" if answer.is_good else why_install_failed(lock.name, answer.output)
    answer = ask(offline_command(python, lock, uv), seconds=SECONDS, more=more, keep=keep)
    if answer.is_good:
        return ""
    return (
        "--offline: the packages of %s are not all on this machine. Run the command once "
        "without --offline, or give pip a directory of wheels (PIP_FIND_LINKS)." % lock.name
    )


def command(python: str, lock: Path, uv: str = "") -> list[str]:
    """Return how to install a lock: every package pinned, hashed and built already."""
    if uv:
        options = ["--python", python, "--require-hashes", "--no-build", "--quiet"]
        return [uv, "pip", "install", *options, "-r", str(lock)]
    options = ["--require-hashes", "--only-binary=:all:", "--no-compile", "--progress-bar=off"]
    return [python, "-m", "pip", "install", *options, "-r", str(lock)]


def offline_command(python: str, lock: Path, uv: str = "") -> list[str]:
    return command(python, lock, uv) + (["--offline"] if uv else ["--no-index"])
