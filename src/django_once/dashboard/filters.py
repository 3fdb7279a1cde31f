"""The filter language: `task:charge queue:mail state:failed since:2h arg:order_id=812`.

Words stand beside each other and all must hold; a word said twice means either of its values, and a
minus before a word means the opposite. What does not parse is refused with its place in the text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from difflib import get_close_matches
from typing import Any, Final

from django.core.management.base import CommandError

from django_once.management.moments import since_when
from django_once.models.job.look import HAVE_ENDED, STATES, WAITING
from django_once.redaction import HIDDEN, shown
from django_once.sql.windows import Clause

LONGEST: Final = 1_000
ONCE: Final = ("since", "until")
# Each word, an example of it, and what it means: the page shows this table.
WORDS: Final = {
    "state": ("state:failed", f"where jobs stand: {', '.join(STATES)}; also open and ended"),
    "task": ("task:charge", "the task's path, the end of it, or a pattern such as task:shop.*"),
    "queue": ("queue:mail", "the queue"),
    "since": ("since:2h", "ended (where only ended jobs are meant), else enqueued, since then"),
    "until": ("until:2026-11-01", "the same, before then"),
    "arg": ("arg:order_id=812", "a named argument; arg:0=812 is the first one without a name"),
    "error": ("error:ValueError", "the class of the last error"),
    "reason": ("reason:timed_out", "why they ended"),
    "blocked": ("blocked:limit", "what they wait for"),
    "worker": ("worker:web-1*", "who runs or ran them last"),
    "attempt": ("attempt:>1", "at which attempt they are; also <3 or 2"),
    "key": ("key:poll:7", "the key of their series"),
    "limit": ("limit:tenant:7", "the limit that they count for"),
    "fair": ("fair:tenant:7", "whose share they take"),
    "batch": ("batch:import-42", "the batch"),
    "channel": ("channel:authors", "the channel of a notification"),
    "backend": ("backend:default", "the alias of the backend"),
    "id": ("id:0199c3a1", "the id, or its first four or more digits"),
}  # fmt: skip
MEANT: Final = {"open": (*WAITING, "running"), "ended": HAVE_ENDED, "waiting": WAITING}
SECRET: Final = ("arg",)
_WORD: Final = re.compile(
    r'\s*(?P<minus>-?)(?:(?P<name>[A-Za-z_]+):)?(?P<value>(?:"(?:[^"\\]|\\.)*"?|[^\s"])*)'
)
_ID: Final = re.compile(r"[0-9a-f]{4,32}")
_ATTEMPT: Final = re.compile(r"[<>]?=?\d{1,6}")
_PLAIN: Final = re.compile(r'[^\s"\\]+')


class FilterError(ValueError):
    """What is wrong with a filter, and where in its text."""

    def __init__(self, says: str, begin: int, end: int) -> None:
        super().__init__(says)
        self.says, self.begin, self.end = says, begin, end


@dataclass(frozen=True, slots=True)
class Filter:
    """Which jobs somebody means, as words of a filter."""

    text: str = ""
    clauses: tuple[Clause, ...] = ()
    arguments: tuple[Clause, ...] = field(default=())

    def states(self) -> set[str]:
        """Return the states that are asked for; none means any."""
        said = [one for one in self.clauses if one.field == "state" and not one.negated]
        return {str(value) for clause in said for value in clause.values}

    def fits(self, job: Any) -> bool:
        """Return whether the arguments of a job, which SQL only guesses, are those asked for."""
        return all(_has_argument(job, clause) != clause.negated for clause in self.arguments)


@dataclass(frozen=True, slots=True)
class Said:
    """One word as it stands in the text."""

    name: str
    value: str
    negated: bool
    begin: int
    end: int


def parse(text: str, now: datetime, *, sees_arguments: bool = True) -> Filter:
    """Return what a filter means, or refuse it by its place."""
    if len(text) > LONGEST:
        raise FilterError(f"A filter has at most {LONGEST:,} characters.", LONGEST, len(text))
    clauses: dict[tuple[str, bool], Clause] = {}
    arguments: list[Clause] = []
    for word in _words(text):
        if word.name in SECRET and not sees_arguments:
            says = "To look for arguments you need the permission once.view_payload."
            raise FilterError(says, word.begin, word.end)
        clause = _clause(word, now)
        if word.name == "arg":
            arguments.append(clause)
            continue
        known = clauses.get((clause.field, clause.negated))
        if known is not None and clause.field in ONCE:
            raise FilterError(f"{clause.field}: is said twice.", word.begin, word.end)
        values = (*known.values, *clause.values) if known else clause.values
        unique = tuple(dict.fromkeys(values))
        clauses[clause.field, clause.negated] = Clause(clause.field, unique, clause.negated)
    return Filter(text, (*clauses.values(), *arguments), tuple(arguments))


def written(**words: object) -> str:
    """Return the text of a filter that says this; what is empty is left out."""
    return " ".join(f"{name}:{quoted(str(value))}" for name, value in words.items() if value)


def quoted(value: str) -> str:
    """Return a value as it must stand in a filter."""
    if _PLAIN.fullmatch(value):
        return value
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def without_arguments(text: str) -> str:
    """Return a filter for a log that others read: what arguments were looked for stays out."""
    return re.sub(r"(arg:[^\s=]*=)(\"(?:[^\"\\]|\\.)*\"?|\S)*", r"\1…", text)


def _words(text: str) -> Iterator[Said]:
    at = 0
    while text[at:].strip():
        found = _WORD.match(text, at)
        assert found is not None, "Every text begins with a word, if only with an empty one."
        begin = found.start("minus")
        if found.end() == at or not found["value"]:
            end = max(found.end(), begin + 1)
            name = found["name"]
            says = f"Nothing stands behind {name}:" if name else "A word is missing here."
            raise FilterError(says, begin, end)
        yield Said(
            (found["name"] or "").lower(), _unquoted(found), bool(found["minus"]), begin,
            found.end(),
        )  # fmt: skip
        at = found.end()


def _unquoted(found: re.Match[str]) -> str:
    value, begin = found["value"], found.start("value")
    parts, at = [], 0
    while at < len(value):
        if value[at] != '"':
            parts.append(value[at])
            at += 1
            continue
        closed = re.compile(r'"((?:[^"\\]|\\.)*)"').match(value, at)
        if closed is None:
            raise FilterError("This quotation mark is not closed.", begin + at, found.end())
        parts.append(re.sub(r"\\(.)", r"\1", closed[1]))
        at = closed.end()
    text = "".join(parts)
    if not text:
        raise FilterError("Nothing stands between the quotation marks.", begin, found.end())
    return text


def _clause(word: Said, now: datetime) -> Clause:
    name = word.name
    if not name:
        return _bare(word)
    if name not in WORDS:
        near = get_close_matches(name, WORDS, 1)
        hint = f" Did you mean {near[0]}:?" if near else f" There are: {', '.join(WORDS)}."
        raise FilterError(f"There is no word {name!r}.{hint}", word.begin, word.end)
    if name == "state":
        return Clause(name, tuple(_states(word)), word.negated)
    if name in ONCE:
        return Clause(name, (_moment(word, now),))
    if name == "arg":
        return _argument(word)
    if name == "id":
        return Clause(name, (_id(word),), word.negated)
    if name == "attempt" and not _ATTEMPT.fullmatch(word.value):
        raise FilterError("attempt: takes a number, as in attempt:>1.", word.begin, word.end)
    _refuse_nul(word)
    return Clause(name, (word.value,), word.negated)


def _bare(word: Said) -> Clause:
    """Return what a word without a name means: an id, or a part of a task's path."""
    digits = word.value.lower().replace("-", "")
    if len(digits) >= 8 and _ID.fullmatch(digits):
        return Clause("id", (digits,), word.negated)
    _refuse_nul(word)
    return Clause("text", (word.value,), word.negated)


