"""Batches that fit into one statement: what travels together may be as long as a packet holds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final, TypeVar

Member = TypeVar("Member")

# A packet of MySQL may be as short as 16 MB, and text grows as it is quoted.
MOST_CHARACTERS: Final = 2_000_000


def pieces(
    members: Sequence[Member], length: Callable[[Member], int]
) -> Iterator[Sequence[Member]]:
    """Cut a sequence into pieces that are not too long; a member that is stands alone."""
    begin, size = 0, 0
    for end, member in enumerate(members):
        own = length(member)
        if size + own > MOST_CHARACTERS and end > begin:
            yield members[begin:end]
            begin, size = end, 0
        size += own
    if begin < len(members):
        yield members[begin:]
