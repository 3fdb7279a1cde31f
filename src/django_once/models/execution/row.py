"""The task execution: this schedule fired for this due moment, and the permit to run it once.

PENDING under a job of ours until that has ended. Where a foreign backend runs the task there is no
job: the row itself is the permit, dispatched after the commit and completed by the body's own
transaction. `leased_until` is when somebody else may dispatch it again.
"""

from __future__ import annotations

from django.db import models

from django_once.clock import Now
from django_once.models.fields import Moment, PartialIndex, RandomUUID
from django_once.models.schedule.row import Schedule


class TaskExecution(models.Model):
    """One due moment of one schedule: recorded once, run once or skipped with a reason."""

    PENDING, COMPLETED, SKIPPED = "PENDING", "COMPLETED", "SKIPPED"
    # What made the moment due: the rule, or a person.
    BY_RULE, MANUAL, BACKFILL = "schedule", "manual", "backfill"

    id = models.UUIDField(primary_key=True, db_default=RandomUUID(), editable=False)
    # A deleted schedule leaves its executions behind: they are the evidence, and the permits
    # of runs that are still on their way. The unique constraint leads there.
    schedule = models.ForeignKey(
        Schedule, models.SET_NULL, null=True, related_name="executions", db_index=False
    )
    due_at = Moment(db_default=Now())
    # The last moment of many that one record stands for; nobody could keep all of them.
    through = Moment(null=True)
    kind = models.CharField(
        max_length=8,
        choices=[(BY_RULE, "schedule"), (MANUAL, "manual"), (BACKFILL, "backfill")],
        db_default=BY_RULE,
    )
    status = models.CharField(
        max_length=9,
        choices=[(PENDING, "Pending"), (COMPLETED, "Completed"), (SKIPPED, "Skipped")],
        db_default=PENDING,
    )
    reason = models.CharField(max_length=64, db_default="")
    job = models.UUIDField(null=True)
    result = models.CharField(max_length=64, db_default="")
    created_at = Moment(db_default=Now())
    leased_until = Moment(null=True)
    dispatched_at = Moment(null=True)
    dispatch_count = models.IntegerField(db_default=0)
    completed_at = Moment(null=True)
    retention = models.FloatField(null=True, db_default=86400.0)
    kept_until = Moment(null=True)

    class Meta:
        app_label = "once"
        db_table = "once_execution"
        constraints = [
            models.UniqueConstraint(fields=["schedule", "due_at"], name="once_execution_moment")
        ]
        indexes = [
            PartialIndex(
                name="once_execution_open",
                fields=["schedule"],
                where="status = 'PENDING'",
                whole=["status", "schedule"],
            ),
            PartialIndex(
                name="once_execution_job",
                fields=["job"],
                where="job IS NOT NULL",
                whole=["job"],
            ),
            PartialIndex(
                name="once_execution_kept",
                fields=["kept_until"],
                where="kept_until IS NOT NULL",
                whole=["kept_until"],
            ),
        ]

    def __str__(self) -> str:
        return f"{self.schedule_id} at {self.due_at} ({self.status})"
