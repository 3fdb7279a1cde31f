"""`manage.py once`: one command with a verb for each thing a person does with background work.

Exit status: 0, it went well; 1, a problem was found; 2, that cannot be meant; 3, the database
could not be reached.
"""

from __future__ import annotations

import argparse
import os
import sys
from typing import Any

from django.core.management.base import (
    BaseCommand,
    CommandError,
    CommandParser,
    SystemCheckError,
)
from django.db import DatabaseError, InterfaceError

from django_once.errors import OnceError
from django_once.management.places import explained
from django_once.management.screen import Screen
from django_once.management.verbs import VERBS


class Command(BaseCommand):
    """Runs workers, and shows and steers what they do."""

    help = "Background work: run workers, look at jobs, steer them."

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the verbs."""
        verbs = parser.add_subparsers(dest="verb", required=True, metavar="verb")
        for name, verb in VERBS.items():
            own = verbs.add_parser(name, help=verb.HELP, description=_sentence(verb.HELP))
            verb.add_arguments(own)
            add_base_arguments(own)

    def execute(self, *args: Any, **options: Any) -> str | None:
        """Check the project before a worker starts; who looks must see a broken one too."""
        if options.get("verb") != "worker":
            options["skip_checks"] = True
        try:
            return super().execute(*args, **options)
        except SystemCheckError as error:
            error.returncode = 2
            raise

    def handle(self, *args: Any, **options: Any) -> None:
        """Do what the verb says."""
        screen = Screen(self, options)
        try:
            status = VERBS[options["verb"]].run(screen, options)
        except OnceError as error:
            raise CommandError(str(error), returncode=2) from error
        except (DatabaseError, InterfaceError) as error:
            raise explained(error, options.get("backend")) from error
        except BrokenPipeError:
            # Whoever read has seen enough, as in `once jobs | head`.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            status = 0
        if status:
            sys.exit(status)


def add_base_arguments(parser: CommandParser) -> None:
    """Take Django's own options after the verb too; what is not said there is kept."""
    unsaid = argparse.SUPPRESS
    add = parser.add_argument_group("of every command").add_argument
    add(
        "-v", "--verbosity", type=int, choices=[0, 1, 2, 3], default=unsaid, help="how much is told"
    )
    add("--settings", default=unsaid, help="the Python path of a settings module")
    add("--pythonpath", default=unsaid, help="a directory to add to the Python path")
    add("--traceback", action="store_true", default=unsaid, help="raise errors of this command")
    add("--no-color", action="store_true", default=unsaid, help="no colours; NO_COLOR says so too")
    add("--force-color", action="store_true", default=unsaid, help="colours without a terminal")
    add("--skip-checks", action="store_true", default=unsaid, help="skip the system checks")


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."
