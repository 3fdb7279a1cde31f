"""Where things are: the checkout, and the directory for everything dev.py makes.

State lives in .dev/ of the checkout. Where that cannot be written (a read-only
mount, another owner) it goes to the user's cache directory, else to a temporary
one, under a name made from the checkout's path.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from pathlib import Path

from tools.errors import Refusal

ROOT = Path(__file__).resolve().parent.parent
REQUIREMENTS = ROOT / "requirements"
SOURCE = ROOT / "src"


def state_directory(root: Path = ROOT) -> Path:
    """Return the directory for everything dev.py makes, which exists and can be written."""
    refused = []
    for candidate in state_candidates(root):
        if can_write_in(candidate):
            return candidate
        refused.append(str(candidate))
    raise Refusal(
        "None of these directories can be written: %s. Set ONCE_DEV_STATE to one that can."
        % ", ".join(refused)
    )


def state_candidates(root: Path) -> list[Path]:
    """Return where state may live, best first; a place that was asked for is the only one."""
    asked_for = os.environ.get("ONCE_DEV_STATE")
    if asked_for:
        return [Path(asked_for).resolve()]
    name = "django-once-" + hashlib.sha256(str(root).encode()).hexdigest()[:12]
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    temporary = "%s-%s" % (name, os.getuid()) if hasattr(os, "getuid") else name
    return [root / ".dev", Path(cache) / name, Path(tempfile.gettempdir()) / temporary]


def can_write_in(directory: Path) -> bool:
    """Make the directory if need be, and say whether a file can be made in it."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
        if hasattr(os, "getuid") and directory.stat().st_uid not in (os.getuid(), 0):
            return os.getuid() == 0
        with tempfile.TemporaryFile(dir=str(directory)):
            return True
    except OSError as error:
        # A full disk is no reason to fill another one: the caller gets the sentence.
        if error.errno in (28, 122):
            raise
        return False


def short_path(path: object) -> str:
    """Return a path as a person reads it: relative to the checkout, or with ~ for home."""
    text, home = str(path), os.path.expanduser("~")
    if text.startswith(str(ROOT) + os.sep):
        return text[len(str(ROOT)) + 1 :]
    if home != "/" and text.startswith(home + os.sep):
        return "~" + text[len(home) :]
    return text
