"""What the project keeps: orders, which bring a job each, and effects, which jobs leave."""

from __future__ import annotations

from django.db import models


class Order(models.Model):
    """What was asked for, in one transaction with the job that does it."""

    number = models.IntegerField(primary_key=True)
    kind = models.CharField(max_length=32)
    job = models.CharField(max_length=36)

    def __str__(self) -> str:
        return f"order {self.number}"


class Effect(models.Model):
    """What a body did in the database. Nothing here is unique: a second one would stand."""

    number = models.IntegerField()
    job = models.CharField(max_length=36)
    attempt = models.IntegerField()
    fence = models.BigIntegerField()

    def __str__(self) -> str:
        return f"effect of order {self.number}"
