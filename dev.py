#!/usr/bin/env python3
"""The one command of a checkout: sets up what it needs, then tests, lints, builds or shows.

    python3 dev.py help

Standard library only. The parts live in tools/; this file is kept to what the
oldest interpreters can read, so that they answer with a sentence.
"""

import sys

OLDEST = (3, 8)


def main():  # type: () -> int
    if sys.version_info < OLDEST:
        sys.stderr.write(
            "dev.py needs Python 3.8 or newer to look around, and one of 3.11 to 3.14 to work "
            "with; this is Python %d.%d.%d (%s).\n"
            "Run it with a newer one, for example: python3.11 dev.py %s\n"
            % (sys.version_info[:3] + (sys.executable, " ".join(sys.argv[1:]) or "help"))
        )
        return 2
    from tools.commands import run

    return run(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
