"""A strong baseline for toxicity: a multi-label model, as Detoxify's, from a folder on this machine.

    python examples/toxicity_detoxify.py MODEL FILE [FOLDER]

MODEL is a folder with a checkpoint of transformers (config.json, model.safetensors, the tokenizer's files), for instance
unitary/multilingual-toxic-xlm-roberta saved with `save_pretrained`; nothing is fetched. Its labels do not exclude each other, so
each has a sigmoid of its own, and that of `toxic` is the score. FILE is CSV or Parquet with id, text, lang, label (1 or 0)
and split (val, test).
"""

from __future__ import annotations

import sys
from pathlib import Path

import polars as pl

import hitmiss as hm

TAG = "detoxify"


def predict(model: Path, rows: pl.DataFrame, folder: Path, name: str) -> Path:
    """The predictions of one language as a file that `hitmiss toxicity` reads; the run is kept beside it, and resumed."""
    folder.mkdir(parents=True, exist_ok=True)
    words = pl.when(pl.col("label") == 1).then(pl.lit("toxic")).otherwise(pl.lit("non-toxic"))
    rows.select("id", "text", label=words).write_csv(folder / f"{name}.items.csv")
    made = folder / f"{name}.run"
    asked = ["--detector", f"hf-text:{model}", "--data", str(folder / f"{name}.items.csv"), "--input", "text"]
    again = ["--resume"] if made.is_dir() else []
    code = hm.run(["detect", *asked, "-p", "toxicity", "--output", str(made), *again])
    if code:
        raise SystemExit(code)
    scores = hm.read(made).to_polars().select(id="item", y_prob="probability")
    path = folder / f"{name}.csv"
    rows.select("id", "text", y_true="label").join(scores, on="id", how="left", maintain_order="left").write_csv(path)
    return path


def main(model: Path, data: Path, folder: Path) -> None:
    """Score every language, choose thresholds on validation, evaluate on test, dump the mistakes."""
    frame = pl.read_parquet(data) if data.suffix == ".parquet" else pl.read_csv(data, infer_schema=False)
    frame = frame.with_columns(pl.col("label").cast(pl.Int8), pl.col("id").cast(pl.String))
    languages = sorted(frame["lang"].unique())
    files = {
        split: [str(predict(model, frame.filter(lang=x, split=split), folder / split, f"{TAG}_{x}")) for x in languages]
        for split in ("val", "test")
    }
    hm.run(["threshold", *files["val"], "--maximize", "f1", "--search", "grid", "--test", *files["test"], "--write"])
    where = ["--pred_dir", str(folder / "test"), "--run_tag", TAG, "--languages", *languages]
    out = ["--output", str(folder / f"{TAG}_metrics.csv"), "--dump_errors", "--errors_dir", str(folder)]
    hm.run(["toxicity", *where, *out])


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3] if len(sys.argv) > 3 else "demo/toxicity_detoxify"))
