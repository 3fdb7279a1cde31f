"""Sentence 6: a lock's fence only grows; only its holder renews or releases."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from uuid import uuid4

import pytest
from django.db import connection, transaction

from django_once.models import Lock
from django_once.models.lock import (
    end_by_force,
    holders_of,
    look,
    release,
    release_of,
    renew,
    take,
    want,
)
from django_once.testing import moved_clock
from tests.jobs import in_threads

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.engine]


def taken(name="export", holder="ann", nonce=None, lease=60.0):
    nonce = nonce or uuid4()
    return nonce, take(connection, name, holder, nonce, lease)


def row(name="export"):
    return Lock.objects.get(pk=name)


def test_the_first_fence_is_one_and_the_lease_is_whole():
    nonce, standing = taken(lease=60.0)

    assert standing.is_held_under(nonce)
    assert (standing.fence, standing.holder) == (1, "ann")
    # SQLite counts days in floating point.
    assert 59.0 < standing.remaining < 60.001


def test_a_held_lock_is_refused_and_its_holder_named():
    taken(holder="ann")

    nonce, standing = taken(holder="bob")

    assert not standing.is_held_under(nonce)
    assert (standing.holder, standing.fence) == ("ann", 1)
    assert row().holder == "ann"


def test_the_fence_survives_a_release_and_never_restarts():
    for fence in range(1, 6):
        nonce, standing = taken()
        assert standing.fence == fence
        assert release(connection, "export", nonce)


def test_a_lapsed_lock_is_taken_over_under_a_higher_fence():
    taken(holder="ann", lease=10.0)

    with moved_clock("11s"):
        nonce, standing = taken(holder="bob")

    assert standing.is_held_under(nonce)
    assert (standing.holder, standing.fence) == ("bob", 2)
    (before,) = holders_of(row())
    assert (before["holder"], before["fence"], before["end"]) == ("ann", 1, "expired")


def test_asked_again_under_the_same_nonce_the_answer_is_the_same_lease():
    nonce, first = taken()

    _, again = taken(nonce=nonce)

    assert again.is_held_under(nonce)
    assert (again.fence, again.acquired_at, again.expires_at) == (
        first.fence, first.acquired_at, first.expires_at,
    )  # fmt: skip


def test_a_nonce_whose_lease_is_over_takes_anew():
    nonce, _ = taken(lease=10.0)

    with moved_clock("11s"):
        _, again = taken(nonce=nonce)

    assert again.is_held_under(nonce)
    assert again.fence == 2


def test_a_renewed_lease_ends_later():
    nonce, before = taken(lease=10.0)

    with moved_clock("5s"):
        assert renew(connection, "export", nonce, 10.0)
        after = look(connection, "export")

    assert 4.0 < (after.expires_at - before.expires_at).total_seconds() < 7.0
    assert after.fence == before.fence


def test_a_lapsed_lock_that_somebody_else_took_is_never_renewed():
    nonce, _ = taken(holder="ann", lease=10.0)

    with moved_clock("11s"):
        taken(holder="bob")

        assert not renew(connection, "export", nonce, 10.0)
        assert not release(connection, "export", nonce)
    assert row().holder == "bob"


def test_only_the_holder_releases():
    nonce, _ = taken(holder="ann")

    assert not release(connection, "export", uuid4())
    assert not release_of(connection, "export", "bob")
    assert release(connection, "export", nonce)
    assert not release(connection, "export", nonce)


def test_a_person_takes_a_lock_away_and_says_why():
    nonce, _ = taken(holder="ann")

    assert end_by_force(connection, "export", "eve@desk", 'it "hangs"')

    assert not renew(connection, "export", nonce, 60.0)
    assert (row().released_by, row().reason) == ("eve@desk", 'it "hangs"')
    (holding,) = holders_of(row())
    assert (holding["end"], holding["by"], holding["reason"]) == (
        "broken", "eve@desk", 'it "hangs"',
    )  # fmt: skip
    assert not end_by_force(connection, "export", "eve@desk", "again")


def test_nobody_waits_for_a_free_lock():
    assert not want(connection, "export")
    nonce, _ = taken(lease=10.0)
    assert want(connection, "export")
    assert row().is_wanted

    release(connection, "export", nonce)
    assert not want(connection, "export")

    taken()
    assert not row().is_wanted


def test_the_last_holders_stay_readable_and_the_row_stays_small():
    for number in range(40):
        nonce, _ = taken(holder=f'pod "{number}" \\ ü')
        release(connection, "export", nonce)

    holders = holders_of(row())
    assert [one["fence"] for one in holders] == list(range(40, 40 - len(holders), -1))
    assert 5 <= len(holders) <= 8
    assert holders[0]["holder"] == 'pod "39" \\ ü'
    assert len(row().history) < 2000


def test_the_longest_names_fit():
    for _ in range(8):
        nonce, standing = taken(name="n" * 255, holder="h" * 255)
        assert standing.is_held_under(nonce)
        release(connection, "n" * 255, nonce)

    assert holders_of(row("n" * 255))[0]["holder"] == "h" * 255


def test_names_differ_by_case_and_by_spaces_at_their_end():
    for name in ("export", "Export", "export "):
        _, standing = taken(name=name)
        assert standing.fence == 1


def test_the_views_show_holders_and_history():
    nonce, _ = taken(name="export", holder="ann")
    release(connection, "export", nonce)
    taken(name="export", holder="bob")
    taken(name="import", holder="cid")
    # The views ask the database's own clock, which no test moves.
    Lock.objects.filter(pk="import").update(expires_at=datetime(2026, 1, 1, tzinfo=UTC))

    with connection.cursor() as cursor:
        cursor.execute("SELECT name, holder, fence FROM once_lock_holders")
        holders = list(cursor.fetchall())
        cursor.execute(
            "SELECT name, holder, fence, ending FROM once_lock_history "
            "ORDER BY acquired_at DESC, fence DESC"
        )
        history = [tuple(one) for one in cursor.fetchall()]

    assert list(map(tuple, holders)) == [("export", "bob", 2)]
    assert sorted(history) == [
        ("export", "ann", 1, "released"),
        ("export", "bob", 2, "held"),
        ("import", "cid", 1, "expired"),
    ]


def test_of_many_who_ask_at_once_one_gets_a_new_lock():
    standings = in_threads(*[lambda: one_taken("new")] * 8)

    assert sum(is_mine for is_mine, _ in standings) == 1
    assert {standing.fence for _, standing in standings} == {1}


def test_of_many_who_ask_at_once_one_gets_a_lapsed_lock():
    taken(name="old", lease=10.0)

    with moved_clock("11s"):
        standings = in_threads(*[lambda: one_taken("old")] * 8)

    assert sum(is_mine for is_mine, _ in standings) == 1
    assert row("old").fence == 2


def one_taken(name):
    nonce = uuid4()
    standing = take(connection, name, "somebody", nonce, 60.0)
    return standing.is_held_under(nonce), standing


def test_a_row_that_sql_inserted_is_free():
    with connection.cursor() as cursor:
        cursor.execute("INSERT INTO once_lock (name, fence) VALUES ('export', 7)")

    nonce, standing = taken()

    assert standing.is_held_under(nonce)
    assert standing.fence == 8
    assert json.loads(row().history) == []


def test_a_rollback_of_the_row_takes_the_lock_with_it():
    with pytest.raises(ZeroDivisionError), transaction.atomic():
        taken()
        raise ZeroDivisionError

    assert look(connection, "export") is None
