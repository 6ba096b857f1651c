"""A piece of time on a machine, and how it ends the runs that are under way."""

from __future__ import annotations

import time
from collections.abc import Callable

from torchcaps.core import UserError
from torchcaps.train import Silent


class Visit:
    """How long to make runs, how many side by side, and who is told about each.

    Without `at_once` a GPU gets as many runs at a time as the experiment says, a CPU one.
    """

    def __init__(
        self,
        minutes: float = float("inf"),
        *,
        at_once: int | None = None,
        on_run: Callable[[str], None] = lambda words: None,
    ) -> None:
        if not minutes >= 0:  # also true of nan, which would never be over
            raise UserError(f"minutes must not be negative, got {minutes}")
        self.at_once, self.on_run = at_once, on_run
        self._end = time.monotonic() + 60 * minutes

    @property
    def is_over(self) -> bool:
        """Whether nothing more should be begun."""
        return time.monotonic() > self._end

    @property
    def ends_at(self) -> float:
        """The time of the wall clock when it is over; other processes and machines share that clock."""
        return time.time() + self._end - time.monotonic()

    @classmethod
    def until(cls, ends_at: float, on_run: Callable[[str], None] = lambda words: None) -> Visit:
        """The part of a visit that another process or machine takes over."""
        return cls(max(0.0, (ends_at - time.time()) / 60), on_run=on_run)

    def stop(self) -> None:
        """End the visit now."""
        self._end = float("-inf")


class StopInTime(Silent):
    """A watcher that stops its run before the first epoch after the end of a visit."""

    def __init__(self, visit: Visit) -> None:
        self._visit = visit

    @property
    def wants_to_stop(self) -> bool:
        """Whether the time is up."""
        return self._visit.is_over
