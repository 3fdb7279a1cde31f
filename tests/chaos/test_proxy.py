"""The proxy cuts where it was told: before a message, after it, or when its answer is there."""

from __future__ import annotations

import json
import os
import socket
import struct
import subprocess
import sys
import threading
import time
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from typing import BinaryIO

import pytest

pytestmark = pytest.mark.tools
ROOT = Path(__file__).parents[2]
CLAIM = "UPDATE once_job AS job SET status = 'RUNNING', reason = ''"


def message(kind: bytes, text: str) -> bytes:
    body = text.encode() + b"\0"
    return kind + struct.pack("!i", len(body) + 4) + body


class Server:
    """Answers every statement as PostgreSQL would, and remembers what reached it."""

    def __init__(self, place: Path) -> None:
        self.place = str(place / "s")
        self.heard: list[str] = []
        self.rows = 1
        self.prepared: dict[str, str] = {}
        self.bound = ""
        self.lines: list[socket.socket] = []
        self._listening = socket.socket(socket.AF_UNIX)
        self._listening.bind(self.place)
        self._listening.listen()
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                line, _ = self._listening.accept()
            except OSError:
                return
            self.lines.append(line)
            threading.Thread(target=self._serve, args=(line,), daemon=True).start()

    def _serve(self, line: socket.socket) -> None:
        # A line that is cut with an answer unread is reset.
        with suppress(OSError), line, line.makefile("rb") as stream:
            self._answer(line, stream)

    def _answer(self, line: socket.socket, stream: BinaryIO) -> None:
        stream.read(struct.unpack("!i", stream.read(4))[0] - 4)
        while kind := stream.read(1):
            said = stream.read(struct.unpack("!i", stream.read(4))[0] - 4).decode()
            if kind == b"P":
                name, self.prepared[name] = said.split("\0")[0], said.split("\0")[1]
            elif kind == b"B":
                self.bound = self.prepared[said.split("\0")[1]]
            if kind in b"PBE":
                continue
            text = self.bound if kind == b"S" else said[:-1]
            self.heard.append(text)
            tag = f"UPDATE {self.rows}" if text.startswith("UPDATE") else text.split()[0]
            line.sendall(message(b"C", tag) + b"Z" + struct.pack("!i", 5) + b"I")

    def close(self) -> None:
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()


class Client:
    """Says statements and hears answers; None when the line was cut."""

    def __init__(self, port: int) -> None:
        self._line = socket.create_connection(("127.0.0.1", port))
        self._line.settimeout(10)
        self._line.sendall(struct.pack("!ii", 8, 196608))

    def close(self) -> None:
        self._line.close()

    def prepare(self, name: str, text: str) -> None:
        self._line.sendall(message(b"P", f"{name}\0{text}\0"))

    def run(self, name: str) -> str | None:
        """Run what was prepared: no text goes over the line."""
        return self._sent(message(b"B", f"\0{name}\0") + message(b"E", "") + b"S\0\0\0\4")

    def say(self, text: str) -> str | None:
        return self._sent(message(b"Q", text))

    def _sent(self, messages: bytes) -> str | None:
        try:
            self._line.sendall(messages)
            said = b""
            while said[-6:-1] != b"Z\x00\x00\x00\x05":
                more = self._line.recv(4096)
                if not more:
                    return None
                said += more
        except OSError:
            return None
        return said[5 : said.index(b"\0", 5)].decode()


@pytest.fixture
def server(tmp_path_factory):
    with closing(Server(tmp_path_factory.mktemp("p"))) as found:
        yield found


@pytest.fixture
def client(proxy):
    with ExitStack() as stack:
        yield lambda: stack.enter_context(closing(Client(proxy.port)))


class Proxy:
    def __init__(self, server: Server) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "chaos.proxy", "postgresql", server.place],
            cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )  # fmt: skip
        self.port = self.told()["port"]

    def told(self) -> dict:
        return json.loads(self.process.stdout.readline())

    def arm(self, *orders: str) -> None:
        for order in orders:
            print("cut", order, file=self.process.stdin, flush=True)
        # The next order is obeyed after these.
        print("reset", file=self.process.stdin, flush=True)
        assert self.told()["did"] == "reset"


@pytest.fixture
def proxy(server):
    found = Proxy(server)
    yield found
    found.process.kill()
    found.process.communicate()


def until_heard(server: Server, text: str) -> bool:
    until = time.monotonic() + 10
    while text not in server.heard and time.monotonic() < until:
        time.sleep(0.01)
    return text in server.heard


def test_what_is_cut_before_never_reaches_the_server(server, proxy, client):
    proxy.arm("claim before")

    assert client().say(CLAIM) is None
    assert server.heard == []
    assert proxy.told() == {"did": "cut", "what": "claim", "when": "before"}


@pytest.mark.parametrize("when", ["after", "answer"])
def test_what_is_cut_later_was_done_and_nobody_learns_of_it(server, proxy, client, when):
    proxy.arm(f"claim {when}")

    assert client().say(CLAIM) is None
    assert until_heard(server, CLAIM)


def test_each_cut_is_made_once(server, proxy, client):
    proxy.arm("claim before")
    client().say(CLAIM)

    assert client().say(CLAIM) == "UPDATE 1"


def test_an_answer_without_rows_is_not_worth_a_cut(server, proxy, client):
    server.rows = 0
    proxy.arm("claim answer")
    line = client()

    assert line.say(CLAIM) == "UPDATE 0"

    server.rows = 3
    assert line.say(CLAIM) is None


def test_a_statement_that_was_prepared_long_before_is_known_by_its_name(server, proxy, client):
    line = client()
    line.prepare("claim", CLAIM)
    line.prepare("other", "SELECT 1")
    assert line.run("claim") == "UPDATE 1"

    proxy.arm("claim before")
    line = client()
    line.prepare("claim", CLAIM)
    line.prepare("other", "SELECT 1")

    assert line.run("other") == "SELECT"
    assert line.run("claim") is None


def test_in_a_transaction_only_its_commit_is_cut(server, proxy, client):
    proxy.arm("commit before")
    line = client()

    assert line.say("BEGIN") == "BEGIN"
    assert line.say("UPDATE once_job SET return_value = '1'") == "UPDATE 1"
    assert line.say("COMMIT") is None
    assert "COMMIT" not in server.heard


def test_a_transaction_that_rolls_back_is_no_decision(server, proxy, client):
    proxy.arm("enqueue after", "any after")
    line = client()

    line.say("BEGIN")
    line.say("INSERT INTO once_job VALUES (1)")

    assert line.say("ROLLBACK") == "ROLLBACK"
