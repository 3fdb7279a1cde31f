"""The context of changes: what a session says of itself, for the listeners of what it writes.

    set_notification_context({"user": request.user.pk})

Triggers add it to each notification. On PostgreSQL and MySQL it is a variable of the session, on
SQLite a temporary trigger, which only this session has.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Literal

from django.db import DatabaseError, connections

from django_once import payload
from django_once.errors import InvalidOption, shortened

LONGEST = 64 * 1024


def set_notification_context(
    context: Mapping[str, Any],
    using: str | None = None,
    *,
    lasts: Literal["session", "transaction"] = "session",
) -> None:
    """Let what this connection writes from now on tell its listeners this context.

    Until it is set anew, or with lasts="transaction" until the transaction ends. In a transaction
    that is broken nothing is done, since nothing of it will be heard.
    """
    from django_once.sql import contexts
    from django_once.sql.repeat import has_ended_transaction

    if not isinstance(context, Mapping):
        raise InvalidOption(f"A context is a dictionary, got {shortened(context)}.")
    if lasts not in ("session", "transaction"):
        raise InvalidOption(f"lasts must be 'session' or 'transaction', got {shortened(lasts)}.")
    connection = connections[using or "default"]
    if connection.needs_rollback:
        return
    if lasts == "transaction" and not connection.in_atomic_block:
        raise RuntimeError(
            "A context that lasts for a transaction was set outside of one: set it inside "
            "transaction.atomic(), or let it last for the session."
        )
    text = payload.encode(dict(context), "The context", most_bytes=LONGEST)
    context_text = text if json.loads(text) else ""
    try:
        contexts.put(connection, context_text, is_passing=lasts == "transaction")
    except DatabaseError as error:
        # Broken by a statement whose error somebody has swallowed, so Django does not know.
        if not has_ended_transaction(error):
            raise
