"""What a list of jobs can be narrowed to: choices that no question to a large table makes.

Each only reads its word from the address; `listing.py` turns the words into one query, since the
conditions that an index serves must come first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import timedelta
from typing import Any, Final

from django.contrib import admin
from django.db.models import Q

from django_once.admin.places import BACKEND, backends, database_of, databases
from django_once.clock import Now
from django_once.definitions import registry
from django_once.models.job import look
from django_once.sql.values import CANCELLED, DIED, EXPIRED, LOST, RAISED, TIMED_OUT

MOST_CHOICES: Final = 30
REASONS: Final = (RAISED, TIMED_OUT, DIED, LOST, EXPIRED, CANCELLED)
AGES: Final = {
    "1h": ("the last hour", timedelta(hours=1)),
    "1d": ("the last 24 hours", timedelta(days=1)),
    "7d": ("the last 7 days", timedelta(days=7)),
    "30d": ("the last 30 days", timedelta(days=30)),
}
WORKER_STATES: Final = ("alive", "lapsed", "lost", "stopped")


class Choice(admin.SimpleListFilter):
    """A filter that leaves the query to the list."""

    def queryset(self, request: Any, queryset: Any) -> Any:
        """Leave the query as it is."""
        return None

    def _words(self, names: Iterable[str]) -> list[tuple[str, str]]:
        """Return names as choices, with the one that is asked for even if it is none of them."""
        shown = sorted(names)[:MOST_CHOICES]
        asked = self.value()
        if asked and asked not in shown:
            shown.append(asked)
        return [(name, name) for name in shown]


class BackendChoice(Choice):
    """Whose jobs; where backends have databases of their own, also in which one to look."""

    title = parameter_name = BACKEND

    def lookups(self, request: Any, model_admin: Any) -> list[tuple[str, str]]:
        """Return our backends, when there is more than one."""
        ours = backends()
        self.elsewhere = database_of(request) if len(databases()) > 1 else None
        if len(ours) < 2:
            return []
        if self.elsewhere is None:
            return [(backend.alias, backend.alias) for backend in ours]
        return [(one.alias, f"{one.alias} (in {one.database!r})") for one in ours]

    def choices(self, changelist: Any) -> Iterator[Any]:
        """Yield them, and all: of one database, since a list cannot be of two."""
        for number, choice in enumerate(super().choices(changelist)):
            if not number and self.elsewhere is not None:
                choice = {**choice, "display": f"All in {databases()[0]!r}"}
            yield choice


class StateChoice(Choice):
    """Where jobs stand."""

    title = parameter_name = "state"

    def lookups(self, request: Any, model_admin: Any) -> list[tuple[str, str]]:
        """Return the states in words."""
        return [(state, state) for state in look.STATES]


class QueueChoice(Choice):
    """In which queue."""

    title = parameter_name = "queue"

    def lookups(self, request: Any, model_admin: Any) -> list[tuple[str, str]]:
        """Return the queues that settings and tasks name."""
        named = {queue for backend in backends() for queue in backend.queues}
        return self._words(named | {task.queue_name for task in registry.tasks()})


class TaskChoice(Choice):
    """Of which task; where there are many, the search box finds the others."""

    title = parameter_name = "task"

    def lookups(self, request: Any, model_admin: Any) -> list[tuple[str, str]]:
        """Return the first of the tasks that this process knows."""
        return self._words(registry.paths())


class ReasonChoice(Choice):
    """Why they failed."""

    title, parameter_name = "why it failed", "reason"

    def lookups(self, request: Any, model_admin: Any) -> list[tuple[str, str]]:
        """Return the reasons in the order in which people ask for them."""
        return [(reason, reason.replace("_", " ")) for reason in REASONS]


class EndedChoice(Choice):
    """How long ago they ended."""

    title, parameter_name = "ended in", "ended"

    def lookups(self, request: Any, model_admin: Any) -> list[tuple[str, str]]:
        """Return some ages."""
        return [(word, told) for word, (told, _) in AGES.items()]


class WorkerStateChoice(Choice):
    """Where workers stand."""

    title = parameter_name = "state"

    def lookups(self, request: Any, model_admin: Any) -> list[tuple[str, str]]:
        """Return the states in words."""
        return [(state, state) for state in WORKER_STATES]

    def queryset(self, request: Any, queryset: Any) -> Any:
        """Narrow it here: the table of workers is small."""
        unended = Q(lost_at=None, stopped_at=None)
        conditions = {
            "alive": unended & Q(leased_until__gt=Now()),
            "lapsed": unended & Q(leased_until__lte=Now()),
            "lost": Q(stopped_at=None, lost_at__isnull=False),
            "stopped": Q(stopped_at__isnull=False),
        }
        condition = conditions.get(self.value() or "")
        return None if condition is None else queryset.filter(condition)
