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
from django_once.management.verbs import HELP, VERBS
from django_once.management.watch import add_watch, repeatedly


class Command(BaseCommand):
    """Runs workers, and shows and steers what they do."""

    help = "Background work: run workers, look at jobs, steer them."

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the verbs."""
        verbs = parser.add_subparsers(
            dest="verb", required=True, metavar="verb", parser_class=VerbParser
        )
        for name, text in HELP.items():
            own = verbs.add_parser(name, help=text, description=_sentence(text))
            own.verb = name
            # `call_command` asks every verb for its options before it knows which one is meant.
            if not getattr(self, "_called_from_command_line", False):
                own.fill()

    def execute(self, *args: Any, **options: Any) -> str | None:
        """Check the project before a worker starts; who looks must see a broken one too."""
        if options.get("verb") not in ("worker", "listen"):
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
            status = repeatedly(VERBS[options["verb"]].run, screen, options)
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


class VerbParser(CommandParser):
    """Reads what is said to one verb, which is loaded when it is said."""

    verb = ""

    def fill(self) -> None:
        """Take what the verb takes; once."""
        name, self.verb = self.verb, ""
        if name:
            VERBS[name].add_arguments(self)
            if getattr(VERBS[name], "WATCHES", False):
                add_watch(self)
            add_base_arguments(self)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Read the words after the verb."""
        if self.verb:
            self.fill()
            # A verb may have put a way of its own to read them in this one's place.
            return self.parse_known_args(args, namespace)
        return super().parse_known_args(args, namespace)


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
