"""Labels × languages × identities of one wide file: hitmiss against pandas + scikit-learn, processor time and memory.

    python benchmarks/moderation.py [--rows 2000000] [--json FILE]

A Parquet file with 6 labels and their probabilities, a language and 9 identities. Asked are AUC and F1 of every label ×
language, and subgroup, BPSN and BNSP AUCs of every identity over all labels. Memory is the peak of each process less that
of its imports, divided by what the columns take. Ours come with intervals over texts and checks, which the peer does not make.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import polars as pl

LABELS = ("toxic", "severe_toxic", "obscene", "threat", "insult", "identity_hate")
LANGUAGES = ("de", "en", "es", "fr", "it", "pt", "tr")
IDENTITIES = tuple(f"identity{k}" for k in range(9))


def write(path: Path, n: int) -> int:
    """Write the file; return the bytes of its columns in memory."""
    rng = np.random.default_rng(0)
    seen = rng.normal(size=n)
    columns: dict[str, object] = {"id": [f"c{i}" for i in range(n)], "language": rng.choice(LANGUAGES, n)}
    for name in LABELS:
        label = (seen + rng.normal(size=n) > 1.5).astype(np.int8)
        columns |= {name: label, f"{name}_prob": 1 / (1 + np.exp(1 - 1.5 * label - rng.normal(size=n)))}
    columns |= {name: (rng.random(n) < 0.08).astype(np.int8) for name in IDENTITIES}
    frame = pl.DataFrame(columns)
    frame.write_parquet(path)
    return int(frame.estimated_size())


PEER = """
import sys, numpy as np, pandas as pd
from sklearn.metrics import f1_score, roc_auc_score
frame = pd.read_parquet(sys.argv[1])
labels, identities = sys.argv[2].split(","), sys.argv[3].split(",")
for name in labels:
    for _, own in frame.groupby("language"):
        roc_auc_score(own[name], own[name + "_prob"]), f1_score(own[name], own[name + "_prob"] >= 0.5)
truth = np.concatenate([frame[name] for name in labels])
score = np.concatenate([frame[name + "_prob"] for name in labels])
for name in identities:
    inside = np.tile(frame[name].to_numpy() == 1, len(labels))
    for kept in (inside, (inside & (truth == 0)) | (~inside & (truth == 1)), (inside & (truth == 1)) | (~inside & (truth == 0))):
        roc_auc_score(truth[kept], score[kept])
"""
BARE = {"hitmiss": "import hitmiss.cli.main, polars, numpy", "pandas": "import pandas, sklearn.metrics"}


def spent(words: list[str]) -> tuple[float, int]:
    """Return the processor seconds and the peak memory of a process."""
    code = (
        "import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL, "
        "stderr=subprocess.DEVNULL); u = resource.getrusage(resource.RUSAGE_CHILDREN); print(u.ru_utime + u.ru_stime, u.ru_maxrss * 1024)"
    )
    out = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, check=True).stdout
    seconds, peak = out.split()
    return float(seconds), int(peak)


def main() -> None:
    """Measure both, and print the table."""
    options = argparse.ArgumentParser()
    options.add_argument("--rows", type=int, default=2_000_000)
    options.add_argument("--json")
    asked = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "wide.parquet"
        size = write(path, asked.rows)
        ours = [sys.executable, "-m", "hitmiss"]
        tables = ["-p", "toxicity", "-m", "roc_auc", "-m", "f1", "--threshold", "0.5", "--by", "type,language"]
        runs = {
            "hitmiss score": [*ours, "score", str(path), *tables, "--identity", *IDENTITIES, "--bootstrap", "0"],
            "pandas + scikit-learn": [sys.executable, "-c", PEER, str(path), ",".join(LABELS), ",".join(IDENTITIES)],
        }
        bare = {name: spent([sys.executable, "-c", code])[1] for name, code in BARE.items()}
        rows = []
        for name, words in runs.items():
            seconds, peak = spent(words)
            rows.append({"what": name, "cpu": seconds, "memory": (peak - bare[name.split()[0]]) / size})
    print(
        f"{asked.rows:,} rows × {len(LABELS)} labels × {len(LANGUAGES)} languages × {len(IDENTITIES)} identities; "
        f"columns {size / 1e6:,.0f} MB; {os.cpu_count()} cores"
    )
    print("\n| | CPU s | memory / columns |\n|---|---|---|")
    for row in rows:
        print(f"| {row['what']} | {row['cpu']:.2f} | {row['memory']:.1f} |")
    print(
        f"\nThe peer's processor time divided by ours: {rows[1]['cpu'] / rows[0]['cpu']:.2f}; the aim is 5, with memory of at most 3."
    )
    if asked.json:
        Path(asked.json).write_text(json.dumps({"rows": asked.rows, "bytes": size, "runs": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
