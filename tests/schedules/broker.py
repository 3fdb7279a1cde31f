"""A foreign Tasks backend: it keeps what it takes in memory, and a test delivers it."""

from __future__ import annotations

import time
import uuid
from typing import Any

from django_once import compat
from django_once.compat import BaseTaskBackend, TaskResult, TaskResultStatus

deliveries: list[tuple[compat.AnyTask, list[Any], dict[str, Any]]] = []
# The arguments of tasks whose deliveries a broker that is down for them refuses.
refuses: list[Any] = []
# With this argument the broker does not answer for a minute.
HANGS = "hangs"


class Broker(BaseTaskBackend):
    """Takes tasks and runs none of them."""

    supports_async_task = True
    supports_priority = True

    def enqueue(self, task: Any, args: Any, kwargs: Any) -> Any:
        self.validate_task(task)
        if HANGS in args:
            time.sleep(60)
        if any(one in refuses for one in args):
            raise ConnectionError("the broker is down")
        deliveries.append((task, list(args), dict(kwargs)))
        return TaskResult(
            task=task, id=str(uuid.uuid4()), status=TaskResultStatus.READY, enqueued_at=None,
            started_at=None, finished_at=None, last_attempted_at=None, args=list(args),
            kwargs=dict(kwargs), backend=self.alias, errors=[], worker_ids=[],
        )  # fmt: skip


def deliver(number: int = 0) -> Any:
    """Run what was taken, as a worker of that backend would; again each time it is called."""
    task, args, kwargs = deliveries[number]
    return task.call(*args, **kwargs)
