"""The timetable: the schedules that the loaded code declares, by their names."""

from __future__ import annotations

from django_once.definitions.schedule import Declared
from django_once.errors import InvalidOption

_declared: dict[str, Declared] = {}


def declare(schedule: Declared) -> None:
    """Take a schedule into the timetable; a name that another task has is refused."""
    known = _declared.get(schedule.name)
    if known is not None and known.task != schedule.task:
        raise InvalidOption(
            f"Two schedules are called {schedule.name!r}: one of {known.task} and one of "
            f"{schedule.task}. Give each a name of its own."
        )
    if known is not None and known != schedule:
        raise InvalidOption(
            f"Task {schedule.task} has two schedules called {schedule.name!r} with different "
            "words: give one of them another name."
        )
    _declared[schedule.name] = schedule


def declared() -> dict[str, Declared]:
    """Return every declared schedule by its name."""
    return dict(_declared)


def forget(name: str) -> None:
    """Take a schedule out, for tests and for code that is loaded anew."""
    _declared.pop(name, None)
