"""What a project asks of its own transactions does not change what becomes of a job."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection, connections, transaction

from django_once import sql
from django_once.models import Job
from django_once.models.job.expire import sweep
from django_once.models.worker import expire
from tests.jobs import (
    DATABASE,
    a_worker,
    claim,
    claim_one,
    failure,
    in_threads,
    row,
    store,
    store_many,
    success,
)
from tests.races.meeting import meet

pytestmark = [
    pytest.mark.engine,
    pytest.mark.races,
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(connection.vendor != "postgresql", reason="These are PostgreSQL's levels."),
]


@pytest.fixture(autouse=True, params=["repeatable read", "serializable"])
def level(request):
    """Let every new connection begin its transactions at this level, as a server may be set."""
    options = connections[DATABASE].settings_dict["OPTIONS"]
    connections[DATABASE].close()
    options["options"] = (
        f"-c default_transaction_isolation={request.param.replace(' ', chr(92) + ' ')}"
    )
    with connection.cursor() as cursor:
        cursor.execute("SHOW default_transaction_isolation")
        assert cursor.fetchone() == (request.param,)
    yield
    del options["options"]
    connections[DATABASE].close()


def test_a_settle_that_comes_second_is_superseded_and_no_error():
    job = store()
    attempt = claim_one()

    def second():
        # Sent once: what is repeated until it passes would pass at every level.
        return sql.on(DATABASE).settle([failure(attempt)])

    first, superseded = meet(lambda: sql.on(DATABASE).settle([success(attempt)]), second)

    assert (first, superseded) == ({job}, set())
    assert row(job).status == Job.SUCCESSFUL


def test_a_sweep_passes_over_what_is_being_settled():
    store()
    attempt = claim_one(a_worker("late", lease=timedelta(seconds=-1)))
    expire(DATABASE)

    _, swept = meet(lambda: sql.on(DATABASE).settle([success(attempt)]), lambda: sweep(DATABASE))

    assert swept == []
    assert row(attempt.id).status == Job.SUCCESSFUL


def test_claims_that_meet_share_the_jobs():
    jobs = store_many(60)
    holders = [a_worker(str(number)) for number in range(4)]

    taken = in_threads(*[lambda one=one: claim(one, 15) for one in holders])

    assert sorted(attempt.id for attempts in taken for attempt in attempts) == sorted(jobs)


def test_an_enqueue_joins_a_transaction_of_that_level():
    with transaction.atomic():
        seen = Job.objects.count()
        job = store()
        attempts = in_threads(lambda: claim(a_worker()))

    assert (seen, attempts) == (0, [[]])
    assert [attempt.id for attempt in claim(a_worker())] == [job]
