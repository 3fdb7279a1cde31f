"""What a person is told of workers that are stopping, and of those that have stopped."""

from __future__ import annotations

from django_once.processes.board import Board
from django_once.processes.plan import Plan


def stopping(plan: Plan, bodies: int) -> str:
    """Return what is waited for, and how to wait no longer."""
    return (
        f"worker {plan.name} is stopping: {_count(bodies, 'body has', 'bodies have')} "
        f"{plan.drain_timeout:g} s to end. A second signal ends them at once."
    )


def stopped(plan: Plan, memory: Board, cut: int) -> str:
    """Return how much was done, and what became of bodies that had no time to end."""
    jobs = sum(place.ended for place in memory.places)
    said = f"worker {plan.name} has stopped after {_count(jobs, 'job', 'jobs')}."
    if not cut:
        return said
    bodies = _count(cut, "body was", "bodies were")
    theirs = "its job begins" if cut == 1 else "their jobs begin"
    return f"{said} {bodies} cut short; {theirs} again, but not under at_most_once."


def starting_anew(plan: Plan, path: object) -> str:
    """Return why these workers give way to others."""
    return f"{path} has changed: worker {plan.name} starts anew."


def not_starting_anew(plan: Plan, path: object) -> str:
    """Return what happens while the changed code cannot be loaded."""
    return (
        f"{path} has changed, but the code cannot be loaded: worker {plan.name} goes on with the "
        "old until it can."
    )


def _count(number: int, one: str, several: str) -> str:
    return f"{number:,} {one if number == 1 else several}"
