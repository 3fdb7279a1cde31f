"""The job and its verbs: each transition is one guarded statement in the file of its name."""

from django_once.models.job.row import Job

__all__ = ["Job"]
