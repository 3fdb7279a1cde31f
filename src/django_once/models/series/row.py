"""The series: what a key names, the succession of its jobs, and how often it moved on."""

from __future__ import annotations

from django.db import models

from django_once.models.fields import Moment, Name, RandomUUID


class Series(models.Model):
    """The succession of jobs under one key; it outlives them, so a generation never restarts."""

    id = models.UUIDField(primary_key=True, db_default=RandomUUID(), editable=False)
    backend = Name(max_length=64, db_default="default")
    key = Name(max_length=255, db_default="")
    generation = models.BigIntegerField(db_default=0)
    job = models.UUIDField(null=True)
    cancelled_at = Moment(null=True)

    class Meta:
        app_label = "once"
        db_table = "once_series"
        verbose_name_plural = "series"
        constraints = [models.UniqueConstraint(fields=["backend", "key"], name="once_series_key")]

    def __str__(self) -> str:
        return f"{self.key} (generation {self.generation})"
