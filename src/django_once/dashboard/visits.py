"""A visit: who looks at which database, what they may see and do, and when it is there.

Two permissions decide: `once.view_dashboard` to look, `once.operate` to act, which includes
looking. Arguments and results need `once.view_payload` as well.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any, Final
from urllib.parse import urlencode
from uuid import UUID

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest
from django.urls import reverse

from django_once.admin import places
from django_once.backend import DatabaseBackend
from django_once.models.job import look

LOOK: Final = "once.view_dashboard"
OPERATE: Final = "once.operate"
PAYLOAD: Final = "once.view_payload"
DATABASE: Final = "database"


class NotThere(Exception):
    """What an address names is not there, or not any more; the sentence says what may be done."""


@dataclass(frozen=True)
class Visit:
    """One request to the dashboard."""

    request: HttpRequest
    site: str
    database: str
    backends: list[DatabaseBackend]

    @cached_property
    def now(self) -> datetime:
        """The database's now."""
        return look.now(self.database)

    @cached_property
    def aliases(self) -> list[str]:
        """The aliases of the backends whose jobs are here."""
        return [backend.alias for backend in self.backends]

    @property
    def may_act(self) -> bool:
        """Whether this user may change anything."""
        return self.request.user.has_perm(OPERATE)

    @property
    def sees_payload(self) -> bool:
        """Whether this user may see arguments and results."""
        return self.request.user.has_perm(PAYLOAD)

    @property
    def actor(self) -> str:
        """Who this is, for the audit log."""
        return str(self.request.user.get_username())

    def said(self, name: str) -> str:
        """Return what the address says of a name; what no database could keep is left out."""
        return self.request.GET.get(name, "").replace("\x00", "").strip()

    def address(self, page: str, id: UUID | str | None = None, **said: object) -> str:
        """Return the address of a page, in this database."""
        return address(self.site, self.database, page, id, **said)


def visit(request: HttpRequest, site: str) -> Visit | None:
    """Return the visit of a request; None when no backend of ours is configured."""
    if not may_look(request):
        raise PermissionDenied
    known = places.databases()
    asked = request.GET.get(DATABASE) or request.POST.get(DATABASE) or ""
    if not known:
        return None
    database = asked if asked in known else known[0]
    return Visit(request, site, database, places.backends_in(database))


def may_look(request: HttpRequest) -> bool:
    """Return whether this user may see the dashboard."""
    user = request.user
    return user.is_active and (user.has_perm(LOOK) or user.has_perm(OPERATE))


def address(
    site: str, database: str, page: str, id: UUID | str | None = None, **said: object
) -> str:
    """Return the address of a page, with what it shall say."""
    path = reverse(f"{site}:once_dashboard_{page}", args=[] if id is None else [id])
    known = places.databases()
    words: Mapping[str, Any] = {name: value for name, value in said.items() if value}
    if known and database != known[0]:
        words = {**words, DATABASE: database}
    return f"{path}?{urlencode(words)}" if words else path
