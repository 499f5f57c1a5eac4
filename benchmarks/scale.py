"""Files beyond memory: what counting, streaming and intervals cost as trials grow, against pandas, scikit-learn and DuckDB.

    python benchmarks/scale.py [peers] [groupby] [stream] [growth] [billion]

Generated trials (12 codecs, a fifth bona fide, Gaussian scores in double precision, EER 6 to 7 %), in a folder that is
removed. Each row is a process of its own: seconds of processor time (all threads, imports included), on the wall where the
table says so, and peak memory as the system counts it. `peers`: 10 million rows in one file to EER, minDCF and AUC of all and of each codec, with ids
looked through for repeats, which the peer does not do. `groupby`: 20 million rows in 20 Parquet files, our first pass
(bins and hash of every file) and DuckDB's own count by (codec, label, floor(steps · score)): 256 steps are coarser than
our bins, with 768 it holds about as many groups as we do.
`stream`: Parquet shards of a million rows, EER, minDCF and AUC by codec with 1,000 replicates, `--memory 500MB`; the
figures are exact, so the files are read several times. `growth`: the 1,000 replicates of EER and minDCF alone, the tally given.
`billion`: only when asked for, our first pass over a billion trials.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl

HERE = Path(__file__).resolve().parent
CODECS = ("NONE", *(f"C{i:02d}" for i in range(1, 12)))
PARTS = ("peers", "groupby", "stream", "growth")
STEPS = (256, 768)
BILLION = 1000
SIZES = (10, 50, 100)
"""Millions of rows that are streamed."""

STREAM = """
import sys
from hitmiss.scale.streaming import evaluate_streamed
path, memory, bootstrap = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
metrics, reading = ["eer", "min_dcf", "roc_auc"], {"positive": "bonafide", "negative": "spoof"}
found = evaluate_streamed(path, metrics=metrics, by=["codec"], memory=memory, bootstrap=bootstrap, reading=reading)
print(len(found.trials), *(e.value for e in found.results.estimates[:3]))
"""
FIRST_PASS = """
import sys, time
from glob import glob
from hitmiss.protocol import find_protocol
from hitmiss.scale.passes import first_pass
from hitmiss.scale.plan import Shard, ShardPlan
from hitmiss.scale.tallies import merge_tallies
plan = ShardPlan(find_protocol("asvspoof5").options, keep=("codec",), bits=20, ids=False)
best = 9e9
for _ in range(3):
    start = time.process_time()
    tally = merge_tallies(first_pass(Shard(path), plan) for path in sorted(glob(sys.argv[1])))
    best = min(best, time.process_time() - start)
print(best, sum(len(b.bins) for b in tally.cells.values()), tally.n)
"""
DUCKDB = """
import sys, time
import duckdb
connection = duckdb.connect()
best = 9e9
for _ in range(3):
    start = time.process_time()
    groups = connection.execute(f"SELECT codec, label, floor(score * {sys.argv[2]}) b, count(*) n FROM '{sys.argv[1]}' GROUP BY ALL").fetchnumpy()
    best = min(best, time.process_time() - start)
