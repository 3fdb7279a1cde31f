"""The kinds of servers there are tests for, by name."""

from __future__ import annotations

from tools.servers.kind import Kind
from tools.servers.mariadb import Mariadb, Mysql
from tools.servers.postgresql import Postgresql
from tools.servers.redis import Redis

KINDS: dict[str, Kind] = {kind.name: kind for kind in (Postgresql(), Mariadb(), Mysql(), Redis())}
