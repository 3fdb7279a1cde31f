"""How the dashboard's pages say things: moments, lengths of time, numbers, states, addresses."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any, Final
from zoneinfo import ZoneInfo

from django import template
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString

from django_once.dashboard import filters
from django_once.dashboard.visits import Visit
from django_once.management.screen import ago, iso, length, printable, written
from django_once.models.job import look

register = template.Library()
NOTHING: Final = "–"
LONGEST: Final = 20_000


@register.simple_tag(takes_context=True)
def when(context: Any, moment: datetime | None) -> SafeString | str:
    """Return how long ago a moment was, which tells the moment itself when pointed at."""
    if moment is None:
        return NOTHING
    return format_html(
        '<time class="once-when" datetime="{}" title="{}" data-ago>{}</time>',
        iso(moment), written(moment), ago(moment, context["visit"].now),
    )  # fmt: skip


@register.simple_tag(takes_context=True)
def since(context: Any, moment: datetime | None) -> SafeString | str:
    """Return for how long something lasts already."""
    if moment is None:
        return NOTHING
    seconds = (context["visit"].now - moment).total_seconds()
    return format_html(
        '<time class="once-when" datetime="{}" title="{}" data-since>{}</time>',
        iso(moment), written(moment), length(max(0.0, seconds)),
    )  # fmt: skip


@register.filter
def exact(moment: datetime | None) -> str:
    """Return a moment in the project's time zone, to the millisecond."""
    return written(moment)


@register.filter
def clock(moment: datetime) -> str:
    """Return the time of a day in the project's time zone."""
    return f"{timezone.localtime(moment):%H:%M}"


@register.filter
def day(moment: datetime) -> str:
    """Return a day and a time in the project's time zone."""
    return f"{timezone.localtime(moment):%d %b %H:%M}"


@register.filter
def in_zone(moment: datetime | None, zone: str) -> str:
    """Return what the wall shows at a moment, in a zone."""
    if moment is None:
        return NOTHING
    try:
        wall = moment.astimezone(ZoneInfo(zone))
    except (ValueError, OSError, LookupError):
        return NOTHING
    return f"{wall:%a %Y-%m-%d %H:%M:%S %Z}"


@register.filter
def span(seconds: float | None) -> str:
    """Return a length of time as people say it."""
    return NOTHING if seconds is None else length(float(seconds))


@register.filter
def took(seconds: float | None) -> str:
    """Return how long something took, to three digits."""
    if seconds is None:
        return NOTHING
    if seconds < 1:
        return f"{max(0.0, seconds) * 1000:,.0f} ms"
    return f"{seconds:.2f} s" if seconds < 60 else length(seconds)


@register.filter
def number(value: float | None) -> str:
    """Return a number with its thousands apart."""
    return NOTHING if value is None else f"{value:,.0f}"


@register.filter
def rate(value: float) -> str:
    """Return how often something happens in a second."""
    if not value:
        return "0/s"
    if value < 0.1:
        return f"{value * 60:.1f}/min"
    return f"{value:,.0f}/s" if value >= 10 else f"{value:.1f}/s"


@register.filter
def shown(value: object) -> str:
    """Return a stored text without what would steer a terminal or turn the direction of reading."""
    return NOTHING if value in (None, "") else printable(str(value))


@register.filter
def short(value: object) -> str:
    """Return the first digits of an id."""
    return str(value)[:8]


@register.filter
def tail(path: str) -> str:
    """Return the last name of a dotted path."""
    return printable(str(path)).rpartition(".")[2] or NOTHING


@register.filter
def head(path: str) -> str:
    """Return what stands before the last name of a dotted path."""
    return printable(str(path)).rpartition(".")[0]


@register.filter
def as_json(value: Any) -> str:
    """Return a value as JSON, indented; of a long one, its beginning."""
    text = printable(json.dumps(value, ensure_ascii=False, indent=2, default=str))
    return cut(text)


@register.filter
def cut(text: str) -> str:
    """Return a text, of a long one its beginning."""
    if len(text) <= LONGEST:
        return text
    return f"{text[:LONGEST]}\n… {len(text) - LONGEST:,} more characters"


@register.simple_tag(takes_context=True)
def page(context: Any, name: str, id: Any = None, **said: Any) -> str:
    """Return the address of a page of the dashboard."""
    visit: Visit = context["visit"]
    return visit.address(name, id, **said)


@register.filter
def spaced(word: object) -> str:
    """Return a word of ours as people write it."""
    return str(word).replace("_", " ")


@register.filter
def word(value: str, name: str) -> str:
    """Return a filter that says one word."""
    return filters.written(**{name: value})


@register.filter
def word_and(queue: str, more: str) -> str:
    """Return a filter of a queue, with something more."""
    return f"{filters.written(queue=queue)} {more}"


@register.filter
def state_of(job: Any) -> str:
    """Return where a job stands."""
    return look.state_of(job)


@register.filter
def percent(share: float | None) -> str:
    """Return a share of one as people say it."""
    return NOTHING if share is None else f"{share:.0%}"


@register.filter
def plain(value: float) -> str:
    """Return a number as HTML wants it, whatever the language."""
    return f"{value:.4f}"


@register.filter
def count(value: float) -> str:
    """Return how far something is, without a fraction where it has none."""
    return f"{value:,.0f}" if value == int(value) else f"{value:,.2f}"
