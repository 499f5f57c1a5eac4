"""Bands of a number column as a slice."""

from __future__ import annotations

import polars as pl
import pytest

import hitmiss as hm


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
