"""What a hurried user types and what strange files hold: the right number, or one sentence with file, row and exit code."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from hitmiss.cli.main import run

HEADER = "id,y_true,y_prob,best_threshold\n"
ROWS = "a,1,0.9,0.5\nb,0,0.2,0.5\nc,1,0.4,0.5\nd,0,0.6,0.5\n"
FIGURES = "4,0.5000,0.7500,0.5000,0.5000,0.5000,0.5000"  # one of each outcome, and 3 of 4 pairs in order


def put(
    folder: Path, *languages: str, text: str | bytes = HEADER + ROWS, tag: str = "run", suffix: str = "csv"
) -> None:
    data = text if isinstance(text, bytes) else text.encode()
    for language in languages or ("en",):
        (folder / f"{tag}_{language}.{suffix}").write_bytes(data)


def words(folder: Path, *more: str, tag: str = "run") -> list[str]:
    return ["toxicity", "--pred_dir", str(folder), "--run_tag", tag, "--documented", *more]


def table(said: str) -> dict[str, str]:
    return dict(line.split(",", 1) for line in said.splitlines()[1:])


@pytest.mark.parametrize(
    "given",
    [["--languages", "en", "es"], ["--languages", "en,es"], ["--languages", "en,", "es"], ["--languages=en,es"]],
)
def test_languages_may_be_written_as_people_write_lists(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], given: list[str]
) -> None:
    put(tmp_path, "en", "es", "it")
    assert run(words(tmp_path, *given)) == 0
    assert table(capsys.readouterr().out) == {
        "en": FIGURES,
        "es": FIGURES,
        "macro": FIGURES.replace("4", "8", 1),
        "micro": FIGURES.replace("4", "8", 1),
    }


def test_an_option_without_its_values_takes_no_other_option_for_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    put(tmp_path)
    assert run(["toxicity", "--pred_dir", str(tmp_path), "--languages", "--run_tag", "run"]) == 2
    assert "--languages needs a value" in capsys.readouterr().err


def test_capital_letters_are_told_and_not_guessed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    put(tmp_path, "en")
    assert run(words(tmp_path, "--languages", "EN")) == 3
    assert "did you mean en?" in capsys.readouterr().err
    put(tmp_path, "ES", tag="big")
    assert run(words(tmp_path, "--languages", "es", tag="big")) == 3
    assert "of this run it has big_ES.csv" in capsys.readouterr().err
    assert run(words(tmp_path, "--languages", "ES", tag="big")) == 0
    assert table(capsys.readouterr().out)["ES"] == FIGURES


def test_a_wrong_tag_is_answered_with_what_there_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    put(tmp_path, "en")
    assert run(words(tmp_path, tag="runs")) == 3
    assert "it has run_en.csv; check --run_tag" in capsys.readouterr().err


def test_tags_may_hold_underscores_and_languages(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    put(tmp_path, "en", "es", tag="my_run_en")
    put(tmp_path, "it", tag="my_run")
    for tag, found in (("my_run_en", ["en", "es"]), ("my_run", ["en", "it"])):
        if tag == "my_run":
            put(tmp_path, "en", tag="my_run")
        assert run(words(tmp_path, tag=tag)) == 0
        assert list(table(capsys.readouterr().out)) == [*found, "macro", "micro"]


def test_words_that_no_option_takes_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    put(tmp_path)
    assert run(words(tmp_path, "--dump_errors", "true")) == 2
    assert "'true' was taken for a file" in capsys.readouterr().err


def test_predictions_are_never_overwritten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    put(tmp_path)
    path = tmp_path / "run_en.csv"
    before = path.read_bytes()
    for option in ("--output", "--results"):
        assert run(words(tmp_path, option, str(tmp_path / "." / "run_en.csv"))) == 2
        assert "holds predictions that were read" in capsys.readouterr().err
    path.rename(tmp_path / "long.csv")
    (tmp_path / "long.csv").write_text("language," + before.decode().replace("\n", "\nen,").removesuffix("en,"))
    before = (tmp_path / "long.csv").read_bytes()
    assert run(["toxicity", str(tmp_path / "long.csv"), "--output", str(tmp_path / "long.csv")]) == 2
    assert (tmp_path / "long.csv").read_bytes() == before


def test_a_folder_is_no_file_to_write(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    put(tmp_path)
    assert run(words(tmp_path, "--output", str(tmp_path))) == 2
    assert "is a folder; name a file in it" in capsys.readouterr().err


def test_from_another_folder_with_relative_paths(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "output" / "predictions").mkdir(parents=True)
    (tmp_path / "code").mkdir()
    put(tmp_path / "output" / "predictions", "en", "es", tag="baseline")
    monkeypatch.chdir(tmp_path / "code")
    folder = "../output/predictions"
    given = ["toxicity", "--pred_dir", folder, "--run_tag", "baseline", "--languages", "en", "es", "--bootstrap", "0"]
    assert run([*given, "--output", f"{folder}/baseline_metrics.csv", "--dump_errors"]) == 0
    names = {path.name for path in (tmp_path / "output" / "predictions").iterdir()}
    added = {"baseline_metrics.csv", "baseline_errors_en.csv", "baseline_errors_es.csv"}
    assert names == {"baseline_en.csv", "baseline_es.csv", *added}
    capsys.readouterr()
    assert (
        run(["toxicity", "--pred_dir", folder, "--run_tag", "baseline", "--documented"]) == 0
    )  # beside its own outputs
    assert list(table(capsys.readouterr().out)) == ["en", "es", "macro", "micro"]


@pytest.mark.parametrize(
    ("one", "zero"),
    [
        ("1", "0"),
        ("1.0", "0.0"),
        ("True", "False"),
        ("TRUE", "FALSE"),
        ("toxic", "non-toxic"),
        ("Toxic", "Non-Toxic"),
        ('"1"', '"0"'),
        (" 1", "0 "),
    ],
)
def test_labels_as_tools_write_them(tmp_path: Path, capsys: pytest.CaptureFixture[str], one: str, zero: str) -> None:
    rows = [f"a,{one},0.9", f"b,{zero},0.2", f"c,{one},0.4", f"d,{zero},0.6"]
    put(tmp_path, text="id,y_true,y_prob\n" + "\n".join(rows) + "\n")
    assert run(words(tmp_path)) == 0
    assert table(capsys.readouterr().out)["en"] == FIGURES


@pytest.mark.parametrize("label", ["yes", "2", "0.7", "1,0", "t", "１"])
def test_other_labels_are_refused_with_their_place(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], label: str
) -> None:
    put(tmp_path, text=f'id,y_true,y_prob\na,1,0.9\nb,"{label}",0.2\n')
    assert run(words(tmp_path)) == 3
    said = capsys.readouterr().err
    why = "it is neither 1 nor 0" if label in ("2", "0.7") else "the label is not known"
    assert f"run_en.csv, row 3, column y_true: {why}" in said and f"(found '{label}')" in said


@pytest.mark.parametrize(
    ("score", "said"),
    [
        ("", "the score is empty"),
        ("nan", "the score is NaN"),
        ("1.0000000000000002", "it is outside 0..1"),
        ("-1e-320", "it is outside 0..1"),
        ("inf", "it is outside 0..1"),
        ('"0,5"', "it is not a number"),
        ("1_0", "it is not a number"),
        ("0x1p-1", "it is not a number"),
        ("٠.٥", "it is not a number"),
    ],
)
def test_scores_that_are_none(tmp_path: Path, capsys: pytest.CaptureFixture[str], score: str, said: str) -> None:
    put(tmp_path, text=HEADER + ROWS.replace("b,0,0.2", f"b,0,{score}"))
    assert run(words(tmp_path)) == 3
    assert f"run_en.csv, row 3, column y_prob: {said}" in capsys.readouterr().err


@pytest.mark.parametrize(
    "score", ["1e-3", "1E-3", "+0.1", ".1", " 0.1 ", "-0.0", "0", "1e-400", "0.1000000000000000055"]
)
def test_numbers_as_python_reads_them(tmp_path: Path, capsys: pytest.CaptureFixture[str], score: str) -> None:
    put(tmp_path, text=HEADER + ROWS.replace("b,0,0.2", f"b,0,{score}"))
    assert run(words(tmp_path)) == 0
    assert table(capsys.readouterr().out)["en"] == FIGURES


def test_ids_keep_their_zeros(tmp_path: Path) -> None:
    put(tmp_path, text='id,y_true,y_prob\n"0001",1,0.9\n001,0,0.2\n"1",1,0.4\n01,0,0.6\n')
    assert run(words(tmp_path, "--dump_errors")) == 0
    dumped = pl.read_csv(tmp_path / "run_errors_en.csv", infer_schema=False)
    assert dumped["id"].to_list() == ["1", "01"]


TEXTS = 'id,text,y_true,y_prob,best_threshold\na,"x",1,0.9,0.5\nb,"é, ""q""",0,0.2,0.5\nc,"l1\nl2",1,0.4,0.5\nd,😀,0,0.6,0.5\n'


