"""`python -m bench`: measures the package beside the raw limit of each database, in one run."""

from __future__ import annotations

import argparse
import json
import os
import platform
import signal
import subprocess
import sys
import tempfile
from importlib import metadata
from pathlib import Path
from typing import Any, Final

from bench import screen, stage
from bench.catalogue import NAMES, names_for
from bench.errors import Refusal
from bench.machine import is_small, machine
from tools.checkout import ROOT, state_directory

MET, NOT_MET, MISUNDERSTOOD, INTERRUPTED = 0, 1, 2, 130
SETTINGS: Final = "bench.project.settings"


def main() -> int:
    """Measure what was asked for; the exit code says whether every gate was met."""
    wish = read_arguments()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        return measured(wish)
    except KeyboardInterrupt:
        print("Interrupted: servers and workers of the bench were stopped.", file=sys.stderr)
        return INTERRUPTED


def measured(wish: argparse.Namespace) -> int:
    """Measure each database, print the table and write the report."""
    seen = screen.default()
    report: dict[str, Any] = {"machine": machine(), "form": form_of(wish), "databases": {}}
    seen.say(
        f"django-once bench · Django {metadata.version('django')} · Python "
        f"{platform.python_version()} · {report['machine']['processors']} processors"
    )
    if is_small():
        seen.say("  This machine is small, so n is smaller; read ratios, not figures.")
    for kind in wish.database:
        try:
            with stage.place(kind) as place:
                seen.say(f"\n  {place.title}")
                seen.heading()
                report["databases"][kind] = {"title": place.title, **played(wish, place)}
        except Refusal as refusal:
            report["databases"][kind] = {"skipped": str(refusal)}
            seen.say(f"\n  {kind} was skipped: {refusal}")
    path = Path(wish.json) if wish.json else state_directory() / "reports" / "bench.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(report, indent=2, ensure_ascii=False) + "\n")
    return verdict(report, path)


def played(wish: argparse.Namespace, place: stage.Place) -> dict[str, Any]:
    """Measure one database in a process of its own and return what it reports."""
    names = names_for(place.kind, form_of(wish), wish.only)
    if not names:
        raise Refusal("nothing that --only names is measured there.")
    around = {
        **os.environ,
        "ONCE_BENCH_DATABASE_URL": place.url,
        "DJANGO_SETTINGS_MODULE": SETTINGS,
        "PYTHONWARNINGS": "ignore",
    }
    with tempfile.NamedTemporaryFile("r", prefix="once-bench-", suffix=".json") as found:
        command = [
            sys.executable, "-m", "bench.play", place.kind, place.url, form_of(wish),
            str(wish.jobs), ",".join(names), found.name,
        ]  # fmt: skip
        status = subprocess.run(command, env=around, cwd=ROOT, check=False).returncode
        if status:
            raise Refusal(f"the measurement ended with status {status}.")
        said: dict[str, Any] = json.load(found)
        return said


def verdict(report: dict[str, Any], path: Path) -> int:
    """Say how many gates are met and return the exit code."""
    figures = [
        figure for one in report["databases"].values() for figure in one.get("figures", ())
    ]  # fmt: skip
    gated = [figure for figure in figures if figure["met"] is not None]
    met = sum(figure["met"] for figure in gated)
    complaints = sum(len(one.get("complaints", ())) for one in report["databases"].values())
    screen.default().say(f"\n  {met} of {len(gated)} gates are met. Report: {path}")
    return MET if met == len(gated) and figures and not complaints else NOT_MET


def form_of(wish: argparse.Namespace) -> str:
    """Return which form was asked for."""
    return "quick" if wish.quick else "long" if wish.long else "usual"


def read_arguments() -> argparse.Namespace:
    """Return what was asked for; refuse what cannot be meant."""
    parser = argparse.ArgumentParser(prog="dev.py bench", description=__doc__)
    add = parser.add_argument
    add("--quick", action="store_true", help="about a minute: one round, small n, for a first look")
    add("--long", action="store_true", help="half an hour more: does the table stop growing")
    add(
        "--only", type=_chosen(NAMES), default=(), metavar="LIST",
        help="of " + ", ".join(NAMES),
    )  # fmt: skip
    add(
        "--database", type=_chosen(stage.DATABASES), default=("postgresql",), metavar="LIST",
        help="of " + ", ".join(stage.DATABASES) + " (postgresql)",
    )  # fmt: skip
    add("--jobs", type=_jobs, default=0, metavar="N", help="of a drain (as the form says)")
    add("--json", default="", metavar="FILE", help="where to write it (.dev/reports/bench.json)")
    return parser.parse_args()


def _jobs(text: str) -> int:
    if not text.isdigit() or not 100 <= int(text) <= 10_000_000:
        raise argparse.ArgumentTypeError(f"from 100 to 10,000,000, got {text}")
    return int(text)


def _chosen(known: tuple[str, ...]) -> Any:
    def read(text: str) -> tuple[str, ...]:
        named = tuple(name.strip() for name in text.split(",") if name.strip())
        for name in named:
            if name not in known:
                raise argparse.ArgumentTypeError(f"{name!r} is none of {', '.join(known)}")
        return named

    return read


if __name__ == "__main__":
    sys.exit(main())
