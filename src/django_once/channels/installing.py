"""The triggers of channels: what a database should have, and `migrate`, which sees to it.

They are no migrations of the project's. After each `migrate` what is installed is compared with
what the channels say now: so a changed `lock_notifications`, a listener more or a channel less
needs a `migrate` and nothing else, forwards or backwards.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.db import connections

from django_once import compat, events
from django_once.channels import broadcasting, rows, schema
from django_once.definitions import listeners
from django_once.definitions.channel import TriggerChannel, Words, channels, words_of
from django_once.definitions.options import AT_MOST_ONCE
from django_once.errors import InvalidOption
from django_once.sql.triggers import installed
from django_once.sql.triggers.values import Stored, Trigger
from django_once.wakeups.broadcasts import line_of

INTEGERS = frozenset({
    "AutoField", "BigAutoField", "SmallAutoField", "IntegerField", "BigIntegerField",
    "SmallIntegerField", "PositiveIntegerField", "PositiveBigIntegerField",
    "PositiveSmallIntegerField", "BooleanField", "DurationField",
})  # fmt: skip


def wanted(database: str) -> list[Trigger]:
    """Return the triggers that the channels of this process ask of a database."""
    if connections[database].vendor not in installed.KINDS or not installed.has_jobs(database):
        return []
    versions: dict[str, str] | None = None
    tables: set[str] = set()
    found: list[Trigger] = []
    for channel in channels():
        if not issubclass(channel, TriggerChannel):
            continue
        heard = listeners.events_heard(channel)
        if not heard:
            continue
        words = words_of(channel)
        if _database_of(words) != database or rows.database_of(channel) != database:
            continue
        if versions is None:
            versions, tables = schema.applied(database), installed.tables(database)
        if installed.bare(rows.model_of(channel)._meta.db_table) in tables:
            found += _of_channel(channel, words, heard, database, versions)
    return found


def install(database: str) -> installed.Drift:
    """Let a database have the triggers that the channels ask for; return what was otherwise."""
    asked = wanted(database)
    changed = installed.install(database, asked)
    if changed:
        events.triggers_installed(
            database, len(changed.missing), len(changed.changed) + len(changed.disabled),
            len(changed.left_over),
        )  # fmt: skip
    return changed


def drift(database: str) -> installed.Drift:
    """Return how the triggers of a database differ from what the channels say."""
    return installed.drift(database, wanted(database))


def migrated(using: str, **_: Any) -> None:
    """Follow the channels after a `migrate`."""
    if _is_ours(using):
        install(using)


def migrating(using: str, plan: Iterable[Any] = (), **_: Any) -> None:
    """Take triggers away that a migration would stumble over; they are back after it.

    On PostgreSQL none would: its triggers name no columns. Elsewhere a table whose columns change
    has none meanwhile, nor has any table while that of the jobs is made anew.
    """
    steps = list(plan)
    if not steps or not _is_ours(using):
        return
    labels = {migration.app_label for migration, _ in steps}
    backwards = {migration.app_label for migration, is_backwards in steps if is_backwards}
    if "once" in backwards or ("once" in labels and connections[using].vendor != "postgresql"):
        installed.remove(using)
    elif connections[using].vendor != "postgresql":
        of_models = {
            rows.model_of(channel)._meta.db_table
            for channel in channels()
            if issubclass(channel, TriggerChannel) and channel.model is not None
            and rows.model_of(channel)._meta.app_label in labels
        }  # fmt: skip
        installed.remove(using, of_models)


def refuse_places(channel: type[TriggerChannel]) -> None:
    """Refuse a channel whose model is not where its jobs are, or that orders by what is not there.

    A trigger writes into its own database only.
    """
    model, words = rows.model_of(channel), words_of(channel)
    theirs, ours = rows.database_of(channel), _database_of(words)
    if ours is not None and theirs != ours:
        raise InvalidOption(
            f"Channel {words.name} hears of {model._meta.label} in database {theirs!r}, and its "
            f"backend {words.backend!r} keeps jobs in {ours!r}: name a backend with that database, "
            "by backend = …."
        )
    if ours is None:
        raise InvalidOption(
            f"Channel {words.name} names the backend {words.backend!r}, which keeps no jobs in a "
            "database: name one of django_once.backend.DatabaseBackend, by backend = …."
        )
    _order_columns(model, words)


def _of_channel(
    channel: type[TriggerChannel], words: Words, heard: dict[str, tuple[str, ...]], database: str,
    versions: dict[str, str],
) -> list[Trigger]:  # fmt: skip
    model = rows.model_of(channel)
    table = model._meta.db_table
    there = installed.columns(database, table, _kinds(model))
    return [
        Trigger(
            channel=words.name,
            backend=words.backend,
            table=table,
            timing=event.partition("_")[0],
            operation=event.partition("_")[2],
            schema=versions.get(model._meta.app_label, ""),
            columns=there,
            order_by=_order_columns(model, words),
            stored=tuple(_stored(words, group) for group in groups) if words.is_stored else (),
            tells=() if words.is_stored else _tells(channel, event),
            wakes=_wakes(words),
        )
        for event, groups in heard.items()
        if words.is_stored or _tells(channel, event)
    ]


def _tells(channel: type[TriggerChannel], event: str) -> tuple[str, ...]:
    """Return the lines on which a broadcast channel is told; none where nobody would hear it."""
    words = words_of(channel)
    return () if broadcasting.unheard(words) else (line_of(words.name),)


def _stored(words: Words, group: str) -> Stored:
    backend: Any = compat.task_backends[words.backend]
    return Stored(
        task=words.path_of(group),
        queue=words.queue,
        priority=words.priority,
        max_attempts=words.max_attempts,
        max_deaths=0 if words.delivery == AT_MOST_ONCE else backend.settings.deaths,
        timeout=words.timeout.total_seconds() if words.timeout else None,
        delivery=words.delivery,
        kept_for=words.kept_for,
    )


def _wakes(words: Words) -> bool:
    backend: Any = compat.task_backends[words.backend]
    return bool(backend.settings.wakeup == "auto")


def _kinds(model: Any) -> dict[str, str]:
    return {field.column: _kind(field) for field in model._meta.local_concrete_fields}


def _kind(field: Any) -> str:
    while getattr(field, "remote_field", None) and hasattr(field, "target_field"):
        field = field.target_field
    while hasattr(field, "output_field") and field.output_field is not field:
        field = field.output_field
    kind = field.get_internal_type()
    if kind in INTEGERS:
        return "integer"
    return "bytes" if kind == "BinaryField" else "text"


def _order_columns(model: Any, words: Words) -> tuple[str, ...]:
    fields = {}
    for field in model._meta.local_concrete_fields:
        fields[field.name] = fields[field.attname] = field.column
    if "pk" in words.order_by:
        fields["pk"] = model._meta.pk.column
    for name in words.order_by:
        if fields.get(name) is None:
            known = ", ".join(field.name for field in model._meta.local_concrete_fields)
            raise InvalidOption(
                f"Channel {words.name}: order_by names {name!r}, which {model._meta.label} does "
                f"not have in its own table. Its fields: {known}."
            )
    return tuple(fields[name] for name in words.order_by)


def _database_of(words: Words) -> str | None:
    backend: Any = compat.task_backends[words.backend]
    settings = getattr(backend, "settings", None)
    return getattr(settings, "database", None)


def _is_ours(database: str) -> bool:
    found: list[Any] = [compat.task_backends[alias] for alias in compat.task_backends]
    return database in {
        getattr(getattr(backend, "settings", None), "database", None) for backend in found
    }
