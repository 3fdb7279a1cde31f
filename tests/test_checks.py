"""Every finding of `manage.py check`, and that a broken setting is one and no traceback."""

from __future__ import annotations

import re
import sys
import types
from contextlib import contextmanager
from io import StringIO
from pathlib import Path

import django
import pytest
from django.core import checks as django_checks
from django.core.management import call_command
from django.core.management.base import SystemCheckError
from django.db import OperationalError, connections
from django.db.migrations.recorder import MigrationRecorder
from django.test import modify_settings, override_settings

from django_once import checks, compat, conf, task_checks
from django_once.definitions import registry
from tests.settings import DJANGO_BACKENDS, TASKS

OURS = TASKS["default"]["BACKEND"]
SOURCE = "".join(Path(part.__file__).read_text() for part in (checks, task_checks))


@contextmanager
def backend(alias: str = "default", **said):
    """Let this be the only backend of the project."""
    with override_settings(TASKS={alias: {"BACKEND": OURS, **said}}):
        yield compat.task_backends[alias]


@contextmanager
def database(name: str, engine: str = "sqlite3", **said):
    """Let the project have one more database, which nobody connects to."""
    path = engine if "." in engine else f"django.db.backends.{engine}"
    connections.settings[name] = connections.settings["default"] | {
        "ENGINE": path, "NAME": f"/nowhere/{name}", "OPTIONS": {}, "TEST": {}, **said
    }  # fmt: skip
    try:
        yield name
    finally:
        del connections.settings[name]
        if hasattr(connections._connections, name):
            delattr(connections._connections, name)


@pytest.fixture
def apart(monkeypatch):
    """Let a test declare what no other test shall see."""
    monkeypatch.setattr(registry, "_tasks", {})
    monkeypatch.setattr(registry, "_options", {})


def declared(source: str) -> None:
    module = types.ModuleType("declared_by_a_test")
    sys.modules[module.__name__] = module
    exec(compile(f"from django_once import task\n{source}", "declared.py", "exec"), vars(module))


def ids(findings) -> list[str]:
    return [finding.id for finding in findings]


def only(findings, id: str):
    """Return the one finding of this id; each has a remedy, and ends like a sentence."""
    (found,) = [finding for finding in findings if finding.id == id]
    assert found.hint
    assert found.msg.endswith(".")
    kind = django_checks.Error if id.startswith("once.E") else django_checks.Warning
    assert type(found) is kind
    return found


def static(**said):
    with backend(**said) as ours:
        return ours.check()


SQLITE = {"OPTIONS": {"transaction_mode": "IMMEDIATE"}}


# Settings


def test_the_settings_of_the_tests_have_nothing_but_what_they_mean():
    with database("default_twin", **SQLITE):
        found = static(OPTIONS={"DATABASE": "default_twin"})

    assert ids(found) == ["once.W002"]


def test_django_s_own_check_asks_every_backend():
    with backend(OPTIONS={"LEASES": "60s"}):
        errors = django_checks.run_checks()

    assert "LEASES" in only(errors, "once.E002").msg


def test_manage_py_check_stops_at_an_error_and_shows_its_remedy():
    out = StringIO()

    with backend(OPTIONS={"LEASES": "60s"}), pytest.raises(SystemCheckError) as raised:
        call_command("check", stdout=out, stderr=out)

    assert "(once.E002) TASKS['default']['OPTIONS']['LEASES'] is not an option." in str(
        raised.value
    )
    assert "HINT: Did you mean 'LEASE'?" in str(raised.value)


@modify_settings(INSTALLED_APPS={"remove": ["django_once", "tests.app"]})
def test_E001_the_app_is_not_installed():
    found = only(static(), "once.E001")

    assert "'django_once' to INSTALLED_APPS" in found.hint


def test_E002_an_option_is_unknown():
    found = only(static(OPTIONS={"LEASES": "60s", "DEATHS": 2}), "once.E002")

    assert found.msg == "TASKS['default']['OPTIONS']['LEASES'] is not an option."
    assert found.hint == "Did you mean 'LEASE'?"


def test_E003_a_value_cannot_be_meant():
    found = only(static(OPTIONS={"LEASE": "soon"}), "once.E003")

    assert found.msg.startswith("TASKS['default']['OPTIONS']['LEASE'] must be a timedelta")
    assert found.hint.startswith("The default is '60s': longer than ")


@pytest.mark.parametrize("options", [None, [], "LEASE", 5])
def test_E003_options_are_no_dictionary(options):
    assert "must be a dictionary" in only(static(OPTIONS=options), "once.E003").msg


