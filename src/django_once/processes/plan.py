"""What a worker command was asked to do: one value, made by the shell's door, read by all loops."""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass

from django_once.models.job.claim import EVERY_QUEUE


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The options of `manage.py once worker`."""

    backend: str = "default"
    queues: tuple[str, ...] = (EVERY_QUEUE,)
    excluded: tuple[str, ...] = ()
    concurrency: int = 4
    processes: int = 1
    batch: bool = False
    max_tasks: int | None = None
    max_memory: int | None = None
    interval: float | None = None
    worker_id: str = ""
    drain_timeout: float = 25.0
    reload: bool = False
    scheduler: bool = True
    health_port: int | None = None
    patience: float = 60.0
    # Channels whose broadcasts each of the processes hears, by their names.
    hears: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """What results show as the worker: the chosen name, or this host and process."""
        return self.worker_id or f"{socket.gethostname()[:40]}-{os.getpid()}"

    def share_of(self, place: int) -> int | None:
        """Return how many of `max_tasks` the worker at this place may run."""
        if self.max_tasks is None:
            return None
        share, left = divmod(self.max_tasks, self.processes)
        return share + (1 if place < left else 0)
