"""The schedule: a rule in time for one task, and the watermark below which nothing fires again.

A row that SQL or another program inserts is complete by its defaults: it has no due moment yet,
and `fires_at` says that somebody shall look at it now. The first scheduler that does plans it.
`fires_at` is when the next due moment is acted on, later than it by the jitter; NULL when the
rule names no more moments.
"""

from __future__ import annotations

from django.db import models

from django_once.clock import Now
from django_once.models.fields import Moment, Name, PartialIndex, RandomUUID


class Schedule(models.Model):
    """A rule in time for one task."""

    CODE, DATABASE = "code", "database"
    OVERLAPS = ("skip", "queue_one", "queue_all", "allow")
    MISFIRES = ("coalesce", "all", "skip")

    id = models.UUIDField(primary_key=True, db_default=RandomUUID(), editable=False)
    name = Name(max_length=255, db_default="")
    task = Name(max_length=255, db_default="")

    cron = models.CharField(max_length=255, blank=True, db_default="")
    every = models.FloatField(null=True, blank=True)
    timezone = models.CharField(max_length=63, db_default="UTC")
    starts_at = Moment(null=True, blank=True)
    ends_at = Moment(null=True, blank=True)
    jitter = models.FloatField(db_default=0.0)
    gap = models.CharField(max_length=8, blank=True, db_default="")
    fold = models.CharField(max_length=8, blank=True, db_default="")

    args = models.TextField(db_default="[]")
    kwargs = models.TextField(db_default="{}")
    queue = Name(max_length=64, db_default="default")
    priority = models.SmallIntegerField(db_default=0)
    backend = Name(max_length=64, db_default="default")

    overlap = models.CharField(
        max_length=10, choices=[(one, one) for one in OVERLAPS], db_default="skip"
    )
    misfire = models.CharField(
        max_length=10, choices=[(one, one) for one in MISFIRES], db_default="coalesce"
    )
    catch_up = models.FloatField(null=True, blank=True)
    expect = models.FloatField(null=True, blank=True)
    # Seconds that the records of its firings are kept; NULL keeps them for ever.
    retention = models.FloatField(null=True, blank=True, db_default=86400.0)

    source = models.CharField(
        max_length=8, choices=[(CODE, "code"), (DATABASE, "database")], db_default=DATABASE
    )
    owner = Name(max_length=255, db_default="")
    enabled = models.BooleanField(db_default=True)
    paused_at = Moment(null=True)
    paused_until = Moment(null=True)
    pause_reason = models.CharField(max_length=255, db_default="")

    # It grows with each edit: whoever computed a due moment from older words moves nothing.
    version = models.BigIntegerField(db_default=0)
    rule_since = Moment(db_default=Now())
    next_due_at = Moment(null=True)
    fires_at = Moment(null=True, db_default=Now())
    watermark = Moment(null=True)
    # Below it the records were deleted: nobody knows any more what ran.
    evidence_from = Moment(null=True)

    fired = models.BigIntegerField(db_default=0)
    skipped = models.BigIntegerField(db_default=0)
    last_fired_at = Moment(null=True)
    succeeded_at = Moment(null=True)
    expected_by = Moment(null=True)
    problem = models.TextField(db_default="")

    class Meta:
        app_label = "once"
        db_table = "once_schedule"
        constraints = [models.UniqueConstraint(fields=["name"], name="once_schedule_name")]
        indexes = [
            models.Index(fields=["enabled", "fires_at"], name="once_schedule_due"),
            PartialIndex(
                name="once_schedule_expected",
                fields=["expected_by"],
                where="expected_by IS NOT NULL",
                whole=["expected_by"],
            ),
        ]
        permissions = [("run_schedule", "Can run and backfill schedule")]

    def __str__(self) -> str:
        return str(self.name)
