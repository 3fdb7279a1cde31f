"""A line to PostgreSQL that is cut where a test says: before a message, or after its answer.

What goes to the server is read message by message, so that a cut comes exactly at a COMMIT: before
it was forwarded (the server never saw it), or after the server has carried it out (the client never
learns). Each cut happens once; whoever connects again finds the line whole.
"""

from __future__ import annotations

import socket
import struct
import threading
from contextlib import suppress
from dataclasses import dataclass, field

READY = b"Z"


@dataclass
class Cut:
    """Where to cut: at a message that holds these words, on a line that carried others before."""

    words: bytes
    since: bytes
    is_after: bool
    was_made: threading.Event = field(default_factory=threading.Event)


class Proxy:
    """A port on this host that leads to a server's socket, and its cuts."""

    def __init__(self, server: tuple[str, int] | str) -> None:
        self._server = server
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._cut: Cut | None = None
        self._lock = threading.Lock()
        self._open: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def port(self) -> int:
        return int(self._listening.getsockname()[1])

    def cut(self, words: str, *, after: bool, since: str = "") -> Cut:
        """Cut the line at a message that holds these words; return what tells when it is done."""
        with self._lock:
            self._cut = Cut(words.encode(), since.encode(), after)
            return self._cut

    def close(self) -> None:
        self._listening.close()
        for line in self._open:
            _close(line)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listening.accept()
            except OSError:
                return
            threading.Thread(target=self._carry, args=(client,), daemon=True).start()

    def _connect(self) -> socket.socket:
        if isinstance(self._server, str):
            line = socket.socket(socket.AF_UNIX)
            line.connect(self._server)
            return line
        return socket.create_connection(self._server)

    def _carry(self, client: socket.socket) -> None:
        server = self._connect()
        self._open += [client, server]
        answering = Answers(server, client)
        threading.Thread(target=answering.carry, daemon=True).start()
        try:
            self._forward(client, server, answering)
        except OSError:
            pass
        finally:
            _close(client)
            _close(server)

    def _forward(self, client: socket.socket, server: socket.socket, answering: Answers) -> None:
        is_begun, carried, prepared = False, b"", dict[bytes, bytes]()
        swallowing: Cut | None = None
        while True:
            # The first messages have no type; a refused SSLRequest is followed by the real one.
            kind = b"" if not is_begun else _exactly(client, 1)
            length = _exactly(client, 4)
            body = _exactly(client, struct.unpack("!I", length)[0] - 4)
            if not is_begun:
                is_begun = struct.unpack("!I", body[:4])[0] == 196608
            text = _executed(kind, body, prepared)
            carried = carried[-100_000:] + text
            cut = self._cut_at(text, carried) if text else None
            if cut is not None and not cut.is_after:
                cut.was_made.set()
                return
            if cut is not None:
                swallowing = cut
                answering.swallow(cut)
            server.sendall(kind + length + body)
            # A prepared statement is carried out, and answered, when all of its messages are there.
            if swallowing is not None and kind in (b"Q", b"S"):
                assert swallowing.was_made.wait(10)
                return

    def _cut_at(self, text: bytes, carried: bytes) -> Cut | None:
        with self._lock:
            cut = self._cut
            if cut is None or cut.words not in text:
                return None
            if cut.since not in carried:
                return None
            self._cut = None
            return cut


class Answers:
    """What the server says, carried to the client; or swallowed up to the end of one answer."""

    def __init__(self, server: socket.socket, client: socket.socket) -> None:
        self._server = server
        self._client = client
        self._swallowing: Cut | None = None

    def swallow(self, cut: Cut) -> None:
        self._swallowing = cut

    def carry(self) -> None:
        with suppress(OSError):
            # The answer to an SSLRequest is one byte; none is asked for with sslmode=disable.
            while True:
                kind, length = _exactly(self._server, 1), _exactly(self._server, 4)
                body = _exactly(self._server, struct.unpack("!I", length)[0] - 4)
                if self._swallowing is None:
                    self._client.sendall(kind + length + body)
                elif kind == READY:
                    # The server is done with it, for good or ill, and waits for another.
                    self._swallowing.was_made.set()
                    return
        _close(self._client)


def _executed(kind: bytes, body: bytes, prepared: dict[bytes, bytes]) -> bytes:
    """Return the text of the statement that this message lets run; remember what it prepares."""
    if kind == b"Q":
        return body
    if kind == b"P":
        name, text, _ = body.split(b"\0", 2)
        prepared[name] = text
    elif kind == b"B":
        _, name, _ = body.split(b"\0", 2)
        return prepared.get(name, b"")
    return b""


def _exactly(line: socket.socket, count: int) -> bytes:
    found = b""
    while len(found) < count:
        more = line.recv(count - len(found))
        if not more:
            raise ConnectionError
        found += more
    return found


def _close(line: socket.socket) -> None:
    with suppress(OSError):
        line.shutdown(socket.SHUT_RDWR)
    line.close()
