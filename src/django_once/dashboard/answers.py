"""Answers: a page as a whole, or only what is live in it, if that has changed.

A page asks for itself again while somebody looks at it, and says which state it has. What stays
the same is not sent. Forms and relative times differ in every answer, so the state is told
without them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, Final

from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string
from django.template.response import TemplateResponse

from django_once.dashboard.visits import Visit
from django_once.definitions.channel import channels

LIVE: Final = "X-Once-Live"
EVERY: Final = 3
CHANNELS: Final = "channels"
TABS: Final[tuple[tuple[str, str], ...]] = (
    ("changelist", "Overview"), ("jobs", "Jobs"), ("failures", "Failures"),
    ("schedules", "Schedules"), ("queues", "Queues"), ("workers", "Workers"), ("locks", "Locks"),
    ("series", "Series"), (CHANNELS, "Channels"), ("audit", "Audit log"),
)  # fmt: skip
_PASSING: Final = re.compile(
    r'(?<=<input type="hidden" name="csrfmiddlewaretoken" value=")[^"]*|(?<=data-ago>)[^<]*'
    r"|(?<=data-since>)[^<]*"
)


@dataclass(frozen=True, slots=True)
class Shown:
    """What a page shows: its tab, title and template, and what stands in it."""

    tab: str
    title: str
    template: str
    context: Mapping[str, Any] = field(default_factory=dict)
    # What stands above the part that is live, so that nobody's typing is replaced.
    head: str = ""
    subtitle: str = ""
    is_live: bool = True
    status: int = 200


def answer(request: HttpRequest, site: admin.AdminSite, visit: Visit | None, shown: Shown) -> Any:
    """Return the page, or its live part, or that nothing has changed."""
    context = {"visit": visit, "site": site.name, **shown.context}
    if not shown.is_live:
        return _page(request, site, shown, {**context, "every": 0})
    fragment = render_to_string(shown.template, context, request)
    etag = f'"{_state(fragment)}"'
    if request.headers.get(LIVE):
        return _fragment(request, fragment, etag, visit)
    return _page(request, site, shown, {**context, "fragment": fragment, "etag": etag,
                                        "every": EVERY})  # fmt: skip


def _fragment(request: HttpRequest, fragment: str, etag: str, visit: Visit | None) -> HttpResponse:
    if request.headers.get("If-None-Match") == etag:
        response = HttpResponse(status=304)
    else:
        response = HttpResponse(fragment)
    response["ETag"] = etag
    if visit is not None:
        response["X-Once-Now"] = f"{visit.now.timestamp():.3f}"
    return response


def _page(
    request: HttpRequest, site: admin.AdminSite, shown: Shown, context: dict[str, Any]
) -> TemplateResponse:
    tabs = [(name, word) for name, word in TABS if name != CHANNELS or channels()]
    whole = {
        **site.each_context(request), **context, "title": shown.title, "subtitle": shown.subtitle,
        "tab": shown.tab, "tabs": tabs, "head": shown.head, "template": shown.template,
        "is_nav_sidebar_enabled": False,
    }  # fmt: skip
    return TemplateResponse(request, "once/page.html", whole, status=shown.status)


def _state(fragment: str) -> str:
    return blake2b(_PASSING.sub("", fragment).encode(), digest_size=12).hexdigest()
