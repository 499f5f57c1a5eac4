"""BEATs in float32 on the processor: this checkout against that of an older commit, in turns.

    taskset -c 0,1 python benchmarks/beats_cpu.py OLD_CHECKOUT        (needs torch)

As many threads as the process may use processors. Weights and clips are random: only their cost matters here.
"""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

RATE = 16000
SECONDS = 10
TURNS = 3
CLIPS = (1, 4)


def beats_once(threads: int) -> None:
    """Print seconds and processor seconds per clip of BEATs in float32, and its outputs; run by the code of any commit."""
    import torch

    torch.set_num_threads(threads)
    for name in ("hitmiss.detection.beats", "hitmiss.detect.beats"):
        try:
            module = importlib.import_module(name)
            break
        except ModuleNotFoundError:
            continue
    checkpoint = module.random_checkpoint(module.BeatsConfig())
    network = module.Beats(module.BeatsConfig.of(checkpoint["cfg"]), checkpoint["model"]).to("cpu")
    for clips in CLIPS:
        waves = torch.randn(clips, SECONDS * RATE, generator=torch.Generator().manual_seed(clips)) * 0.1
        with torch.inference_mode():
            found, best, least = network(waves), float("inf"), float("inf")
            for _ in range(TURNS):
                began, busy = time.perf_counter(), time.process_time()
                network(waves)
                best, least = min(best, time.perf_counter() - began), min(least, time.process_time() - busy)
        print(clips, best / clips, least / clips, *found[0].tolist())


def beats(old: str) -> None:
    """Print BEATs of this checkout against that of an older one, in turns, on the processors that this process may use."""
    threads = len(os.sched_getaffinity(0))
    taken: dict[str, dict[int, list[tuple[float, float]]]] = {"now": {}, "before": {}}
    logits: dict[str, dict[int, NDArray[np.float64]]] = {"now": {}, "before": {}}
    for _ in range(TURNS):
        for which, checkout in (("before", Path(old)), ("now", Path(__file__).resolve().parent.parent)):
            env = {
                **os.environ,
                "PYTHONPATH": os.pathsep.join([str(checkout / "src"), os.environ.get("PYTHONPATH", "")]),
            }
            env = {k: v for k, v in env.items() if not k.endswith("_NUM_THREADS")}
            words = [sys.executable, __file__, "--once", str(threads)]
            for line in subprocess.run(words, env=env, capture_output=True, text=True, check=True).stdout.splitlines():
                clips, wall, busy, *found = map(float, line.split())
                taken[which].setdefault(int(clips), []).append((wall, busy))
                logits[which][int(clips)] = np.array(found)
    print(
        f"90 M parameters, clips of {SECONDS} s, {threads} threads; seconds per clip, least of {TURNS} turns of {TURNS} runs.\n"
    )
    print(
        "| clips in a batch | before | now | ratio | processor time before | now | ratio | logits differ by |\n|---|---|---|---|---|---|---|---|"
    )
    for clips in CLIPS:
        (before, busy_before), (now, busy_now) = (
            tuple(map(min, zip(*taken[w][clips], strict=True))) for w in ("before", "now")
        )
        change = np.abs(logits["now"][clips] - logits["before"][clips]).max()
        print(
            f"| {clips} | {before:.2f} s | {now:.2f} s | {before / now:.2f}× | {busy_before:.2f} s | {busy_now:.2f} s | "
            f"{busy_before / busy_now:.2f}× | {change:.0e} |"
        )


if __name__ == "__main__":
    if "--once" in sys.argv:
        beats_once(int(sys.argv[-1]))
    else:
        beats(sys.argv[-1])
