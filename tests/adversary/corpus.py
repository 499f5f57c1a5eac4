"""Small sound files of every kind that a verb reads."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl

from hitmiss.cli.main import run

N = 60
DETECTOR = "import numpy as np\ndef score(texts):\n    return np.array([len(t) - 3.0 for t in texts])\n"
PROTOCOL = 'name = "mine"\ntitle = "Mine"\nmetrics = ["eer", "roc_auc"]\n'


def make(folder: Path) -> None:
    """Write all files into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(11)
    positive = np.arange(N) % 3 == 0
    score = np.round(rng.normal(size=N) + positive, 4)
    items, codec = [f"E_{k:03d}" for k in range(N)], [("-", "C01", "C02")[k % 5 % 3] for k in range(N)]
    label = np.where(positive, "bonafide", "spoof")
    attack = ["-" if positive[k] else f"A0{k % 2 + 1}" for k in range(N)]
    columns = {"item": items, "label": label, "score": score, "codec": codec, "attack": attack}
    table = pl.DataFrame({**columns, "speaker": [f"s{k % 7}" for k in range(N)]})
    table.write_csv(folder / "table.csv")
    table.write_parquet(folder / "table.parquet")
    table.write_ndjson(folder / "table.jsonl")
    table.with_columns(score=pl.col("score") + 0.1 * rng.normal(size=N)).write_csv(folder / "other.csv")
    pl.DataFrame({"filename": items, "cm-score": score}).write_csv(folder / "scores.tsv", separator="\t")
    pl.DataFrame({"filename": items, "cm-label": label}).write_csv(folder / "key.tsv", separator="\t")
    lines = [f"s{k % 7} {items[k]} F {codec[k]} 1 x{k} - {attack[k]} {label[k]} -\n" for k in range(N)]
    (folder / "protocol.txt").write_text("".join(lines))
    probability = 1 / (1 + np.exp(-score))
    for language in ("en", "de"):
        rows = [f"{k},{int(positive[k])},{probability[k]:.4f},0.5" for k in range(N)]
        (folder / f"base_{language}.csv").write_text("\n".join(["id,y_true,y_prob,best_threshold", *rows]) + "\n")
    verdicts = [
        {
            "id": items[k],
            "model": "m",
            "trial": 1,
            "ground_truth": "fake" if positive[k] else "real",
            "prediction": ("fake", "real", "uncertain")[k % 3],
            "confidence": round(float(probability[k]), 3),
        }
        for k in range(N)
    ]
    (folder / "verdicts.jsonl").write_text("".join(json.dumps(v) + "\n" for v in verdicts))
    np.savez(folder / "layers.npz", layer0=rng.normal(size=(N, 4)), item=np.array(items), codec=np.array(codec))
    (folder / "texts.csv").write_text(
        "item,text,label\n" + "".join(f"t{k},{'x' * (k % 9)},{label[k]}\n" for k in range(12))
    )
    (folder / "detector.py").write_text(DETECTOR)
    (folder / "mine.toml").write_text(PROTOCOL)
    (folder / "config.yaml").write_text("data:\n  pred_dir: .\n  run_tag: base\n")
    _artifacts(folder)


def _artifacts(folder: Path) -> None:
    """Results, a comparison and a run, as hitmiss writes them."""
    here = {name: str(folder / name) for name in ("table.csv", "other.csv", "results.json", "comparison.json", "run")}
    asked = ["-m", "eer", "--by", "codec", "--bootstrap", "20"]
    done = [
        run(["score", here["table.csv"], *asked, "-o", here["results.json"]]),
        run(["compare", here["table.csv"], here["other.csv"], "-m", "eer", "-o", here["comparison.json"]]),
        run(
            [
                "detect",
                *("--data", str(folder / "texts.csv"), "--detector", f"{folder / 'detector.py'}:score"),
                *("--input", "text", "--outputs", "logit", "-o", here["run"]),
            ]
        ),
    ]
    assert done == [0, 0, 0], done
