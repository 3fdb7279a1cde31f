"""What cannot be meant is refused with one sentence, before anything is started."""

from __future__ import annotations

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import connection
from django.test import override_settings

from tests.processes.tasks import mark
from tests.processes.workers import ended, on_one_database, until

pytestmark = pytest.mark.engine


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (["--queues", ""], "--queues names no queue: name some, or '*' for all."),
        (["--queues", "letters"], "Queue 'letters' is not among QUEUES of TASKS['default']: "
         "default, low, mail."),
        (["--queues", "mail", "--exclude-queues", "low"],
         "--exclude-queues goes with --queues '*' only."),
        (["--queues", "*,low", "--exclude-queues", "low"],
         "Queue 'low' is named by --queues and by --exclude-queues."),
        (["--exclude-queues", "low,mail,default"],
         "--exclude-queues leaves no queue to take from."),
        (["--exclude-queues", "letters"], "Queue 'letters' is not among QUEUES of "
         "TASKS['default']: default, low, mail."),
        (["--concurrency", "0"], "--concurrency must be at least 1, got 0."),
        (["--processes", "0"], "--processes must be at least 1, got 0."),
        (["--processes", "1000"], "--processes must be at most 256, got 1000."),
        (["--concurrency", "10001"], "--concurrency must be at most 10000, got 10001."),
        (["--max-tasks", "-1"], "--max-tasks must be at least 1, got -1."),
        (["--max-memory", "0"], "--max-memory must be at least 1, got 0."),
        (["--interval", "-1"], "--interval must be seconds from 0 on, got -1.0."),
        (["--interval", "nan"], "--interval must be seconds from 0 on, got nan."),
        (["--drain-timeout", "inf"], "--drain-timeout must be seconds from 0 on, got inf."),
        (["--patience", "-1"], "--patience must be seconds from 0 on, got -1.0."),
        (["--health-port", "0"], "--health-port must be from 1 to 65535, got 0."),
        (["--worker-id", "x" * 65], "--worker-id must be a name of at most 64 characters."),
        (["--batch", "--reload"],
         "--batch ends when nothing is due, so it does not go with --reload."),
    ],
)  # fmt: skip
def test_what_cannot_be_meant_is_refused_in_one_sentence(flags, sentence):
    with pytest.raises(CommandError) as refused:
        call_command("once", "worker", *flags, skip_checks=True)

    assert (str(refused.value), refused.value.returncode) == (sentence, 2)


def test_a_word_of_the_environment_that_is_neither_yes_nor_no_is_refused(monkeypatch):
    monkeypatch.setenv("ONCE_WORKER_NO_SCHEDULER", "perhaps")

    with pytest.raises(CommandError) as refused:
        call_command("once", "worker", skip_checks=True)

    assert str(refused.value) == "ONCE_WORKER_NO_SCHEDULER must be 1 or 0, got 'perhaps'."
    assert refused.value.returncode == 2


@pytest.mark.parametrize("alias", ["immediate", "nowhere"])
def test_a_backend_that_is_not_ours_is_refused(alias):
    with pytest.raises(CommandError) as refused:
        call_command("once", "worker", "--backend", alias, skip_checks=True)

    assert alias in str(refused.value)
    assert refused.value.returncode == 2
    assert "\n" not in str(refused.value)


@pytest.mark.slow
@on_one_database
@pytest.mark.django_db(transaction=True)
def test_the_environment_says_what_no_flag_says(start, ledger):
    said = {
        "ONCE_WORKER_QUEUES": "mail", "ONCE_WORKER_CONCURRENCY": "3", "ONCE_WORKER_PROCESSES": "2",
        "ONCE_WORKER_WORKER_ID": "ann", "ONCE_WORKER_INTERVAL": "",
        "ONCE_WORKER_CONCURENCY": "5", "ONCE_WORKER_PORT": "tcp://10.0.0.1:80",
    }  # fmt: skip
    command = start("--processes", "1", environment=said).ready()

    (row,) = ended(mark.using(queue_name="mail").enqueue("a"))

    assert row.worker_name == "ann"
    assert "queues: mail · 1 × 3 at once · worker ann" in command.text
    unknown = [line for line in command.text.splitlines() if "is not known" in line]
    assert unknown == [
        "ONCE_WORKER_CONCURENCY is not known and changes nothing: ONCE_WORKER_CONCURRENCY was "
        "meant?"
    ]
    assert command.stop() == 0


@pytest.mark.django_db(transaction=True)
def test_the_first_line_says_what_a_person_wants_to_know(start):
    command = start("--exclude-queues", "low").ready()
    (line,) = [line for line in command.text.splitlines() if line.startswith("django-once ")]

    wakeup = "LISTEN/NOTIFY" if connection.vendor == "postgresql" else "polling every 0.2 s"
    assert f"wakeup: {wakeup}" in line
    assert "queues: * without low" in line
    assert " · Django " in line
    assert " · Python " in line


@pytest.mark.slow
@on_one_database
@pytest.mark.django_db(transaction=True)
def test_queues_that_are_not_configured_are_said_to_be_unchecked(start):
    command = start("--batch")

    assert command.wait() == 0
    assert "TASKS['default']['QUEUES'] is empty, so any queue is taken for one" in command.text


@pytest.mark.slow
@on_one_database
@pytest.mark.django_db(transaction=True)
def test_the_flag_that_others_need_to_begin_at_once_is_taken(start, ledger):
    mark.enqueue("a")

    assert start("--batch", "--no-startup-delay").wait() == 0

    assert ledger.tags() == ["a"]


@pytest.mark.slow
@on_one_database
@pytest.mark.django_db(transaction=True)
def test_a_worker_waits_for_migrations_and_gives_up(start):
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM django_migrations WHERE app = 'once'")
    try:
        command = start("--patience", "1")
        assert command.wait() == 2
    finally:
        call_command("migrate", "once", fake=True, verbosity=0)

    said = [line for line in command.text.splitlines() if "migrat" in line]
    assert len(said) == 2
    assert said[0].startswith("Waiting up to 1 s: database 'default' lacks ")
    assert said[1].startswith("Gave up: database 'default' lacks ")
    assert said[1].endswith("Run: python manage.py migrate")


@pytest.mark.slow
@on_one_database
@pytest.mark.django_db(transaction=True)
def test_a_worker_begins_when_the_migrations_come(start, ledger):
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM django_migrations WHERE app = 'once'")
    try:
        command = start("--patience", "60")
        until(lambda: "Waiting up to 60 s" in command.text, what="the wait")
    finally:
        call_command("migrate", "once", fake=True, verbosity=0)

    assert ended(mark.enqueue("a"))[0].attempt == 1
    assert command.stop() == 0


@override_settings(DEBUG=True)
def test_reloading_is_for_development_unless_a_batch_is_asked_for(settings):
    from argparse import ArgumentParser

    from django_once.management.places import backend_named
    from django_once.management.verbs import VERBS
    from django_once.management.verbs.worker import plan_of

    parser = ArgumentParser()
    VERBS["worker"].add_arguments(parser)

    def plan(*flags: str):
        return plan_of(vars(parser.parse_args(flags)), backend_named("default"))

    assert plan().reload
    assert not plan("--no-reload").reload
    assert not plan("--batch").reload
