"""How far a job is, for people who are no operators: a bar in a page of the project's own.

    path("jobs/", include("django_once.dashboard.progress"))       # urls.py
    {% load once %} … {% progress_bar result %}                     # a template

The address that the bar asks carries a signed id, good for a day: whoever was shown the bar may
ask how far that job is, nobody can guess another's, and nothing but that is told. No argument,
result or error leaves by this door; what the task says in `context.progress(…, message)` does.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from hashlib import blake2b
from typing import Any, Final
from uuid import UUID

from django.core import signing
from django.db import connections
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.urls import NoReverseMatch, path, reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from django_once.backend import DatabaseBackend
from django_once.compat import InvalidTaskBackend, task_backends
from django_once.errors import InvalidOption
from django_once.models import Job
from django_once.models.job import look
from django_once.models.step import progress_of

SALT: Final = "django_once.progress"
VALID_FOR: Final = timedelta(days=1)
app_name = "once"
# What a stranger may know of where a job stands: four words are enough.
WORDS: Final = {
    look.READY: "waiting", look.SCHEDULED: "waiting", look.BLOCKED: "waiting",
    look.RUNNING: "running", look.FAILED: "failed", look.SUCCESSFUL: "successful",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Standing:
    """How far a job is: in a word, as a share of one where that is known, and what it says."""

    state: str
    share: float | None
    done: float | None
    total: float | None
    message: str

    @property
    def has_ended(self) -> bool:
        """Whether it will not go further."""
        return self.state in ("failed", "successful", "gone")

    @property
    def percent(self) -> str:
        """The share as text; empty where it is not known."""
        return "" if self.share is None else f"{self.share:.0%}"


def signed(backend: str, id: UUID | str) -> str:
    """Return an id that nobody can change, for an address."""
    return signing.dumps([backend, UUID(str(id)).hex], salt=SALT)


def address_of(backend: str, id: UUID | str) -> str:
    """Return where a bar asks how far its job is."""
    try:
        return reverse("once:progress", args=[signed(backend, id)])
    except NoReverseMatch as missing:
        raise InvalidOption(
            "No address answers for progress bars: add "
            'path("jobs/", include("django_once.dashboard.progress")) to the urls.'
        ) from missing


def standing(backend: str, id: UUID) -> Standing:
    """Return how far a job is; one that was pruned is gone."""
    database = _database(backend)
    jobs = Job.objects.using(database).filter(pk=id, backend=backend)
    job = jobs.only("status", "position", "blocked_by").first()
    if job is None:
        return Standing("gone", None, None, None, "")
    state = WORDS[look.state_of(job)]
    told = progress_of(database, id)
    if told is None:
        return Standing(state, 1.0 if state == "successful" else None, None, None, "")
    share = max(0.0, min(1.0, told.done / told.total)) if told.total else None
    if state == "successful":
        share = 1.0
    return Standing(state, share, told.done, told.total, told.message)


@never_cache
@require_safe
def show(request: HttpRequest, signed_id: str) -> HttpResponse:
    """Answer how far the job of a signed id is."""
    try:
        backend, id = signing.loads(signed_id, salt=SALT, max_age=VALID_FOR)
        now = standing(backend, UUID(id))
    except (signing.BadSignature, InvalidTaskBackend, InvalidOption) as refused:
        raise Http404("This address names no job, or is too old.") from refused
    answer = JsonResponse(
        {"state": now.state, "share": now.share, "done": now.done, "total": now.total,
         "message": now.message, "ended": now.has_ended}
    )  # fmt: skip
    etag = f'"{blake2b(answer.content, digest_size=12).hexdigest()}"'
    if request.headers.get("If-None-Match") == etag:
        answer = HttpResponse(status=304)  # type: ignore[assignment]
    answer["ETag"] = etag
    return answer


def _database(backend: str) -> str:
    found: Any = task_backends[backend]
    if not isinstance(found, DatabaseBackend) or found.database not in connections:
        raise InvalidOption(f"TASKS[{backend!r}] keeps no jobs in a database of ours.")
    return found.database


urlpatterns = [path("<str:signed_id>/progress/", show, name="progress")]
