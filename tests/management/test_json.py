"""Every `--json` is as its documented schema says."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from django.core.management import call_command

from django_once.errors import LockLost
from django_once.locks import lock
from django_once.management.verbs import VERBS
from django_once.management.verbs.schema import NAMES, schema
from django_once.models import Schedule
from django_once.models.job.settle import settle
from tests.docs.pages import DOCS, quoted
from tests.jobs import a_worker, claim_one, failure, store
from tests.management.schemas import violations
from tests.management.shapes import one_of_each
from tests.management.shell import once
from tests.schedules.rows import fire_all

pytestmark = [
    pytest.mark.engine,
    pytest.mark.django_db(transaction=True, databases=["default", "other"]),
]


def said(name: str, *words: object) -> Any:
    """Return what a command prints, which must be as the schema says."""
    answer = once(*words, "--json")
    assert answer.code in (0, 1), answer.err
    assert violations(answer.json, schema(name)) == []
    return answer.json


def test_what_looks_at_jobs_and_workers_prints_what_its_schema_says():
    jobs = one_of_each()
    a_worker("bob", lease=timedelta(seconds=-90))

    assert len(said("jobs", "jobs")["jobs"]) == 6
    said("jobs", "jobs", "--args", "--limit", 1)
    for job in jobs.values():
        said("show", "show", job)
        said("show", "show", job, "--args", "-v", 2)
        said("explain", "explain", job)
    assert len(said("workers", "workers")["workers"]) == 5
    said("status", "status")
    said("doctor", "doctor")


def test_what_looks_at_schedules_prints_what_its_schema_says():
    Schedule.objects.create(name="hourly", task="tests.app.tasks.add", cron="0 * * * *",
                            kwargs='{"a": 1}')  # fmt: skip
    Schedule.objects.create(name="broken", task="tests.app.tasks.add", cron="nonsense")
    fire_all()

    assert {one["name"] for one in said("schedules", "schedules")["schedules"]} >= {"hourly"}
    said("schedules-preview", "schedules", "preview", "hourly")
    said("schedules-preview", "schedules", "preview", "--every", "30s")
    said("schedules-backfill", "schedules", "backfill", "hourly", "--from", "3h", "--dry-run")
    said("schedules-run", "schedules", "run", "hourly")
    said("verify", "verify")


def test_what_looks_at_locks_and_pauses_prints_what_its_schema_says():
    with lock("import:7", lease="1m"):
        pass
    with pytest.raises(LockLost), lock("export:7", lease="1m"):
        assert said("locks", "locks")["locks"]
        said("locks", "locks", "--all")
        said("locks-history", "locks", "--history")
        said("locks-release", "locks", "release", "export:7", "--reason", "why", "--yes")
    said("pause-act", "pause", "queue", "mail", "--reason", "why", "--until", "1h")
    assert said("pause", "pause")["pauses"]
    said("resume", "resume", "queue", "mail")
    said("strike-act", "strike", "tests.app.tasks.add", "a=1", "--reason", "why")
    assert said("strike", "strike")["strikes"]
    said("restore", "restore", "tests.app.tasks.add", "a=1")
    said("channels", "channels")


def test_what_changes_jobs_prints_what_its_schema_says():
    job = store()
    settle("default", [failure(claim_one())])

    said("dry-run", "retry", "--state", "failed", "--dry-run")
    said("retry", "retry", job, "--yes")
    said("dry-run", "cancel", job, "--dry-run")
    said("cancel", "cancel", job, "--yes")
    said("prune", "prune", "--dry-run")
    said("prune", "prune", "--older-than", 0, "--yes")


def test_every_verb_with_json_has_a_schema_and_every_schema_is_documented():
    import argparse

    with_json = set()
    for name, verb in VERBS.items():
        parser = argparse.ArgumentParser()
        verb.add_arguments(parser)
        if "--json" in {flag for one in parser._actions for flag in one.option_strings}:
            with_json.add(name)

    assert with_json <= set(NAMES)
    assert set(NAMES) <= set(quoted((DOCS / "reference" / "json.md").read_text()))


def test_a_schema_is_printed_and_names_its_dialect():
    assert once("schema", "jobs").json == schema("jobs")
    assert set(once("schema").json) == set(NAMES)
    for name in NAMES:
        assert schema(name)["$schema"] == "https://json-schema.org/draft/2020-12/schema"
        assert re.fullmatch(r"urn:django-once:schema:[a-z-]+", schema(name)["$id"])


def test_the_validator_refuses_what_is_otherwise():
    shape = schema("workers")

    assert violations({"workers": []}, shape) == []
    assert violations({"workers": None}, shape)
    assert violations({}, shape) == ["$ has no workers"]
    assert violations({"workers": [], "more": 1}, shape) == ["$.more is in no schema"]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("jobs", "--watch", "0"), "--watch takes 0.1 to 3600 seconds, got 0."),
        (("workers", "--watch", "-1"), "--watch takes 0.1 to 3600 seconds"),
        (("schedules", "run", "x", "--watch"), "--watch shows again and again"),
        (("locks", "release", "x", "--watch"), "leave it out"),
        (("pause", "queue", "mail", "--watch"), "leave it out"),
    ],
)
def test_watching_what_cannot_be_watched_is_refused(words, says):
    answer = once(*words)

    assert (answer.code, answer.out) == (2, "")
    assert says in answer.err


def test_options_may_be_given_by_name_from_code():
    store()

    call_command("once", "prune", dry_run=True)
