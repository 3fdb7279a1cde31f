"""What may be said of a task beside Django's own words, checked where it is said."""

from __future__ import annotations

import difflib
import inspect
import re
import string
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any, Final

from django_once import clock
from django_once.definitions import flow, redaction, template
from django_once.definitions.perpetual import Perpetual
from django_once.definitions.retry import Retry
from django_once.errors import InvalidOption, shortened

AT_LEAST_ONCE: Final = "at_least_once"
EXACTLY_ONCE: Final = "exactly_once"
AT_MOST_ONCE: Final = "at_most_once"
DELIVERIES: Final = (AT_LEAST_ONCE, EXACTLY_ONCE, AT_MOST_ONCE)

# What becomes of a job whose lock somebody else holds.
SKIP: Final = "skip"
WAIT: Final = "wait"
FAIL: Final = "fail"
IF_HELD: Final = (SKIP, WAIT, FAIL)
LONGEST_LOCK: Final = 255

NAMES: Final = (
    "delivery", "retry", "timeout", "expires", "max_deaths", "lock", "if_held",
    "key", "perpetual", "redact", *flow.NAMES, *flow.GUARDS,
)  # fmt: skip
MOST_DEATHS: Final = 1_000


def checked(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options with durations as timedeltas; refuse what cannot be meant."""
    for name in options:
        if name == "run_after":
            raise TypeError(
                "run_after cannot be defined statically with the @task decorator. "
                "Use .using(run_after=...) to set it dynamically."
            )
        if name not in NAMES:
            raise TypeError(_unknown(name))
    said = {name: value for name, value in options.items() if value is not None}
    if "delivery" in said:
        said["delivery"] = _delivery(said["delivery"])
    if "retry" in said and not isinstance(said["retry"], Retry):
        raise InvalidOption(f"retry must be a Retry(…), got {said['retry']!r}.")
    for name in ("timeout", "expires"):
        if name in said:
            said[name] = _length(said[name], name)
    if "max_deaths" in said:
        _check_deaths(said["max_deaths"])
    _check_series(said)
    redaction.check(said)
    _check_lock(said)
    flow.check(said)
    if said.get("delivery") == AT_MOST_ONCE and "retry" in said:
        raise InvalidOption(
            "delivery='at_most_once' promises that the function is never started twice, so it "
            "cannot have a retry: take one of them away."
        )
    return said


def refuse_unnamed_places(said: Mapping[str, Any], function: Callable[..., Any]) -> None:
    """Refuse a name that asks for an argument which the function does not have."""
    flow.refuse_unnamed_places(said, function)
    redaction.refuse_unnamed(said, function)
    if "key" in said:
        template.refuse_unnamed(said["key"], function, "key")
    if "lock" not in said:
        return
    known = inspect.signature(function).parameters
    for _, place, _, _ in string.Formatter().parse(said["lock"]):
        if place is not None and re.split(r"[.\[]", place)[0] not in known:
            raise InvalidOption(
                f"lock={said['lock']!r} asks for {place!r}, which {function.__qualname__} does not "
                f"take. Its arguments: {', '.join(known)}."
            )


def _check_series(said: Mapping[str, Any]) -> None:
    if "key" in said:
        template.checked(said["key"], "key")
    perpetual = said.get("perpetual")
    if perpetual is None:
        return
    if not isinstance(perpetual, Perpetual):
        raise InvalidOption(
            f"perpetual is said by a decorator, got {shortened(perpetual)}: write "
            "@perpetual(every='30s') above @task."
        )
    if perpetual.automatic and "{" in said.get("key", ""):
        raise InvalidOption(
            f"perpetual(automatic=True) begins by itself, so nobody gives arguments for "
            f"key={said['key']!r}: name a key without places."
        )


def _check_lock(said: Mapping[str, Any]) -> None:
    name, if_held = said.get("lock"), said.get("if_held")
    if name is None and if_held is not None:
        raise InvalidOption("if_held says what to do about a lock: say which, by lock='…'.")
    if name is not None and (not isinstance(name, str) or not 1 <= len(name) <= LONGEST_LOCK):
        raise InvalidOption(
            f"lock must be a name of 1 to {LONGEST_LOCK} characters such as 'digest:{{user_id}}', "
            f"got {shortened(name)}."
        )
    if if_held is not None and if_held not in IF_HELD:
        raise InvalidOption(f"if_held must be one of {', '.join(IF_HELD)}, got {if_held!r}.")
    if if_held == WAIT and said.get("delivery") == AT_MOST_ONCE:
        raise InvalidOption(
            "delivery='at_most_once' records the start before the lock is asked for, so its job "
            "cannot go back and wait: say if_held='skip' or 'fail'."
        )


def _unknown(name: str) -> str:
    near = difflib.get_close_matches(name, NAMES, n=1)
    meant = f"Did you mean {near[0]!r}?" if near else f"There are: {', '.join(NAMES)}."
    return f"A task has no option {name!r}. {meant}"


def _delivery(value: Any) -> str:
    if value in DELIVERIES:
        return str(value)
    near = difflib.get_close_matches(str(value), DELIVERIES, n=1, cutoff=0.4)
    meant = f" Did you mean {near[0]!r}?" if near else ""
    raise InvalidOption(f"delivery must be one of {', '.join(DELIVERIES)}, got {value!r}.{meant}")


def _length(value: Any, name: str) -> timedelta:
    length = clock.duration(value, name)
    if not length:
        raise InvalidOption(f"{name} must be longer than nothing, got {value!r}.")
    return length


def _check_deaths(value: Any) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= MOST_DEATHS:
        raise InvalidOption(f"max_deaths must be from 0 to {MOST_DEATHS}, got {value!r}.")
