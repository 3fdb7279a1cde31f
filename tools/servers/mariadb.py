"""MariaDB and MySQL: sockets, binaries of the distribution, or its package unpacked in private."""

from __future__ import annotations

import os
import shutil
import socket
from pathlib import Path
from typing import TYPE_CHECKING

from tools.children import ask
from tools.errors import Refusal
from tools.servers.account import Account, our_name
from tools.servers.address import Address
from tools.servers.harness import Harness, reachable
from tools.servers.kind import Binaries, Kind, existing
from tools.servers.packages import unpacked

if TYPE_CHECKING:
    from tools.servers.search import Search

SOCKETS = (
    "/run/mysqld/mysqld.sock",
    "/var/run/mysqld/mysqld.sock",
    "/var/lib/mysql/mysql.sock",
    "/tmp/mysql.sock",
)
SBIN = ("/usr/sbin", "/usr/local/sbin", "/usr/libexec", "/opt/homebrew/opt/mariadb/bin")

# What is lost in a crash is thrown away anyway.
OPTIONS = (
    "--skip-networking",
    "--skip-name-resolve",
    "--skip-log-bin",
    "--innodb-flush-log-at-trx-commit=0",
    "--innodb-doublewrite=0",
    "--innodb-fast-shutdown=2",
    "--innodb-buffer-pool-size=128M",
    "--innodb-log-file-size=64M",
    "--max-connections=300",
    "--character-set-server=utf8mb4",
)

# What fills the system tables; all of it comes with the server's own package.
TABLES = ("mysql_system_tables.sql", "mysql_performance_tables.sql", "mysql_system_tables_data.sql")


class Mysql(Kind):
    """MySQL 8.4 or newer. It is in few distributions, so a URL or a running server it is."""

    name = "mysql"
    flavours = ("MySQL",)
    oldest = (8, 4)
    variables = ("ONCE_TEST_MYSQL_URL",)
    hints = ("DATABASE_URL",)
    schemes = ("mysql",)
    accounts = ("mysql",)
    remedy = "ONCE_TEST_MYSQL_URL=mysql://user:password@host/"
    can_be_fetched = False

    def addresses(self) -> list[Address]:
        users = [user for user in dict.fromkeys(["root", our_name()]) if user]
        places = [("", path) for path in existing(SOCKETS)] + [("127.0.0.1", "")]
        return [
            Address("mysql", host=host, user=user, socket=path)
            for host, path in places
            for user in users
        ]


class Mariadb(Mysql):
    """MariaDB 10.11 or newer, which the newest Django asks for."""

    name = "mariadb"
    flavours = ("MariaDB",)
    oldest = (10, 11)
    variables = ("ONCE_TEST_MARIADB_URL",)
    remedy = (
        "apt-get install mariadb-server-core, or ONCE_TEST_MARIADB_URL=mysql://user:password@host/"
    )
    can_be_fetched = True

    def installed(self) -> list[Binaries]:
        path = os.pathsep.join([os.environ.get("PATH", ""), *SBIN])
        names = [shutil.which(name, path=path) for name in ("mariadbd", "mysqld")]
        for name in names:
            if name and "MariaDB" in ask([name, "--no-defaults", "--version"], seconds=20).output:
                return [Binaries(Path(name), "local binaries")]
        return []

    def fetched(self, search: Search) -> list[Binaries]:
        root = unpacked("mariadb-server-core", search.offline)
        program = root / "usr" / "sbin" / "mariadbd"
        if not program.exists():
            raise Refusal("the distribution's package holds no mariadbd")
        return [Binaries(program, "distribution package, unpacked", root)]

    def account(self) -> Account:
        # It asks for no entry in the list of accounts, and refuses only root.
        return super().account() if os.getuid() == 0 else Account("", os.getuid(), os.getgid())

    def start(self, binaries: Binaries, harness: Harness) -> Address:
        account = self.account()
        place = harness.place_for("my", account)
        program, share = binaries.program, Path("/usr/share/mysql")
        more = []
        if binaries.tree is not None:
            root = reachable(binaries.tree, account, place)
            program = root / binaries.program.relative_to(binaries.tree)
            share = root / "usr" / "share" / "mysql"
            more = [
                "--lc-messages-dir=%s" % share,
                "--character-sets-dir=%s" % (share / "charsets"),
            ]
        else:
            share = share_of(program)
        path = place / "mysqld.sock"
        command = [str(program), "--no-defaults", "--datadir=%s" % (place / "data"), *more]
        command += ["--plugin-dir=%s" % (place / "plugins")]
        if binaries.tree is not None:
            command = with_libraries(root, command)
        self.prepare(command, share, harness, account, place)
        argv = [*command, "--socket=%s" % path, "--pid-file=%s" % (place / "pid"), *OPTIONS]
        harness.start(argv, account, place, lambda: answers(path), self.farewell)
        return Address("mysql", user="root", socket=str(path))

    def prepare(
        self, command: list[str], share: Path, harness: Harness, account: Account, place: Path
    ) -> None:
        """Make the system tables, with a root that has no password: only the socket leads in."""
        for name in ("data", "plugins"):
            (place / name).mkdir()
            account.give(place / name)
        try:
            tables = "".join((share / name).read_text(encoding="utf-8") for name in TABLES)
        except OSError as error:
            raise Refusal(
                "%s, which fills the system tables, is missing" % error.filename
            ) from error
        first = "CREATE DATABASE IF NOT EXISTS mysql;\nUSE mysql;\nSET @auth_root_socket=NULL;\n"
        quiet = [
            "--bootstrap",
            "--skip-log-bin",
            "--innodb-doublewrite=0",
            "--loose-innodb-flush-method=nosync",
        ]
        harness.run([*command, *quiet], account, place, said=first + tables)


def share_of(program: Path) -> Path:
    """Return where a server that is installed keeps the files that fill its system tables."""
    beside = program.resolve().parent.parent / "share"
    for candidate in (beside / "mysql", beside / "mariadb", Path("/usr/share/mysql"), beside):
        if (candidate / TABLES[0]).exists():
            return candidate
    return Path("/usr/share/mysql")


def with_libraries(root: Path, command: list[str]) -> list[str]:
    """Return a command that finds the libraries unpacked with its program before the system's."""
    places = [str(path) for path in root.glob("usr/lib/*-linux-*")] + [str(root / "usr" / "lib")]
    return ["/usr/bin/env", "LD_LIBRARY_PATH=" + os.pathsep.join(places), *command]


def answers(path: Path) -> bool:
    """Say whether a server greets on a socket."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(1)
        try:
            connection.connect(str(path))
            return bool(connection.recv(4))
        except OSError:
            return False
