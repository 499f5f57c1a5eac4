"""Every fault that the rulings name: refused in one sentence, or answered as they say; never a figure in silence."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from hitmiss.cli.main import run
from hitmiss.core.errors import DataError, UsageError
from hitmiss.core.read_spec import ReadSpec
from hitmiss.protocols.toxicity import evaluate_run, load_run, load_table, read_run

Writer = Callable[..., Path]

GOOD = ("a,1,0.9,0.5", "b,0,0.2,0.5", "c,1,0.7,0.5", "d,0,0.6,0.5")


def refused(folder: Path, *languages: str, **rules: object) -> DataError:
    with pytest.raises(DataError) as caught:
        read_run(folder, "run", languages or None, spec=ReadSpec(**rules))  # type: ignore[arg-type]
    message = str(caught.value)
    assert "\n" not in message and "Traceback" not in message
    return caught.value


@pytest.mark.parametrize(
    ("line", "kind", "column", "value"),
    [
        ("x,,0.5,0.5", "missing-label", "y_true", ""),
        ("x,NA,0.5,0.5", "missing-label", "y_true", "NA"),
        ("x,-1,0.5,0.5", "unlabelled", "y_true", "-1"),
        ("x,0.7,0.5,0.5", "unknown-label", "y_true", "0.7"),
        ("x,2,0.5,0.5", "unknown-label", "y_true", "2"),
        ("x,toxik,0.5,0.5", "unknown-label", "y_true", "toxik"),
        ("x,1,,0.5", "empty-score", "y_prob", ""),
        ("x,1,NaN,0.5", "nan-score", "y_prob", "NaN"),
        ("x,1,1.7,0.5", "not-a-probability", "y_prob", "1.7"),
        ("x,1,-0.1,0.5", "not-a-probability", "y_prob", "-0.1"),
        ("x,1,inf,0.5", "not-a-probability", "y_prob", "inf"),
        ("x,1,high,0.5", "not-a-number", "y_prob", "high"),
        ("x,1,0.5,1.5", "bad-threshold", "best_threshold", "1.5"),
        ("x,1,0.5,half", "not-a-number", "best_threshold", "half"),
        ("x,1,0.5,0.6", "thresholds-differ", "best_threshold", "0.6"),
        (",1,0.5,0.5", "empty-id", "id", None),
        ("a,1,0.9,0.5", "duplicate-id", "id", None),
        ("a,0,0.9,0.5", "both-labels", "y_true", None),
    ],
)
def test_a_bad_cell_is_refused_with_its_place(
    predictions: Writer, line: str, kind: str, column: str, value: str | None
) -> None:
    error = refused(predictions("en", *GOOD, line))
    found = [f for f in error.faults if f.kind == kind]
    assert found, [f.kind for f in error.faults]
    assert found[-1].file == "run_en.csv" and found[-1].row == 6
    assert found[-1].column == column
    assert value is None or found[-1].value == value


def test_a_decimal_comma_is_named(predictions: Writer) -> None:
    header = "id;y_true;y_prob"
    folder = predictions("en", "a;1;0,9", "b;0;0,25", header=header)
    error = refused(folder)
    assert "decimal=','" in str(error) and [f.value for f in error.faults] == ["0,9", "0,25"]
    trials = read_run(folder, "run", spec=ReadSpec(decimal=","))
    assert trials.score.tolist() == [0.9, 0.25]


def test_all_faults_of_all_files_are_listed_together(predictions: Writer, capsys: pytest.CaptureFixture[str]) -> None:
    predictions("en", "a,,0.5,0.5", "b,1,1.7,0.5", "c,0.7,0.2,0.5")
    folder = predictions("es", "a,1,x,0.5", "b,-1,0.5,0.5", "c,1,inf,0.5", "d,0,0.1,0.5")
    error = refused(folder, "en", "es")
    assert {(f.file, f.row, f.column, f.value) for f in error.faults} == {
        ("run_en.csv", 2, "y_true", ""),
        ("run_en.csv", 3, "y_prob", "1.7"),
        ("run_en.csv", 4, "y_true", "0.7"),
        ("run_es.csv", 2, "y_prob", "x"),
        ("run_es.csv", 3, "y_true", "-1"),
        ("run_es.csv", 4, "y_prob", "inf"),
    }
    assert run(["toxicity", "--pred_dir", str(folder), "--run_tag", "run", "--json"]) == 3
    told = json.loads(capsys.readouterr().out)["error"]["faults"]
    assert [(f["file"], f["row"], f["value"]) for f in told] == [(f.file, f.row, f.value) for f in error.faults]


def test_missing_values_can_be_dropped_and_are_counted(predictions: Writer) -> None:
    folder = predictions("en", *GOOD, "x,,0.5,0.5", "y,-1,0.5,0.5", "z,1,NA,0.5")
    trials = read_run(folder, "run", spec=ReadSpec(missing="drop"))
    assert trials.items == ["en/a", "en/b", "en/c", "en/d"]
    assert any("3 rows without a label, score or decision were dropped (en 3)" in n for n in trials.header.notes)
    assert "missing:drop(3)" in trials.header.choices


def test_wrong_values_are_never_dropped(predictions: Writer) -> None:
    error = refused(predictions("en", *GOOD, "x,0.7,0.5,0.5", "y,1,1.7,0.5"), missing="drop")
    assert sorted(f.kind for f in error.faults) == ["not-a-probability", "unknown-label"]


def test_nothing_left_after_dropping_is_said(predictions: Writer) -> None:
    with pytest.raises(UsageError, match="no row is left"):
        read_run(predictions("en", "a,-1,0.5,0.5"), "run", spec=ReadSpec(missing="drop"))


def test_logits_need_a_word_and_a_threshold(predictions: Writer) -> None:
    folder = predictions("en", "a,1,2.5", "b,0,-1.5", "c,1,inf", header="id,y_true,y_prob")
    assert "scores='any'" in str(refused(folder))
    with pytest.raises(UsageError, match="no default threshold"):
        read_run(folder, "run", spec=ReadSpec(score_kind="raw"))


def test_requested_languages_without_a_file_are_all_named(predictions: Writer) -> None:
    error = refused(predictions("en", *GOOD), "en", "fr", "de")
    assert "fr, de" in str(error) and [f.file for f in error.faults] == ["run_fr.csv", "run_de.csv"]


def test_a_language_twice_is_refused(predictions: Writer) -> None:
    with pytest.raises(UsageError, match="asked for twice"):
        read_run(predictions("en", *GOOD), "run", ["en", "en"])


def test_languages_are_inferred_without_our_own_outputs(predictions: Writer) -> None:
    for name in ("en", "pt-BR", "no", "metrics", "errors_en", "v2_en", "xl_en", "val", "results"):
        folder = predictions(name, *GOOD)
    found = load_run(folder, "run")
    assert found.groups == ("en", "no", "pt-BR")
    left_out = next(n for n in found.trials.header.notes if "no language was seen in" in n)
    assert all(name in left_out for name in ("run_v2_en.csv", "run_xl_en.csv", "run_val.csv"))
    assert "metrics" not in left_out and "errors" not in left_out


def test_no_file_and_no_folder_are_said(predictions: Writer, tmp_path: Path) -> None:
    assert "name the languages with languages" in str(refused(predictions("metrics", *GOOD)))
    with pytest.raises(DataError, match="there is no folder"):
        read_run(tmp_path / "nowhere", "run")


def test_one_language_in_two_formats_is_refused(predictions: Writer) -> None:
    predictions("en", *GOOD)
    assert "same language" in str(refused(predictions("en", *GOOD, suffix=".tsv")))


@pytest.mark.parametrize("content", ["", "id,y_true,y_prob\n"])
def test_empty_files_are_refused(predictions: Writer, content: str) -> None:
    folder = predictions("en", *GOOD)
    (folder / "run_en.csv").write_text(content)
    assert [f.kind for f in refused(folder).faults] == ["empty-file"]


def test_a_column_that_is_missing_or_could_be_two_is_said(predictions: Writer) -> None:
    assert "no score column" in str(refused(predictions("en", "a,1", header="id,y_true")))
    error = refused(predictions("en", "a,1,0.5,0.6", header="id,y_true,prob,score"))
    assert "columns={'score': 'prob'}" in str(error)
    trials = read_run(
        predictions("en", "a,1,0.5,0.6", header="id,y_true,prob,score"),
        "run",
        spec=ReadSpec(columns={"score": "score"}),
    )
    assert trials.score.tolist() == [0.6]


@pytest.mark.parametrize("header", ["id,label,prob", "id,target,pred", "id,toxic,pred_score", "item,y_true,prediction"])
def test_the_aliases_of_the_original_are_known(predictions: Writer, header: str) -> None:
    assert read_run(predictions("en", "a,1,0.25", "b,0,0.5", header=header), "run").score.tolist() == [0.25, 0.5]


def test_ids_and_texts_stay_text(predictions: Writer) -> None:
    folder = predictions("en", "0001,1,0.9,0.5", "NA,0,0.1,0.5", "None,1,0.8,0.5", "1.0,0,0.3,0.5")
    assert read_run(folder, "run").items == ["en/0001", "en/NA", "en/None", "en/1.0"]


def test_a_decision_column_beats_the_threshold_and_disagreement_is_said(predictions: Writer) -> None:
    header = "id,y_true,y_prob,y_pred,best_threshold"
    folder = predictions("en", "a,1,0.9,0,0.5", "b,0,0.2,0,0.5", "c,1,0.7,1,0.5", "d,0,0.6,1,0.5", header=header)
    found = load_run(folder, "run")
    assert found.trials.column("decision").to_list() == [0, 0, 1, 1]
    warned = next(n for n in found.trials.header.notes if "disagree" in n)
    assert "disagree on 1 of 4 rows" in warned and "F1 0.5000" in warned and "0.8000" in warned


def test_a_blank_decision_column_is_absent(predictions: Writer) -> None:
    folder = predictions("en", "a,1,0.9,,0.8", "b,0,0.2,,0.8", header="id,y_true,y_prob,y_pred,best_threshold")
    found = load_run(folder, "run")
    assert str(found.rules["en"]) == "0.8 (column best_threshold)"
    assert any("y_pred is blank and counts as absent" in n for n in found.trials.header.notes)


def test_a_decision_that_is_no_decision_is_refused(predictions: Writer) -> None:
    folder = predictions("en", "a,1,0.9,0.7", "b,0,0.2,", "c,0,0.2,1", header="id,y_true,y_prob,y_pred")
    assert sorted((f.kind, f.row) for f in refused(folder).faults) == [("missing-decision", 3), ("unknown-decision", 2)]


def test_without_threshold_a_half_is_used_and_said(predictions: Writer) -> None:
    folder = predictions("en", "a,1,0.5", "b,0,0.4999999999999999", header="id,y_true,y_prob")
    found = load_run(folder, "run")
    assert found.trials.column("decision").to_list() == [1, 0]  # equal to the threshold is toxic
    assert any("no column y_pred and no best_threshold, so decided at 0.5" in n for n in found.trials.header.notes)


def test_a_blank_threshold_everywhere_is_absent_and_some_blank_use_the_one(predictions: Writer) -> None:
    predictions("en", "a,1,0.6,", "b,0,0.4,")
    folder = predictions("es", "a,1,0.6,", "b,0,0.8,0.7")
    found = load_run(folder, "run", ["en", "es"])
    assert [str(r) for r in found.rules.values()] == ["0.5 (default)", "0.7 (column best_threshold)"]
    assert found.trials.column("decision").to_list() == [1, 0, 0, 1]
    assert any(
        "es: best_threshold is blank in 1 of 2 rows; 0.7 was used there too" in n for n in found.trials.header.notes
    )


def test_thresholds_are_compared_as_numbers_and_rules_override(predictions: Writer) -> None:
    same = predictions("en", "a,1,0.6,0.50", "b,0,0.4,.5", "c,0,0.4,5e-1")
    assert str(load_run(same, "run").rules["en"]) == "0.5 (column best_threshold)"
    differing = predictions("en", "a,1,0.6,0.7", "b,0,0.4,0.3", "c,0,0.4,0.3")
    error = refused(differing)
    assert "threshold_rule='first'" in str(error) and [f.row for f in error.faults] == [3, 4]
    first = load_run(differing, "run", spec=ReadSpec(threshold_rule="first"))
    assert first.trials.column("decision").to_list() == [0, 0, 0]
    each = load_run(differing, "run", spec=ReadSpec(threshold_rule="per-row"))
    assert each.trials.column("decision").to_list() == [0, 1, 1]
    assert "threshold-rule:per-row" in each.trials.header.choices


def test_one_class_is_null_and_zero_denominators_are_flagged(predictions: Writer) -> None:
    predictions("en", *GOOD)
    folder = predictions("es", "a,0,0.1,0.5", "b,0,0.2,0.5")
    rows = {row.name: row for row in evaluate_run(load_run(folder, "run", ["en", "es"]), bootstrap=50).rows}
    es = rows["es"].figures
    assert es["roc_auc"].value is None and "only non-toxic" in (es["roc_auc"].note or "")
    assert es["recall"].value == es["f1"].value == es["precision"].value == 0.0
    assert "by convention" in (es["f1"].note or "")
    assert rows["macro"].figures["roc_auc"].value == rows["en"].figures["roc_auc"].value
    assert "over 1 of 2 slices" in (rows["macro"].figures["roc_auc"].note or "")
    assert rows["macro"].figures["f1"].value == pytest.approx(0.4)  # (0.8 + 0) / 2


def test_undefined_null_leaves_zeros_out_of_the_mean(predictions: Writer) -> None:
    predictions("en", *GOOD)
    folder = predictions("es", "a,0,0.1,0.5", "b,0,0.2,0.5")
    board = evaluate_run(load_run(folder, "run", ["en", "es"]), bootstrap=0, undefined="null")
    rows = {row.name: row for row in board.rows}
    assert rows["es"].figures["f1"].value is None
    assert rows["macro"].figures["f1"].value == pytest.approx(0.8)


def test_reversed_scores_are_warned_about(predictions: Writer) -> None:
    folder = predictions("en", *(f"{i},{int(i < 30)},{i / 100},0.5" for i in range(60)))
    assert any("REVERSED" in w for w in evaluate_run(load_run(folder, "run"), bootstrap=0).results.warnings)


def test_saturated_probabilities_are_warned_about(predictions: Writer) -> None:
    folder = predictions("en", "a,1,1,0.5", "b,0,0,0.5", "c,1,0.7,0.5")
    assert any("exactly 0 or 1" in n for n in read_run(folder, "run").header.notes)


def test_a_group_named_like_an_average_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "long.csv"
    path.write_text("id,y_true,y_prob,platform\na,1,0.5,micro\nb,0,0.4,web\n")
    with pytest.raises(UsageError, match="name of an average"):
        load_table([str(path)], "platform")


def test_two_files_that_hold_the_same_texts_of_the_same_languages_are_refused(tmp_path: Path) -> None:
    paths = [tmp_path / name for name in ("first.csv", "second.csv")]
    for path in paths:
        path.write_text("id,language,y_true,y_prob\n1,en,1,0.9\n2,es,0,0.1\n3,en,0,0.2\n4,es,1,0.8\n")
    with pytest.raises(DataError, match="8 rows of ids that are in more than one file"):
        load_table(paths)
    assert len(load_table(paths[:1]).trials) == 4


def test_a_language_without_a_file_may_be_left_out_and_is_named(
    predictions: Writer, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = predictions("en", "a,1,0.9,0.5", "b,0,0.1,0.5")
    predictions("es", "a,1,0.4,0.5", "b,0,0.1,0.5")
    words = [
        "toxicity",
        "--pred_dir",
        str(folder),
        "--run_tag",
        "run",
        "--languages",
        "en",
        "fr",
        "es",
        "--bootstrap",
        "0",
    ]
    assert run(words) == 3 and "say --missing_language skip" in capsys.readouterr().err
    assert run([*words, "--missing_language", "skip"]) == 0
    printed = capsys.readouterr().out
    assert "no file for fr: left out, so averages are over 2 of 3 languages" in printed
    assert "missing-language:skip(fr)" in printed
    assert run([*words[:6], "fr", "de", "--missing_language", "skip"]) == 3  # nothing would be left
    assert "for fr, de" in capsys.readouterr().err
    assert run([*words, "--missing_language", "leave"]) == 2


def test_a_text_in_two_languages_is_told_by_its_ids(predictions: Writer) -> None:
    header = "id,y_true,y_prob,best_threshold,text"
    folder = predictions("en", "a,1,0.9,0.5,hello", "b,0,0.1,0.5,other", "c,0,0.2,0.5,", header=header)
    predictions("es", "x,1,0.4,0.5, hello ", "y,0,0.1,0.5,otra", "z,0,0.1,0.5,", header=header)
    notes = load_run(folder, "run").trials.header.notes
    told = next(n for n in notes if "more than one group" in n)
    assert told.startswith("1 text stands") and "id 'a' of en and id 'x' of es" in told and "hello" not in told
    predictions("es", "x,1,0.4,0.5,hola", 'y,0,0.1,0.5,"otra, otra"', header=header)  # quotes: the careful way
    assert not any("more than one group" in n for n in load_run(folder, "run").trials.header.notes)
    predictions("es", "x,1,0.4,0.5,hola", 'y,0,0.1,0.5,"other"', header=header)
    assert any("id 'b' of en and id 'y' of es" in n for n in load_run(folder, "run").trials.header.notes)
