"""A claim of streamed trials holds for the same rows in another order, and for no others."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

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


def test_a_claim_of_memory_holds_for_sorted_rows(tmp_path: Path) -> None:
    rows, claim = rows_of(100), str(tmp_path / "results.json")
    assert run(["score", put(tmp_path / "s.tsv", rows), "-m", "eer", "-o", claim]) == 0
    assert run(["verify", claim, put(tmp_path / "sorted.tsv", sorted(rows))]) == 0
