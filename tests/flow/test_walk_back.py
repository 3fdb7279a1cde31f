"""A walk goes back to what a look finds below its way: much may lie there."""

from __future__ import annotations

import pytest
from django.db.models import F

from django_once.models import Job
from django_once.models.job.claim import Walk
from tests.jobs import DATABASE, a_worker, store, store_many

pytestmark = [pytest.mark.engine, pytest.mark.django_db(transaction=True)]


def test_a_bulk_that_commits_late_is_taken_in_one_go_and_not_a_look_at_a_time():
    walk = Walk(DATABASE, a_worker())
    store_many(3)
    assert len(walk.claim(2)) == 2
    late = store_many(60)
    Job.objects.filter(pk__in=late).update(position=F("position") - 10**9)
    for _ in range(40):
        store()
    walk._look_at = 0.0

    taken = [attempt.id for _ in range(6) for attempt in walk.claim(10)]

    assert set(taken) == set(late)
