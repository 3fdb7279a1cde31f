"""Whose jobs a page shows: those of one backend, in the database where they are."""

from __future__ import annotations

from typing import Any, Final
from uuid import UUID

from django.core.exceptions import ValidationError
from django.db import connections, models
from django.http import HttpRequest

from django_once import checks
from django_once.backend import DatabaseBackend

BACKEND: Final = "backend"


def backends() -> list[DatabaseBackend]:
    """Return our backends whose settings are in order; `manage.py check` tells of the others."""
    return [
        backend
        for backend in checks.ours()
        if all(problem.kind == "key" for problem in backend.problems)
        and backend.settings.database in connections
    ]


def databases() -> list[str]:
    """Return the databases that hold jobs, each once."""
    return list(dict.fromkeys(backend.database for backend in backends()))


def backends_in(database: str) -> list[DatabaseBackend]:
    """Return the backends whose jobs are in this database."""
    return [backend for backend in backends() if backend.database == database]


def asked_backend(request: HttpRequest) -> DatabaseBackend | None:
    """Return the backend that the address of a page names, if there is one of this name."""
    alias = request.GET.get(BACKEND)
    return next((backend for backend in backends() if backend.alias == alias), None)


def database_of(request: HttpRequest) -> str | None:
    """Return the database that a page looks into: without a word, that of the first backend."""
    asked = asked_backend(request)
    if asked is not None:
        return asked.database
    return next(iter(databases()), None)


def found(rows: models.QuerySet[Any], id: str) -> Any:
    """Return the row of this id, in whichever database it is, or None."""
    try:
        key = UUID(id)
    except ValueError:
        return None
    for database in databases():
        row = rows.using(database).filter(pk=key).first()
        if row is not None:
            return row
    return None


def are_ids(texts: list[str]) -> bool:
    """Return whether these texts, which a form sent, are ids."""
    try:
        for text in texts:
            models.UUIDField().to_python(text)
    except ValidationError:
        return False
    return True
