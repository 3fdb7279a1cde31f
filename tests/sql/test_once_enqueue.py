"""`once_enqueue`: what SQL enqueues is what Python would have enqueued, and refused as it would be.

PostgreSQL only: no other database has the function.
"""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from django.core.management import call_command
from django.db import DatabaseError, IntegrityError, connection, connections, transaction

from django_once import Limit, compat, declarations, task
from django_once.checks import check_databases
from django_once.models import Declaration, Job
from django_once.models.declaration import has_table, renew_functions
from django_once.sql import functions
from django_once.testing import moved_clock, run_jobs
from tests.app import tasks
from tests.app.models import Note
from tests.flow import tasks as flow
from tests.series import tasks as series

pytestmark = [pytest.mark.engine, pytest.mark.django_db]

# What differs between two rows of one call: their times, and who they are.
OWN = {"id", "due_at", "position", "enqueued_at", "unique_hash", "unique_until", "run_after",
       "expires_at"}  # fmt: skip
PUZZLES = {
    "text": "a\"b\\c\n\u00e9 \u2028 \U0001f600 \x7f '%s'",
    "numbers": [0, -1, 1.5, 1e15, 123456789012345.6, 1e-7, 2**63 - 1, 100.0],
    "words": [True, False, None, [], {}, ""],
    "B": {"b": 1, "a": {"\u00e9": 1, "z": 2, "\U0001f600": 3, "\uffff": 4}},
}


@task(unique=True, takes_context=True)
def puzzle(context, first, /, second=1.5, *rest, third="\u00e9", **others):
    return None


@task(redact=["card"])
def hidden(card: str) -> None: ...


@task(limit=Limit("x:{x!r}", concurrency=1))
def bent(x: int) -> None: ...


@task(delivery="at_most_once", timeout="90s", expires="2h", max_deaths=1, priority=7)
def wordy(a: int = 0) -> None: ...


@pytest.fixture(autouse=True)
def declared(db):
    if connection.vendor != "postgresql":
        pytest.skip("Only PostgreSQL has once_enqueue.")
    declarations.publish(compat.task_backends["default"])


def enqueue(path, args=(), kwargs=None, as_type="jsonb", **said):
    parameters = [path, json.dumps(list(args)), json.dumps(kwargs or {}), *said.values()]
    more = "".join(f", {name} => %s" for name in said)
    sql = f"SELECT once_enqueue(%s, %s::{as_type}, %s::{as_type}{more})"
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        return cursor.fetchone()[0]


def refused(*args, **said) -> str:
    with pytest.raises(DatabaseError) as caught, transaction.atomic():
        enqueue(*args, **said)
    return str(caught.value).partition("\n")[0]


def row(id):
    return Job.objects.filter(pk=id).values().get()


def lengths(job):
    since = job["enqueued_at"]
    times = (job["unique_until"], job["run_after"], job["expires_at"], job["due_at"])
    return [moment and round((moment - since).total_seconds(), 3) for moment in times]


CALLS = [
    (tasks.add, [1], {}),
    (tasks.add, [1], {"b": 2}),
    (tasks.echo, [[1, "\u00e9"], None], {"key": {"a": [1.5]}}),
    (tasks.fail_again, [], {}),
    (tasks.note_once, ["it's 100 % \\ done"], {}),
    (tasks.tell, [], {}),
    (wordy, [], {"a": 3}),
    (hidden, ["4111"], {}),
    (flow.one_of_three, [], {}),
    (flow.of_tenant, [7], {}),
    (flow.twice_a_minute, [7], {}),
    (flow.shared, [1], {}),
    (flow.shared, [2], {"number": 3}),
    (flow.shared_and_limited, [1], {}),
    (flow.charge, [5], {"amount": 3}),
    (flow.mail, [5], {}),
    (flow.once_in_ten_minutes, [], {}),
    (flow.reindex, [5, ["a"]], {}),
    (flow.alert, ["a", 1], {}),
    (series.poll, [3], {"shard": "b"}),
    (series.tick, ["a"], {"say": "soon"}),
    (series.below, [], {}),
    (puzzle, [PUZZLES], {"third": 1}),
    (puzzle, [1, 2, 3, PUZZLES["numbers"]], {"first": 2, "x": PUZZLES["text"]}),
]


@pytest.mark.parametrize("as_type", ["text", "json", "jsonb"])
@pytest.mark.parametrize(("called", "args", "kwargs"), CALLS)
def test_the_row_is_the_one_that_python_makes(called, args, kwargs, as_type):
    by_sql = row(enqueue(called.module_path, args, kwargs, as_type))
    Job.objects.all().delete()
    by_python = row(called.enqueue(*args, **kwargs).id)

    assert by_sql.pop("unique_hash") == by_python.pop("unique_hash")
    for name in ("args", "kwargs"):
        assert json.loads(by_sql.pop(name)) == json.loads(by_python.pop(name))
    assert lengths(by_sql) == lengths(by_python)
    assert (by_sql["position"] is None) == (by_python["position"] is None)
    for name in ("generation", *OWN - {"unique_hash"}):
        del by_sql[name], by_python[name]
    assert by_sql == by_python


