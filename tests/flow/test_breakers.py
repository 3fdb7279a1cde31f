"""Breakers: a task that fails is let rest, tried with one job, and goes on when that succeeds."""

from __future__ import annotations

from datetime import timedelta

import pytest

from django_once import Breaker
from django_once.errors import InvalidOption
from django_once.models import Job, Tally
from django_once.models.job.cancel import cancel
from django_once.models.job.ready import promote
from django_once.models.job.settle import settle
from django_once.models.stops import let_go_unstopped, look_after_tallies
from django_once.models.tally import breaker
from django_once.processes import ends, stops
from django_once.testing import _backend, moved_clock, run_jobs
from tests.flow import tasks
from tests.flow.tasks import call_partner, half_fails
from tests.jobs import DATABASE, a_worker, claim, in_threads, row

pytestmark = [pytest.mark.engine, pytest.mark.django_db(transaction=True)]


@pytest.fixture(autouse=True)
def partner():
    """The partner is down until it is cleared."""
    tasks.ledger_of_calls.clear()
    tasks.partner_is_down[:] = [True]
    yield tasks.partner_is_down
    tasks.partner_is_down.clear()


def opened(jobs: int = 10) -> list[str]:
    """Let the breaker of `call_partner` open over so many jobs; return their ids."""
    ids = [call_partner.enqueue(number).id for number in range(jobs)]
    run_jobs()
    return ids


def test_it_opens_after_so_many_failures_and_the_others_wait():
    opened()

    assert tasks.ledger_of_calls == [0, 1, 2]
    assert Job.objects.filter(blocked_by="breaker").count() == 6
    tally = Tally.objects.get()
    assert timedelta(0) <= row(tally.trial).due_at - tally.reopens_at < timedelta(seconds=5)
    assert Job.objects.filter(attempt=0, history="[]").count() == 7


def test_one_trial_is_let_through_and_its_success_lets_all_go_on(partner):
    opened()
    partner.clear()

    with moved_clock("31s"):
        promote(DATABASE)
        assert run_jobs() == 10

    assert Job.objects.filter(status="SUCCESSFUL").count() == 10
    assert len(tasks.ledger_of_calls) == 13
    assert Tally.objects.get().opened_at is None


def test_a_trial_that_fails_keeps_it_open_and_is_the_only_one_that_ran():
    opened()

    with moved_clock("31s") as clock:
        run_jobs()
        assert len(tasks.ledger_of_calls) == 4
        clock.advance("25s")
        run_jobs()
        assert len(tasks.ledger_of_calls) == 4
        clock.advance("10s")
        run_jobs()
        assert len(tasks.ledger_of_calls) == 5


def test_of_many_who_are_claimed_at_once_one_is_the_trial():
    opened()
    Job.objects.filter(blocked_by="breaker").update(blocked_by="")
    with moved_clock("31s"):
        promote(DATABASE)
        attempts = claim(a_worker())
        backend = _backend("default")

        found = in_threads(*[lambda one=one: stops.judged(backend, [one]) for one in attempts])

        assert sum(len(free) for free, _ in found) == 1
        ended = [one.outcome for _, stopped in found for one in stopped]
        settle(DATABASE, ended)
        (free,) = [free for free, _ in found if free]
        settle(DATABASE, [ends.given_back(free[0]).outcome])


def test_a_trial_that_was_cancelled_is_followed_by_another(partner):
    opened()
    cancel(DATABASE, [Tally.objects.get().trial])
    partner.clear()

    with moved_clock("31s"):
        assert look_after_tallies(DATABASE) == 1
        run_jobs()

    assert Job.objects.filter(status="SUCCESSFUL").count() == 9


def test_failures_that_are_long_ago_do_not_count():
    for number in range(6):
        with moved_clock(number * 40):
            call_partner.enqueue(number)
            run_jobs(max_jobs=1)

    assert Tally.objects.get().opened_at is None


def test_a_share_of_failures_opens_only_where_enough_failed():
    for fails in (False, False, False, True, True):
        half_fails.enqueue(fails)
    assert run_jobs() == 5
    assert Tally.objects.get(kind="breaker").opened_at is None

    half_fails.enqueue(True)
    run_jobs()

    assert Tally.objects.get(kind="breaker").opened_at is not None


def test_a_person_closes_it_and_all_go_on(partner):
    opened()
    partner.clear()

    assert breaker.close(DATABASE, "default", call_partner.module_path)
    assert not breaker.close(DATABASE, "default", call_partner.module_path)

    assert Job.objects.filter(blocked_by="breaker").count() == 0
    with moved_clock("31s"):
        assert run_jobs() == 10


def test_a_worker_that_gives_back_after_the_close_leaves_nothing_behind():
    opened()
    call_partner.enqueue(99)
    (attempt,) = claim(a_worker())
    _, stopped = stops.judged(_backend("default"), [attempt])
    breaker.close(DATABASE, "default", call_partner.module_path)
    settle(DATABASE, [one.outcome for one in stopped])

    assert let_go_unstopped(DATABASE) == 1


def test_an_explanation_says_since_when_and_until_when_and_who_is_the_trial():
    ids = opened()
    trial = str(Tally.objects.get().trial)

    waits = next(one for one in ids if row(one).blocked_by == "breaker")
    said = call_partner.get_backend().get_result(waits).explain()
    assert "is open since" in said.says
    assert said.findings[1].evidence["trial"] == trial
    of_trial = call_partner.get_backend().get_result(trial).explain()
    assert "it is the trial of its task's open breaker" in str(of_trial.findings)


def test_other_tasks_are_not_held_up():
    opened()
    half_fails.enqueue(False)

    assert run_jobs() == 1


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        ({"failures": 0}, "failures of a Breaker must be a whole number"),
        ({"within": 0}, "must be longer than nothing"),
        ({"reopen": "soon"}, "must be a timedelta"),
        ({"share": 1.5}, "must be above 0 and at most 1"),
        ({"share": True}, "must be above 0 and at most 1"),
    ],
)
def test_a_breaker_that_cannot_be_meant_is_refused(said, sentence):
    with pytest.raises(InvalidOption, match=sentence):
        Breaker(**said)
