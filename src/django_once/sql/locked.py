"""The statements of jobs that wait for a lock: found by its name, and let go one at a time.

They are sent on the connection that releases the lock, which is no thread's own. So each is one
statement that commits by itself, and none asks for the transaction of an alias.
"""

from __future__ import annotations

from typing import Any, Final

from django_once.sql import KINDS
from django_once.sql.values import LOCK

# Without the hint MySQL walks all that is ready, and waits for what others hold there.
FIRST: Final = (
    "SELECT job.id FROM once_job AS job {hint} WHERE job.status = 'READY' "
    "AND job.position IS NULL AND job.blocked_by <> '' AND job.blocked_by = %s "
    "ORDER BY job.due_at, job.id LIMIT 1"
)


class LockedJobs:
    """The statements on one connection, which need not be a thread's own."""

    def __init__(self, connection: Any) -> None:
        self.words = KINDS[connection.vendor](connection)

    def await_release(self, name: str) -> bool:
        """Ask whoever holds the lock to let a job go at its release; False when nobody holds it."""
        sql = (
            "UPDATE once_lock SET has_jobs = TRUE "
            f"WHERE name = %s AND released_at IS NULL AND expires_at >= {self.words.now}"
        )
        return self.words.count(sql, [name]) == 1

    def let_one_go(self, name: str) -> str | None:
        """Give the job that waits longest its place; return its backend, None when none waits."""
        words, blocked = self.words, LOCK + name
        if words.vendor == "mysql":
            return self._let_one_go_on_mysql(blocked)
        first = FIRST.format(hint="")
        if words.vendor == "postgresql":
            first = f"{first} {words.LOCK_FREE}"
        sql = (
            f"UPDATE once_job AS job SET {words.placing(words.position())} "
            f"WHERE job.id = ({first}) AND job.status = 'READY' AND job.blocked_by = %s "
            "RETURNING backend"
        )
        for (backend,) in words.rows(sql, [blocked, blocked]):
            return str(backend)
        return None

    def _let_one_go_on_mysql(self, blocked: str) -> str | None:
        words = self.words
        hint = "FORCE INDEX (once_job_blocked)"
        for (job,) in words.rows(FIRST.format(hint=hint), [blocked]):
            # Race: another lets it go meanwhile. Then that one was let go, which is enough.
            sql = (
                f"UPDATE once_job AS job SET {words.placing(words.position())} "
                "WHERE job.id = %s AND job.status = 'READY' AND job.blocked_by = %s"
            )
            words.count(sql, [job, blocked])
            read = "SELECT backend FROM once_job WHERE id = %s"
            for (backend,) in words.rows(read, [job]):
                return str(backend)
        return None

    def remember(self, name: str, *, has_jobs: bool) -> None:
        """Write down whether jobs wait for this lock."""
        value = "TRUE" if has_jobs else "FALSE"
        self.words.count(f"UPDATE once_lock SET has_jobs = {value} WHERE name = %s", [name])

    def is_waited_for(self, name: str) -> bool:
        """Return whether any job waits for this lock."""
        return bool(self.words.rows(FIRST.format(hint=""), [LOCK + name]))

    def free_with_jobs(self, after: str, most: int) -> tuple[list[str], str]:
        """Return which of the next so many locks with waiting jobs nobody holds, and the last name.

        One step into the index for each, so that nobody walks over all that wait for one of them.
        The name is "" when all were looked at.
        """
        step = (
            "SELECT min(job.blocked_by) FROM once_job AS job WHERE job.status = 'READY' "
            "AND job.blocked_by <> '' AND job.blocked_by > %s AND job.blocked_by < %s"
        )
        free: list[str] = []
        for _ in range(most):
            # What begins with "lock:" lies before what begins with the sign after the colon.
            ((blocked,),) = self.words.rows_by_index(step, [LOCK + after, LOCK[:-1] + ";"])
            if blocked is None:
                return free, ""
            after = blocked.removeprefix(LOCK)
            if not self._is_held(after):
                free.append(after)
        return free, after

    def _is_held(self, name: str) -> bool:
        sql = (
            "SELECT 1 FROM once_lock "
            f"WHERE name = %s AND released_at IS NULL AND expires_at >= {self.words.now}"
        )
        return bool(self.words.rows(sql, [name]))