@pytest.mark.parametrize("called", [flow.charge, flow.once_in_ten_minutes, series.poll, puzzle])
def test_a_job_that_stands_for_the_call_is_found_by_either(called):
    by_python = called.enqueue(7)
    by_sql = enqueue(called.module_path, [7])

    assert str(by_sql) == by_python.id
    assert called.enqueue(7).id == by_python.id
    assert Job.objects.count() == 1


def test_a_unique_job_is_replaced_refused_or_let_go_as_its_task_says():
    first = enqueue("tests.flow.tasks.report", ["monday"])
    again = enqueue("tests.flow.tasks.report", ["monday", 9])
    enqueue("tests.flow.tasks.pay", [1])
    with pytest.raises(IntegrityError, match="is waiting and has this name already"):
        with transaction.atomic():
            enqueue("tests.flow.tasks.pay", [1])
    kept = enqueue("tests.flow.tasks.alert", ["a", 1])
    run_jobs()
    with moved_clock("2h"):
        anew = enqueue("tests.flow.tasks.alert", ["a", 1])

    assert again == first
    assert json.loads(Job.objects.get(pk=first).args) == ["monday", 9]
    assert anew != kept


def test_a_key_begins_its_next_generation_when_its_job_has_ended():
    first = enqueue("tests.series.tasks.poll", [1])
    run_jobs()
    second = enqueue("tests.series.tasks.poll", [1])
    by_name = enqueue("tests.series.tasks.plain", [1], key="mine")

    assert [row(id)["generation"] for id in (first, second, by_name)] == [1, 2, 1]
    assert series.plain.using(key="mine").get().id == str(by_name)


def test_ids_grow_with_time_and_tell_it():
    ids = [enqueue("tests.app.tasks.add", [n]) for n in range(20)]

    assert {id.version for id in ids} == {7}
    assert [id.int >> 68 for id in ids] == sorted(id.int >> 68 for id in ids)
    stamps = {id.int >> 80 for id in ids}
    moment = Job.objects.get(pk=ids[0]).enqueued_at.timestamp() * 1000
    assert all(abs(stamp - moment) < 60_000 for stamp in stamps)


def test_the_jobs_of_one_statement_run_in_their_order():
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT once_enqueue('tests.app.tasks.note', jsonb_build_array(n::text)) "
            "FROM generate_series(1, 30) AS n"
        )

    run_jobs()

    texts = Note.objects.order_by("pk").values_list("text", flat=True)
    assert list(texts) == [str(n) for n in range(1, 31)]


def test_a_trigger_enqueues_in_the_transaction_of_its_writer():
    with connection.cursor() as cursor:
        cursor.execute(
            "CREATE FUNCTION told() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
            "PERFORM once_enqueue('tests.app.tasks.echo', kwargs => to_jsonb(NEW)); RETURN NULL; "
            "END $$; CREATE TRIGGER told AFTER INSERT ON app_note FOR EACH ROW "
            "EXECUTE FUNCTION told()"
        )
    with transaction.atomic():
        Note.objects.create(text="gone")
        transaction.set_rollback(True)
    Note.objects.create(text='it\'s "kept"')

    assert [json.loads(job.kwargs)["text"] for job in Job.objects.all()] == ['it\'s "kept"']


def test_it_is_found_from_a_session_that_looks_for_tables_elsewhere():
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL search_path = ''")
        cursor.execute("SELECT public.once_enqueue('tests.app.tasks.add', '[1]')")
        cursor.execute("SET LOCAL search_path = public")

    assert Job.objects.count() == 1


def test_what_was_said_of_the_call_takes_the_place_of_what_the_task_says():
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT once_enqueue('tests.app.tasks.add', ARRAY[1, 2], queue => 'mail', "
            "priority => -5, run_after => now() + interval '1 hour')"
        )
    job = Job.objects.get()

    assert (job.args, job.queue, job.priority, job.position) == ("[1,2]", "mail", -5, None)
    assert job.run_after == job.due_at
    assert enqueue("tests.app.tasks.add", [1], backend="default")


