"""Simulations in rounds: many data sets by several processes, until there are enough or the time is over.

A JSON file keeps what was counted. A run goes on from it, so that a long simulation can be made in parts, on other machines.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from multiprocessing import get_context
from pathlib import Path
from typing import Any

State = dict[str, Any]
SAVED_EVERY = 20.0


def add_options(parser: argparse.ArgumentParser, minutes: float) -> None:
    """Add the options that all such simulations have."""
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--minutes", type=float, default=minutes, help="for how long data sets are made")
    parser.add_argument("--json", type=Path, help="file that keeps the counts; a run goes on from it")
    parser.add_argument("--from-json", type=Path, help="print the tables of such a file; nothing is simulated")


def kept_in(path: Path | None) -> State:
    """Return what a file keeps; nothing if it is not there yet."""
    found: State = json.loads(path.read_text(encoding="utf-8")) if path and path.exists() else {}
    return found


def carry_out(
    work: Callable[..., Any],
    tasks: Iterable[tuple[Any, ...]],
    note: Callable[[tuple[Any, ...], Any], None],
    given: argparse.Namespace,
    state: State,
) -> None:
    """Do the work of each task in processes of their own, note each result in the state, and keep the state."""
    ends = time.monotonic() + 60.0 * given.minutes
    left, saved = iter(tasks), time.monotonic()
    # polars does not survive a fork
    with ProcessPoolExecutor(given.workers, mp_context=get_context("spawn")) as pool:
        pending: dict[Future[Any], tuple[Any, ...]] = {}
        while time.monotonic() < ends:
            while len(pending) < 2 * given.workers and (task := next(left, None)) is not None:
                pending[pool.submit(work, *task)] = task
            if not pending:
                break
            for future in wait(pending, timeout=1.0, return_when=FIRST_COMPLETED)[0]:
                note(pending.pop(future), future.result())
            if time.monotonic() - saved > SAVED_EVERY:
                _save(given.json, state)
                saved = time.monotonic()
        _save(given.json, state)
        for future in pending:
            future.cancel()


def _save(path: Path | None, state: State) -> None:
    if path:
        path.write_text(json.dumps(state, indent=1) + "\n", encoding="utf-8")
