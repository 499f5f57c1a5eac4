"""What others see of a run: logs for `inspect view`, and the transcript of each answer in a report."""

from __future__ import annotations

import base64
import json
from html import escape
from pathlib import Path

import pytest
from llm_parts import rows_of

pytest.importorskip("inspect_ai", reason="inspect_ai is not installed")

from forked import command, done
from tests.llm.faulty import Seen, StandIn

from hitmiss.cli.main import run
from hitmiss.llm.items import read_items

pytestmark = [pytest.mark.extras, pytest.mark.usefixtures("canary")]


@pytest.fixture
def logs(pictures: Path, tmp_path: Path) -> dict[str, object]:
    """A run with and without tools; the second request with results of tools is refused for good."""
    from inspect_ai.log import read_eval_log

    n_with_results = 0

    def script(seen: Seen) -> str | None:
        nonlocal n_with_results
        n_with_results += seen.n_results > 0
        return "400" if seen.n_results and n_with_results == 2 else None

    with StandIn(script) as server:
        code, _, err = done(command(pictures, server, tmp_path / "r.jsonl", "--tools", "both"), tmp_path)
    assert code == 0, err
    found = {p.stem[4:]: read_eval_log(str(p), resolve_attachments=True) for p in tmp_path.glob("r.run/logs/*.eval")}
    return {"folder": tmp_path, **found}


def test_inspect_sees_inputs_pictures_turns_and_scores(logs: dict, pictures: Path) -> None:
    rows = {(r["id"], r["use_tools"]): r for r in rows_of(logs["folder"] / "r.jsonl")}
    items = {item.id: item for item in read_items(pictures)}
    for mode, use_tools in (("no-tools", False), ("tools", True)):
        log = logs[mode]
        assert len(log.samples) == len(items)
        right = sum(rows[s.id, use_tools]["prediction"] == s.target for s in log.samples)
        assert log.results.scores[0].metrics["accuracy"].value == right / len(items)
        for sample in log.samples:
            row, item = rows[sample.id, use_tools], items[sample.id]
            assert sample.scores["verdict"].value == ("C" if row["prediction"] == row["label"] else "I")
            sent = sample.input[1].content[1].image
            assert base64.b64decode(sent.partition(",")[2]) == item.load()
            called = [call.function for m in sample.messages for call in getattr(m, "tool_calls", None) or ()]
            assert called == [d["tool"] for d in row["tool_details"]] and bool(called) == use_tools
            assert [e.function for e in sample.events if e.event == "tool"] == called
            answered = [m for m in sample.messages if m.role == "assistant"]
            assert "error" in row or answered[-1].text == row["raw_analysis"]


def test_a_failed_call_keeps_its_turns_and_says_why(logs: dict) -> None:
    [failed] = [r for r in rows_of(logs["folder"] / "r.jsonl") if "error" in r]
    [sample] = [s for s in logs["tools"].samples if s.id == failed["id"]]
    assert failed["error"] in sample.scores["verdict"].explanation and sample.scores["verdict"].value == "I"
    assert [m.role for m in sample.messages][2:4] == ["assistant", "tool"]
    assert [t["role"] for t in failed["turns"]][:2] == ["assistant", "tool"]


def test_a_report_opens_the_transcript_of_an_answer(logs: dict, capsys: pytest.CaptureFixture[str]) -> None:
    page = logs["folder"] / "report.html"
    assert run(["report", str(logs["folder"] / "r.run"), "-p", "triage", "-o", str(page)]) == 0, capsys.readouterr().err
    html = page.read_text()
    wrong = [
        r for r in rows_of(logs["folder"] / "r.jsonl") if r["use_tools"] and r["prediction"] not in (None, r["label"])
    ]
    assert [r for r in wrong if r["prediction"] != "uncertain"], "the stand-in errs"
    assert "<summary>transcript</summary>" in html and "→ metadata()" in html
    [failed] = [r for r in rows_of(logs["folder"] / "r.jsonl") if "error" in r]
    shown = html[html.index("no answer") :]
    assert failed["id"] in shown and escape(failed["error"]) in shown and "← metadata:" in shown


def test_models_are_asked_by_turns(pictures: Path, tmp_path: Path) -> None:
    with StandIn() as server:
        words = command(pictures, server, tmp_path / "r.jsonl", "--max-connections", "2")
        words.insert(words.index("judge-1") + 1, "judge-2")
        code, _, err = done(words, tmp_path)
    assert code == 0, err
    asked = [seen.model for seen in server.requests]
    assert all(asked[:n].count("judge-2") >= n // 2 - 2 for n in range(len(asked))), "one model waits for the other"
    rows = rows_of(tmp_path / "r.jsonl")
    ids = [json.loads(line)["id"] for line in pictures.read_text().splitlines()]
    assert [(r["model"], r["id"]) for r in rows] == [(m, i) for m in ("judge-1", "judge-2") for i in ids]
