"""`once schema`: what `--json` of a verb looks like, as a JSON Schema for programs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from django.core.management.base import CommandParser

from django_once.management.places import OK
from django_once.management.screen import Screen

SCHEMAS: Final = Path(__file__).parent.parent / "schemas"
NAMES: Final = tuple(sorted(one.stem for one in SCHEMAS.glob("*.json")))


def add_arguments(parser: CommandParser) -> None:
    """Declare which output."""
    parser.add_argument("name", nargs="?", choices=NAMES, help="of which output (default: all)")


def run(screen: Screen, options: dict[str, Any]) -> int:
    """Print one schema, or all of them by their names."""
    name = options["name"]
    screen.json(schema(name) if name else {one: schema(one) for one in NAMES})
    return OK


def schema(name: str) -> dict[str, Any]:
    """Return the schema of one output."""
    known: dict[str, Any] = json.loads((SCHEMAS / f"{name}.json").read_text())
    return known
