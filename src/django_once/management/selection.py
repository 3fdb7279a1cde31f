"""Which jobs a command means: by ids, of which a beginning suffices, or by what they share.

Whoever changes jobs says first how many, and asks. It then walks them in pages of ids, each seen
once, up to the moment at which it began: a job that fails again at once is not retried for ever.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, Final
from uuid import UUID

from django.core.management.base import CommandError, CommandParser

from django_once import clock
from django_once.management.places import OK, PROBLEM, USAGE, Place, places
from django_once.management.screen import Screen, printable
from django_once.models import Job
from django_once.models.job import look
from django_once.models.job.look import Wanted

PAGE: Final = 500
LISTED: Final = 10
FILTERS: Final = ("state", "task", "queue", "worker", "reason", "since")


@dataclass(frozen=True, slots=True)
class Verb:
    """What may be done to jobs: its name, in which states they must be, and which are meant when
    nobody says."""

    name: str
    done: str
    states: tuple[str, ...]
    by_default: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Chosen:
    """The jobs of one place: some ids, or all that are meant."""

    place: Place
    count: int
    pages: Callable[[], Iterator[list[UUID]]]


def add_filters(parser: CommandParser, states: tuple[str, ...]) -> None:
    """Declare what jobs may have in common."""
    add = parser.add_argument
    add("--state", choices=states, action="append", help="where they stand; may be repeated")
    add("--task", metavar="PATH", default="", help="the task's path, or the end of it")
    add("--queue", metavar="NAME", default="", help="the queue")
    add("--worker", metavar="NAME|ID", default="", help="the worker that holds or ended them")
    add(
        "--reason", metavar="WORD", default="", help="why they ended or wait: raised, lost, died, …"
    )
    add("--since", metavar="2h", help="ended, or else were enqueued, within this time")


def add_choice(parser: CommandParser, verb: Verb) -> None:
    """Declare how the jobs are named that shall be changed."""
    parser.add_argument("ids", nargs="*", metavar="ID", help="an id, or its first digits")
    add_filters(parser, verb.states)
    parser.add_argument("--yes", "-y", action="store_true", help="do not ask")
    parser.add_argument("--dry-run", action="store_true", help="show which, change nothing")


def wanted(options: dict[str, Any], states: tuple[str, ...] = ()) -> Wanted:
    """Return what the filters say; `states` is meant where they name none."""
    return Wanted(
        backends=(options["backend"],) if options["backend"] else (),
        states=tuple(dict.fromkeys(options["state"] or states)),
        task=options["task"],
        queue=options["queue"],
        worker=options["worker"],
        reason=options["reason"],
        since=span(options["since"], "--since"),
    )


def span(text: str | None, name: str) -> timedelta | None:
    """Return a time span such as "2h", or plain seconds."""
    if text is None:
        return None
    return clock.duration(float(text) if _is_number(text) else text, name)


def chosen(screen: Screen, options: dict[str, Any], verb: Verb) -> tuple[list[Chosen], int]:
    """Return the jobs that are meant, and PROBLEM when an id among them is nobody's."""
    filters = [name for name in FILTERS if options[name]]
    if options["ids"] and filters:
        raise CommandError(
            f"Name ids or filters, not both: --{filters[0]} would not be looked at.",
            returncode=USAGE,
        )
    if not options["ids"] and not filters:
        raise CommandError(
            f"Say which jobs to {verb.name}: ids, or filters such as --task, --queue or --state.",
            returncode=USAGE,
        )
    where = places(options["backend"])
    if options["ids"]:
        return _by_ids(screen, where, options["ids"])
    return [_by_filters(place, wanted(options, verb.by_default)) for place in where], OK


def is_agreed(screen: Screen, options: dict[str, Any], verb: Verb, jobs: int) -> bool:
    """Return whether to go on, after the number was shown."""
    if options["yes"] or jobs == 0:
        return True
    return screen.ask(f"{verb.name.capitalize()} {counted(jobs)}?")


def preview(screen: Screen, choice: list[Chosen], verb: Verb) -> int:
    """Show how many jobs would be changed, and the first of them."""
    jobs = sum(one.count for one in choice)
    shown = [
        str(id) for one in choice for id in next(one.pages(), [])[:LISTED]
    ][:LISTED]  # fmt: skip
    if screen.is_json:
        screen.json({"dry_run": True, "jobs": jobs, "first": shown})
        return OK
    screen.say(f"Would {verb.name} {counted(jobs)}{':' if shown else '.'}")
    for id in shown:
        screen.say(f"  {id}")
    if jobs > len(shown):
        screen.say(f"  … and {jobs - len(shown):,} more")
    return OK


def counted(jobs: int) -> str:
    """Return a number of jobs in words."""
    return "1 job" if jobs == 1 else f"{jobs:,} jobs"


def the_job(where: list[Place], text: str) -> Job:
    """Return the one job whose id begins like this, or refuse."""
    _refuse_malformed(text)
    found = [job for place in where for job in look.by_id(place.database, text)]
    if not found:
        raise CommandError(f"No job has an id that begins with {text!r}.", returncode=PROBLEM)
    if len(found) > 1:
        ids = ", ".join(str(job.pk) for job in found)
        raise CommandError(
            f"More than one job has an id that begins with {text!r}: {ids}. Write more of it.",
            returncode=USAGE,
        )
    return found[0]


def _by_ids(screen: Screen, where: list[Place], texts: list[str]) -> tuple[list[Chosen], int]:
    for text in texts:
        _refuse_malformed(text)
    ids: dict[str, dict[UUID, None]] = {place.database: {} for place in where}
    status = OK
    for text in texts:
        try:
            job = the_job(where, text)
        except CommandError as unknown:
            if unknown.returncode != PROBLEM:
                raise
            screen.tell(str(unknown))
            status = PROBLEM
        else:
            ids[str(job._state.db)][job.pk] = None
    return [_these(place, list(ids[place.database])) for place in where], status


def _these(place: Place, ids: list[UUID]) -> Chosen:
    return Chosen(place, len(ids), lambda: (ids[at : at + PAGE] for at in range(0, len(ids), PAGE)))


def _by_filters(place: Place, meant: Wanted) -> Chosen:
    bounded = replace(meant, until=look.now(place.database))
    return Chosen(
        place,
        look.matching(place.database, bounded).count(),
        lambda: look.ids_in_pages(place.database, bounded, PAGE),
    )


def _refuse_malformed(text: str) -> None:
    if not look.is_id(text):
        raise CommandError(
            f"{printable(text)!r} is no id of a job, nor its first four or more digits.",
            returncode=USAGE,
        )


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
