"""The commands of dev.py: their names, what each is for, and the one place that calls them.

Whatever goes wrong on the way out of here is a sentence, never a traceback: a
Refusal says itself what to do, and the operating system's errors are translated.
"""

from __future__ import annotations

import difflib
import importlib
import signal
import sys
from typing import Iterable, Sequence

from tools.errors import Refusal, sentence_for

# Where each command lives, and what it is for. Order is that of the help.
COMMANDS = {
    "demo": ("tools.verbs.programs", "show it at work: real workers, real crashes, balanced books"),
    "test": ("tools.verbs.test", "run every test on every database that can be had"),
    "lint": ("tools.verbs.lint", "check style, types, layers and locks"),
    "docs": ("tools.verbs.docs", "build the documents; a warning is an error"),
    "bench": ("tools.verbs.programs", "measure speed"),
    "chaos": ("tools.verbs.programs", "kill things at random and audit the books"),
    "mutants": ("tools.verbs.programs", "take one guard after the other away; a test must notice"),
    "doctor": ("tools.verbs.doctor", "say what was found on this machine, and why"),
    "shell": (
        "tools.verbs.shell",
        "open a Django shell, or run a program, in the test environment",
    ),
    "clean": ("tools.verbs.clean", "remove everything dev.py has made"),
    "help": ("tools.commands", "show this"),
}

INTERRUPTED = 130


def run(argv: Sequence[str]) -> int:
    """Run one command and return the exit code: 0 well, 1 not well, 2 misunderstood."""
    name, arguments = (argv[0], list(argv[1:])) if argv else ("help", [])
    if name in ("help", "-h", "--help"):
        print(help_text())
        return 0
    if name not in COMMANDS:
        complain("%r is not a command.%s" % (name, did_you_mean(name, COMMANDS)))
        return 2
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, interrupt)
    try:
        return int(importlib.import_module(COMMANDS[name][0]).run(name, arguments))
    except Refusal as refusal:
        complain(str(refusal))
    except OSError as error:
        complain(sentence_for(error))
    except KeyboardInterrupt:
        complain("Interrupted: 'dev.py %s' did not finish." % name)
        return INTERRUPTED
    return 1


def help_text() -> str:
    lines = ["python3 dev.py COMMAND", ""]
    lines += ["  %-8s %s" % (name, purpose) for name, (_, purpose) in COMMANDS.items()]
    lines += ["", "Options of a command: python3 dev.py COMMAND --help"]
    return "\n".join(lines)


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return what to say after a word nobody knows: the nearest one, or all of them."""
    words = list(known)
    nearest = difflib.get_close_matches(word, words, n=1, cutoff=0.5)
    if nearest:
        return " Did you mean %r?" % nearest[0]
    return " There are: %s." % ", ".join(words)


def complain(text: str) -> None:
    sys.stdout.flush()
    encoding = sys.stderr.encoding or "ascii"
    print(text.encode(encoding, "replace").decode(encoding), file=sys.stderr, flush=True)


def interrupt(number: int, frame: object) -> None:
    """Treat a polite signal like Ctrl-C, so that servers are stopped on the way out."""
    raise KeyboardInterrupt
