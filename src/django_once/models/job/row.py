"""The job: one stored request to run a task to its end.

Only the verbs beside this file change these columns, each in one guarded statement. What the
engine must decide about a job whose code it may not have (budgets, deadlines, limits) stands in
the row. Every column that may not be empty has a default of the database, since triggers, SQL
and workers of an older release insert too.

`position` is the job's place in the ready index: NULL while it waits for its time or is blocked,
drawn anew each time it becomes ready, and in no other index.
"""

from __future__ import annotations

from django.db import models

from django_once.clock import Now
from django_once.compat import TaskResultStatus
from django_once.models.fields import Moment, Name, PartialIndex, RandomUUID


class Job(models.Model):
    """One stored request to run a task to its end."""

    READY = TaskResultStatus.READY.value
    RUNNING = TaskResultStatus.RUNNING.value
    FAILED = TaskResultStatus.FAILED.value
    SUCCESSFUL = TaskResultStatus.SUCCESSFUL.value
    STATUSES = [
        (READY, "Ready"), (RUNNING, "Running"), (FAILED, "Failed"), (SUCCESSFUL, "Successful"),
    ]  # fmt: skip

    id = models.UUIDField(primary_key=True, db_default=RandomUUID(), editable=False)
    backend = Name(max_length=64, db_default="default")
    task = Name(max_length=255, db_default="")
    args = models.TextField(db_default="[]")
    kwargs = models.TextField(db_default="{}")
    return_value = models.TextField(null=True)
    queue = Name(max_length=64, db_default="default")
    priority = models.SmallIntegerField(db_default=0)

    run_after = Moment(null=True)
    due_at = Moment(db_default=Now())
    position = models.BigIntegerField(null=True)

    status = models.CharField(max_length=10, choices=STATUSES, db_default=READY)
    reason = models.CharField(max_length=32, db_default="")
    # As long as the longest name of a lock, behind the word for it.
    blocked_by = Name(max_length=260, db_default="")

    fence = models.BigIntegerField(db_default=0)
    claim = models.UUIDField(null=True)
    attempt = models.IntegerField(db_default=0)
    failures = models.IntegerField(db_default=0)
    max_attempts = models.IntegerField(db_default=1)
    deaths = models.IntegerField(db_default=0)
    max_deaths = models.IntegerField(db_default=3)
    suspect = models.BooleanField(db_default=False)
    timeout = models.FloatField(null=True)
    expires_at = Moment(null=True)
    cancel_requested_at = Moment(null=True)
    worker = models.UUIDField(null=True)
    worker_name = Name(max_length=64, db_default="")

    enqueued_at = Moment(db_default=Now())
    started_at = Moment(null=True)
    last_attempted_at = Moment(null=True)
    finished_at = Moment(null=True)
    history = models.TextField(db_default="[]")

    delivery = models.CharField(max_length=16, db_default="at_least_once")
    key = Name(max_length=255, null=True)
    generation = models.BigIntegerField(db_default=0)
    every = models.FloatField(null=True)
    unique_hash = Name(max_length=64, null=True)
    unique_until = Moment(null=True)
    limit_key = Name(max_length=255, null=True)
    fair_key = Name(max_length=255, null=True)
    gate = Name(max_length=255, null=True)
    gate_rank = models.BigIntegerField(null=True)
    rule = models.TextField(null=True)
    batch = Name(max_length=64, null=True)
    channel = Name(max_length=255, null=True)
    kept_for = models.FloatField(null=True)
    order_key = Name(max_length=255, null=True)
    meta = models.TextField(db_default="{}")

    class Meta:
        app_label = "once"
        db_table = "once_job"
        permissions = [
            ("retry_job", "Can retry job"),
            ("cancel_job", "Can cancel job"),
            ("view_payload", "Can view the arguments and results of jobs"),
        ]
        indexes = [
            PartialIndex(
                name="once_job_ready",
                fields=["backend", "queue", "priority", "position"],
                where="status = 'READY' AND position IS NOT NULL",
                whole=["status", "backend", "queue", "priority", "position"],
            ),
            PartialIndex(
                name="once_job_waiting",
                fields=["due_at"],
                where="status = 'READY' AND position IS NULL AND blocked_by = ''",
                whole=["status", "blocked_by", "position", "due_at"],
            ),
            PartialIndex(
                name="once_job_blocked",
                fields=["blocked_by"],
                where="status = 'READY' AND blocked_by <> ''",
                whole=["blocked_by"],
            ),
            PartialIndex(
                name="once_job_running",
                fields=["worker"],
                where="status = 'RUNNING'",
                whole=["status", "worker"],
            ),
            PartialIndex(
                name="once_job_gate",
                fields=["backend", "gate", "blocked_by", "gate_rank"],
                where="gate IS NOT NULL AND finished_at IS NULL",
                whole=["backend", "gate", "blocked_by", "gate_rank"],
            ),
            PartialIndex(
                name="once_job_finished",
                fields=["finished_at"],
                where="finished_at IS NOT NULL",
                whole=["finished_at"],
            ),
            # Failures are what people look for, and few among millions that went well.
            PartialIndex(
                name="once_job_failed",
                fields=["finished_at"],
                where="status = 'FAILED'",
                whole=["finished_at", "status"],
            ),
            # Partial, since most jobs are not unique: an index would take a NULL of each of them,
            # and another with every change of the row.
            PartialIndex(
                name="once_job_unique",
                fields=["unique_hash"],
                where="unique_hash IS NOT NULL",
                whole=["unique_hash"],
                unique=True,
            ),
            PartialIndex(
                name="once_job_key",
                fields=["key"],
                where="key IS NOT NULL",
                whole=["key"],
            ),
            PartialIndex(
                name="once_job_order",
                fields=["order_key", "generation"],
                where="order_key IS NOT NULL AND finished_at IS NULL",
                whole=["order_key", "finished_at", "generation"],
            ),
            PartialIndex(
                name="once_job_kept",
                fields=["finished_at"],
                where="kept_for IS NOT NULL AND finished_at IS NOT NULL",
                whole=["kept_for", "finished_at"],
            ),
        ]

    def __str__(self) -> str:
        return f"{self.task} ({self.id}, {self.status})"
