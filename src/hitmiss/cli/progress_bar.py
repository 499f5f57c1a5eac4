"""Progress of a long command: a bar on a terminal after more than two seconds, always on stderr, never in a pipe.

Without a terminal, runs that take hours print a line every half minute.
"""

from __future__ import annotations

import math
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

from hitmiss.cli.printing import note
from hitmiss.core import progress
from hitmiss.core.text import escape_invisible

if TYPE_CHECKING:
    from rich.progress import Progress as Drawn

AFTER_SECONDS = 2.0
EVERY_SECONDS = 30.0
LONGEST_SECONDS = 600.0
ALL_BUT = 1.0 - 1e-9
LONGEST = 90
"""Width of the text of a bar, in characters."""


def is_shown() -> bool:
    """Say whether progress can be seen: stderr is a terminal that can draw."""
    return sys.stderr.isatty() and os.environ.get("TERM") != "dumb"


@contextmanager
def shown(what: str) -> Iterator[None]:
    """Show a bar while the block runs, from its third second on, if stderr is a terminal."""
    if not is_shown():
        yield
        return
    bar = Bar(what)
    try:
        with progress.listen(bar):
            yield
    finally:
        bar.close()


class Bar:
    """A bar that appears after a delay, hides when something is printed, and returns if the work takes long again."""

    def __init__(self, what: str, after: float | None = None) -> None:
        self._after = AFTER_SECONDS if after is None else after
        self._name = what
        self._state: tuple[str, float, float | None, float | None] = ("", 0, None, None)
        self._furthest: float | None = None
        self._began = (time.monotonic(), 0.0)
        self._lock = threading.RLock()
        self._drawn: Drawn | None = None
        self._timer: threading.Timer | None = None
        self._wait()

    def update(self, what: str, done: float, total: float | None, share: float | None) -> None:
        """Record the progress, and show it if the bar is visible."""
        with self._lock:
            self._state = (what, done, total, share)
            if share is None or self._furthest is None or share < self._furthest:
                self._began = (time.monotonic(), share or 0.0)  # another step, with its own speed
            self._furthest = share
            if self._drawn is not None:
                self._update()

    def clear(self) -> None:
        """Hide the bar and start the delay again."""
        with self._lock:
            self.close()
            self._wait()

    def close(self) -> None:
        """Hide the bar for good."""
        with self._lock:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None
            if self._drawn is not None:
                self._drawn.stop()
                self._drawn = None

    def _wait(self) -> None:
        self._timer = threading.Timer(self._after, self._appear)
        self._timer.daemon = True
        self._timer.start()

    def _appear(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeElapsedColumn
        from rich.progress import Progress as Drawn

        with self._lock:
            if self._timer is None or self._drawn is not None:
                return  # it was closed while this thread waited for the lock
            said = (TextColumn(f"{{task.fields[{field}]}}", markup=False) for field in ("left", "said"))
            columns = (BarColumn(30), TaskProgressColumn(), *said, TimeElapsedColumn())
            # rich would also capture stdout and send results to stderr
            console = Console(stderr=True)
            self._drawn = Drawn(*columns, console=console, transient=True, redirect_stdout=False, redirect_stderr=False)
            self._drawn.add_task("", total=None, left="", said="")
            self._update()
            self._drawn.start()

    def _update(self) -> None:
        if self._drawn is None:
            return
        what, done, total, share = self._state
        count = f"{done:,.0f} of {total:,.0f}" if total is not None else ""
        text = escape_invisible(": ".join(filter(None, (self._name, ", ".join(filter(None, (what, count)))))))
        said = f"{text[: LONGEST - 1]}…" if len(text) > LONGEST else text
        task = self._drawn.task_ids[0]
        # another step may follow: a complete bar would stop rich's clock for good
        total = None if share is None else 1.0
        completed = min(share or 0.0, ALL_BUT)
        self._drawn.update(task, said=said, left=self._left(share), total=total, completed=completed)

    def _left(self, share: float | None) -> str:
        """Estimate the remaining time of the step from its speed since it was first seen."""
        began, at = self._began
        if share is None or share - at <= 0.0:
            return ""
        seconds = (time.monotonic() - began) * (1.0 - share) / (share - at)
        return f"{duration(seconds)} left"


def duration(seconds: float) -> str:
    """Format a duration for a bar.

    >>> duration(3.2), duration(75), duration(4000)
    ('4 s', '1 min 15 s', '1 h 6 min')
    """
    whole = math.ceil(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


class Run(Protocol):
    """A run in progress, as the bar sees it."""

    n_before: int

    @property
    def n_done(self) -> int:
        """The number of items done by this process."""

    @property
    def n_total(self) -> int:
        """The total number of items."""

    def line(self) -> str:
        """Describe the progress in words."""


class Progress:
    """A callback for long runs, which may be called often: it updates the bar, or prints lines.

    The first line comes after half a minute, each further one after twice as long, at most ten minutes.
    """

    def __init__(self) -> None:
        self._said, self._pause = time.monotonic(), EVERY_SECONDS

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        """Do nothing: the bar belongs to the command and ends with it."""

    def __call__(self, run: Run) -> None:
        """Show a run; the bar itself shows how much is done and how long the rest takes."""
        said = [part for part in run.line().split(", ")[1:] if not part.endswith(" left")]
        progress.report(", ".join(said), run.n_before + run.n_done, run.n_total)
        self._say(run.line)

    def count(self, done: int, total: int) -> None:
        """Show how many of how many are done."""
        progress.report("", done, total)
        self._say(lambda: f"{done:,} of {total:,}")

    def _say(self, line: Callable[[], str]) -> None:
        if is_shown() or time.monotonic() - self._said < self._pause:
            return
        self._said, self._pause = time.monotonic(), min(2 * self._pause, LONGEST_SECONDS)
        note(line())
