"""The statements of a lock: take, renew, release, one each, guarded by the database's clock.

A row is a name, and it stays when the lock is released, so its fence never restarts. A lock is
free when it was released, or when its lease is over; whoever finds it free in the statement that
writes its own name has it. The nonce was drawn by the client before it sent that statement: where
an answer is lost, the row says whose it is.

What a holder was stands in the row's history, written by the statement that ends it: the release,
or the take-over of a lock whose lease was over.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, ClassVar, Final
from uuid import UUID

from django_once import clock
from django_once.errors import UnsupportedDatabase
from django_once.sql import KINDS
from django_once.sql.postgresql import PostgreSQL as Postgres
from django_once.sql.words import Words

# The channel of PostgreSQL on which a release is told to those who wait.
CHANNEL: Final = "once_lock"
# Five to eight ended holders stay readable: PostgreSQL compresses what is longer than this.
LONGEST_HISTORY: Final = 1200
HOLDERS_CUT: Final = 3
FORMAT: Final = '"\\""YYYY-MM-DD"T"HH24:MI:SS.US"Z\\""'
MOST_TEXTS: Final = 100

RELEASED: Final = "released"
EXPIRED: Final = "expired"
BROKEN: Final = "broken"


@dataclass(frozen=True, slots=True)
class Standing:
    """How a lock stands, by the database's clock at the moment it was asked."""

    nonce: UUID | None
    holder: str
    fence: int
    acquired_at: datetime
    expires_at: datetime
    remaining: float
    is_held: bool

    def is_held_under(self, nonce: UUID) -> bool:
        """Return whether this is the lease that was taken under a nonce."""
        return self.is_held and self.nonce == nonce


