"""A command on a cluster runs in a process of its own: where that is lost with the cluster, this one says so.

Ray ends the process that uses it, from native code and without a word, when the machine that it joined the cluster
through is lost. No handler runs then, and the exit code would be 1, which means that a gate failed.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress

from hitmiss.cli import printing
from hitmiss.core.errors import EnvironmentFault

ENDED: str = "HITMISS_ENDED"
"""The open file to which the inner process writes that it ended by itself."""
LOST = (
    "the connection to the cluster was lost, and with it the command: its head, or the machine it was joined through, "
    "has gone; what a run had written is kept: start the cluster again, and the same command (a run with --resume)"
)


def is_wanted(words: Sequence[str]) -> bool:
    """Whether a command uses a cluster and is not watched already."""
    on_cluster = any(word == "--cluster" or word.startswith("--cluster=") for word in words)
    return on_cluster and os.name == "posix" and ENDED not in os.environ


def watched(words: Sequence[str]) -> int:
    """Run a command in a process of its own, and give its exit code."""
    reading, writing = os.pipe()
    process = subprocess.Popen(
        [sys.executable, "-m", "hitmiss", *words], env={**os.environ, ENDED: str(writing)}, pass_fds=(writing,)
    )
    os.close(writing)
    before = {number: signal.signal(number, signal.SIG_IGN) for number in (signal.SIGINT,)}  # the terminal tells both
    before[signal.SIGTERM] = signal.signal(signal.SIGTERM, lambda number, _: process.send_signal(number))
    try:
        code = process.wait()
    finally:
        for number, taker in before.items():
            signal.signal(number, taker)
    os.set_blocking(reading, False)  # processes that the cluster left behind may hold the other end
    has_ended = False
    with suppress(BlockingIOError):
        has_ended = os.read(reading, 1) == b"."
    os.close(reading)
    if has_ended:
        return code
    printing.note(f"hitmiss: {LOST}")
    return EnvironmentFault.exit_code


def tell_end() -> None:
    """In the inner process: say that it ended by itself, with whatever code."""
    number = os.environ.get(ENDED, "")
    if number.isdigit():
        with suppress(OSError):
            os.write(int(number), b".")
