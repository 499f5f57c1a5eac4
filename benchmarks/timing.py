"""Processor seconds of a piece of work, for the benchmarks that compare within one process."""

from __future__ import annotations

import gc
import math
import time
from collections.abc import Callable
from typing import Any


def cpu(work: Callable[[], Any], times: int = 1) -> float:
    """Least processor seconds of some runs."""
    best = math.inf
    for _ in range(times):
        gc.collect()
        start = time.process_time()
        work()
        best = min(best, time.process_time() - start)
    return best