class Locks:
    """The statements on one connection, as far as all databases can share them."""

    vendor: ClassVar[str]

    def __init__(self, words: Words) -> None:
        self.words = words

    # Sentence 6: a lock's fence only grows; only its holder renews or releases.

    def take(self, name: str, holder: str, nonce: UUID, seconds: float) -> Standing | None:
        """Take a lock that was released or never taken; None when it may be in other hands.

        Short, since it is what nearly every taking needs: the lapsed are for `take_over`.
        """
        values = [name, holder, self.words.key(nonce), seconds]
        return self._read(self.words.rows(self._said("take", self._take), values))

    def _take(self) -> str:
        return (
            f"{self._new_row()} ON CONFLICT (name) DO UPDATE SET fence = once_lock.fence + 1, "
            "holder = excluded.holder, nonce = excluded.nonce, "
            "acquired_at = excluded.acquired_at, renewed_at = excluded.renewed_at, "
            "expires_at = excluded.expires_at, released_at = NULL, released_by = '', reason = '', "
            "is_wanted = FALSE WHERE once_lock.released_at IS NOT NULL "
            f"OR once_lock.expires_at IS NULL RETURNING {self._standing('1')}"
        )

    def take_over(self, name: str, holder: str, nonce: UUID, seconds: float) -> bool:
        """Take a lock whose lease is over; False when it is held, or somebody was faster."""
        values = [holder, self.words.key(nonce), seconds, name]
        return self.words.count(self._said("take_over", self._take_over), values) == 1

    def _take_over(self) -> str:
        # History first, the times last: MySQL reads a column as changed by the ones before.
        entry = self.entry(f"'{EXPIRED}'", "expires_at")
        return (
            f"UPDATE once_lock SET history = {self.appended(entry)}, fence = fence + 1, "
            f"is_wanted = FALSE, holder = %s, nonce = %s, acquired_at = {self.words.now}, "
            f"renewed_at = {self.words.now}, expires_at = {self.words.later('%s')} "
            f"WHERE name = %s AND released_at IS NULL AND expires_at < {self.words.now}"
        )

    def renew(self, name: str, nonce: UUID, seconds: float) -> bool:
        """Let the lease end so many seconds from now; False when somebody else has the lock."""
        sql = (
            f"UPDATE once_lock SET renewed_at = {self.words.now}, "
            f"expires_at = {self.words.later('%s')} "
            "WHERE name = %s AND nonce = %s AND released_at IS NULL"
        )
        return self.words.count(sql, [seconds, name, self.words.key(nonce)]) == 1

    def release(self, name: str, nonce: UUID) -> bool | None:
        """Give back the lock that was taken under this nonce, and return whether jobs wait for it;
        None when it is not held so."""
        sql = self._said("release", lambda: self._release("nonce = %s"))
        return self.changed_and_told(name, sql, [name, self.words.key(nonce)])

    def release_of(self, name: str, holder: str) -> bool | None:
        """Give back the lock that this holder has, as above; None when it has it not."""
        return self.changed_and_told(name, self._release("holder = %s"), [name, holder])

    def _release(self, whose: str) -> str:
        entry = self.entry(f"'{RELEASED}'", self.words.now)
        return (
            f"UPDATE once_lock SET history = {self.appended(entry)}, "
            f"released_at = {self.words.now}, released_by = holder "
            f"WHERE name = %s AND {whose} AND released_at IS NULL"
        )

    def end_by_force(self, name: str, by: str, reason: str) -> bool | None:
        """Take the lock from whoever has it, as above; None when nobody has."""
        member = self.parameter()
        entry = self.entry(f"'{BROKEN}'", self.words.now, by=member, reason=member)
        sql = (
            f"UPDATE once_lock SET history = {self.appended(entry)}, "
            f"released_at = {self.words.now}, released_by = %s, reason = %s "
            "WHERE name = %s AND nonce IS NOT NULL AND released_at IS NULL"
        )
        # An entry stands in `appended` three times.
        return self.changed_and_told(name, sql, [*[by, reason] * 3, by, reason, name])

    def changed_and_told(self, name: str, update: str, values: list[Any]) -> bool | None:
        """Run an update that frees a lock; tell those who wait, where the database can."""
        for (has_jobs,) in self.words.rows(f"{update} RETURNING has_jobs", values):
            return bool(has_jobs)
        return None

    def want(self, name: str) -> bool:
        """Ask to be told of the release; False when the lock is free already."""
        sql = (
            "UPDATE once_lock SET is_wanted = TRUE "
            f"WHERE name = %s AND released_at IS NULL AND expires_at >= {self.words.now}"
        )
        return self.words.count(sql, [name]) == 1

    def look(self, name: str) -> Standing | None:
        """Return how a lock stands; None when it was never taken."""
        held = f"CASE WHEN released_at IS NULL AND expires_at >= {self.words.now} THEN 1 ELSE 0 END"
        sql = f"SELECT {self._standing(held)} FROM once_lock WHERE name = %s AND nonce IS NOT NULL"
        return self._read(self.words.rows(sql, [name]))

    def was_released(self, name: str, fence: int) -> bool:
        """Return whether the holding with this fence was given back, by its own holder."""
        rows = self.words.rows("SELECT history FROM once_lock WHERE name = %s", [name])
        known = [entry for (text,) in rows for entry in json.loads(text)]
        return any(entry["fence"] == fence and entry["end"] == RELEASED for entry in known)

    # A history is a JSON list of who held the lock; the oldest go when it gets long.

    def entry(self, end: str, at: str, **more: str) -> str:
        """SQL of the text that tells of one holding, and how it ended."""
        members = {
            "holder": self.quoted("holder"), "fence": self.as_text("fence"),
            "acquired_at": self.written("acquired_at"), "ended_at": self.written(at),
            "end": self.quoted(end), **{name: self.quoted(value) for name, value in more.items()},
        }  # fmt: skip
        parts = [
            part for n, (name, value) in enumerate(members.items())
            for part in (f"'{',' if n else '{'}\"{name}\":'", value)
        ]  # fmt: skip
        return self.words.joined(*parts, "'}'")

    def appended(self, entry: str) -> str:
        """SQL of the history with this entry at its end."""
        length = self.words.length("history")
        first = self.words.joined("'['", entry, "']'")
        open_end = f"substr(history, 1, {length} - 1)"
        next_one = self.words.joined(open_end, "','", entry, "']'")
        return (
            f"CASE WHEN history = '[]' THEN {first} WHEN {length} < {LONGEST_HISTORY} "
            f"THEN {next_one} ELSE {self.cut(entry)} END"
        )

    def cut(self, entry: str) -> str:
        """SQL of the history without its older part, and with this entry at its end."""
        raise NotImplementedError

    def written(self, moment: str) -> str:
        """SQL of a moment as a history keeps it: a JSON string in UTC."""
        raise NotImplementedError

    def quoted(self, text: str) -> str:
        """SQL of a text as a JSON string."""
        return f"json_quote({text})"

    def as_text(self, number: str) -> str:
        """SQL of a number as a text."""
        return number

    def parameter(self) -> str:
        """SQL of a parameter that is a text, where nothing around it says so."""
        return "%s"

    def seconds_left(self) -> str:
        """SQL of how many seconds the lease has left."""
        raise NotImplementedError

    def _new_row(self) -> str:
        now, later = self.words.now, self.words.later("%s")
        return (
            "INSERT INTO once_lock (name, holder, nonce, fence, acquired_at, renewed_at, "
            f"expires_at) VALUES (%s, %s, %s, 1, {now}, {now}, {later})"
        )

    def _standing(self, held: str) -> str:
        return f"nonce, holder, fence, acquired_at, expires_at, {self.seconds_left()}, {held}"

    def _read(self, rows: list[Any]) -> Standing | None:
        for nonce, holder, fence, acquired_at, expires_at, remaining, is_held in rows:
            moment = self.words.moment
            known = nonce if isinstance(nonce, UUID) else UUID(nonce)
            return Standing(
                known, holder, fence, moment(acquired_at), moment(expires_at), float(remaining),
                bool(is_held),
            )  # fmt: skip
        return None

    def _said(self, verb: str, write: Callable[[], str]) -> str:
        """Return a statement, written once for each offset of the clock."""
        key = (self.vendor, verb, clock.offset())
        text = _texts.get(key)
        if text is None:
            if len(_texts) > MOST_TEXTS:
                _texts.clear()
            text = _texts[key] = write()
        return text


