"""The notification: what a channel carries. A stored one is a job, of one listening group."""

from __future__ import annotations

from typing import Any, ClassVar

from django.db import models

from django_once.models.job.row import Job


class StoredNotifications(models.Manager[Any]):
    """Jobs that carry a notification."""

    def get_queryset(self) -> models.QuerySet[Any]:
        """Return the jobs of channels only."""
        return super().get_queryset().filter(channel__isnull=False)


class Notification(Job):
    """A job that carries what a channel was told, for one of its groups."""

    objects: ClassVar[StoredNotifications] = StoredNotifications()

    class Meta:
        app_label = "once"
        proxy = True
