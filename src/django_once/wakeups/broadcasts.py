"""Lines on which broadcasts are heard: LISTEN on PostgreSQL, Redis or Valkey elsewhere.

A line is named after its channel. What is told while nobody listens, or while a line was lost, is
missed: whoever must not miss anything stores its notifications.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cache
from typing import Any, Final, Protocol
from uuid import uuid4

from django.db import connections

from django_once.sql.broadcasts import SESSION

PREFIX: Final = "once_told_"
PATIENCE: Final = 2.0
# Of Redis; PostgreSQL's are those of one database already.
SPACE: Final = "django-once:"


def line_of(channel: str) -> str:
    """Return the line of a channel: an identifier of PostgreSQL, however long the name is."""
    return PREFIX + hashlib.sha256(channel.encode()).hexdigest()[:40]


class Line(Protocol):
    """What can be heard."""

    def heard(self, seconds: float) -> list[tuple[str, str]]:
        """Return what was told since the last call, each with its line; wait up to so long.

        Raises an error of the driver when the line is gone.
        """

    def close(self) -> None:
        """Stop listening."""


class Notified:
    """A session of PostgreSQL that listens, outside every transaction."""

    def __init__(self, database: str, lines: Sequence[str]) -> None:
        """Open it; raises ConnectionError where nothing would ever be heard."""
        import psycopg  # noqa: PLC0415 - only PostgreSQL's users have it

        connection: Any = connections[database]
        parameters = connection.get_connection_params()
        for name in ("cursor_factory", "context", "prepare_threshold", "server_side_binding"):
            parameters.pop(name, None)
        parameters["application_name"] = SESSION
        self._session = psycopg.connect(**parameters, autocommit=True)
        self._probe = f"{PREFIX}probe_{uuid4().hex}"
        for line in (*lines, self._probe):
            self._session.execute(f'LISTEN "{line}"')
        self._refuse_a_pooler(connection)

    def heard(self, seconds: float) -> list[tuple[str, str]]:
        """Return what was told since the last call, each with its line; wait up to so long."""
        told = self._session.notifies(timeout=seconds, stop_after=1)
        return [(one.channel, one.payload) for one in told if one.channel != self._probe]

    def close(self) -> None:
        """Stop listening."""
        self._session.close()

    def _refuse_a_pooler(self, connection: Any) -> None:
        """A pooler in transaction mode takes LISTEN and forgets it: then nothing comes back."""
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_notify(%s, '')", [self._probe])
        came = self._session.notifies(timeout=PATIENCE)
        is_heard = any(notify.channel == self._probe for notify in came)
        # What it was read by keeps the session locked.
        came.close()
        if is_heard:
            self._session.execute(f'UNLISTEN "{self._probe}"')
            return
        self._session.execute("UNLISTEN *")
        self._session.close()
        raise ConnectionError(
            "a pooler in transaction mode swallows LISTEN: give this process an address of the "
            "database itself"
        )


class Published:
    """A subscription of Redis or Valkey."""

    def __init__(self, url: str, lines: Sequence[str]) -> None:
        self._client = client(url)
        self._subscription = self._client.pubsub(ignore_subscribe_messages=True)
        self._subscription.subscribe(*[SPACE + line for line in lines])

    def heard(self, seconds: float) -> list[tuple[str, str]]:
        """Return what was told since the last call, each with its line; wait up to so long."""
        found = []
        message = self._subscription.get_message(timeout=seconds)
        while message is not None:
            line = message["channel"].decode().removeprefix(SPACE)
            found.append((line, message["data"].decode()))
            message = self._subscription.get_message(timeout=0)
        return found

    def close(self) -> None:
        """Stop listening."""
        self._subscription.close()
        self._client.close()


def publish(url: str, line: str, told: str) -> None:
    """Tell whoever listens on a line now."""
    _publisher(url).publish(SPACE + line, told)


@cache
def _publisher(url: str) -> Any:
    """Return this process's client, whose connections are its own after a fork, too."""
    return client(url)


def has_redis() -> bool:
    """Return whether the extra is there."""
    try:
        import redis  # noqa: F401, PLC0415 - an extra
    except ImportError:
        return False
    return True


def client(url: str) -> Any:
    """Return a client that gives up soon: nobody may wait for a broadcast."""
    import redis  # noqa: PLC0415 - an extra

    return redis.Redis.from_url(url, socket_connect_timeout=2.0, socket_keepalive=True)
