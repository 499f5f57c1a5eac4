"""Answers are a stage of their own: kept, read again at no cost, each with its outcome; a run is estimated first."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from llm_parts import rows_of

pytest.importorskip("inspect_ai", reason="inspect_ai is not installed")

from forked import command, done
from tests.llm.faulty import StandIn

from hitmiss.llm.items import read_items
from hitmiss.llm.parsers import PARSERS

pytestmark = [pytest.mark.extras, pytest.mark.usefixtures("canary")]

FAULTS = {"prose": "unparsed", "refusal": "refused", "length": "cut", "400": "failed", "empty": "unparsed"}


@pytest.fixture
def ran(pictures: Path, tmp_path: Path) -> Any:
    """One picture per fault, the others answered as they should be."""
    items = read_items(pictures)
    faults = dict(zip((item.sha256 for item in items), FAULTS, strict=False))
    server = StandIn(lambda seen: faults.get(seen.item))
    with server:
        words = command(pictures, server, tmp_path / "r.jsonl", "--limit", "12", "--max-connections", "1")
        code, out, err = done([*words, "--json"], tmp_path)
    assert code == 0, err
    return words, server, json.loads(out), tmp_path


def test_every_outcome_has_its_rate_and_interval(ran: Any) -> None:
    _, _, told, folder = ran
    rows = rows_of(folder / "r.jsonl")
    assert [row["outcome"] for row in rows[: len(FAULTS)]] == list(FAULTS.values())
    for row in rows[len(FAULTS) :]:
        assert row["outcome"] == ("abstained" if row["prediction"] == "uncertain" else "answered")
    found = {rate["outcome"]: rate for rate in told["outcomes"]}
    assert sum(rate["count"] for rate in found.values()) == 12
    for outcome, rate in found.items():
        n = sum(row["outcome"] == outcome for row in rows)
        centre, z = n / 12, 1.959963984540054
        half = z * ((centre * (1 - centre) + z * z / 48) / 12) ** 0.5 / (1 + z * z / 12)
        middle = (centre + z * z / 24) / (1 + z * z / 12)
        assert (rate["low"], rate["high"]) == pytest.approx((middle - half, middle + half))  # Wilson 1927


def test_answers_are_read_again_at_no_cost(ran: Any) -> None:
    words, server, _, folder = ran
    before = rows_of(folder / "r.jsonl")
    texts = [row["raw_analysis"] for row in before if "error" not in row]
    asked = len(server.requests)
    code, _, err = done([*words, "--reparse", "--parser", "strict"], folder)  # the server is off: nothing can be asked
    assert code == 0, err
    again = rows_of(folder / "r.jsonl")
    assert len(server.requests) == asked and [r["raw_analysis"] for r in again if "error" not in r] == texts
    assert {row["run_config"]["parser"] for row in again} == {str(PARSERS["strict"])}
    for row, text in zip([r for r in again if "error" not in r], texts, strict=True):
        try:
            verdict = json.loads(text)["verdict"]
        except (ValueError, KeyError):
            verdict = None
        assert row["prediction"] == verdict
    code, _, err = done([*words, "--reparse"], folder)
    assert code == 0, err
    assert rows_of(folder / "r.jsonl") == before


def test_reparse_needs_a_run_that_is_done(pictures: Path, tmp_path: Path) -> None:
    with StandIn() as server:
        words = command(pictures, server, tmp_path / "r.jsonl", "--limit", "6", "--max-connections", "1")
        code, _, err = done([*words, "--reparse"], tmp_path)
        assert code == 2 and "holds none" in err and not server.requests
        assert done([*words, "--max-calls", "2"], tmp_path)[0] == 4
        code, _, err = done([*words, "--reparse"], tmp_path)
        assert code == 4 and "not finished" in err and len(server.requests) == 2
        assert done([*words, "--reparse", "--parser", "loose"], tmp_path)[0] == 2


def test_a_dry_run_asks_nothing_and_says_what_the_run_will_take(pictures: Path, tmp_path: Path) -> None:
    (tmp_path / "prices.toml").write_text('["judge-1"]\ninput = 2\noutput = 8\n')
    with StandIn() as server:
        words = command(pictures, server, tmp_path / "r.jsonl", "--limit", "6", "--tools", "both", "--trials", "2")
        words += ["--prices", str(tmp_path / "prices.toml"), "--max-connections", "1", "--json"]
        code, out, err = done([*words, "--dry-run"], tmp_path)
        assert code == 0 and not server.requests and not (tmp_path / "r.run").exists(), err
        cells = json.loads(out)["cells"]
        assert [(c["calls"], c["requests"]) for c in cells] == [(12, 12), (12, 24)]
        for cell in cells:
            cost = (2 * cell["input_tokens"] + 8 * cell["output_tokens"]) / 1e6
            assert cell["cost"] == pytest.approx(cost) and cost > 0
        assert done([*words, "--max-calls", "5"], tmp_path)[0] == 4
        left = json.loads(done([*words, "--resume", "--dry-run"], tmp_path)[1])["cells"]
        # without and with tools by turns: the fourth conversation takes the requests from 4 to 6
        assert sum(cell["calls"] for cell in left) == 24 - 4 and all(cell["is_measured"] for cell in left)
        assert done([*words, "--resume"], tmp_path)[0] == 0
        assert len(server.requests) == sum(cell["requests"] for cell in cells)