@pytest.mark.parametrize("way", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "crlf", "long"])
def test_texts_come_through_every_encoding(tmp_path: Path, capsys: pytest.CaptureFixture[str], way: str) -> None:
    text = TEXTS.replace("l1\nl2", "y" * 10**6) if way == "long" else TEXTS
    data = text.replace("\n", "\r\n").encode() if way == "crlf" else text.encode("utf-8" if way == "long" else way)
    put(tmp_path, text=data)
    said = ["--encoding", way] if way == "utf-16-le" else []  # no mark tells it
    assert run(words(tmp_path, "--dump_errors", *said)) == 0
    assert table(capsys.readouterr().out)["en"] == FIGURES
    dumped = pl.read_csv(tmp_path / "run_errors_en.csv", infer_schema=False)
    wanted = {"crlf": "l1\r\nl2", "long": "y" * 10**6}.get(way, "l1\nl2")
    assert sorted(dumped["text"].to_list()) == sorted([wanted, "😀"])


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "run_en.csv: the file holds no rows"),
        (b"\n\n", "run_en.csv: the file holds no rows"),
        (HEADER.encode(), "run_en.csv, row 1: there is a header and no row under it"),
        (b"id,y_true,y_prob\na,1,0.9\nb\0,0,0.1\n", "run_en.csv, row 3: the text holds a NUL byte"),
        (b"PAR1\x15\x00\x00\x00", "begins as a Parquet file and does not end as one"),
        (b"a,1,0.9\nb,0,0.1\n", "run_en.csv, row 1: there is no label column"),
        (b"id,y_true,y_prob\na,1,0,9\nb,0,0,1\n", "run_en.csv, row 2: 2 rows with another number of fields"),
    ],
)
def test_broken_files_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str], data: bytes, said: str) -> None:
    put(tmp_path, text=data)
    assert run(words(tmp_path)) == 3
    assert said in capsys.readouterr().err


