"""Kinds of servers: for each, where to look, what is too old, and how to start one of our own."""

from __future__ import annotations

import signal
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Sequence

from tools.errors import Refusal
from tools.servers.account import Account, account_for
from tools.servers.address import Address

if TYPE_CHECKING:
    from tools.servers.harness import Harness
    from tools.servers.search import Search


@dataclass(frozen=True)
class Binaries:
    """Programs of a server, and where they came from."""

    program: Path
    origin: str
    tree: Path | None = None  # what must be copied when the server's account cannot reach it
    beside: tuple[Path, ...] = ()


class Kind:
    """A kind of server. Subclasses say what differs."""

    name = ""
    flavours: tuple[str, ...] = ()
    oldest: tuple[int, ...] = ()
    variables: tuple[str, ...] = ()  # addresses meant for these tests, which must work
    hints: tuple[str, ...] = ()  # addresses meant for something else, used if they fit
    schemes: tuple[str, ...] = ()
    accounts: tuple[str, ...] = ()
    remedy = ""
    farewell = signal.SIGTERM
    can_be_fetched = True

    def addresses(self) -> list[Address]:
        """Return where a server may be running."""
        return []

    def installed(self) -> list[Binaries]:
        """Return the binaries of this machine, best first."""
        return []

    def fetched(self, search: Search) -> list[Binaries]:
        """Return binaries that were fetched for this. Raises Refusal when that cannot be."""
        raise Refusal("none can be fetched")

    def start(self, binaries: Binaries, harness: Harness) -> Address:
        """Start a server of our own and return its address. Raises Refusal when it cannot."""
        raise NotImplementedError

    def account(self) -> Account:
        account = account_for(self.accounts)
        if account is None:
            raise Refusal(
                "this user has no entry in the list of accounts, which the server needs; "
                "nss_wrapper can give it one"
            )
        return account


def existing(paths: Sequence[str]) -> list[str]:
    """Return those sockets that exist, each once."""
    seen: dict[str, str] = {}
    for path in paths:
        if Path(path).exists():
            seen.setdefault(str(Path(path).resolve()), path)
    return list(seen.values())