def test_E004_a_database_is_not_there():
    found = only(static(OPTIONS={"DATABASE": "nowhere"}), "once.E004")

    assert "TASKS['default']['OPTIONS']['DATABASE'] is 'nowhere'" in found.msg
    assert found.hint == "There are: default, other."


def test_E005_a_database_is_of_another_kind():
    with database("odd", engine="dummy"):
        found = only(static(OPTIONS={"DATABASE": "odd"}), "once.E005")

    assert "'unknown'" in found.msg
    assert "PostgreSQL, SQLite, MySQL or MariaDB" in found.hint


def test_E006_sqlite_is_too_old(monkeypatch):
    with database("old", **SQLITE):
        monkeypatch.setattr(connections["old"], "get_database_version", lambda: (3, 34, 1))
        found = only(static(OPTIONS={"DATABASE": "old"}), "once.E006")

    assert "Database 'old' is SQLite 3.34.1" in found.msg
    assert found.hint == "Use SQLite 3.35 or later."


@pytest.mark.parametrize("queues", ["default", 5, None, {"default": 1}])
def test_E007_queues_are_no_list(queues):
    assert "must be a list of names" in only(static(QUEUES=queues), "once.E007").msg


@pytest.mark.parametrize("queue", ["", "x" * 65, "a,b", "*", 5, None])
def test_E007_a_queue_has_no_name_that_can_be_stored(queue):
    found = only(static(QUEUES=["default", queue]), "once.E007")

    assert found.msg.startswith("TASKS['default']['QUEUES']: A queue's name has")


def test_E007_an_alias_has_no_name_that_can_be_stored():
    found = only(static(alias="x" * 65), "once.E007")

    assert "an alias has at most 64 characters" in found.msg


def test_E009_a_router_keeps_the_tables_away():
    with override_settings(DATABASE_ROUTERS=[f"{__name__}.Router"]):
        found = only(static(OPTIONS={"DATABASE": "other"}), "once.E009")

    assert found.hint == "Let allow_migrate('other', 'once') return True."


class Router:
    def allow_migrate(self, db, app_label, **hints):
        return db == "default"


def test_E010_a_replica_takes_no_jobs():
    with database("replica", **SQLITE, TEST={"MIRROR": "default"}):
        found = only(static(OPTIONS={"DATABASE": "replica"}), "once.E010")

    assert "a replica of 'default' by its TEST settings" in found.msg
    assert found.hint == "Set it to 'default'."


def test_W001_a_key_is_read_by_nobody():
    found = only(static(QUEUE=["default"]), "once.W001")

    assert found.msg == "TASKS['default']['QUEUE'] is read by nobody."
    assert found.hint == "Did you mean 'QUEUES'?"


def test_W002_jobs_live_in_another_database():
    found = only(static(OPTIONS={"DATABASE": "other"}), "once.W002")

    assert "joins transactions of that database only" in found.msg


@pytest.mark.parametrize("mode", [None, "DEFERRED", "exclusive"])
def test_W003_sqlite_begins_without_the_right_to_write(mode):
    with database("lazy", OPTIONS={"transaction_mode": mode}):
        found = only(static(OPTIONS={"DATABASE": "lazy"}), "once.W003")

    assert "DATABASES['lazy']['OPTIONS']['transaction_mode'] to 'IMMEDIATE'" in found.hint


@pytest.mark.parametrize("name", [":memory:", "file:jobs?mode=memory&cache=shared"])
def test_W005_sqlite_is_in_memory(name):
    with database("brief", NAME=name, **SQLITE):
        assert only(static(OPTIONS={"DATABASE": "brief"}), "once.W005")


def test_W005_is_not_said_of_the_database_that_django_makes_for_tests():
    name = "file:memorydb_brief?mode=memory&cache=shared"

    with database("brief", NAME=name, **SQLITE):
        assert "once.W005" not in ids(static(OPTIONS={"DATABASE": "brief"}))


@pytest.mark.parametrize(
    ("engine", "level", "said"),
    [
        ("postgresql", 3, "REPEATABLE READ"),
        ("postgresql", 4, "SERIALIZABLE"),
        ("mysql", "repeatable read", "REPEATABLE READ"),
        ("mysql", "Serializable", "SERIALIZABLE"),
        ("mysql", "read uncommitted", "READ UNCOMMITTED"),
    ],
)
def test_W006_settings_name_another_isolation_level(engine, level, said):
    needs_driver(engine)
    with database("strict", engine=engine, OPTIONS={"isolation_level": level}):
        found = only(static(OPTIONS={"DATABASE": "strict"}), "once.W006")

    assert f"Transactions of database 'strict' run at {said}" in found.msg