PLAIN = pl.DataFrame({"id": ["a", "b", "c", "d"], "y_true": [1, 0, 1, 0], "y_prob": [0.9, 0.2, 0.4, 0.6]})
WORDS = pl.Series("y_true", ["toxic", "non-toxic", "toxic", "non-toxic"])
TYPES = {
    "int8": PLAIN.cast({"y_true": pl.Int8}),
    "bool": PLAIN.cast({"y_true": pl.Boolean}),
    "float32": PLAIN.cast({"y_true": pl.Float32, "y_prob": pl.Float32}),
    "decimal": PLAIN.cast({"y_true": pl.Decimal(10, 2), "y_prob": pl.Decimal(10, 4)}),
    "categorical": PLAIN.with_columns(WORDS.cast(pl.Categorical)),
    "enum": PLAIN.with_columns(WORDS.cast(pl.Enum(["non-toxic", "toxic"]))),
    "text": PLAIN.cast(pl.String),
    "integer ids": PLAIN.with_columns(id=pl.int_range(4)),
    "decided": PLAIN.with_columns(y_pred=pl.Series([True, False, False, True])),
}


@pytest.mark.parametrize("kind", TYPES)
def test_parquet_of_any_type(tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str) -> None:
    TYPES[kind].write_parquet(tmp_path / "run_en.parquet")
    assert run(words(tmp_path)) == 0
    assert table(capsys.readouterr().out)["en"] == FIGURES


@pytest.mark.parametrize("kind", ["list", "bool", "null", "nan"])
def test_parquet_scores_that_are_none(tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str) -> None:
    columns = {
        "list": [[0.1]] * 4,
        "bool": [True] * 4,
        "null": [None, 0.1, 0.2, 0.3],
        "nan": [float("nan"), 0.1, 0.2, 0.3],
    }
    PLAIN.with_columns(y_prob=pl.Series(columns[kind])).write_parquet(tmp_path / "run_en.parquet")
    assert run(words(tmp_path)) == 3
    assert "run_en.parquet, row 1, column y_prob:" in capsys.readouterr().err


def test_an_id_in_two_long_files_is_found_in_both(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "x.csv").write_text("id,language,y_true,y_prob\na,en,1,0.9\nb,en,0,0.1\n")
    (tmp_path / "y.csv").write_text('id,language,y_true,y_prob\na,es,1,0.8\n"c\nd",es,1,0.3\nb,en,1,0.8\n')
    given = ["toxicity", str(tmp_path / "x.csv"), str(tmp_path / "y.csv"), "--documented"]
    assert run(given) == 3
    said = capsys.readouterr().err
    assert "x.csv, row 3: the id is also in another file, id 'b'" in said
    assert "y.csv, row 5: the id is also in another file, id 'b'" in said  # a quoted id takes two lines
    (tmp_path / "y.csv").write_text("id,language,y_true,y_prob\na,es,1,0.8\nb,es,0,0.1\n")
    assert run(given) == 0  # another language: another text
    for name in ("x.csv", "y.csv"):  # without ids nothing can stand there twice
        (tmp_path / name).write_text("language,y_true,y_prob\nen,1,0.9\nen,0,0.1\n")
    capsys.readouterr()
    assert run(given) == 0
    assert table(capsys.readouterr().out)["en"].startswith("4,")


