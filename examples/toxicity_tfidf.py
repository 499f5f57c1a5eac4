"""TF-IDF + logistic regression per language: train, choose thresholds on validation, score on test, dump the mistakes.

    python examples/toxicity_tfidf.py FILE [FOLDER]

FILE is CSV or Parquet with id, text, lang, label and split (train, val, test).
"""

from __future__ import annotations

import sys
from pathlib import Path

import polars as pl
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import hitmiss as hm


def main(data: Path, folder: Path) -> None:
    """Train one model per language and evaluate the predictions by the commands that a user would type."""
    frame = pl.read_parquet(data) if data.suffix == ".parquet" else pl.read_csv(data, infer_schema=False)
    frame = frame.with_columns(pl.col("label").cast(pl.Int8))
    languages = sorted(frame["lang"].unique())
    for language in languages:
        parts = {s: frame.filter(lang=language, split=s) for s in ("train", "val", "test")}
        words = TfidfVectorizer(
            analyzer="char_wb", ngram_range=(2, 5), min_df=3, max_features=200_000, sublinear_tf=True
        )
        model = make_pipeline(words, LogisticRegression(class_weight="balanced", max_iter=2000))
        model.fit(parts["train"]["text"].to_list(), parts["train"]["label"].to_numpy())
        for split in ("val", "test"):
            part, place = parts[split], folder / split
            place.mkdir(parents=True, exist_ok=True)
            score = model.predict_proba(part["text"].to_list())[:, 1]
            rows = part.select("id", "text", y_true="label").with_columns(y_prob=score)
            rows.write_csv(place / f"baseline_{language}.csv")
    files = {split: [str(folder / split / f"baseline_{x}.csv") for x in languages] for split in ("val", "test")}
    hm.run(["threshold", *files["val"], "--maximize", "f1", "--search", "grid", "--test", *files["test"], "--write"])
    where = ["--pred_dir", str(folder / "test"), "--run_tag", "baseline", "--languages", *languages]
    hm.run(
        [
            "toxicity",
            *where,
            "--output",
            str(folder / "baseline_metrics.csv"),
            "--dump_errors",
            "--errors_dir",
            str(folder),
        ]
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2] if len(sys.argv) > 2 else "demo/toxicity_tfidf"))
