"""Blocks of labels below each other: recognised only if every block has the same items, and each once where that matters."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hitmiss.cli.main import run
from hitmiss.core.stacked import stacked

PAIRS = st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("xyz")), min_size=0, max_size=9)


@given(PAIRS)
def test_blocks_are_what_their_definition_says(pairs: list[tuple[str, str]]) -> None:
    frame = pl.DataFrame(pairs, schema={"item": pl.String, "target": pl.String}, orient="row")
    n = stacked(frame)
    blocks: dict[str, list[str]] = {}
    for item, target in pairs:
        blocks.setdefault(target, []).append(item)
    in_order = [(item, target) for target, items in blocks.items() for item in items] == pairs
    alike = len(blocks) > 1 and len({tuple(items) for items in blocks.values()}) == 1
    assert n == (len(next(iter(blocks.values()))) if in_order and alike else None)


def test_a_text_that_stands_twice_in_a_wide_file_is_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [f"c{i},{i % 2},{(i // 2) % 2},0.{1 + i % 8},0.{2 + i % 7}" for i in range(20)]
    head = "id,toxic,insult,toxic_prob,insult_prob"
    for verb in (["score", "-p", "toxicity"], ["toxicity"]):
        path = tmp_path / "w.csv"
        path.write_text("\n".join([head, *rows]) + "\n")
        words = [verb[0], str(path), *verb[1:], "--bootstrap", "0", "--json"]
        assert run(words) == 0
        capsys.readouterr()
        path.write_text("\n".join([head, *rows, "c3,0,0,0.9,0.9"]) + "\n")
        assert run(words) == 3
        assert "c3" in json.dumps(json.loads(capsys.readouterr().out)["error"])
