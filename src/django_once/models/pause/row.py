"""The pause: what somebody has stopped, why, and until when."""

from __future__ import annotations

from typing import Final

from django.db import models

from django_once.clock import Now
from django_once.models.fields import Moment, Name, RandomUUID


class Pause(models.Model):
    """A queue, a task or a key of which no body is to start; it survives restarts and deploys."""

    QUEUE: Final = "queue"
    TASK: Final = "task"
    KEY: Final = "key"

    id = models.UUIDField(primary_key=True, db_default=RandomUUID(), editable=False)
    backend = Name(max_length=64, db_default="default")
    kind = Name(max_length=8, db_default="queue")
    name = Name(max_length=255, db_default="")
    reason = models.CharField(max_length=255, db_default="")
    until = Moment(null=True)
    paused_by = models.CharField(max_length=255, db_default="")
    paused_at = Moment(db_default=Now())

    class Meta:
        app_label = "once"
        db_table = "once_pause"
        constraints = [
            models.UniqueConstraint(fields=["backend", "kind", "name"], name="once_pause_name")
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"
