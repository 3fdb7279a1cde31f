"""The gate: one limit or one share, and how far it was used.

Its row is what admitters lock, so that two of them never count the same slot as free. It holds
nothing that could not be lost: a gate without a row is one that nobody has used.
"""

from __future__ import annotations

from django.db import models

from django_once.models.fields import Name, RandomUUID


class Gate(models.Model):
    """What the jobs under one limit, or of one share, must pass before they get a place."""

    id = models.UUIDField(primary_key=True, db_default=RandomUUID(), editable=False)
    backend = Name(max_length=64, db_default="default")
    name = Name(max_length=255, db_default="")
    free_at = models.BigIntegerField(db_default=0)
    served = models.BigIntegerField(db_default=0)

    class Meta:
        app_label = "once"
        db_table = "once_gate"
        constraints = [models.UniqueConstraint(fields=["backend", "name"], name="once_gate_name")]

    def __str__(self) -> str:
        return str(self.name)
