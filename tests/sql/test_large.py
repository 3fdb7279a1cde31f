"""Large jobs, and many of them: what goes in comes out, however the statements are cut."""

from __future__ import annotations

import pytest
from django.db import transaction

from django_once import task
from django_once.models import Job
from tests.jobs import a_worker, claim

pytestmark = [pytest.mark.engine, pytest.mark.django_db(transaction=True)]

QUOTED = "\"\\'" * 3_000


@task
def echo(text):
    return text


def test_a_job_may_hold_a_million_bytes():
    text = "ü" * 499_990

    result = echo.enqueue(text)

    (attempt,) = claim(a_worker())
    assert attempt.args == f'["{text}"]'
    assert echo.get_result(result.id).args == [text]


def test_many_jobs_are_more_than_a_packet_of_the_database_holds():
    texts = [f"{number}{QUOTED * 20}" for number in range(100)]

    enqueued = echo.enqueue_many([((text,), {}) for text in texts])

    assert len(enqueued) == 100
    attempts = claim(a_worker(), 200)
    assert [str(one.id) for one in attempts] == enqueued.ids
    assert echo.get_result(enqueued.ids[99]).args == [texts[99]]


def test_jobs_that_need_several_statements_are_stored_together_or_not_at_all():
    texts = [f"{number}{QUOTED * 20}" for number in range(50)]

    with pytest.raises(RuntimeError), transaction.atomic():
        echo.enqueue_many([((text,), {}) for text in texts])
        raise RuntimeError

    assert not Job.objects.exists()
