"""Figures of many groups, and the whole toxicity command: how much less processor time than the usual tools take.

    python benchmarks/toxicity.py

One run, one thread each, processor time (user and system), least of three unless the table says otherwise. The whole
command and its peer are started in turn, and medians are compared, so that a busy machine slows both alike; it is also
timed by the clock on the wall, with the threads that each takes by itself, which only means something on a machine that
does nothing else. Start of the interpreter and imports count for both. Peers that are not installed are left out. Every
figure of every peer is compared with ours; the largest difference is in the table.
"""

from __future__ import annotations

import os

os.environ.update(dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "POLARS_MAX_THREADS"), "1"))

import gc
import importlib.util
import math
import resource
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import hitmiss as hm

LIMITS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "POLARS_MAX_THREADS")
ROWS, GROUPS = 10_000_000, 50
SLOW_ROWS = 1_000_000
FILES, ROWS_A_FILE = 20, 100_000
TURNS = 7
LANGUAGES = [
    *("en", "es", "it", "tr", "fr", "de", "pt", "nl", "pl", "ru"),
    *("uk", "cs", "sv", "fi", "da", "hu", "ro", "el", "ko", "ja"),
]
METRICS = ("roc_auc", "f1", "precision", "recall")
PEER = Path(__file__).with_name("peers") / "pandas_toxicity.py"

Row = dict[str, Any]
Array = np.ndarray[Any, Any]
Figures = dict[str, dict[int, float]]


def trials(n: int, seed: int = 0) -> dict[str, Array]:
    """Labels (10 % positive), probabilities, decisions and groups of Zipf-like sizes."""
    rng = np.random.default_rng(seed)
    share = 1 / np.arange(1, GROUPS + 1)
    label = (rng.random(n) < 0.1).astype(np.int8)
    score = 1 / (1 + np.exp(-(rng.standard_normal(n) + 1.5 * label)))
    group = rng.choice(GROUPS, size=n, p=share / share.sum()).astype(np.uint8)
    return {"label": label, "score": score, "decision": (score >= 0.7).astype(np.int8), "group": group}


def cpu(work: Callable[[], Any], times: int = 3) -> tuple[float, Any]:
    """Least processor seconds of some runs, and the result."""
    best, result = math.inf, None
    for _ in range(times):
        gc.collect()
        start = time.process_time()
        result = work()
        best = min(best, time.process_time() - start)
    return best, result


def table_of(data: dict[str, Array]) -> hm.Trials:
    """The rows as trials."""
    return hm.Trials.of(data["label"], data["score"], decision=data["decision"], group=data["group"])


def ours(table: hm.Trials) -> Figures:
    """All figures of all groups by the public call, which also gives intervals, averages, the pooled figures and a digest."""
    found: Figures = {name: {} for name in METRICS}
    for e in hm.measure(table, METRICS, by="group"):
        if e.slice and e.average is None and e.value is not None:
            found[e.metric][int(e.slice["group"])] = e.value
    return found


def sklearn_loop(data: dict[str, Array]) -> Figures:
    """scikit-learn in a pandas groupby loop, groups given as categories."""
    import pandas as pd
    from sklearn import metrics as sk

    frame = pd.DataFrame({**data, "group": pd.Categorical.from_codes(data["group"], categories=range(GROUPS))})
    found: Figures = {name: {} for name in METRICS}
    for group, part in frame.groupby("group", observed=True):
        y, s, d = (part[c].to_numpy() for c in ("label", "score", "decision"))
        found["roc_auc"][int(group)] = sk.roc_auc_score(y, s)
        for name, function in zip(METRICS[1:], (sk.f1_score, sk.precision_score, sk.recall_score), strict=True):
            found[name][int(group)] = function(y, d)
    return found


