"""When the place of a worker that has ended is filled again: at once, but not again and again."""

from __future__ import annotations

import time
from typing import Final

LONGEST_PAUSE: Final = 1.0
COUNTS_AS_QUICK: Final = 5.0
FREE_OF_PAUSE: Final = 3


class Restarts:
    """The places of workers that are to be filled, and when."""

    def __init__(self) -> None:
        self._at: dict[int, float] = {}
        self._born_at: dict[int, float] = {}
        self._quick_deaths: dict[int, int] = {}

    def __bool__(self) -> bool:
        return bool(self._at)

    @property
    def moments(self) -> list[float]:
        """When places are to be filled, by the monotonic clock."""
        return list(self._at.values())

    def due(self) -> list[int]:
        """Return the places to be filled now."""
        now = time.monotonic()
        return [number for number, at in self._at.items() if now >= at]

    def filled(self, number: int) -> None:
        """Remember that a worker lives in this place from now on."""
        self._born_at[number] = time.monotonic()
        self._at.pop(number, None)

    def at_once(self, number: int) -> None:
        """Fill this place as soon as may be."""
        self._at[number] = time.monotonic()

    def after_an_end(self, number: int, *, is_orderly: bool) -> None:
        """Fill this place at once; after a pause, at most a second, where its workers die young."""
        lived = time.monotonic() - self._born_at[number]
        pause = 0.0
        if is_orderly or lived > COUNTS_AS_QUICK:
            self._quick_deaths[number] = 0
        else:
            quick = self._quick_deaths[number] = self._quick_deaths.get(number, 0) + 1
            if quick > FREE_OF_PAUSE:
                pause = min(LONGEST_PAUSE, 0.1 * 2 ** (quick - FREE_OF_PAUSE - 1))
        self._at[number] = time.monotonic() + pause
