"""What a pause covers, as conditions of the claim and of those who are let go after it.

Each asks a table that is almost always empty, once for a statement and not for each row.
"""

from __future__ import annotations

from typing import Final

LIVING: Final = "(pause.until IS NULL OR pause.until > {now})"

# That a queue is not paused; `queue` and `backend` are SQL for its name and whose it is.
OPEN_QUEUE: Final = (
    "{queue} NOT IN (SELECT pause.name FROM once_pause AS pause "
    f"WHERE pause.backend = {{backend}} AND pause.kind = 'queue' AND {LIVING})"
)

_TASKS: Final = (
    f"SELECT pause.backend, pause.name FROM once_pause AS pause WHERE pause.kind = 'task' AND "
    f"{LIVING}"
)
_KEYS: Final = (
    f"SELECT pause.backend, pause.name FROM once_pause AS pause WHERE pause.kind = 'key' AND "
    f"{LIVING}"
)

# 1 for a job whose task or key is paused, else 0; `key` is that column's quoted name.
COVERED: Final = (
    f"CASE WHEN (job.backend, job.task) IN ({_TASKS}) "
    f"OR (job.backend, job.{{key}}) IN ({_KEYS}) "
    f"OR (job.backend, job.limit_key) IN ({_KEYS}) "
    f"OR (job.backend, job.fair_key) IN ({_KEYS}) THEN 1 ELSE 0 END"
)
UNCOVERED: Final = f"{COVERED} = 0"
