"""Tasks under limits, shares and uniqueness, each as small as its test allows."""

from __future__ import annotations

import os
import time

from django_once import Breaker, Limit, Retry, RetryBudget, Unique, task
from tests.processes import ledger


@task(limit=Limit("three", concurrency=3))
def one_of_three(number: int = 0) -> int:
    return number


@task(limit=Limit("tenant:{tenant}", concurrency=2))
def of_tenant(tenant: int, number: int = 0) -> int:
    return number


@task(limit=Limit("slow", rate="30/m"))
def twice_a_minute(number: int = 0) -> int:
    return number


@task(unique="charge:{order}")
def charge(order: int, amount: int = 0) -> int:
    return amount


@task(unique=Unique("mail:{user}", until="started"))
def mail(user: int) -> int:
    return user


@task(unique=Unique("report:{day}", on_conflict="replace"))
def report(day: str, pages: int = 1) -> int:
    return pages


@task(unique=Unique("pay:{order}", on_conflict="raise"))
def pay(order: int) -> int:
    return order


@task(unique=Unique(window="10m"))
def once_in_ten_minutes(number: int = 0) -> int:
    return number


@task(unique="index:{product}", debounce="30s")
def reindex(product: int, fields: list[str]) -> list[str]:
    return fields


@task(unique="alert:{host}", cooldown="1h")
def alert(host: str, load: int) -> int:
    return load


@task(fair_key="tenant:{tenant}", weight={"tenant:1": 3})
def shared(tenant: int, number: int = 0) -> int:
    return tenant


@task(limit=Limit("mill", concurrency=4), fair_key="tenant:{tenant}")
def shared_and_limited(tenant: int) -> int:
    return tenant


@task(limit=Limit("door", concurrency=3))
def pass_the_door(number: int, seconds: float) -> None:
    ledger.write("in", str(number))
    from django_once.models import Job

    inside = Job.objects.filter(gate="limit:door", status=Job.RUNNING).count()
    ledger.write("inside", str(inside))
    time.sleep(seconds)
    ledger.write("out", str(number))


@task(limit=Limit("tap", rate="20/s"))
def drip(number: int) -> None:
    ledger.write("drip", str(number))


@task(fair_key="{tenant}", weight={"heavy": 3})
def serve(tenant: str, number: int) -> None:
    ledger.write("served", tenant)
    time.sleep(0.004)


@task(retry=Retry(max_attempts=9, base="1h"), breaker=Breaker(failures=5, within="5m", reopen="3s"))
def fail_until(path: str, number: int) -> None:
    ledger.write("tried", str(number))
    if not os.path.exists(path):
        raise ConnectionError("The partner is down.")


@task
def noted(tag: str) -> None:
    ledger.write("ran", tag)


@task(retry=Retry(max_attempts=9, base="1s", jitter=0), breaker=Breaker(failures=3, reopen="30s"))
def call_partner(number: int = 0) -> int:
    ledger_of_calls.append(number)
    if partner_is_down:
        raise ConnectionError("The partner is down.")
    return number


@task(breaker=Breaker(failures=2, share=0.5), retry_budget=0.25)
def half_fails(fails: bool) -> None:
    if fails:
        raise ConnectionError("The partner is down.")


@task(
    retry=Retry(max_attempts=50, base="10s", factor=1, jitter=0),
    retry_budget=RetryBudget(0.5, within="1m", least=2),
)
def retry_a_little(fails: bool = True) -> None:
    ledger_of_calls.append(fails)
    if fails:
        raise ConnectionError("No.")


@task(
    retry=Retry(max_attempts=50, base="1s", factor=1, jitter=0),
    retry_budget=RetryBudget(0.1, least=1, beyond="end"),
)
def retry_or_end() -> None:
    raise ConnectionError("No.")


# What the bodies above were called with, and whether they fail: tests of one process say so.
ledger_of_calls: list[object] = []
partner_is_down: list[bool] = []
