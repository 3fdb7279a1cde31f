"""Addresses of servers: read from URLs, written as URLs, shown without passwords."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import parse_qs, quote, unquote, urlsplit

from tools.errors import Refusal

SCHEMES = {
    "postgres": "postgresql",
    "postgresql": "postgresql",
    "postgis": "postgresql",
    "mysql": "mysql",
    "mariadb": "mysql",
    "redis": "redis",
    "rediss": "rediss",
    "valkey": "redis",
    "unix": "unix",
}
LOCAL = ("", "localhost", "::1", "0.0.0.0")


@dataclass(frozen=True)
class Address:
    """Where a server listens, and as whom to speak to it. The name of a database is never kept."""

    scheme: str
    host: str = ""
    port: int = 0
    user: str = ""
    password: str = ""
    socket: str = ""
    number: str = ""  # of a Redis database, the only name that is used

    @property
    def is_local(self) -> bool:
        return bool(self.socket) or self.host in LOCAL or self.host.startswith("127.")

    @property
    def url(self) -> str:
        return self._written(self.password)

    @property
    def shown(self) -> str:
        """Return the address as it may be printed."""
        return self.socket or "%s%s" % (
            self.host or "localhost",
            ":%d" % self.port if self.port else "",
        )

    def _written(self, password: str) -> str:
        if self.scheme == "unix":
            return "unix://%s%s" % (self.socket, "?db=" + self.number if self.number else "")
        port = ":%d" % self.port if self.port else ""
        host = "[%s]" % self.host if ":" in self.host else self.host
        secret = ":" + quote(password, safe="") if password else ""
        who = quote(self.user, safe="") + secret
        if self.scheme == "postgresql" and self.socket:
            more = "&user=%s" % who.partition(":")[0] if self.user else ""
            more += "&password=" + secret[1:] if secret else ""
            more += "&port=%d" % self.port if self.port else ""
            return "postgresql:///?host=%s%s" % (quote(self.socket), more)
        at = who + "@" if who else ""
        if self.socket:
            return "%s://%slocalhost/?unix_socket=%s" % (self.scheme, at, quote(self.socket))
        return "%s://%s%s%s/%s" % (self.scheme, at, host, port, self.number)


def read_address(url: str) -> Address:
    """Return the address a URL names.

    Raises Refusal when it names no kind of server that is known here; the URL is
    not repeated, since it may hold a password.
    """
    try:
        parts = urlsplit(url)
        port = parts.port or 0
    except ValueError as error:
        raise Refusal("The URL of a server cannot be read: %s." % error) from error
    scheme = SCHEMES.get(parts.scheme.partition("+")[0])
    if scheme is None:
        known = ", ".join(sorted(SCHEMES))
        raise Refusal("%r is no scheme of a server's URL; known are %s." % (parts.scheme, known))
    asked = {name: values[-1] for name, values in parse_qs(parts.query).items()}
    host = unquote(parts.hostname or "")
    socket = asked.get("unix_socket") or asked.get("socket") or ""
    if scheme == "unix":
        socket = unquote(parts.path)
    elif scheme == "postgresql":
        named = asked.get("host", host)
        host, socket = ("", named) if named.startswith("/") else (named, "")
    is_redis = scheme in ("redis", "rediss", "unix")
    number = asked.get("db", parts.path.strip("/") if scheme != "unix" else "") if is_redis else ""
    return Address(
        scheme=scheme,
        host="" if socket else host,
        port=int(asked.get("port") or port),
        user=unquote(parts.username or "") or asked.get("user", ""),
        password=unquote(parts.password or "") or asked.get("password", ""),
        socket=socket,
        number=number,
    )