@pytest.mark.parametrize(
    ("engine", "level"),
    [("postgresql", 2), ("postgresql", 1), ("postgresql", None), ("mysql", "read committed"),
     ("mysql", "READ COMMITTED"), ("mysql", None)],
)  # fmt: skip
def test_W006_is_not_said_where_the_settings_leave_it(engine, level):
    needs_driver(engine)
    with database("easy", engine=engine, OPTIONS={"isolation_level": level}):
        assert ids(static(OPTIONS={"DATABASE": "easy"})) == ["once.W002"]


def needs_driver(engine: str) -> None:
    if engine == "mysql":
        pytest.importorskip("pymysql").install_as_MySQLdb()
    else:
        pytest.importorskip("psycopg")


def test_W007_two_backends_of_one_database_have_leases_of_different_length():
    both = {
        "default": {"BACKEND": OURS, "OPTIONS": {"LEASE": "60s"}},
        "second": {"BACKEND": OURS, "OPTIONS": {"LEASE": "1m"}},
        "third": {"BACKEND": OURS, "OPTIONS": {"LEASE": "5s"}},
        "apart": {"BACKEND": OURS, "OPTIONS": {"LEASE": "2s", "DATABASE": "other"}},
    }

    with override_settings(TASKS=both):
        found = only(checks.check_project(), "once.W007")

    assert found.msg.startswith("TASKS['default'] and TASKS['third'] ")


# Tasks


def test_E008_two_tasks_have_one_path(apart):
    declared("@task\ndef same(): ...\n@task\ndef same(): ...")

    found = only(checks.check_project(), "once.E008")

    assert "2 tasks have the path 'declared_by_a_test.same'" in found.msg
    assert "declared.py:2, declared.py:4" in found.msg


@pytest.mark.parametrize(
    ("timeout", "patience", "is_told"),
    [
        ("6s", None, True),
        ("5s", None, False),
        ("30s", 20, True),
        ("10s", 20, False),
        (None, 5, False),
    ],
)
def test_W008_a_body_holds_the_one_writer_longer_than_others_wait(
    apart, timeout, patience, is_told
):
    options = SQLITE["OPTIONS"] | ({"timeout": patience} if patience else {})

    with database("lite", OPTIONS=options), backend(OPTIONS={"DATABASE": "lite"}):
        declared(f"@task(delivery='exactly_once', timeout={timeout!r})\ndef long(): ...")
        found = checks.check_project()

    assert ("once.W008" in ids(found)) is is_told
    assert not is_told or "one writer" in only(found, "once.W008").msg


def test_W008_is_not_said_of_other_deliveries(apart):
    with database("lite", **SQLITE), backend(OPTIONS={"DATABASE": "lite"}):
        declared("@task(timeout='1h')\ndef long(): ...")
        assert checks.check_project() == []


def test_W016_an_exactly_once_task_has_its_jobs_apart_from_its_models(apart):
    with database("lite", **SQLITE), backend(OPTIONS={"DATABASE": "lite"}):
        declared("@task(delivery='exactly_once')\ndef apart(): ...")
        declared("@task\ndef free(): ...")
        found = only(checks.check_project(), "once.W016")

    assert "declared_by_a_test.apart is exactly_once in database 'lite'" in found.msg


def test_W016_is_not_said_where_jobs_and_models_are_together(apart):
    declared("@task(delivery='exactly_once')\ndef together(): ...")

    assert "once.W016" not in ids(checks.check_project())


def test_W017_a_function_that_promises_something_never_became_a_task(apart):
    declared(
        "from django_once import exactly_once\n@exactly_once\ndef bare(): ...\n"
        "@task\n@exactly_once\ndef below(): ...\n"
    )

    found = only(checks.check_project(), "once.W017")

    assert "declared_by_a_test.bare is marked with @exactly_once and is no task" in found.msg


@pytest.mark.parametrize("order", ["@task\n@exactly_once", "@exactly_once\n@task"])
def test_W017_is_not_said_of_tasks(apart, order):
    declared(f"from django_once import exactly_once\n{order}\ndef kept(): ...")
    declared(f"from django_once import exactly_once\n{order}\ndef renamed(): ...\nother = renamed")

    assert "once.W017" not in ids(checks.check_project())


def test_W013_a_backend_of_others_keeps_no_promise_of_ours(apart):
    with override_settings(TASKS=TASKS):
        for number in range(7):
            declared(f"@task(backend='dummy', timeout='1s', max_deaths=1)\ndef t{number}(): ...")
        declared("@task(backend='dummy')\ndef plain(): ...")
        found = only(checks.check_project(), "once.W013")

    assert found.msg.startswith("TASKS['dummy'] does not know what these tasks say of themselves")
    assert "declared_by_a_test.t0 (max_deaths, timeout); " in found.msg
    assert found.msg.endswith(" and 2 more.")


