"""The sample rows of the page on input formats are read, each as its sentence says."""

from __future__ import annotations

import re
from pathlib import Path

import hitmiss as hm

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "files.md").read_text(encoding="utf-8")
SECTION = PAGE.partition("## Sample rows\n")[2].partition("\n## ")[0]


def test_the_sample_rows_are_read(tmp_path: Path) -> None:
    table, scores, key, systems, predictions, verdicts, answers, targets = re.findall(
        r"```text\n(.*?)```", SECTION, re.S
    )

    def saved(name: str, text: str) -> Path:
        (tmp_path / name).write_text(text, encoding="utf-8")
        return tmp_path / name

    assert hm.read(saved("a.csv", table), positive="fake").header.slices == ("codec", "speaker")
    joined = hm.read(saved("b.tsv", scores), saved("b.key", key))
    assert joined.score.tolist() == [2.3917] and joined.column("codec").to_list() == ["C05"]
    two = hm.read(saved("c.csv", systems), score_columns=["a", "b"])
    assert two.column("system").to_list() == ["a", "b"]
    assert hm.evaluate(saved("base_en.csv", predictions), protocol="toxicity")["accuracy"].value == 1.0
    both = hm.evaluate(saved("d.jsonl", verdicts), protocol="triage")
    assert both["coverage"].value == 0.5
    asked = hm.read(saved("e.jsonl", answers), positive="fake")
    assert asked.score.tolist() == [0.81] and asked.label.tolist() == [1]
    assert hm.read(saved("f.csv", targets)).has_targets
