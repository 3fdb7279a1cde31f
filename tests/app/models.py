"""What the bodies of the tests' tasks write."""

from __future__ import annotations

from django.db import models

from django_once.models.fenced import FencedModel


class Note(models.Model):
    """Something that a body, or the code around an enqueue, left in the database."""

    text = models.CharField(max_length=200)

    def __str__(self) -> str:
        return self.text


class Report(FencedModel):
    """What is written under a lock, and carries its fence."""

    body = models.CharField(max_length=200)

    def __str__(self) -> str:
        return self.body
