"""Admitting: the first of those who wait at a gate get a place, as far as it lets them.

One short transaction for many gates: lock their rows, count their slots in a second statement,
decide, give places. A count in the same statement as the lock would be of the moment before the
lock was granted, and eight who admit at once would each find the same slot free.

No row stays locked while a body runs. A gate that somebody else has locked is tried again in a
moment, since whoever holds it may have counted before the slot was free; what is missed all the
same is found by the next sweep.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial
from typing import Any, Final

from django_once import payload, sql
from django_once.models.gate.share import Shares, needs_of
from django_once.sql.admission import (
    BY_HAND,
    TOUCHED,
    admit_at_once,
    can_admit_at_once,
)
from django_once.sql.gates import Candidate, Gate, GateStatements, Place, reason_of
from django_once.sql.repeat import repeated
from django_once.sql.values import LIMIT

MOST_GATES: Final = 200
MOST_PLACES: Final = 1_000
FEWEST_EACH: Final = 10
# Whoever holds a gate lets it go after a few statements.
PAUSES: Final = (0.0, 0.002, 0.005, 0.01, 0.02, 0.05)
# How soon a rate is looked at again at the soonest, so that a high one is used by the handful.
SHORTEST_WAIT: Final = 0.02
# By how many microseconds those who admit may come late without a rate being less for it.
LATENESS: Final = 200_000
# How long a gate is kept that nobody used: longer than any rate needs to be full again.
KEPT: Final = timedelta(hours=1)


@dataclass(slots=True)
class Decision:
    """Who passes which gate, and where the gates stand after that."""

    places: list[Place] = field(default_factory=list)
    moved: dict[str, Gate] = field(default_factory=dict)
    admitted: int = 0
    # Gates at which more may wait than were looked at.
    again: set[str] = field(default_factory=set)


def admit(database: str, backend: str, gates: Iterable[str]) -> int:
    """Give those who wait at these gates a place, as far as they may pass; count them."""
    wanted = sorted(set(gates))
    admitted = 0
    for begin in range(0, len(wanted), MOST_GATES):
        admitted += _admit_patiently(database, backend, wanted[begin : begin + MOST_GATES])
    return admitted


def admit_free(database: str, backend: str, gates: Iterable[str]) -> tuple[int, set[str]]:
    """Do what `admit` does at those gates that nobody has locked; return the others as well.

    For whoever has other things to do than to wait for a gate, and comes back to it.
    """
    statements = sql.on(database)
    of_backend = GateStatements(statements, backend)
    wanted, admitted, busy = sorted(set(gates)), 0, set[str]()
    for begin in range(0, len(wanted), MOST_GATES):
        names = wanted[begin : begin + MOST_GATES]
        while names:
            decision, others = _admit_some(of_backend, names)
            admitted += decision.admitted
            busy |= others
            names = sorted(decision.again - others)
    return admitted, busy


def admit_waiting(database: str, backend: str, after: str = "") -> tuple[int, str]:
    """Admit at the next gates at which anybody waits: the net under all who should have.

    Returns how many passed, and the gate to go on after; "" when all were looked at.
    """
    statements = GateStatements(sql.on(database), backend)
    gates = statements.with_waiting(after, MOST_GATES)
    admitted = admit(database, backend, gates)
    return admitted, gates[-1] if len(gates) == MOST_GATES else ""


def forget_gates(database: str, backend: str, most: int) -> int:
    """Delete up to so many gates at which nobody waits and of which nothing is remembered."""
    statements = sql.on(database)
    return repeated(
        statements.connection, partial(_forget, GateStatements(statements, backend), most)
    )


def _forget(gates: GateStatements, most: int) -> int:
    with gates.statements.together():
        unused = gates.lock_unused(KEPT.total_seconds(), most)
        return gates.forget(unused) if unused else 0


def _admit_patiently(database: str, backend: str, gates: list[str]) -> int:
    of_backend = GateStatements(sql.on(database), backend)
    admitted = 0
    pauses = iter(PAUSES)
    while gates:
        decision, busy = _admit_some(of_backend, gates)
        admitted += decision.admitted
        if busy:
            pause = next(pauses, None)
            if pause is None:
                break
            time.sleep(pause)
        gates = sorted({*busy, *decision.again})
    return admitted


def _admit_some(gates: GateStatements, names: Sequence[str]) -> tuple[Decision, set[str]]:
    admit_them = _admit_at_once if can_admit_at_once(gates) else _admit_free
    return repeated(gates.statements.connection, partial(admit_them, gates, names))


def _admit_at_once(gates: GateStatements, names: Sequence[str]) -> tuple[Decision, set[str]]:
    """Do what `_admit_free` does, in one statement where a count is all that is needed."""
    limits = [name for name in names if reason_of(name) == LIMIT]
    each = max(FEWEST_EACH, MOST_PLACES // max(1, len(limits)))
    came_to, passed = admit_at_once(gates, limits, each) if limits else ({}, Counter[str]())
    by_hand = sorted(set(names) - set(limits) | {n for n in limits if came_to.get(n) == BY_HAND})
    decision, busy = _admit_free(gates, by_hand) if by_hand else (Decision(), set[str]())
    decision.admitted += passed.total()
    decision.again |= {name for name, count in passed.items() if count >= each}
    busy |= {name for name in limits if came_to.get(name) == TOUCHED}
    return decision, busy | _begun(gates, set(limits) - set(came_to))


def _admit_free(gates: GateStatements, names: Sequence[str]) -> tuple[Decision, set[str]]:
    """Admit at those of these gates that nobody has locked; return the others as well."""
    with gates.statements.planned():
        locked = gates.lock_free(names)
        busy = _begun(gates, set(names) - set(locked))
        if not locked:
            return Decision(), busy
        waited_at = gates.waited_at(sorted(locked))
        if not waited_at:
            return Decision(), busy
        held = {name: slots for name, (_, slots) in waited_at.items()}
        each = max(FEWEST_EACH, MOST_PLACES // len(waited_at))
        rooms = {name: room(rule, slots, each) for name, (rule, slots) in waited_at.items()}
        wanted = {name: most for name, most in rooms.items() if most}
        candidates = gates.waiting(wanted) if wanted else []
        candidates, missing = _with_their_shares(gates, candidates, locked)
        if not candidates:
            return Decision(), busy | missing
        decision = decide(candidates, locked, held, Shares(locked, gates.heads(locked)), each)
        if decision.places:
            gates.place(decision.places)
        if decision.moved:
            gates.move([decision.moved[name] for name in sorted(decision.moved)])
    return decision, busy | missing


def room(rule: str, held: int, most: int) -> int:
    """Return how many more the first who waits would let pass, and whoever says the same."""
    concurrency = payload.decode(rule).get("concurrency")
    return most if concurrency is None else min(most, max(0, concurrency - held))


def _begun(gates: GateStatements, missing: set[str]) -> set[str]:
    """Let there be a row for each of these, so that it can be locked the next time."""
    if missing:
        unknown = missing - gates.known(sorted(missing))
        if unknown:
            gates.begin(sorted(unknown))
    return missing


def _with_their_shares(
    gates: GateStatements, candidates: list[Candidate], locked: dict[str, Gate]
) -> tuple[list[Candidate], set[str]]:
    """Lock what the shares of these need; return who can be placed, and the gates of the others."""
    needed = needs_of(candidates) - set(locked)
    if not needed:
        return candidates, set()
    locked.update(gates.lock_free(sorted(needed)))
    lacking = _begun(gates, needed - set(locked))
    late = {one.gate for one in candidates if needs_of([one]) & lacking}
    return [one for one in candidates if one.gate not in late], late


def decide(
    candidates: Sequence[Candidate], gates: dict[str, Gate], held: dict[str, int],
    shares: Shares, each: int,
) -> Decision:  # fmt: skip
    """Return who passes, in the order in which they wait; nobody overtakes at a gate."""
    decision = Decision()
    passed: dict[str, int] = {}
    closed: set[str] = set()
    for candidate in candidates:
        name = candidate.gate
        if name in closed:
            continue
        rule = payload.decode(candidate.rule)
        most = rule.get("concurrency")
        gate = decision.moved.get(name, gates[name])
        if most is not None and held.get(name, 0) + passed.get(name, 0) >= most:
            closed.add(name)
            continue
        free_at, wait = begins(gate.free_at, rule, candidate.came_at, gate.now)
        if wait > 0:
            # It comes again by itself when the rate lets it, and the others after it.
            decision.places.append(Place(candidate.id, delay=max(wait, SHORTEST_WAIT)))
            closed.add(name)
            continue
        position = None
        if candidate.fair_key is not None:
            position = shares.position(candidate, rule.get("weight", 1))
            if position is None:
                closed.add(name)
                continue
        decision.moved[name] = replace(gate, free_at=free_at)
        decision.places.append(Place(candidate.id, position=position))
        passed[name] = passed.get(name, 0) + 1
    decision.moved |= shares.moved
    decision.admitted = sum(passed.values())
    decision.again = {name for name, count in passed.items() if count >= each} - closed
    return decision


def begins(free_at: int, rule: dict[str, Any], came_at: int, now: int) -> tuple[int, float]:
    """Return when a rate is free again if this job begins now, and how many seconds it must wait.

    Each that begins moves the gate one interval on, from where it stands or from when the job was
    wished for, not from now: whoever admits comes a little late each time, and the rate would be
    less. So much is made up for, and no more: what a long stop has missed is not run in a bunch.
    """
    interval = rule.get("interval")
    if interval is None:
        return free_at, 0.0
    step = round(interval * 1_000_000)
    stands = max(free_at, min(came_at, now), now - max(step, LATENESS))
    wait = stands - now - step * (rule["burst"] - 1)
    return (free_at, wait / 1_000_000) if wait > 0 else (stands + step, 0.0)
