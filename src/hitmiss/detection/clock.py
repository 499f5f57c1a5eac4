"""Where the time of a run goes: decode, augment, model, write, and waiting for data."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field


@dataclass
class Clock:
    """Seconds per activity, and the progress of the run.

    `decode` and `augment` are spent in the workers, in parallel; `model`, `write` and `wait` one after the other.

    >>> clock = Clock(n_total=4)
    >>> clock.count(done=2, sound=6.0)
    >>> clock.n_done, clock.shares()["model"]
    (2, 0.0)
    """

    n_total: int = 0
    n_done: int = 0
    n_failed: int = 0
    n_before: int = 0
    sound: float = 0.0
    decode: float = 0.0
    augment: float = 0.0
    model: float = 0.0
    write: float = 0.0
    wait: float = 0.0
    began: float = field(default_factory=time.monotonic)

    @contextmanager
    def time(self, activity: str) -> Iterator[None]:
        """Add the time of the block to an activity."""
        start = time.perf_counter()
        try:
            yield
        finally:
            setattr(self, activity, getattr(self, activity) + time.perf_counter() - start)

    def count(self, done: int = 1, sound: float = 0.0, failed: int = 0) -> None:
        """Count items done."""
        self.n_done += done
        self.n_failed += failed
        self.sound += sound

    @property
    def elapsed(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self.began

    @property
    def rate(self) -> float:
        """Items per second in this process."""
        return self.n_done / self.elapsed if self.elapsed else 0.0

    @property
    def left(self) -> float | None:
        """Seconds to the end at this rate; None before there is a rate."""
        remaining = self.n_total - self.n_before - self.n_done
        return remaining / self.rate if self.rate else None

    def shares(self) -> dict[str, float]:
        """Return each activity as a share of all the work in all processes; `wait` as a share of the wall time."""
        work = {name: getattr(self, name) for name in ("decode", "augment", "model", "write")}
        total = sum(work.values())
        shares = {name: seconds / total if total else 0.0 for name, seconds in work.items()}
        return {**shares, "wait": self.wait / self.elapsed if self.elapsed else 0.0}

    def waited(self) -> str:
        """Say what the run waited for, in order, and what would help.

        >>> clock = Clock(n_total=2, wait=9.0, model=1.0)
        >>> clock.waited().split(":")[0]
        'waited for'
        """
        parts = {"data": self.wait, "the model": self.model, "the disk": self.write}
        total = sum(parts.values()) or 1.0
        said = ", ".join(f"{name} {seconds / total:.0%}" for name, seconds in parts.items())
        most = max(parts, key=lambda name: parts[name])
        return f"waited for: {said}" + (
            "; more --workers may help" if most == "data" and parts[most] > total / 2 else ""
        )

    def line(self) -> str:
        """Return one line for people: progress, remaining time, speed, and where the time goes."""
        left = f", {_span(self.left)} left" if self.left else ""
        shares = ", ".join(f"{name} {share:.0%}" for name, share in self.shares().items())
        failed = f", {self.n_failed:,} failed" if self.n_failed else ""
        done = self.n_before + self.n_done
        return f"{done:,} of {self.n_total:,}{left}{failed}, {self.rate:,.1f}/s ({shares})"


def _span(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
