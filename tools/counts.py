"""Counts of tests, read from the report that pytest writes for machines."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Iterable
from xml.etree import ElementTree


@dataclass(frozen=True)
class Counts:
    """How many tests passed, failed (errors are failures) and were skipped."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0

    @property
    def total(self) -> int:
        return self.passed + self.failed + self.skipped

    @property
    def line(self) -> str:
        """Return the line that everything ends with, for people and for machines."""
        return "%d passed, %d failed, %d skipped" % (self.passed, self.failed, self.skipped)


def read_counts(report: Path) -> Counts | None:
    """Return the counts of one report; None when it is not there or not whole."""
    try:
        cases = list(ElementTree.parse(str(report)).iter("testcase"))
    except (OSError, ElementTree.ParseError):
        return None
    failed = sum(1 for case in cases if is_any(case, ("failure", "error")))
    skipped = sum(
        1 for case in cases if is_any(case, ("skipped",)) and not is_any(case, ("failure", "error"))
    )
    return Counts(len(cases) - failed - skipped, failed, skipped)


def total(counts: Iterable[Counts]) -> Counts:
    every = list(counts)
    return Counts(
        sum(one.passed for one in every),
        sum(one.failed for one in every),
        sum(one.skipped for one in every),
    )


def is_any(case: ElementTree.Element, names: Iterable[str]) -> bool:
    return any(case.find(name) is not None for name in names)
