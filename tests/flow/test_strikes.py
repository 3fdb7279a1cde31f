"""Strikes: what an operator has struck does not start, and goes on when it is restored."""

from __future__ import annotations

import pytest
from asgiref.sync import async_to_sync

from django_once.errors import InvalidOption
from django_once.models import Job, Strike
from django_once.models.job.explain import explain
from django_once.models.job.ready import promote
from django_once.models.job.settle import settle
from django_once.models.stops import let_go_unstopped
from django_once.processes import ends, stops
from django_once.strikes import arestore, astrike, astrikes, restore, strike, strikes
from django_once.testing import _backend, run_jobs
from tests.app.tasks import add, echo
from tests.flow.tasks import charge, of_tenant
from tests.jobs import DATABASE, a_worker, claim, row

pytestmark = [pytest.mark.engine, pytest.mark.django_db(transaction=True)]


def waiting():
    return set(Job.objects.filter(blocked_by="struck").values_list("status", flat=True))


def test_jobs_with_a_struck_argument_wait_and_their_neighbours_run():
    struck = of_tenant.enqueue(7)
    by_name = of_tenant.enqueue(tenant=7, number=2)
    of_tenant.enqueue(8)
    echo.enqueue("other")

    strike(of_tenant, {"tenant": 7}, reason="its card is stolen", by="ann")

    assert run_jobs() == 2
    for job in (struck, by_name):
        stored = row(job.id)
        assert (stored.status, stored.blocked_by, stored.position) == ("READY", "struck", None)
        assert (stored.attempt, stored.history, stored.started_at) == (0, "[]", None)


def test_what_was_struck_runs_after_the_restore_in_its_order():
    ids = [add.enqueue(number).id for number in range(5)]
    strike(add)
    assert run_jobs() == 0

    assert restore(add)

    assert [str(one.id) for one in claim(a_worker())] == ids
    assert not restore(add)


def test_a_restore_lets_go_what_its_own_strike_has_put_aside():
    for tenant in (1, 2):
        of_tenant.enqueue(tenant)
        strike(of_tenant, {"tenant": tenant})
    assert run_jobs() == 0

    restore(of_tenant, {"tenant": 2})

    assert run_jobs() == 1
    assert Job.objects.get(blocked_by="struck").args == "[1]"


def test_struck_jobs_can_end_as_cancelled_instead():
    job = of_tenant.enqueue(7)
    strike(of_tenant, {"tenant": 7}, cancel=True, reason="never", by="ann")

    run_jobs()

    stored = row(job.id)
    assert (stored.status, stored.reason) == ("FAILED", "cancelled")
    assert "struck by ann: never" in stored.history
    assert stored.started_at is None


def test_a_number_and_its_text_are_one_and_a_truth_is_itself():
    charge.enqueue("7")
    charge.enqueue(True)
    strike(charge, {"order": 7})
    strike(charge, {"order": 1})

    assert run_jobs() == 1

    assert Job.objects.get(blocked_by="struck").args == '["7"]'


def test_a_default_is_an_argument_too():
    of_tenant.enqueue(1)
    of_tenant.enqueue(1, number=3)
    strike(of_tenant, {"number": 0})

    assert run_jobs() == 1


def test_a_worker_that_gives_back_after_the_restore_leaves_nothing_behind():
    add.enqueue(1)
    strike(add)
    (attempt,) = claim(a_worker())
    _, stopped = stops.judged(_backend("default"), [attempt])
    restore(add)

    settle(DATABASE, [one.outcome for one in stopped])

    assert waiting() == {"READY"}
    assert let_go_unstopped(DATABASE) == 1
    assert run_jobs() == 1


def test_a_job_whose_arguments_do_not_fit_is_struck_with_its_whole_task_only():
    add.enqueue(1)
    Job.objects.update(args='["too", "many", "arguments", "for", "it"]')
    strike(add, {"a": "too"})
    (attempt,) = claim(a_worker())

    free, _ = stops.judged(_backend("default"), [attempt])
    assert [one.id for one in free] == [attempt.id]
    strike(add)
    free, stopped = stops.judged(_backend("default"), [attempt])

    assert (free, stopped[0].outcome.blocked_by) == ([], "struck")
    settle(DATABASE, [ends.given_back(attempt).outcome])


def test_an_explanation_names_who_struck_what_and_why():
    job, other = of_tenant.enqueue(7), of_tenant.enqueue(8)
    promote(DATABASE)
    strike(of_tenant, {"tenant": 7}, reason="stolen", by="ann")

    before = job.explain()
    assert 'with {"tenant": 7} was struck by ann: stolen' in before.says
    assert all(one.holds for one in other.explain().findings if one.name == "unstruck")
    run_jobs()
    after = job.explain()

    assert after.says == before.says
    assert after.findings[1].evidence["arguments"] == {"tenant": 7}
    # Whoever has not the code of the task cannot say whether it has these arguments.
    unknown = of_tenant.enqueue(9)
    promote(DATABASE)
    assert "is seen by the worker" in explain(DATABASE, row(unknown.id).pk).says


def test_strikes_are_listed_and_said_again():
    strike(add, {"a": 1}, reason="one", by="ann")
    strike(add, {"a": 1}, reason="two", by="bob")
    strike(add)

    found = {(one.arguments, one.reason, one.struck_by) for one in strikes()}

    assert found == {("{}", "", ""), ('{"a": 1}', "two", "bob")}
    assert Strike.objects.count() == 2


def test_an_argument_that_nobody_takes_is_refused_with_a_sentence():
    with pytest.raises(InvalidOption, match=r"takes no argument 'tenant_id', so no job has it: a"):
        strike(add, {"tenant_id": 7})


def test_all_of_it_can_be_said_from_async_code():
    async def there_and_back():
        await astrike(add, {"a": 1})
        listed = await astrikes()
        return len(listed), await arestore(add, {"a": 1})

    assert async_to_sync(there_and_back)() == (1, True)
