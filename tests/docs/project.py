"""A reader's project: what a page says is done to it, by the commands that the page prints."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import django

from tests.docs.pages import ROOT, Block, blocks, commands, missing

PATIENCE = 60.0
PROGRAMS = {
    "python": [sys.executable],
    "django-admin": [sys.executable, "-m", "django"],
}


class Project:
    """A directory in which somebody follows a page."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._stays: list[subprocess.Popen[bytes]] = []

    def follow(self, page: Path, changes: dict[str, str]) -> None:
        """Do what the page says, in its order; `changes` replaces words of it."""
        for block in blocks(page):
            self._follow(block, changes)

    def write(self, path: str, text: str, *, after: bool = False) -> None:
        file = self.directory / path
        file.write_text(file.read_text() + "\n" + text if after else text)

    def run(self, command: str) -> str:
        """Run a command to its end, which must be good, and return what it printed."""
        ended = subprocess.run(
            self._argv(command), cwd=self.directory, env=self._environment(), timeout=PATIENCE,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        assert ended.returncode == 0, f"$ {command}\n{ended.stdout}"
        return ended.stdout

    def end(self) -> None:
        """Press Ctrl-C where a command still runs, and see it end well."""
        for process in self._stays:
            process.send_signal(signal.SIGINT)
            with suppress(subprocess.TimeoutExpired):
                process.wait(PATIENCE)
            if process.returncode is None:
                # It says where it stands.
                process.send_signal(signal.SIGQUIT)
                time.sleep(2)
            assert process.returncode == 0, (self.directory / "background.log").read_text()

    def kill(self) -> None:
        """Leave nothing behind, whatever happened."""
        for process in self._stays:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait(30)

    def _follow(self, block: Block, changes: dict[str, str]) -> None:
        text = block.text
        for word, other in changes.items():
            text = text.replace(word, other)
        block = Block(block.page, block.line, block.language, block.words, text)
        if block.said("file"):
            self.write(block.said("file"), text)
        elif block.said("append"):
            self.write(block.said("append"), text, after=True)
            if django.VERSION < (6, 0):
                # As the pages say of Django 5.2.
                self.write(block.said("append"), 'INSTALLED_APPS += ["django_tasks"]', after=True)
        elif "background" in block.words:
            self._stay(block)
        elif "run" in block.words:
            self._show(block)

    def _show(self, block: Block) -> None:
        until = time.monotonic() + (PATIENCE if "eventually" in block.words else 0)
        for command, expected in commands(block):
            output = self.run(command)
            while missing(output, expected) and time.monotonic() < until:
                output = self.run(command)
            place = f"{block.page.name}:{block.line}\n$ {command}\n{output}"
            assert missing(output, expected) == [], place

    def _stay(self, block: Block) -> None:
        ((command, _),) = commands(block)
        with (self.directory / "background.log").open("wb") as log:
            process = subprocess.Popen(
                self._argv(command),
                cwd=self.directory,
                env=self._environment(),
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._stays.append(process)

    def _argv(self, command: str) -> list[str]:
        program, *arguments = shlex.split(command)
        arguments = [self._meant(argument) for argument in arguments]
        return [*PROGRAMS.get(program, [program]), *arguments]

    def _meant(self, argument: str) -> str:
        """Return what a reader would write for a word in capitals."""
        if argument == "PID":
            return str(self._newest("workers")["pid"])
        return str(self._newest("jobs")["id"]) if argument == "ID" else argument

    def _newest(self, verb: str) -> dict[str, Any]:
        listed = json.loads(self.run(f"python manage.py once {verb} --json"))[verb]
        alive = [one for one in listed if verb == "jobs" or one["state"] == "alive"]
        return alive[0]

    def _environment(self) -> dict[str, str]:
        own = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("ONCE_", "DJANGO_", "PYTEST"))
        }
        return {**own, "PYTHONPATH": str(ROOT / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
