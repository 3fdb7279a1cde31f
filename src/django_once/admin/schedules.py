"""The pages of schedules: to add and edit an operator's, and to steer all of them.

What is saved goes through the same verbs as everything else, so an edit first fires or records
what was due, and the next moment moves at once. A schedule that code declares is edited in the
code; here it can be held back and run.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import ValidationError
from django.db.models import QuerySet
from django.http import HttpRequest

from django_once import calls, clock, payload
from django_once.admin.text import NOTHING
from django_once.compat import InvalidTask, InvalidTaskBackend
from django_once.definitions import schedule
from django_once.errors import InvalidOption, OnceError
from django_once.management.steering import logged_in_admin
from django_once.management.verbs.schedules import rule_in_words, state_of
from django_once.models import Schedule, TaskExecution
from django_once.scheduling import editing, readings, running

LENGTHS = ("every", "jitter", "catch_up", "expect", "retention")
WORDS = (
    "name", "task", "cron", "every", "timezone", "starts_at", "ends_at", "jitter", "gap", "fold",
    "args", "kwargs", "queue", "priority", "backend", "overlap", "misfire", "catch_up", "expect",
    "retention",
)  # fmt: skip
DEFAULTS = {
    "timezone": "UTC", "args": "[]", "kwargs": "{}", "queue": "default", "priority": 0,
    "backend": "default", "overlap": "skip", "misfire": "coalesce", "retention": 86400.0,
}  # fmt: skip


class Length(forms.CharField):
    """A length of time as people write it: "90s", "5m", "1h30m", or seconds."""

    def __init__(self, **said: Any) -> None:
        super().__init__(**{"required": False, "help_text": "as in 30s, 5m, 6h or 7d", **said})

    def prepare_value(self, value: Any) -> Any:
        return f"{value:g}s" if isinstance(value, float) else value

    def to_python(self, value: Any) -> Any:
        text = super().to_python(value)
        if not text:
            return None
        try:
            number: Any = float(text) if text.replace(".", "", 1).isdigit() else text
            return clock.duration(number, str(self.label)).total_seconds()
        except InvalidOption as refused:
            raise ValidationError(str(refused)) from refused


class ScheduleForm(forms.ModelForm):  # type: ignore[type-arg]
    """A schedule as an operator writes it, refused as a scheduler would refuse it."""

    every = Length(label="every")
    jitter = Length(label="jitter")
    catch_up = Length(label="catch up")
    expect = Length(label="expect")
    retention = Length(label="retention", help_text="as in 24h; empty keeps the records for ever")
    gap = forms.ChoiceField(
        required=False, choices=[("", "as cron"), ("shift", "shift"), ("skip", "skip")]
    )
    fold = forms.ChoiceField(
        required=False,
        choices=[("", "as cron"), ("first", "first"), ("second", "second"), ("both", "both")],
    )

    class Meta:
        model = Schedule
        fields = WORDS

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name, value in DEFAULTS.items():
            if name in self.fields and self.instance._state.adding:
                self.fields[name].initial = value

    def clean(self) -> dict[str, Any]:
        """Return the words, or say beside each field what cannot be meant."""
        said: dict[str, Any] = super().clean() or self.cleaned_data
        said["jitter"] = said.get("jitter") or 0.0
        self._checked("cron", lambda: readings.rule_said({**said, "name": said.get("name") or "?"}))
        self._checked("overlap", lambda: self._policies(said))
        self._checked("task", lambda: self._call(said))
        return said

    def _policies(self, said: dict[str, Any]) -> None:
        schedule.policies(
            overlap=said.get("overlap"), misfire=said.get("misfire"),
            catch_up=said.get("catch_up"), expect=said.get("expect"),
            retention=said.get("retention"),
        )  # fmt: skip

    def _call(self, said: dict[str, Any]) -> None:
        task = readings.configured_task(
            readings.home(), said.get("task", ""), said.get("queue", ""),
            said.get("priority") or 0, said.get("backend", ""),
        )  # fmt: skip
        args, kwargs = (readings.decoded(said.get(name, ""), name) for name in ("args", "kwargs"))
        if not isinstance(args, list) or not isinstance(kwargs, dict):
            raise InvalidOption("args is a list and kwargs an object, both written as JSON.")
        calls.bound(task, payload.plain(args, "args"), payload.plain(kwargs, "kwargs"))

    def _checked(self, field: str, work: Callable[[], object]) -> None:
        try:
            work()
        except (ValueError, TypeError, InvalidTask, InvalidTaskBackend) as refused:
            self.add_error(field, str(refused))


@admin.display(description="rule")
def rule(row: Schedule) -> str:
    """Return what the rule means."""
    return rule_in_words(row)


@admin.display(description="state")
def state(row: Schedule) -> str:
    """Return where it stands."""
    return state_of(row)


@admin.display(description="last moments")
def last_moments(row: Schedule) -> str:
    """Return what became of the last due moments."""
    records = row.executions.order_by("-due_at")[:10]
    lines = [f"{one.due_at:%Y-%m-%d %H:%M:%S}Z {one.status} {one.reason}" for one in records]
    return "\n".join(lines) or NOTHING


class ScheduleAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    """Schedules: a list of what is due when, and a form for those of operators."""

    form = ScheduleForm
    list_display = ("name", state, rule, "next_due_at", "fired", "skipped", "source")
    list_filter = ("source", "enabled")
    search_fields = ("name", "task")
    ordering = ("name",)
    actions = ("enable", "disable", "resume", "run_now")
    told = ("source", "owner", "enabled", "paused_at", "paused_until", "pause_reason",
            "next_due_at", "watermark", "last_fired_at", "succeeded_at", "problem",
            last_moments)  # fmt: skip

    def get_fields(self, request: HttpRequest, row: Any = None) -> Any:
        return WORDS if row is None else (*WORDS, *self.told)

    def get_readonly_fields(self, request: HttpRequest, row: Any = None) -> Any:
        return () if row is None else self.told

    def has_change_permission(self, request: HttpRequest, row: Any = None) -> bool:
        """Leave to code what code declares; to hold it back and to run it are actions."""
        is_code = row is not None and row.source == Schedule.CODE
        return not is_code and super().has_change_permission(request, row)

    def has_delete_permission(self, request: HttpRequest, row: Any = None) -> bool:
        is_code = row is not None and row.source == Schedule.CODE
        return not is_code and super().has_delete_permission(request, row)

    def has_run_permission(self, request: HttpRequest) -> bool:
        """Return whether this person may run schedules by hand."""
        return request.user.has_perm("once.run_schedule")

    def save_model(self, request: HttpRequest, row: Any, form: Any, change: bool) -> None:
        """Store it by the verbs of schedules, which fire first what was due."""
        said = {name: form.cleaned_data[name] for name in WORDS if name in form.cleaned_data}
        database = readings.home()
        act = "edit" if change else "add"
        with logged_in_admin(database, request.user, act, "schedule", said["name"]) as log:
            if change:
                editing.change(database, row.pk, **{name: said[name] for name in form.changed_data})
            else:
                row.pk = editing.add(database, **said)
            log.tell(f"Stored: {', '.join(form.changed_data)}.")
        row.refresh_from_db(using=database)

    @admin.action(description="Enable selected schedules", permissions=["change"])
    def enable(self, request: HttpRequest, queryset: QuerySet[Schedule]) -> None:
        """Start them from now on."""
        self._each(request, queryset, editing.enable, "enabled")

    @admin.action(description="Disable selected schedules", permissions=["change"])
    def disable(self, request: HttpRequest, queryset: QuerySet[Schedule]) -> None:
        """Stop them, after what is due now."""
        self._each(request, queryset, editing.disable, "disabled")

    @admin.action(description="Resume selected schedules", permissions=["change"])
    def resume(self, request: HttpRequest, queryset: QuerySet[Schedule]) -> None:
        """End their pauses."""
        self._each(request, queryset, editing.resume, "resumed")

    @admin.action(description="Run selected schedules now", permissions=["run"])
    def run_now(self, request: HttpRequest, queryset: QuerySet[Schedule]) -> None:
        """Run each of them once, whatever its rule says."""
        self._each(request, queryset, running.run_now, "run")

    def _each(
        self, request: HttpRequest, queryset: QuerySet[Schedule],
        verb: Callable[[str, Any], object], word: str,
    ) -> None:  # fmt: skip
        done = 0
        for row in queryset:
            try:
                with logged_in_admin(
                    queryset.db, request.user, verb.__name__.removesuffix("_now"), "schedule",
                    row.name,
                ) as log:  # fmt: skip
                    verb(queryset.db, row.pk)
                    log.tell(f"It was {word}.")
                done += 1
            except OnceError as refused:
                self.message_user(request, f"{row.name}: {refused}", messages.ERROR)
        if done:
            self.message_user(request, f"{done} schedules were {word}.", messages.SUCCESS)


class TaskExecutionAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    """The records of firings: to look at."""

    list_display = ("schedule", "due_at", "kind", "status", "reason", "job", "completed_at")
    list_filter = ("status", "kind", "reason")
    search_fields = ("schedule__name",)
    list_select_related = ("schedule",)
    ordering = ("-due_at",)
    show_full_result_count = False

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, row: TaskExecution | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, row: TaskExecution | None = None) -> bool:
        return False