def test_scores_of_any_kind_have_no_default_for_a_blank_threshold(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    put(tmp_path, text=HEADER + "a,1,3,1\nb,0,-2,2\nc,1,1,\n")
    assert run(words(tmp_path, "--scores", "any", "--threshold_rule", "per-row")) == 3
    assert "run_en.csv, row 4: 1 row without a threshold" in capsys.readouterr().err
    put(tmp_path, text=HEADER + "a,1,3,1\nb,0,-2,2\nc,1,1,1.5\n")
    assert run(words(tmp_path, "--scores", "any", "--threshold_rule", "per-row")) == 0
    assert table(capsys.readouterr().out)["en"] == "3,0.6667,1.0000,0.6667,1.0000,0.5000,0.6667"


def test_the_documented_table_says_its_warnings_aside(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    put(tmp_path, text="id,y_true,y_prob,y_pred,best_threshold\na,1,0.9,0,0.5\nb,0,0.1,0,0.5\n")
    assert run(words(tmp_path)) == 0
    said = capsys.readouterr()
    assert list(table(said.out)) == ["en", "macro", "micro"]
    assert "y_pred and best_threshold (0.5) disagree on 1 of 2 rows" in said.err


def test_a_language_without_toxic_texts_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    put(tmp_path, "en")
    put(tmp_path, "es", text=HEADER + "a,0,0.9,0.5\nb,0,0.2,0.5\n")
    assert run([*words(tmp_path, "--bootstrap", "0")[:-3], "--bootstrap", "0", "--full"]) == 0
    line = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("es"))
    assert line.split()[:4] == ["es", "2", "0", "0.0000"]


def test_thresholds_of_a_run_by_its_tag_and_none_from_one_class(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    put(tmp_path, "en", "es")
    assert run(["threshold", f"{tmp_path}:run"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()[3:5]] == ["en", "es"]
    assert run(["threshold", str(tmp_path)]) == 2
    assert "say which run in it" in capsys.readouterr().err
    put(tmp_path, "es", text=HEADER + "a,0,0.9,0.5\nb,0,0.2,0.5\n")
    assert run(["threshold", f"{tmp_path}:run"]) == 3
    assert "es: all its validation rows are non-toxic" in capsys.readouterr().err


def test_files_named_after_languages_need_no_column(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    put(tmp_path, "en", "es")
    (tmp_path / "run_metrics.csv").write_text("language,f1\nen,1\n")
    paths = [str(tmp_path / f"run_{language}.csv") for language in ("en", "es")]
    for given in (paths, [str(tmp_path / "run_*.csv")], [f"{tmp_path}:run"]):
        assert run(["toxicity", *given, "--documented"]) == 0
        assert list(table(capsys.readouterr().out)) == ["en", "es", "macro", "micro"]
    assert run(["toxicity", *paths, "--documented", "--languages", "es"]) == 0
    assert list(table(capsys.readouterr().out)) == ["es", "macro", "micro"]
    assert run(["toxicity", *paths, "--languages", "fr"]) == 2
    assert run(["toxicity", str(tmp_path)]) == 2
    assert "say which run in it" in capsys.readouterr().err
    (tmp_path / "run_en.csv").write_text("id,lang,y_true,y_prob\na,fr,1,0.9\nb,it,0,0.2\n")
    assert run(["toxicity", paths[0], "--documented"]) == 3  # name and column say otherwise: the caller must choose
    assert "--group lang" in capsys.readouterr().err
    assert run(["toxicity", paths[0], "--documented", "--group", "lang"]) == 0
    assert list(table(capsys.readouterr().out)) == ["fr", "it", "macro", "micro"]


@pytest.mark.parametrize(("given", "said"), [("nan", "give a number"), ("2", "lie in 0..1"), ("-0.1", "lie in 0..1")])
def test_thresholds_that_decide_nothing_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], given: str, said: str
) -> None:
    put(tmp_path)
    assert run(words(tmp_path, "--threshold", given)) == 2
    assert said in capsys.readouterr().err
    if given != "nan":
        assert run(words(tmp_path, "--threshold", given, "--scores", "any")) == 0


def test_a_column_that_was_declared_and_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    put(tmp_path)
    assert run(words(tmp_path, "--column", "label=y_tru")) == 3
    assert "there is no column 'y_tru'; did you mean 'y_true'?" in capsys.readouterr().err


def test_errors_go_into_a_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    put(tmp_path)
    assert run(words(tmp_path, "--dump_errors", "--errors_dir", str(tmp_path / "run_en.csv"))) == 2
    assert "is a file; name a folder" in capsys.readouterr().err
