"""The tally and its verbs: how the attempts of a task went lately, and what follows from it."""

from django_once.models.tally.row import Tally

__all__ = ["Tally"]
