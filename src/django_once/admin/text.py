"""How rows look on a page: everything that people wrote is escaped, and what is long is cut."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from django_once import payload
from django_once.management.screen import ago, iso, printable, written

NOTHING: Final = "–"
LONGEST: Final = 20_000
LONGEST_DECODED: Final = 200_000
MOST_ENTRIES: Final = 50


def moment(at: datetime | None, now: datetime) -> SafeString | str:
    """Return how long ago a moment was, which tells the moment itself when pointed at."""
    if at is None:
        return NOTHING
    return format_html(
        '<time datetime="{}" title="{}">{}</time>', iso(at), written(at), ago(at, now)
    )


def exact(at: datetime | None, now: datetime) -> str:
    """Return a moment to the millisecond, and how long ago that was."""
    return NOTHING if at is None else f"{written(at)} ({ago(at, now)})"


def state(word: str, told: str) -> SafeString:
    """Return where a row stands, in the colour of its state."""
    return format_html('<span class="once-state once-{}">{}</span>', word, printable(told))


def block(text: str) -> SafeString:
    """Return a text as it is, line by line; of a long one, its beginning."""
    return format_html('<pre class="once-text">{}</pre>', printable(_cut(text)))


def value(text: str | None) -> SafeString | str:
    """Return a column of JSON, indented; NULL is no value at all."""
    if text is None:
        return NOTHING
    if len(text) > LONGEST_DECODED:
        return block(text)
    try:
        found = payload.decode(text)
    except ValueError:
        return block(text)
    return indented(found)


def indented(value: Any) -> SafeString:
    """Return a value as JSON, line by line."""
    return block(json.dumps(value, ensure_ascii=False, indent=2))


def history(entries: Sequence[dict[str, Any]]) -> SafeString | str:
    """Return what went wrong with each attempt, the last one first and open."""
    if not entries:
        return NOTHING
    shown = list(reversed(entries))[:MOST_ENTRIES]
    items = [
        (SafeString(" open") if not n else "", _heading(entry), block(entry["traceback"] or ""))
        for n, entry in enumerate(shown)
    ]
    listed = format_html_join("", "<details{}><summary>{}</summary>{}</details>", items)
    left_out = len(entries) - len(shown)
    if not left_out:
        return listed
    return format_html("{}<p>… and {} before them.</p>", listed, left_out)


def _heading(entry: dict[str, Any]) -> str:
    number = f"attempt {entry['attempt']} " if entry["attempt"] else ""
    by = f"on {entry['worker']} " if entry["worker"] else ""
    return printable(f"{written(entry['at'])}  {number}{by}{entry['kind']}: {entry['error']}")


def _cut(text: str) -> str:
    if len(text) <= LONGEST:
        return text
    return f"{text[:LONGEST]}\n… {len(text) - LONGEST:,} more characters"
