"""The strike and its verbs: a task, or its jobs with certain arguments, that nobody is to start."""

from django_once.models.strike.row import Strike

__all__ = ["Strike"]
