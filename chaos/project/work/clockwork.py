"""Schedules: one due moment each second, and none may be missed or fire twice."""

from __future__ import annotations

from typing import Any

from chaos.project.work import ledger
from chaos.project.work.exactly import AGAIN, DEATHS
from django_once import scheduled_task, task


@scheduled_task(every="1s", name="clockwork", misfire="all", overlap="allow", catch_up="1h")
@task(queue_name="work", retry=AGAIN, max_deaths=DEATHS, takes_context=True)
def strike(context: Any) -> None:
    """Say that a moment came."""
    ledger.begun(context, 0)
