"""The closing table of `dev.py test`: one row per target, none left out, and the line of counts."""

from __future__ import annotations

import json
import platform
import textwrap
from pathlib import Path
from typing import Sequence

from tools.counts import Counts, total
from tools.progress import sign
from tools.runs import Ended
from tools.targets import NotTested

HEADER = ("target", "server", "where from", "python · django", "tests", "time", "result")
NUMBERS = (4, 5)
WRAP_AT = 70


def table(ended: Sequence[Ended], not_tested: Sequence[NotTested], sqlite: str) -> list[str]:
    """Return the lines of the table."""
    none = sign("–", "-")
    rows = [row_of(one, sqlite) for one in ended]
    rows += [(one.name, none, none, none, none, none, verdict_of(one)) for one in not_tested]
    widths = [max(len(row[column]) for row in [HEADER, *rows]) for column in range(6)]
    lines = []
    for row in [HEADER, *rows]:
        cells = [
            cell.rjust(width) if column in NUMBERS else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(row, widths))
        ]
        first, *more = row[6].splitlines() or [""]
        lines.append("  ".join([*cells, first]))
        indent = sum(widths) + 2 * len(widths)
        lines += [" " * indent + line for line in more]
    return [line.rstrip() for line in lines]


def row_of(one: Ended, sqlite: str) -> tuple[str, ...]:
    target = one.target
    none = sign("–", "-")
    if target.server is not None:
        server, origin = target.server.title, target.server.origin
    else:
        is_sqlite = target.name == "sqlite"
        server, origin = (sqlite, "standard library") if is_sqlite else (none, none)
    tests = "{:,}".format(one.counts.total)
    minutes, seconds = divmod(int(round(one.seconds)), 60)
    time = "%d:%02d" % (minutes, seconds)
    return target.title, server, origin, target.python_and_django, tests, time, verdict(one)


def verdict(one: Ended) -> str:
    if one.complaint:
        return "FAILED: " + one.complaint
    if one.counts.failed:
        return "FAILED: %d" % one.counts.failed
    return "passed" + (", %d skipped" % one.counts.skipped if one.counts.skipped else "")


def verdict_of(one: NotTested) -> str:
    text = "NOT TESTED: %s." % one.reason.rstrip(".")
    lines = textwrap.wrap(text, WRAP_AT) + textwrap.wrap("Remedy: %s" % one.remedy, WRAP_AT)
    return "\n".join(lines)


def summary(counts: Counts, not_tested: Sequence[NotTested]) -> str:
    """Return the sum of everything for a reader; the plain line of counts comes after it."""
    dot = sign(" · ", " | ")
    parts = ["{:,} passed".format(counts.passed), "{:,} failed".format(counts.failed)]
    if not_tested:
        noun = "target" if len(not_tested) == 1 else "targets"
        parts.append("%d %s NOT TESTED (see above)" % (len(not_tested), noun))
        parts.append("--require all makes that an error")
    return dot.join(parts)


def write_json(
    path: Path, ended: Sequence[Ended], not_tested: Sequence[NotTested], sqlite: str
) -> None:
    """Write what the table says for machines."""
    counts = total(one.counts for one in ended)
    rows = []
    for one in ended:
        server = one.target.server
        rows.append(
            {
                "target": one.target.name,
                "group": one.target.group,
                "server": server.title
                if server
                else sqlite
                if one.target.name == "sqlite"
                else None,
                "where_from": server.origin if server else None,
                "python": one.target.environment.interpreter.version_text,
                "django": one.target.environment.version_of("django"),
                "passed": one.counts.passed,
                "failed": one.counts.failed,
                "skipped": one.counts.skipped,
                "seconds": round(one.seconds, 1),
                "complaint": one.complaint,
            }
        )
    missing = [
        {"target": one.name, "group": one.group, "reason": one.reason, "remedy": one.remedy}
        for one in not_tested
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    report = {
        "passed": counts.passed,
        "failed": counts.failed,
        "skipped": counts.skipped,
        "platform": platform.platform(),
        "targets": rows,
        "not_tested": missing,
    }
    path.write_text(json.dumps(report, indent=2) + "\n")