@pytest.mark.skipif(django.VERSION >= (6, 0), reason="Django asks its backends by itself.")
@modify_settings(INSTALLED_APPS={"remove": ["django_tasks"]})
def test_W011_the_backport_is_not_installed_and_its_questions_are_asked_all_the_same(apart):
    with backend(OPTIONS={"LEASES": "60s"}):
        found = checks.check_project()

    assert "'django_tasks' to INSTALLED_APPS" in only(found, "once.W011").hint
    assert only(found, "once.E002")


# Databases


@pytest.mark.engine
@pytest.mark.django_db(databases=["default", "other"])
def test_the_databases_of_the_tests_have_nothing_to_say():
    assert checks.check_databases(databases=["default", "other"]) == []
    assert "once" not in str(static())


@pytest.mark.engine
@pytest.mark.django_db
def test_no_database_is_asked_that_was_not_named(django_assert_num_queries):
    with django_assert_num_queries(0):
        assert checks.check_databases(databases=None) == []
        assert checks.check_databases(databases=[]) == []
        assert checks.check_databases(databases=["nowhere"]) == []
        checks.check_project()
        compat.task_backends["default"].check()


@pytest.mark.engine
@pytest.mark.django_db
def test_W010_a_database_lacks_migrations():
    MigrationRecorder(connections["default"]).record_unapplied("once", "0001_initial")

    found = only(checks.check_databases(databases=["default"]), "once.W010")

    assert found.msg == "Database 'default' lacks migrations of django_once: 0001_initial."
    assert found.hint == "Run: python manage.py migrate once --database default"


@pytest.mark.engine
@pytest.mark.django_db
def test_W010_is_said_by_manage_py_check_with_a_database():
    MigrationRecorder(connections["default"]).record_unapplied("once", "0001_initial")
    out = StringIO()

    call_command("check", databases=["default"], stdout=out, stderr=out)

    assert "(once.W010)" in out.getvalue()


@override_settings(MIGRATION_MODULES={"once": None})
@pytest.mark.engine
@pytest.mark.django_db
def test_W010_is_not_said_where_tables_are_made_without_migrations():
    MigrationRecorder(connections["default"]).record_unapplied("once", "0001_initial")

    assert checks.check_databases(databases=["default"]) == []


@pytest.mark.engine
@pytest.mark.django_db
def test_W018_once_enqueue_is_of_another_release():
    if connections["default"].vendor != "postgresql":
        pytest.skip("Only PostgreSQL has once_enqueue.")
    with connections["default"].cursor() as cursor:
        cursor.execute("COMMENT ON FUNCTION once_enqueue IS 'older'")

    found = only(checks.check_databases(databases=["default"]), "once.W018")

    assert found.msg == "once_enqueue in database 'default' is that of another release."
    assert found.hint == "Run: python manage.py migrate once --database default"


def test_W004_sqlite_lets_nobody_read_while_somebody_writes(tmp_path, django_db_blocker):
    with database("rigid", NAME=str(tmp_path / "rigid.sqlite3"), **SQLITE) as alias:
        with django_db_blocker.unblock(), backend(OPTIONS={"DATABASE": alias}):
            found = checks.check_databases(databases=[alias])
            connections[alias].close()

    assert "'delete'" in only(found, "once.W004").msg
    assert "PRAGMA journal_mode=WAL" in only(found, "once.W004").hint
    assert ids(found) == ["once.W004"], "Of an empty database there is nothing to say."


@pytest.mark.engine
@pytest.mark.django_db
@pytest.mark.parametrize(
    ("is_mariadb", "version", "name"),
    [(False, (13, 9), "PostgreSQL"), (False, (8, 0, 12), "MySQL"), (True, (10, 5, 20), "MariaDB")],
)
def test_E006_a_server_is_too_old(monkeypatch, is_mariadb, version, name):
    connection = connections["default"]
    if connection.vendor == "sqlite" or (connection.vendor == "mysql") != (name != "PostgreSQL"):
        pytest.skip(f"This database is not {name}.")
    monkeypatch.setattr(connection, "get_database_version", lambda: version)
    if connection.vendor == "mysql":
        monkeypatch.setitem(connection.__dict__, "mysql_is_mariadb", is_mariadb)

    found = only(checks.check_databases(databases=["default"]), "once.E006")

    assert f"is {name} {'.'.join(map(str, version))}" in found.msg