class PostgreSQL(Locks):
    """The statements on PostgreSQL, where a release tells those who wait."""

    vendor = "postgresql"

    def changed_and_told(self, name: str, update: str, values: list[Any]) -> bool | None:
        # A NOTIFY takes one lock of the whole server at commit, so it goes out when somebody waits.
        # Nobody waits for the disk: a release that a crash undoes ends with its lease, and whoever
        # takes the lock after it waits for both.
        told = (
            "SELECT has_jobs, CASE WHEN is_wanted THEN pg_notify(%s, name)::text END, "
            "set_config('synchronous_commit', 'off', true) FROM freed"
        )
        sql = f"WITH freed AS ({update} RETURNING name, is_wanted, has_jobs) {told}"
        for has_jobs, _, _ in self.words.rows(sql, [*values, CHANNEL]):
            return bool(has_jobs)
        return None

    def cut(self, entry: str) -> str:
        kept = "history::jsonb" + " - 0" * HOLDERS_CUT
        return f"(({kept}) || {entry}::jsonb)::text"

    def written(self, moment: str) -> str:
        return f"to_char({moment} AT TIME ZONE 'UTC', '{FORMAT}')"

    def quoted(self, text: str) -> str:
        return f"to_json({text}::text)::text"

    def as_text(self, number: str) -> str:
        return f"{number}::text"

    def parameter(self) -> str:
        return "%s::text"

    def seconds_left(self) -> str:
        return f"extract(epoch FROM expires_at - {self.words.now})::float8"


class SQLite(Locks):
    """The statements on SQLite."""

    vendor = "sqlite"

    def cut(self, entry: str) -> str:
        removed = ", ".join(["'$[0]'"] * HOLDERS_CUT)
        return f"json_insert(json_remove(history, {removed}), '$[#]', json({entry}))"

    def written(self, moment: str) -> str:
        return f"""('"' || replace({moment}, ' ', 'T') || 'Z"')"""

    def seconds_left(self) -> str:
        return f"((julianday(expires_at) - julianday({self.words.now})) * 86400.0)"


