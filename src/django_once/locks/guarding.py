"""Writes that carry a fence: the row keeps the highest it has seen, and refuses a lower one.

    guard(Report.objects.filter(pk=7), held.fence).update(body=text)

The comparison stands in the statement that writes. So a holder that was paused, and wakes up after
its lease went to another, changes nothing that the other has written. Fences of one lock compare
with each other, and with those of no other lock.
"""

from __future__ import annotations

from typing import Any

from asgiref.sync import sync_to_async
from django.core.exceptions import FieldDoesNotExist
from django.db import connections, router, transaction
from django.db.models import QuerySet

from django_once.errors import FenceRefused, InvalidOption, shortened


def guard(queryset: QuerySet[Any], fence: int, column: str = "fence") -> Guarded:
    """Return the rows of a queryset, to be written by the holder of this fence.

    `column` is where they keep the highest fence they have seen: see `FencedModel`.
    """
    if not isinstance(fence, int) or isinstance(fence, bool) or fence < 1:
        raise InvalidOption(f"A fence is a whole number from 1, got {shortened(fence)}.")
    try:
        queryset.model._meta.get_field(column)
    except FieldDoesNotExist:
        raise InvalidOption(
            f"{queryset.model._meta.label} has no column {column!r} for fences. Inherit from "
            "django_once.models.fenced.FencedModel, or name the column that has them."
        ) from None
    return Guarded(queryset, fence, column)


class Guarded:
    """Rows that may be written by who has the highest fence they have seen, or a higher one."""

    def __init__(self, rows: Any, fence: int, column: str) -> None:
        self._rows = rows
        self._fence = fence
        self._column = column
        self._database = rows._db or router.db_for_write(rows.model)

    def update(self, **changes: Any) -> int:
        """Change the rows, and let them remember the fence; return how many there are.

        Raises FenceRefused when one of them has seen a higher fence; then none is changed.
        """
        if self._column in changes:
            raise InvalidOption(
                f"update() sets {self._column!r} to the fence by itself: leave it out."
            )
        with transaction.atomic(using=self._database):
            count: int = self._open().update(**changes, **{self._column: self._fence})
            self._refuse_the_others()
        return count

    def delete(self) -> int:
        """Delete the rows; return how many objects went, those that hung on them included.

        Raises FenceRefused when one of them has seen a higher fence; then none is deleted.
        """
        with transaction.atomic(using=self._database):
            # The fence first: it locks what is about to go, whatever Django asks before it deletes.
            self.update()
            gone: tuple[int, Any] = self._open().delete()
        return gone[0]

    async def aupdate(self, **changes: Any) -> int:
        """Do what `update` does."""
        return await sync_to_async(self.update, thread_sensitive=True)(**changes)

    async def adelete(self) -> int:
        """Do what `delete` does."""
        return await sync_to_async(self.delete, thread_sensitive=True)()

    def _open(self) -> Any:
        return self._rows.using(self._database).filter(**{f"{self._column}__lte": self._fence})

    def _refuse_the_others(self) -> None:
        """Raise when rows have seen a higher fence: it only grows, so they are seen afterwards."""
        above = self._rows.using(self._database).filter(**{f"{self._column}__gt": self._fence})
        if connections[self._database].vendor == "mysql":
            # Under REPEATABLE READ a plain look shows what was there when the transaction began.
            above = above.select_for_update()
        seen = above.order_by(f"-{self._column}").values_list(self._column, flat=True).first()
        if seen is not None:
            raise FenceRefused(
                f"{self._rows.model._meta.label} has seen fence {seen}, and this write carries "
                f"{self._fence}: its lock went to somebody else meanwhile. Nothing was written."
            )
