"""`once doctor`: looks at settings, server and work, and says what is wrong and what to do.

The exit status is 1 when there is a warning or an error, 3 when a database cannot be reached.
"""

from __future__ import annotations

from dataclasses import asdict
from datetime import timedelta
from typing import Any, Final

from django.core.management.base import CommandParser

from django_once.checks import ours
from django_once.management.doctor import examined
from django_once.management.doctor.finding import ERROR, NOTE, OK, WARNING, Finding
from django_once.management.places import OK as WELL
from django_once.management.places import PROBLEM, UNREACHABLE, add_backend, backend_named
from django_once.management.screen import Screen, add_json, one_line
from django_once.management.selection import span

WATCHES: Final = True
LONG: Final = "60s"
MARKS: Final = {
    OK: ("✓", "SUCCESS"), NOTE: ("–", ""), WARNING: ("!", "WARNING"), ERROR: ("✗", "ERROR"),
}  # fmt: skip


def add_arguments(parser: CommandParser) -> None:
    """Declare whose health."""
    parser.add_argument(
        "--long", default=LONG, metavar=LONG,
        help=f"a transaction that is open for longer is a finding (default: {LONG})",
    )  # fmt: skip
    add_backend(parser)
    add_json(parser)


def run(screen: Screen, options: dict[str, Any]) -> int:
    """Look at everything; the exit status says whether something is wrong."""
    if options["backend"] and options["backend"] not in {one.alias for one in ours()}:
        # It says why; one of ours that is set up wrongly is what the doctor is for.
        backend_named(options["backend"])
    found = []
    long = span(options["long"], "--long") or timedelta(0)
    for finding in examined(options["backend"], long.total_seconds()):
        found.append(finding)
        if not screen.is_json:
            _tell(screen, finding)
    errors, warnings = (sum(one.level == level for one in found) for level in (ERROR, WARNING))
    is_well = not errors and not warnings
    if screen.is_json:
        findings = [asdict(one) for one in found]
        screen.json({"ok": is_well, "errors": errors, "warnings": warnings, "findings": findings})
    else:
        screen.say()
        if is_well:
            screen.say("All is well.", "SUCCESS")
        else:
            screen.say(f"Errors: {errors}, warnings: {warnings}.", "ERROR" if errors else "WARNING")
    if any(one.name == "reachable" for one in found):
        return UNREACHABLE
    return WELL if is_well else PROBLEM


def _tell(screen: Screen, finding: Finding) -> None:
    mark, role = MARKS[finding.level]
    says = one_line(finding.says)
    screen.say(f"{mark} {finding.name:<12} {says}{'' if says.endswith('.') else '.'}", role)
    if finding.remedy:
        screen.say(f"  {'':<12} {one_line(finding.remedy)}")
