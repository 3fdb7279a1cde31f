"""`once schedules`: what is due when, and runs that a person asks for.

Without an action it lists them all. `preview` shows the moments to come, also of a rule that is
only thought of; `run` runs one now; `backfill` runs what passed without a run; `pause` and `resume`
hold one back.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.conf import settings
from django.core.management.base import CommandError, CommandParser

from django_once import clock, sql
from django_once.definitions import schedule as rules
from django_once.definitions import timetable
from django_once.management.moments import since_when, until_when
from django_once.management.places import OK, PROBLEM, USAGE
from django_once.management.screen import Cell, Column, Screen, add_json, ago, iso, written
from django_once.management.steering import logged_in_shell
from django_once.models import Schedule
from django_once.models.schedule import edit
from django_once.models.schedule.due import as_due
from django_once.scheduling import audit, editing, readings, running
from django_once.scheduling.readings import homes
from django_once.sql.counts import moment_from_now

WATCHES: Final = True
ACTIONS: Final = ("list", "preview", "run", "backfill", "pause", "resume")
COLUMNS: Final = (
    Column("SCHEDULE"), Column("STATE"), Column("RULE"), Column("NEXT", is_number=True),
    Column("FIRED", is_number=True), Column("SKIPPED", is_number=True), Column("SOURCE"),
)  # fmt: skip
MOMENTS: Final = (Column("UTC"), Column("WALL"), Column("CLOCK"))
MOST_SHOWN: Final = 10


def add_arguments(parser: CommandParser) -> None:
    """Declare the action and what it needs."""
    add = parser.add_argument
    add("action", nargs="?", default="list", choices=ACTIONS, help="default: list")
    add("name", nargs="?", default="", help="the schedule's name")
    add("--cron", help="preview this expression")
    add("--every", help="preview this interval")
    add("--timezone", default="", help="the zone of --cron (default: TIME_ZONE)")
    add("--count", type=int, default=10, metavar="N", help="how many moments to preview")
    add("--from", dest="begin", default="", help="backfill from this moment on, or so long ago")
    add("--to", dest="end", default="", help="backfill until before this moment (default: now)")
    add("--rate", default="", metavar="30/m", help="spread a backfill: so many in a minute")
    add("--dry-run", action="store_true", help="show what a backfill would run")
    add("--reason", default="", help="why it is paused")
    add("--until", default="", help="until when it is paused")
    add("--yes", "-y", action="store_true", help="do not ask")
    add_json(parser)


def run(screen: Screen, options: dict[str, Any]) -> int:
    """Do what the action says."""
    if options["action"] == "list":
        return _list(screen)
    if options["action"] == "preview":
        return _preview(screen, options)
    if not options["name"]:
        raise CommandError(f"{options['action']} needs the name of a schedule.", returncode=USAGE)
    database, schedule = _named(options["name"])
    return {"run": _run, "backfill": _backfill, "pause": _pause, "resume": _resume}[
        options["action"]
    ](screen, options, database, schedule)


def _list(screen: Screen) -> int:
    found = [(database, one) for database in homes() for one in edit.every(database)]
    if screen.is_json:
        screen.json({"schedules": [_as_json(one) for _, one in found]})
    elif found:
        nows = {database: moment_from_now(sql.on(database)) for database in homes()}
        screen.table(COLUMNS, [_row(one, nows[database]) for database, one in found])
        for _, one in found:
            if one.problem:
                screen.say(f"{one.name}: {one.problem}", "ERROR")
    else:
        screen.say("There is no schedule. Declare one with @scheduled_task.")
    return PROBLEM if any(one.problem for _, one in found) else OK


def state_of(schedule: Schedule, now: datetime | None = None) -> str:
    """Return the word for where a schedule stands."""
    if not schedule.enabled:
        return "disabled"
    until = schedule.paused_until
    if schedule.paused_at is not None and (until is None or now is None or until > now):
        return "paused"
    if schedule.problem:
        return "broken"
    if schedule.source == Schedule.CODE and schedule.name not in timetable.declared():
        return "orphaned"
    return "over" if schedule.fires_at is None else "active"


def _row(schedule: Schedule, now: datetime) -> list[Cell | str]:
    state = state_of(schedule, now)
    return [
        schedule.name,
        Cell(state, {"active": "SUCCESS", "broken": "ERROR"}.get(state, "WARNING")),
        rule_in_words(schedule),
        ago(schedule.next_due_at, now),
        str(schedule.fired),
        str(schedule.skipped),
        schedule.source,
    ]


def rule_in_words(schedule: Schedule) -> str:
    """Return what a schedule's rule means, or what it says where it means nothing."""
    try:
        return readings.rule_of(as_due(schedule)).in_words()
    except ValueError:
        return schedule.cron or f"every {schedule.every}"


