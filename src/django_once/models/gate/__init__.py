"""The gate and its verbs: what jobs under one limit or share have in common."""

from django_once.models.gate.row import Gate

__all__ = ["Gate"]
