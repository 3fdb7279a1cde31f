"""What of a task's arguments nobody is shown: they are named, or a function decides.

A name may be a pattern (`*password*`), and hides a key of that name at any depth too. What is
hidden must not come out by another door: so a key, a limit, a share or a lock, whose names stand in
rows and lists, may not be made of it.
"""

from __future__ import annotations

import inspect
import re
import string
from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from typing import Any, Final

from django_once.errors import InvalidOption, shortened

EVERYTHING: Final = "*"
# The words of a task that stand in its row as they are; what is unique stands there as a hash.
TOLD: Final = ("key", "limit", "fair_key", "lock")


def check(said: dict[str, Any]) -> None:
    """Refuse what cannot be meant; what was said shortly stands written out afterwards."""
    if "redact" in said:
        meant = checked(said.pop("redact"))
        if meant is not None:
            said["redact"] = meant


def checked(value: object) -> tuple[str, ...] | Callable[..., Any] | None:
    """Return the names that are meant, or the function; refuse what is neither."""
    if value is False:
        return None
    if value is True:
        return (EVERYTHING,)
    names = (value,) if isinstance(value, str) else value
    if isinstance(names, (list, tuple, set, frozenset)) and names:
        if all(isinstance(name, str) and name for name in names):
            return tuple(dict.fromkeys(names))
    elif callable(value):
        return value
    raise InvalidOption(
        "redact must name arguments, such as ['card', 'cvc'], or be True for all of them, or a "
        f"function of them, got {shortened(value)}."
    )


def matches(name: str, patterns: tuple[str, ...]) -> bool:
    """Return whether one of these names or patterns means this name, in any case."""
    return any(fnmatchcase(name.lower(), pattern.lower()) for pattern in patterns)


def refuse_unnamed(said: Mapping[str, Any], function: Callable[..., Any]) -> None:
    """Refuse a name that hides nothing, and a word that would tell what is hidden."""
    names = said.get("redact")
    if not isinstance(names, tuple):
        return
    known = inspect.signature(function).parameters
    takes_any = any(one.kind is one.VAR_KEYWORD for one in known.values())
    for name in names:
        if not takes_any and not any(matches(argument, (name,)) for argument in known):
            raise InvalidOption(
                f"redact hides {name!r}, which {function.__qualname__} does not take. Its "
                f"arguments: {', '.join(known)}."
            )
    for word in TOLD:
        template = getattr(said.get(word), "key", said.get(word))
        for place in _arguments(template) if isinstance(template, str) else ():
            if matches(place, names):
                raise InvalidOption(
                    f"{word}={template!r} is made of {place!r}, which redact hides: it stands in "
                    "the job's row and in lists. Make it of something else."
                )


def _arguments(template: str) -> list[str]:
    return [re.split(r"[.\[]", place)[0]
            for _, place, _, _ in string.Formatter().parse(template) if place]  # fmt: skip
