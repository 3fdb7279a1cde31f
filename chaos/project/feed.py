"""The web process: brings orders and their jobs in transactions, of which a third roll back.

Started again after it was killed it goes on with the orders that are not there yet. An answer that
was lost is asked for: order and job share their transaction, so the order tells.
"""

from __future__ import annotations

import argparse
import os
import random
import time

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "chaos.project.settings")
django.setup()

from django.conf import settings  # noqa: E402
from django.db import Error, connection, transaction  # noqa: E402

from chaos.project.work import drawn, ledger  # noqa: E402 - Django has to be set up first
from chaos.project.work.models import Order  # noqa: E402
from chaos.project.work.tasks import KINDS, STANDING  # noqa: E402

MOST_AT_ONCE = 6
UNDONE = 1 / 3
STIRRED = 1 / 20


class Undone(Exception):
    """What undoes a transaction on purpose."""


def main() -> None:
    """Bring the orders from FIRST to LAST that are missing, at an even pace."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--first", type=int, required=True)
    parser.add_argument("--last", type=int, required=True)
    parser.add_argument("--until", type=float, required=True, help="by the monotonic clock")
    parser.add_argument("--mixture", required=True)
    wish = parser.parse_args()
    missing = insist(lambda: absent(range(wish.first, wish.last + 1)))
    weights = {name: weight for name, (_, weight) in KINDS.items()}
    orders = [
        drawn.order(
            wish.seed, number, wish.mixture, settings.LEASE, weights, connection.vendor == "sqlite"
        )
        for number in missing
    ]
    dice = random.Random(f"{wish.seed}:{wish.first}:{len(missing)}")
    feed(orders, len(orders) / max(1.0, wish.until - time.monotonic()), dice)


def feed(orders: list[drawn.Order], per_second: float, dice: random.Random) -> None:
    """Bring these orders, none before its time; stir what goes on by itself."""
    for module in STANDING:
        insist(module.begin)
    began, done = time.monotonic(), 0
    while done < len(orders):
        group = orders[done : done + dice.randint(1, MOST_AT_ONCE)]
        time.sleep(max(0.0, began + done / per_second - time.monotonic()))
        if dice.random() < UNDONE / (1 - UNDONE):
            undo(group)
        if dice.random() < STIRRED:
            module = dice.choice(STANDING)
            insist(lambda module=module: module.stir(dice))
        insist(lambda group=group: bring(group))
        done += len(group)


def bring(orders: list[drawn.Order]) -> None:
    """Store those of these orders that are not there, each with its job, in one transaction."""
    missing = set(absent([order.number for order in orders]))
    with transaction.atomic():
        for order in orders:
            if order.number in missing:
                store(order)


def store(order: drawn.Order) -> str:
    """Store an order and its job; return the job's id."""
    task, _ = KINDS[order.kind]
    result = task.using(queue_name=order.queue).enqueue(order.number, order.seconds, order.trips)
    Order.objects.create(number=order.number, kind=order.kind, job=result.id)
    return str(result.id)


def undo(orders: list[drawn.Order]) -> None:
    """Do what `bring` does, and undo it: neither orders nor jobs may be left."""
    jobs = []
    try:
        with transaction.atomic():
            jobs = [store(order) for order in orders]
            raise Undone
    except (Undone, Error):
        ledger.write("undone", jobs=jobs)
    finally:
        if connection.errors_occurred:
            connection.close()


def absent(numbers: range | list[int]) -> list[int]:
    """Return those of these numbers that no order has."""
    there = set(
        Order.objects.filter(number__gte=min(numbers), number__lte=max(numbers)).values_list(
            "number", flat=True
        )
    )
    return [number for number in numbers if number not in there]


def insist(work):
    """Return what this returns, however often the database does not answer."""
    while True:
        try:
            return work()
        except Error:
            connection.close()
            time.sleep(0.1)


if __name__ == "__main__":
    main()
