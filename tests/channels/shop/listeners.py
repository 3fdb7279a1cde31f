"""Who hears the shop."""

from __future__ import annotations

import os
from typing import Any

from django.db import connection

from django_once.channels import (
    listener,
    post_delete_listener,
    post_insert_listener,
    post_save_listener,
    post_update_listener,
    pre_delete_listener,
)
from tests.channels.shop.channels import (
    AuthorChannel,
    ChildChannel,
    EverythingChannel,
    LineChannel,
    OrderPlaced,
    Rang,
    StockChannel,
)
from tests.channels.shop.models import Heard, Post

# What listeners were handed, for tests that look at it.
handed: list[dict[str, Any]] = []
failing: list[Exception] = []


def keep(**told: Any) -> None:
    handed.append(told)


@post_insert_listener(AuthorChannel)
def welcome(old: Any, new: Any, context: dict[str, Any]) -> None:
    Post.objects.create(author_id=new.pk, content=context.get("content", "Welcome!"))
    if failing:
        raise failing[0]


@post_update_listener(AuthorChannel)
def renamed(old: Any, new: Any) -> None:
    Heard.objects.create(what="updated", about=f"{old.name} -> {new.name}")


@pre_delete_listener(AuthorChannel)
def leaving(old: Any, new: Any) -> None:
    Heard.objects.create(what="leaving", about=old.name)


@post_delete_listener(AuthorChannel)
def left(old: Any, new: Any) -> None:
    Heard.objects.create(what="left", about=old.name)


@post_save_listener(EverythingChannel)
def saved(old: Any, new: Any) -> None:
    keep(old=old, new=new)


@post_save_listener(ChildChannel)
def child_saved(old: Any, new: Any) -> None:
    keep(old=old, new=new)


@listener(LineChannel)
def line_changed(old: Any, new: Any) -> None:
    keep(old=old, new=new)


@post_save_listener(StockChannel)
def counted(old: Any, new: Any) -> None:
    Heard.objects.create(what="counted", about=f"{new.place}:{new.amount}", by="default")


@post_save_listener(StockChannel, group="audit")
def audited(old: Any, new: Any) -> None:
    Heard.objects.create(what="counted", about=f"{new.place}:{new.amount}", by="audit")


@listener(OrderPlaced)
def confirm(order_id: int, note: str) -> None:
    Heard.objects.create(what="placed", about=f"{order_id}:{note}", by="confirm")


@listener(OrderPlaced)
def count(order_id: int, **rest: Any) -> None:
    Heard.objects.create(what="placed", about=str(order_id), by="count")


# Elsewhere it would be a finding of `check` that nothing carries it.
if connection.vendor == "postgresql":

    @listener(Rang)
    def rang(number: int) -> None:
        Heard.objects.create(what="rang", about=str(number), by=str(os.getpid()))
