"""`python -m bench.play`: takes the measures of one database, in a process that is its own.

Django's settings are those of one process, and a server may go away in the midst: so each database
has a process, which writes its figures to the file that it was told.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import django
from django.core.management import call_command

from bench import screen
from bench.errors import Refusal


def main(kind: str, url: str, form: str, jobs: str, names: str, path: str) -> int:
    """Measure and return the exit code."""
    django.setup()
    # Models can be imported from here on only.
    from bench.measures import MEASURES  # noqa: PLC0415
    from bench.raw import raw_on  # noqa: PLC0415
    from bench.session import Session, scale_for  # noqa: PLC0415

    seen = screen.default()
    call_command("migrate", verbosity=0)
    session = Session(kind, scale_for(form, int(jobs)), raw_on(url), seen.figure)
    complaints: list[str] = []
    began = time.monotonic()
    for name in names.split(","):
        try:
            session.take(MEASURES[name](session))
        except (Refusal, TimeoutError) as error:
            complaints.append(f"{name}: {error}")
            seen.say(f"  ✗ {name}: {error}")
    session.raw.close()
    Path(path).write_text(
        json.dumps(
            {
                "figures": [figure.as_json() for figure in session.figures],
                "complaints": complaints,
                "seconds": round(time.monotonic() - began, 1),
            }
        )
    )
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
