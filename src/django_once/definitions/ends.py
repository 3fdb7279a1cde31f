"""How a body ends its attempt by a word of its own: later, or not at all.

Both are raised, since a body that is deep in its helpers has no return value to give. Neither is a
failure: no policy of retries is asked, and `except Exception` around them is the user's own.
"""

from __future__ import annotations

from datetime import timedelta

from django_once import clock
from django_once.errors import InvalidOption, OnceError, shortened


class Snooze(OnceError):
    """Ends this attempt as if it had not been: the job comes back later, with all its budgets.

        raise Snooze("5m")

    How often a job may snooze is nobody's limit but `expires`.
    """

    def __init__(self, after: timedelta | float | str) -> None:
        self.after = clock.duration(after, "Snooze(…)")
        if not self.after:
            raise InvalidOption(
                f"Snooze(…) must be longer than nothing, got {shortened(after)}: a job that comes "
                "back at once would keep a worker busy with nothing."
            )
        super().__init__(f"The job comes back in {self.after}.")

    def __reduce__(self) -> tuple[type[Snooze], tuple[timedelta]]:
        """Let it be pickled by what it was given."""
        return type(self), (self.after,)


class Cancel(OnceError):
    """Ends the job for good as cancelled, with the reason; it is not tried again.

    raise Cancel("The order was withdrawn.")
    """

    def __init__(self, reason: str = "The body cancelled its job.") -> None:
        self.reason = str(reason)
        super().__init__(self.reason)
