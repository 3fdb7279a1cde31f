"""How far a job is, shown to people who are no operators."""

from __future__ import annotations

from datetime import timedelta
from uuid import uuid4

import pytest
from django.core import signing
from django.template import Context, Template
from django.test import Client

from django_once.dashboard import progress
from django_once.errors import InvalidOption
from django_once.models import Progress
from django_once.models.job.settle import settle
from tests.app import tasks
from tests.jobs import claim_one, failure, store, success

pytestmark = [
    pytest.mark.engine,
    pytest.mark.django_db(transaction=True),
    pytest.mark.urls("tests.dashboard.urls"),
]


def told(job: object) -> dict[str, object]:
    return Client().get(progress.address_of("default", str(job))).json()


def shown(job: object) -> str:
    template = Template("{% load once %}{% progress_bar job %}")
    return template.render(Context({"job": job}))


def test_a_bar_tells_how_far_a_job_is():
    job = store()
    assert told(job)["state"] == "waiting"

    claim_one()
    Progress.objects.create(job=job, done=3, total=12, message="page 3")
    assert told(job) == {"state": "running", "share": 0.25, "done": 3.0, "total": 12.0,
                         "message": "page 3", "ended": False}  # fmt: skip


def test_an_end_is_told_and_nothing_of_what_was_in_it():
    job = store(args='["secret-a"]', kwargs='{"b":"secret-b"}')
    settle("default", [success(claim_one(), '"secret-c"')])
    bad = store()
    settle("default", [failure(claim_one())])

    answer = Client().get(progress.address_of("default", job))

    assert answer.json() == {"state": "successful", "share": 1.0, "done": None, "total": None,
                             "message": "", "ended": True}  # fmt: skip
    assert b"secret" not in answer.content
    assert (told(bad)["state"], told(uuid4())["state"]) == ("failed", "gone")


def test_nobody_can_ask_for_another_job():
    job, other = store(), store()
    address = progress.address_of("default", job)
    signed = progress.signed("default", job)
    foreign = signing.dumps(["default", other.hex], salt="another")

    for guess in (other.hex, str(other), signed[:-2] + "xx", foreign, "x", "a:b:c"):
        assert Client().get(address.replace(signed, guess)).status_code == 404
    assert Client().post(address).status_code == 405


def test_an_address_ends_by_itself(monkeypatch):
    address = progress.address_of("default", store())
    monkeypatch.setattr(progress, "VALID_FOR", timedelta(seconds=-1))

    assert Client().get(address).status_code == 404


def test_what_stays_the_same_is_not_sent_again():
    address = progress.address_of("default", store())
    first = Client().get(address)

    again = Client().get(address, headers={"If-None-Match": first["ETag"]})

    assert (again.status_code, again.content) == (304, b"")
    assert "no-store" in first["Cache-Control"]


def test_the_tag_takes_a_result_a_row_or_an_id():
    result = tasks.add.enqueue(1, b=2)

    for job in (result, result.id):
        assert 'data-state="waiting"' in shown(job)
    assert "<script src=" in shown(result)


def test_a_message_is_text():
    job = store()
    Progress.objects.create(job=job, done=0, total=0, message="<b>hi</b>")

    assert "&lt;b&gt;hi" in shown(job)
    assert told(job)["share"] is None


@pytest.mark.urls("tests.urls")
def test_a_missing_address_is_told_with_what_to_write():
    with pytest.raises(InvalidOption, match=r"django_once\.dashboard\.progress"):
        shown(store())
