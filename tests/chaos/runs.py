"""A small run as it would be written down, whose books balance; tests falsify one thing of it."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from types import SimpleNamespace
from typing import Any
from uuid import UUID

from chaos.verifier.books import STANDING
from chaos.verifier.facts import (
    FAILED,
    READY,
    RUNNING,
    SUCCESSFUL,
    Change,
    Effect,
    Facts,
    Job,
    Moment,
    Order,
    Series,
    Start,
    Write,
)

DELIVERIES = {"exactly": "exactly_once", "most": "at_most_once"}
PIDS = {"north": 101, "south": 202}


def name(number: int) -> str:
    return str(UUID(int=number))


WORKERS = {pid: name(9000 + pid) for pid in PIDS.values()}


class Written:
    """Writes down what a correct engine would leave behind."""

    def __init__(self) -> None:
        self.facts = Facts(workers={worker: pid for pid, worker in WORKERS.items()})
        self.facts.logged = Counter()
        self.facts.done = SimpleNamespace(counts=Counter(), kills=[], outages=[])
        self._at = 0.0

    def job(self, number: int, kind: str, *attempts: tuple[str, str]) -> None:
        """Write a job and its attempts: on which host each was made, and what it became."""
        facts, job = self.facts, name(number)
        history: list[dict[str, Any]] = []
        state: dict[str, Any] = {
            "became": READY,
            "claim": None,
            "fence": 0,
            "attempt": 0,
            "worker": None,
        }
        self._change(job, None, state, writer=1)
        for turn, (host, end) in enumerate(attempts, 1):
            pid = PIDS[host]
            begun = {
                "became": RUNNING, "claim": name(number * 100 + turn), "fence": turn,
                "attempt": turn, "worker": WORKERS[pid],
            }  # fmt: skip
            state = self._change(job, state, begun, writer=pid)
            facts.starts.append(Start(f"{number}-{turn}", job, turn, turn, pid))
            status, _, taken = end.partition(" ")
            ended = {**begun, "became": status, "worker": None}
            if taken:
                ended["claim"] = None
            if status != SUCCESSFUL:
                history.append({"worker": host, "kind": "lost" if taken else "raised"})
            state = self._change(job, state, ended, writer=303 if taken else pid)
        reason = "lost" if state["became"] == FAILED else ""
        delivery = DELIVERIES.get(kind, "at_least_once")
        facts.jobs[job] = Job(
            job,
            kind,
            state["became"],
            reason,
            delivery,
            len(attempts),
            len(attempts),
            tuple(history),
        )
        if kind in STANDING:
            turn = number % 10
            facts.jobs[job] = replace(
                facts.jobs[job],
                key="series" if kind == "tick" else None,
                generation=turn if kind == "tick" else 0,
            )
            return
        facts.orders.append(Order(number, kind, job))
        if kind == "exactly" and state["became"] == SUCCESSFUL:
            facts.effects.append(Effect(number, job, len(attempts)))

    def _change(
        self, job: str, was: dict[str, Any] | None, now: dict[str, Any], writer: int
    ) -> dict[str, Any]:
        self._at += 0.1
        before = was or {}
        self.facts.changes.append(
            Change(
                len(self.facts.changes),
                job,
                before.get("became"),
                now["became"],
                before.get("claim"),
                now["claim"],
                before.get("fence"),
                now["fence"],
                before.get("attempt"),
                now["attempt"],
                before.get("worker"),
                now["worker"],
                False,
                writer,
                self._at,
            )
        )
        return now


def balanced() -> Facts:
    """Return a run with every kind of end: at once, after a retry, taken from the dead, lost."""
    written = Written()
    written.job(1, "exactly", ("north", SUCCESSFUL))
    written.job(2, "exactly", ("north", "READY taken"), ("south", SUCCESSFUL))
    written.job(3, "least", ("south", READY), ("north", SUCCESSFUL))
    written.job(4, "least", ("south", SUCCESSFUL))
    written.job(5, "most", ("north", SUCCESSFUL))
    written.job(6, "most", ("south", "FAILED taken"))
    written.job(11, "tick", ("north", SUCCESSFUL))
    written.job(12, "tick", ("north", SUCCESSFUL))
    written.facts.series.append(Series("series", 2, name(12)))
    written.job(21, "strike", ("south", SUCCESSFUL))
    written.job(22, "strike", ("south", SUCCESSFUL))
    written.facts.moments += [
        Moment(100.0, None, "COMPLETED", "", name(21)),
        Moment(101.0, 103.0, "SKIPPED", "missed", None),
        Moment(104.0, None, "COMPLETED", "", name(22)),
    ]
    written.facts.undone.append(name(77))
    written.facts.writes += [
        Write("lock", 1, name(3), True), Write("lock", 1, name(3), True),
        Write("lock", 2, name(4), True), Write("lock", 1, name(3), False),
    ]  # fmt: skip
    return written.facts
