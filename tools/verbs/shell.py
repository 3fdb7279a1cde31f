"""`dev.py shell`: a Django shell on SQLite, or a program after --, in the test environment."""

from __future__ import annotations

import argparse
import os

from tools.checkout import state_directory
from tools.children import watch
from tools.environments import ready_environment
from tools.interpreters import discover


def run(name: str, arguments: list[str]) -> int:
    cut = arguments.index("--") if "--" in arguments else len(arguments)
    arguments, program = arguments[:cut], arguments[cut + 1 :]
    parser = argparse.ArgumentParser(prog="dev.py shell", description=__doc__)
    parser.add_argument("--python", default="", metavar="P", help="this Python and no other")
    parser.add_argument("--offline", action="store_true", help="fetch nothing")
    options = parser.parse_args(arguments)
    environment = ready_environment(
        "test", discover(options.python or None).newest(), options.offline
    )
    variables = {
        "DJANGO_SETTINGS_MODULE": "tests.settings",
        "PATH": os.pathsep.join([str(environment.directory / "bin"), os.environ.get("PATH", "")]),
        "VIRTUAL_ENV": str(environment.directory),
    }
    if "ONCE_TEST_DATABASE_URL" not in os.environ:
        place = state_directory() / "shell"
        place.mkdir(exist_ok=True)
        variables["ONCE_TEST_DATABASE_URL"] = "sqlite://%s" % (place / "once.sqlite3")
    if program:
        return watch(program, variables)
    django = [environment.python, "-m", "django"]
    return watch([*django, "migrate", "--verbosity=0"], variables) or watch(
        [*django, "shell"], variables
    )
