"""Logs that know their job: a filter for records made inside a body, and a formatter for programs.

LOGGING = {
    "version": 1,
    "filters": {"job": {"()": "django_once.contrib.logs.JobFilter"}},
    "formatters": {"json": {"()": "django_once.contrib.logs.JSONFormatter"}},
    "handlers": {"out": {"class": "logging.StreamHandler", "filters": ["job"],
                         "formatter": "json"}},
    "root": {"handlers": ["out"], "level": "INFO"},
}
"""

from __future__ import annotations

import json
import logging
import re
import traceback
from datetime import UTC, datetime
from typing import Any, Final

from django_once import surroundings

FIELDS: Final = ("job", "task", "queue", "attempt", "fence")
# The lines of Django's tasks and ours say their fields so.
NAMED: Final = re.compile(r"(\w+)=%[rs]")
LOGGERS: Final = ("django_once", "django.tasks", "django_tasks")
_STANDARD: Final = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
_AS_WE_SAY: Final = {"id": "job", "path": "task"}


class JobFilter(logging.Filter):
    """Gives each record the job, task, queue, attempt and fence of the body that made it.

    None of them where no body runs. It lets every record pass.
    """

    def __init__(self, name: str = "") -> None:
        super().__init__(name)
        surroundings.ask()

    def filter(self, record: logging.LogRecord) -> bool:
        """Add what is not said yet."""
        attempt = surroundings.attempt()
        known = fields_of(attempt) if attempt is not None else dict.fromkeys(FIELDS)
        for name, value in known.items():
            if getattr(record, name, None) is None:
                setattr(record, name, value)
        return bool(super().filter(record))


class JSONFormatter(logging.Formatter):
    """Writes a record as one line of JSON: time, level, logger, message, fields, exception."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        told: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="microseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        told |= _said(record)
        told |= {name: value for name, value in vars(record).items()
                 if name not in _STANDARD and name not in told and value is not None}  # fmt: skip
        if record.exc_info and record.exc_info[1] is not None:
            told["exception"] = "".join(traceback.format_exception(record.exc_info[1]))
        return json.dumps(told, ensure_ascii=False, default=str)


def fields_of(attempt: Any) -> dict[str, Any]:
    """Return what a record says of an attempt."""
    return {
        "job": str(attempt.id), "task": attempt.task, "queue": attempt.queue,
        "attempt": attempt.attempt, "fence": attempt.fence,
    }  # fmt: skip


def _said(record: logging.LogRecord) -> dict[str, Any]:
    """Return the fields that a line of ours, or of Django's tasks, has in its text."""
    if record.name not in LOGGERS or not isinstance(record.args, tuple):
        return {}
    event = re.match(r"[a-z_]+\.[a-z_]+", str(record.msg))
    said: dict[str, Any] = {"event": event[0]} if event else {}
    for name, value in zip(NAMED.findall(str(record.msg)), record.args, strict=False):
        said[_AS_WE_SAY.get(name, name)] = value if isinstance(value, (int, float)) else str(value)
    return said
