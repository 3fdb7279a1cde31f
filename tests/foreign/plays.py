"""One play for each backend: a schedule fires, its delivery is made eight times, all are run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import connections

from django_once.compat import task_backends
from django_once.models import Schedule, TaskExecution
from django_once.permits import PERMIT
from tests.app.models import Note
from tests.foreign import tasks
from tests.processes.workers import ROOT, names_of_databases, until
from tests.schedules.rows import a_schedule, fire_all

WORKERS = 8
LONGEST = 0.1


@dataclass(frozen=True)
class Delivery:
    """For how long a worker of theirs was busy with a delivery, and what came of it."""

    seconds: float
    value: Any


def played(place: Path) -> int:
    """Play each backend that can be had, print the figures, and return the exit code."""
    plays: dict[str, Callable[[Path], list[Delivery]]] = {
        "django-tasks-db": by_table, "Immediate": by_hand(tasks.bill_at_once),
        "Dummy": by_hand(tasks.bill_never),
    }  # fmt: skip
    if settings.RQ_QUEUES["once-tests"]["URL"]:
        plays = {"django-tasks-rq": by_rq, **plays}
    return max([held(name, play(place)) for name, play in plays.items()])


def held(name: str, deliveries: list[Delivery]) -> int:
    """Say whether one body began, one commit was made, and how soon the others were free."""
    starts = Path(os.environ[tasks.LEDGER])
    bodies = len(starts.read_text().splitlines())
    others = sorted(one.seconds for one in deliveries if one.value is None)
    permits = list(TaskExecution.objects.values_list("status", flat=True))
    is_right = (
        (bodies, Note.objects.count(), permits) == (1, 1, ["COMPLETED"])
        and [one.value for one in deliveries if one.value is not None] == ["paid"]
        and len(others) == WORKERS - 1
    )
    is_quick = others[-1] <= LONGEST
    commits = Note.objects.count()
    print(
        f"{name}: {len(deliveries)} deliveries, {bodies} body began, {commits} commit; "
        f"the others were free after {1000 * others[len(others) // 2]:.0f} ms at the median, "
        f"{1000 * others[-1]:.0f} ms at most: "
        f"{'right' if is_right and is_quick else 'late' if is_right else 'WRONG'}"
    )
    starts.unlink()
    Note.objects.all().delete()
    TaskExecution.objects.all().delete()
    Schedule.objects.all().delete()
    return 0 if is_right else 1


def fired(task: Any, backend: str, queue: str = "default") -> str:
    """Let a schedule of this task fire; return its permit."""
    a_schedule(
        task.module_path, task=task.module_path, args='["paid"]', backend=backend, queue=queue,
    )  # fmt: skip
    assert fire_all() == 1
    return str(TaskExecution.objects.get().pk)


@contextmanager
def workers(place: Path, *command: str) -> Iterator[None]:
    """Keep eight workers of theirs while this lasts."""
    told = {"databases": names_of_databases(), "options": {}, "receivers": False}
    around = {
        **os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}",
        "ONCE_TEST_PROCESSES": json.dumps(told),
    }  # fmt: skip
    crew = [
        subprocess.Popen(
            [sys.executable, "-m", "django", *command], cwd=ROOT, env=around,
            stdout=(place / f"{command[0]}-{number}").open("w"), stderr=subprocess.STDOUT,
        )
        for number in range(WORKERS)
    ]  # fmt: skip
    try:
        yield
    finally:
        for one in crew:
            one.terminate()
        for one in crew:
            one.wait(30)


def by_rq(place: Path) -> list[Delivery]:
    import django_rq
    from django_tasks_rq import Job
    from rq import Worker

    queue = django_rq.get_queue("once-tests", job_class=Job)
    queue.empty()
    fired(tasks.bill_by_rq, "rq", "once-tests")
    (fired_one,) = queue.jobs
    queue.empty()

    def delivered(path: str, args: Any, kwargs: Any) -> list[Delivery]:
        said = {"args": args, "kwargs": kwargs, "meta": fired_one.meta}
        jobs = [queue.create_job(path, **said) for _ in range(WORKERS)]
        for one in jobs:
            queue.enqueue_job(one)
        until(lambda: all(one.get_status(refresh=True) in ("finished", "failed") for one in jobs))
        for one in jobs:
            one.refresh()
        return [
            Delivery((one.ended_at - one.started_at).total_seconds(), one.return_value())
            for one in jobs
        ]

    def idle() -> int:
        return sum(one.get_state() == "idle" for one in Worker.all(queue.connection))

    with workers(place, "rqworker", "once-tests", "--job-class", "django_tasks_rq.Job"):
        until(lambda: idle() >= WORKERS, 60, "eight workers of RQ")
        nothing = [one.seconds for one in delivered(tasks.rest_by_rq.module_path, [], {})]
        until(lambda: idle() >= WORKERS, 60, "eight idle workers of RQ")
        print(f"django-tasks-rq: a task that only asks the database: {1000 * max(nothing):.0f} ms")
        return delivered(fired_one.func_name, fired_one.args, fired_one.kwargs)


def by_table(place: Path) -> list[Delivery]:
    from django_tasks_db.models import DBTaskResult

    fired(tasks.bill_by_table, "table")
    first = DBTaskResult.objects.get()
    DBTaskResult.objects.all().delete()
    with workers(place, "db_worker", "--backend", "table", "--interval", "0.1", "-v", "2"):
        begun = DBTaskResult.objects.exclude(finished_at=None)

        def have_all_worked() -> bool:
            if not DBTaskResult.objects.filter(finished_at=None).exists():
                for _ in range(WORKERS):
                    tasks.rest.enqueue()
            return len({name for one in begun.iterator() for name in one.worker_ids}) == WORKERS

        until(have_all_worked, 120, "a job by each of eight workers")
        until(lambda: begun.count() == DBTaskResult.objects.count())
        DBTaskResult.objects.all().delete()
        said = {
            field.attname: getattr(first, field.attname)
            for field in DBTaskResult._meta.concrete_fields
            if not field.primary_key
        }
        DBTaskResult.objects.bulk_create([DBTaskResult(**said) for _ in range(WORKERS)])
        ended = DBTaskResult.objects.exclude(finished_at=None)
        until(lambda: ended.count() == WORKERS, 60, "eight ends")
        return [
            Delivery((one.finished_at - one.started_at).total_seconds(), one.return_value)
            for one in ended.iterator()
        ]


def by_hand(task: Any) -> Callable[[Path], list[Delivery]]:
    """Return the play of a backend that has no workers: eight threads call what it was given."""

    def play(_: Path) -> list[Delivery]:
        return called(task)

    return play


def called(task: Any) -> list[Delivery]:
    found: list[Delivery] = []

    def call(permit: str) -> None:
        began = time.monotonic()
        value = task.call("paid", **{PERMIT: permit})
        found.append(Delivery(time.monotonic() - began, value))
        connections.close_all()

    permit = fired(task, task.backend)
    if task.backend == "immediate":
        # Its worker is whoever enqueues: the first delivery has been run.
        found.append(Delivery(tasks.SECONDS, "paid"))
    else:
        assert task_backends["dummy"].results[-1].kwargs == {PERMIT: permit}
    threads = [
        threading.Thread(target=call, args=[permit]) for _ in range(WORKERS - len(found))
    ]  # fmt: skip
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found
