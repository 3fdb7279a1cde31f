"""The broadcaster: lets a listening process hear what is broadcast, for as long as it lives.

One thread reads what comes, whatever the listeners do: a session that listens and does not read
would keep everybody's notifications on the server. Another calls the listeners, one after the
other. Between them waits as much as fits; when a listener is stuck, the oldest is dropped, told and
counted.

A broadcast is heard once by each process that listens when it is told, or missed: while the line
was lost, while too much waited, when a listener raised. Whoever must not miss anything stores.
"""

from __future__ import annotations

import json
import threading
import time
from collections import deque
from collections.abc import Sequence
from typing import Any, Final
from uuid import UUID

from django.db import connections

from django_once import events
from django_once.channels.broadcasting import pass_on
from django_once.channels.handling import call_listeners
from django_once.conf import Options
from django_once.definitions.channel import BaseChannel, TriggerChannel, name_of
from django_once.models.broadcast import end_deaf, forget_told, kept, taken_of
from django_once.processes import hygiene
from django_once.wakeups.broadcasts import Line, Notified, Published, line_of

MOST_WAITING: Final = 10_000
MOST_BYTES_WAITING: Final = 64 * 2**20
LISTEN_AGAIN: Final = 0.5
LONGEST_UNHEARD: Final = 30.0
TIDIES_EVERY: Final = 20.0
LENGTH_OF_AN_ID: Final = 36


class Broadcaster:
    """What one process hears of broadcast channels."""

    def __init__(
        self,
        settings: Options,
        channels: Sequence[type[BaseChannel]],
        most_waiting: int = MOST_WAITING,
    ) -> None:
        self._settings = settings
        self._channels = {line_of(name_of(channel)): channel for channel in channels}
        # Triggers cannot reach Redis; what they told is passed on by whoever listens.
        self._of_models = [
            line for line, one in self._channels.items() if issubclass(one, TriggerChannel)
        ]
        self._most = most_waiting
        self._waiting: deque[tuple[str, str]] = deque()
        self._bytes = 0
        self._something = threading.Condition()
        self._tidy_at = 0.0
        self._is_over = False
        self.is_listening = threading.Event()
        self.heard = self.dropped = self.failed = 0

    @property
    def has_notify(self) -> bool:
        """Whether broadcasts come by NOTIFY."""
        return connections[self._settings.database].vendor == "postgresql"

    def start(self) -> None:
        """Hear and call, in two threads of this process."""
        for name, work in (("once-hearer", self.hear), ("once-broadcaster", self.call)):
            threading.Thread(target=work, name=name, daemon=True).start()

    def stop(self) -> None:
        """Let both threads end soon."""
        self._is_over = True
        with self._something:
            self._something.notify_all()

    def hear(self) -> None:
        """Read what comes until it is over, and listen again whenever the line was lost."""
        pause = LISTEN_AGAIN
        while not self._is_over:
            try:
                self._listened()
            except Exception as error:  # noqa: BLE001 - the driver's own errors, of either wire
                was_unheard = not self.is_listening.is_set()
                self.is_listening.clear()
                connections[self._settings.database].close()
                events.ours.warning(
                    "broadcasts.unheard: %s; what is told until they are heard again is missed.",
                    str(error).strip(),
                )
                time.sleep(pause)
                pause = min(LONGEST_UNHEARD, pause * 2) if was_unheard else LISTEN_AGAIN

    def call(self) -> None:
        """Call the listeners of what was heard, until it is over."""
        while not self._is_over:
            with self._something:
                self._something.wait_for(lambda: self._waiting or self._is_over)
                if not self._waiting:
                    return
                line, told = self._waiting.popleft()
                self._bytes -= len(told)
            self._call(self._channels[line], told)
            # What a listener left on the connections of this thread, the next one shall not meet.
            hygiene.clean()

    def _listened(self) -> None:
        """Hear until it is over; raises the driver's error when the line is gone."""
        line = self._opened()
        self.is_listening.set()
        try:
            while not self._is_over:
                self._tidy()
                for one, told in line.heard(self._patience()):
                    self._keep(one, told)
        finally:
            line.close()

    def _opened(self) -> Line:
        lines = list(self._channels)
        if self.has_notify:
            return Notified(self._settings.database, lines)
        return Published(self._settings.redis, lines)

    def _patience(self) -> float:
        if self.has_notify or not self._of_models:
            return 1.0
        return min(0.2, self._settings.poll.total_seconds())

    def _keep(self, line: str, told: str) -> None:
        if line not in self._channels:
            return
        with self._something:
            self._waiting.append((line, told))
            self._bytes += len(told)
            while len(self._waiting) > self._most or self._bytes > MOST_BYTES_WAITING:
                _, oldest = self._waiting.popleft()
                self._bytes -= len(oldest)
                self._drop()
            self._something.notify()

    def _drop(self) -> None:
        self.dropped += 1
        if self.dropped.bit_count() == 1:
            # The first, the second, the fourth: a flood of these lines would help nobody.
            events.ours.warning(
                "broadcast.dropped: %s until now, since a listener is slower than what it is told.",
                self.dropped,
            )

    def _call(self, channel: type[BaseChannel], told: str) -> None:
        try:
            whole = self._whole(told)
            if whole is not None:
                call_listeners(channel, None, json.loads(whole))
                self.heard += 1
        except Exception:  # noqa: BLE001 - a listener is the user's, and may raise anything
            # Nobody keeps it, so nobody tries again; the next one has listeners, too.
            self.failed += 1
            events.ours.exception("broadcast.failed: a listener of %s raised.", name_of(channel))

    def _whole(self, told: str) -> str | None:
        if not self.has_notify:
            return told
        short = told[LENGTH_OF_AN_ID + 1 :]
        return short or kept(self._settings.database, UUID(told[:LENGTH_OF_AN_ID]))

    def _tidy(self) -> None:
        database = self._settings.database
        if not self.has_notify and self._of_models:
            for line, told in taken_of(database, self._of_models):
                pass_on(self._settings.redis, line, told)
        if time.monotonic() < self._tidy_at:
            return
        self._tidy_at = time.monotonic() + TIDIES_EVERY
        forget_told(database)
        ended = end_deaf(database)
        if ended:
            events.ours.warning("broadcasts.deaf: %s listeners that read nothing were cut.", ended)


def started(settings: Options, channels: Sequence[Any]) -> Broadcaster:
    """Return a broadcaster that hears these channels from now on."""
    broadcaster = Broadcaster(settings, channels)
    broadcaster.start()
    return broadcaster
