"""Signals that end a run: SIGTERM ends it like Ctrl-C."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def stop_on_terminate() -> Iterator[None]:
    """Let SIGTERM end the run like Ctrl-C: everything is written, the state is noted.

    The signal is passed to the current handler of Ctrl-C: an event loop then cancels its tasks. An exception raised
    inside a task would be taken for that task's own failure.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(_: int, frame: FrameType | None) -> None:
        taker = signal.getsignal(signal.SIGINT)
        if callable(taker):
            taker(signal.SIGINT, frame)
        else:  # Ctrl-C is ignored, as in the background of a shell; SIGTERM must still end the run
            raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
