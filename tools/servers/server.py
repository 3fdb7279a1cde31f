"""What a search for a server ends with: a server, or the reasons why there is none."""

from __future__ import annotations

from dataclasses import dataclass

from tools.servers.address import Address


@dataclass(frozen=True)
class Server:
    """A server that answers, and where it came from."""

    kind: str
    version: str
    origin: str
    address: Address
    is_ours: bool = False
    flavour: str = ""

    @property
    def title(self) -> str:
        return " ".join(part for part in (self.flavour, self.version) if part)


@dataclass(frozen=True)
class Missing:
    """No server of a kind: where was looked, what was wrong there, and what would help."""

    kind: str
    reasons: tuple[str, ...]
    remedy: str

    @property
    def reason(self) -> str:
        return "no server (%s)" % "; ".join(self.reasons)


@dataclass(frozen=True)
class Facts:
    """What a server says of itself."""

    flavour: str
    version: str
    may_create: bool

    @property
    def numbers(self) -> tuple[int, ...]:
        """Return the version as numbers that compare."""
        return numbers_of(self.version)


def numbers_of(version: str) -> tuple[int, ...]:
    numbers = []
    for part in version.split("."):
        digits = part[: len(part) - len(part.lstrip("0123456789"))]
        if not digits:
            break
        numbers.append(int(digits))
    return tuple(numbers)
