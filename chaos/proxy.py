"""A TCP proxy in front of a database that knows where a message ends, and cuts there.

    python -m chaos.proxy postgresql /path/of/the/socket SEED

It prints the port it listens on, then obeys lines on its standard input:

    cut WHAT WHEN      the next such statement: its line is cut before it is forwarded, after it
                       was forwarded, or when its answer is there, which is dropped
    delay SECONDS S    hold every message back for so long, during S seconds
    hole S             forward nothing for S seconds, and close nothing
    reset              close all lines at once

What it does it prints, one JSON object a line. An armed cut waits for a statement that fits; one
at the answer waits for an answer that has rows, since nothing is unknown about an empty one.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

BEFORE, AFTER, ANSWER = "before", "after", "answer"
# Kinds of statements by their text, the first that fits.
KINDS = {
    "claim": re.compile(r"SET status = 'RUNNING', "),
    "settle": re.compile(r"o\.becomes"),
    "start": re.compile(r"SET started_at = coalesce.*AND last_attempted_at IS NULL", re.S),
    "renew": re.compile(r"UPDATE .?once_worker"),
    "enqueue": re.compile(r"INSERT INTO once_job"),
    "commit": re.compile(r"UPDATE once_job SET return_value"),
}
# What a transaction begins and ends with; only its COMMIT decides, and so only that is cut.
BEGIN = re.compile(r"\s*(BEGIN|SET\s+AUTOCOMMIT\s*=\s*0)", re.I)
COMMIT = re.compile(r"\s*COMMIT", re.I)
ROLLBACK = re.compile(r"\s*(ROLLBACK(?!\s+TO)|SET\s+AUTOCOMMIT\s*=\s*1)", re.I)
IS_READY = b"Z\x00\x00\x00\x05"
CHANGED = re.compile(rb"C\x00\x00\x00.(UPDATE [1-9]|COMMIT)", re.S)


def say(**what: Any) -> None:
    """Tell the conductor."""
    print(json.dumps(what), flush=True)


class Proxy:
    """All lines through here, and the faults that wait for them."""

    def __init__(self, dialect: str, path: str) -> None:
        self.dialect, self.path = dialect, path
        self.armed: list[tuple[str, str]] = []
        self.delay, self.delay_until, self.hole_until = 0.0, 0.0, 0.0
        self.lines: set[Line] = set()

    async def serve(self) -> None:
        """Listen, say where, and obey until the conductor is gone."""
        server = await asyncio.start_server(self.accept, "127.0.0.1", 0)
        say(port=server.sockets[0].getsockname()[1])
        reader = asyncio.StreamReader()
        loop = asyncio.get_running_loop()
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
        while order := await reader.readline():
            self.obey(order.decode().split(), loop.time())

    def obey(self, order: list[str], now: float) -> None:
        """Arm or begin a fault."""
        if order[0] == "cut":
            self.armed.append((order[1], order[2]))
        elif order[0] == "delay":
            self.delay, self.delay_until = float(order[1]), now + float(order[2])
        elif order[0] == "hole":
            self.hole_until = now + float(order[1])
        elif order[0] == "calm":
            self.armed.clear()
            self.delay_until = self.hole_until = 0.0
        else:
            say(did="reset", lines=len(self.lines))
            for line in list(self.lines):
                line.close()

    async def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Lead one client to the server."""
        try:
            upstream = await asyncio.open_unix_connection(self.path)
        except OSError:
            writer.close()
            return
        line = Line(self, (reader, writer), upstream)
        self.lines.add(line)
        with suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            await line.run()
        line.close()
        self.lines.discard(line)

    def wanted(self, what: str, moments: tuple[str, ...]) -> str | None:
        """Return when a statement of this kind is to be cut, if it is; each order serves once."""
        for order in self.armed:
            if order[0] in (what, "any") and order[1] in moments:
                self.armed.remove(order)
                return order[1]
        return None

    def is_armed(self, what: str) -> bool:
        """Return whether the answer to a statement of this kind may be the one to be lost."""
        return any(order in self.armed for order in ((what, ANSWER), ("any", ANSWER)))

    async def pause(self) -> None:
        """Wait out what holds messages back."""
        loop = asyncio.get_running_loop()
        if loop.time() < self.delay_until:
            await asyncio.sleep(self.delay)
        while (left := self.hole_until - loop.time()) > 0:
            await asyncio.sleep(left)


