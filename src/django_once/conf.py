"""`TASKS[alias]`: its options as one value, each with its default and the reason for it.

Reading never raises, since tasks are declared while apps load: what is wrong is kept as
sentences, which `manage.py check` shows and the first use raises.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal

from django.utils.module_loading import import_string

from django_once import clock
from django_once.errors import InvalidOption, shortened

KEYS = ("BACKEND", "OPTIONS", "QUEUES")
LONGEST_NAME = 64
SHORTEST_LEASE = timedelta(seconds=1)
# No database of ours keeps a text that is longer.
MOST_BYTES = 2**30 - 1
LONGEST_LEASE = timedelta(days=1)
SHORTEST_POLL = timedelta(milliseconds=10)
LONGEST_POLL = timedelta(hours=1)
SHORTEST_AGE = timedelta(seconds=1)
RETENTION = {"SUCCESSFUL": "7d", "FAILED": "30d"}


@dataclass(frozen=True, slots=True)
class Option:
    """One option: its key, its default, how it is read, and why the default is what it is."""

    key: str
    default: Any
    read: Callable[[Any, str], Any]
    reason: str


@dataclass(frozen=True, slots=True)
class Problem:
    """Something in the settings that cannot be meant: a sentence, and what to do about it."""

    kind: Literal["option", "value", "key", "name"]
    sentence: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.sentence} {self.remedy}"


@dataclass(frozen=True, slots=True)
class Options:
    """What one backend was told, read and checked."""

    database: str
    lease: timedelta
    id_function: Callable[[], Any] | None
    max_arguments: int
    max_result: int
    retry: Any
    deaths: int
    wakeup: str
    poll: timedelta
    retention: Mapping[str, timedelta]
    ageing: Mapping[str, timedelta]
    redact: tuple[Any, ...]
    listener_filter: Any
    redis: str
    problems: tuple[Problem, ...] = ()


def read(options: object, place: str = "OPTIONS") -> Options:
    """Return the options as values; what is wrong with them stands in `problems`."""
    given = options if isinstance(options, Mapping) else {}
    known = {option.key: option for option in TABLE}
    problems = [_unknown(key, known, place) for key in given if key not in known]
    values: dict[str, Any] = {}
    for key, option in known.items():
        try:
            values[key.lower()] = option.read(given.get(key, option.default), f"{place}[{key!r}]")
        except InvalidOption as problem:
            problems.append(_refused(option, problem))
            values[key.lower()] = option.read(option.default, key)
    return Options(**values, problems=tuple(problems))


def queues(named: object) -> list[str]:
    """Return the queues that a backend was given, or none (which means any) where they are not
    a list of names."""
    # A text is a sequence too: of its letters.
    if not isinstance(named, (list, tuple, set, frozenset)):
        return []
    return [name for name in named if isinstance(name, str)]


def problems_beside_options(alias: str, params: Mapping[str, Any]) -> tuple[Problem, ...]:
    """Return what is wrong with `TASKS[alias]`, but for the values of its options."""
    place = f"TASKS[{alias!r}]"
    problems = [_unread(key, place) for key in params if key not in KEYS]
    if len(alias) > LONGEST_NAME:
        sentence = (
            f"{place}: an alias has at most {LONGEST_NAME} characters, this has {len(alias)}."
        )
        problems.append(Problem("name", sentence, "Jobs carry it in a column: shorten it."))
    if not isinstance(params.get("OPTIONS", {}), Mapping):
        sentence = f"{place}['OPTIONS'] must be a dictionary, got {shortened(params['OPTIONS'])}."
        problems.append(Problem("value", sentence, "Leave it out to take every default."))
    named = params.get("QUEUES", [])
    if isinstance(named, (list, tuple, set, frozenset)):
        refused = [refusal for name in named if (refusal := refused_queue(name))]
        remedy = "Rename it, here and in the tasks that name it."
        problems += [
            Problem("name", f"{place}['QUEUES']: {refusal}", remedy) for refusal in refused
        ]
    else:
        sentence = f"{place}['QUEUES'] must be a list of names, got {shortened(named)}."
        problems.append(Problem("name", sentence, "Write ['default'], or [] for any queue."))
    return tuple(problems)


def refused_queue(name: object) -> str:
    """Return why this cannot be the name of a queue, or nothing."""
    if not isinstance(name, str) or not 1 <= len(name) <= LONGEST_NAME:
        return f"A queue's name has 1 to {LONGEST_NAME} characters, got {shortened(name)}."
    if "," in name or name == "*" or name != name.strip() or not name.isprintable():
        return (
            f"A queue's name has no comma, no space at its ends and nothing that cannot be "
            f"printed, and '*' stands for all queues: got {shortened(name)}."
        )
    return ""


def _text(value: Any, key: str) -> str:
    if not isinstance(value, str) or not value:
        raise InvalidOption(f"{key} must be the alias of a database, got {shortened(value)}.")
    return value


def _lease(value: Any, key: str) -> timedelta:
    lease = clock.duration(value, key)
    if not SHORTEST_LEASE <= lease <= LONGEST_LEASE:
        raise InvalidOption(f"{key} must be from 1 second to 1 day, got {shortened(value)}.")
    return lease


def _function(value: Any, key: str) -> Callable[[], Any] | None:
    if isinstance(value, str):
        try:
            value = import_string(value)
        # A path that begins with a dot or is none at all is no ImportError.
        except (ImportError, TypeError, ValueError) as error:
            raise InvalidOption(
                f"{key} names {value!r}, which cannot be imported: {error}."
            ) from error
    if value is not None and not callable(value):
        raise InvalidOption(f"{key} must be a function or the path of one, got {shortened(value)}.")
    function: Callable[[], Any] | None = value
    return function


def _count(least: int, most: int) -> Callable[[Any, str], int]:
    def read(value: Any, key: str) -> int:
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            raise InvalidOption(
                f"{key} must be a whole number from {least} to {most}, got {shortened(value)}."
            )
        return value

    return read


def _wakeup(value: Any, key: str) -> str:
    if value not in ("auto", "poll"):
        raise InvalidOption(f"{key} must be 'auto' or 'poll', got {shortened(value)}.")
    return str(value)


def _poll(value: Any, key: str) -> timedelta:
    poll = clock.duration(value, key)
    if not SHORTEST_POLL <= poll <= LONGEST_POLL:
        raise InvalidOption(f"{key} must be from 10 ms to 1 hour, got {shortened(value)}.")
    return poll


def _retention(value: Any, key: str) -> Mapping[str, timedelta]:
    """Read {"SUCCESSFUL": "7d", …}; a status that is left out keeps its default."""
    if not isinstance(value, Mapping):
        raise InvalidOption(
            f"{key} must say how long each status is kept, such as "
            f"{{'SUCCESSFUL': '7d', 'FAILED': '30d'}}, got {shortened(value)}."
        )
    for status in value:
        if status not in RETENTION:
            raise InvalidOption(f"{key} knows {' and '.join(RETENTION)}, got {status!r}.")
    kept = {**RETENTION, **value}
    return {status: clock.duration(length, f"{key}[{status!r}]") for status, length in kept.items()}


def _redact(value: Any, key: str) -> tuple[Any, ...]:
    """Read names and patterns of them, or a function of the arguments, or its path."""
    if isinstance(value, (list, tuple, set, frozenset)):
        if all(isinstance(name, str) and name for name in value):
            return (tuple(value),) if value else ()
    elif value is not None:
        function = _function(value, key)
        return (function,)
    raise InvalidOption(
        f"{key} must be a list of names such as ['card', '*password*'], or a function of the "
        f"arguments, or its path, got {shortened(value)}."
    )


def _ageing(value: Any, key: str) -> Mapping[str, timedelta]:
    """Read {"mail": "5m", …}: of each queue, after what time a waiting job is lifted."""
    if not isinstance(value, Mapping):
        raise InvalidOption(
            f"{key} must say of queues after what time a job that waits gets a higher priority, "
            f"such as {{'default': '5m'}}, got {shortened(value)}."
        )
    lengths = {
        queue: clock.duration(length, f"{key}[{queue!r}]") for queue, length in value.items()
    }
    for queue, length in lengths.items():
        refusal = refused_queue(queue)
        if refusal or length < SHORTEST_AGE:
            raise InvalidOption(
                refusal or f"{key}[{queue!r}] must be at least 1 second, got {value[queue]!r}."
            )
    return lengths


def _retry(value: Any, key: str) -> Any:
    # Asked by what it can do: the words of tasks stand above this file.
    if value is not None and (isinstance(value, type) or not hasattr(value, "decide")):
        raise InvalidOption(f"{key} must be a Retry(…) or None, got {shortened(value)}.")
    return value


def _listener_filter(value: Any, key: str) -> Any:
    # Loaded when a notification is there: it may import models, which settings must not.
    if value is None or (isinstance(value, str) and "." in value) or hasattr(value, "get_filter"):
        return value
    raise InvalidOption(
        f"{key} must be the path of a class with get_filter(), or one of its objects, got "
        f"{shortened(value)}."
    )


def _redis(value: Any, key: str) -> str:
    kinds = ("redis://", "rediss://", "unix://")
    if isinstance(value, str) and (not value or value.startswith(kinds)):
        return value
    raise InvalidOption(
        f"{key} must be an address such as 'redis://127.0.0.1:6379/0', got {shortened(value)}."
    )


TABLE: tuple[Option, ...] = (
    Option(
        "DATABASE", "default", _text,
        "jobs join the transaction of the code that enqueues them only in its own database",
    ),
    Option(
        "LEASE", "60s", _lease,
        "longer than a planned fail-over of the database (10 to 40 s), which must not expire "
        "every worker; a dead child is noticed by its supervisor long before",
    ),
    Option(
        "ID_FUNCTION", None, _function,
        "UUIDv7 grows with time, which keeps the primary key's index small and hot",
    ),
    Option(
        "MAX_ARGUMENTS", 1_000_000, _count(2, MOST_BYTES),
        "bytes of JSON: a job is read whole by every claim, so large things belong elsewhere",
    ),
    Option(
        "MAX_RESULT", 1_000_000, _count(2, MOST_BYTES),
        "bytes of JSON, for the same reason",
    ),
    Option(
        "RETRY", None, _retry,
        "an exception ends the job, as in Django's own backends, unless the task says otherwise",
    ),
    Option(
        "DEATHS", 3, _count(0, 1_000),
        "how often a job whose process died is tried again: a deploy or two must not fail it, "
        "a job that kills its worker must not do so for ever",
    ),
    Option(
        "WAKEUP", "auto", _wakeup,
        "LISTEN and NOTIFY where the database has them and no pooler is in between; 'poll' spares "
        "the one lock that each commit with a NOTIFY takes",
    ),
    Option(
        "POLL", "1s", _poll,
        "a worker that nothing wakes looks once a second; one that is woken looks ten times less",
    ),
    Option(
        "RETENTION", RETENTION, _retention,
        "results are looked at for days, failures for weeks, and a table that only grows gets slow",
    ),
    Option(
        "AGEING", {}, _ageing,
        "what is urgent comes first, and who fills a queue with it says how long others may wait",
    ),
    Option(
        "REDACT", (), _redact,
        "which names are secret is the project's to say; arguments are shown to nobody who does "
        "not ask, and in the admin only with a permission",
    ),
    Option(
        "LISTENER_FILTER", None, _listener_filter,
        "every worker that knows a channel handles all of its notifications",
    ),
    Option(
        "REDIS", "", _redis,
        "PostgreSQL carries broadcasts itself; other databases need a Redis or Valkey for them",
    ),
)  # fmt: skip


def _unknown(key: object, known: Mapping[str, Option], place: str) -> Problem:
    near = difflib.get_close_matches(str(key).upper(), known, n=1)
    meant = f"Did you mean {near[0]!r}?" if near else f"There are: {', '.join(sorted(known))}."
    return Problem("option", f"{place}[{shortened(key)}] is not an option.", meant)


def _refused(option: Option, problem: InvalidOption) -> Problem:
    remedy = f"The default is {option.default!r}: {option.reason}."
    return Problem("value", str(problem), remedy)


def _unread(key: object, place: str) -> Problem:
    near = difflib.get_close_matches(str(key).upper(), KEYS, n=1)
    if near:
        remedy = f"Did you mean {near[0]!r}?"
    elif str(key).upper() in {option.key for option in TABLE}:
        remedy = f"It is an option: write it into {place}['OPTIONS']."
    else:
        remedy = f"There are: {', '.join(KEYS)}."
    return Problem("key", f"{place}[{shortened(key)}] is read by nobody.", remedy)
