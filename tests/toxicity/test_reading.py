"""Every reading option says the same of prediction files as of any other."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hitmiss.cli.main import run
from hitmiss.core.errors import DataError, HitmissError, UnknownName, UsageError
from hitmiss.core.read_spec import ReadSpec
from hitmiss.io.predictions import read_predictions
from hitmiss.protocols.toxicity import evaluate_run, load_files, load_table

ROWS = [
    # id, y_true, y_prob, platform
    ("a", "1", "0.9", "web"),
    ("b", "0", "0.2", "web"),
    ("c", "1", "0.4", "app"),
    ("d", "0", "0.6", "app"),
    ("e", "1", "0.8", "-"),
    ("f", "0", "0.1", "-"),
]


def put(folder: Path, language: str, rows: list[tuple[str, ...]], header: str = "id,y_true,y_prob,platform") -> Path:
    path = folder / f"run_{language}.csv"
    path.write_text("\n".join([header, *(",".join(row) for row in rows)]) + "\n")
    return path


def figures(paths: list[Path], **said: Any) -> dict[str, tuple[int, Any]]:
    board = evaluate_run(load_files(paths, spec=ReadSpec().changed(**said)), bootstrap=0)
    return {row.name: (row.n, row.counts) for row in board.rows if row.name not in ("macro", "worst")}


def test_where_keeps_the_same_rows_as_a_file_that_has_no_others(tmp_path: Path) -> None:
    whole = [put(tmp_path, language, ROWS) for language in ("en", "es")]
    (tmp_path / "web").mkdir()
    web = [put(tmp_path / "web", language, ROWS[:2]) for language in ("en", "es")]
    assert figures(whole, where={"platform": ["web"]}) == figures(web)
    found = load_files(whole, spec=ReadSpec(where={"platform": ("web", "app")}))
    assert "where:platform=web & app(8/12)" in found.measured.header.choices


def test_where_takes_the_name_that_a_rename_gives_and_the_one_in_the_file(tmp_path: Path) -> None:
    path = put(tmp_path, "en", ROWS)
    spec = ReadSpec(rename={"platform": {"-": "NONE"}})
    for word in ("NONE", "-"):
        found = load_files([path], spec=spec.changed(where={"platform": [word]}))
        assert found.measured.items == ["e", "f"]


@pytest.mark.parametrize(("name", "value"), [("platfrom", "web"), ("platform", "wbe")])
def test_an_unknown_column_or_value_is_refused(tmp_path: Path, name: str, value: str) -> None:
    with pytest.raises(UnknownName):
        load_files([put(tmp_path, "en", ROWS)], spec=ReadSpec(where={name: (value,)}))


def test_a_language_that_keeps_no_row_is_refused(tmp_path: Path) -> None:
    paths = [put(tmp_path, "en", ROWS), put(tmp_path, "es", ROWS[2:])]
    with pytest.raises(DataError) as caught:
        load_files(paths, spec=ReadSpec(where={"platform": ("web",)}))
    assert caught.value.code == "no-rows"


def test_faults_of_rows_that_where_leaves_out_are_not_told(tmp_path: Path) -> None:
    path = put(tmp_path, "en", [*ROWS, ("g", "maybe", "7", "old")])
    assert len(load_files([path], spec=ReadSpec(where={"platform": ("web", "app")})).measured) == 4
    with pytest.raises(DataError) as caught:
        load_files([path], spec=ReadSpec(where={"platform": ("web", "old")}))
    assert {(f.kind, f.row) for f in caught.value.faults} == {("unknown-label", 8), ("not-a-probability", 8)}


def test_an_abstention_is_counted_as_one(tmp_path: Path) -> None:
    header = "id,y_true,y_prob,y_pred"
    rows = [("a", "1", "0.9", "1"), ("b", "0", "0.2", "skip"), ("c", "1", "0.4", "skip"), ("d", "0", "0.6", "0")]
    path = put(tmp_path, "en", rows, header)
    with pytest.raises(DataError) as caught:
        load_files([path])
    assert caught.value.faults[0].kind == "unknown-decision"
    board = evaluate_run(load_files([path], spec=ReadSpec(abstain=("skip",))), bootstrap=0)
    counts = board.rows[0].counts
    assert counts is not None
    assert (counts.tp, counts.fp, counts.fn, counts.tn) == (1, 0, 0, 1)
    assert (counts.abstained_positive, counts.abstained_negative) == (1, 1)


def test_ids_may_be_taken_without_folder_and_ending(tmp_path: Path) -> None:
    path = put(tmp_path, "en", [("x/a.txt", "1", "0.9", "w"), ("y/b.txt", "0", "0.1", "w")])
    assert load_files([path], spec=ReadSpec(match="stem")).measured.items == ["a", "b"]


def test_scores_that_mean_the_other_class_are_turned_round(tmp_path: Path) -> None:
    given = put(tmp_path, "en", [("a", "1", "0.25", "w"), ("b", "0", "0.75", "w")])
    assert load_files([given], spec=ReadSpec(higher="non-toxic")).measured.score.tolist() == [0.75, 0.25]
    rows = [("a", "1", "0.25", "0.4"), ("b", "0", "0.4", "0.4"), ("c", "1", "0.75", "0.4")]
    path = put(tmp_path, "en", rows, "id,y_true,y_prob,best_threshold")
    decided = load_files([path], spec=ReadSpec(higher="non-toxic")).measured
    assert decided.column("decision").to_list() == [int(float(p) < 0.4) for _, _, p, _ in rows]
    assert "score >= 0.4 means non-toxic" in decided.header.decided


@pytest.mark.parametrize(("rule", "items"), [("drop", ["a", "c"]), ("worst", ["a", "b", "c"])])
def test_missing_scores_follow_the_rule_for_nan(tmp_path: Path, rule: str, items: list[str]) -> None:
    path = put(tmp_path, "en", [("a", "1", "0.9", "w"), ("b", "0", "nan", "w"), ("c", "0", "0.1", "w")])
    found = load_files([path], spec=ReadSpec().changed(on_nan=rule)).measured
    assert found.items == items
    assert f"on-nan:{rule}(1)" in found.header.choices
    if rule == "worst":
        assert found.score.tolist()[1] == 1.0


def test_classes_may_have_other_names_and_codes(tmp_path: Path) -> None:
    path = put(tmp_path, "en", [("a", "Hateful", "0.9", "w"), ("b", "non-hateful", "0.1", "w")])
    found = load_files([path], spec=ReadSpec(positive="hateful")).measured
    assert found.label.tolist() == [1, 0]
    assert (found.header.positive, found.header.negative) == ("hateful", "non-hateful")
    path = put(tmp_path, "en", [("a", "0", "0.9", "w"), ("b", "1", "0.1", "w")])
    assert load_files([path], spec=ReadSpec(positive_value="0")).measured.label.tolist() == [1, 0]


def test_one_run_of_several_is_chosen_and_several_are_refused(tmp_path: Path) -> None:
    rows = [("a", "1", "0.9", "m1", "en"), ("b", "0", "0.2", "m1", "en"), ("c", "1", "0.3", "m2", "en")]
    path = put(tmp_path, "all", rows, "id,y_true,y_prob,model,language")
    with pytest.raises(UsageError) as caught:
        load_table([path], spec=ReadSpec(runs=("model",)))
    assert caught.value.code == "several-runs"
    found = load_table([path], spec=ReadSpec(runs=("model",), where={"model": ("m1",)})).measured
    assert len(found) == 2 and found.header.runs == ("model",)
    with pytest.raises(UsageError) as caught:
        read_predictions([("en", path)], ReadSpec(score_columns=("y_prob", "model")))
    assert caught.value.code == "several-systems"


def test_the_command_takes_reading_options_and_verify_holds_what_it_says(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = [str(put(tmp_path, language, ROWS)) for language in ("en", "es")]
    results = tmp_path / "results.json"
    words = ["--where", "platform=web", "--where", "platform=app", "--match", "stem"]
    assert run(["toxicity", *paths, *words, "--bootstrap", "0", "--results", str(results)]) == 0
    assert json.loads(results.read_text())["reading"]["where"] == {"platform": ["web", "app"]}
    assert run(["verify", str(results), *paths]) == 0, capsys.readouterr().err
    put(tmp_path, "es", [*ROWS[:3], ("d", "0", "0.61", "app"), *ROWS[4:]])
    assert run(["verify", str(results), *paths]) == 1
    capsys.readouterr()


def test_thresholds_are_never_written_into_files_of_which_a_part_was_read(tmp_path: Path) -> None:
    path = put(tmp_path, "en", ROWS)
    before = path.read_text()
    words = ["threshold", str(path), "--test", str(path), "--where", "platform=web"]
    assert run(words) == 0
    assert run([*words, "--write"]) == 2
    assert path.read_text() == before


def test_a_fault_in_one_file_hides_none_of_another(tmp_path: Path) -> None:
    paths = [put(tmp_path, "en", [("a", "1", "x", "w")]), put(tmp_path, "es", [("a", "1")], "id,y_true")]
    with pytest.raises(HitmissError) as caught:
        load_files(paths)
    assert {f.kind for f in getattr(caught.value, "faults", ())} == {"not-a-number", "missing-column"}
