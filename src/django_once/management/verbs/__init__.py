"""The verbs of `manage.py once`, in the order in which help shows them.

Each is a module with `add_arguments(parser)` and `run(screen, options)`, which returns the exit
status. It is loaded when it is asked for: who lists jobs needs no supervisor, and the admin, which
shows some of the same, needs none of both. A module whose verb looks has `WATCHES = True`, and can
be shown again and again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from types import ModuleType
from typing import Final

HELP: Final = {
    "worker": "run jobs until stopped",
    "scheduler": "fire schedules until stopped",
    "listen": "handle the notifications of channels until stopped",
    "status": "show queues, workers and what is wrong, at a glance",
    "jobs": "list jobs, the newest first",
    "show": "show one job's whole history",
    "explain": "say why a job does not run, with the evidence",
    "workers": "list workers",
    "schedules": "list schedules, preview, run, backfill or pause them",
    "verify": "prove that every due moment fired once, or was left out for a reason",
    "locks": "list locks and their last holders; `locks release NAME` takes one from its holder",
    "lock": "run a command under a lock",
    "channels": "list channels, listeners, what waits and triggers; `replay` what is kept",
    "pause": "let nothing of a queue, task or key start; without arguments, list what is paused",
    "resume": "let a paused queue, task or key go on, or close a breaker",
    "strike": "let no job of a task with these arguments start; without any, list what is struck",
    "restore": "let struck jobs of a task go on",
    "retry": "run ended jobs again; those that failed, unless --state says more",
    "cancel": "end jobs that wait, ask those that run to end",
    "prune": "delete ended jobs that are older than they are kept",
    "doctor": "look for what is wrong, each with what to do about it",
    "metrics": "print the figures that Prometheus reads",
    "schema": "print what the JSON of a verb looks like, as a JSON Schema",
    "bench": "measure what this server does with jobs, in a database that is made and dropped",
}


class Verbs(Mapping[str, ModuleType]):
    """The modules by their names, each loaded on first use."""

    def __getitem__(self, name: str) -> ModuleType:
        if name not in HELP:
            raise KeyError(name)
        return import_module(f"{__name__}.{name}")

    def __iter__(self) -> Iterator[str]:
        return iter(HELP)

    def __len__(self) -> int:
        return len(HELP)


VERBS: Final = Verbs()
