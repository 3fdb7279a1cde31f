"""Taking a lock: around a block or a function, sync or async, at once or after waiting.

One statement takes it, under a nonce that was drawn before it was sent. Where its answer is lost,
the same is asked again, and the answer is the lease that the first asking took. Who waits is woken
by the release where the database can do that, and looks when the holder's lease is over.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import random
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import timedelta
from typing import Any, Final, TypeVar

from asgiref.sync import sync_to_async
from django.db import DatabaseError

from django_once import clock, events, identity
from django_once.errors import LockHeld, LockLost
from django_once.locks.holding import UNKNOWN, Held
from django_once.locks.place import (
    Place,
    checked_holder,
    checked_lease,
    checked_name,
    checked_wait,
    place_of,
)
from django_once.locks.renewal import renewal_of
from django_once.sql.locks import Standing
from django_once.sql.repeat import was_undone
from django_once.wakeups.releases import Releases

Function = TypeVar("Function", bound=Callable[..., Any])

# For so long an answer is asked for again, although nobody said to wait.
INSISTENCE: Final = 3.0


class lock:  # noqa: N801 - used like a function: with lock("export:7") as held
    """Take a lock around a block or around each call of a function.

    `name` says what is locked; around a function it may hold names of its arguments, as in
    `"export:{report_id}"`. The lock is renewed until the block ends, so `lease` is how long it
    outlives a dead holder. `wait` is how long to wait for another holder, None as long as it takes;
    then LockHeld is raised. `using` names another database than that of the default backend's jobs.

    Locks are not re-entrant: who takes a lock that it holds is refused like everybody else.
    """

    def __init__(
        self,
        name: str,
        lease: timedelta | float | str = "60s",
        wait: timedelta | float | str | None = 0,
        *,
        using: str | None = None,
    ) -> None:
        self.name = checked_name(name)
        self.lease = checked_lease(lease)
        self.wait = wait
        self.using = using
        checked_wait(wait)
        self._entered: dict[object, list[Held]] = {}

    def acquire(self) -> Held:
        """Take the lock without a block; whoever does this calls `release()` on what it returns."""
        return self._taken(place_of(self.using), threading.Event())

    def __enter__(self) -> Held:
        held = self.acquire()
        self._entered.setdefault(threading.get_ident(), []).append(held)
        return held

    def __exit__(self, kind: Any, exception: BaseException | None, traceback: Any) -> None:
        _ended(self._leave(threading.get_ident()), exception)

    async def __aenter__(self) -> Held:
        # Asked in the thread of the caller's sync code, whose transaction it is.
        place = await sync_to_async(place_of, thread_sensitive=True)(self.using)
        held = await self._atake(place)
        self._entered.setdefault(asyncio.current_task(), []).append(held)
        return held

    async def __aexit__(self, kind: Any, exception: BaseException | None, traceback: Any) -> None:
        held = self._leave(asyncio.current_task())
        if held.place.joined is not None:
            await sync_to_async(_ended, thread_sensitive=True)(held, exception)
        else:
            # Not cancelled halfway: the lock is given back whatever becomes of the task.
            await asyncio.shield(_in_a_thread(_ended, held, exception))

    def __call__(self, function: Function) -> Function:
        """Return the function under this lock, taken anew for each call."""
        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            raise TypeError(
                f"{function.__qualname__} is a generator: the lock would be released before it "
                "begins. Take the lock inside of it."
            )
        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def aunder(*args: Any, **kwargs: Any) -> Any:
                async with self._for(function, args, kwargs):
                    return await function(*args, **kwargs)

            return aunder  # type: ignore[return-value]

        @functools.wraps(function)
        def under(*args: Any, **kwargs: Any) -> Any:
            with self._for(function, args, kwargs):
                return function(*args, **kwargs)

        return under  # type: ignore[return-value]

    def _for(self, function: Callable[..., Any], args: Any, kwargs: Any) -> lock:
        name = named(self.name, function, args, kwargs)
        return lock(name, self.lease, self.wait, using=self.using)

    def _leave(self, who: object) -> Held:
        held = self._entered[who].pop()
        if not self._entered[who]:
            del self._entered[who]
        return held

    def _taken(self, place: Place, given_up: threading.Event) -> Held:
        return take(place, self.name, identity.process_id(), self.lease, self.wait, given_up)

    async def _atake(self, place: Place) -> Held:
        asking = Asking(functools.partial(self._taken, place))
        if place.joined is not None:
            return await sync_to_async(asking.answer, thread_sensitive=True)()
        answer = _in_a_thread(asking.answer)
        try:
            return await asyncio.shield(answer)
        except asyncio.CancelledError:
            asking.give_up()
            raise


class Asking:
    """A wait for a lock that its coroutine may give up; what is taken after that is given back."""

    def __init__(self, taken: Callable[[threading.Event], Held]) -> None:
        self._taken = taken
        self._given_up = threading.Event()
        self._deciding = threading.Lock()
        self._held: Held | None = None

    def answer(self) -> Held:
        """Return the lock; a thread that answers too late gives it back."""
        held = self._taken(self._given_up)
        with self._deciding:
            if not self._given_up.is_set():
                self._held = held
                return held
        held.release()
        raise LockHeld(f"Nobody waits for lock {held.name!r} any more.", held.holder)

    def give_up(self) -> None:
        """Want the lock no more, whether it was taken by now or not."""
        with self._deciding:
            self._given_up.set()
            held = self._held
        if held is not None:
            threading.Thread(target=held.release).start()


def take(
    place: Place, name: str, holder: str, lease: timedelta, wait: Any, given_up: threading.Event
) -> Held:
    """Take a lock and see to its renewal; raise LockHeld when the time to wait is over."""
    sent, standing = _standing_after(place, name, holder, lease, checked_wait(wait), given_up)
    held = Held(place, name, standing, lease, sent)
    renewal_of(place).watch(held)
    events.lock_acquired(name, held.fence, holder)
    return held


def take_for(place: Place, name: str, holder: str, lease: timedelta) -> bool:
    """Take a lock that nobody renews, if it is free; return whether that was so."""
    try:
        _standing_after(place, name, holder, lease, 0.0, threading.Event())
    except LockHeld:
        return False
    return True


def named(template: str, function: Callable[..., Any], args: Any, kwargs: Any) -> str:
    """Return a lock's name with the values of a call in the places of its arguments."""
    if "{" not in template:
        return template
    call = inspect.signature(function).bind(*args, **kwargs)
    call.apply_defaults()
    return checked_name(template.format(**call.arguments))


