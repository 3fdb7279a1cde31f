"""`once worker`: runs jobs until stopped. Everything that cannot be meant is refused before."""

from __future__ import annotations

import difflib
import math
import os
from argparse import BooleanOptionalAction
from typing import Any, Final

from django.conf import settings
from django.core.management.base import CommandError, CommandParser

from django_once.backend import DatabaseBackend
from django_once.management.places import USAGE, backend_named
from django_once.management.screen import Screen
from django_once.models.job.claim import EVERY_QUEUE
from django_once.processes import reload
from django_once.processes.child import EX_CONFIG
from django_once.processes.plan import Plan
from django_once.processes.supervisor import Supervisor

LARGEST_PORT: Final = 65535
LONGEST_NAME: Final = 64
COUNTS: Final = ("concurrency", "processes", "max_tasks", "max_memory")
# More is a slip of the finger: each process needs files, connections and memory of its own.
MOST: Final = {"concurrency": 10_000, "processes": 256}
VARIABLES: Final = "ONCE_WORKER_"
FLAGS: Final = ("BATCH", "RELOAD", "NO_STARTUP_DELAY", "NO_SCHEDULER")
OPTIONS: Final = (
    *FLAGS, "QUEUES", "EXCLUDE_QUEUES", "BACKEND", "WORKER_ID", "CONCURRENCY", "PROCESSES",
    "MAX_TASKS", "MAX_MEMORY", "INTERVAL", "DRAIN_TIMEOUT", "HEALTH_PORT", "PATIENCE",
)  # fmt: skip
YES, NO = ("1", "true", "yes", "on"), ("0", "false", "no", "off")
SPANS: Final = ("interval", "drain_timeout", "patience")


def add_arguments(parser: CommandParser) -> None:
    """Declare the worker's options; each can also come from ONCE_WORKER_<OPTION>."""
    _add_which(parser)
    _add_how_many(parser)
    _add_how(parser)
    _add_beside(parser)


def _add_which(parser: CommandParser) -> None:
    """Declare which jobs it runs, and under what name."""
    add = parser.add_argument
    add(
        "--queues",
        "--queue-name",
        "-q",
        default=_said("QUEUES", EVERY_QUEUE),
        help="comma list in order of preference, or * for all",
    )
    add("--exclude-queues", default=_said("EXCLUDE_QUEUES", ""), help="comma list, with --queues *")
    add("--backend", default=_said("BACKEND", "default"), metavar="ALIAS", help="an alias in TASKS")
    add("--worker-id", default=_said("WORKER_ID", ""), help="the name that results show")


def _add_how_many(parser: CommandParser) -> None:
    """Declare how much it does at once, and when it has done enough."""
    add = parser.add_argument
    add(
        "--concurrency",
        "-c",
        type=int,
        default=_said("CONCURRENCY", "4"),
        help="bodies at once in each process: so many in threads, so many in its event loop",
    )
    add("--processes", "-p", type=int, default=_said("PROCESSES", "1"), help="worker processes")
    add("--max-tasks", type=int, default=_said("MAX_TASKS"), help="exit after so many jobs")
    add(
        "--max-memory",
        type=int,
        default=_said("MAX_MEMORY"),
        metavar="MB",
        help="replace a process that has grown larger",
    )


def _add_how(parser: CommandParser) -> None:
    """Declare how it waits and ends."""
    add = parser.add_argument
    add(
        "--batch",
        action="store_true",
        default=_flag("BATCH", False),
        help="run what is due, then exit",
    )
    add(
        "--interval",
        type=float,
        default=_said("INTERVAL"),
        metavar="S",
        help="seconds between two looks of an idle worker",
    )
    add(
        "--drain-timeout",
        type=float,
        default=_said("DRAIN_TIMEOUT", "25"),
        metavar="S",
        help="seconds that running bodies have to end after the first signal",
    )
    add(
        "--reload",
        action=BooleanOptionalAction,
        default=_flag("RELOAD", None),
        help="start anew when the code changes (default: DEBUG)",
    )


def _add_beside(parser: CommandParser) -> None:
    """Declare what happens beside the jobs."""
    add = parser.add_argument
    add(
        "--no-startup-delay",
        action="store_false",
        dest="startup_delay",
        default=not _flag("NO_STARTUP_DELAY", False),
        help="taken for the scripts of others: work is looked for at once in any case",
    )
    add(
        "--no-scheduler",
        action="store_false",
        dest="scheduler",
        default=not _flag("NO_SCHEDULER", False),
        help="fire no schedules here",
    )
    add(
        "--health-port", type=int, default=_said("HEALTH_PORT"), help="answer /live and /ready here"
    )
    add(
        "--patience",
        type=float,
        default=_said("PATIENCE", "60"),
        metavar="S",
        help="seconds to wait at the start for migrations that are not applied yet",
    )


