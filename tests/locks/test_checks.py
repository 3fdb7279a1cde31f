"""What `manage.py check` says of locks."""

from __future__ import annotations

from django.db import connections

from django_once import checks, compat


def found():
    backend = compat.task_backends["default"]
    return [one for one in checks.check_backend(backend) if one.id == "once.W015"]


def test_W015_views_inside_a_transaction_are_warned_of(monkeypatch):
    monkeypatch.setitem(connections["default"].settings_dict, "ATOMIC_REQUESTS", True)

    (finding,) = found()

    assert "given back before" in finding.msg
    assert "non_atomic_requests" in finding.hint


def test_other_projects_are_not():
    assert found() == []
