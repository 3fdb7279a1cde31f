"""`exactly_once`, `Snooze` and `Cancel` as words of the front: what they take, what they refuse."""

from __future__ import annotations

import functools
import pickle
from datetime import timedelta

import pytest

from django_once import Cancel, Retry, Snooze, compat, exactly_once, task
from django_once.declare import options_of
from django_once.definitions import registry
from django_once.errors import InvalidOption, OnceError


@task
@exactly_once
def below() -> None: ...


@exactly_once
@task(retry=Retry(max_attempts=2))
def above() -> None: ...


@exactly_once
@task
@exactly_once
def on_both_sides() -> None: ...


@exactly_once
@task(backend="dummy")
def elsewhere() -> None: ...


def wrapping(function):
    @functools.wraps(function)
    def wrapped():
        return function()

    return wrapped


@task
@wrapping
@exactly_once
def wrapped_in_between() -> None: ...


@pytest.mark.parametrize("declared", [below, above, on_both_sides, elsewhere, wrapped_in_between])
def test_the_promise_holds_above_and_below(declared):
    assert isinstance(declared, compat.Task)
    assert options_of(declared)["delivery"] == "exactly_once"
    assert options_of(declared.using(priority=7))["delivery"] == "exactly_once"
    assert registry.find(declared.module_path) is declared
    assert declared.module_path not in registry.ambiguous()


def test_what_else_was_said_of_the_task_stays():
    assert options_of(above)["retry"] == Retry(max_attempts=2)


def test_a_promised_function_is_still_itself():
    def plain() -> int:
        return 7

    promised = exactly_once(plain)

    assert (promised(), promised.__wrapped__, promised.__name__) == (7, plain, "plain")


@pytest.mark.parametrize(
    "declare",
    [
        lambda: exactly_once(task(delivery="at_most_once")(at_most)),
        lambda: task(delivery="at_most_once")(exactly_once(at_most_below)),
        lambda: task(backend="dummy", delivery="at_most_once")(exactly_once(at_most_elsewhere)),
    ],
)
def test_two_promises_at_once_are_refused_at_import(declare):
    with pytest.raises(InvalidOption, match="cannot be at_most_once and exactly_once at once"):
        declare()


def at_most() -> None: ...
def at_most_below() -> None: ...
def at_most_elsewhere() -> None: ...


@pytest.mark.parametrize(
    ("target", "sentence"),
    [
        (None, "takes a function or a task, and no words: got None"),
        ("billing", "takes a function or a task, and no words: got 'billing'"),
        (int, "takes a task or a function of a module"),
        (staticmethod(at_most), "takes a task or a function of a module"),
        (classmethod(at_most), "takes a task or a function of a module"),
    ],
)
def test_what_cannot_promise_is_refused_with_a_sentence(target, sentence):
    with pytest.raises(InvalidOption, match=sentence):
        exactly_once(target)


def test_parentheses_are_refused():
    with pytest.raises(TypeError, match="exactly_once"):
        exactly_once()


@pytest.mark.parametrize("said", ["5m", 300, timedelta(minutes=5)])
def test_a_snooze_says_how_long(said):
    assert Snooze(said).after == timedelta(minutes=5)


@pytest.mark.parametrize("said", [0, "0s", -1, "soon", None, float("nan"), "20000d"])
def test_a_snooze_that_cannot_be_meant_is_refused(said):
    with pytest.raises(InvalidOption, match="Snooze"):
        Snooze(said)


def test_both_words_are_errors_of_ours_and_can_be_pickled():
    assert isinstance(Snooze("5m"), OnceError)
    assert pickle.loads(pickle.dumps(Snooze("5m"))).after == timedelta(minutes=5)
    assert pickle.loads(pickle.dumps(Cancel("withdrawn"))).reason == "withdrawn"
    assert Cancel().reason == "The body cancelled its job."
