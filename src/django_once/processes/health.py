"""Life and readiness over HTTP, for Kubernetes and its like: one small answer, no payload.

`/live`: the supervisor answers. `/ready`: the lease was renewed lately and every worker gave a sign
of life, or has a body at work: a worker that looks healthy and does nothing is not ready.
"""

from __future__ import annotations

import os
import socket
from contextlib import suppress
from typing import Final

from django_once import clock
from django_once.backend import DatabaseBackend
from django_once.errors import InvalidOption
from django_once.processes import board
from django_once.processes.board import Board

SILENT: Final = 10.0


class Health:
    """A socket that says how the workers are."""

    def __init__(self, port: int, memory: Board, backend: DatabaseBackend) -> None:
        self.board = memory
        self.is_stopping = False
        self._lease = backend.settings.lease.total_seconds()
        try:
            self._socket = _opened(port)
        except OSError as error:
            why = os.strerror(error.errno) if error.errno else str(error)
            raise InvalidOption(
                f"--health-port {port} cannot be used: {why}. Name a free port."
            ) from error
        self._socket.setblocking(False)

    def close(self) -> None:
        """Leave the socket to the process that answers."""
        self._socket.close()

    def fileno(self) -> int:
        """Return what a selector waits for."""
        return self._socket.fileno()

    def answer(self) -> None:
        """Answer one request; a slow client gets nothing rather than time."""
        with suppress(OSError):
            line, _ = self._socket.accept()
            with line:
                line.settimeout(0.2)
                status, said = self._answer_to(line.recv(1024).split(b" ")[1:2])
                body = f"{said}\n".encode()
                head = f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n"
                line.sendall(f"{head}Content-Type: text/plain\r\n\r\n".encode() + body)

    def _answer_to(self, path: list[bytes]) -> tuple[str, str]:
        if path == [b"/live"]:
            return "200 OK", "ok"
        if path != [b"/ready"]:
            return "404 Not Found", "there are /live and /ready"
        problem = self.problem()
        return ("503 Service Unavailable", problem) if problem else ("200 OK", "ok")

    def problem(self) -> str:
        """Return why these workers are not ready, or nothing."""
        now = clock.uptime()
        if self.is_stopping:
            return "the workers are stopping"
        if not self.board.is_ready:
            return "the keeper has not found the database yet"
        if now - self.board.renewed_at > self._lease * 2 / 3:
            return "the lease was not renewed lately"
        for place in self.board.places:
            if place.state == board.EMPTY:
                return "a worker is not running"
            if now - place.seen_at > SILENT and not place.started():
                return f"worker {place.worker} is silent"
        return ""


def _opened(port: int) -> socket.socket:
    """Listen on every address: a probe comes to the address of the pod."""
    if socket.has_dualstack_ipv6():
        with suppress(OSError):
            return socket.create_server(
                ("", port), family=socket.AF_INET6, dualstack_ipv6=True, backlog=16
            )
    return socket.create_server(("", port), backlog=16)
