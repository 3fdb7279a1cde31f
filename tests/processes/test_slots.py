"""Slots: what was handed over is held until it has ended, at every moment in between."""

from __future__ import annotations

import threading

import pytest

from django_once import task
from django_once.compat import task_backends
from django_once.processes.board import Board
from django_once.processes.slots import Slots
from tests.jobs import claim_one
from tests.processes.workers import until

pytestmark = [pytest.mark.engine, pytest.mark.django_db(transaction=True)]


@task
def sync_body():
    return 1


@task
async def async_body():
    return 1


class Gated:
    """A place on the board at which a body that is about to begin waits for this test."""

    def __init__(self, place):
        self._place = place
        self.is_reached, self.is_open = threading.Event(), threading.Event()

    def begin(self, *said):
        self.is_reached.set()
        assert self.is_open.wait(10)
        self._place.begin(*said)

    def end(self, slot):
        self._place.end(slot)


def never(attempt):
    return False


@pytest.mark.parametrize("body", [sync_body, async_body], ids=["sync", "async"])
def test_slots_are_not_idle_while_a_thread_takes_a_claim_from_their_hands(body):
    body.enqueue()
    place, ended = Gated(Board(1, 1).places[0]), []
    slots = Slots(task_backends["default"], 1, place, ended.append, lambda: True, never, never)

    slots.put([claim_one()])
    assert place.is_reached.wait(10)
    was_idle = slots.is_idle
    place.is_open.set()

    assert not was_idle
    until(lambda: slots.is_idle, 10, "idle slots")
    assert len(ended) == 1


def test_what_is_taken_back_is_held_no_more():
    for _ in range(3):
        sync_body.enqueue()
    place, ended = Gated(Board(1, 1).places[0]), []
    slots = Slots(task_backends["default"], 1, place, ended.append, lambda: True, never, never)
    slots.put([claim_one() for _ in range(3)])
    assert place.is_reached.wait(10)

    assert len(slots.take_back()) == 2
    place.is_open.set()

    until(lambda: slots.is_idle, 10, "idle slots")
    assert len(ended) == 1
