"""The nets under what should have happened: whether a keeper has to look at them at all."""

from __future__ import annotations

from django_once import sql
from django_once.sql import nets
from django_once.sql.nets import Caught


def caught(database: str, backend: str) -> Caught:
    """Return which nets may have caught something of this backend."""
    return nets.caught(sql.on(database), backend)
