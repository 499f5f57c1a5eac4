"""Files beyond memory: what counting, streaming and intervals cost as trials grow, against pandas, scikit-learn and DuckDB.

    python benchmarks/scale.py [peers] [groupby] [stream] [engines] [ids] [units] [growth] [billion]

Generated trials (12 codecs, a fifth bona fide, Gaussian scores in double precision, EER 6 to 7 %), in a folder that is
removed. Each row is a process of its own: seconds of processor time (all threads, imports included), on the wall where the
table says so, and peak memory as the system counts it. `peers`: 10 million rows in one file to EER, minDCF and AUC of all and of each codec, with ids
looked through for repeats, which the peer does not do. `groupby`: 20 million rows in 20 Parquet files, counted by our
first pass with either engine (which also takes the SHA-256 of every file, and looks for NaN and unknown labels) and by DuckDB's GROUP BY.
"Same columns": files of codec, label and score alone, scores rounded down to multiples of 1/256, so that both read and count
the same; that they find the same counts is checked. "With ids": a column of ids more, which ours looks through for repeats
and DuckDB does not read. "As they are": with ids, doubles; ours keeps every score, DuckDB counts floor(768 · score), and every score.
`stream`: Parquet shards of a million rows, EER, minDCF and AUC by codec with 1,000 replicates, `--memory 500MB`; the
figures are exact, so every score is put on disk once and read back. `engines`: ten and a hundred million rows of the same, by every
engine, and by the code of before engines counted where OLD names the `src` folder of a checkout of it; that all find the same
figures, and the engines the same intervals, is checked. `ids`: 20 million rows whose ids are in no order, so
that their hashes are compared. `units`: whole speakers drawn, the same bits in memory and beyond it. `growth`: the 1,000 replicates of EER and minDCF alone, the tally given.
`billion`: only when asked for, a billion trials: EER, minDCF and AUC by codec, every id looked at.
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
PARTS = ("peers", "groupby", "stream", "engines", "ids", "units", "growth")
ENGINES = ("polars", "duckdb")
BILLION = 1000
SIZES = (10, 50, 100)
"""Millions of rows that are streamed."""

STREAM = """
import sys
from hitmiss.outofcore.stream import evaluate_streamed
path, memory, bootstrap = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
metrics, reading = sys.argv[4:] or ["eer", "min_dcf", "roc_auc"], {"positive": "bonafide", "negative": "spoof"}
found = evaluate_streamed(path, metrics=metrics, by=["codec"], memory=memory, bootstrap=bootstrap, reading=reading)
print(len(found.trials), *(e.value for e in found.results.estimates[:3]))
"""
BY_ENGINE = """
import sys
from hashlib import sha256
try:
    from hitmiss.outofcore.stream import evaluate_streamed
except ImportError:  # before engines counted
    from hitmiss.scale.streaming import evaluate_streamed
asked = {"metrics": ["eer", "min_dcf", "roc_auc"], "by": ["codec"], "memory": 500_000_000, "bootstrap": 1000}
asked["reading"] = {"positive": "bonafide", "negative": "spoof"}
engine = {"engine": sys.argv[2]} if sys.argv[2] else {}
found = evaluate_streamed(sys.argv[1], **asked, **engine).results
for ends in ([(e.low, e.high) for e in found], [(e.metric, e.slice, e.value) for e in found]):
    print(sha256(repr(ends).encode()).hexdigest())
"""
UNITS = """
import sys
from hashlib import sha256
from hitmiss.outofcore.stream import evaluate_streamed
asked = {"metrics": ["eer", "min_dcf", "roc_auc"], "by": sys.argv[3:], "memory": int(sys.argv[2]), "bootstrap": 200}
asked["reading"] = {"positive": "bonafide", "negative": "spoof"}
found = evaluate_streamed(sys.argv[1], unit="speaker", **asked).results
print(sha256(repr([(e.metric, e.slice, e.value, e.low, e.high, e.units) for e in found]).encode()).hexdigest())
"""
FIRST_PASS = """
import sys, time
from glob import glob
from hashlib import sha256
from hitmiss.evaluation.protocol import find_protocol
from hitmiss.outofcore.counting import count
from hitmiss.outofcore.plan import Shard, ShardPlan
from hitmiss.outofcore.shard_tally import merge_tallies
from hitmiss.core.score_keys import scores_of
engine = sys.argv[3] if len(sys.argv) > 3 else "polars"
plan = ShardPlan(find_protocol("asvspoof5").read, keep=("codec",), ids=sys.argv[2] == "ids", engine=engine)
best = 9e9
for _ in range(3):
    start = time.process_time()
    tally = merge_tallies(piece for path in sorted(glob(sys.argv[1])) for piece in count(Shard(path), plan))
    best = min(best, time.process_time() - start)
