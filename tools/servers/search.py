"""The search for a server: named by the environment, running, installed, fetched; else the reasons.

A server that was not started here is only ever asked for two things: what it is,
and to make and drop databases called test_once_….
"""

from __future__ import annotations

import json
import os
import socket
from dataclasses import dataclass, field
from pathlib import Path

from tools.checkout import short_path
from tools.children import ask
from tools.environments import ready_environment
from tools.errors import Refusal
from tools.interpreters import Interpreter
from tools.servers.address import Address, read_address
from tools.servers.harness import Harness
from tools.servers.kind import Binaries, Kind
from tools.servers.server import Facts, Missing, Server

# For the tests of these tools: pretend that this machine has none of its own.
IGNORE_RUNNING = "ONCE_DEV_IGNORE_RUNNING"
IGNORE_LOCAL = "ONCE_DEV_IGNORE_LOCAL"

SECONDS_TO_LISTEN = 5


@dataclass
class Search:
    """What a search needs: a Python with the drivers, one for wheels, and leave to go further."""

    python: str
    interpreter: Interpreter
    harness: Harness
    offline: bool = False
    allow_remote: bool = False
    heard: dict[Address, Facts | str] = field(default_factory=dict)

    def wheels(self) -> Path:
        """Return where the wheels that carry servers are, in an environment of their own."""
        return ready_environment("servers", self.interpreter, self.offline).packages

    def find(self, kind: Kind) -> Server | Missing:
        """Return a server of a kind, or what was wrong with each place that was looked at."""
        looked: list[str] = []
        server = self.already_there(kind, looked)
        server = server or self.our_own(kind, looked)
        if server is not None:
            return server
        return Missing(kind.name, (", ".join(kind.variables) + " is not set", *looked), kind.remedy)

    def already_there(self, kind: Kind, looked: list[str]) -> Server | Missing | None:
        """Return a server that needs no start: the one that was named, or one that runs."""
        for name in kind.variables:
            if os.environ.get(name):
                return self.named(kind, name)
        return self.hinted(kind, looked) or self.running(kind, looked)

    def named(self, kind: Kind, name: str) -> Server | Missing:
        """Return the server that was asked for. No other one takes its place."""
        address = read_address(os.environ[name])
        if address.scheme not in kind.schemes:
            reason = "%s begins with %s:, not with %s:" % (name, address.scheme, kind.schemes[0])
            return Missing(kind.name, (reason,), kind.remedy)
        found = self.tried(kind, address, name)
        if isinstance(found, Server):
            return found
        return Missing(kind.name, ("%s, %s: %s" % (name, address.shown, found),), kind.remedy)

    def hinted(self, kind: Kind, looked: list[str]) -> Server | None:
        for name in kind.hints:
            url = os.environ.get(name)
            try:
                address = read_address(url) if url else None
            except Refusal:
                continue
            if address is not None and address.scheme in kind.schemes:
                found = self.tried(kind, address, name)
                if isinstance(found, Server):
                    return found
                looked.append("%s, %s: %s" % (name, address.shown, found))
        return None

    def running(self, kind: Kind, looked: list[str]) -> Server | None:
        """Return the first server that runs on this machine and lets us make databases."""
        if os.environ.get(IGNORE_RUNNING):
            looked.append("running servers are ignored")
            return None
        complaints: dict[str, str] = {}
        for address in kind.addresses():
            found = self.tried(kind, address, "running server")
            if isinstance(found, Server):
                return found
            complaints.setdefault(address.shown, "%s: %s" % (address.shown, found))
        looked.extend(complaints.values())
        return None

    def our_own(self, kind: Kind, looked: list[str]) -> Server | None:
        """Start a server, from binaries that are here or were fetched."""
        try:
            kind.account()
        except Refusal as refusal:
            looked.append(str(refusal))
            return None
        return self.installed(kind, looked) or self.fetched(kind, looked)

    def installed(self, kind: Kind, looked: list[str]) -> Server | None:
        if os.environ.get(IGNORE_LOCAL):
            looked.append("local binaries are ignored")
            return None
        binaries = kind.installed()
        if not binaries:
            looked.append("no binaries on this machine")
        return self.started(kind, binaries, looked)

    def fetched(self, kind: Kind, looked: list[str]) -> Server | None:
        try:
            return self.started(kind, kind.fetched(self), looked)
        except Refusal as refusal:
            looked.append(str(refusal))
            return None

    def started(self, kind: Kind, candidates: list[Binaries], looked: list[str]) -> Server | None:
        for binaries in candidates:
            try:
                address = kind.start(binaries, self.harness)
            except Refusal as refusal:
                looked.append("%s: %s" % (short_path(binaries.program), refusal))
                continue
            found = self.tried(kind, address, binaries.origin, is_ours=True)
            if isinstance(found, Server):
                return found
            looked.append("%s: %s" % (short_path(binaries.program), found))
        return None

    def tried(
        self, kind: Kind, address: Address, origin: str, is_ours: bool = False
    ) -> Server | str:
        """Return the server at an address if it can be used, else why not."""
        if not address.is_local and not self.allow_remote:
            return "not on this machine; --allow-remote lets it be used"
        facts = self.facts(address)
        if isinstance(facts, str):
            return facts
        if facts.flavour not in kind.flavours:
            return "is %s" % facts.flavour
        if facts.numbers < kind.oldest:
            oldest = ".".join(str(number) for number in kind.oldest)
            return "%s %s is older than %s" % (facts.flavour, facts.version, oldest)
        if not facts.may_create:
            return "this user may not create databases there"
        return Server(kind.name, facts.version, origin, address, is_ours, facts.flavour)

    def facts(self, address: Address) -> Facts | str:
        """Return what a server says of itself, or why it says nothing. Each is asked once."""
        if address not in self.heard:
            self.heard[address] = self.ask(address)
        return self.heard[address]

    def ask(self, address: Address) -> Facts | str:
        if not listens(address):
            return "nothing listens"
        argv = [self.python, "-m", "tools.servers.ask", "facts"]
        answer = ask(argv, seconds=30, said=address.url)
        try:
            said = json.loads(answer.output.strip().splitlines()[-1])
            return said.get("complaint") or Facts(
                said["flavour"], said["version"], said["may_create"]
            )
        except (ValueError, KeyError, IndexError, AttributeError):
            return "no answer that can be read"

    def drop(self, server: Server, prefix: str) -> list[str]:
        """Drop what a killed run has left on a server that is not ours; return the names."""
        argv = [self.python, "-m", "tools.servers.ask", "drop", prefix]
        answer = ask(argv, seconds=60, said=server.address.url)
        try:
            return list(json.loads(answer.output.strip().splitlines()[-1]).get("dropped", []))
        except (ValueError, IndexError, AttributeError):
            return []


def listens(address: Address) -> bool:
    """Say whether anything takes connections at an address; quicker than asking in vain."""
    try:
        if address.socket and not os.path.isdir(address.socket):
            with socket.socket(socket.AF_UNIX) as connection:
                connection.settimeout(SECONDS_TO_LISTEN)
                connection.connect(address.socket)
        elif not address.socket and address.port:
            place = (address.host or "localhost", address.port)
            socket.create_connection(place, SECONDS_TO_LISTEN).close()
    except OSError:
        return False
    return True
