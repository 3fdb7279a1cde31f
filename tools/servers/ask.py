"""Questions to a server, asked from an environment that has the drivers; a program of its own.

The URL comes on standard input, because arguments can be seen by every user of a
machine. What is printed is one JSON object: the facts, or the complaint.

    python -m tools.servers.ask facts      version, flavour, and whether we may create a database
    python -m tools.servers.ask drop NAME  drop the databases whose names begin with NAME
"""

from __future__ import annotations

import json
import re
import sys
from typing import Any

from tools.servers.address import Address, read_address

SECONDS = 5
OURS = re.compile(r"^test_once_[a-z0-9_]+$")


def main(verb: str, *arguments: str) -> int:
    address = read_address(sys.stdin.read().strip())
    try:
        if verb == "facts":
            said: Any = facts(address)
        else:
            said = {"dropped": drop(address, arguments[0])}
    except Exception as error:  # noqa: BLE001 - whatever a driver raises is the answer
        said = {"complaint": (str(error).strip() or type(error).__name__).splitlines()[0]}
    print(json.dumps(said))
    return 0


def facts(address: Address) -> dict[str, Any]:
    """Return what the server says of itself; nothing is written."""
    if address.scheme == "postgresql":
        return postgresql_facts(address)
    if address.scheme == "mysql":
        return mysql_facts(address)
    return redis_facts(address)


def postgresql_facts(address: Address) -> dict[str, Any]:
    with postgresql(address) as connection:
        version = connection.execute("SHOW server_version").fetchone()[0].split()[0]
        may = "SELECT rolcreatedb OR rolsuper FROM pg_roles WHERE rolname = current_user"
        may_create = bool(connection.execute(may).fetchone()[0])
    return {"flavour": "PostgreSQL", "version": version, "may_create": may_create}


def mysql_facts(address: Address) -> dict[str, Any]:
    with mysql(address) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT VERSION()")
        version = cursor.fetchone()[0]
        cursor.execute("SHOW GRANTS")
        grants = [row[0] for row in cursor.fetchall()]
    flavour = "MariaDB" if "mariadb" in version.lower() else "MySQL"
    may_create = any(lets_create(grant) for grant in grants)
    return {"flavour": flavour, "version": version.split("-")[0], "may_create": may_create}


def lets_create(grant: str) -> bool:
    """Say whether a grant lets its owner create databases called test_once_…"""
    found = re.match(r"GRANT (.+?) ON (?:`?([^`]*?)`?)\.\* TO", grant)
    if not found:
        return False
    rights = [right.strip() for right in found.group(1).split(",")]
    pattern = (found.group(2) or "").replace("\\_", "_")
    covers = pattern == "*" or (pattern.endswith("%") and "test_once_".startswith(pattern[:-1]))
    return covers and ("ALL PRIVILEGES" in rights or "CREATE" in rights)


def redis_facts(address: Address) -> dict[str, Any]:
    import redis

    client = redis.Redis.from_url(
        address.url, socket_connect_timeout=SECONDS, socket_timeout=SECONDS
    )
    said = client.info("server")
    flavour = "Valkey" if "valkey_version" in said else "Redis"
    version = str(said.get("valkey_version") or said["redis_version"])
    return {"flavour": flavour, "version": version, "may_create": True}


def drop(address: Address, prefix: str) -> list[str]:
    """Drop the databases whose names begin with a prefix that is ours, and return their names."""
    if not OURS.match(prefix):
        raise ValueError("%r is not the name of a database of ours" % prefix)
    if address.scheme == "postgresql":
        with postgresql(address) as connection:
            rows = connection.execute("SELECT datname FROM pg_database").fetchall()
            names = [name for (name,) in rows if name.startswith(prefix) and OURS.match(name)]
            for name in names:
                connection.execute('DROP DATABASE IF EXISTS "%s" WITH (FORCE)' % name)
        return names
    with mysql(address) as connection, connection.cursor() as cursor:
        cursor.execute("SHOW DATABASES")
        names = [name for (name,) in cursor.fetchall() if name.startswith(prefix)]
        for name in names:
            cursor.execute("DROP DATABASE IF EXISTS `%s`" % name)
    return names


def postgresql(address: Address) -> Any:
    import psycopg

    return psycopg.connect(
        host=address.socket or address.host or None,
        port=address.port or None,
        user=address.user or None,
        password=address.password or None,
        dbname="postgres",
        connect_timeout=SECONDS,
        autocommit=True,
    )


def mysql(address: Address) -> Any:
    import pymysql

    return pymysql.connect(
        host=address.host or "localhost",
        port=address.port or 3306,
        user=address.user or None,
        password=address.password,
        unix_socket=address.socket or None,
        connect_timeout=SECONDS,
        autocommit=True,
    )


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
