"""The schedule: its row, and one file for each verb that changes it."""

from django_once.models.schedule.row import Schedule

__all__ = ["Schedule"]
