"""A list of jobs as a window over an index: a page of it costs no more than the window is wide.

What an index serves (the state, the end, an id, a key) stands within the window, and leads through
it in order. What has none is looked for in there only. Pages follow the last row that was shown,
never a number of rows to pass over.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django_once import clock
from django_once.sql.counts import UNENDED
from django_once.sql.statements import Statements

WIDTH: Final = 30_000
# Fewer than so many unended jobs of one state are read as a whole.
FEW: Final = 20_000
# Written as the partial indexes are, so that the planner finds them.
STATES: Final = {
    **UNENDED,
    "failed": "status = 'FAILED' AND finished_at IS NOT NULL",
    "successful": "status = 'SUCCESSFUL' AND finished_at IS NOT NULL",
}
ENDED: Final = ("failed", "successful")
# Names that may be patterns: "*" stands for anything.
NAMES: Final = {
    "queue": "queue", "backend": "backend", "reason": "reason", "key": "key", "batch": "batch",
    "channel": "channel", "worker": "worker_name", "limit": "limit_key", "fair": "fair_key",
    "blocked": "blocked_by",
}  # fmt: skip
ESCAPE: Final = "!"
_PARTS: Final = ((0, 8), (8, 12), (12, 16), (16, 20), (20, 32))


@dataclass(frozen=True, slots=True)
class Clause:
    """One word of a filter: a field, and the values of which one must be met, or none."""

    field: str
    values: tuple[Any, ...]
    negated: bool = False
    # Of `arg`: the name of the argument.
    name: str = ""


@dataclass(frozen=True, slots=True)
class Place:
    """The last row that was shown: its id, and the moment by which the list is ordered."""

    id: UUID
    moment: datetime | None = None


@dataclass(frozen=True, slots=True)
class Page:
    """The ids of one page, and from where to go on looking; None when all was looked at."""

    ids: tuple[UUID, ...]
    edge: Place | None = None


class Window:
    """The jobs that some clauses mean, in the order of one index."""

    def __init__(
        self, statements: Statements, backends: Sequence[str], clauses: Sequence[Clause]
    ) -> None:
        self.statements = statements
        self.key = statements.connection.ops.quote_name("key")
        states = [clause for clause in clauses if clause.field == "state"]
        asked = set(states[0].values) if len(states) == 1 and not states[0].negated else set()
        self.column, self.is_descending = "id", True
        if asked and asked <= set(ENDED):
            self.column = "finished_at"
        elif asked == {"scheduled"}:
            self.column, self.is_descending = "due_at", False
        self.inner: list[str] = []
        self.outer: list[str] = []
        self.parameters: list[Any] = []
        self.outer_parameters: list[Any] = []
        self.is_whole = False
        for clause in clauses:
            self._add(clause, asked)
        self._add_backends(backends)

    def page(self, most: int, after: Place | None = None) -> Page:
        """Return the next so many ids behind a place."""
        inner, parameters = self._window(after)
        outer = f" WHERE {' AND '.join(self.outer)}" if self.outer else ""
        sql = f"SELECT id, moment FROM ({inner}) AS part{outer} {self._order('moment')} LIMIT %s"
        found = self.statements.rows(sql, [*parameters, *self.outer_parameters, most + 1])
        ids = tuple(UUID(str(id)) for id, _ in found[:most])
        if len(found) > most:
            return Page(ids, self._place(found[most - 1]))
        return Page(ids, self._end_of(inner, parameters) if self.outer else None)

    def count(self, most: int) -> tuple[int, bool]:
        """Return how many jobs are meant, of the first so many that an index leads to.

        And whether others stand behind those.
        """
        inner, parameters = self._window(None, most)
        ((looked_at,),) = self.statements.rows(
            f"SELECT count(*) FROM ({inner}) AS part", parameters
        )
        if not self.outer:
            return int(looked_at), int(looked_at) >= most
        sql = f"SELECT count(*) FROM ({inner}) AS part WHERE {' AND '.join(self.outer)}"
        ((count,),) = self.statements.rows(sql, [*parameters, *self.outer_parameters])
        return int(count), int(looked_at) >= most

    def _window(self, after: Place | None, width: int | None = None) -> tuple[str, list[Any]]:
        conditions, parameters = list(self.inner), list(self.parameters)
        if after is not None:
            condition, more = self._behind(after)
            conditions.append(condition)
            parameters += more
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        moment = self.column if self.column != "id" else "enqueued_at"
        order = "" if self.is_whole else f" {self._order(moment)}"
        return (
            f"SELECT id, {moment} AS moment{self._read()} FROM once_job{where}{order} LIMIT %s",
            [*parameters, WIDTH if width is None else width],
        )

    def _order(self, moment: str) -> str:
        way = "DESC" if self.is_descending else "ASC"
        return f"ORDER BY id {way}" if self.column == "id" else f"ORDER BY {moment} {way}, id {way}"

    def _behind(self, after: Place) -> tuple[str, list[Any]]:
        sign = "<" if self.is_descending else ">"
        id = self.statements.key(after.id)
        if self.column == "id" or after.moment is None:
            return f"id {sign} %s", [id]
        at = clock.to_column(after.moment, self.statements.vendor)
        return (
            f"{self.column} {sign}= %s AND ({self.column} {sign} %s OR id {sign} %s)",
            [at, at, id],
        )

    def _end_of(self, inner: str, parameters: list[Any]) -> Place | None:
        """Return the last row of a window that was full: behind it nobody looked."""
        if self.is_whole:
            return None
        counted = self.statements.rows(f"SELECT count(*) FROM ({inner}) AS part", parameters)
        if int(counted[0][0]) < WIDTH:
            return None
        back = self._order("moment").replace("DESC", "*").replace("ASC", "DESC").replace("*", "ASC")
        sql = f"SELECT id, moment FROM ({inner}) AS part {back} LIMIT 1"
        return self._place(self.statements.rows(sql, parameters)[0])

    def _place(self, row: Any) -> Place:
        return Place(UUID(str(row[0])), self.statements.moment(row[1]))

    def _read(self) -> str:
        """Return the columns that the conditions outside of the window ask for."""
        asked = " ".join(self.outer)
        columns = [
            "task", "queue", "backend", "reason", "batch", "channel", "worker_name", "limit_key",
            "fair_key", "blocked_by", "status", "position", "finished_at", "enqueued_at", "kwargs",
            "args", "history", "attempt",
        ]  # fmt: skip
        names = [name for name in columns if f"part.{name}" in asked]
        if f"part.{self.key}" in asked:
            names.append(self.key)
        return "".join(f", {name}" for name in names)

    # What each word of a filter says in SQL.

    def _add(self, clause: Clause, states: set[str]) -> None:
        field = clause.field
        if field == "state":
            self._add_state(clause, states)
        elif field == "id" and not clause.negated:
            self._within(*self._of_ids(clause.values))
        elif field in ("since", "until"):
            self._add_moment(clause)
        elif field == "key" and not clause.negated and "*" not in "".join(clause.values):
            marks = self.statements.marks(clause.values)
            self._within(f"{self.key} IN ({marks})", list(clause.values))
        elif field == "arg":
            # Whose absence is asked for is decided by who knows what a task hides.
            if not clause.negated:
                self._outside(*self._of_argument(clause))
        else:
            parts = [self._of_name(field, str(value)) for value in clause.values]
            sql = " OR ".join(part for part, _ in parts)
            self._outside(f"({sql})", [one for _, more in parts for one in more],
                          negated=clause.negated)  # fmt: skip

    def _within(self, sql: str, parameters: Sequence[Any]) -> None:
        self.inner.append(sql)
        self.parameters += parameters

    def _outside(self, sql: str, parameters: Sequence[Any], *, negated: bool = False) -> None:
        self.outer.append(f"NOT coalesce({sql}, {self._false()})" if negated else sql)
        self.outer_parameters += parameters

    def _false(self) -> str:
        return "false" if self.statements.vendor == "postgresql" else "0"

    def _add_state(self, clause: Clause, asked: set[str]) -> None:
        if len(asked) == 1 and asked <= {*ENDED, "scheduled"}:
            self._within(STATES[next(iter(asked))], [])
            return
        if asked and asked == set(ENDED):
            self._within("finished_at IS NOT NULL", [])
            return
        either = " OR ".join(f"({STATES[state]})" for state in clause.values)
        if len(asked) == 1 and self._are_few(next(iter(asked))):
            self.is_whole = True
            self._within(either, [])
            return
        for name in ("status", "position", "blocked_by", "finished_at"):
            either = either.replace(name, f"part.{name}")
        self._outside(f"({either})", [], negated=clause.negated)

    def _are_few(self, state: str) -> bool:
        sql = (
            f"SELECT count(*) FROM (SELECT 1 FROM once_job WHERE {STATES[state]} LIMIT %s) AS part"
        )
        ((count,),) = self.statements.rows_by_index(sql, [FEW])
        return int(count) < FEW

    def _add_moment(self, clause: Clause) -> None:
        sign = ">=" if clause.field == "since" else "<="
        at = clock.to_column(clause.values[0], self.statements.vendor)
        if self.column == "finished_at":
            self._within(f"finished_at {sign} %s", [at])
        else:
            self._outside(f"part.enqueued_at {sign} %s", [at])

    def _add_backends(self, backends: Sequence[str]) -> None:
        if backends:
            marks = self.statements.marks(backends)
            self._outside(f"part.backend IN ({marks})", list(backends))

    def _of_ids(self, prefixes: Sequence[str]) -> tuple[str, list[Any]]:
        parts, parameters = [], []
        for digits in prefixes:
            sql, more = self._of_id(digits)
            parts.append(sql)
            parameters += more
        return f"({' OR '.join(parts)})", parameters

    def _of_id(self, digits: str) -> tuple[str, list[Any]]:
        connection = self.statements.connection
        if connection.vendor == "mysql" and connection.features.has_native_uuid_field:
            # MariaDB orders UUIDs by their version's parts, so that no range is a prefix.
            text = "-".join(part for part in (digits[a:b] for a, b in _PARTS) if part)
            return "id LIKE %s", [f"{text}%"]
        key = self.statements.key
        low, high = UUID(digits.ljust(32, "0")), UUID(digits.ljust(32, "f"))
        return "(id >= %s AND id <= %s)", [key(low), key(high)]

    def _of_name(self, field: str, value: str) -> tuple[str, list[Any]]:
        if field == "task":
            return self._of_path("part.task", value)
        if field == "error":
            return self._of_error(value)
        if field == "text":
            return f"part.task LIKE %s ESCAPE '{ESCAPE}'", [f"%{escaped(value)}%"]
        if field == "attempt":
            sign, number = value[:2].rstrip("0123456789"), value.lstrip("<>=")
            return f"part.attempt {sign or '='} %s", [int(number)]
        column = NAMES[field]
        name = f"part.{self.key if column == 'key' else column}"
        if "*" in value:
            return f"{name} LIKE %s ESCAPE '{ESCAPE}'", [pattern(value)]
        return f"{name} = %s", [value]

    def _of_error(self, value: str) -> tuple[str, list[Any]]:
        """Return the condition of the last error; the text is looked for first, which costs less
        than to read the history."""
        sql, parameters = self._of_path(last_error(self.statements.vendor, "part.history"), value)
        text = pattern(f'*{value}"*')
        return f"(part.history LIKE %s ESCAPE '{ESCAPE}' AND {sql})", [text, *parameters]

    def _of_path(self, column: str, value: str) -> tuple[str, list[Any]]:
        """Return the condition of a dotted path, named as a whole, by its end, or by a pattern."""
        if "*" in value:
            return f"{column} LIKE %s ESCAPE '{ESCAPE}'", [pattern(value)]
        return (
            f"({column} = %s OR {column} LIKE %s ESCAPE '{ESCAPE}')",
            [value, f"%.{escaped(value)}"],
        )

    def _of_argument(self, clause: Clause) -> tuple[str, list[Any]]:
        """Return a condition that lets through what may hold this argument, and little else."""
        texts: list[str] = []
        column = "part.args" if clause.name.isdigit() else "part.kwargs"
        for value in clause.values:
            for written in (value, f'"{value}"'):
                if clause.name.isdigit():
                    texts.append(f"%{escaped(written)}%")
                else:
                    texts += [
                        f'%"{escaped(clause.name)}":{space}{escaped(written)}{end}%'
                        for space in ("", " ") for end in (",", "}")
                    ]  # fmt: skip
        either = " OR ".join([f"{column} LIKE %s ESCAPE '{ESCAPE}'"] * len(texts))
        return f"({either})", texts


def last_error(vendor: str, column: str) -> str:
    """Return SQL for the class of a job's last error, or NULL."""
    if vendor == "postgresql":
        # What stands behind the last of these words; within a text its quotes would be escaped.
        last = f"split_part(split_part({column}, '\"error\":\"', -1), '\"', 1)"
        return f'CASE WHEN {column} LIKE \'%%"error":"%%\' THEN {last} END'
    if vendor == "sqlite":
        valid = f"CASE WHEN json_valid({column}) THEN {column} END"
        return f"json_extract({valid}, '$[#-1].error')"
    last = f"concat('$[', greatest(json_length({column}) - 1, 0), '].error')"
    return f"json_unquote(json_extract({column}, {last}))"


def escaped(value: str) -> str:
    """Return a text that LIKE takes as it is."""
    for sign in (ESCAPE, "%", "_"):
        value = value.replace(sign, ESCAPE + sign)
    return value


def pattern(value: str) -> str:
    """Return what LIKE takes for a text in which "*" is anything."""
    return escaped(value).replace("*", "%")
