"""Two sources of one fact: the name of a file and its column of languages; and languages in several spellings."""

from __future__ import annotations

import unicodedata
from pathlib import Path

import pytest

from hitmiss.cli.main import run
from hitmiss.core.errors import DataError
from hitmiss.protocols.toxicity import load_any, load_run


def write(path: Path, languages: list[str], column: str = "language") -> Path:
    head = f"id,y_true,y_prob,{column}\n"
    body = "".join(f"{i},{i % 2},0.{(i * 37) % 90 + 10},{lang}\n" for i, lang in enumerate(languages))
    path.write_text(head + body, encoding="utf-8")
    return path


@pytest.mark.parametrize("column", ["language", "lang"])
@pytest.mark.parametrize("quote", [False, True])
def test_a_file_named_after_another_language_is_refused_either_way(tmp_path: Path, column: str, quote: bool) -> None:
    for name, said in (("b_en.csv", "es"), ("b_es.csv", "en")):
        path = write(tmp_path / name, [said] * 8, column)
        if quote:  # the careful reader too
            path.write_text(path.read_text().replace(said, f'"{said}"'))
    for load in (
        lambda: load_run(tmp_path, "b", ["en", "es"]),
        lambda: load_any([str(p) for p in tmp_path.glob("b_*")]),
    ):
        with pytest.raises(DataError) as error:
            load()
        assert error.value.code == "column-conflict"
        assert "'es'" in str(error.value) and "'en'" in str(error.value)
    assert run(["toxicity", "--pred_dir", str(tmp_path), "--run_tag", "b", "--languages", "en", "es"]) == 3


def test_several_languages_in_a_file_named_after_one(tmp_path: Path) -> None:
    path = write(tmp_path / "c_en.csv", ["en", "es", "it", "it"] * 4)
    with pytest.raises(DataError) as error:
        load_any([str(path)])
    assert error.value.code == "column-conflict" and len(error.value.faults) == 12
    assert load_any([str(path)], "language").groups == ("en", "es", "it")  # the caller says which of the two counts


def test_a_name_and_a_column_that_agree(tmp_path: Path) -> None:
    path = write(tmp_path / "d_pt_BR.csv", ["pt-BR", ""] * 4)
    assert load_run(tmp_path, "d").groups == ("pt_BR",) and path.exists()


@pytest.mark.parametrize("several", [["EN", "en"], ["En", "en"], ["pt-BR", "pt_BR"]])
def test_two_spellings_of_a_language_are_refused(tmp_path: Path, several: list[str]) -> None:
    path = write(tmp_path / "table.csv", several * 4)
    with pytest.raises(DataError) as error:
        load_any([str(path)])
    assert error.value.code == "language-spelling" and all(s in str(error.value) for s in several)


@pytest.mark.parametrize(
    ("name", "language"),
    [("en.csv", "en"), ("preds.en.csv", "en"), ("preds_en.csv", "en"), ("preds.pt-BR.csv", "pt-BR")],
)
def test_languages_in_names_of_every_shape(tmp_path: Path, name: str, language: str) -> None:
    rows = [f"{i},{i % 2},{0.1 + 0.8 * (i % 2) * (i % 3 > 0)}" for i in range(20)]
    (tmp_path / name).write_text("\n".join(["id,y_true,y_prob", *rows]) + "\n")
    found = load_any([str(tmp_path / name)])
    assert found.trials.frame["language"].unique().to_list() == [language]


@pytest.mark.parametrize("asked", ["NFC", "NFD"])
@pytest.mark.parametrize("stored", ["NFC", "NFD"])
def test_accents_in_names_are_the_same_in_either_form(tmp_path: Path, asked: str, stored: str) -> None:
    rows = [f"{i},{i % 2},{0.1 + 0.8 * (i % 2) * (i % 3 > 0)}" for i in range(20)]
    name = unicodedata.normalize(stored, "modèle_français.csv")
    (tmp_path / name).write_text("\n".join(["id,y_true,y_prob", *rows]) + "\n")
    words = [unicodedata.normalize(asked, text) for text in ("modèle", "français")]
    assert len(load_run(str(tmp_path), words[0], [words[1]]).trials) == 20
