"""`once verify`: walks every rule over a period, and says what became of each moment."""

from __future__ import annotations

from typing import Any, Final

from django.core.management.base import CommandParser

from django_once import sql
from django_once.management.moments import since_when
from django_once.management.places import OK, PROBLEM
from django_once.management.screen import Cell, Column, Screen, add_json, iso, written
from django_once.models.schedule import edit
from django_once.scheduling.audit import Audit, verify
from django_once.scheduling.readings import homes
from django_once.sql.counts import moment_from_now

WATCHES: Final = True
LISTED: Final = 5
COLUMNS: Final = (
    Column("SCHEDULE"), Column("EXPECTED", is_number=True), Column("FIRED", is_number=True),
    Column("SKIPPED", is_number=True), Column("MISSING", is_number=True),
    Column("DOUBLED", is_number=True), Column("UNEXPECTED", is_number=True), Column("WHY"),
)  # fmt: skip


def add_arguments(parser: CommandParser) -> None:
    """Declare the period, and which schedules."""
    parser.add_argument("names", nargs="*", metavar="name", help="a schedule (default: all)")
    parser.add_argument(
        "--since", default="24h", help="how long ago, as in 24h, or a moment (default: 24h)"
    )
    add_json(parser)


def run(screen: Screen, options: dict[str, Any]) -> int:
    """Audit the schedules; the exit status says whether their books balance."""
    audits: list[Audit] = []
    for database in homes():
        now = moment_from_now(sql.on(database))
        since = since_when(options["since"], now)
        for schedule in edit.every(database):
            if not options["names"] or schedule.name in options["names"]:
                audits.append(verify(database, schedule, since, now))
    is_balanced = all(audit.is_balanced for audit in audits)
    if screen.is_json:
        screen.json({"balanced": is_balanced, "schedules": [_as_json(one) for one in audits]})
        return OK if is_balanced else PROBLEM
    if not audits:
        screen.say("There is no such schedule.")
        return OK
    screen.table(COLUMNS, [_row(audit) for audit in audits])
    for audit in audits:
        _tell(screen, audit)
    if is_balanced:
        screen.say("Every due moment fired once, or was left out for a reason.", "SUCCESS")
    return OK if is_balanced else PROBLEM


def _row(audit: Audit) -> list[Cell | str]:
    skipped = sum(audit.skipped.values())
    reasons = ", ".join(f"{count} {reason}" for reason, count in sorted(audit.skipped.items()))
    bad = [
        Cell(str(len(moments)), "ERROR" if moments else "")
        for moments in (audit.missing, audit.doubled, audit.unexpected)
    ]
    return [audit.name, str(audit.expected), str(audit.fired), str(skipped), *bad, reasons]


def _tell(screen: Screen, audit: Audit) -> None:
    if audit.problem:
        screen.say(f"{audit.name}: {audit.problem}", "ERROR")
    for word in ("missing", "doubled", "unexpected"):
        moments = getattr(audit, word)
        for moment in moments[:LISTED]:
            screen.say(f"{audit.name}: {word}: {written(moment)}", "ERROR")
        if len(moments) > LISTED:
            screen.say(f"{audit.name}: {word}: and {len(moments) - LISTED} more", "ERROR")
    if not audit.is_whole:
        screen.tell(f"{audit.name}: the evidence begins at {written(audit.begin)}.")


def _as_json(audit: Audit) -> dict[str, Any]:
    return {
        "name": audit.name, "evidence_from": iso(audit.begin), "until": iso(audit.end),
        "expected": audit.expected, "fired": audit.fired, "by_hand": audit.by_hand,
        "skipped": dict(audit.skipped), "problem": audit.problem,
        **{word: [iso(one) for one in getattr(audit, word)]
           for word in ("missing", "doubled", "unexpected")},
    }  # fmt: skip
