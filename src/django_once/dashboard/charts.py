"""Charts: figures of stretches of time, as the numbers of an SVG that the server draws.

No text stands within a drawing, so it may be as wide as the page; its axes are the page's own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from django_once import sql
from django_once.management.screen import length
from django_once.sql import samples
from django_once.sql.samples import MOST_IN_ONE, Ended

HEIGHT: Final = 100.0
STEP: Final = 10.0
# How far back a chart looks: the length of a stretch, and how many there are.
RANGES: Final = {
    "1h": (timedelta(minutes=1), 60),
    "6h": (timedelta(minutes=6), 60),
    "24h": (timedelta(minutes=30), 48),
    "7d": (timedelta(hours=3), 56),
}
_NICE: Final = (1, 2, 4, 6, 8, 10)
_SPANS: Final = (
    0.001, 0.002, 0.004, 0.01, 0.02, 0.04, 0.06, 0.1, 0.2, 0.4, 0.6, 1, 2, 4, 6, 10, 20, 30, 60,
    120, 240, 600, 1200, 2400, 3600, 7200, 14400, 28800, 43200, 86400, 172800, 345600, 604800,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Bar:
    """A rectangle of a drawing."""

    kind: str
    x: str
    y: str
    width: str
    height: str


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a drawing: what it shows, and its path."""

    kind: str
    path: str


@dataclass(frozen=True, slots=True)
class Row:
    """What a chart says of one stretch, in words."""

    at: datetime
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Chart:
    """A drawing with its axes, its legend, and the same as a table."""

    title: str
    note: str
    kinds: tuple[tuple[str, str], ...]
    width: str
    top: str
    middle: str
    begin: datetime
    half: datetime
    end: datetime
    bars: tuple[Bar, ...]
    lines: tuple[Line, ...]
    rows: tuple[Row, ...]

    @property
    def is_empty(self) -> bool:
        """Whether nothing happened in all this time."""
        return not self.rows


@dataclass(slots=True)
class Stretch:
    """What happened in one stretch of time."""

    at: datetime
    successful: float = 0.0
    failed: float = 0.0
    waited: tuple[float, ...] = ()
    ran: tuple[float, ...] = ()


def stretches(database: str, now: datetime, word: str) -> tuple[list[Stretch], timedelta]:
    """Return what ended in each stretch of a range, judged by samples where much did."""
    length, count = RANGES[word]
    seconds = length.total_seconds()
    past = now.timestamp() % seconds
    begin = now - timedelta(seconds=past) - length * (count - 1)
    statements = sql.on(database)
    found = [Stretch(begin + length * n) for n in range(count)]
    sampled: list[list[Ended]] = [[] for _ in range(count)]
    for one in samples.ended(statements, begin, length, count):
        sampled[one.stretch].append(one)
    failed = samples.failed(statements, begin, length)
    for n, stretch in enumerate(found):
        _judge(stretch, sampled[n], failed.get(n, 0), past if n == count - 1 else seconds)
    return found, length


def throughput(found: Sequence[Stretch], length: timedelta) -> Chart:
    """Return how many jobs ended in each stretch, well or not."""
    top = _nice(max(one.successful + one.failed for one in found))
    bars = []
    for n, one in enumerate(found):
        low = HEIGHT
        for kind, value in (("failed", one.failed), ("successful", one.successful)):
            size = HEIGHT * value / top
            if value:
                size = max(size, 1.5)
                low -= size
                bars.append(Bar(kind, _n(n * STEP + 1), _n(low), _n(STEP - 2), _n(size)))
    rows = tuple(
        Row(one.at, (_count(one.successful), _count(one.failed)))
        for one in found if one.successful or one.failed
    )  # fmt: skip
    ended = sum(one.successful + one.failed for one in found)
    return _chart(
        f"Ended in each {_of(length)}", f"{_count(ended)} in all",
        (("successful", "successful"), ("failed", "failed")), found, length,
        (_count(top), _count(top / 2)), bars, (), rows,
    )  # fmt: skip


def waiting(found: Sequence[Stretch], length: timedelta) -> Chart:
    """Return how long jobs waited until they were first started."""
    values = [one.waited for one in found]
    return _latency("Waited for a worker", found, length, values)