class MySQL(Locks):
    """The statements on MySQL and MariaDB, whose upsert has no WHERE.

    Each assignment asks for the guard, and reads the columns as changed by those before it. So
    what the guard reads comes last.
    """

    vendor = "mysql"

    def take(self, name: str, holder: str, nonce: UUID, seconds: float) -> Standing | None:
        sql = self._said("take", self._take)
        values = [name, holder, self.words.key(nonce), seconds]
        if self.words.connection.mysql_is_mariadb:
            found = self._read(self.words.rows(f"{sql} RETURNING {self._standing('1')}", values))
        else:
            # In two statements: the nonce says who has it, whoever came in between.
            self.words.count(sql, values)
            found = self.look(name)
        # Asked again after so long that the first answer's lease is over, it must be taken over.
        is_mine = found is not None and found.nonce == nonce and found.remaining > 0
        return found if is_mine else None

    def _take(self) -> str:
        free = "(released_at IS NOT NULL OR expires_at IS NULL)"
        changes = {
            "fence": "fence + 1", "released_by": "''", "reason": "''", "is_wanted": "FALSE",
            "holder": "VALUES(holder)", "acquired_at": "VALUES(acquired_at)",
            "renewed_at": "VALUES(renewed_at)", "nonce": "VALUES(nonce)",
            "expires_at": "VALUES(expires_at)",
        }  # fmt: skip
        guarded = ", ".join(
            f"{column} = IF({free}, {value}, {column})" for column, value in changes.items()
        )
        # A lock that was released was free, so it is taken by now.
        return f"{self._new_row()} ON DUPLICATE KEY UPDATE {guarded}, released_at = NULL"

    def changed_and_told(self, name: str, update: str, values: list[Any]) -> bool | None:
        if self.words.count(update, values) != 1:
            return None
        # Whoever takes the lock in between leaves the mark of the jobs where it is.
        for (has_jobs,) in self.words.rows(
            "SELECT has_jobs FROM once_lock WHERE name = %s", [name]
        ):
            return bool(has_jobs)
        return False

    def cut(self, entry: str) -> str:
        removed = ", ".join(["'$[0]'"] * HOLDERS_CUT)
        return (
            f"json_array_append(json_remove(history, {removed}), '$', json_extract({entry}, '$'))"
        )

    def written(self, moment: str) -> str:
        return f"""date_format({moment}, '"%%Y-%%m-%%dT%%H:%%i:%%s.%%fZ"')"""

    def seconds_left(self) -> str:
        return f"(timestampdiff(microsecond, {self.words.now}, expires_at) / 1000000)"


class PreparedWords(Postgres):
    """The words on a line of our own that keeps its statements prepared."""

    def rows(self, sql: str, parameters: Sequence[Any] = ()) -> list[Any]:
        found: list[Any] = self.connection.once_session.rows(sql, parameters)
        return found

    def count(self, sql: str, parameters: Sequence[Any] = ()) -> int:
        return int(self.connection.once_session.count(sql, parameters))


_texts: dict[tuple[str, str, timedelta], str] = {}
_KINDS: Final[dict[str, type[Locks]]] = {kind.vendor: kind for kind in (PostgreSQL, SQLite, MySQL)}


def locks_on(connection: Any) -> Locks:
    """Return the statements of locks on a connection, which need not be a thread's own."""
    kind = _KINDS.get(connection.vendor)
    if kind is None:
        raise UnsupportedDatabase(
            f"Database {connection.alias!r} is {connection.vendor}: locks live in PostgreSQL, "
            "SQLite, MySQL or MariaDB."
        )
    words = KINDS[connection.vendor](connection)
    if getattr(connection, "once_session", None) is not None:
        words = PreparedWords(connection)
    return kind(words)
