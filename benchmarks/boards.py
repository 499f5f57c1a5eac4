"""Boards: what many systems on many data sets cost, cold, with a cache, and with one more system.

    python benchmarks/boards.py [--systems 100] [--datasets 14] [--trials 20000]

Score files and keys are written to a temporary folder; reading them is part of the cost. EER with 1,000 shared draws,
ranked by the average over the data sets; processor seconds. The peer is what a challenge does today: pandas and a plain EER
of every file with scikit-learn's ROC curve, without intervals, averages or tests.
"""

from __future__ import annotations

import os

os.environ.update(
    dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "POLARS_MAX_THREADS"), "1")
)

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np
import polars as pl

from hitmiss.boards.board import Board, make_board
from hitmiss.boards.plan import find_plan
from hitmiss.core.design import Design
from hitmiss.reports.board_site import write_site


def write(root: Path, systems: range, datasets: int, trials: int) -> None:
    """Write keys and submissions; systems of close skill share part of their noise."""
    (root / "keys").mkdir(parents=True, exist_ok=True)
    for d in range(datasets):
        rng = np.random.default_rng(d)
        label, common = rng.random(trials) < 0.2, rng.normal(size=trials)
        item = [f"D{d:02d}_{i:07d}" for i in range(trials)]
        words = np.where(label, "bonafide", "spoof")
        pl.DataFrame({"filename": item, "cm-label": words}).write_csv(root / "keys" / f"d{d}.tsv", separator="\t")
        for s in systems:
            noise = np.random.default_rng([d, s]).normal(size=trials)
            score = label * (2.0 + 0.02 * s) + 0.7 * common + 0.7 * noise
            place = root / "submissions" / f"s{s:03d}"
            place.mkdir(parents=True, exist_ok=True)
            table = pl.DataFrame({"filename": item, "cm-score": score})
            table.write_csv(place / f"d{d}.tsv", separator="\t", float_precision=6)


def peer(root: Path) -> float:
    """The mean EER of every system, as scripts of challenges compute it."""
    import pandas as pd
    from sklearn.metrics import roc_curve

    begin = time.process_time()
    keys = {p.stem: pd.read_csv(p, sep="\t") for p in sorted((root / "keys").iterdir())}
    for system in sorted((root / "submissions").iterdir()):
        eers = []
        for name, key in keys.items():
            both = pd.read_csv(system / f"{name}.tsv", sep="\t").merge(key, on="filename")
            fpr, tpr, _ = roc_curve(both["cm-label"] == "bonafide", both["cm-score"])
            at = np.nanargmin(np.abs(1 - tpr - fpr))
            eers.append((1 - tpr[at] + fpr[at]) / 2)
    return time.process_time() - begin


def measured(root: Path, cache: Path | None) -> tuple[float, Board]:
    """Processor seconds of a board, and the board."""
    begin = time.process_time()
    plan = find_plan(root / "submissions", root / "keys")
    board = make_board(plan, Design.of(["eer"], bootstrap=1000), cache=cache)
    return time.process_time() - begin, board


def main() -> None:
    """Measure, and print a table."""
    asked = argparse.ArgumentParser()
    asked.add_argument("--systems", type=int, default=100)
    asked.add_argument("--datasets", type=int, default=14)
    asked.add_argument("--trials", type=int, default=20_000)
    n = asked.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        write(root, range(n.systems), n.datasets, n.trials)
        plain = peer(root)
        cold, board = measured(root, root / "cache")
        warm, again = measured(root, root / "cache")
        write(root, range(n.systems, n.systems + 1), n.datasets, n.trials)
        more, _ = measured(root, root / "cache")
        size = write_site(board, root / "site")
        same = board.to_dict() == again.to_dict()
    print(f"{n.systems} systems × {n.datasets} data sets × {n.trials:,} trials, 1,000 draws:\n")
    print("| what | processor seconds |\n|---|---|")
    print(f"| pandas + scikit-learn, EERs alone | {plain:.1f} |")
    print(f"| `hitmiss board`, cold | {cold:.1f} ({cold / plain:.2f} × the peer) |")
    print(f"| the same from the cache ({'equal' if same else 'NOT equal'}) | {warm:.1f} |")
    print(f"| one more system | {more:.1f} |")
    tiers = max(row.tier or 0 for row in board.rows)
    print(f"\n{tiers} tiers; the site has {size / 1e6:.2f} MB in {len(board.rows) + 1} pages.")


if __name__ == "__main__":
    main()
