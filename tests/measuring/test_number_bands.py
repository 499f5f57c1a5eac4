"""Bands of a number column as a slice."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

import hitmiss as hm
from hitmiss.cli.main import run


def test_a_number_column_is_cut_into_bands() -> None:
    seconds = ["0.5", "1.9", "2", "4.99", "5", "20", "", "1"]
    table = pl.DataFrame(
        {
            "id": list("abcdefgh"),
            "label": ["bonafide", "spoof"] * 4,
            "score": [0.9, 0.1, 0.2, 0.4, 0.8, 0.3, 0.7, 0.95],
            "seconds": seconds,
        }
    )
    found = hm.evaluate(
        table, metrics=["roc_auc"], by=["seconds:0,2,5,10"], bootstrap=0, settings="none", positive="bonafide"
    )
    sizes = {e.slice["seconds:0,2,5,10"]: e.n for e in found if e.slice and e.average is None}
    assert sizes == {"[ 0, 2)": 3, "[ 2, 5)": 2, "[ 5, 10)": 1, "[10, ∞)": 1, "-": 1}
    two = next(e for e in found if dict(e.slice) == {"seconds:0,2,5,10": "[ 2, 5)"})
    assert two.value == 0.0
    with pytest.raises(hm.UsageError) as refused:
        hm.evaluate(table, metrics=["roc_auc"], by=["seconds:5,2"], bootstrap=0, settings="none", positive="bonafide")
    assert refused.value.code == "bad-bands"
    with pytest.raises(hm.DataError) as words:
        hm.evaluate(
            table.with_columns(codec=pl.lit("opus")),
            metrics=["roc_auc"],
            by=["codec:1,2"],
            bootstrap=0,
            settings="none",
            positive="bonafide",
        )
    assert words.value.code == "not-a-number"


def test_bands_are_slices_of_a_report_and_of_a_board(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    label = rng.random(300) < 0.5
    rows = [(f"t{i}", "bonafide" if y else "spoof", f"{rng.uniform(0, 12):.2f}") for i, y in enumerate(label)]
    key, place = tmp_path / "key.tsv", tmp_path / "submissions"
    key.write_text("item\tlabel\tseconds\n" + "".join("\t".join(row) + "\n" for row in rows))
    place.mkdir()
    for system in ("a", "b"):
        scores = label * 2.0 + rng.normal(size=300)
        body = "".join(f"{row[0]}\t{s}\n" for row, s in zip(rows, scores, strict=True))
        (place / f"{system}.tsv").write_text("item\tscore\n" + body)
    asked = ["-m", "eer", "--by", "seconds:0,2,5,10", "--bootstrap", "50"]
    page, site = tmp_path / "r.html", tmp_path / "site"
    assert run(["report", str(place / "a.tsv"), "--key", str(key), *asked, "-o", str(page)]) == 0
    assert run(["board", str(place), "--keys", str(key), *asked, "--site", str(site)]) == 0
    for text in (page.read_text(), (site / "system-001.html").read_text()):
        assert all(band in text for band in ("[ 0, 2)", "[ 2, 5)", "[ 5, 10)", "[10, ∞)"))
