"""How far a run is: what is done, what failed, what it has used, and how long the rest takes."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass
class Progress:
    """The progress of a run in this process.

    >>> progress = Progress(n_total=10, n_before=4)
    >>> progress.n_done, progress.n_failed = 3, 1
    >>> progress.line().split(", ")[0], progress.n_open
    ('7 of 10', 3)
    """

    n_total: int = 0
    n_before: int = 0
    """Items that were done before this process began."""
    n_done: int = 0
    n_failed: int = 0
    calls: int = 0
    tokens: int = 0
    cost: float = 0.0
    n_unmetered: int = 0
    first_failure: str = ""
    """The first item that failed in this process, and why."""
    began: float = field(default_factory=time.monotonic)
    details: Callable[[], str] = field(default=lambda: "", repr=False)
    """What the worker adds to the line."""

    @property
    def n_open(self) -> int:
        """Items that are not done."""
        return max(self.n_total - self.n_before - self.n_done, 0)

    @property
    def elapsed(self) -> float:
        """Seconds since this process began."""
        return time.monotonic() - self.began

    @property
    def rate(self) -> float:
        """Items per second in this process."""
        return self.n_done / self.elapsed if self.elapsed else 0.0

    @property
    def left(self) -> float | None:
        """Seconds to the end at this rate; None before there is a rate."""
        return self.n_open / self.rate if self.rate else None

    def line(self) -> str:
        """Return one line for people: progress, remaining time, failures, speed, and what the worker adds."""
        left = f", {time_span(self.left)} left" if self.left else ""
        failed = f", {self.n_failed:,} failed" if self.n_failed else ""
        more = self.details()
        return f"{self.n_before + self.n_done:,} of {self.n_total:,}{left}{failed}, {self.rate:,.1f}/s{more}"


Report = Callable[[Progress], None]


def time_span(seconds: float) -> str:
    """Return a duration as hours, minutes and seconds.

    >>> time_span(7671), time_span(61)
    ('2:07:51', '1:01')
    """
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
