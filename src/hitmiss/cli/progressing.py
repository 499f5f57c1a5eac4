"""How far a long command is: a bar on a terminal once it takes more than two seconds, always on stderr, never in a pipe.

Runs that go on for hours also say a line every half minute where nobody looks at a terminal.
"""

from __future__ import annotations

import math
import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from hitmiss import progress
from hitmiss.cli import printing
from hitmiss.visible import visible

AFTER_SECONDS = 2.0
EVERY_SECONDS = 30.0
ALL_BUT = 1.0 - 1e-9
LONGEST = 90
"""Characters of what a bar says."""


def is_shown() -> bool:
    """Whether somebody looks: stderr is a terminal that can draw."""
    return sys.stderr.isatty() and os.environ.get("TERM") != "dumb"


@contextmanager
def shown(what: str) -> Iterator[None]:
    """Show a bar for as long as the block runs, from its third second on, where stderr is a terminal."""
    if not is_shown():
        yield
        return
    bar = Bar(what)
    try:
        with progress.heard_by(bar):
            yield
    finally:
        bar.close()


class Bar:
    """A bar that waits before it appears, goes away when something is printed, and comes back when that takes long too."""

    def __init__(self, what: str, after: float | None = None) -> None:
        self._after = AFTER_SECONDS if after is None else after
        self._name = what
        self._state: tuple[str, float, float | None, float | None] = ("", 0, None, None)
        self._furthest: float | None = None
        self._began = (time.monotonic(), 0.0)
        self._lock = threading.RLock()
        self._drawn: Any = None
        self._timer: threading.Timer | None = None
        self._wait()

    def told(self, what: str, done: float, total: float | None, share: float | None) -> None:
        """Note how far the work is, and show it if the bar is there."""
        with self._lock:
            self._state = (what, done, total, share)
            if share is None or self._furthest is None or share < self._furthest:
                self._began = (time.monotonic(), share or 0.0)  # another step, with a pace of its own
            self._furthest = share
            if self._drawn is not None:
                self._update()

    def hushed(self) -> None:
        """Go away; wait anew."""
        with self._lock:
            self.close()
            self._wait()

    def close(self) -> None:
        """Go away for good."""
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
                return  # it was closed while it waited for the lock
            said = (TextColumn(f"{{task.fields[{field}]}}", markup=False) for field in ("left", "said"))
            columns = (BarColumn(30), TaskProgressColumn(), *said, TimeElapsedColumn())
            # rich would catch stdout too and send results to stderr
            quiet: dict[str, Any] = {"transient": True, "redirect_stdout": False, "redirect_stderr": False}
            self._drawn = Drawn(*columns, console=Console(stderr=True), **quiet)
            self._drawn.add_task("", total=None, left="", said="")
            self._update()
            self._drawn.start()

    def _update(self) -> None:
        what, done, total, share = self._state
        count = f"{done:,.0f} of {total:,.0f}" if total is not None else ""
        text = visible(": ".join(filter(None, (self._name, ", ".join(filter(None, (what, count)))))))
        said = f"{text[: LONGEST - 1]}…" if len(text) > LONGEST else text
        task = self._drawn.task_ids[0]
        # another step may follow: what is whole would stop rich's clock for good
        known = {"total": None if share is None else 1.0, "completed": min(share or 0.0, ALL_BUT)}
        self._drawn.update(task, said=said, left=self._left(share), **known)

    def _left(self, share: float | None) -> str:
        """About how long the step goes on at the pace that it had since it was first seen."""
        began, at = self._began
        if share is None or share - at <= 0.0:
            return ""
        seconds = (time.monotonic() - began) * (1.0 - share) / (share - at)
        return f"{duration(seconds)} left"


def duration(seconds: float) -> str:
    """A time as a bar says it.

    >>> duration(3.2), duration(75), duration(4000)
    ('4 s', '1 min 15 s', '1 h 6 min')
    """
    whole = math.ceil(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


class Run(Protocol):
    """A run under way, as far as a bar is concerned."""

    n_before: int

    @property
    def n_done(self) -> int:
        """How many were done by this process."""

    @property
    def n_total(self) -> int:
        """How many there are."""

    def line(self) -> str:
        """How far it is, in words."""


class Progress:
    """What a long run calls as often as it likes: the bar shows it, or a line is said every half minute."""

    def __init__(self) -> None:
        self._said = time.monotonic()

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        """The bar belongs to the command and ends with it."""

    def __call__(self, run: Run) -> None:
        """Show a run: the bar says itself how much is done and how long it takes still."""
        said = [part for part in run.line().split(", ")[1:] if not part.endswith(" left")]
        progress.tell(", ".join(said), run.n_before + run.n_done, run.n_total)
        self._say(run.line)

    def count(self, done: int, total: int) -> None:
        """Show so many of so many."""
        progress.tell("", done, total)
        self._say(lambda: f"{done:,} of {total:,}")

    def _say(self, line: Any) -> None:
        if is_shown() or time.monotonic() - self._said < EVERY_SECONDS:
            return
        self._said = time.monotonic()
        printing.note(line())
