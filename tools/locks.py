"""Locks: what requirements/*.lock pin, and whether they still fit what requirements/*.in ask for.

A lock names packages, versions, markers and hashes. It never names where a
package comes from: a host or a path in it would tie everybody to one machine.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Sequence

from tools.checkout import REQUIREMENTS
from tools.servers.server import numbers_of

PIN = re.compile(r"^([A-Za-z0-9._-]+)==([^\s;\\]+)\s*(?:;\s*(.*?))?\s*\\?$")
WISH = re.compile(r"^([A-Za-z0-9._-]+)(?:\[[^\]]*\])?\s*([^;]*?)\s*(?:;\s*(.*))?$")
PLACE = re.compile(
    r"://|^\s*-(?:i|f|-index-url|-extra-index-url|-find-links)\b|@\s*file:|(?:^|\s)/\w"
)
COMPARISONS = {
    ">=": lambda one, other: one >= other,
    "<=": lambda one, other: one <= other,
    "==": lambda one, other: one == other,
    ">": lambda one, other: one > other,
    "<": lambda one, other: one < other,
}


@dataclass(frozen=True)
class Pin:
    """One package at one version, where its marker holds."""

    name: str
    version: str
    marker: str
    hashes: int


def complaints(directory: Path = REQUIREMENTS) -> list[str]:
    """Return what is wrong with the locks of a directory, as sentences; nothing is good."""
    found = []
    wishes = {path.stem: path for path in directory.glob("*.in")}
    for path in sorted(directory.glob("*.lock")):
        found += complaints_of_lock(path)
        if path.stem in wishes:
            found += unmet(path, wishes[path.stem])
        else:
            found.append("%s has no %s.in that says what it is for." % (path.name, path.stem))
    return found


def complaints_of_lock(path: Path) -> list[str]:
    lines = path.read_text().splitlines()
    found = [
        "%s:%d names a place: %r." % (path.name, number, line.strip())
        for number, line in enumerate(lines, 1)
        if PLACE.search(line)
    ]
    pins = read_pins(path)
    if not pins:
        found.append("%s pins nothing." % path.name)
    found += [
        "%s pins %s without a hash." % (path.name, pin.name) for pin in pins if not pin.hashes
    ]
    return found


def read_pins(path: Path) -> list[Pin]:
    """Return the pins of a lock, each with the number of its hashes."""
    pins: list[Pin] = []
    for line in path.read_text().splitlines():
        found = PIN.match(line.strip())
        if found and not line.startswith((" ", "\t")):
            name, version, marker = found.groups()
            pins.append(Pin(plain_name(name), version, (marker or "").strip(), 0))
        elif "--hash=" in line and pins:
            last = pins.pop()
            pins.append(Pin(last.name, last.version, last.marker, last.hashes + 1))
    return pins


def unmet(lock: Path, wishes: Path) -> list[str]:
    """Return a sentence for each wish that no pin of the lock meets."""
    pins = read_pins(lock)
    found = []
    for name, bounds, line in read_wishes(wishes):
        versions = [pin.version for pin in pins if pin.name == name]
        if not any(all(meets(version, bound) for bound in bounds) for version in versions):
            pinned = ", ".join(versions) or "nothing"
            found.append("%s asks for %s, and %s pins %s." % (wishes.name, line, lock.name, pinned))
    return found


def read_wishes(path: Path) -> list[tuple[str, list[str], str]]:
    """Return the name, the bounds and the line of each wish, those of included files too."""
    wishes = []
    for line in path.read_text().splitlines():
        text = line.partition("#")[0].strip()
        if text.startswith("-r "):
            wishes += read_wishes(path.parent / text[3:].strip())
        elif text:
            found = WISH.match(text)
            if found:
                bounds = [bound.strip() for bound in found.group(2).split(",") if bound.strip()]
                wishes.append((plain_name(found.group(1)), bounds, text))
    return wishes


def meets(version: str, bound: str) -> bool:
    """Say whether a version is within a bound such as '>=5.2'."""
    found = re.match(r"(>=|<=|==|>|<)\s*(\S+)$", bound)
    if not found:
        return False
    one, other = padded(numbers_of(version)), padded(numbers_of(found.group(2)))
    return bool(COMPARISONS[found.group(1)](one, other))


def padded(numbers: Sequence[int]) -> tuple[int, ...]:
    return (*numbers, *[0] * (6 - len(numbers)))


def plain_name(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
