"""What this machine is, as the report says, and whether it is too small for the usual numbers."""

from __future__ import annotations

import os
import platform
from typing import Any, Final

# On fewer processors, or with less memory than this, n is smaller, and it is said.
ENOUGH_PROCESSORS: Final = 2
ENOUGH_MEMORY: Final = 4_000_000_000


def memory() -> int:
    """Return the bytes of memory that there are."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def is_small() -> bool:
    """Return whether this machine is too small for the usual numbers."""
    return (os.cpu_count() or 1) < ENOUGH_PROCESSORS or memory() < ENOUGH_MEMORY


def machine() -> dict[str, Any]:
    """Return what somebody who compares two reports must know."""
    return {
        "processors": os.cpu_count(),
        "memory": memory(),
        "system": platform.platform(),
        "python": platform.python_version(),
    }
