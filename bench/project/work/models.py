"""The one thing that a job of the bench writes."""

from __future__ import annotations

from django.db import models


class Effect(models.Model):
    """A row that an `exactly_once` body writes in the transaction of its job."""

    number = models.BigIntegerField()

    class Meta:
        db_table = "once_bench_effect"

    def __str__(self) -> str:
        return f"effect {self.number}"
