"""Names of so many columns that they do not fit into the first look at a file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hitmiss.cli.main import run

N = 12_000
"""Columns beside the three that are used: their names take 130 kB and more."""


@pytest.mark.parametrize("how", [(), ("--stream",)])
@pytest.mark.parametrize("quote", ["", '"'])
def test_a_file_of_many_columns_is_read(
    how: tuple[str, ...], quote: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = ["id", "label", "score", *(f"{quote}column{i:05}{quote}" for i in range(N))]
    rows = [[f"a{i}", str(i % 2), str(i * 7 % 5), *(["0"] * N)] for i in range(8)]
    (tmp_path / "wide.csv").write_text("\n".join(map(",".join, [names, *rows])) + "\n")
    (tmp_path / "few.csv").write_text("\n".join(",".join(row[:3]) for row in [names, *rows]) + "\n")
    found = []
    for name in ("wide.csv", "few.csv"):
        assert run(["score", str(tmp_path / name), "-m", "roc_auc", "--bootstrap", "0", "--json", *how]) == 0
        found.append([(e["metric"], e["value"], e["n"]) for e in json.loads(capsys.readouterr().out)["estimates"]])
    assert found[0] == found[1]
