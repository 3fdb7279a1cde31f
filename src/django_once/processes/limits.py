"""How soon a worker's connections notice that the other side is gone.

A host that vanishes sends no FIN, and by its defaults a client waits for it for hours. So the
processes of a worker give up after ten seconds without an acknowledgement, and connect anew. What
the settings say already stands, and a web process, which has its own wishes, is not touched. The
server's half (`tcp_keepalives_idle`, `client_connection_check_interval`) is the server's to set: a
pooler would refuse it from here.
"""

from __future__ import annotations

from typing import Any, Final

from django.db import connections

CLIENT: Final = {
    "connect_timeout": 5,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,
}
MYSQL: Final = {"connect_timeout": 5}


def limit(alias: str) -> None:
    """Limit what this process's connections to a database wait for, from the next one on."""
    options: dict[str, Any] = connections.settings[alias]["OPTIONS"]
    known = {"postgresql": CLIENT, "mysql": MYSQL}.get(connections[alias].vendor, {})
    if "service" in options:
        # Everything about the connection stands in a file of libpq's.
        return
    for name, value in known.items():
        options.setdefault(name, value)
