"""Holding the series of jobs that a person wants changed, before the jobs are locked themselves."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from uuid import UUID

from django_once.sql.series import SeriesStatements, Stand, Turn
from django_once.sql.statements import Statements
from django_once.sql.values import CANCELLED


@dataclass(frozen=True, slots=True)
class Hold:
    """The turns of jobs with a key whose series are locked now, and the jobs of those that are
    somebody else's."""

    turns: Sequence[tuple[Turn, Stand]]
    busy: frozenset[UUID]

    @property
    def present(self) -> list[tuple[Turn, Stand]]:
        """The turns of jobs that their series stand at."""
        return [(turn, stand) for turn, stand in self.turns if stand.is_at(turn)]

    @property
    def superseded(self) -> frozenset[UUID]:
        """The jobs that their series have left behind."""
        return frozenset(turn.job for turn, stand in self.turns if not stand.is_at(turn))


def hold(statements: Statements, jobs: Sequence[UUID]) -> Hold:
    """Lock the series of these jobs, as far as nobody else has them; call it in a transaction."""
    series = SeriesStatements(statements)
    turns = series.turns(jobs) if jobs else []
    stands = free_stands(series, {(turn.backend, turn.key) for turn in turns})
    held = [
        (turn, stands[turn.backend, turn.key])
        for turn in turns
        if (turn.backend, turn.key) in stands
    ]
    busy = {turn.job for turn in turns} - {turn.job for turn, _ in held}
    return Hold(held, frozenset(busy))


def stop_cancelled(statements: Statements, held: Hold) -> None:
    """End the series whose present job was cancelled while they were held."""
    if not held.present:
        return
    series = SeriesStatements(statements)
    ends = series.ends([turn.job for turn, _ in held.present])
    for turn, stand in held.present:
        if ends.get(turn.job) == CANCELLED:
            series.stop(stand)


def free_stands(
    series: SeriesStatements, places: Iterable[tuple[str, str]]
) -> dict[tuple[str, str], Stand]:
    """Lock these series, as (backend, key), as far as they are free; return where they stand."""
    keys: dict[str, list[str]] = {}
    for backend, key in places:
        keys.setdefault(backend, []).append(key)
    found = [stand for backend in keys for stand in series.lock_free(backend, keys[backend])]
    return {(stand.backend, stand.key): stand for stand in found}
