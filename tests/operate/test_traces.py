"""Spans of OpenTelemetry: the enqueue's and each attempt's, linked, and without arguments."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from django_once import tracing
from django_once.models import Job
from django_once.testing import run_jobs
from tests.app.tasks import add, add_later, echo, fail, note_once
from tests.management.shell import ROOT
from tests.operate.tasks import CARD, decline

pytestmark = [pytest.mark.engine, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def spans() -> Iterator[Any]:
    """Follow jobs, and return what was told of them in the end."""
    sdk = pytest.importorskip("opentelemetry.sdk.trace", reason="needs opentelemetry-sdk")
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    from django_once.contrib.otel.spans import Spans

    exporter = InMemorySpanExporter()
    provider = sdk.TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    followed = Spans()
    followed._tracer = provider.get_tracer("tests")
    tracing.follow(followed)
    yield lambda: exporter.get_finished_spans()
    tracing.follow(None)


def of(spans: Any, job: Any, kind: str) -> list[Any]:
    return [one for one in spans() if one.kind.name == kind
            and one.attributes["messaging.message.id"] == job.id]  # fmt: skip


@pytest.mark.parametrize(("task", "args"), [(add, (1,)), (add_later, (1, 2)), (note_once, ("a",))])
def test_an_attempt_is_linked_to_its_enqueue(spans, task, args):
    job = task.enqueue(*args)
    run_jobs()

    (enqueued,), (attempted,) = of(spans, job, "PRODUCER"), of(spans, job, "CONSUMER")

    assert [link.context.span_id for link in attempted.links] == [enqueued.context.span_id]
    assert attempted.links[0].context.trace_id == enqueued.context.trace_id
    assert attempted.context.trace_id != enqueued.context.trace_id
    assert (enqueued.name, attempted.name) == ("enqueue default", "attempt default")
    told = dict(attempted.attributes)
    assert told["messaging.system"] == "django_once"
    assert told["messaging.operation.type"] == "process"
    assert told["django_once.task"] == task.module_path
    assert (told["django_once.attempt"], told["django_once.outcome"]) == (1, "successful")


def test_each_attempt_has_a_span_and_each_of_many_jobs_is_linked(spans):
    jobs = echo.enqueue_many([((n,), {}) for n in range(3)])
    run_jobs()

    attempted = [one for one in spans() if one.kind.name == "CONSUMER"]

    assert {one.attributes["messaging.message.id"] for one in attempted} == set(jobs.ids)
    assert all(len(one.links) == 1 for one in attempted)


def test_a_job_that_a_body_enqueues_belongs_to_its_attempt(spans):
    from tests.app.tasks import enqueue_another

    job = enqueue_another.enqueue(1)
    run_jobs()

    (attempted,) = of(spans, job, "CONSUMER")
    inner = [one for one in spans() if one.kind.name == "PRODUCER"
             and one.attributes["messaging.message.id"] != job.id]  # fmt: skip
    assert [one.parent.span_id for one in inner] == [attempted.context.span_id]


def test_a_failure_is_told_by_its_class_and_nothing_that_is_secret(spans):
    decline.enqueue(7, CARD)
    failed = fail.enqueue("secret words")
    run_jobs()

    (attempted,) = of(spans, failed, "CONSUMER")
    assert attempted.status.status_code.name == "ERROR"
    assert attempted.attributes["error.type"] == "builtins.ValueError"
    whole = "".join(one.to_json() for one in spans())
    assert "secret words" not in whole
    assert "4111" not in whole


def test_without_a_tracer_nothing_is_carried():
    job = add.enqueue(1)

    assert tracing.tracer is None
    assert Job.objects.get(pk=job.id).meta == "{}"


def test_a_job_that_sql_gave_a_strange_meta_runs_all_the_same(spans):
    job = add.enqueue(1)
    Job.objects.filter(pk=job.id).update(meta=json.dumps({"trace": {"traceparent": "nonsense"}}))
    other = add.enqueue(1)
    Job.objects.filter(pk=other.id).update(meta="[]")

    assert run_jobs() == 2
    assert of(spans, job, "CONSUMER")[0].links == ()


@pytest.mark.slow
def test_without_the_library_the_app_says_what_to_install():
    code = (
        "import sys; sys.modules['opentelemetry'] = None\n"
        "from django.conf import settings\n"
        "settings.configure(INSTALLED_APPS=['django_once.contrib.otel'])\n"
        "import django; django.setup()"
    )

    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT / "src", capture_output=True,
                          text=True, check=False)  # fmt: skip

    assert "pip install 'django-once[otel]'" in done.stderr.splitlines()[-1]
