"""A claim of streamed trials holds for the same rows in another order, and for no others."""

from __future__ import annotations

import json
import random
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hitmiss as hm
from hitmiss.cli.main import run

HEADER = "id\tscore\tlabel\tcodec\tspeaker\n"


def rows_of(n: int) -> list[str]:
    rng = random.Random(3)
    return [
        f"u{i}\t{round(rng.gauss(i % 2, 1), 2)}\t{('spoof', 'bonafide')[i % 2]}\tC{i % 3}\tS{i // 2 % 20}\n"
        for i in range(n)
    ]


def put(path: Path, rows: list[str]) -> str:
    path.write_text(HEADER + "".join(rows))
    return str(path)


@pytest.mark.parametrize("extra", [[], ["--by", "codec"], ["--by", "codec", "--unit", "speaker", "--bootstrap", "50"]])
def test_a_streamed_claim_holds_for_sorted_rows_and_no_others(tmp_path: Path, extra: list[str]) -> None:
    rows, claim = rows_of(400), str(tmp_path / "results.json")
    words = ["-m", "eer", *extra]
    assert run(["score", put(tmp_path / "s.tsv", rows), *words, "--stream", "-o", claim]) == 0
    assert json.loads(Path(claim).read_text())["content"].startswith("counted[")
    assert run(["verify", claim, put(tmp_path / "sorted.tsv", sorted(rows))]) == 0
    assert run(["verify", claim, put(tmp_path / "shuffled.tsv", rows[::-1])]) == 0
    # Two scores of one class moved by a hair each: the EER stays what it was, the data does not.
    scores = sorted(float(row.split("\t")[1]) for row in rows)
    lowest = next(i for i, row in enumerate(rows) if float(row.split("\t")[1]) == scores[0])
    other = list(rows)
    other[lowest] = rows[lowest].replace(f"\t{scores[0]}\t", f"\t{scores[0] - 1}\t")
    assert run(["verify", claim, put(tmp_path / "other.tsv", other)]) == 1


def test_a_claim_that_was_made_from_tally_files_is_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = put(tmp_path / "s.tsv", rows_of(40))
    assert run(["score", file, "-m", "eer", "--stream"]) == 0
    signature = capsys.readouterr().out.splitlines()[-1]
    assert "choices:stream" in signature
    assert run(["verify", signature.replace("choices:stream", "choices:tallies"), file]) == 2
    said = capsys.readouterr().err
    assert "made from *.tally files" in said and "hitmiss score RUN... --stream" in said
    (tmp_path / "a.tally").write_bytes(b"PK\x03\x04" + bytes(26))
    assert run(["score", str(tmp_path / "a.tally"), "-m", "eer"]) == 3
    assert "it is a tally, which this version does not read" in capsys.readouterr().err


def test_a_claim_of_memory_holds_for_sorted_rows(tmp_path: Path) -> None:
    rows, claim = rows_of(100), str(tmp_path / "results.json")
    assert run(["score", put(tmp_path / "s.tsv", rows), "-m", "eer", "-o", claim]) == 0
    assert run(["verify", claim, put(tmp_path / "sorted.tsv", sorted(rows))]) == 0


def test_a_claim_about_languages_that_share_ids_holds_for_shuffled_rows_and_no_others(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    chances = random.Random(3)
    drawn = [(i, language, chances.random(), chances.randrange(2)) for language in ("es", "en") for i in range(40)]

    def put_rows(name: str, rows: list[tuple[int, str, float, int]]) -> str:
        lines = [f"{i},{language},{i % 2},{score!r},{decision}" for i, language, score, decision in rows]
        (tmp_path / name).write_text("\n".join(["id,language,y_true,y_prob,y_pred", *lines]) + "\n")
        return str(tmp_path / name)

    claim = str(tmp_path / "claim.json")
    assert run(["toxicity", put_rows("rows.csv", drawn), "--json"]) == 0
    Path(claim).write_text(capsys.readouterr().out)
    assert run(["verify", claim, put_rows("shuffled.csv", chances.sample(drawn, len(drawn)))]) == 0
    exchanged = [(i, {"es": "en", "en": "es"}[language], *others) for i, language, *others in drawn]
    assert run(["verify", claim, put_rows("exchanged.csv", exchanged)]) == 1


@given(st.permutations(range(6)))
def test_the_hash_of_rows_that_share_an_id_does_not_depend_on_their_order(order: list[int]) -> None:
    frame = pl.DataFrame(
        {
            "item": ["b", "a", "a", "a", "a", "b"],
            "label": [1, 0, 1, 1, 1, 0],
            "score": [0.5, 0.1, 0.7, 0.7, 0.2, 0.5],
            "codec": ["x", "y", "x", "x", "x", "x"],
        }
    )
    trials, moved = (
        hm.Trials.from_frame(f, hm.Header(slices=("codec",)), is_unique=True) for f in (frame, frame[order])
    )
    assert moved.content == trials.content
