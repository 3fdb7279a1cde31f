"""Children of dev.py: programs run for their answer, with a time limit and a clean environment."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from typing import Mapping, Sequence

from tools.checkout import ROOT

# What would make a child look at other packages than those of its own environment.
FOREIGN = (
    "PYTHONPATH",
    "PYTHONHOME",
    "PYTHONSTARTUP",
    "VIRTUAL_ENV",
    "DJANGO_SETTINGS_MODULE",
    "PIP_TARGET",
    "PIP_PREFIX",
    "PIP_USER",
    "PIP_REQUIRE_VIRTUALENV",
    "__PYVENV_LAUNCHER__",
)
TIMED_OUT = 124


@dataclass(frozen=True)
class Answer:
    """What a child said, and its exit code."""

    code: int
    output: str

    @property
    def is_good(self) -> bool:
        return self.code == 0


def ask(
    argv: Sequence[str],
    seconds: float = 60,
    said: str = "",
    more: Mapping[str, str] | None = None,
    cwd: object = ROOT,
    keep: Sequence[int] = (),
) -> Answer:
    """Run a program to its end and return what it printed.

    `said` is its standard input; `keep` names files that stay open in it.
    """
    try:
        done = subprocess.run(
            list(argv),
            input=said.encode(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=seconds,
            env=environment(more),
            cwd=str(cwd),
            pass_fds=list(keep),
            check=False,
        )
    except subprocess.TimeoutExpired as expired:
        printed = (expired.stdout or b"").decode("utf-8", "replace")
        return Answer(TIMED_OUT, "%s\nno end within %d s" % (printed, seconds))
    return Answer(done.returncode, done.stdout.decode("utf-8", "replace"))


def watch(argv: Sequence[str], more: Mapping[str, str] | None = None) -> int:
    """Run a program in the foreground, at this terminal, and return its exit code."""
    child = subprocess.Popen(list(argv), env=environment(more), cwd=str(ROOT))
    try:
        return child.wait()
    except KeyboardInterrupt:
        # At a terminal the child heard it too, and ends in its own way.
        end(child, seconds=10)
        raise


def end(child: subprocess.Popen[bytes], seconds: float) -> None:
    """Wait for a child that should be ending; terminate it, then kill it, when it does not."""
    for last_word in (None, child.terminate, child.kill):
        if last_word is not None:
            last_word()
        try:
            child.wait(seconds)
            return
        except subprocess.TimeoutExpired:
            continue


def environment(more: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the variables a child gets: ours, without those that lead it astray."""
    variables = {name: value for name, value in os.environ.items() if name not in FOREIGN}
    variables["PYTHONNOUSERSITE"] = "1"
    variables["PYTHONUTF8"] = "1"
    variables.update(more or {})
    return variables
