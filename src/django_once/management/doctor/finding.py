"""A finding of the doctor: what was looked at, how bad it is, and what to do about it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

OK: Final = "ok"
NOTE: Final = "note"
WARNING: Final = "warning"
ERROR: Final = "error"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at; what is wrong has a remedy."""

    name: str
    level: str
    says: str
    remedy: str = ""
    evidence: dict[str, Any] = field(default_factory=dict)
