"""What may be said of a task, and what may be said of a backend."""

from __future__ import annotations

from datetime import timedelta
from uuid import uuid4

import pytest

from django_once import Retry, conf
from django_once.definitions import options
from django_once.errors import InvalidOption

PLACE = "TASKS['default']['OPTIONS']"


def draw_an_id() -> str:
    return str(uuid4())


def problem(said: object) -> conf.Problem:
    (found,) = conf.read(said, PLACE).problems
    return found


def problem_beside(params: object) -> conf.Problem:
    (found,) = conf.problems_beside_options("default", params)
    return found


# Of a task


def test_durations_become_timedeltas():
    said = options.checked({"timeout": "5m", "expires": 90, "retry": None})

    assert said == {"timeout": timedelta(minutes=5), "expires": timedelta(seconds=90)}


def test_what_was_checked_may_be_checked_again():
    said = options.checked({"timeout": "5m", "retry": Retry(), "delivery": "exactly_once"})

    assert options.checked(said) == said


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        ({"delivery": "exactly-once"}, "Did you mean 'exactly_once'?"),
        ({"delivery": "at_most_one"}, "Did you mean 'at_most_once'?"),
        ({"delivery": 1}, "delivery must be one of at_least_once, exactly_once, at_most_once"),
        ({"delivery": []}, "delivery must be one of"),
        ({"retry": 3}, r"retry must be a Retry\(…\), got 3\."),
        ({"retry": Retry}, r"retry must be a Retry\(…\)"),
        ({"timeout": 0}, "timeout must be longer than nothing"),
        ({"timeout": "soon"}, "timeout must be a timedelta, seconds, or text"),
        ({"expires": -1}, "expires must not be negative"),
        ({"max_deaths": -1}, "max_deaths must be from 0 to 1000"),
        ({"max_deaths": True}, "max_deaths must be from 0 to 1000"),
        ({"max_deaths": 1.5}, "max_deaths must be from 0 to 1000"),
        (
            {"delivery": "at_most_once", "retry": Retry()},
            "delivery='at_most_once' promises that the function is never started twice",
        ),
    ],
)
def test_a_value_that_cannot_be_meant_is_refused_by_its_name(said, sentence):
    with pytest.raises(InvalidOption, match=sentence):
        options.checked(said)


def test_an_unknown_word_is_refused_with_the_one_that_was_meant():
    with pytest.raises(TypeError, match="A task has no option 'timeuot'. Did you mean 'timeout'?"):
        options.checked({"timeuot": "5m"})


def test_a_word_unlike_any_is_refused_with_all_there_are():
    with pytest.raises(TypeError, match="There are: delivery, retry, timeout, expires, max_deaths"):
        options.checked({"colour": "red"})


# Of a backend


def test_each_option_has_a_default_and_a_reason():
    read = conf.read({})

    assert read.problems == ()
    assert (read.database, read.lease, read.deaths) == ("default", timedelta(seconds=60), 3)
    assert all(option.reason for option in conf.TABLE)
    assert {option.key.lower() for option in conf.TABLE} == set(conf.Options.__slots__) - {
        "problems"
    }


def test_options_are_read_as_values():
    read = conf.read(
        {
            "DATABASE": "other",
            "LEASE": "2m",
            "ID_FUNCTION": "tests.test_front_options.draw_an_id",
            "RETRY": Retry(max_attempts=2),
            "DEATHS": 0,
        }
    )

    assert read.problems == ()
    assert (read.database, read.lease, read.deaths) == ("other", timedelta(minutes=2), 0)
    assert read.id_function is draw_an_id
    assert read.retry.max_attempts == 2


@pytest.mark.parametrize(
    ("key", "meant"),
    [
        ("LEASES", "LEASE"),
        ("lease", "LEASE"),
        ("Data_Base", "DATABASE"),
        ("ID_FUNC", "ID_FUNCTION"),
    ],
)
def test_an_unknown_option_is_told_with_the_one_that_was_meant(key, meant):
    found = problem({key: "60s"})

    assert found.kind == "option"
    assert found.sentence == f"TASKS['default']['OPTIONS'][{key!r}] is not an option."
    assert found.remedy == f"Did you mean {meant!r}?"


