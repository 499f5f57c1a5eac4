"""Exports: digits from the intervals, marks from a comparison, no formula let through, JSON by its schema."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from pathlib import Path

import jsonschema
import numpy as np
import openpyxl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ruamel.yaml import YAML
from tests.reports import stories
from tests.reports.hostile import HOSTILE, hostile_trials

import hitmiss as hm
from hitmiss.core.errors import DataError, UsageError
from hitmiss.core.results import Estimate, Results
from hitmiss.core.trials import Trials
from hitmiss.reports.evaluations import RunData
from hitmiss.reports.exports import FORMATS, Export, export
from hitmiss.reports.page import compose
from hitmiss.reports.pictures import pictures, to_json
from hitmiss.reports.schema import results_schema
from hitmiss.reports.sheets import csv_text, frame_of, xlsx_bytes

SCHEMA = Path(__file__).parents[2] / "docs" / "schema" / "results-1.json"
texts = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=12) | st.sampled_from(
    [*HOSTILE, "-", "+1", "-2.5"]
)


def run(shift: float, name: str) -> tuple[RunData, Trials]:
    rng = np.random.default_rng(2)
    label = np.arange(900) % 3 == 0
    trials = Trials.of(label, rng.normal(size=900) + shift * label, codec=np.where(np.arange(900) % 2, "C_1", "NONE"))
    return RunData(name, hm.measure(trials, ["eer", "roc_auc"], by=["codec"], bootstrap=60)), trials


@pytest.mark.parametrize("to", ["latex", "markdown"])
def test_digits_follow_the_intervals_and_marks_the_comparison(tmp_path: Path, to: str) -> None:
    (a, trials_a), (b, trials_b) = run(2.5, "good_one"), run(1.0, "bad")
    hm.compare(trials_a, trials_b, ["eer", "roc_auc"], by=["codec"], bootstrap=400, names=("a", "b")).save(
        tmp_path / "c.json"
    )
    text = export([a, b], Export(to, comparison=str(tmp_path / "c.json"), percent=("eer",), tables=("all",)))
    assert isinstance(text, str)
    good = next(line for line in text.splitlines() if ("good" in line and "&" in line) or line.startswith("| good"))
    eer = a.results.one("eer").value or 0.0
    assert f"{100 * eer:.1f}" in good and "*" in good and "900" in good.replace(r"\,", "")
    bad = next(line for line in text.splitlines() if line.startswith(("bad", "| bad")))
    assert "^{*" not in bad and r"\*" not in bad
    assert a.results.signature in text and "p < 0.05" in text.replace(r"\textless{}", "<").replace("&lt;", "<")
    assert (r"\toprule" in text) == (to == "latex") and (r"good\_one" in text)


def test_a_comparison_of_other_runs_is_refused(tmp_path: Path) -> None:
    (a, _), (_, x), (_, y) = run(2.5, "a"), run(0.3, "x"), run(0.7, "y")
    hm.compare(x, y, ["roc_auc"], bootstrap=0).save(tmp_path / "c.json")
    with pytest.raises(DataError, match="compares other runs"):
        export([a], Export("latex", comparison=str(tmp_path / "c.json")))
    (tmp_path / "c.json").write_text(a.results.to_json())
    with pytest.raises(DataError, match="is not a comparison"):
        export([a], Export("latex", comparison=str(tmp_path / "c.json")))


def test_tables_and_metrics_can_be_chosen() -> None:
    a, _ = run(2.0, "a")
    text = str(export([a], Export("markdown", metrics=("eer",), tables=("codec",))))
    assert "by codec" in text and "roc" not in text.split("`")[0] and "all trials" not in text
    assert "| pooled |" in text and "| worst |" in text
    assert "[" not in str(export([a], Export("markdown", tables=("all",), intervals=False))).split("`")[0]
    for wrong in (Export("markdown", tables=("codek",)), Export("csv", metrics=("eeer",)), Export("doc")):
        with pytest.raises(UsageError, match="unknown"):
            export([a], wrong)


def hostile_results() -> Results:
    return hm.measure(hostile_trials(300), ["eer"], by=["codec", "<i>codec</i>"])


@pytest.mark.parametrize("to", [f for f in FORMATS if f != "xlsx"])
def test_hostile_names_stay_names(to: str) -> None:
    text = str(export([RunData("r", hostile_results())], Export(to)))
    assert "\x1b" not in text or to in ("csv",)
    if to == "latex":
        body = "\n".join(line for line in text.splitlines() if not line.startswith("%"))
        assert "\\input{" not in body and "<script" not in body and "script" in body
    if to == "markdown":
        assert "<script" not in text.split("`")[0] and "|pipe|" not in text
    if to == "model-card":
        block = YAML(typ="safe", pure=True).load(text.strip("-\n").split("\n# ")[0])
        assert block["model-index"][0]["name"] == "model"


@given(st.lists(st.tuples(texts, st.floats(allow_nan=False) | st.none()), min_size=1, max_size=8), texts)
def test_csv_defuses_formulas_and_raw_is_exact(rows: list[tuple[str, float | None]], note: str) -> None:
    results = Results(tuple(Estimate("eer", v, n=3, slice={"codec": c}, note=note or None) for c, v in rows))
    safe = list(csv.DictReader(io.StringIO(csv_text(results), newline="")))
    raw = list(csv.DictReader(io.StringIO(csv_text(results, raw=True), newline="")))
    for row, given_row, (codec, value) in zip(safe, raw, rows, strict=True):
        assert given_row["codec"] == codec
        assert row["codec"] in (codec, f"'{codec}")
        is_number = row["codec"].lstrip("+-").replace(".", "", 1).isdigit()
        assert (
            row["codec"][:1] not in ("=", "+", "-", "@", "\t", "\r")
            or row["codec"] == "-"
            or is_number
            or _is_float(codec)
        )
        assert row["value"] == ("" if value is None else repr(value))


def _is_float(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def test_columns_named_like_formulas_are_defused_too() -> None:
    results = Results((Estimate("eer", 0.5, slice={"=1+1": "@x"}),))
    assert "'=1+1" in csv_text(results).splitlines()[0] and "=1+1" in frame_of(results, raw=True).columns


def test_workbooks_hold_numbers_and_texts_but_no_formula() -> None:
    results = hostile_results()
    book = openpyxl.load_workbook(io.BytesIO(xlsx_bytes(results)))
    cells = [cell for sheet in book for row in sheet.iter_rows() for cell in row if cell.value is not None]
    assert {cell.data_type for cell in cells} <= {"s", "n"}
    assert not any(isinstance(c.value, str) and c.value.startswith(("=", "@", "\t")) for c in cells)
    head = [c.value for c in book["results"][1]]
    column = head.index("value")
    values = [row[column].value for row in book["results"].iter_rows(min_row=2)]
    assert values == pytest.approx([e.value for e in results], rel=1e-15) and not any(c.hyperlink for c in cells)
    raw = openpyxl.load_workbook(io.BytesIO(xlsx_bytes(results, raw=True)))["results"]
    assert {c.data_type for row in raw.iter_rows() for c in row if c.value is not None} <= {"s", "n"}


def test_the_published_schema_is_the_current_one_and_holds() -> None:
    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
    assert schema == results_schema(), "run: hitmiss export --schema > docs/schema/results-1.json"
    jsonschema.Draft202012Validator.check_schema(schema)
    data, trials = run(2.0, "a")
    full = json.loads(to_json(data.results, pictures(trials)))
    odd = Results(
        (Estimate("x", float("inf"), low=float("-inf"), high=None), Estimate("y", None, note="one class")), "s", ("w",)
    )
    for good in (full, odd.to_dict(), json.loads(str(export([data], Export("json"))))):
        jsonschema.Draft202012Validator(schema).validate(good)
    for wrong in (
        {**full, "schema": 2},
        {**full, "estimates": [{"metric": "eer"}]},
        {**full, "estimates": [{**full["estimates"][0], "x": 1}]},
    ):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.Draft202012Validator(schema).validate(wrong)


def test_a_model_card_holds_the_figures() -> None:
    data, _ = run(2.0, "a")
    text = str(export([data], Export("model-card", model="me/it", dataset="mine")))
    (entry,) = YAML(typ="safe", pure=True).load(text.removeprefix("---\n").removesuffix("---\n"))["model-index"]
    first = entry["results"][0]
    assert entry["name"] == "me/it" and first["dataset"]["name"] == "mine"
    metric = next(m for m in first["metrics"] if m["type"] == "eer")
    e = data.results.one("eer")
    assert metric["value"] == e.value and metric["interval"] == [e.low, e.high]
    assert {r["dataset"].get("split") for r in entry["results"]} >= {None, "codec=C_1", "codec=NONE"}


def test_kinds_that_do_not_belong_together_are_refused() -> None:
    a, _ = run(2.0, "a")
    other = replace(a, name="b", results=replace(a.results, protocol="toxicity"))
    with pytest.raises(UsageError, match="2 kinds"):
        export([a, other], Export("csv"))
    assert "by codec" in str(export([a, other], Export("markdown")))


@pytest.mark.parametrize("to", ["markdown", "latex"])
def test_a_triage_is_exported_with_what_people_add(tmp_path: Path, to: str) -> None:
    """The tables beside the figures are the same objects as on the page and in the terminal."""
    source = stories.triage_with_people(tmp_path)
    assert source.extras is not None and source.extras.people is not None
    text = str(export([source], Export(to)))
    load = source.extras.people.loads[0]
    assert "what was left to people" in text.lower() and "Krippendorff" in text
    if to == "latex":  # a wide table of one row is turned
        for name, shown in (("items", load.n), ("settled", load.settled), ("share", f"{float(load.share):.4f}")):
            assert [x for x in text.splitlines() if x.startswith(f"{name} & {shown}")]
        return
    (line,) = [x for x in text.splitlines() if x.strip("| ").startswith(f"{load.n} ") and f"{load.settled}" in x]
    assert f"{float(load.share):.4f}" in line


def test_every_export_for_people_begins_with_the_verdict() -> None:
    """The headline of the page stands in each form, and a failure is called one."""
    source = stories.one_bad_slice()
    verdict = compose([source]).parts[0].summary.verdict
    assert verdict.headline == "Better than chance, but weak on codec c07."
    for to, failed in (("latex", r"\item FAILED: codec c07: "), ("markdown", "- FAILED: codec c07: ")):
        text = str(export([source], Export(to)))
        assert verdict.headline in text and text.index(verdict.headline) < text.index("c00") and failed in text
        assert failed not in str(export([source], Export(to, tables=("all",)))), "a part has the headline alone"
    assert f"# {verdict.headline}" in str(export([source], Export("model-card")))
    made = export([source], Export("xlsx"))
    assert isinstance(made, bytes)
    about = {row[0].value: row[1].value for row in openpyxl.load_workbook(io.BytesIO(made))["about"].iter_rows()}
    assert about["verdict"] == verdict.headline and about["status"] == "shown"
