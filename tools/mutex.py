"""One at a time: a file that one dev.py holds while it makes something others may want too."""

from __future__ import annotations

import contextlib
import fcntl
from pathlib import Path
from typing import Iterator


@contextlib.contextmanager
def held(path: Path) -> Iterator[int]:
    """Hold the file's lock for the length of a with-block; wait for it if another has it.

    The kernel drops it when the holder dies, so nothing is ever left locked. A
    child that is given the number which the block gets holds it too: should the
    holder be killed, nobody gets in before that child has ended.
    """
    with open(str(path), "a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield file.fileno()