def _preview(screen: Screen, options: dict[str, Any]) -> int:
    if not 1 <= options["count"] <= 10_000:
        raise CommandError("--count must be from 1 to 10000.", returncode=USAGE)
    if options["name"]:
        database, schedule = _named(options["name"])
        rule = readings.rule_of(as_due(schedule))
        now = moment_from_now(sql.on(database))
    else:
        zone = options["timezone"] or settings.TIME_ZONE
        rule = rules.rule("", cron=options["cron"], every=options["every"], timezone=zone)
        now = clock.host_now()
    found = audit.upcoming(rule, now, options["count"])
    if screen.is_json:
        moments = [{"utc": iso(one.due_at), "wall": one.wall.isoformat(), "clock": one.kind,
                    "fires_at": iso(one.fires_at)} for one in found]  # fmt: skip
        screen.json({"rule": rule.in_words(), "moments": moments})
        return OK
    screen.say(rule.in_words())
    screen.table(
        MOMENTS,
        [
            [f"{one.due_at:%Y-%m-%d %H:%M:%S}", f"{one.wall:%a %Y-%m-%d %H:%M:%S %Z}", one.kind]
            for one in found
        ],
    )
    return OK


def _run(screen: Screen, options: dict[str, Any], database: str, schedule: Schedule) -> int:
    with logged_in_shell(database, "run", "schedule", schedule.name) as log:
        record = running.run_now(database, schedule.pk)
        log.tell(f"It runs now; its record is {record}.")
    if screen.is_json:
        screen.json({"record": str(record)})
    else:
        screen.say(f"{schedule.name} runs now; its record is {record}.", "SUCCESS")
    return OK


def _backfill(screen: Screen, options: dict[str, Any], database: str, schedule: Schedule) -> int:
    if not options["begin"]:
        raise CommandError("backfill needs --from.", returncode=USAGE)
    now = moment_from_now(sql.on(database))
    begin = since_when(options["begin"], now)
    end = since_when(options["end"], now) if options["end"] else _reached(schedule, now)
    rate = _rate(options["rate"])
    planned = running.backfill(database, schedule.pk, begin, end, dry_run=True)
    if not screen.is_json:
        screen.say(
            f"{len(planned.moments)} moments of {schedule.name} have no run; "
            f"{planned.ran_before} ran before."
        )
        for moment in planned.moments[:MOST_SHOWN]:
            screen.say(f"  {written(moment)}")
        if len(planned.moments) > MOST_SHOWN:
            screen.say(f"  and {len(planned.moments) - MOST_SHOWN} more")
    if not options["dry_run"]:
        if planned.moments and not options["yes"] and not screen.ask("Run them?"):
            return PROBLEM
        about = f"{schedule.name}: {begin:%Y-%m-%dT%H:%MZ} – {end:%Y-%m-%dT%H:%MZ}"
        with logged_in_shell(database, "backfill", "schedule", about) as log:
            bar = screen.progress("Running", len(planned.moments))
            planned = running.backfill(
                database, schedule.pk, begin, end, per_minute=rate, looked_at=bar.advance
            )
            bar.end()
            log.tell(f"{len(planned.moments)} runs were begun.", len(planned.moments))
    if screen.is_json:
        moments = [iso(one) for one in planned.moments]
        screen.json({"moments": moments, "ran_before": planned.ran_before})
    elif not options["dry_run"]:
        screen.say(f"{len(planned.moments)} runs were begun.", "SUCCESS")
    return OK


def _reached(schedule: Schedule, now: datetime) -> datetime:
    return min(now, schedule.next_due_at) if schedule.next_due_at is not None else now


def _rate(text: str) -> float | None:
    if not text:
        return None
    count, _, unit = text.partition("/")
    per_minute = {"s": 60.0, "m": 1.0, "h": 1 / 60, "": 1.0}.get(unit)
    if per_minute is None or not count.replace(".", "", 1).isdigit():
        raise CommandError(
            f"--rate is a number in a time, as in 30/m, got {text!r}.", returncode=USAGE
        )
    return float(count) * per_minute


def _pause(screen: Screen, options: dict[str, Any], database: str, schedule: Schedule) -> int:
    until = None
    if options["until"]:
        now = moment_from_now(sql.on(database))
        until = until_when(options["until"], now)
    reason = options["reason"]
    with logged_in_shell(database, "pause", "schedule", schedule.name, reason=reason) as log:
        editing.pause(database, schedule.pk, reason, until)
        log.tell("Paused.")
    screen.say(f"{schedule.name} is paused.")
    return OK


def _resume(screen: Screen, options: dict[str, Any], database: str, schedule: Schedule) -> int:
    with logged_in_shell(database, "resume", "schedule", schedule.name) as log:
        editing.resume(database, schedule.pk)
        log.tell("It fires again.")
    screen.say(f"{schedule.name} runs again.")
    return OK


def _named(name: str) -> tuple[str, Schedule]:
    for database in homes():
        schedule = edit.find(database, name)
        if schedule is not None:
            return database, schedule
    raise CommandError(f"There is no schedule {name!r}: see once schedules.", returncode=USAGE)


def _as_json(schedule: Schedule) -> dict[str, Any]:
    names = ("id", "name", "task", "cron", "every", "timezone", "queue", "priority", "backend",
             "overlap", "misfire", "source", "owner", "enabled", "pause_reason", "fired",
             "skipped", "problem")  # fmt: skip
    moments = ("next_due_at", "fires_at", "watermark", "evidence_from", "paused_at",
               "paused_until", "last_fired_at", "succeeded_at")  # fmt: skip
    said = {name: getattr(schedule, name) for name in names}
    said["id"] = str(UUID(str(schedule.pk)))
    return {
        **said, "state": state_of(schedule), "rule": rule_in_words(schedule),
        **{name: iso(getattr(schedule, name)) for name in moments},
    }  # fmt: skip
