"""Asking `manage.py once`: in this process, or in one of its own, on a terminal too."""

from __future__ import annotations

import io
import json
import os
import pty
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connections

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Answer:
    """What a command said, and its exit status."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """What it told to a program."""
        return json.loads(self.out)

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()


def once(*words: object, answer: str = "") -> Answer:
    """Run a verb in this process, with this typed at its question."""
    out, err = io.StringIO(), io.StringIO()
    code: Any = 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdin", io.StringIO(answer))
        try:
            call_command("once", *map(str, words), stdout=out, stderr=err)
        except SystemExit as ended:
            code = ended.code
        except CommandError as error:
            code = error.returncode
            err.write(f"CommandError: {error}\n")
    return Answer(code, out.getvalue(), err.getvalue())


def command(*words: str) -> tuple[list[str], dict[str, Any]]:
    """Return the command line and the surroundings of a process of its own."""
    databases = {alias: {"NAME": connections[alias].settings_dict["NAME"]} for alias in connections}
    return [sys.executable, "-m", "django", "once", *words], {
        "cwd": ROOT,
        "env": {
            **os.environ,
            "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}",
            "DJANGO_SETTINGS_MODULE": "tests.management.settings",
            "ONCE_TEST_SHELL": json.dumps(databases),
        },
    }


def in_shell(*words: str, typed: str | None = None, **changes: dict[str, Any]) -> Answer:
    """Run a verb as a process of its own, whose output is piped."""
    line, around = command(*words)
    if changes:
        databases = json.loads(around["env"]["ONCE_TEST_SHELL"])
        for alias, change in changes.items():
            databases[alias].update(change)
        around["env"]["ONCE_TEST_SHELL"] = json.dumps(databases)
    done = subprocess.run(
        line, **around, capture_output=True, text=True, timeout=60, input=typed or "", check=False
    )
    return Answer(done.returncode, done.stdout, done.stderr)


def on_terminal(*words: str, typed: str = "") -> Answer:
    """Run a verb on a terminal, and type at its question."""
    line, around = command(*words)
    ours, theirs = pty.openpty()
    around["env"].pop("NO_COLOR", None)
    around["env"]["TERM"] = "xterm-256color"
    process = subprocess.Popen(line, **around, stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    if typed:
        os.write(ours, typed.encode())
    shown = b""
    # A terminal whose last process has ended answers with an error.
    with suppress(OSError):
        while chunk := os.read(ours, 4096):
            shown += chunk
    os.close(ours)
    return Answer(process.wait(60), shown.decode(), "")
