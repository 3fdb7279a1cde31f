"""What is hidden of a job is shown nowhere."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client, override_settings
from django.urls import reverse

from django_once import Limit, compat, task
from django_once.definitions import registry
from django_once.errors import InvalidOption
from django_once.models import Job
from django_once.redaction import HIDDEN, shown
from django_once.testing import run_jobs
from tests.app.tasks import echo
from tests.management.shell import once
from tests.operate import tasks
from tests.operate.tasks import CARD

pytestmark = [
    pytest.mark.engine,
    pytest.mark.django_db(transaction=True, databases=["default", "other"]),
]


def told(result: Any) -> Any:
    return shown(Job.objects.get(pk=result.id))


def everything_shown(result: Any) -> str:
    """Return all that the doors show of a job to who may see it."""
    id = result.id
    User.objects.create_superuser("root", password="root")
    client = Client()
    client.login(username="root", password="root")
    page = client.get(reverse("admin:once_job_change", args=[id]))
    assert page.status_code == 200
    answers = [
        once("show", id, "--args", "-v", "2"), once("show", id, "--args", "-v", "2", "--json"),
        once("jobs", "--args"), once("jobs", "--args", "--json"), once("explain", id),
    ]  # fmt: skip
    assert all(answer.code == 0 for answer in answers)
    return "".join(answer.out + answer.err for answer in answers) + page.content.decode()


def test_an_argument_is_hidden_by_its_name_however_it_was_given():
    one, other = tasks.charge.enqueue(7, CARD), tasks.charge.enqueue(order=7, card=CARD, cvc=123)

    assert (told(one).args, told(one).kwargs) == ([7, HIDDEN], {})
    assert told(other).kwargs == {"order": 7, "card": HIDDEN, "cvc": HIDDEN}


def test_what_is_hidden_is_shown_by_no_door_and_no_result():
    result = tasks.charge.enqueue(7, CARD)
    run_jobs()

    seen = everything_shown(result)

    assert "4111" not in seen
    assert seen.count(HIDDEN) >= 6
    assert told(result).return_value == {
        "order": 7, "charged": f"card {HIDDEN}", "card": HIDDEN, "cvc": HIDDEN,
    }  # fmt: skip
    result.refresh()
    assert result.args == [7, CARD]


@pytest.mark.parametrize(
    ("declines", "args"),
    [(tasks.decline, [7, CARD]), (tasks.decline_later, [CARD, 5]), (tasks.decline_once, [CARD])],
)
def test_an_error_does_not_tell_what_is_hidden(declines, args, caplog):
    result = declines.enqueue(*args)

    with caplog.at_level(logging.DEBUG):
        run_jobs()

    result.refresh()
    assert result.errors[0].exception_class_path == "builtins.ValueError"
    assert "ValueError: " in result.errors[0].traceback
    assert HIDDEN in result.errors[0].traceback
    assert "4111" not in Job.objects.get(pk=result.id).history
    assert "4111" not in caplog.text
    assert "Redacted" in caplog.text
    assert "4111" not in everything_shown(result)


def test_receivers_of_the_end_meet_no_exception_that_tells(caplog):
    import sys

    met = []

    def receiver(**_: Any) -> None:
        met.append(repr(sys.exc_info()[1]))

    compat.task_finished.connect(receiver)
    try:
        tasks.decline.enqueue(7, CARD)
        run_jobs()
    finally:
        compat.task_finished.disconnect(receiver)

    assert len(met) == 1
    assert "declined" in met[0]
    assert "4111" not in met[0] + caplog.text


def test_all_of_a_call_can_be_hidden():
    result = tasks.keep_quiet.enqueue("one", more={"deep": ["two"]})
    run_jobs()

    seen = told(result)

    assert (seen.args, seen.kwargs, seen.return_value) == ([HIDDEN], {"more": HIDDEN}, HIDDEN)


def test_a_function_says_what_may_be_shown_and_all_is_hidden_where_it_raises():
    result = tasks.greet.enqueue("Ada", age=36)
    loud = tasks.greet_loudly.enqueue("Ada")
    run_jobs()

    seen = told(result)

    assert (seen.args, seen.kwargs) == (["A…"], {"age": HIDDEN})
    assert seen.return_value == f"Good morning, {HIDDEN}"
    assert told(loud).args == [HIDDEN]


def test_a_backend_hides_names_and_patterns_at_any_depth():
    setting = {"default": {"BACKEND": "django_once.backend.DatabaseBackend", "QUEUES": [],
                           "OPTIONS": {"REDACT": ["*password*", "pin"]}}}  # fmt: skip
    with override_settings(TASKS=setting):
        result = echo.enqueue([{"PIN": 1234, "of": 12345}], user={"New_Password": "hush", "id": 1})
        run_jobs()
        seen = told(result)

    assert seen.args == [[{"PIN": HIDDEN, "of": 12345}]]
    assert seen.kwargs == {"user": {"New_Password": HIDDEN, "id": 1}}
    assert "hush" not in str(seen.return_value)
    assert "1234," not in str(seen.return_value)


def test_a_process_without_the_code_shows_nothing_of_a_job_that_has_secrets(monkeypatch):
    secret, plain = tasks.charge.enqueue(7, CARD), echo.enqueue(1)
    monkeypatch.setattr(registry, "find", lambda path: None)

    assert told(secret).args == [HIDDEN, HIDDEN]
    assert told(plain).args == [1]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"redact": 7}, "redact must name arguments"),
        ({"redact": []}, "redact must name arguments"),
        ({"redact": ["cart"]}, "redact hides 'cart', which "),
        ({"redact": "card", "key": "of:{card}"}, "key='of:{card}' is made of 'card'"),
        ({"redact": "c*", "limit": Limit("of:{card}", concurrency=1)}, "is made of 'card'"),
        ({"redact": "card", "lock": "of:{card}"}, "which redact hides"),
    ],
)
def test_what_hides_nothing_or_is_told_elsewhere_is_refused(arguments, says):
    def takes_a_card(card: str) -> None:
        return None

    with pytest.raises(InvalidOption, match=says.replace("{", r"\{")):
        task(**arguments)(takes_a_card)


def test_short_values_are_looked_for_as_words():
    result = tasks.charge.enqueue(7, "a", 1)

    assert told(result).text("a card, and 1 of 21") == f"{HIDDEN} card, and {HIDDEN} of 21"


def test_a_setting_that_cannot_be_meant_is_refused():
    from django_once import conf

    problems = conf.read({"REDACT": "no.such.function"}).problems

    assert "REDACT" in str(problems[0])
    assert conf.read({"REDACT": [7]}).problems
    assert conf.read({"REDACT": ["card"]}).redact == (("card",),)


def test_a_strike_is_listed_without_what_is_hidden():
    path = tasks.charge.module_path
    assert once("strike", path, f'card="{CARD}"', "order=7", "--reason", "why").code == 0

    answer = once("strike", "--json")

    assert "4111" not in answer.out + once("strike").out
    assert answer.json["strikes"][0]["arguments"] == {"card": HIDDEN, "order": 7}


def test_a_hook_that_raises_after_the_commit_does_not_tell_either(caplog):
    result = tasks.tell_after_commit.enqueue(CARD)

    with caplog.at_level(logging.DEBUG):
        run_jobs()

    assert Job.objects.get(pk=result.id).status == Job.SUCCESSFUL
    assert "after the commit" in caplog.text
    assert "4111" not in caplog.text


@pytest.mark.books_may_be_wrong
def test_a_long_history_with_short_tracebacks_keeps_the_log_clean_too(caplog):
    result = tasks.decline.enqueue(7, CARD)
    long = [
        {"kind": "raised", "attempt": 1, "worker": "w", "error": "e", "traceback": "x" * 300_000}
    ]
    long[0]["at"] = "2026-01-01T00:00:00Z"
    Job.objects.filter(pk=result.id).update(history=json.dumps(long))

    with caplog.at_level(logging.DEBUG):
        run_jobs()

    assert "declined" in Job.objects.get(pk=result.id).history
    assert "4111" not in caplog.text + Job.objects.get(pk=result.id).history


def test_an_explanation_does_not_tell_either():
    once("strike", tasks.charge.module_path, f'card="{CARD}"', "--reason", f"not {CARD}")
    result = tasks.charge.enqueue(7, CARD)

    seen = once("explain", result.id), once("explain", result.id, "--json")

    assert "was struck" in seen[0].out
    assert all("4111" not in answer.out for answer in seen)
    assert HIDDEN in seen[1].out
