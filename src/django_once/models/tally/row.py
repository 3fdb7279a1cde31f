"""The tally: how the attempts of one task went lately.

There is one only for a task that has a breaker or a retry budget. It holds nothing that could not
be lost: without its row a breaker is closed, and a budget unused.
"""

from __future__ import annotations

from typing import Final

from django.db import models

from django_once.models.fields import Moment, Name, RandomUUID


class Tally(models.Model):
    """How many attempts of a task ended lately, and how many failed or were retries."""

    BREAKER: Final = "breaker"
    BUDGET: Final = "budget"

    id = models.UUIDField(primary_key=True, db_default=RandomUUID(), editable=False)
    backend = Name(max_length=64, db_default="default")
    kind = Name(max_length=8, db_default=BREAKER)
    task = Name(max_length=255, db_default="")
    rule = models.TextField(db_default="{}")
    counts = models.TextField(db_default="[]")
    opened_at = Moment(null=True)
    reopens_at = Moment(null=True)
    trial = models.UUIDField(null=True)

    class Meta:
        app_label = "once"
        db_table = "once_tally"
        verbose_name_plural = "tallies"
        constraints = [
            models.UniqueConstraint(fields=["backend", "kind", "task"], name="once_tally_task")
        ]

    def __str__(self) -> str:
        return f"{self.kind} of {self.task}"
