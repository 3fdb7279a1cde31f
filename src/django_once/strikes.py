"""Strikes: no job of a task with certain arguments starts, until somebody restores it.

    strike(charge, {"tenant_id": 7}, reason="its card was refused ten thousand times")
    restore(charge, {"tenant_id": 7})

What runs goes on to its end. A struck job waits, or ends as cancelled with `cancel=True`. Without
arguments all jobs of the task are meant.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from asgiref.sync import sync_to_async

from django_once import calls, compat, payload
from django_once.errors import InvalidOption, shortened

if TYPE_CHECKING:
    from django_once.models import Strike

LONGEST: Final = 255
LONGEST_ARGUMENTS: Final = 4_000


def strike(
    task: compat.AnyTask, arguments: Mapping[str, Any] | None = None,
    *, cancel: bool = False, reason: str = "", by: str = "",
) -> None:  # fmt: skip
    """Let no job of this task with these arguments start; said again, it says the new reason."""
    from django_once.models import Strike
    from django_once.models.strike import stop

    struck = checked(task, arguments or {})
    backend = _backend_of(task)
    stop.strike(
        backend.database, backend.alias, task.module_path, struck,
        outcome=Strike.CANCEL if cancel else Strike.WAIT, reason=reason[:LONGEST], by=by[:LONGEST],
    )  # fmt: skip


def restore(task: compat.AnyTask, arguments: Mapping[str, Any] | None = None) -> bool:
    """Let these jobs go on, in their order; False when they were not struck."""
    from django_once.models.strike import stop

    backend = _backend_of(task)
    struck = checked(task, arguments or {})
    was_struck = stop.restore(backend.database, backend.alias, task.module_path, struck)
    if was_struck:
        backend.announce(is_ready=True)
    return was_struck


def strikes(alias: str = "default") -> list[Strike]:
    """Return what is struck at a backend, the last first."""
    from django_once.models.strike import stop

    backend: Any = compat.task_backends[alias]
    return stop.strikes(backend.database, [alias])


async def astrike(*args: Any, **kwargs: Any) -> None:
    """Do what `strike` does, from async code."""
    await sync_to_async(strike, thread_sensitive=True)(*args, **kwargs)


async def arestore(*args: Any, **kwargs: Any) -> bool:
    """Do what `restore` does, from async code."""
    return await sync_to_async(restore, thread_sensitive=True)(*args, **kwargs)


async def astrikes(alias: str = "default") -> list[Strike]:
    """Do what `strikes` does, from async code."""
    return await sync_to_async(strikes, thread_sensitive=True)(alias)


def checked(task: compat.AnyTask, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is struck as jobs keep it; refuse an argument that the task does not take."""
    for name in arguments:
        if not calls.takes(task, name):
            raise InvalidOption(
                f"{task.module_path} takes no argument {name!r}, so no job has it: "
                f"{', '.join(calls.names(task)) or 'it takes none'}."
            )
    plain: dict[str, Any] = payload.plain(dict(arguments), "arguments")
    if len(payload.encode(plain, "arguments", most_bytes=10**6)) > LONGEST_ARGUMENTS:
        raise InvalidOption(f"What is struck is too long: {shortened(plain)}.")
    return plain


def _backend_of(task: compat.AnyTask) -> Any:
    backend: Any = task.get_backend()
    if not hasattr(backend, "enqueue_under_key"):
        raise compat.InvalidTask(
            f"Backend {task.backend!r} knows no strikes: only jobs in the database of "
            "django_once.backend.DatabaseBackend can be struck."
        )
    return backend