def running(found: Sequence[Stretch], length: timedelta) -> Chart:
    """Return how long the last attempts of jobs ran."""
    return _latency("Ran", found, length, [one.ran for one in found])


def _latency(
    title: str, found: Sequence[Stretch], step: timedelta, values: Sequence[tuple[float, ...]]
) -> Chart:
    middle = [_share(one, 0.5) for one in values]
    late = [_share(one, 0.95) for one in values]
    top = _nice_span(max([one for one in late if one is not None], default=0.0))
    lines = (Line("late", _path(late, top)), Line("middle", _path(middle, top)))
    rows = tuple(
        Row(stretch.at, (_seconds(one), _seconds(other)))
        for stretch, one, other in zip(found, middle, late, strict=True)
        if one is not None and other is not None
    )
    everything = [one for some in values for one in some]
    half = _share(tuple(sorted(everything)), 0.5)
    note = "" if half is None else f"half within {_seconds(half)}"
    return _chart(
        title, note, (("middle", "half of them within"), ("late", "95 % within")), found, step,
        (_seconds(top), _seconds(top / 2)), (), lines, rows,
    )  # fmt: skip


def _chart(
    title: str, note: str, kinds: tuple[tuple[str, str], ...], found: Sequence[Stretch],
    step: timedelta, axis: tuple[str, str], bars: Sequence[Bar], lines: tuple[Line, ...],
    rows: tuple[Row, ...],
) -> Chart:  # fmt: skip
    return Chart(
        title, note, kinds, _n(len(found) * STEP), *axis, found[0].at,
        found[len(found) // 2].at, found[-1].at + step, tuple(bars), lines, tuple(reversed(rows)),
    )  # fmt: skip


def _judge(stretch: Stretch, sample: list[Ended], failed: int, seconds: float) -> None:
    """Write down what a sample says of a whole stretch."""
    total = float(len(sample))
    if len(sample) >= MOST_IN_ONE:
        reached = max(one.at for one in sample)
        # Many jobs share one moment, since they are settled in batches.
        total = max(total, total * seconds / max(reached, seconds / 10_000))
    stretch.failed = float(failed)
    stretch.successful = max(0.0, total - failed)
    stretch.waited = tuple(sorted(one.waited for one in sample if one.waited is not None))
    stretch.ran = tuple(sorted(one.ran for one in sample if one.ran is not None))


def _share(values: tuple[float, ...], share: float) -> float | None:
    return values[min(len(values) - 1, int(len(values) * share))] if values else None


def _path(values: Sequence[float | None], top: float) -> str:
    """Return the path of a line, with gaps where there is nothing to say."""
    parts = []
    for n, value in enumerate(values):
        if value is None:
            continue
        x, y = n * STEP + STEP / 2, HEIGHT - HEIGHT * min(1.0, value / top)
        has_one_before = n > 0 and values[n - 1] is not None
        has_one_behind = n + 1 < len(values) and values[n + 1] is not None
        if has_one_before:
            parts.append(f"L{_n(x)} {_n(y)}")
        elif has_one_behind:
            parts.append(f"M{_n(x)} {_n(y)}")
        else:
            # A point alone would not be seen: it is drawn as wide as its stretch.
            parts.append(f"M{_n(x - STEP / 2)} {_n(y)}h{_n(STEP)}")
    return "".join(parts)


def _nice(value: float) -> float:
    """Return the next number that reads well on an axis."""
    size = 1.0
    while size * 10 < value:
        size *= 10
    return next(size * one for one in _NICE if size * one >= value * 0.999999)


def _nice_span(seconds: float) -> float:
    """Return the next length of time that reads well on an axis, as does its half."""
    return next((one for one in _SPANS if one >= seconds * 0.999999), seconds)


def _count(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 or value == int(value) else f"{value:.1f}"


def _seconds(value: float) -> str:
    if value < 1:
        return f"{value * 1000:,.0f} ms" if value >= 0.01 else f"{value * 1000:.1f} ms"
    return length(value)


def _of(length: timedelta) -> str:
    minutes = int(length.total_seconds() // 60)
    if minutes == 1:
        return "minute"
    return f"{minutes} minutes" if minutes < 60 else f"{minutes // 60} hours"


def _n(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")
