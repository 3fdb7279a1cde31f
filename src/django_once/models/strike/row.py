"""The strike: which jobs of a task an operator has struck, and what becomes of them."""

from __future__ import annotations

from typing import Final

from django.db import models

from django_once.clock import Now
from django_once.models.fields import Moment, Name


class Strike(models.Model):
    """The jobs of a task with these arguments do not start; they wait, or end as cancelled."""

    WAIT: Final = "wait"
    CANCEL: Final = "cancel"

    # Drawn from what is struck: of the same jobs there is one strike. A job that it blocks names
    # it as its reason.
    id = Name(max_length=32, primary_key=True, db_default="")
    backend = Name(max_length=64, db_default="default")
    task = Name(max_length=255, db_default="")
    arguments = models.TextField(db_default="{}")
    outcome = models.CharField(max_length=8, db_default=WAIT)
    reason = models.CharField(max_length=255, db_default="")
    struck_by = models.CharField(max_length=255, db_default="")
    struck_at = Moment(db_default=Now())

    class Meta:
        app_label = "once"
        db_table = "once_strike"

    def __str__(self) -> str:
        return f"{self.task} {self.arguments}"