def run(screen: Screen, options: dict[str, Any]) -> int:
    """Run a supervisor until it is told to stop; return its exit status."""
    backend = backend_named(options["backend"])
    plan = plan_of(options, backend)
    if not backend.queues:
        screen.tell(
            f"TASKS[{backend.alias!r}]['QUEUES'] is empty, so any queue is taken for one: a "
            "misspelled name is not noticed."
        )
    if reload.is_rehearsal():
        return 0
    _tell_of_unknown_variables(screen)
    supervisor = Supervisor(plan, backend)
    status = supervisor.run()
    if supervisor.must_reload and supervisor.code is not None:
        supervisor.code.start_anew()
    # The keeper has said what is missing.
    return USAGE if status == EX_CONFIG else status


def plan_of(options: dict[str, Any], backend: DatabaseBackend) -> Plan:
    """Return what was asked for, or refuse what cannot be meant."""
    queues, excluded = _queues(options, backend)
    _refuse_numbers(options)
    _refuse_words()
    if len(options["worker_id"]) > LONGEST_NAME or not options["worker_id"].isprintable():
        raise _refused(f"--worker-id must be a name of at most {LONGEST_NAME} characters.")
    if options["batch"] and options["reload"]:
        raise _refused("--batch ends when nothing is due, so it does not go with --reload.")
    reload = options["reload"]
    if reload is None:
        reload = settings.DEBUG and not options["batch"]
    names = ("concurrency", "processes", "batch", "max_tasks", "max_memory", "interval",
             "worker_id", "drain_timeout", "scheduler", "health_port",
             "patience")  # fmt: skip
    return Plan(
        backend=backend.alias,
        queues=tuple(queues),
        excluded=tuple(excluded),
        reload=reload,
        **{name: options[name] for name in names},
    )


def _queues(options: dict[str, Any], backend: DatabaseBackend) -> tuple[list[str], list[str]]:
    """Return the queues to take from, in order, and those to leave."""
    queues, excluded = _names(options["queues"]), _names(options["exclude_queues"])
    if not queues:
        raise _refused("--queues names no queue: name some, or '*' for all.")
    for queue in (*queues, *excluded):
        if backend.queues and queue != EVERY_QUEUE and queue not in backend.queues:
            raise _refused(
                f"Queue {queue!r} is not among QUEUES of TASKS[{backend.alias!r}]: "
                f"{', '.join(sorted(backend.queues))}."
            )
    if excluded and EVERY_QUEUE not in queues:
        raise _refused("--exclude-queues goes with --queues '*' only.")
    both = [queue for queue in excluded if queue in queues]
    if both:
        raise _refused(f"Queue {both[0]!r} is named by --queues and by --exclude-queues.")
    if backend.queues and not set(backend.queues) - set(excluded):
        raise _refused("--exclude-queues leaves no queue to take from.")
    return queues, excluded


def _refuse_numbers(options: dict[str, Any]) -> None:
    for name in COUNTS:
        if options[name] is not None and options[name] < 1:
            raise _refused(f"{_flag_of(name)} must be at least 1, got {options[name]}.")
        most = MOST.get(name)
        if most is not None and options[name] > most:
            raise _refused(f"{_flag_of(name)} must be at most {most}, got {options[name]}.")
    for name in SPANS:
        seconds = options[name]
        if seconds is not None and not (math.isfinite(seconds) and seconds >= 0):
            raise _refused(f"{_flag_of(name)} must be seconds from 0 on, got {seconds}.")
    port = options["health_port"]
    if port is not None and not 1 <= port <= LARGEST_PORT:
        raise _refused(f"--health-port must be from 1 to {LARGEST_PORT}, got {port}.")


def _refuse_words() -> None:
    for name in FLAGS:
        value = _said(name)
        if value is not None and value.lower() not in (*YES, *NO):
            raise _refused(f"{VARIABLES}{name} must be 1 or 0, got {value!r}.")


def _tell_of_unknown_variables(screen: Screen) -> None:
    """Tell of what looks like a misspelled option.

    Only of that: Kubernetes adds variables of its own for a service that is named once-worker.
    """
    known = [f"{VARIABLES}{name}" for name in OPTIONS]
    for variable in sorted(set(os.environ) - set(known)):
        if variable.startswith(VARIABLES):
            near = difflib.get_close_matches(variable, known, n=1, cutoff=0.9)
            if near:
                screen.tell(f"{variable} is not known and changes nothing: {near[0]} was meant?")


def _refused(sentence: str) -> CommandError:
    return CommandError(sentence, returncode=USAGE)


def _flag_of(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _names(text: str) -> list[str]:
    return list(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))


def _said(name: str, default: str | None = None) -> str | None:
    # Empty is how compose files and charts say "not set".
    return os.environ.get(f"{VARIABLES}{name}") or default


def _flag(name: str, default: bool | None) -> bool | None:
    value = _said(name)
    return default if value is None else value.lower() in YES
