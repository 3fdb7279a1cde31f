"""The raw limit: our table, written to by hand through one bare connection of the driver.

No Django, no objects, no threads: what remains is the database's own time and that of its driver.
The statements change the same columns as ours under the same guards, and as few rows per statement
as each limit says. What the package reaches is given as a part of this, in the same run.
"""

from __future__ import annotations

from typing import Protocol

from bench.errors import Refusal


class Raw(Protocol):
    """The limits of one database."""

    def fill(
        self, jobs: int, task: str, argument: str = "{n}", priorities: int = 1,
        delivery: str = "at_least_once",
    ) -> None:  # fmt: skip
        """Put so many ready jobs of a task there."""

    def drain(self, jobs: int, batch: int) -> float:
        """Claim and settle so many jobs, so many per statement; return how many per second."""
        raise NotImplementedError

    def insert(self, seconds: float) -> float:
        """Insert jobs, one per commit; return how many per second."""
        raise NotImplementedError

    def insert_many(self, jobs: int, batch: int) -> float:
        """Insert jobs, so many per statement and commit; return how many per second."""
        raise NotImplementedError

    def close(self) -> None:
        """Close the connection."""


def raw_on(url: str) -> Raw:
    """Return the limits of the database that a URL names, through a connection of their own."""
    try:
        if url.startswith("postgresql:"):
            from bench.raw.postgresql import PostgreSQL  # noqa: PLC0415 - each needs its own driver

            return PostgreSQL(url)
        if url.startswith("sqlite:"):
            from bench.raw.sqlite import SQLite  # noqa: PLC0415

            return SQLite(url)
        from bench.raw.mysql import MySQL  # noqa: PLC0415

        return MySQL(url)
    except ImportError as error:
        raise Refusal(f"The driver is missing: {error}.") from error
