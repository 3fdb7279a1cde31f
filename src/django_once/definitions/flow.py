"""What may be said of a task about how its jobs flow: limits, shares, uniqueness."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from django_once import clock
from django_once.definitions import template
from django_once.definitions.breaker import Breaker, RetryBudget
from django_once.definitions.limit import Limit
from django_once.definitions.unique import Unique
from django_once.errors import InvalidOption, shortened

# What a job's row says of its task for its way in, and what is asked of its ends.
NAMES: Final = ("limit", "unique", "debounce", "cooldown", "fair_key", "weight")
GUARDS: Final = ("breaker", "retry_budget")
MOST_WEIGHT: Final = 1_000


def check(said: dict[str, Any]) -> None:
    """Refuse what cannot be meant; what was said shortly stands written out afterwards."""
    limit = said.get("limit")
    if limit is not None and not isinstance(limit, Limit):
        raise InvalidOption(
            f"limit must be a Limit(…) such as Limit('tenant:{{tenant_id}}', concurrency=2), got "
            f"{shortened(limit)}."
        )
    if "unique" in said:
        said["unique"] = _unique(said["unique"])
        if said["unique"] is None:
            del said["unique"]
    for name in ("debounce", "cooldown"):
        if name in said:
            said[name] = clock.duration(said[name], name)
            if not said[name]:
                raise InvalidOption(f"{name} must be longer than nothing.")
    _check_share(said)
    _check_guards(said)
    _refuse_contradictions(said)


def refuse_unnamed_places(said: Mapping[str, Any], function: Callable[..., Any]) -> None:
    """Refuse a name that asks for an argument which the function does not have."""
    if "limit" in said:
        template.refuse_unnamed(said["limit"].key, function, "The key of a Limit")
    if "unique" in said and said["unique"].key is not None:
        template.refuse_unnamed(said["unique"].key, function, "The key of a Unique")
    if "fair_key" in said:
        template.refuse_unnamed(said["fair_key"], function, "fair_key")


def _unique(value: Any) -> Unique | None:
    match value:
        case Unique():
            return value
        case True:
            return Unique()
        case False:
            return None
        case str():
            return Unique(value)
    raise InvalidOption(
        f"unique must be True, a name such as 'charge:{{order_id}}' or a Unique(…), got "
        f"{shortened(value)}."
    )


def _check_share(said: Mapping[str, Any]) -> None:
    if "fair_key" in said:
        template.checked(said["fair_key"], "fair_key")
    if "weight" not in said:
        return
    weight = said["weight"]
    if "fair_key" not in said:
        raise InvalidOption("weight says how large a share is: say whose, by fair_key='…'.")
    for one in weight.values() if isinstance(weight, Mapping) else [weight]:
        if not isinstance(one, int | float) or isinstance(one, bool) or not 0 < one <= MOST_WEIGHT:
            raise InvalidOption(
                f"weight must be above 0 and at most {MOST_WEIGHT:,}, or such a number for each "
                f"key, got {shortened(weight)}."
            )


def _check_guards(said: dict[str, Any]) -> None:
    if "breaker" in said and not isinstance(said["breaker"], Breaker):
        raise InvalidOption(
            "breaker must be a Breaker(…) such as Breaker(failures=5, within='1m', reopen='30s'), "
            f"got {shortened(said['breaker'])}."
        )
    budget = said.get("retry_budget")
    if isinstance(budget, int | float) and not isinstance(budget, bool):
        budget = said["retry_budget"] = RetryBudget(budget)
    if budget is not None and not isinstance(budget, RetryBudget):
        raise InvalidOption(
            "retry_budget must be the share of attempts that may be retries, such as 0.2, or a "
            f"RetryBudget(…), got {shortened(budget)}."
        )
    if budget is not None and said.get("delivery") == "at_most_once":
        raise InvalidOption(
            "delivery='at_most_once' has no retries, so there is none to take from a retry_budget: "
            "take one of them away."
        )


def _refuse_contradictions(said: Mapping[str, Any]) -> None:
    unique = said.get("unique")
    for name in ("debounce", "cooldown"):
        if name in said and unique is not None and unique != Unique(unique.key):
            raise InvalidOption(
                f"{name} says itself until when a job is unique, and what becomes of another: of "
                "unique say the name alone."
            )
    if "debounce" in said and "cooldown" in said:
        raise InvalidOption(
            "debounce waits for the last of many, cooldown runs the first: take one of them away."
        )
    makes_unique = [name for name in ("unique", "debounce", "cooldown") if name in said]
    if makes_unique and ("key" in said or "perpetual" in said):
        raise InvalidOption(
            f"Of one key there is one job already, so {makes_unique[0]} has nothing to add: take "
            "one of them away."
        )
