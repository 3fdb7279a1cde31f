"""The series and its verbs: a succession of jobs under one key, which moves one at a time."""

from django_once.models.series.row import Series

__all__ = ["Series"]
