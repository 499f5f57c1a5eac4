"""How far a long run is: a bar on a terminal, a line every half minute elsewhere; always on stderr."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING, Any

from hitmiss.cli import printing

if TYPE_CHECKING:
    from hitmiss.detect.clock import Clock

EVERY_SECONDS = 30.0
REFRESH_SECONDS = 0.2


class Progress:
    """Shows a clock; called as often as anybody likes."""

    def __init__(self) -> None:
        self._bar: Any = None
        self._task: Any = None
        self._shown = time.monotonic()

    def __enter__(self) -> Progress:
        if printing.is_styled(sys.stderr):
            from rich.console import Console
            from rich.progress import BarColumn, TextColumn
            from rich.progress import Progress as Bar

            columns = (BarColumn(), TextColumn("{task.description}"))
            self._bar = Bar(*columns, console=Console(stderr=True), transient=True)
            self._bar.start()
            self._task = self._bar.add_task("starting", total=None)
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        if self._bar is not None:
            self._bar.stop()

    def __call__(self, clock: Clock) -> None:
        """Show the clock if it is time to."""
        now = time.monotonic()
        if now - self._shown < (EVERY_SECONDS if self._bar is None else REFRESH_SECONDS):
            return
        self._shown = now
        if self._bar is None:
            printing.note(clock.line())
        else:
            done = clock.n_before + clock.n_done
            self._bar.update(self._task, description=clock.line(), total=clock.n_total, completed=done)
