"""What was measured: one value, what it is held against, and whether it is good enough."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, Literal


@dataclass(frozen=True, slots=True)
class Gate:
    """The least or the most that a figure, or its ratio to the raw limit, may be."""

    of: Literal["value", "ratio"]
    least: float | None = None
    most: float | None = None

    def is_met_by(self, figure: Figure) -> bool:
        """Return whether a figure is good enough."""
        found = figure.value if self.of == "value" else figure.ratio
        if found is None:
            return False
        return (self.least is None or found >= self.least) and (
            self.most is None or found <= self.most
        )

    def __str__(self) -> str:
        sign, bound = ("≥", self.least) if self.least is not None else ("≤", self.most)
        what = "" if self.of == "value" else "× "
        return f"{what}{sign} {bound:,g}"


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of the table."""

    measure: str
    name: str
    value: float
    unit: str
    raw: float | None = None
    against: str = ""
    ratio: float | None = None
    gates: tuple[Gate, ...] = ()
    note: str = ""

    @property
    def is_met(self) -> bool | None:
        """Whether every gate is met, or None where there is none."""
        return all(gate.is_met_by(self) for gate in self.gates) if self.gates else None

    def as_json(self) -> dict[str, Any]:
        """Return it for programs."""
        return {
            "measure": self.measure, "name": self.name, "value": self.value, "unit": self.unit,
            "raw": self.raw, "against": self.against, "ratio": self.ratio,
            "gates": [str(gate) for gate in self.gates], "met": self.is_met, "note": self.note,
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class Pair:
    """What was reached and the limit, measured one right after the other; of several, medians."""

    value: float
    raw: float
    ratio: float


def paired(rounds: int, limit: Callable[[], float], reached: Callable[[], float]) -> Pair:
    """Measure both in turn, so that what disturbs the machine disturbs both; return medians."""
    pairs = [(limit(), reached()) for _ in range(rounds)]
    return Pair(
        value=median(value for _, value in pairs),
        raw=median(raw for raw, _ in pairs),
        ratio=median(value / raw for raw, value in pairs),
    )


def percentile(values: Sequence[float], part: float) -> float:
    """Return the value that this part of the values does not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(part * len(ordered)))]


def ratio(part: float = 0, *, of: float = 0) -> float:
    """Return a part of a whole, or 0 of nothing."""
    return part / of if of else 0.0
