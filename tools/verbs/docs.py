"""`dev.py docs`: the documents, built with every warning an error."""

from __future__ import annotations

import argparse

from tools.checkout import ROOT, short_path, state_directory
from tools.children import ask
from tools.environments import ready_environment
from tools.errors import Refusal
from tools.interpreters import discover
from tools.progress import Step, say


def run(name: str, arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="dev.py docs", description=__doc__)
    parser.add_argument("--python", default="", metavar="P", help="this Python and no other")
    parser.add_argument("--offline", action="store_true", help="fetch nothing")
    parser.add_argument(
        "--if-possible", action="store_true", help="well done, too, where no Python can build them"
    )
    options = parser.parse_args(arguments)
    if not (ROOT / "docs" / "conf.py").exists():
        raise Refusal("There are no documents to build yet: docs/conf.py does not exist.")
    usable = discover(options.python or None).in_series((3, 12), (3, 14))
    if not usable:
        lacking = (
            "The documents are built with Python 3.12 or newer, and none that works was found."
        )
        if not options.if_possible:
            raise Refusal(lacking)
        say("NOT BUILT. %s" % lacking)
        return 0
    environment = ready_environment("docs", usable[0], options.offline)
    built = state_directory() / "docs"
    argv = [environment.python, "-m", "sphinx", "-W", "--keep-going", "-b", "html", "-q"]
    argv += ["-d", str(built / "doctrees"), str(ROOT / "docs"), str(built / "html")]
    with Step("documents"):
        answer = ask(argv, seconds=600)
        if not answer.is_good:
            raise Refusal("The documents could not be built:\n%s" % answer.output.rstrip())
    say("Open %s" % short_path(built / "html" / "index.html"))
    return 0
