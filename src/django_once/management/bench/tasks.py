"""What `once bench` runs: bodies that do nothing, so that the time is that of the rest.

They are no tasks until `once bench` makes them some, of a backend that exists as long as it runs.
"""

from __future__ import annotations

import os
import struct
import time
from typing import Final

STARTED: Final = struct.Struct("=qd")


def nothing(number: int) -> None:
    """Do nothing."""


def tell(number: int, line: int) -> None:
    """Say on a line of this host when this body was called."""
    os.write(line, STARTED.pack(number, time.monotonic()))
