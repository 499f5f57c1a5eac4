"""Where the time of a run goes: decode, augment, model, write, and waiting for data."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field


@dataclass
class Clock:
    """Seconds per activity.

    `decode` and `augment` are spent in the workers, in parallel; `model`, `write` and `wait` one after the other.

    >>> Clock(model=3.0, write=1.0).shares()["model"]
    0.75
    """

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

    @property
    def elapsed(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self.began

    def shares(self) -> dict[str, float]:
        """Return each activity as a share of all the work in all processes; `wait` as a share of the wall time."""
        work = {name: getattr(self, name) for name in ("decode", "augment", "model", "write")}
        total = sum(work.values())
        shares = {name: seconds / total if total else 0.0 for name, seconds in work.items()}
        return {**shares, "wait": self.wait / self.elapsed if self.elapsed else 0.0}

    def waited(self) -> str:
        """Say what the run waited for, in order, and what would help.

        >>> clock = Clock(wait=9.0, model=1.0)
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
