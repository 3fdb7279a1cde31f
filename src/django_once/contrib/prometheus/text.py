"""The text format of Prometheus: families with their help and type, labels escaped, in order."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

PREFIX: Final = "django_once_"
CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
COUNTER, GAUGE, SUMMARY = "counter", "gauge", "summary"


@dataclass(slots=True)
class Family:
    """All samples of one name; of one set of labels there is one, the last that was said."""

    name: str
    kind: str
    help: str
    samples: dict[tuple[tuple[str, str], ...], float] = field(default_factory=dict)

    def set(self, value: float | None, **labels: object) -> None:
        """Say the value of these labels; what is not known is left out."""
        if value is not None and not math.isnan(value):
            self.samples[_key(labels)] = float(value)

    def add(self, value: float, **labels: object) -> None:
        """Add to the value of these labels."""
        key = _key(labels)
        self.samples[key] = self.samples.get(key, 0.0) + value


def written(families: Iterable[Family]) -> str:
    """Return the text of these families; one without samples is left out."""
    lines: list[str] = []
    for family in families:
        if not family.samples:
            continue
        name = PREFIX + family.name
        lines.append(f"# HELP {name} {_escaped(family.help, quotes=False)}")
        lines.append(f"# TYPE {name} {family.kind}")
        for labels, value in sorted(family.samples.items()):
            told = ",".join(f'{label}="{_escaped(text)}"' for label, text in labels)
            lines.append(
                f"{name}{{{told}}} {_number(value)}" if told else f"{name} {_number(value)}"
            )
    return "".join(f"{line}\n" for line in lines)


def quantiles(values: list[float], wanted: Iterable[float]) -> Mapping[float, float]:
    """Return the smallest values below which these shares of all lie."""
    ordered = sorted(values)
    return {
        share: ordered[min(len(ordered) - 1, max(0, math.ceil(share * len(ordered)) - 1))]
        for share in wanted
    }


def _key(labels: Mapping[str, object]) -> tuple[tuple[str, str], ...]:
    return tuple((name, str(value)) for name, value in labels.items())


def _escaped(text: str, *, quotes: bool = True) -> str:
    # No database of ours keeps a lone surrogate; a name in Python may hold one.
    clean = text.encode("utf-8", "backslashreplace").decode()
    clean = clean.replace("\\", r"\\").replace("\n", r"\n")
    return clean.replace('"', r"\"") if quotes else clean


def _number(value: float) -> str:
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return str(int(value)) if value.is_integer() and abs(value) < 2**53 else repr(value)