@pytest.mark.parametrize("key", ["COLOUR", 5, None, (1, 2)])
def test_an_option_unlike_any_is_told_with_all_there_are(key):
    assert problem({key: 1}).remedy.startswith("There are: AGEING, DATABASE, ")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("DATABASE", ""),
        ("DATABASE", None),
        ("DATABASE", 5),
        ("LEASE", "0s"),
        ("LEASE", "999ms"),
        ("LEASE", "2d"),
        ("LEASE", None),
        ("LEASE", True),
        ("LEASE", "soon"),
        ("ID_FUNCTION", 5),
        ("ID_FUNCTION", "nowhere.at_all"),
        ("ID_FUNCTION", "tests.test_front_options.nothing"),
        ("ID_FUNCTION", ".relative"),
        ("ID_FUNCTION", "..relative"),
        ("ID_FUNCTION", ""),
        ("MAX_ARGUMENTS", 1),
        ("MAX_ARGUMENTS", "1MB"),
        ("MAX_RESULT", 2**40),
        ("RETRY", 3),
        ("RETRY", Retry),
        ("RETRY", {"max_attempts": 3}),
        ("DEATHS", -1),
        ("DEATHS", 1.5),
        ("DEATHS", True),
        ("POLL", 0),
        ("POLL", "2h"),
        ("WAKEUP", "always"),
        ("WAKEUP", []),
        ("RETENTION", "7d"),
        ("RETENTION", {"DONE": "7d"}),
        ("RETENTION", {"FAILED": "long"}),
    ],
)
def test_a_value_that_cannot_be_meant_is_told_with_its_place_and_its_default(key, value):
    found = problem({key: value})

    assert found.kind == "value"
    assert found.sentence.startswith(f"TASKS['default']['OPTIONS'][{key!r}]")
    assert found.sentence.endswith(".")
    assert found.remedy.startswith("The default is ")


def test_a_wrong_value_leaves_the_others_and_its_own_default_in_force():
    read = conf.read({"LEASE": "soon", "DEATHS": 7})

    assert (read.lease, read.deaths) == (timedelta(seconds=60), 7)


@pytest.mark.parametrize("options", [None, [], "LEASE", 5])
def test_options_that_are_no_dictionary_are_a_problem_and_no_traceback(options):
    assert conf.read(options).problems == ()
    assert "must be a dictionary" in problem_beside({"OPTIONS": options}).sentence


@pytest.mark.parametrize("queues", ["default", None, 5, {"default": 1}])
def test_queues_that_are_no_list_are_a_problem_and_no_traceback(queues):
    found = problem_beside({"QUEUES": queues})

    assert conf.queues(queues) == []
    assert found.sentence.startswith("TASKS['default']['QUEUES'] must be a list of names")


@pytest.mark.parametrize("queues", [["default"], ("a", "b"), {"a"}, [], frozenset(["a b", "ü"])])
def test_queues_are_any_collection_of_names(queues):
    assert conf.problems_beside_options("default", {"QUEUES": queues}) == ()
    assert sorted(conf.queues(queues)) == sorted(queues)


@pytest.mark.parametrize(
    "name",
    ["", "x" * 65, "a,b", "*", " mail", "mail ", "a\nb", "a\x00", "\ud800", None, 5, b"mail"],
)
def test_a_name_that_is_none_is_told(name):
    assert conf.refused_queue(name).startswith("A queue's name has ")
    assert problem_beside({"QUEUES": [name, "default"]}).kind == "name"


@pytest.mark.parametrize(
    ("key", "remedy"),
    [
        ("QUEUE", "Did you mean 'QUEUES'?"),
        ("options", "Did you mean 'OPTIONS'?"),
        ("LEASE", "It is an option: write it into TASKS['default']['OPTIONS']."),
        ("COLOUR", "There are: BACKEND, OPTIONS, QUEUES."),
    ],
)
def test_a_key_that_nobody_reads_is_told(key, remedy):
    found = problem_beside({key: 1})

    assert (found.kind, found.remedy) == ("key", remedy)
    assert found.sentence == f"TASKS['default'][{key!r}] is read by nobody."


def test_an_alias_must_fit_its_column():
    (found,) = conf.problems_beside_options("x" * 65, {})

    assert "an alias has at most 64 characters, this has 65" in found.sentence
