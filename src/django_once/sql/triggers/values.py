"""What a trigger is to do: plain values, which each database says its own way."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import Final

PREFIX: Final = "once_"
# PostgreSQL keeps 63 bytes of a name, and cuts what is longer in silence.
LONGEST_NAME: Final = 63
TIMINGS: Final = {"pre": "BEFORE", "post": "AFTER"}
MARK: Final = re.compile(r"once:[0-9a-f]{40}")
# What a name of ours looks like, whoever installed it.
OURS: Final = re.compile(r"once_(pre|post)_(insert|update|delete)_\w*_[0-9a-f]{12}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """The job that a trigger stores for one group."""

    task: str
    queue: str
    priority: int
    max_attempts: int
    max_deaths: int
    timeout: float | None
    delivery: str
    kept_for: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column of the table, and how its value is best written: see each database."""

    name: str
    kind: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Trigger:
    """One trigger of one table: when it acts, what it stores, and what else it does.

    `tells` are the lines on which it tells whoever listens, of a channel that is broadcast.
    """

    channel: str
    backend: str
    table: str
    timing: str
    operation: str
    schema: str
    columns: tuple[Column, ...]
    order_by: tuple[str, ...] = ()
    stored: tuple[Stored, ...] = ()
    tells: tuple[str, ...] = ()
    wakes: bool = True

    @property
    def event(self) -> str:
        """What it tells of, such as "post_insert"."""
        return f"{self.timing}_{self.operation}"

    @property
    def name(self) -> str:
        """Its name: readable, and different for different channels however long theirs are."""
        whole = f"{self.channel}:{self.event}:{self.table}"
        mark = hashlib.sha1(whole.encode(), usedforsecurity=False).hexdigest()[:12]
        last = re.sub(r"\W", "_", self.channel.rpartition(".")[2], flags=re.ASCII)
        begin = f"{PREFIX}{self.event}_"
        room = LONGEST_NAME - len(begin) - len(mark) - 1
        return f"{begin}{last[:room]}_{mark}"

    @property
    def rows(self) -> tuple[str, ...]:
        """Which rows there are: "old", "new" or both."""
        return {"insert": ("new",), "delete": ("old",)}.get(self.operation, ("old", "new"))


@dataclass(frozen=True, slots=True)
class Installed:
    """A trigger as a database has it: what it says, and whether it acts."""

    name: str
    table: str
    source: str
    is_enabled: bool = True


def marked(text: str) -> str:
    """Return a word that stands for a text, for databases that show it otherwise later."""
    return f"once:{hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()}"


def said(source: str) -> str:
    """Return what two texts of a trigger have in common that do the same."""
    mark = MARK.search(source)
    return mark[0] if mark else " ".join(source.split())


def is_ours(name: str) -> bool:
    """Return whether a trigger has a name as those here have."""
    return OURS.fullmatch(name) is not None


def literal(text: str | float | None, *, escapes: bool = False) -> str:
    """Return a value as SQL; with `escapes` for databases where a backslash begins one."""
    if text is None:
        return "NULL"
    if isinstance(text, (int, float)):
        return repr(text)
    quoted = text.replace("'", "''")
    return "'" + (quoted.replace("\\", "\\\\") if escapes else quoted) + "'"
