"""Whose rights a server runs with: ours, or, when we are root, those of an account made for it."""

from __future__ import annotations

import os
import pwd
from dataclasses import dataclass
from pathlib import Path
from typing import Sequence

# Becomes the account and then the program, so that the pid stays the same.
# Python's own preexec_fn is not safe in a process that has threads.
BECOME = (
    "import os, sys; uid, gid = int(sys.argv[1]), int(sys.argv[2]); "
    "os.setgroups([]); os.setgid(gid); os.setuid(uid); os.umask(0o077); "
    "os.execv(sys.argv[3], sys.argv[3:])"
)


@dataclass(frozen=True)
class Account:
    """A user of this machine that a server can run as."""

    name: str
    uid: int
    gid: int

    def give(self, path: Path) -> None:
        """Make the account the owner of one file or directory of ours."""
        if os.getuid() == 0:
            os.chown(str(path), self.uid, self.gid)

    def prefixed(self, python: str, argv: Sequence[str]) -> list[str]:
        """Return how to run a program as this account."""
        if self.uid == os.getuid():
            return list(argv)
        return [python, "-I", "-c", BECOME, str(self.uid), str(self.gid), *argv]


def account_for(names: Sequence[str]) -> Account | None:
    """Return the account a server shall run as; None when this user has no account at all.

    Servers refuse root, so root takes the first account of these that exists,
    else nobody. None is made, and none is changed.
    """
    if os.getuid() != 0:
        return _account_of(os.getuid())
    for name in [*names, "nobody"]:
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return Account(entry.pw_name, entry.pw_uid, entry.pw_gid)
    return None


def our_name() -> str:
    """Return the name of the user we are; nothing when this user id has no entry."""
    found = _account_of(os.getuid())
    return found.name if found else ""


def _account_of(uid: int) -> Account | None:
    try:
        entry = pwd.getpwuid(uid)
    except KeyError:
        return None
    return Account(entry.pw_name, uid, os.getgid())