print(best, len(groups["n"]), int(groups["n"].sum()))
"""


def trials(n: int, seed: int) -> pl.DataFrame:
    """One shard."""
    rng = np.random.default_rng(seed)
    positive = rng.random(n, dtype=np.float32) < 0.2
    score = rng.standard_normal(n) + np.where(positive, 1.5, -1.5)
    codec = pl.Series(rng.integers(0, len(CODECS), n, dtype=np.uint32)).cast(pl.UInt32)
    words = pl.Series(positive.astype(np.uint32))
    return pl.DataFrame(
        {
            "item": pl.int_range(10**10 + seed * n, 10**10 + (seed + 1) * n, eager=True).cast(pl.String),
            "codec": pl.Series(CODECS).gather(codec),
            "label": pl.Series(["spoof", "bonafide"]).gather(words),
            "score": score,
        }
    )


def make(folder: Path, millions: int) -> None:
    """Shards of a million rows each, those that are there kept; or one file of ten million rows in two formats."""
    if not millions:
        frame = trials(10_000_000, 0)
        frame.write_csv(folder / "ten.csv")
        frame.write_parquet(folder / "ten.parquet")
    for k in range(millions):
        path = folder / f"s{k:04d}.parquet"
        if not path.exists():
            trials(1_000_000, k).write_parquet(path, compression="lz4")


def shards(folder: Path, millions: int) -> str:
    """The pattern of shards, made by another process: a child's peak memory counts its parent's when it was begun."""
    measured(__file__, "--make", str(folder), str(millions))
    return str(folder / "s*.parquet")


class Cost(NamedTuple):
    """What a process took: processor seconds, seconds on the clock, peak megabytes; and what it printed."""

    cpu: float
    wall: float
    memory: float
    out: str


def measured(*command: str) -> Cost:
    """The cost of a process."""
    start = time.perf_counter()
    child = subprocess.Popen([sys.executable, *command], stdout=subprocess.PIPE, text=True)
    out = child.stdout.read() if child.stdout else ""
    _, status, usage = os.wait4(child.pid, 0)
    if status:
        raise SystemExit(f"{command[0]} failed")
    return Cost(usage.ru_utime + usage.ru_stime, time.perf_counter() - start, usage.ru_maxrss / 1e3, out)


def peers(folder: Path) -> None:
    """Ten million rows against pandas and scikit-learn."""
    print("| 10 million rows, one file | clock | hitmiss s | pandas + scikit-learn s | ratio | target | hitmiss MB | theirs MB |\n|---|---|---|---|---|---|---|---|")
    shards(folder, 0)
    for suffix, target in (("csv", 5), ("parquet", 8)):
        path = folder / f"ten.{suffix}"
        ours = min(measured("-c", STREAM, str(path), "1000000000", "0") for _ in range(3))
        theirs = measured(str(HERE / "peers" / "pandas_domains.py"), str(path))
        for clock, mine, other in (("processor", ours.cpu, theirs.cpu), ("wall", ours.wall, theirs.wall)):
            figures = f"{mine:.2f} | {other:.1f} | {other / mine:.1f} | {target} | {ours.memory:.0f} | {theirs.memory:.0f}"
            print(f"| {suffix.upper()} | {clock} | {figures} |", flush=True)
        path.unlink()


def groupby(folder: Path) -> None:
    """Twenty million rows against DuckDB's group-by."""
    pattern = shards(folder, 20)
    ours = measured("-c", FIRST_PASS, pattern)
    best, groups, _ = ours.out.split()
    print("| 20 million rows counted | s | groups | MB | hitmiss takes |\n|---|---|---|---|---|")
    print(f"| hitmiss, first pass | {float(best):.2f} | {int(groups):,} | {ours.memory:.0f} | |")
    for step in STEPS:
        try:
            theirs = measured("-c", DUCKDB, pattern, str(step))
        except SystemExit:
            print("\nDuckDB is not installed here.")
            return
        their_best, their_groups, _ = theirs.out.split()[-3:]  # DuckDB may print a progress bar before
        ratio = float(best) / float(their_best)
        print(f"| DuckDB, GROUP BY, {step} steps | {float(their_best):.2f} | {int(their_groups):,} | {theirs.memory:.0f} | {ratio:.2f}× |", flush=True)
    print("\nTarget: at most 1.5 times.", flush=True)


def stream(folder: Path) -> None:
    """Shards streamed in bounded memory."""
    print("| rows | first pass s | all passes, 1,000 replicates s | peak MB | EER |\n|---|---|---|---|---|")
    for millions in SIZES:
        pattern = shards(folder, millions)
        counted = measured("-c", FIRST_PASS.replace("range(3)", "range(1)"), pattern).out.split()
        cost = measured("-c", STREAM, pattern, "500000000", "1000")
        print(f"| {millions} M | {float(counted[0]):.1f} | {cost.cpu:.0f} | {cost.memory:.0f} | {float(cost.out.split()[1]):.6f} |", flush=True)


def billion(folder: Path) -> None:
    """A billion trials counted. Takes 9 GB of disk."""
    start = time.perf_counter()
    pattern = shards(folder, BILLION)
    print(f"{BILLION} shards of a million rows, made in {time.perf_counter() - start:.0f} s.\n")
    cost = measured("-c", FIRST_PASS.replace("range(3)", "range(1)"), pattern)
    print("| a billion rows | processor s | wall s | peak MB |\n|---|---|---|---|")
    print(f"| first pass | {cost.cpu:.0f} | {cost.wall:.0f} | {cost.memory:.0f} |")


def growth() -> None:
    """The replicates alone, as trials grow."""
    from hitmiss.stats.bootstrap import stratified_replicates
    from hitmiss.stats.condensing import LARGE, condense
    from hitmiss.stats.forms import Form, MinimumCost, equal_error
    from hitmiss.tally import Tally

    forms: list[Form] = [equal_error("official"), MinimumCost(0.95, 0.5, 0.5)]
    costs = {}
    print("| trials | 1,000 replicates of EER + minDCF s | times the smallest |\n|---|---|---|")
    for n in (68_000, 680_000, 6_800_000, 34_000_000):
        rng = np.random.default_rng(1)
        tally = Tally.of_classes(rng.normal(1.5, size=n // 5), rng.normal(-1.5, size=n - n // 5))
        best = np.inf
        for _ in range(3):
            start = time.process_time()
            short = condense(tally, forms) if n > LARGE else tally
            stratified_replicates(short, forms, 1000, np.random.default_rng(0))
            best = min(best, time.process_time() - start)
        costs[n] = best
        print(f"| {n:,} | {best:.3f} | {best / costs[68_000]:.1f} |", flush=True)
    print("\nTarget: at most 12 times for 500 times the trials.")


def main(parts: list[str]) -> None:
    """The tables asked for."""
    if parts[:1] == ["--make"]:
        make(Path(parts[1]), int(parts[2]))
        return
    with tempfile.TemporaryDirectory(prefix="hitmiss-scale-") as name:
        folder = Path(name)
        for part in parts or PARTS:
            if part == "growth":
                growth()  # last: it fills the memory of this process
            else:
                {"peers": peers, "groupby": groupby, "stream": stream, "billion": billion}[part](folder)
            print(flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