groups = sum(len(b.bins) for b in tally.cells.values())
rows = [(*c, s, n) for c, b in tally.cells.items() for s, n in zip(scores_of(b.bins).tolist(), b.each.tolist())] if groups < 10**6 else []
print(best, groups, tally.n, sha256(repr(sorted((k, l, s, n) for l, k, s, n in rows)).encode()).hexdigest())
"""
ONCE = FIRST_PASS.replace("range(3)", "range(1)")
DUCKDB = """
import sys, time
from hashlib import sha256
import duckdb
connection = duckdb.connect()
best = 9e9
for _ in range(3):
    start = time.process_time()
    groups = connection.execute(f"SELECT codec, label, {sys.argv[2]} s, count(*) n FROM '{sys.argv[1]}' GROUP BY ALL").fetchnumpy()
    best = min(best, time.process_time() - start)
n = len(groups["n"])
rows = sorted(zip(*(groups[c].tolist() for c in ("codec", "label", "s", "n")))) if n < 10**6 else []
print(best, n, int(groups["n"].sum()), sha256(repr(rows).encode()).hexdigest())
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


def make(folder: Path, kind: str, millions: int) -> None:
    """Files of a kind, no more than so many, those that are there kept: shards of a million rows each (s; r: scores rounded to multiples of
    1/256; c: rounded and without ids; u: ids in no order; v: 2,000 speakers), or one file of ten million rows in two formats (ten)."""
    if kind == "ten":
        frame = trials(10_000_000, 0)
        frame.write_csv(folder / "ten.csv")
        frame.write_parquet(folder / "ten.parquet")
        return
    for path in sorted(folder.glob(f"{kind}*.parquet"))[millions:]:
        path.unlink()
    for k in range(millions):
        path = folder / f"{kind}{k:04d}.parquet"
        if not path.exists():
            CHANGES.get(kind, lambda frame: frame)(trials(1_000_000, k)).write_parquet(path, compression="lz4")


ROUNDED = (pl.col("score") * 256).floor() / 256
CHANGES = {
    "r": lambda frame: frame.with_columns(score=ROUNDED),
    "c": lambda frame: frame.drop("item").with_columns(score=ROUNDED),
    "v": lambda frame: frame.with_columns(
        speaker=pl.col("item").hash(1) % 2000, score=pl.col("score") + 0.3 * (pl.col("item").hash(1) % 2000 % 7)
    ).with_columns(pl.format("S{}", "speaker").alias("speaker")),
    "u": lambda frame: frame.with_columns(item=pl.col("item").reverse().str.reverse()),
}


def shards(folder: Path, millions: int, kind: str = "s") -> str:
    """The pattern of shards, made by another process: a child's peak memory counts its parent's when it was begun."""
    measured(__file__, "--make", str(folder), kind, str(millions))
    return str(folder / f"{kind}*.parquet")


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
    print(
        "| 10 million rows, one file | clock | hitmiss s | pandas + scikit-learn s | ratio | target | hitmiss MB | theirs MB |\n|---|---|---|---|---|---|---|---|"
    )
    shards(folder, 0, "ten")
    for suffix, target in (("csv", 5), ("parquet", 8)):
        path = folder / f"ten.{suffix}"
        ours = min(measured("-c", STREAM, str(path), "1000000000", "0") for _ in range(3))
        theirs = measured(str(HERE / "peers" / "pandas_domains.py"), str(path))
        for clock, mine, other in (("processor", ours.cpu, theirs.cpu), ("wall", ours.wall, theirs.wall)):
            figures = (
                f"{mine:.2f} | {other:.1f} | {other / mine:.1f} | {target} | {ours.memory:.0f} | {theirs.memory:.0f}"
            )
            print(f"| {suffix.upper()} | {clock} | {figures} |", flush=True)
        path.unlink()


def groupby(folder: Path) -> None:
    """Twenty million rows against DuckDB's group-by."""
    print("| 20 million rows counted | s | groups | MB | hitmiss takes |\n|---|---|---|---|---|")
    every = ["floor(score * 768)", "score"]
    kinds = (
        ("same columns", "c", "", ["score"]),
        ("with ids", "r", "ids", ["score"]),
        ("as they are", "s", "ids", every),
    )
    for what, kind, has_ids, theirs in kinds:
        pattern = shards(folder, 20, kind)
        took, found = {}, set()
        for engine in ENGINES:
            ours = measured("-c", FIRST_PASS, pattern, has_ids, engine)
            best, groups, _, counts = ours.out.split()
            took[engine], found = float(best), found | {counts}
            print(f"| {what}: hitmiss by {engine} | {took[engine]:.2f} | {int(groups):,} | {ours.memory:.0f} | |")
        for score in theirs:
            peer = measured("-c", DUCKDB, pattern, score)
            their_best, their_groups, _, their_found = peer.out.split()[-4:]  # DuckDB may print a progress bar before
            if kind != "s" and found != {their_found}:
                raise SystemExit("the counts differ")
            ratio = ", ".join(f"{engine} {mine / float(their_best):.2f}×" for engine, mine in took.items())
            figures = f"{float(their_best):.2f} | {int(their_groups):,} | {peer.memory:.0f} | {ratio}"
            print(f"| {what}: DuckDB, GROUP BY codec, label, {score} | {figures} |", flush=True)
    print("\nTarget: at most 1.1 times.", flush=True)


