"""Two run tags are paired by (language, id), whatever the order of the rows; the page shows what the command prints."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from hitmiss.cli.main import run

ROOT = Path(__file__).resolve().parents[2]


def read(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(path.read_text(encoding="utf-8"))))


def write(path: Path, rows: list[dict[str, str]]) -> None:
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]))
    writer.writeheader()
    writer.writerows(rows)
    path.write_text(text.getvalue(), encoding="utf-8")


def test_the_order_of_rows_does_not_matter(rebuilt: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for language in ("es", "it", "tr"):
        rows = read(rebuilt / "predictions" / f"baseline_{language}.csv")
        write(tmp_path / f"a_{language}.csv", rows)
        changed = [{**r, "y_prob": repr(float(r["y_prob"]) ** (0.9 if r["y_true"] == "1" else 1.1))} for r in rows]
        write(tmp_path / f"b_{language}.csv", changed)
        write(tmp_path / f"c_{language}.csv", changed[::-1])
    seen = []
    for other in ("b", "c"):
        words = [
            "compare",
            f"{tmp_path}:a",
            f"{tmp_path}:{other}",
            "-p",
            "toxicity",
            "--by",
            "language",
            "-m",
            "roc_auc",
        ]
        assert run([*words, "--languages", "es", "it", "tr", "--json", "--bootstrap", "0"]) == 0
        text = capsys.readouterr().out
        data = json.loads(text)
        seen.append([{k: v for k, v in row.items() if k != "run"} for row in data["differences"]])
    assert seen[0] == seen[1] and len(seen[0]) >= 4


def test_the_page_shows_what_the_command_prints(rebuilt: Path, capsys: pytest.CaptureFixture[str]) -> None:
    where = ["--pred_dir", str(rebuilt / "predictions"), "--run_tag", "baseline", "--languages", "en", "es", "it", "tr"]
    assert run(["toxicity", *where]) == 0
    printed = capsys.readouterr().out
    page = (ROOT / "docs" / "toxicity.md").read_text(encoding="utf-8")
    block = page.split("```text\n")[1].split("```")[0]
    assert block in printed


def test_a_signature_can_be_verified_from_its_files(rebuilt: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = rebuilt / "predictions"
    words = ["--pred_dir", str(folder), "--run_tag", "baseline", "--languages", "es", "it", "--bootstrap", "200"]
    assert run(["toxicity", *words]) == 0
    signature = capsys.readouterr().out.strip().splitlines()[-1]
    files = [str(folder / f"baseline_{language}.csv") for language in ("es", "it")]
    assert run(["verify", signature, *files]) == 0
    assert "verified" in capsys.readouterr().out
    assert run(["verify", signature, files[0], str(folder / "baseline_tr.csv")]) == 1
