"""One of a crowd: takes locks, writes under them, and writes down when it believed to hold what.

    python -m tests.locks.crowd LOG NAMES ROUNDS LEASE

Each line of the log is JSON. `from` and `until` are of the clock that all processes of a host
share, whatever time of day each of them believes in.
"""

from __future__ import annotations

import json
import os
import random
import select
import sys
import time
from pathlib import Path

import django


def main(path: str, names: int, rounds: int, lease: float) -> None:
    from django.db import Error, connection

    from django_once import clock
    from django_once.errors import FenceRefused, LockHeld, LockLost
    from django_once.locks import guard, lock
    from tests.app.models import Report

    with Path(path).open("a", buffering=1) as log:
        done = 0
        while done < rounds:
            number = 1 + random.randrange(names)
            try:
                held = lock(f"name-{number}", lease=lease, wait=0.2).acquire()
            except (LockHeld, Error):
                continue
            said = {"name": number, "fence": held.fence, "pid": os.getpid(), "from": clock.uptime()}
            log.write(json.dumps({**said, "what": "taken"}) + "\n")
            time.sleep(random.choice((0, 0, 0.001, 0.01)))
            try:
                asked = clock.uptime()
                guard(Report.objects.filter(pk=number), held.fence).update(body=str(os.getpid()))
                log.write(json.dumps({**said, "what": "wrote", "asked": asked,
                                      "until": clock.uptime()}) + "\n")  # fmt: skip
            except FenceRefused:
                log.write(json.dumps({**said, "what": "refused"}) + "\n")
            except Error:
                # The server went away: whether this was written nobody knows.
                connection.close()
            # Valid until it is given back, or until it was trusted no longer.
            until = min(clock.uptime(), held.lost.trusted_until)
            log.write(json.dumps({**said, "what": "held", "until": until}) + "\n")
            try:
                held.release()
            except LockLost:
                log.write(json.dumps({**said, "what": "lost"}) + "\n")
            done += 1


def sleep(seconds: float) -> None:
    """Sleep where libfaketime, which lies about the time of day, breaks the sleep of Python."""
    select.select([], [], [], max(0.0, seconds))


if __name__ == "__main__":
    time.sleep = sleep
    django.setup()
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4]))
