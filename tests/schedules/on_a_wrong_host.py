"""A command of Django's on a host whose clock jumps: libfaketime lies, and sleeps stay sleeps.

python -m tests.schedules.on_a_wrong_host once scheduler
"""

from __future__ import annotations

import select
import sys
import time

from django.core.management import execute_from_command_line


def sleep(seconds: float) -> None:
    """Sleep where libfaketime, which lies about the time of day, breaks the sleep of Python."""
    select.select([], [], [], max(0.0, seconds))


if __name__ == "__main__":
    time.sleep = sleep
    execute_from_command_line(sys.argv)
