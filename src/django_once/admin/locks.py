"""The pages of locks: who holds what until when, who held it, and taking one away."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from django.contrib import admin, messages
from django.contrib.admin.models import CHANGE, LogEntry
from django.db import models
from django.http import HttpRequest
from django.utils.html import format_html_join
from django.utils.safestring import SafeString

from django_once import events
from django_once.admin import places, text
from django_once.management.screen import length, printable
from django_once.management.steering import logged_in_admin
from django_once.models import Lock
from django_once.models.lock import NOW, end_by_force, holders_of, state_of
from django_once.sql.lines import close_idle, line

RELEASE: Final = "once.release_lock"


@admin.display(description="name")
def name(lock: Any) -> str:
    """Return what is locked."""
    return printable(lock.name)


@admin.display(description="state")
def state(lock: Any) -> SafeString:
    """Return where it stands."""
    word = state_of(lock, lock.now)
    return text.state(word, word)


@admin.display(description="holder")
def holder(lock: Any) -> str:
    """Return who has it, or had it last."""
    return printable(lock.holder) or text.NOTHING


@admin.display(description="acquired")
def acquired(lock: Any) -> Any:
    """Return how long ago it was taken."""
    return text.moment(lock.acquired_at, lock.now)


@admin.display(description="lease")
def lease(lock: Any) -> str:
    """Return how long it is held unless it is renewed."""
    if lock.released_at is not None or lock.expires_at is None:
        return text.NOTHING
    left = (lock.expires_at - lock.now).total_seconds()
    return length(left) if left > 0 else f"over for {length(-left)}"


@admin.display(description="released")
def released(lock: Any) -> Any:
    """Return how long ago it was given back or taken away."""
    return text.moment(lock.released_at, lock.now)


@admin.display(description="released by")
def released_by(lock: Any) -> str:
    """Return who ended the last holding, and why."""
    return printable(f"{lock.released_by} {lock.reason}".strip()) or text.NOTHING


@admin.display(description="last holders")
def holders(lock: Any) -> SafeString | str:
    """Return who held it, the last first."""
    told = [
        (f"{one['fence']}: {printable(one['holder'])}, {one['acquired_at']} – {one['ended_at']}, "
         f"{one['end']} {printable(one.get('reason', ''))}",)
        for one in holders_of(lock)
    ]  # fmt: skip
    return format_html_join("", "<div>{}</div>", told) if told else text.NOTHING


SHOWN: Final = (
    name, state, holder, "fence", acquired, lease, released, released_by, holders,
)  # fmt: skip


class LockAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    """Looks at locks, and takes them from holders that will not give them back."""

    list_display = (name, state, holder, "fence", acquired, lease, released)
    list_display_links = (name,)
    show_full_result_count = False
    show_facets = admin.ShowFacets.NEVER
    sortable_by = ()
    ordering = ("-acquired_at", "name")
    search_fields = ("name",)
    actions = ("release_selected",)

    class Media:
        css = {"all": ["once/admin.css"]}

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Refuse: locks are taken by code."""
        return False

    def has_change_permission(self, request: HttpRequest, lock: Any = None) -> bool:
        """Refuse: only the verbs change locks."""
        return False

    def has_delete_permission(self, request: HttpRequest, lock: Any = None) -> bool:
        """Refuse: without its row a lock's fence would begin again."""
        return False

    def has_release_permission(self, request: HttpRequest) -> bool:
        """Return whether this user may take locks away."""
        return request.user.has_perm(RELEASE)

    def get_fieldsets(self, request: HttpRequest, lock: Any = None) -> Any:
        """Return what there is to say of a lock."""
        return [(None, {"fields": SHOWN})]

    def get_readonly_fields(self, request: HttpRequest, lock: Any = None) -> Any:
        """Return all that is shown."""
        return SHOWN

    def get_queryset(self, request: HttpRequest) -> models.QuerySet[Lock]:
        """Return the locks of the database that is asked for."""
        database = places.database_of(request)
        if database is None:
            return Lock.objects.none()
        return Lock.objects.using(database).annotate(now=NOW)

    @admin.action(description="Take the selected locks from their holders", permissions=["release"])
    def release_selected(self, request: HttpRequest, queryset: models.QuerySet[Lock]) -> None:
        """End the holdings by force; their holders find the locks lost."""
        by, reason = f"{request.user.get_username()} (admin)", "taken away in the admin"
        ended = self._ended(queryset, request.user, by, reason)
        user: Any = request.user.pk
        LogEntry.objects.log_actions(user, ended, CHANGE, "Took it from its holder.")
        level = messages.SUCCESS if ended else messages.WARNING
        word = "lock" if len(ended) == 1 else "locks"
        self.message_user(request, f"Took {len(ended)} {word} from their holders.", level)

    def _ended(self, locks: Iterable[Lock], user: Any, by: str, reason: str) -> list[Lock]:
        ended = []
        for lock in locks:
            database = str(lock._state.db)
            with (
                logged_in_admin(database, user, "release", "lock", lock.name, reason=reason) as log,
                line(database) as connection,
            ):
                if end_by_force(connection, lock.name, by, reason):
                    ended.append(lock)
                    events.lock_broken(lock.name, by, reason)
                log.tell("Taken from its holder.", int(lock in ended))
            close_idle(database, 0.0)
        return ended
