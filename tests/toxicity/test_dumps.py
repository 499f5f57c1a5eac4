"""Error dumps: which rows, in which order, with exact text; and cells that no spreadsheet computes."""

from __future__ import annotations

import csv
import io
import tempfile
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hitmiss.cli.main import run
from hitmiss.io.write import spreadsheet_safe, write_csv

NASTY = [
    '=HYPERLINK("http://x")',
    "+1 for that",
    "-",
    "-0.5",
    "@name",
    "line\nbreak",
    'quote " and, comma',
    "NA",
    " lead",
    "שלום",
]
LABELS = [0, 1, 0, 1, 0, 0, 1, 0, 1, 1]
SCORES = [0.9, 0.1, 0.8, 0.4, 0.3, 0.55, 0.95, 0.2, 0.05, 0.6]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rows = [["id", "text", "y_true", "y_prob", "best_threshold"]]
    rows += [[f"{i:03d}", NASTY[i], LABELS[i], SCORES[i], 0.5] for i in range(len(NASTY))]
    text = io.StringIO()
    csv.writer(text).writerows(rows)
    (tmp_path / "run_en.csv").write_bytes(text.getvalue().encode())
    (tmp_path / "run_es.csv").write_text("id,text,y_true,y_prob,best_threshold\na,b,1,0.9,0.5\nc,d,0,0.1,0.5\n")
    return tmp_path


def dumped(folder: Path, *more: str, language: str = "en") -> list[dict[str, str]]:
    words = ["toxicity", "--pred_dir", str(folder), "--run_tag", "run", "--bootstrap", "0", "--dump_errors", *more]
    assert run([*words, "--errors_dir", str(folder / "errors")]) == 0
    text = (folder / "errors" / f"run_errors_{language}.csv").read_bytes().decode()
    return list(csv.DictReader(io.StringIO(text, newline="")))


def test_mistakes_come_most_confident_first_with_exact_text(folder: Path) -> None:
    rows = dumped(folder)
    assert [r["id"] for r in rows] == ["008", "000", "001", "002", "003", "005"]
    assert [r["error_type"] for r in rows] == ["FN", "FP", "FN", "FP", "FN", "FP"]
    assert [r["text"] for r in rows] == [NASTY[int(r["id"])] for r in rows]
    for r in rows:
        assert float(r["margin"]) == abs(float(r["y_prob"]) - 0.5) and r["threshold"] == "0.5"
    assert list(rows[0]) == ["id", "text", "y_true", "y_prob", "best_threshold", "error_type", "threshold", "margin"]


def test_at_most_so_many_of_each_kind(folder: Path) -> None:
    assert [r["id"] for r in dumped(folder, "--max_errors", "1")] == ["008", "000"]


def test_a_language_without_mistakes_gets_a_header_alone(folder: Path) -> None:
    (folder / "errors").mkdir()
    (folder / "errors" / "run_errors_es.csv").write_text("an older dump")
    assert dumped(folder, language="es") == []
    assert (folder / "errors" / "run_errors_es.csv").read_text().startswith("id,text,y_true")


def test_the_folder_of_the_predictions_is_the_default(folder: Path) -> None:
    assert run(["toxicity", "--pred_dir", str(folder), "--run_tag", "run", "--bootstrap", "0", "--dump_errors"]) == 0
    assert (folder / "run_errors_en.csv").is_file()
    assert (
        run(["toxicity", "--pred_dir", str(folder), "--run_tag", "run", "--bootstrap", "0"]) == 0
    )  # it is no language


def test_safe_cells_begin_with_an_apostrophe_and_numbers_stay(folder: Path) -> None:
    texts = {r["id"]: r["text"] for r in dumped(folder, "--spreadsheet_safe")}
    assert texts["000"] == "'" + NASTY[0] and texts["001"] == "'" + NASTY[1]
    assert texts["002"] == "-" and texts["003"] == "-0.5"
    assert {r["y_prob"] for r in dumped(folder, "--spreadsheet_safe")} <= {repr(s) for s in SCORES}


def test_decisions_without_threshold_have_no_margin(tmp_path: Path) -> None:
    (tmp_path / "run_en.csv").write_text("id,y_true,y_prob,y_pred\na,1,0.2,0\nb,0,0.9,1\nc,1,0.9,1\nd,0,0.6,1\n")
    rows = dumped(tmp_path)
    assert [r["id"] for r in rows] == ["b", "a", "d"]
    assert {r["threshold"] + r["margin"] for r in rows} == {""}


def test_texts_are_joined_by_id(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "run_en.csv").write_text("id,y_true,y_prob\n01,1,0.2\n02,0,0.9\n")
    (tmp_path / "run_es.csv").write_text("id,y_true,y_prob\n01,1,0.2\n02,0,0.1\n")
    texts = tmp_path / "texts.csv"
    texts.write_text('id,lang,text\n01,en,"one, two"\n02,en,NA\n01,es,uno\n')
    rows = dumped(tmp_path, "--texts", str(texts))
    assert {r["id"]: r["text"] for r in rows} == {"01": "one, two", "02": "NA"}
    texts.write_text("id,text\n01,one\n")
    words = ["toxicity", "--pred_dir", str(tmp_path), "--run_tag", "run", "--bootstrap", "0", "--dump_errors"]
    capsys.readouterr()
    assert run([*words, "--texts", str(texts)]) == 3
    assert "1 wrongly decided ids have no text, the first is '02'" in capsys.readouterr().err


def test_columns_of_any_name_are_kept(tmp_path: Path) -> None:
    (tmp_path / "run_en.csv").write_text("item,order,row,y_true,y_prob,threshold\na,x,7,1,0.2,0.5\nb,y,8,0,0.9,0.5\n")
    rows = dumped(tmp_path)
    assert [(r["item"], r["order"], r["row"]) for r in rows] == [("b", "y", "8"), ("a", "x", "7")]
    assert list(rows[0]) == ["item", "order", "row", "y_true", "y_prob", "threshold", "error_type", "margin"]


def test_a_dump_of_a_dump_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "run_en.csv").write_text("id,y_true,y_prob,margin\na,1,0.2,1\nb,0,0.1,1\n")
    assert run(["toxicity", "--pred_dir", str(tmp_path), "--run_tag", "run", "--bootstrap", "0", "--dump_errors"]) == 3
    assert "have a column 'margin' already" in capsys.readouterr().err


TEXT = st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\0"), max_size=20)


@given(st.lists(TEXT, min_size=1, max_size=5))
def test_any_text_is_written_exactly_and_safe_text_starts_no_formula(texts: list[str]) -> None:
    frame = pl.DataFrame({"id": [str(i) for i in range(len(texts))], "text": texts})
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "dump.csv"
        write_csv(frame, path)
        with path.open(encoding="utf-8", newline="") as file:
            assert [row["text"] for row in csv.DictReader(file)] == texts
    for before, after in zip(texts, spreadsheet_safe(frame)["text"], strict=True):
        assert after in (before, "'" + before)
        assert not after.startswith(("=", "@", "\t", "\r"))
        if after.startswith(("+", "-")) and after != "-":
            float(after)  # a number, which a spreadsheet may well compute
