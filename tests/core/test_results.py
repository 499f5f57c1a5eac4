"""Results: rows, finding them, and their JSON form there and back."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hitmiss import Estimate, Results
from hitmiss.core.errors import DataError, UsageError
from hitmiss.core.rates import Rate, round_number

numbers = st.one_of(st.none(), st.floats(allow_nan=False))
words = st.one_of(st.text(max_size=8), st.sampled_from(["inf", "-inf", "nan", "None", "null", "é", "<b>"]))
cells = st.dictionaries(words, words, max_size=3)
estimates = st.builds(
    Estimate,
    metric=words,
    value=numbers,
    low=numbers,
    high=numbers,
    n=st.integers(0, 10**9),
    n_positive=st.integers(0, 10**9),
    n_failed=st.integers(0, 5),
    run=cells,
    slice=cells,
    average=st.sampled_from([None, "pooled", "macro", "worst", "gap"]),
    method=st.one_of(st.none(), words),
    note=st.one_of(st.none(), words),
    settings=st.dictionaries(st.text(max_size=5), st.one_of(numbers, st.booleans(), st.integers()), max_size=3),
    best=st.sampled_from(["low", "high"]),
)
anything = st.builds(
    Results,
    estimates=st.lists(estimates, max_size=4).map(tuple),
    signature=words,
    warnings=st.lists(words, max_size=2).map(tuple),
    protocol=st.one_of(st.none(), words),
)


@given(anything)
def test_json_there_and_back(results: Results) -> None:
    kept = replace(
        results, estimates=tuple(replace(e, value=round_number(e.value)) for e in results)
    )  # figures to 13 digits
    text = results.to_json()
    assert Results.from_dict(json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))) == kept
    assert Results.from_dict(json.loads(results.to_json(indent=None))) == kept


def test_nan_travels_as_null_and_infinities_as_text() -> None:
    row = Estimate("cllr", math.inf, low=-math.inf, high=math.nan, settings={"threshold": math.inf})
    written = Results((row,)).to_dict()["estimates"][0]
    assert (written["value"], written["low"], written["high"]) == ("inf", "-inf", None)
    again = Results.from_dict(Results((row,)).to_dict()).estimates[0]
    assert (again.value, again.low, again.high, again.settings) == (math.inf, -math.inf, None, {"threshold": math.inf})


def test_a_rate_travels_as_its_value() -> None:
    written = Results((Estimate("recall", Rate(1, 4)),)).to_dict()["estimates"][0]["value"]
    assert (type(written), written) == (float, 0.25)


def test_a_file_there_and_back(tmp_path: Path) -> None:
    results = Results((Estimate("eer", 0.25, slice={"language": "日本語"}),), "signed", ("careful",), "asvspoof5")
    results.save(tmp_path / "r.json")
    assert Results.load(tmp_path / "r.json") == results
    assert "日本語" in (tmp_path / "r.json").read_text(encoding="utf-8")
    assert json.loads((tmp_path / "r.json").read_text(encoding="utf-8"))["schema"] == 1


@pytest.mark.parametrize("schema", [0, 2, "1", None])
def test_another_schema_is_refused(schema: Any) -> None:
    data = Results((Estimate("eer", 0.1),)).to_dict() | {"schema": schema}
    with pytest.raises(DataError, match=f"have schema {schema!r}; this version of hitmiss reads schema 1"):
        Results.from_dict(data)


@pytest.mark.parametrize(
    "data",
    [
        {"schema": 1},
        {"schema": 1, "signature": "", "warnings": []},
        {"schema": 1, "signature": "", "warnings": [], "estimates": [{"value": 1.0}]},
        {"schema": 1, "signature": "", "warnings": [], "estimates": [{"metric": "eer", "value": 1.0, "colour": "red"}]},
        {"schema": 1, "signature": "", "warnings": [], "estimates": [3]},
        {"schema": 1, "signature": "", "warnings": [], "estimates": None},
        {"schema": 1, "signature": "", "warnings": None, "estimates": []},
    ],
)
def test_what_only_looks_like_results_is_refused(data: dict[str, Any]) -> None:
    with pytest.raises(DataError) as refused:
        Results.from_dict(data)
    assert refused.value.code == "malformed-results"


@pytest.mark.parametrize("content", [b"", b"{", b"metric,value\neer,0.1\n", b"\xff\xfe", b"[]", b"3", b"null"])
def test_files_that_are_not_results_are_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "r.json"
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"r\.json is not a results file|have schema None"):
        Results.load(path)


# --- finding ----------------------------------------------------------------------------------------------------


@pytest.fixture
def results() -> Results:
    return Results(
        (
            Estimate("eer", 0.10, low=0.05, high=0.15, n=20, n_positive=8, run={"model": "a"}),
            Estimate("eer", 0.20, run={"model": "b"}),
            Estimate("eer", 0.30, run={"model": "a"}, slice={"codec": "C01"}),
            Estimate("eer", None, run={"model": "b"}, slice={"codec": "C01"}, note="one class"),
            Estimate("eer", 0.25, run={"model": "a"}, average="macro"),
            Estimate("roc_auc", 0.9, run={"model": "a"}, best="high"),
        ),
        signature="signed",
        warnings=("careful",),
    )


def test_one_estimate_by_its_cell(results: Results) -> None:
    assert results.one("eer", model="a").value == 0.10
    assert results.one("eer", model="a", codec="C01").value == 0.30
    assert results.one("eer", model="a", average="macro").value == 0.25
    assert results.one("roc_auc").value == 0.9
    assert results.one("eer", model="b", codec="C01").value is None


@pytest.mark.parametrize(("cell", "how_many"), [({}, 2), ({"codec": "C01"}, 2), ({"codec": "C02"}, 0)])
def test_one_is_neither_none_nor_two(results: Results, cell: dict[str, str], how_many: int) -> None:
    with pytest.raises(UsageError, match=f"{how_many} estimates of 'eer'.*metrics: .*'eer', 'roc_auc'"):
        results.one("eer", **cell)


def test_some_estimates(results: Results) -> None:
    assert len(results.find("eer", model="a")) == 1
    assert len(results.find(model="a")) == 2
    assert [e.metric for e in results.where(lambda e: e.best == "high")] == ["roc_auc"]
    assert results.find("eer").signature == "signed"
    assert len(list(results)) == len(results) == 6


def test_added_results_keep_both_signatures_and_each_warning_once(results: Results) -> None:
    other = Results((Estimate("f1", 0.5),), "signed otherwise", ("careful", "very"))
    both = results + other
    assert len(both) == 7
    assert both.signature.splitlines() == ["signed", "signed otherwise"]
    assert both.warnings == ("careful", "very")
    assert (results + results).signature == "signed"
    assert (Results(()) + results).signature == "signed"


# --- views ------------------------------------------------------------------------------------------------------


def test_as_text(results: Results) -> None:
    lines = str(results).splitlines()
    assert lines[0] == "eer [model=a] = 0.1000 [0.0500, 0.1500]"
    assert lines[3] == "eer [model=b, codec=C01] = undefined"
    assert lines[-2:] == ["warning: careful", "signed"]


def test_as_polars(results: Results) -> None:
    table = results.to_polars()
    assert table.height == 6
    assert table["value"].to_list() == [0.10, 0.20, 0.30, None, 0.25, 0.9]
    assert table["codec"].to_list() == [None, None, "C01", "C01", None, None]
    assert table["model"].to_list() == ["a", "b", "a", "b", "a", "a"]


def test_a_slice_does_not_hide_a_number() -> None:
    table = Results((Estimate("eer", 0.1, method="bootstrap", slice={"value": "high", "method": "A07"}),)).to_polars()
    assert table.row(0, named=True)["value"] == 0.1
    assert (table["method"].item(), table["method_"].item(), table["value_"].item()) == ("bootstrap", "A07", "high")


def test_as_pandas(results: Results) -> None:
    pytest.importorskip("pandas")
    assert results.to_pandas()["metric"].tolist() == ["eer"] * 5 + ["roc_auc"]


def test_hostile_text_is_escaped() -> None:
    evil = "<img src=x onerror=alert('x')>"
    row = Estimate(evil, None, run={evil: evil}, slice={"codec": evil}, note=evil)
    page = Results((row,), signature=evil, warnings=(evil,))._repr_html_()
    assert "<img" not in page
    assert page.count("&lt;img") >= 4
    assert "alert('x')" not in page


def test_a_cell_shows_a_table_with_metrics_across(results: Results) -> None:
    page = results._repr_html_()
    assert "<td>0.100 <small>[0.050, 0.150]</small></td>" in page
    assert "undefined: one class" in page
    assert len(repr(results)) < 100 and "estimates of eer" in repr(results)


def test_a_cell_is_capped() -> None:
    rows = [Estimate("eer", 0.1, n=10, n_positive=5, slice={"codec": f"c{i}"}) for i in range(3000)]
    page = Results(tuple(rows))._repr_html_()
    assert len(page) < 12_000 and "2,970 rows in the middle are left out" in page