def refusal(name: str, standing: Standing) -> LockHeld:
    """Return the error for who meets a lock in the hands of another."""
    until = clock.from_database(standing.expires_at)
    own = identity.process_id().rpartition("-")[0]
    again = " That is this very process: locks are not re-entrant." * (
        standing.holder.rpartition("-")[0] == own
    )
    return LockHeld(
        f"Lock {name!r} is held by {standing.holder!r} until {until:%Y-%m-%d %H:%M:%S}, or longer "
        f"if it is renewed.{again}",
        standing.holder,
        until,
    )


def _standing_after(
    place: Place, name: str, holder: str, lease: timedelta, wait: float, given_up: threading.Event
) -> tuple[float, Standing]:
    """Return when the statement was sent that took the lock, and what it answered."""
    nonce = identity.nonce()
    until = clock.uptime() + wait
    with closing(Releases(place.database, name)) as releases:
        is_listening = not place.may_listen
        while True:
            sent, standing = _asked(place, name, checked_holder(holder), nonce, lease, until)
            if standing.is_held_under(nonce):
                return sent, standing
            left = until - clock.uptime()
            if left <= 0 or given_up.is_set() or place.joined is not None:
                raise refusal(name, standing)
            if not is_listening:
                is_listening = True
                releases.listen()
            if not releases.is_heard or _is_wanted(place, name) is not False:
                # The holder's lease is over a moment after its last microsecond.
                releases.wait(min(left, max(standing.remaining, 0.0) + 0.001))


def _asked(
    place: Place, name: str, holder: str, nonce: Any, lease: timedelta, until: float
) -> tuple[float, Standing]:
    """Send the statement, and again under the same nonce while nobody answers."""
    from django_once.models import lock as rows

    insist_until = max(until, clock.uptime() + INSISTENCE)
    turn = 0
    try:
        while True:
            sent = clock.uptime()
            try:
                with place.connection() as connection:
                    seconds = lease.total_seconds()
                    return sent, rows.take(connection, name, holder, nonce, seconds)
            except UNKNOWN as error:
                is_told = place.joined is not None or was_undone(error)
                if is_told or clock.uptime() >= insist_until:
                    raise
            turn = min(turn + 1, 6)
            time.sleep(random.uniform(0, 0.02 * 2**turn))
    finally:
        renewal_of(place).tidy()


def _is_wanted(place: Place, name: str) -> bool | None:
    """Ask to be told of the release; False when the lock is free, None when nobody answers."""
    from django_once.models import lock as rows

    try:
        with place.connection() as connection:
            return rows.want(connection, name)
    except UNKNOWN:
        return None


def _ended(held: Held, exception: BaseException | None) -> None:
    """Give back a lock at the end of its block; the block's own exception is worth more."""
    try:
        held.release()
    except (LockLost, DatabaseError) as error:
        if exception is None:
            raise
        exception.add_note(str(error))
    finally:
        renewal_of(held.place).tidy()


def _in_a_thread(work: Callable[..., Any], *args: Any) -> asyncio.Future[Any]:
    """Run this in a thread of its own: waiters must never fill a pool that the holder needs."""
    executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix="once-lock")
    future = asyncio.get_running_loop().run_in_executor(executor, work, *args)
    executor.shutdown(wait=False)
    return future
