"""Tasks with something to hide."""

from __future__ import annotations

from typing import Any

from django.db import transaction

from django_once import task

CARD = "4111 1111 1111 1111"


@task(redact=["card", "cvc"])
def charge(order: int, card: str, cvc: int = 737) -> Any:
    return {"order": order, "charged": f"card {card}", "card": "another", "cvc": cvc}


@task(redact=("card",))
def decline(order: int, card: str) -> None:
    raise ValueError(f"order {order}: {card!r} was declined")


@task(redact=("rest",))
async def decline_later(*rest: Any, **more: Any) -> None:
    raise ValueError(f"{rest} {more}")


@task(redact=True)
def keep_quiet(*words: str, **more: Any) -> Any:
    return [*words, more]


def first_letter(arguments: dict[str, Any]) -> dict[str, Any]:
    return {"name": f"{arguments['name'][0]}…"}


@task(redact=first_letter)
def greet(name: str, age: int = 0) -> str:
    return f"Good morning, {name}"


def broken(arguments: dict[str, Any]) -> dict[str, Any]:
    raise RuntimeError("no")


@task(redact=broken)
def greet_loudly(name: str) -> None:
    return None


@task(redact="card", delivery="exactly_once")
def decline_once(card: str) -> None:
    raise ValueError(card)


@task(redact="card", delivery="exactly_once")
def tell_after_commit(card: str) -> None:
    def tell() -> None:
        raise ValueError(f"{card} after the commit")

    transaction.on_commit(tell)
