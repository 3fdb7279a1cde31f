"""Fences on users' own rows: the column that remembers them, and the trigger that keeps it.

    class Report(FencedModel):
        body = models.TextField()

`django_once.locks.guard` writes such rows. Where other code writes them too, a migration can have
the database itself refuse a lower fence:

    operations = [RefuseLowerFences("Report")]
"""

from __future__ import annotations

from typing import Any

from django.db import models
from django.db.migrations.operations.base import Operation

from django_once.sql import fences


class FencedModel(models.Model):
    """A row that remembers the highest fence that wrote it."""

    fence = models.BigIntegerField(default=0, db_default=0, editable=False)

    class Meta:
        abstract = True


class RefuseLowerFences(Operation):
    """Adds a trigger to a model's table that refuses updates with a lower fence.

    SQLite drops a table's triggers when a later migration rebuilds the table: repeat it there.
    """

    reversible = True

    def __init__(self, model_name: str, column: str = "fence") -> None:
        self.model_name = model_name
        self.column = column

    def state_forwards(self, app_label: str, state: Any) -> None:
        """Change nothing in what Django knows of the model."""

    def database_forwards(
        self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any
    ) -> None:
        """Make the trigger."""
        self._change(fences.create, app_label, schema_editor, to_state)

    def database_backwards(
        self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any
    ) -> None:
        """Take the trigger away."""
        self._change(fences.drop, app_label, schema_editor, from_state)

    def describe(self) -> str:
        """Return what `migrate` says of it."""
        return f"Refuse lower fences in {self.model_name}"

    def _change(self, change: Any, app_label: str, schema_editor: Any, state: Any) -> None:
        model = state.apps.get_model(app_label, self.model_name)
        if self.allow_migrate_model(schema_editor.connection.alias, model):
            column = model._meta.get_field(self.column).column
            change(schema_editor, model._meta.db_table, column)