def stream(folder: Path) -> None:
    """Shards streamed in bounded memory."""
    print("| rows | first pass s | all passes, 1,000 replicates s | peak MB | EER |\n|---|---|---|---|---|")
    for millions in SIZES:
        pattern = shards(folder, millions)
        counted = measured("-c", ONCE, pattern, "ids").out.split()
        cost = measured("-c", STREAM, pattern, "500000000", "1000")
        print(
            f"| {millions} M | {float(counted[0]):.1f} | {cost.cpu:.0f} | {cost.memory:.0f} | {float(cost.out.split()[1]):.6f} |",
            flush=True,
        )


def engines(folder: Path) -> None:
    """Ten and a hundred million rows by every engine, the figures compared."""
    print("| EER, minDCF and AUC by codec, 1,000 replicates | rows | processor s | peak MB |\n|---|---|---|---|")
    now, old = os.environ.get("PYTHONPATH", ""), os.environ.get("OLD")
    for millions in (10, 100):
        pattern, values, intervals = shards(folder, millions), set[str](), set[str]()
        for engine in (*ENGINES, *([""] if old else [])):
            os.environ["PYTHONPATH"] = now if engine else str(old)
            cost = measured("-c", BY_ENGINE, pattern, engine)
            values.add(cost.out.split()[-1])
            intervals |= {cost.out.split()[-2]} if engine else set()  # other versions may draw other replicates
            figures = f"{millions} M | {cost.cpu:.1f} | {cost.memory:.0f}"
            print(f"| {engine or 'before engines counted'} | {figures} |", flush=True)
        os.environ["PYTHONPATH"] = now
        if len(values) > 1 or len(intervals) > 1:
            raise SystemExit("the figures differ")
    print("\nAll find the same figures to the last bit, and the engines the same intervals.")


def ids(folder: Path) -> None:
    """Ids in order against ids in none, all compared."""
    print("| 20 million rows, EER and minDCF by codec, `--memory 200MB` | s | peak MB |\n|---|---|---|")
    for kind, what in (("s", "ids in ascending order"), ("u", "ids in no order")):
        cost = measured("-c", STREAM, shards(folder, 20, kind), "200000000", "0", "eer", "min_dcf")
        print(f"| {what} | {cost.cpu:.1f} | {cost.memory:.0f} |", flush=True)


def units(folder: Path) -> None:
    """Whole speakers drawn, in memory and beyond it, the figures compared."""
    print("| 10 million rows, 2,000 speakers, 200 replicates of EER, minDCF and AUC | s | peak MB |\n|---|---|---|")
    pattern = shards(folder, 10, "v")
    for by in ((), ("codec",)):
        found = set[str]()
        for memory, said in ((4_000_000_000, "4GB`, all scores in memory"), (500_000_000, "500MB`, beyond memory")):
            cost = measured("-c", UNITS, pattern, str(memory), *by)
            found.add(cost.out.strip())
            print(
                f"| {'by codec' if by else 'all trials'}, `--memory {said} | {cost.cpu:.1f} | {cost.memory:.0f} |",
                flush=True,
            )
        if len(found) > 1:
            raise SystemExit("the figures differ")
    print("\nFigures and intervals are the same to the last bit.")


def billion(folder: Path) -> None:
    """A billion trials. Takes 12 GB of disk."""
    start = time.perf_counter()
    pattern = shards(folder, BILLION)
    print(f"{BILLION} shards of a million rows, made in {time.perf_counter() - start:.0f} s.\n")
    print("| a billion rows | processor s | wall s | peak MB |\n|---|---|---|---|")
    command = STREAM, pattern, "1000000000", "0", "eer", "min_dcf", "roc_auc"
    cost = measured("-c", *command)
    what = "EER, minDCF and AUC by codec, ids looked at, `--memory 1GB`"
    print(f"| {what} | {cost.cpu:.0f} | {cost.wall:.0f} | {cost.memory:.0f} |", flush=True)


def growth() -> None:
    """The replicates alone, as trials grow."""
    from hitmiss.core.tally import Tally
    from hitmiss.stats.forms.base import Form
    from hitmiss.stats.forms.crossing import equal_error
    from hitmiss.stats.forms.least_cost import MinimumCost
    from hitmiss.stats.replicates import trial_replicates
    from hitmiss.stats.sketch import LARGE, condense

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
            trial_replicates(short, forms, 1000, np.random.default_rng(0))
            best = min(best, time.process_time() - start)
        costs[n] = best
        print(f"| {n:,} | {best:.3f} | {best / costs[68_000]:.1f} |", flush=True)
    print("\nTarget: at most 12 times for 500 times the trials.")


def main(parts: list[str]) -> None:
    """The tables asked for."""
    if parts[:1] == ["--make"]:
        make(Path(parts[1]), parts[2], int(parts[3]))
        return
    with tempfile.TemporaryDirectory(prefix="hitmiss-scale-") as name:
        folder = Path(name)
        for part in parts or PARTS:
            if part == "growth":
                growth()  # last: it fills the memory of this process
            else:
                {
                    "peers": peers,
                    "groupby": groupby,
                    "stream": stream,
                    "engines": engines,
                    "ids": ids,
                    "units": units,
                    "billion": billion,
                }[part](folder)
            print(flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