@pytest.mark.engine
@pytest.mark.django_db
def test_W006_a_server_has_another_isolation_level():
    vendor = connections["default"].vendor
    if vendor == "sqlite":
        pytest.skip("SQLite has one level.")
    strict, usual = {
        "postgresql": (
            "SET LOCAL default_transaction_isolation = 'repeatable read'",
            "SET LOCAL default_transaction_isolation = 'read committed'",
        ),
        "mysql": (
            "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ",
            "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
        ),
    }[vendor]

    with connections["default"].cursor() as cursor:
        cursor.execute(strict)
        found = checks.check_databases(databases=["default"])
        cursor.execute(usual)

    assert "run at REPEATABLE READ" in only(found, "once.W006").msg


@pytest.mark.engine
@pytest.mark.django_db(transaction=True)
def test_W009_a_table_cannot_keep_every_letter():
    if connections["default"].vendor != "mysql":
        pytest.skip("Only MySQL and MariaDB have character sets that lack letters.")
    change = (
        "ALTER TABLE once_lock MODIFY released_by varchar(255) CHARACTER SET {} NOT NULL DEFAULT ''"
    )

    with connections["default"].cursor() as cursor:
        cursor.execute(change.format("latin1"))
        found = checks.check_databases(databases=["default"])
        cursor.execute(change.format("utf8mb4"))

    assert "in once_lock.released_by." in only(found, "once.W009").msg
    assert checks.check_databases(databases=["default"]) == []


@pytest.mark.engine
@pytest.mark.django_db
def test_W014_a_job_may_be_larger_than_a_packet():
    if connections["default"].vendor != "mysql":
        pytest.skip("Only MySQL and MariaDB have packets.")

    with backend(OPTIONS={"MAX_ARGUMENTS": 2**30 - 1}):
        found = checks.check_databases(databases=["default"])

    assert "lets a job hold 1,073,741,823 bytes" in only(found, "once.W014").msg


def test_W012_a_database_does_not_answer(tmp_path, django_db_blocker):
    with database("gone", NAME=str(tmp_path / "no" / "such" / "directory"), **SQLITE) as alias:
        with django_db_blocker.unblock(), backend(OPTIONS={"DATABASE": alias}):
            (found,) = checks.check_databases(databases=[alias])

    assert found.id == "once.W012"
    assert found.msg.endswith("could not be asked: unable to open database file")
    assert found.hint == "See whether it runs, and what DATABASES['gone'] says."


def test_W012_what_a_database_said_before_is_kept(monkeypatch):
    def interrupted(connection):
        yield django_checks.Warning("First.", id="once.W004")
        raise OperationalError("connection lost")

    monkeypatch.setattr(checks, "_answers", interrupted)

    assert ids(checks.check_databases(databases=["default"])) == ["once.W004", "once.W012"]


def test_a_database_that_is_not_there_or_of_another_kind_is_not_asked():
    with backend(OPTIONS={"DATABASE": "nowhere"}):
        assert checks.check_databases(databases=["nowhere", "default"]) == []
    with database("odd", engine="dummy"), backend(OPTIONS={"DATABASE": "odd"}):
        assert checks.check_databases(databases=["odd"]) == []


# All


@pytest.mark.parametrize(
    "said",
    [
        {"OPTIONS": {option.key: value}}
        for option in conf.TABLE
        for value in (None, "", "x", -1, 0, 1.5, True, [], {}, object(), float("nan"), 10**5000)
    ]
    + [{"QUEUES": value} for value in (None, "", 0, object(), [None], [[]], {1: 2}, [object()])]
    + [{"OPTIONS": value} for value in (None, "", 0, [], object(), {None: 1}, {(): 1})],
    ids=lambda said: next(iter(said)),
)
def test_whatever_stands_in_the_settings_nothing_raises(said):
    with backend(**said) as ours:
        findings = [*ours.check(), *checks.check_project()]

    assert all(finding.hint and finding.msg for finding in findings)


def test_a_backend_whose_class_is_gone_hides_no_other():
    broken = {"gone": {"BACKEND": "nowhere.Backend"}, "default": {"BACKEND": OURS}}
    broken["dummy"] = {"BACKEND": f"{DJANGO_BACKENDS}.dummy.DummyBackend"}

    with override_settings(TASKS=broken):
        assert [ours.alias for ours in checks.ours()] == ["default"]


def test_each_id_has_a_test():
    here = Path(__file__)
    tests = here.read_text() + (here.parent / "locks" / "test_checks.py").read_text()

    given = set(re.findall(r"once\.([EW]\d{3})", SOURCE))
    tested = set(re.findall(r"def test_([EW]\d{3})_", tests))

    assert given == tested
