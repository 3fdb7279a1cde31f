"""The task execution: its row, and one file for each verb that changes it."""

from django_once.models.execution.row import TaskExecution

__all__ = ["TaskExecution"]