class Line:
    """One client's way to the server and back."""

    def __init__(self, proxy: Proxy, client: Any, server: Any) -> None:
        self.proxy = proxy
        self.from_client, self.to_client = client
        self.from_server, self.to_server = server
        self.is_open = False
        self.kind = ""  # of the transaction that is open
        self.watching = ""  # of the statement whose answer is looked at

    async def run(self) -> None:
        """Forward both ways until one of the two is over."""
        ways = [asyncio.ensure_future(way) for way in (self.there(), self.back())]
        _, others = await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        for other in others:
            other.cancel()
        await asyncio.gather(*ways, return_exceptions=True)

    async def there(self) -> None:
        """Forward what the client says, message by message."""
        messages = postgresql if self.proxy.dialect == "postgresql" else mysql
        async for message, text, ends_here in messages(self.from_client):
            await self.proxy.pause()
            what = self.kind_of(text) if text else ""
            moment = self.proxy.wanted(what, (BEFORE, AFTER)) if what and ends_here else None
            if moment == BEFORE:
                self.cut(what, BEFORE)
                return
            if what and self.proxy.is_armed(what):
                self.watching = what
            self.to_server.write(message)
            await self.to_server.drain()
            if moment == AFTER:
                self.cut(what, AFTER)
                return

    def kind_of(self, text: str) -> str:
        """Return what a statement decides; nothing when a transaction is open, but for its end."""
        if BEGIN.match(text):
            self.is_open, self.kind = True, ""
            return ""
        if COMMIT.match(text) or ROLLBACK.match(text):
            kind, self.kind, self.is_open = self.kind, "", False
            return kind if COMMIT.match(text) else ""
        found = next((name for name, pattern in KINDS.items() if pattern.search(text)), "")
        if not self.is_open:
            return found
        self.kind = found or self.kind
        return ""

    async def back(self) -> None:
        """Forward what the server says; drop the one answer that is to be lost."""
        held = b""
        while said := await self.from_server.read(65536):
            await self.proxy.pause()
            if self.watching:
                held += said
                if self.proxy.dialect == "postgresql" and held[-6:-1] != IS_READY:
                    continue
                watching, self.watching, said, held = self.watching, "", held, b""
                if self.is_telling(said) and self.proxy.wanted(watching, (ANSWER,)):
                    self.cut(watching, ANSWER)
                    return
            self.to_client.write(said)
            await self.to_client.drain()

    def is_telling(self, said: bytes) -> bool:
        """Return whether an answer says that something was changed."""
        if self.proxy.dialect == "mysql":
            return said[4:5] == b"\x00"
        return bool(CHANGED.search(said))

    def cut(self, what: str, when: str) -> None:
        """Close both ends, and say so."""
        say(did="cut", what=what, when=when)
        self.close()

    def close(self) -> None:
        """Close both ends at once, with what was not sent yet."""
        for writer in (self.to_client, self.to_server):
            with suppress(OSError, RuntimeError):
                writer.close()


async def postgresql(reader: asyncio.StreamReader) -> AsyncIterator[tuple[bytes, str, bool]]:
    """Yield each message of a client of PostgreSQL, its statement, and whether it is to be done."""
    head = await reader.readexactly(4)
    yield head + await reader.readexactly(int.from_bytes(head, "big") - 4), "", False
    # What was prepared under which name, and what the next Sync will have done.
    prepared: dict[bytes, str] = {}
    bound = ""
    while True:
        head = await reader.readexactly(5)
        body = await reader.readexactly(int.from_bytes(head[1:], "big") - 4)
        kind, text, ends_here = head[:1], "", False
        if kind == b"Q":
            text, ends_here = body.rstrip(b"\0").decode(errors="replace"), True
        elif kind == b"P":
            name, statement, _ = body.split(b"\0", 2)
            prepared[name] = statement.decode(errors="replace")
        elif kind == b"B":
            bound = prepared.get(body.split(b"\0", 2)[1], "")
        elif kind == b"S" and bound:
            text, bound, ends_here = bound, "", True
        yield head + body, text, ends_here


async def mysql(reader: asyncio.StreamReader) -> AsyncIterator[tuple[bytes, str, bool]]:
    """Yield each message of a client of MySQL, its statement, and whether it is to be done."""
    while True:
        head = await reader.readexactly(4)
        body = await reader.readexactly(int.from_bytes(head[:3], "little"))
        is_query = head[3] == 0 and body[:1] == b"\x03"
        yield head + body, body[1:].decode(errors="replace") if is_query else "", is_query


if __name__ == "__main__":
    asyncio.run(Proxy(sys.argv[1], sys.argv[2]).serve())