def test_tests_move_its_clock():
    with moved_clock("1h"):
        later = Job.objects.get(pk=enqueue("tests.app.tasks.add", [1]))
    now = Job.objects.get(pk=enqueue("tests.app.tasks.add", [1]))

    assert 3500 < (later.enqueued_at - now.enqueued_at).total_seconds() < 3700
    assert 3500e6 < later.position - now.position < 3700e6


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        (("tests.app.tasks.ad", [1]),
         "No task 'tests.app.tasks.ad' is known here. Did you mean 'tests.app.tasks.add'?"),
        (("zzz", [1]), "No task 'zzz' is known here. Write its path"),
        (("tests.app.tasks.add", []), "tests.app.tasks.add misses its argument 'a'."),
        (("tests.app.tasks.add", [1, 2, 3]), "takes at most 2 arguments by their place, got 3."),
        (("tests.app.tasks.add", [1], {"c": 1}),
         "tests.app.tasks.add has no argument 'c'. It takes: a, b."),
        (("tests.app.tasks.add", [1], {"a": 1}), "got 'a' twice: in args and in kwargs."),
        (("tests.app.tasks.tell", [1]), "takes at most 0 arguments by their place, got 1."),
        (("tests.app.tasks.echo", [2**63]), "args holds a number beyond 64 bits: pass it as text."),
        (("tests.app.tasks.echo", ["a\0b"], {}, "json"), "args holds a NUL character"),
        (("tests.app.tasks.echo", ["x" * 1_000_000]),
         "args takes 1,000,004 bytes as JSON and may take 1,000,000"),
        (("tests.sql.test_once_enqueue.bent", [1]), "which only Python can fill"),
        (("tests.flow.tasks.of_tenant", [[1]]),
         "'tenant' is a list or an object, which names nothing."),
        (("tests.flow.tasks.of_tenant", ["x" * 200]),
         "became a name of 207 characters; there is room for 160."),
    ],
)  # fmt: skip
def test_what_cannot_run_is_refused_with_a_sentence(said, sentence):
    assert sentence in refused(*said)
    assert not Job.objects.exists()


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        ({"queue": ""}, "A queue's name has 1 to 64 characters"),
        ({"queue": "a,b"}, "no comma"),
        ({"queue": "nowhere"},
         "Queue 'nowhere' is not valid for backend 'default'. It has: default, low, mail."),
        ({"priority": 101}, "priority must be a whole number between -100 and 100, got 101."),
        ({"run_after": "infinity"}, "run_after must be from 1970 to 9998, got infinity."),
        ({"run_after": "1969-12-31 12:00Z"}, "run_after must be from 1970 to 9998"),
        ({"backend": "elsewhere"}, "No backend 'elsewhere' is known here."),
        ({"key": "x" * 161}, "A key has 1 to 160 characters, this has 161."),
    ],
)  # fmt: skip
def test_words_that_cannot_be_meant_are_refused_with_a_sentence(said, sentence):
    assert sentence in refused("tests.app.tasks.add", [1], **said)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ("'no'", "args is not JSON: 'no'."),
        ("'{}'", 'args must be a JSON array such as [1, "a"], got object.'),
        ("'1'::json", "args must be a JSON array"),
        ("('[' || repeat('[', 100) || repeat(']', 100) || ']')", "nested deeper than 100 levels"),
    ],
)
def test_what_is_no_list_of_arguments_is_refused_with_a_sentence(given, sentence):
    with pytest.raises(DatabaseError) as caught, transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute(f"SELECT once_enqueue('tests.app.tasks.echo', {given})")

    assert sentence in str(caught.value)


def test_a_hundred_levels_are_accepted_as_python_accepts_them():
    deep: list = []
    for _ in range(98):
        deep = [deep]

    tasks.echo.enqueue(deep)
    assert enqueue("tests.app.tasks.echo", [deep])


@pytest.mark.django_db(transaction=True)
def test_of_many_who_enqueue_one_name_or_key_at_once_one_does():
    together = Barrier(6)

    def enqueue_both(_):
        together.wait()
        try:
            return (
                enqueue("tests.flow.tasks.charge", [1]),
                enqueue("tests.series.tasks.poll", [1]),
            )
        finally:
            connections.close_all()

    with ThreadPoolExecutor(6) as pool:
        found = set(pool.map(enqueue_both, range(6)))

    assert len(found) == 1
    assert Job.objects.count() == 2


@pytest.mark.django_db(transaction=True)
def test_a_listener_hears_once_of_all_jobs_of_a_transaction_that_commits():
    import psycopg

    parameters = connection.get_connection_params()
    for name in ("cursor_factory", "context", "prepare_threshold"):
        parameters.pop(name, None)
    with psycopg.connect(**parameters, autocommit=True) as line:
        line.execute("LISTEN once_wakeup")
        with transaction.atomic():
            enqueue("tests.app.tasks.add", [1])
            transaction.set_rollback(True)
        with transaction.atomic():
            for n in range(5):
                enqueue("tests.app.tasks.add", [n])
            enqueue("tests.app.tasks.add", [9], run_after="2099-01-01Z")
        heard = [notify.payload for notify in line.notifies(timeout=10, stop_after=2)]

    assert sorted(heard) == ["default", "default:later"]


def test_functions_of_another_release_are_a_finding_until_migrate_makes_them_anew():
    with connection.cursor() as cursor:
        cursor.execute("COMMENT ON FUNCTION once_enqueue IS 'older'")
    found = [finding.id for finding in check_databases(databases=["default"])]

    call_command("migrate", verbosity=0, database="default")

    assert "once.W018" in found
    assert functions.is_current(connection)
    assert not renew_functions("default")
    assert "once.W018" not in [one.id for one in check_databases(databases=["default"])]


def test_migrate_and_workers_write_down_what_changed_and_nothing_else():
    backend = compat.task_backends["default"]
    Declaration.objects.filter(task="tests.app.tasks.add").update(said="{}")

    assert declarations.publish(backend) == 1
    assert declarations.publish(backend) == 0
    assert has_table("default")
