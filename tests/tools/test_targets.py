"""Which targets there are, which are chosen, and that none is lost without a word."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tools import targets
from tools.environments import Environment
from tools.interpreters import Interpreter
from tools.runs import startable
from tools.servers.address import Address
from tools.servers.server import Missing, Server
from tools.targets import Means, NotTested, Target, all_targets, chosen, quick_targets


def environment(tmp_path, lock, version, django):
    directory = tmp_path / f"{lock}-{version[1]}"
    one = Environment(lock, Interpreter("/python", version), directory)
    (one.packages / f"django-{django}.dist-info").mkdir(parents=True, exist_ok=True)
    return one


@pytest.fixture
def means(tmp_path):
    """Return means with three Djangos and every server but MySQL."""
    servers = {
        name: Server(name, "1", "running server", Address("mysql"))
        for name in ("postgresql", "mariadb", "redis")
    }
    servers["mysql"] = Missing("mysql", ("nothing listens",), "a URL")
    return Means(
        environment(tmp_path, "test", (3, 13, 0), "6.1.3"),
        environment(tmp_path, "test", (3, 11, 7), "5.2.19"),
        environment(tmp_path, "test-django60", (3, 13, 0), "6.0.10"),
        servers,
    )


def written(found):
    return [(one.name, one.group) for one in found if isinstance(one, Target)]


def not_tested(found):
    return [(one.name, one.group) for one in found if isinstance(one, NotTested)]


def test_every_combination_is_there_once(means):
    found = all_targets(means)

    assert written(found) == [
        ("sqlite", "django-6.1"),
        ("postgresql", "django-6.1"),
        ("mariadb", "django-6.1"),
        ("sqlite", "django-5.2"),
        ("postgresql", "django-5.2"),
        ("mariadb", "django-5.2"),
        ("sqlite", "django-6.0"),
        ("redis", "django-6.1"),
        ("tools", "django-6.1"),
        *[(name, "upstream") for name in ("sqlite", "postgresql", "mariadb")] * 4,
        ("postgresql", "upstream"),
    ]
    assert not_tested(found) == [("mysql", "django-6.1")]


def test_tests_without_a_database_run_once_for_each_django(means):
    for names in ((), ("postgresql", "mariadb"), ("django-5.2",)):
        found = [one for one in chosen(all_targets(means), names) if isinstance(one, Target)]
        engines = [one for one in found if "engine" in one.kinds]

        plain = [one.group for one in engines if "plain" in one.kinds]
        assert sorted(plain) == sorted({one.group for one in engines})


def test_quick_is_one_combination_on_one_database(means):
    assert written(quick_targets(means)) == [("sqlite", "django-6.1")]


def test_quick_takes_the_django_that_the_only_python_can_have(means):
    alone = replace(means, newest=means.oldest, oldest=None, middle=None)

    assert written(quick_targets(alone)) == [("sqlite", "django-5.2")]
    assert not_tested(quick_targets(alone)) == []


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["redis"], [("redis", "django-6.1")]),
        (["tools"], [("tools", "django-6.1")]),
        (["django-6.0"], [("sqlite", "django-6.0")]),
        (
            ["postgresql"],
            [
                ("postgresql", "django-6.1"),
                ("postgresql", "django-5.2"),
                *[("postgresql", "upstream")] * 5,
            ],
        ),
    ],
)
def test_only_chooses_by_database_and_by_django(means, names, expected):
    assert written(chosen(all_targets(means), names)) == expected


def test_a_django_without_its_python_is_not_tested_and_says_so(means):
    poor = Means(means.newest, None, None, means.servers)

    missing = {one.name: one for one in all_targets(poor) if isinstance(one, NotTested)}

    assert "Python 3.11" in missing["django-5.2"].reason
    assert "Python 3.12" in missing["django-6.0"].reason
    kept = chosen(all_targets(poor), ["postgresql"])
    assert ("django-5.2", "django-5.2") in not_tested(kept)


def test_where_the_newest_python_is_old_the_newest_django_is_not_tested(means):
    poor = Means(means.oldest, None, None, means.servers)

    found = all_targets(poor)

    assert ("sqlite", "django-5.2") in written(found)
    assert ("django-6.1", "django-6.1") in not_tested(found)
    assert ("django-5.2", "django-5.2") not in not_tested(found)


def test_a_python_that_was_named_is_given_as_the_reason(means):
    poor = Means(means.newest, None, means.middle, means.servers, only_python="3.13")

    (missing,) = [one for one in all_targets(poor) if one.name == targets.OLDEST]

    assert "--python chose 3.13" in missing.reason


def test_two_targets_run_at_once_but_never_two_on_one_server(means):
    found = [one for one in all_targets(means) if isinstance(one, Target)]
    sqlite, postgresql, mariadb, *_ = found
    also_postgresql = next(one for one in found[3:] if one.name == "postgresql")

    assert startable(found, []) == [sqlite, postgresql]
    assert startable([also_postgresql, mariadb], [postgresql]) == [mariadb]
    assert startable([mariadb], [sqlite, postgresql]) == []


def test_slow_tests_run_once_and_on_sqlite_where_there_is_no_postgresql(means):
    def places(means: Means) -> list[tuple[str, str]]:
        found = [one for one in all_targets(means) if isinstance(one, Target)]
        return [(one.name, one.group) for one in found if "slow" in one.kinds]

    assert places(means) == [("postgresql", "django-6.1")]
    assert places(replace(means, servers={})) == [("sqlite", "django-6.1")]


def test_tests_that_start_processes_run_on_every_database_with_the_newest_django(means):
    found = [one for one in all_targets(means) if isinstance(one, Target)]

    assert {one.group for one in found if "processes" in one.kinds} == {"django-6.1"}
    assert {one.name for one in found if "processes" in one.kinds} >= {"sqlite", "postgresql"}


def test_each_target_has_a_place_of_its_own(means):
    slugs = [one.slug for one in all_targets(means) if isinstance(one, Target)]

    assert len(set(slugs)) == len(slugs)


def test_tests_of_others_run_on_the_django_that_they_are_for(means):
    found = chosen(all_targets(means), ["upstream"])

    assert {one.suite: one.environment for one in found} == {
        "django-6.1": means.newest,
        "django-6.0": means.middle,
        "backport": means.oldest,
        "periodic-tasks": means.newest,
        "pgpubsub": means.newest,
    }
    assert all(one.program[-2:] == ("--suite", one.suite) for one in found)


def test_tests_of_others_that_cannot_be_had_are_not_tested_and_say_so(means):
    poor = replace(means, sources_missing="The package index gave no answer.")

    found = chosen(all_targets(poor), ["upstream"])

    assert [one.reason for one in found] == ["The package index gave no answer."]
