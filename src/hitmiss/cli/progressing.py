"""How far a long command is: a bar on a terminal once it takes more than two seconds, always on stderr, never in a pipe.

Runs that go on for hours also say a line every half minute where nobody looks at a terminal.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from hitmiss import progress
from hitmiss.cli import printing
from hitmiss.visible import visible

if TYPE_CHECKING:
    from hitmiss.detect.clock import Clock

AFTER_SECONDS = 2.0
EVERY_SECONDS = 30.0
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
        self._state: tuple[str, int, int | None] = ("", 0, None)
        self._lock = threading.RLock()
        self._drawn: Any = None
        self._timer: threading.Timer | None = None
        self._wait()

    def told(self, what: str, done: int, total: int | None) -> None:
        """Note how far the work is, and show it if the bar is there."""
        with self._lock:
            self._state = (what, done, total)
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
        from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
        from rich.progress import Progress as Drawn

        with self._lock:
            if self._timer is None or self._drawn is not None:
                return  # it was closed while it waited for the lock
            columns = (BarColumn(30), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
            # rich would catch stdout too and send results to stderr
            quiet: dict[str, Any] = {"transient": True, "redirect_stdout": False, "redirect_stderr": False}
            self._drawn = Drawn(*columns, console=Console(stderr=True), **quiet)
            self._drawn.add_task("", total=None)
            self._update()
            self._drawn.start()

    def _update(self) -> None:
        what, done, total = self._state
        count = f"{done:,} of {total:,}" if total is not None else ""
        text = visible(": ".join(filter(None, (self._name, ", ".join(filter(None, (what, count)))))))
        said = f"{text[: LONGEST - 1]}…" if len(text) > LONGEST else text
        self._drawn.update(self._drawn.task_ids[0], description=said, completed=done, total=total)


class Progress:
    """What a long run calls as often as it likes: the bar shows it, or a line is said every half minute."""

    def __init__(self) -> None:
        self._said = time.monotonic()

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        """The bar belongs to the command and ends with it."""

    def __call__(self, clock: Clock) -> None:
        """Show the clock of a run."""
        done = clock.n_before + clock.n_done
        progress.tell(clock.line().partition(", ")[2], done, clock.n_total)
        self._say(clock.line)

    def count(self, done: int, total: int) -> None:
        """Show so many of so many."""
        progress.tell("", done, total)
        self._say(lambda: f"{done:,} of {total:,}")

    def _say(self, line: Any) -> None:
        if is_shown() or time.monotonic() - self._said < EVERY_SECONDS:
            return
        self._said = time.monotonic()
        printing.note(line())
