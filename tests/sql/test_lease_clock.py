"""A lease is measured by the database's clock: a host whose own clock is wrong gets the same."""

from __future__ import annotations

import time
from datetime import timedelta

import pytest

from django_once.clock import Now
from django_once.models import Worker
from django_once.models.worker import expire, fresh_holder, register, renew
from tests.jobs import DATABASE

pytestmark = [pytest.mark.engine, pytest.mark.django_db(transaction=True)]

LEASE = timedelta(minutes=1)
WRONG_BY = [pytest.param(-3600, id="behind"), pytest.param(3600, id="ahead")]


def move_the_hosts_clock(monkeypatch, seconds: int) -> None:
    right = time.time_ns  # noqa: TID251 - the clock that is to be wrong
    monkeypatch.setattr(time, "time_ns", lambda: right() + seconds * 10**9)
    monkeypatch.setattr(time, "time", lambda: right() / 10**9 + seconds)


def left_of(worker) -> timedelta:
    row = Worker.objects.using(DATABASE).annotate(now=Now()).get(pk=worker)
    return row.leased_until - row.now


@pytest.mark.parametrize("seconds", WRONG_BY)
def test_a_host_whose_clock_is_wrong_begins_with_a_whole_lease(monkeypatch, seconds):
    move_the_hosts_clock(monkeypatch, seconds)
    holder = fresh_holder("host", "default")

    register(DATABASE, holder, LEASE)

    assert LEASE - timedelta(seconds=30) < left_of(holder.id) <= LEASE


@pytest.mark.parametrize("seconds", WRONG_BY)
def test_a_host_whose_clock_is_wrong_renews_a_whole_lease_and_expires_nobody(monkeypatch, seconds):
    holder = fresh_holder("host", "default")
    register(DATABASE, holder, LEASE)
    move_the_hosts_clock(monkeypatch, seconds)

    assert renew(DATABASE, [holder.id], LEASE) == 1

    assert LEASE - timedelta(seconds=30) < left_of(holder.id) <= LEASE
    assert expire(DATABASE) == []
