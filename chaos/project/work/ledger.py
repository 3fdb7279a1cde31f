"""The ledger: what bodies did, in a file that is only ever appended to and no database undoes."""

from __future__ import annotations

import json
import os
from typing import Any
from uuid import uuid4

from django.conf import settings


def write(what: str, **said: Any) -> None:
    """Append one line, whole: by one system call, at the end, whoever else writes."""
    line = {"id": uuid4().hex, "what": what, "pid": os.getpid(), **said}
    file = os.open(settings.LEDGER, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(file, json.dumps(line).encode() + b"\n")
    finally:
        os.close(file)


def begun(context: Any, number: int) -> None:
    """Write that a body was called."""
    write("start", number=number, job=context.job_id, attempt=context.attempt, fence=context.fence)