def torchmetrics_loop(data: dict[str, Array]) -> Figures:
    """torchmetrics, exact AUROC, one call a figure and group."""
    import torch
    from torchmetrics.functional.classification import binary_auroc, binary_f1_score, binary_precision, binary_recall

    torch.set_num_threads(1)
    y, s, d, g = (torch.from_numpy(data[c]) for c in ("label", "score", "decision", "group"))
    found: Figures = {name: {} for name in METRICS}
    for group in range(GROUPS):
        own = g == group
        label, score, decision = y[own].long(), s[own], d[own].long()
        found["roc_auc"][group] = float(binary_auroc(score, label))
        for name, function in zip(METRICS[1:], (binary_f1_score, binary_precision, binary_recall), strict=True):
            found[name][group] = float(function(decision, label))
    return found


def fairlearn_frames(data: dict[str, Array]) -> Figures:
    """fairlearn MetricFrame: two frames, as one has one y_pred; it computes the overall figures too."""
    import pandas as pd
    from fairlearn.metrics import MetricFrame
    from sklearn import metrics as sk

    names = pd.Categorical.from_codes(data["group"], categories=range(GROUPS))
    options = {"y_true": data["label"], "sensitive_features": pd.Series(names, name="group")}
    decided = {"f1": sk.f1_score, "precision": sk.precision_score, "recall": sk.recall_score}
    frames = (
        MetricFrame(metrics={"roc_auc": sk.roc_auc_score}, y_pred=data["score"], **options),
        MetricFrame(metrics=decided, y_pred=data["decision"], **options),
    )
    found: Figures = {}
    for frame in frames:
        found |= {n: {int(g): float(v) for g, v in frame.by_group[n].items()} for n in frame.by_group.columns}
    return found


def off(found: Figures, wanted: Figures) -> float:
    """The largest difference of any figure."""
    return max(abs(found[m][g] - wanted[m][g]) for m in METRICS for g in wanted[m])


def row(what: str, mine: float, peer: str, theirs: float, target: float | None, note: str = "") -> Row:
    """A row that wants ours × target <= theirs."""
    return {
        "what": what,
        "hitmiss": f"{mine:.3f} s",
        "against": peer,
        "takes": f"{theirs:.3g} s",
        "ratio": f"{theirs / mine:,.1f}×",
        "target": f"≥ {target:,g}×" if target else "",
        "met": ("yes" if theirs / mine >= target else "NO") if target else "",
        "note": note,
    }


def figures() -> list[Row]:
    """AUC, F1, precision and recall of 50 groups."""
    whole, part = trials(ROWS), trials(SLOW_ROWS, seed=1)
    ours(table_of(trials(1000)))  # once before timing, so that nobody pays for imports and first touches
    table, table_part = table_of(whole), table_of(part)
    (mine, found), (mine_part, found_part) = cpu(lambda: ours(table)), cpu(lambda: ours(table_part))
    made, _ = cpu(lambda: ours(table_of(whole)))
    what, what_part = (f"{n / 1e6:g} M rows × {GROUPS} groups: AUC, F1, precision, recall" for n in (ROWS, SLOW_ROWS))
    rows = []
    if has("sklearn", "pandas"):
        theirs, wanted = cpu(lambda: sklearn_loop(whole))
        note = f"largest difference {off(found, wanted):.1e}"
        rows.append(row(what, mine, "scikit-learn in a groupby loop", theirs, 8, note))
        rows.append(row(f"{what}; the table made of arrays, too", made, "the same", theirs, None, note))
    for name, target, function in (("torchmetrics", 15, torchmetrics_loop), ("fairlearn", 50, fairlearn_frames)):
        if has(name):
            theirs, wanted = cpu(lambda f=function: f(part), times=1)  # type: ignore[misc]
            note = f"{SLOW_ROWS / 1e6:g} M rows, peer run once; largest difference {off(found_part, wanted):.1e}"
            rows.append(row(what_part, mine_part, f"{name} {version(name)}", theirs, target, note))
    return rows


def has(*names: str) -> bool:
    """Whether packages are installed."""
    return all(importlib.util.find_spec(name) is not None for name in names)


def version(name: str) -> str:
    """The version of an installed package."""
    from importlib.metadata import version as of

    return of(name)


