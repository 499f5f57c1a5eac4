"""What only some files need, streamed as in memory: the reader of a plug-in, and columns of the key alone."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from hitmiss.core import registry
from hitmiss.evaluation.evaluate import evaluate
from hitmiss.outofcore.stream import evaluate_streamed

ROWS = [(f"u{i}", "bonafide" if i % 3 else "spoof", (i * 7) % 20 / 4, f"c{i % 2}") for i in range(40)]


def piped(path: str | Path) -> pl.DataFrame:
    """Reader of the test."""
    rows = [line.split("=>") for line in Path(path).read_text().split()]
    return pl.DataFrame(rows, schema=["item", "label", "score", "codec"], orient="row")


def test_the_reader_of_a_plugin_is_streamed(tmp_path: Path) -> None:
    path = tmp_path / "s.odd"
    path.write_text("".join("=>".join(map(str, row)) + "\n" for row in ROWS))
    registry.add("reader", "piped", piped)
    try:
        asked = {"metrics": ["eer", "roc_auc"], "by": ["codec"]}
        streamed = evaluate_streamed(str(path), reading={"layout": "piped"}, scratch=str(tmp_path), **asked)
        whole = evaluate(str(path), layout="piped", **asked)
    finally:
        registry.forget("piped", "reader")
    assert [(e.metric, e.slice, e.value) for e in streamed.results] == [(e.metric, e.slice, e.value) for e in whole]
    assert streamed.trials.digest in whole.signature and list(tmp_path.iterdir()) == [path]


def test_columns_of_the_key_alone_are_streamed(tmp_path: Path) -> None:
    scores, key = tmp_path / "s.txt", tmp_path / "k.txt"
    scores.write_text("".join(f"{i} {s}\n" for i, _, s, _ in ROWS))
    key.write_text("".join(f"x {i} x {label} {codec} x x\n" for i, label, _, codec in ROWS))
    reading = {"key_columns": {"item": "2", "label": "4", "codec": "5"}}
    asked = {"metrics": ["eer"], "by": ["codec"], "key": str(key)}
    streamed = evaluate_streamed(str(scores), reading=reading, **asked).results
    whole = evaluate(str(scores), **asked, **reading)
    assert [(e.slice, e.value) for e in streamed] == [(e.slice, e.value) for e in whole] and len(list(whole)) > 2
