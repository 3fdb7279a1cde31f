"""What the shop's tables tell."""

from __future__ import annotations

from dataclasses import dataclass

from django_once import Retry
from django_once.channels import Channel, TriggerChannel
from tests.channels.shop.models import Author, Child, Everything, Line, Stock


@dataclass
class AuthorChannel(TriggerChannel):
    """Of authors, handled exactly once."""

    model = Author
    lock_notifications = True
    retry = Retry(max_attempts=3, base="1s", jitter=0)


@dataclass
class EverythingChannel(TriggerChannel):
    """Of every kind of column; kept for a day."""

    model = "shop.Everything"
    lock_notifications = True
    retention = "1d"


@dataclass
class ChildChannel(TriggerChannel):
    """Of a table whose key is another's."""

    model = Child
    lock_notifications = True


@dataclass
class LineChannel(TriggerChannel):
    """Of a table whose key is two columns."""

    model = Line
    lock_notifications = True


@dataclass
class StockChannel(TriggerChannel):
    """In the order of each place, and for two groups."""

    model = Stock
    lock_notifications = True
    delivery = "at_least_once"
    order_by = "place"
    groups = ("default", "audit")


@dataclass
class OrderPlaced(Channel):
    """Told by hand."""

    lock_notifications = True
    order_id: int
    note: str = ""


@dataclass
class Rang(Channel):
    """Broadcast."""

    number: int


assert Everything
