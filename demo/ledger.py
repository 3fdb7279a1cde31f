"""The audit: what must be true of the books, asked of the rows themselves and of the outbox.

No code of the package is used: an engine that miscounts would miscount here too.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from demo.books import Books
from demo.stage import Database
from demo.story import Story

CHARGE, RECEIPT = "shop.tasks.charge", "shop.tasks.send_receipt"


@dataclass(frozen=True, slots=True)
class Jobs:
    """The stored jobs of one task: for which orders, and how they ended."""

    orders: Counter[int]
    statuses: Counter[str]
    attempts: int
    # The attempts that ended badly, by the kind of their end.
    history: Counter[str]

    @property
    def unfinished(self) -> int:
        """How many did not end well."""
        return self.statuses.total() - self.statuses["SUCCESSFUL"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the audit found."""

    wanted: int
    orders: set[int]
    charges: Counter[int]
    charge_jobs: Jobs
    receipt_jobs: Jobs
    mails: Counter[str]
    alive: int
    story: Story
    complaints: list[str] = field(default_factory=list)

    @property
    def missing(self) -> int:
        """How many orders were never charged."""
        return len(self.orders - set(self.charges))

    @property
    def doubled(self) -> int:
        """How many charges there are beyond the first of each order."""
        return sum(number - 1 for number in self.charges.values())

    @property
    def repeated(self) -> int:
        """How many e-mails were sent again."""
        return self.mails.total() - len(self.mails)

    @property
    def is_good(self) -> bool:
        """Whether the books balance."""
        return not self.complaints

    def lines(self) -> list[tuple[str, str, str]]:
        """Return the books as lines: a name, a number, and what is to be said of it."""
        charging, mailing, story = self.charge_jobs, self.receipt_jobs, self.story
        jobs = charging.orders.total() + mailing.orders.total()
        history = charging.history + mailing.history
        again = ", ".join(f"{n} {kind}" for kind, n in sorted(history.items())) or "none"
        killed = " · ".join(f"{n} {victim}" for victim, n in story.kills.items()) or "none"
        gone = len(story.doomed) - self.alive
        return [
            ("orders", f"{len(self.orders):,}", f"{gone} of {len(story.doomed)} killed before "
             "COMMIT left neither order nor job"),
            ("charges", f"{self.charges.total():,}", f"{self.missing} missing · {self.doubled} "
             "doubled (exactly_once)"),
            ("e-mails", f"{self.mails.total():,}", f"{len(self.mails):,} keys · {self.repeated} "
             "sent again under the same key (at_least_once)"),
            ("attempts", f"{charging.attempts + mailing.attempts:,}", f"of {jobs:,} jobs · without "
             f"success and tried again: {again}"),
            ("kill -9", f"{story.killed}", f"{killed} · {story.busy} of them hit jobs at work"),
        ]  # fmt: skip

    def as_json(self) -> dict[str, Any]:
        """Return the books for a program."""
        return {
            "passed": self.is_good,
            "orders": len(self.orders),
            "charges": self.charges.total(),
            "missing": self.missing,
            "doubled": self.doubled,
            "mails": self.mails.total(),
            "mail_keys": len(self.mails),
            "mails_repeated": self.repeated,
            "jobs": self.charge_jobs.orders.total() + self.receipt_jobs.orders.total(),
            "attempts": self.charge_jobs.attempts + self.receipt_jobs.attempts,
            "history": dict(self.charge_jobs.history + self.receipt_jobs.history),
            "kills": dict(self.story.kills),
            "kills_that_hit_jobs": self.story.busy,
            "rolled_back": len(self.story.doomed),
            "rolled_back_but_there": self.alive,
            "seconds": round(self.story.seconds, 1),
            "complaints": self.complaints,
        }


def audited(database: Database, directory: Path, wanted: int, story: Story) -> Verdict:
    """Return what the rows and the outbox say, with a sentence for each thing that is wrong."""
    books = database.books
    charges = Counter(number for (number,) in books.rows("SELECT order_number FROM shop_charge"))
    found = Verdict(
        wanted=wanted,
        orders={number for (number,) in books.rows("SELECT number FROM shop_order")},
        charges=charges,
        charge_jobs=jobs_of(books, CHARGE),
        receipt_jobs=jobs_of(books, RECEIPT),
        mails=mails_in(directory / "outbox.jsonl"),
        alive=still_there(books, story),
        story=story,
    )
    found.complaints.extend([*story.complaints, *complaints_about(found)])
    if not books.is_sound():
        found.complaints.append("The database says that its own files are damaged.")
    return found


def jobs_of(books: Books, task: str) -> Jobs:
    """Return the jobs of a task as they stand in the table."""
    rows = books.rows(
        f"SELECT args, status, attempt, history FROM once_job WHERE task = '{task}'"
    )
    return Jobs(
        orders=Counter(json.loads(args)[0] for args, _, _, _ in rows),
        statuses=Counter(status for _, status, _, _ in rows),
        attempts=sum(attempt for _, _, attempt, _ in rows),
        history=Counter(
            entry["kind"] for _, _, _, history in rows for entry in json.loads(history)
        ),
    )


def mails_in(outbox: Path) -> Counter[str]:
    """Return how often each key was used in an e-mail."""
    if not outbox.exists():
        return Counter()
    return Counter(json.loads(line)["key"] for line in outbox.read_text().splitlines())


def still_there(books: Books, story: Story) -> int:
    """Return how many of the orders that never committed are there all the same, or their jobs."""
    orders = {number for (number,) in books.rows("SELECT number FROM shop_order")}
    jobs = {str(job).replace("-", "") for (job,) in books.rows("SELECT id FROM once_job")}
    return sum(
        one.number in orders or one.job.replace("-", "") in jobs for one in story.doomed
    )


def complaints_about(found: Verdict) -> list[str]:
    """Return a sentence for each thing that does not balance."""
    charging, mailing = found.charge_jobs, found.receipt_jobs
    said = {
        f"{found.wanted} orders were placed and {len(found.orders)} are there.":
            found.wanted != len(found.orders),
        f"{found.missing} orders were not charged.": found.missing,
        f"{found.doubled} charges are doubled.": found.doubled,
        "Something was charged that nobody ordered.": set(found.charges) - found.orders,
        "Not every order has exactly one job that charges it.":
            charging.orders != Counter(found.orders),
        "Not every order has exactly one job for its receipt.":
            mailing.orders != Counter(found.orders),
        f"{charging.unfinished} jobs that charge did not succeed.": charging.unfinished,
        f"{mailing.unfinished} jobs for receipts did not succeed.": mailing.unfinished,
        f"{len(found.orders)} receipts were due, and {len(found.mails)} were sent.":
            len(found.mails) != len(found.orders),
        f"{found.alive} orders that never committed are there.": found.alive,
    }  # fmt: skip
    return [sentence for sentence, is_wrong in said.items() if is_wrong]
