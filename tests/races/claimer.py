"""One of a crowd that claims, settles, gives back, tries again, hangs and comes too late.

It runs as a thread of a test, or as a process of its own: `python -m tests.races.claimer SEED
SECONDS` writes its notes as JSON when no job is left.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote, urlsplit, urlunsplit

ROOT = Path(__file__).parents[2]
# An attempt with this fence ends for good, so that every job comes to its end.
LAST_FENCE = 6


class Note(NamedTuple):
    """An attempt that a claimer was given, and whether the outcome that it sent was kept."""

    job: str
    claim: str
    fence: int
    status: str
    was_kept: bool


class Claimer:
    """One claimer with its own dice."""

    def __init__(self, seed: int, patience: float) -> None:
        from tests.jobs import DATABASE

        self.give_up_at = time.monotonic() + patience
        self.name = f"claimer-{seed}"
        self.database = DATABASE
        self.dice = random.Random(seed)
        self.notes: list[Note] = []
        self.late: list[list[tuple[Any, Any]]] = []

    def run(self) -> list[Note]:
        """Take part until every job has ended; return what happened to each attempt."""
        self.begin_anew()
        while True:
            attempts = self.walk.claim(self.dice.randint(1, 60))
            if not attempts:
                if self.all_have_ended():
                    break
                assert time.monotonic() < self.give_up_at, "Some jobs never end."
                time.sleep(0.005)
            pairs = [(attempt, self.outcome(attempt)) for attempt in attempts]
            if attempts and self.dice.random() < 0.15:
                self.hang(pairs)
            else:
                self.settle(pairs)
            if self.late and self.dice.random() < 0.3:
                self.settle(self.late.pop(0))
        for pairs in self.late:
            self.settle(pairs)
        return self.notes

    def begin_anew(self) -> None:
        from django_once.models.job.claim import Walk
        from tests.jobs import a_worker

        self.holder = a_worker(self.name)
        self.walk = Walk(self.database, self.holder)

    def outcome(self, attempt: Any) -> Any:
        from tests.jobs import another_try, failure, given_back, success

        kinds = [success, failure] if attempt.fence >= LAST_FENCE else [
            success, success, failure, another_try, given_back, self.a_later_try,
        ]  # fmt: skip
        return self.dice.choice(kinds)(attempt)

    def a_later_try(self, attempt: Any) -> Any:
        from tests.jobs import another_try

        return another_try(attempt, delay=0.01)

    def hang(self, pairs: list[tuple[Any, Any]]) -> None:
        """Stop renewing, hold on to what was claimed, and send the outcomes much later."""
        from django_once.models.worker import renew

        renew(self.database, [self.holder.id], timedelta(seconds=-1))
        self.late.append(pairs)
        self.begin_anew()

    def settle(self, pairs: list[tuple[Any, Any]]) -> None:
        from django_once.models.job.settle import settle

        superseded = settle(self.database, [outcome for _, outcome in pairs])
        self.notes += [
            Note(one.id.hex, one.claim.hex, one.fence, outcome.status, one.id not in superseded)
            for one, outcome in pairs
        ]

    def all_have_ended(self) -> bool:
        from django_once.models import Job

        jobs = Job.objects.using(self.database)
        return not jobs.filter(status__in=[Job.READY, Job.RUNNING]).exists()


class Process:
    """A claimer as a process of its own, on the databases of this test."""

    def __init__(self, seed: int, patience: float) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.races.claimer", str(seed), str(patience)],
            cwd=ROOT,
            env={
                **os.environ,
                "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}",
                "DJANGO_SETTINGS_MODULE": "tests.settings",
                "ONCE_TEST_DATABASE_URL": url_of_this_test(),
            },
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def is_ready(self) -> None:
        assert self.process.stdout.readline() == "ready\n"

    def notes(self, seconds: float) -> list[Note]:
        """Let it begin, and return its notes when it has ended."""
        output, _ = self.process.communicate("go\n", timeout=seconds)
        assert self.process.returncode == 0
        return [Note(*note) for note in json.loads(output)]

    def clear_away(self) -> None:
        self.process.kill()
        self.process.communicate()


def url_of_this_test() -> str:
    from django.db import connection

    from tests.settings import URL

    name = str(connection.settings_dict["NAME"])
    return urlunsplit(urlsplit(URL)._replace(path=quote(f"/{name.removeprefix('/')}")))


def main() -> None:
    import django

    django.setup()
    claimer = Claimer(int(sys.argv[1]), float(sys.argv[2]))
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.readline()
    sys.stdout.write(json.dumps(claimer.run()))


if __name__ == "__main__":
    main()