def _states(word: Said) -> Iterator[str]:
    for state in word.value.lower().split(","):
        if state in MEANT:
            yield from MEANT[state]
        elif state in STATES:
            yield state
        else:
            near = get_close_matches(state, (*STATES, *MEANT), 1)
            hint = f" Did you mean {near[0]}?" if near else ""
            known = ", ".join((*STATES, *MEANT))
            raise FilterError(
                f"There is no state {state!r}.{hint} There are: {known}.", word.begin, word.end
            )


def _moment(word: Said, now: datetime) -> datetime:
    if word.negated:
        raise FilterError(f"{word.name}: takes no minus.", word.begin, word.end)
    try:
        return since_when(word.value, now)
    except (CommandError, OverflowError) as refused:
        says = (
            f"{word.name}: takes a length of time, as in 2h or 30m, or when, as in "
            "2026-11-01T12:00Z."
        )
        raise FilterError(says, word.begin, word.end) from refused


def _argument(word: Said) -> Clause:
    name, sign, value = word.value.partition("=")
    if not (name and sign and value):
        says = "arg: takes a name and a value, as in arg:order_id=812."
        raise FilterError(says, word.begin, word.end)
    _refuse_nul(word)
    return Clause("arg", (value,), word.negated, name)


def _id(word: Said) -> str:
    digits = word.value.lower().replace("-", "")
    if not _ID.fullmatch(digits):
        says = "id: takes an id, or its first four or more digits."
        raise FilterError(says, word.begin, word.end)
    return digits


def _refuse_nul(word: Said) -> None:
    if "\x00" in word.value:
        raise FilterError("A NUL character stands in no job.", word.begin, word.end)


def _has_argument(job: Any, clause: Clause) -> bool:
    told = shown(job)
    try:
        is_placed = clause.name.isdigit()
        value = told.args[int(clause.name)] if is_placed else told.kwargs[clause.name]
    except (LookupError, TypeError):
        return False
    if value == HIDDEN:
        return False
    return bool({str(value), json.dumps(value, ensure_ascii=False)} & set(clause.values))
