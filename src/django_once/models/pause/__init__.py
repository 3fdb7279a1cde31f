"""The pause and its verbs: a queue, a task or a key of which nothing is to start."""

from django_once.models.pause.row import Pause

__all__ = ["Pause"]
