"""Runs of `detect` and `attack` that are killed again and again (SIGKILL), each time at a random moment, and resumed.

    python benchmarks/kills.py [KILLS]        default 30 for each kind of run

A kill counts if it struck before the run was finished. At the end each item must be stored exactly once, and the scores must be
those of a run that nobody disturbed.
"""

from __future__ import annotations

import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from hitmiss.attacks.campaign import run_campaign
from hitmiss.attacks.model import as_classifier
from hitmiss.attacks.plan import AttackPlan, sweep
from hitmiss.attacks.recordings import Recordings
from hitmiss.attacks.worker import Campaigner
from hitmiss.core.run_spec import RunSpec
from hitmiss.detection.loop import detect
from hitmiss.io.manifest import read_manifest
from hitmiss.io.reader import read

ITEMS = 400
PAUSE = 0.02
CLASSES = ("NORM", "MI")


def clip(row: Mapping[str, str]) -> NDArray[np.float32]:
    """A made-up clip that takes as long as a small file."""
    time.sleep(PAUSE)
    return np.random.default_rng(int(row["file"])).standard_normal(4000).astype(np.float32)


def level(batch: NDArray[np.float32]) -> NDArray[np.float32]:
    """The detector: a number that differs from clip to clip."""
    return np.asarray(batch).sum(axis=1)


def model(x: NDArray[np.float32]) -> NDArray[np.float64]:
    """The model under attack: two probabilities."""
    time.sleep(PAUSE * len(x) / 4)
    return 1.0 / (1.0 + np.exp(-np.stack([x[:, :, 0].mean(axis=1), x[:, :, 1].std(axis=1) - 1.0], axis=1)))


def detecting(folder: Path, workers: int) -> None:
    """One process of a run of `detect`, from where it is to its end."""
    names = [str(i) for i in range(ITEMS)]
    manifest = read_manifest(pl.DataFrame({"file": names, "label": ["real", "fake"] * (ITEMS // 2)}))
    detect(level, manifest, output=folder, load=clip, resume=folder.exists(), batch_items=4, workers=workers)


def attacking(folder: Path) -> None:
    """One process of a run of `attack`."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(0, 1, (40, 200, 2)), rng.integers(0, 2, (40, 2))
    recordings = Recordings(x, y.astype(np.int8), 100.0, CLASSES, [f"r{i}" for i in range(40)])
    plan = AttackPlan(sweep(["band_noise", "baseline_wander"], [0.25, 0.5, 1.0]))
    run_campaign(Campaigner(recordings, as_classifier(model), plan), folder, RunSpec(resume=folder.exists()))


def once(kind: str, folder: Path) -> None:
    """Do the work of a killed process."""
    if kind == "attack":
        attacking(folder)
    else:
        detecting(folder, int(kind.rpartition(" ")[2]))


def rounds(kind: str, kills: int) -> str:
    """Kill a run that many times, let it end, and compare it with one that was left alone."""
    rng, struck, runs = random.Random(kind), 0, 0
    with tempfile.TemporaryDirectory() as name:
        once(kind, Path(name) / "whole")
        wanted = read(str(Path(name) / "whole"))
        while struck < kills:
            runs += 1
            folder = Path(name) / f"run{runs}"
            while True:
                process = subprocess.Popen([sys.executable, __file__, "--once", kind, str(folder)])
                try:
                    process.wait(timeout=rng.uniform(0.7, 3.5) if struck < kills else None)
                    break
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()
                    struck += 1
            found = read(str(folder))
            lines = sum(len(path.read_bytes().splitlines()) for path in folder.glob("items/*.jsonl"))
            whole = sum(len(path.read_bytes().splitlines()) for path in Path(name).glob("whole/items/*.jsonl"))
            assert process.returncode == 0 and list(found.items) == list(wanted.items), "something was lost"
            assert np.array_equal(found.score, wanted.score), "another score"
            assert lines == whole, "something is there twice"
    return f"| {kind} | {struck} | {runs} | {whole} | 0 | 0 |"


def main() -> None:
    """Print the table."""
    if "--once" in sys.argv:
        once(sys.argv[-2], Path(sys.argv[-1]))
        return
    kills = int(sys.argv[1]) if len(sys.argv) > 1 else 30
    print("| run | kills | runs | items each | lost | twice |\n|---|---|---|---|---|---|")
    for kind in ("detect, workers 0", "detect, workers 2", "attack"):
        print(rounds(kind, kills), flush=True)


if __name__ == "__main__":
    main()
