"""What no worker could run: refused when a task is declared, or before its job is stored."""

from __future__ import annotations

import inspect
from datetime import datetime, timedelta
from typing import Any, Final

from django_once import clock, conf
from django_once.compat import (
    TASK_MAX_PRIORITY,
    TASK_MIN_PRIORITY,
    AnyTask,
    InvalidTask,
)
from django_once.definitions import registry
from django_once.errors import InvalidOption, shortened

LONGEST_PATH: Final = 255


def refuse_function(task: AnyTask) -> None:
    """Refuse a function that a worker could not find, or whose call would do nothing."""
    function = task.func
    if getattr(function, "__name__", "") == "<lambda>":
        raise InvalidTask(
            "Task function must be defined at a module level. A lambda has no name by which a "
            "worker could find it: write it with def."
        )
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise InvalidTask(
            f"{task.module_path} is a generator: calling it runs nothing of it. Return a value "
            "instead of yielding."
        )
    if inspect.isfunction(function) and len(task.module_path) > LONGEST_PATH:
        raise InvalidTask(
            f"The path {task.module_path!r} is longer than the {LONGEST_PATH} characters that a "
            "job keeps of it."
        )


def refuse_words(task: AnyTask) -> None:
    """Refuse what Django's own rules do not know, or would stumble over."""
    refusal = conf.refused_queue(task.queue_name)
    if refusal:
        raise InvalidTask(refusal)
    if not _is_whole(task.priority):
        raise InvalidTask(
            f"priority must be a whole number between {TASK_MIN_PRIORITY} and {TASK_MAX_PRIORITY}."
        )
    wish: Any = task.run_after
    try:
        if isinstance(wish, timedelta):
            clock.duration(wish, "run_after")
        elif isinstance(wish, datetime):
            clock.moment(wish, "run_after")
        elif wish is not None:
            raise InvalidTask(
                f"run_after must be an aware datetime or a timedelta, got {shortened(wish)}."
            )
    except InvalidOption as refused:
        raise InvalidTask(str(refused)) from None


def _is_whole(number: Any) -> bool:
    try:
        return bool(int(number) == number)
    except (TypeError, ValueError, OverflowError):
        return False


def refuse_another(task: AnyTask) -> None:
    """Refuse what no worker could run: a row holds a path, and the path must lead back here."""
    path = task.module_path
    found = registry.find(path)
    if found is None:
        registry.register(task)
    elif found.func is not task.func:
        raise InvalidTask(
            f"Two tasks have the path {path!r}, so a worker could run the wrong one: give their "
            "functions different names."
        )
