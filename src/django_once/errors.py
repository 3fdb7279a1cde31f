"""Every exception raised on purpose, each a sentence for the person who must act.

Django's own exceptions (`InvalidTask`, `TaskResultDoesNotExist`, …) are used where its contract
names them; the classes here are for what the contract has no word for.
"""

from __future__ import annotations

import reprlib
from datetime import datetime

# It survives a repr() that raises, and does not write ten megabytes to cut them after.
_writer = reprlib.Repr()
_writer.maxlevel, _writer.maxstring, _writer.maxother, _writer.maxlong = 3, 60, 80, 60


class OnceError(Exception):
    """The base of all of them, for callers who want to catch whatever comes from here."""


class InvalidOption(OnceError, ValueError):
    """An option, a duration or a policy that cannot be meant; told where it was written."""


class Superseded(OnceError):
    """The attempt was ended by somebody else before; its outcome was not kept."""


class NotUnique(OnceError):
    """Another job has the name of this one, and the task says that this is an error.

    `job` is the id of the other.
    """

    def __init__(self, sentence: str, job: str = "") -> None:
        super().__init__(sentence)
        self.job = job


class WorkerLost(OnceError):
    """This worker's lease lapsed and was taken away; whatever it held belongs to others now."""


class UnsupportedDatabase(OnceError):
    """The database lacks something the protocol stands on."""


class Lost(OnceError):
    """An attempt whose worker is gone: it may or may not have done its work."""


class TimedOut(OnceError, TimeoutError):
    """An attempt whose body ran past its timeout; it was told, or ended with its process."""


class Expired(OnceError):
    """A job that was not started before its time was over."""


class Cancelled(OnceError):
    """A job that somebody cancelled before it ended by itself."""


class NotFinished(OnceError, TimeoutError):
    """A job that had not ended within the time somebody was ready to wait for it."""


class LockHeld(OnceError):
    """A lock that somebody else holds; `holder` and `until` say who, and until when at least."""

    def __init__(self, message: str, holder: str = "", until: datetime | None = None) -> None:
        super().__init__(message)
        self.holder = holder
        self.until = until


class LockLost(OnceError):
    """A lock that is not, or no longer, held by who acts under it."""


class FenceRefused(OnceError):
    """A write whose fence is lower than one that the row has seen; it was not made."""


class Redacted(OnceError):
    """What a body raised, as text without what `redact` hides: the exception itself told it."""


class BrokenTransaction(OnceError):
    """A body that promised to write in one transaction ended or broke that transaction."""


class ChannelNotFound(OnceError, LookupError):
    """A channel that nobody has declared in this process."""


class InvalidNotification(OnceError, TypeError):
    """What a channel cannot carry: a field that is missing, unknown or of another type."""


class NotStorable(OnceError):
    """A result or an error that the database refused to keep."""


def shortened(value: object) -> str:
    """Return a value as a sentence can hold it, whatever somebody handed over."""
    if isinstance(value, int) and value.bit_length() > 1_000:
        # Python refuses to write down what has thousands of digits.
        return f"an integer of {value.bit_length()} bits"
    return _writer.repr(value)
