"""Striking and restoring: jobs of a task, or those of them with certain arguments, do not start.

A job of a struck task is met by a claim, which says so of the row. Whoever claimed it compares its
arguments; it goes back unstarted and uncharged, blocked, and names the strike as its reason. So a
restore lets go exactly what this strike has put aside.

Race: a worker that met a job before the restore gives it back after it. So whatever is blocked by
a strike that is no more is let go, again and again, not only at the restore.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from django_once import payload
from django_once.clock import Now
from django_once.models.job.ready import let_go
from django_once.models.strike.row import Strike
from django_once.sql.stops import RESTORED
from django_once.sql.values import STRUCK

OUTCOMES: Final = (Strike.WAIT, Strike.CANCEL)


def strike(
    database: str, backend: str, task: str, arguments: Mapping[str, Any],
    *, outcome: str = Strike.WAIT, reason: str = "", by: str = "",
) -> None:  # fmt: skip
    """Let no job of this task with these arguments start; said again, it says the new reason."""
    said = {
        "backend": backend, "task": task, "arguments": _written(arguments), "outcome": outcome,
        "reason": reason, "struck_by": by, "struck_at": Now(),
    }  # fmt: skip
    Strike.objects.using(database).update_or_create(pk=_id(backend, task, arguments), defaults=said)


def restore(database: str, backend: str, task: str, arguments: Mapping[str, Any]) -> bool:
    """Let these jobs go on; False when there is no such strike."""
    ended, _ = Strike.objects.using(database).filter(pk=_id(backend, task, arguments)).delete()
    if ended:
        let_go_unstruck(database)
    return bool(ended)


def let_go_unstruck(database: str) -> int:
    """Give a place to every job that waits for a strike that is no more; count them."""
    return let_go(database, STRUCK, RESTORED)


def strikes(database: str, backends: Sequence[str], tasks: Iterable[str] = ()) -> list[Strike]:
    """Return what is struck at these backends, of these tasks or of all, the last first."""
    found = Strike.objects.using(database).filter(backend__in=backends)
    named = list(tasks)
    if named:
        found = found.filter(task__in=named)
    return list(found.order_by("-struck_at", "task", "arguments"))


def covers(struck: Strike, arguments: Mapping[str, Any]) -> bool:
    """Return whether a call has all the arguments that were struck."""
    wanted = payload.decode(struck.arguments)
    return all(name in arguments and _same(arguments[name], one) for name, one in wanted.items())


def _same(given: Any, struck: Any) -> bool:
    """Return whether two values are one to an operator, who writes 7 for number and text."""
    if isinstance(given, bool) or isinstance(struck, bool):
        return given is struck
    if isinstance(given, str) != isinstance(struck, str):
        plain = isinstance(given, str | int | float) and isinstance(struck, str | int | float)
        return plain and str(given) == str(struck)
    return bool(given == struck)


def _written(arguments: Mapping[str, Any]) -> str:
    return json.dumps(arguments, sort_keys=True, ensure_ascii=False)


def _id(backend: str, task: str, arguments: Mapping[str, Any]) -> str:
    text = "\0".join((backend, task, _written(arguments)))
    return hashlib.sha256(text.encode()).hexdigest()[:32]
