"""Small sound files of every kind that a verb reads."""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import shutil
import time
from pathlib import Path

import numpy as np
import polars as pl

from hitmiss.cli.main import run
from hitmiss.review.queue import Queue
from hitmiss.review.store import Entry
from hitmiss.review.store_file import begin

N = 60
DETECTOR = """import numpy as np
def score(texts):
    return np.array([len(t) - 3.0 for t in texts])
def look(item):
    return min(1.0, len(item.text) / 9)
def leads(x):
    strength = np.stack([np.abs(x).mean((1, 2)), np.abs(np.diff(x, axis=1)).mean((1, 2))], axis=1)
    return 1 / (1 + np.exp(-(strength * [8.0, 40.0] - [2.0, 1.5])))
"""
CHANGED = (("clean", 0.0), ("noise", 0.3))
PROTOCOL = 'name = "mine"\ntitle = "Mine"\nprimary = "eer"\nmetrics = ["eer", "roc_auc"]\n'


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
    shutil.copy(folder / "base_en.csv", folder / "w_en.csv")
    votes = [f"q{k},{k % 2},{k // 2 % 2}" for k in range(12)]
    (folder / "votes.csv").write_text("\n".join(["id,ann,bob", *votes]) + "\n")
    audited = [f"q{k},en,{('yes', 'no')[k % 2]},{int(k % 3 > 0)}" for k in range(40)]
    (folder / "sample.csv").write_text("\n".join(["id,language,flagged,label", *audited]) + "\n")
    (folder / "population.csv").write_text("language,flagged,n\nen,yes,1000\nen,no,9000\n")
    (folder / "systems").mkdir(exist_ok=True)
    for name in ("one", "two"):
        shutil.copy(folder / "scores.tsv", folder / "systems" / f"{name}.tsv")
    moved = [table.with_columns(clip="item", manipulation=pl.lit(m), score=pl.col("score") + d) for m, d in CHANGED]
    copies = [frame.with_columns(item=pl.col("item") + pl.col("manipulation")) for frame in moved]
    pl.concat(copies).write_csv(folder / "drift.csv")
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
    asked = [{"id": f"q{k}", "text": "x" * (k % 9 + 1), "label": ("real", "fake")[k % 2]} for k in range(12)]
    (folder / "questions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in asked))
    people = [f"q{k},human,{who},{('real', 'fake', 'uncertain')[k % 3]}" for k in range(12) for who in ("ann", "bob")]
    (folder / "people.csv").write_text("\n".join(["id,model,trial,prediction", *people]) + "\n")
    records = 0.2 * rng.normal(size=(6, 120, 2))
    names = np.array([f"r{k}" for k in range(6)])
    truth = np.array([[k % 2, k // 2 % 2] for k in range(6)])
    np.savez(folder / "ecg.npz", x=records, y=truth, classes=np.array(["MI", "STTC"]), fs=np.array(100.0), record=names)
    _reviews(folder / "people.db", [row["text"] for row in asked])
    _artifacts(folder)


def _reviews(path: Path, texts: list[str]) -> None:
    """A review of some texts in which two people have given verdicts."""
    about = {"run": "r", "items": "x", "positive": "fake", "negative": "real", "question": "Real or fake?"}
    entries = [Entry(f"q{k}", "text", text) for k, text in enumerate(texts)]
    with contextlib.closing(
        begin(path, {**about, "blind": True, "n_items": len(entries), "per_item": 2}, entries)
    ) as store:
        queue = Queue(store, 60.0)
        for name in ("ann", "bob"):
            who = store.sign_in(name, time.time())
            for verdict in ("positive", "negative", "uncertain"):
                item = queue.take(who)
                assert item is not None
                queue.judge(who, item.key, verdict)


def _artifacts(folder: Path) -> None:
    """Results, a comparison, and runs of detectors, models, attacks and people, as hitmiss writes them."""
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
    with contextlib.chdir(folder):
        done += [run(list(words)) for words in MADE]
    assert not any(done), done


MADE = (
    ("score", "run", "--stream", "-m", "eer", "--bootstrap", "20", "-o", "counted.json"),
    ("llm", "--dataset", "questions.jsonl", "--models", "detector.py:look", "-o", "llm.jsonl"),
    ("triage", "llm.jsonl", "--bootstrap", "5", "-o", "triage.json"),
    (
        *("attack", "--detector", "detector.py:leads", "--data", "ecg.npz", "--family", "band_noise"),
        *("--strengths", "0.5", "--outputs", "probability", "-o", "attacked"),
    ),
)


def make_more(folder: Path) -> None:
    """Files of every other kind that a verb reads: a gate, a board, criteria, a fit, a signature, rules, packed tables."""
    document = json.loads((folder / "results.json").read_text())
    (folder / "signature.txt").write_text(document["estimates"][0].get("signature") or document["signature"])
    (folder / "gate.toml").write_text('fail_if = ["eer > 0.9"]\n')
    (folder / "requirements.toml").write_text('require = ["eer.high <= 0.5"]\n')
    (folder / "table.csv.gz").write_bytes(gzip.compress((folder / "table.csv").read_bytes(), mtime=0))
    pl.read_csv(folder / "table.csv").write_excel(folder / "table.xlsx")
    with contextlib.chdir(folder):
        done = [run(list(words)) for words in MORE]
        with contextlib.redirect_stdout(io.StringIO()) as said:
            done.append(run(["gate", "results.json", "--fail-if", "eer > 0.9", "--json"]))
        (folder / "gate.json").write_text(said.getvalue())
    assert not any(done), done


MORE = (
    ("board", "systems", "--keys", "key.tsv", "-m", "eer", "--bootstrap", "20", "-o", "board.json"),
    ("lock", "eer.high <= 0.9", "--data", "table.csv", "-o", "criteria.json"),
    ("calibrate", "table.csv", "--save", "fit.json"),
)
