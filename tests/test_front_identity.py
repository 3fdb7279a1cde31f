"""Ids and nonces that are drawn before anything is sent."""

from __future__ import annotations

import os

from django_once import clock, identity


def test_an_id_is_a_uuid_of_version_seven():
    drawn = identity.job_id()

    assert (drawn.version, drawn.variant) == (7, "specified in RFC 4122")
    assert abs((drawn.int >> 80) / 1000 - clock.host_now().timestamp()) < 60


def test_each_id_is_larger_than_all_before():
    drawn = [identity.job_id() for _ in range(5_000)]

    assert drawn == sorted(set(drawn))
    assert [str(id) for id in drawn] == sorted(str(id) for id in drawn)


def test_ids_grow_on_while_the_hosts_clock_goes_back(monkeypatch):
    later = identity.job_id()

    an_hour_ago = clock.wall_microseconds() - 3_600_000_000
    monkeypatch.setattr(clock, "wall_microseconds", lambda: an_hour_ago)
    drawn = [identity.job_id() for _ in range(10)]

    assert [later, *drawn] == sorted({later, *drawn})


def test_places_in_the_ready_index_grow_too():
    drawn = [identity.position() for _ in range(5_000)]

    assert drawn == sorted(set(drawn))


def test_nonces_say_nothing_and_never_repeat():
    drawn = {identity.nonce() for _ in range(1_000)}

    assert len(drawn) == 1_000
    assert {nonce.version for nonce in drawn} == {4}


def test_a_forked_child_draws_ids_of_its_own():
    identity.job_id()
    read, write = os.pipe()

    child = os.fork()
    if child == 0:
        os.write(write, b"".join(identity.job_id().bytes for _ in range(100)))
        os._exit(0)
    os.waitpid(child, 0)
    from_the_child = os.read(read, 1_600)
    own = {identity.job_id().bytes for _ in range(100)}
    for end in (read, write):
        os.close(end)

    theirs = {from_the_child[place : place + 16] for place in range(0, 1_600, 16)}
    assert len(theirs) == 100
    assert not own & theirs