def write_predictions(folder: Path) -> None:
    """Files as the document's scripts write them."""
    rng = np.random.default_rng(2)
    for language in LANGUAGES:
        label = (rng.random(ROWS_A_FILE) < 0.1).astype(int)
        score = 1 / (1 + np.exp(-(1.5 * rng.standard_normal(ROWS_A_FILE) + 2 * label - 2)))
        lines = [
            f"{i},{y},{s!r},{int(s >= 0.4)},0.4"
            for i, (y, s) in enumerate(zip(label.tolist(), score.tolist(), strict=True))
        ]
        text = "\n".join(["id,y_true,y_prob,y_pred,best_threshold", *lines])
        (folder / f"run_{language}.csv").write_text(text + "\n")


def spent(words: list[str], threads: bool = False) -> tuple[float, float]:
    """Processor seconds and seconds on the wall of a process, its start included."""
    own = dict(os.environ)
    for name in (*(LIMITS if threads else ()), "PYTHONDONTWRITEBYTECODE"):  # whoever runs it twice has compiled modules
        own.pop(name, None)
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(words, check=True, capture_output=True, env=own)
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, wall


def in_turn(ours: list[str], peer: list[str], threads: bool = False) -> tuple[tuple[float, float], tuple[float, float]]:
    """Median processor seconds of both, and median seconds on the wall of both, started in turn."""
    pairs = [(spent(ours, threads), spent(peer, threads)) for _ in range(TURNS)]
    cpu, wall = (tuple(statistics.median(pair[who][kind] for pair in pairs) for who in (0, 1)) for kind in (0, 1))
    return (cpu[0], cpu[1]), (wall[0], wall[1])


def command() -> list[Row]:
    """The whole command, start included, with and without resampling."""
    if not has("sklearn", "pandas"):
        return []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_predictions(folder)
        where = ["--pred_dir", name, "--run_tag", "run", "--languages", *LANGUAGES, "--output", str(folder / "out.csv")]
        start = [sys.executable, "-m", "hitmiss", "toxicity", *where, "--bootstrap"]
        peer = [sys.executable, str(PEER), name, str(folder / "theirs.csv")]
        (plain, theirs), _ = in_turn([*start, "0"], [*peer, *LANGUAGES])
        _, walls = in_turn([*start, "0"], [*peer, *LANGUAGES], threads=True)
        same = differs(folder / "out.csv", folder / "theirs.csv")
        drawn = statistics.median(spent([*start, "1000"])[0] for _ in range(3))
        intervals = spent([*peer, "--draws", "20", *LANGUAGES])[0]
    size = f"{FILES * ROWS_A_FILE / 1e6:g} M rows in {FILES} files"
    scaled = theirs + (intervals - theirs) * 1000 / 20
    note = f"median of {TURNS}; ours has DeLong and Wilson intervals, the peer none; largest difference {same:.1e}"
    return [
        row(f"whole command, {size}", plain, "pandas + scikit-learn", theirs, 5, note),
        row(
            f"the same on the wall, {size}",
            *(walls[0], "pandas + scikit-learn", walls[1]),
            5,
            f"median of {TURNS}, {os.cpu_count()} cores",
        ),
        row(
            f"the same with 1,000 replicates, {size}",
            drawn,
            "pandas + scikit-learn",
            scaled,
            5,
            "peer: F1 and AUC, 20 replicates scaled to 1,000",
        ),
    ]


def differs(mine: Path, theirs: Path) -> float:
    """The largest difference of any documented figure of the two files."""
    import csv

    def read(path: Path) -> dict[str, dict[str, str]]:
        with path.open(newline="") as file:
            return {r["language"]: r for r in csv.DictReader(file)}

    a, b = read(mine), read(theirs)
    names = ("roc_auc", "f1", "precision", "recall", "accuracy")
    return max(abs(float(a[k][n]) - float(b[k][n])) for k in b for n in names)


def rows() -> list[Row]:
    """Every row of the table."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [*figures(), *command()]


def main() -> None:
    """Print the table."""
    found = rows()
    header = list(found[0])
    print("| " + " | ".join(header) + " |")
    print("|" + "---|" * len(header))
    for r in found:
        print("| " + " | ".join(str(r[c]) for c in header) + " |", flush=True)


if __name__ == "__main__":
    main()
