"""Tags for a project's own templates: how far a job is, as a bar that moves by itself."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django import template

from django_once.dashboard import progress

register = template.Library()


@register.inclusion_tag("once/progress_bar.html")
def progress_bar(job: Any, backend: str = "", label: str = "Progress") -> dict[str, Any]:
    """Show how far a job is: a result, a row, or an id with its backend's alias."""
    alias = backend or getattr(job, "backend", "") or "default"
    id = UUID(str(getattr(job, "id", job)))
    return {"standing": progress.standing(alias, id), "address": progress.address_of(alias, id),
            "label": label}  # fmt: skip
