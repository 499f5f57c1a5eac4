"""This tree against an older one: processor seconds of the same commands on the same files, started in turn.

    git worktree add ../old 1be9809
    python benchmarks/before_after.py ../old

One thread each, user and system time of the whole process, the least of some turns; a ratio below 1 is faster than before.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parents[1]
LIMITS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "POLARS_MAX_THREADS")
LANGUAGES = ("en", "es", "it", "tr", "fr")
ROWS = 100_000
MEASURE = """
import time, numpy as np, hitmiss as hm
rng = np.random.default_rng(0)
n = 2_000_000
label = (rng.random(n) < 0.1).astype(np.int8)
score = 1 / (1 + np.exp(-(rng.standard_normal(n) + 1.5 * label)))
group = rng.integers(0, 50, n).astype(np.uint8)
table = hm.Trials.of(label, score, decision=(score >= 0.7).astype(np.int8), group=group)
best = 9.0
for _ in range(4):
    start = time.process_time()
    hm.measure(table, ["roc_auc", "f1", "precision", "recall"], by="group")
    best = min(best, time.process_time() - start)
print(best)
"""


def write(folder: Path) -> None:
    """Score files of a binary detector: one per language, and one with an id and a codec."""
    rng = np.random.default_rng(2)
    for language in LANGUAGES:
        label = (rng.random(ROWS) < 0.1).astype(int)
        score = 1 / (1 + np.exp(-(1.5 * rng.standard_normal(ROWS) + 2 * label - 2)))
        rows = zip(label.tolist(), score.tolist(), strict=True)
        lines = [f"{i},{y},{s!r},{int(s >= 0.4)},0.4" for i, (y, s) in enumerate(rows)]
        text = "\n".join(["id,y_true,y_prob,y_pred,best_threshold", *lines])
        (folder / f"run_{language}.csv").write_text(text + "\n")
    label, codec = (rng.random(ROWS) < 0.2).astype(int), rng.integers(0, 5, ROWS)
    score, speaker = rng.standard_normal(ROWS) + label, rng.integers(0, 60, ROWS)
    rows = zip(label.tolist(), score.tolist(), codec.tolist(), speaker.tolist(), strict=True)
    words = ("spoof", "bonafide")
    lines = [f"u{i:06d},{words[y]},{s!r},C{c},S{p}" for i, (y, s, c, p) in enumerate(rows)]
    (folder / "scores.csv").write_text("\n".join(["utt,key,score,codec,speaker", *lines]) + "\n")


def spent(tree: Path, words: list[str], folder: Path) -> float:
    """Processor seconds of one command of a tree; of a script those that it prints."""
    own = {**os.environ, **dict.fromkeys(LIMITS, "1"), "PYTHONPATH": str(tree / "src")}
    own |= {"PYTHONPYCACHEPREFIX": str(folder / "bytecode"), "PYTHONDONTWRITEBYTECODE": ""}  # as an installed package
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([sys.executable, *words], check=True, capture_output=True, env=own, cwd=folder, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if words[0] == "-c":
        return float(done.stdout)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    """Print the table."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("old", type=Path, help="a checkout of the older commit")
    options.add_argument("--turns", type=int, default=3)
    asked = options.parse_args()
    tell = ["-m", "hitmiss"]
    score = [*tell, "score", "scores.csv", "--positive", "bonafide", "-m", "eer", "-m", "min_dcf", "-m", "roc_auc"]
    undrawn = ["--bootstrap", "0"]  # the older tree drew nothing unless it was asked to
    toxicity = [*tell, "toxicity", "--pred_dir", ".", "--run_tag", "run", "--languages", *LANGUAGES, "--bootstrap", "0"]
    jobs = {
        "toxicity, 0.5 M rows in 5 files": toxicity,
        "toxicity --json, 0.5 M rows in 5 files": [*toxicity, "--json"],
        "score --by codec, 0.1 M rows": [*score, "--by", "codec", *undrawn],
        "score --by codec --bootstrap 1000 --unit speaker": [*score, "--by", "codec", "--bootstrap", "1000", "--unit", "speaker"],
        "score --stream, 0.1 M rows": [*score, "--by", "codec", "--stream", *undrawn],
        "hm.measure, 2 M rows × 50 groups": ["-c", MEASURE],
    }  # fmt: skip
    print("| job | before | now | ratio |\n|---|---|---|---|")
    with tempfile.TemporaryDirectory() as place:
        write(Path(place))
        for name, words in jobs.items():
            pairs = [
                tuple(spent(tree, words, Path(place)) for tree in (asked.old, HERE)) for _ in range(asked.turns + 1)
            ]
            old, new = (min(pair[side] for pair in pairs[1:]) for side in (0, 1))
            print(f"| {name} | {old:.2f} s | {new:.2f} s | {new / old:.2f} |", flush=True)


if __name__ == "__main__":
    main()
