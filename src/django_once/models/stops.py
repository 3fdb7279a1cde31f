"""The nets under what stands against jobs: whatever was missed when it ended is let go later."""

from __future__ import annotations

from django_once.models.pause.stop import let_go_unpaused
from django_once.models.strike.stop import let_go_unstruck
from django_once.models.tally import Tally
from django_once.models.tally.breaker import let_go_unbroken, look_after_breakers
from django_once.models.tally.budget import look_after_budgets


def let_go_unstopped(database: str) -> int:
    """Give a place to all that a pause, a strike or a breaker blocks which is no more."""
    return let_go_unpaused(database) + let_go_unstruck(database) + let_go_unbroken(database)


def look_after_tallies(database: str) -> int:
    """Let go what breakers and budgets have forgotten or have room for; count them."""
    if not Tally.objects.using(database).exists():
        return 0
    return look_after_breakers(database) + look_after_budgets(database)
