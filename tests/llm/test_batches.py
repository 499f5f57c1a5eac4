"""Requests in batches: files of requests, asked after until they are done; each is in the ledger, and bought once."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import pytest
from llm_parts import rows_of

pytest.importorskip("inspect_ai", reason="inspect_ai is not installed")

from tests.llm.faulty import FaultyHandler, StandIn
from tests.llm.running import run_llm

from hitmiss.core.ask_spec import AskSpec
from hitmiss.core.errors import UsageError
from hitmiss.core.run_spec import RunSpec
from hitmiss.llm import language_models
from hitmiss.llm.items import read_items
from hitmiss.llm.ledger import account_of, read_ledger
from hitmiss.llm.openai_forms import as_chat, as_response
from hitmiss.llm.plan import CallPlan
from hitmiss.llm.standin import completion

pytestmark = [pytest.mark.extras, pytest.mark.usefixtures("canary")]
FAILED = {"code": 400, "message": "bad request"}


class BatchHandler(FaultyHandler):
    """Takes files of requests and answers them when it is asked for the second time."""

    files: ClassVar[dict[str, bytes]] = {}
    batches: ClassVar[list[dict[str, Any]]] = []
    polls: ClassVar[list[str]] = []

    def do_POST(self) -> None:
        data = self.rfile.read(int(self.headers["Content-Length"]))
        self.name = ""
        if self.path.endswith("/files"):
            name = f"in-{len(self.files)}"
            self.files[name] = b"\n".join(re.findall(rb'\{"custom_id".*', data))
            about = {"object": "file", "bytes": len(data), "created_at": 1, "filename": "f", "purpose": "batch"}
            self.reply(200, {"id": name, **about})
            return
        asked = json.loads(data)
        lines = [json.loads(line) for line in self.files[asked["input_file_id"]].splitlines()]
        batch = {"id": f"batch-{len(self.batches)}", "n": len(lines), "lines": lines, "endpoint": asked["endpoint"]}
        self.batches.append(batch)
        self.reply(200, self.told(batch, "validating"))

    def do_GET(self) -> None:
        self.name = ""
        if self.path.endswith("/content"):
            self.send(200, self.files[self.path.split("/")[-2]])
            return
        batch = next(b for b in self.batches if b["id"] == self.path.split("/")[-1])
        self.polls.append(batch["id"])
        if self.polls.count(batch["id"]) == 1:
            self.reply(200, self.told(batch, "in_progress"))
            return
        lines = [self.answered(line) for line in batch["lines"]]
        self.files[f"out-{batch['id']}"] = b"\n".join(json.dumps(line).encode() for line in lines)
        self.reply(200, {**self.told(batch, "completed"), "output_file_id": f"out-{batch['id']}"})

    def answered(self, line: Mapping[str, Any]) -> dict[str, Any]:
        is_response = line["url"].endswith("/responses")
        body = as_chat(line["body"]) if is_response else line["body"]
        seen = self.owner.note(body, "", 100, line["custom_id"])
        if self.owner.script(seen):
            return {"custom_id": line["custom_id"], "response": None, "error": FAILED}
        found = completion(body, seen)
        made = as_response(found) if is_response else found
        return {"custom_id": line["custom_id"], "response": {"status_code": 200, "body": made}, "error": None}

    @staticmethod
    def told(batch: Mapping[str, Any], status: str) -> dict[str, Any]:
        about = {"object": "batch", "endpoint": batch["endpoint"], "completion_window": "24h", "created_at": 1}
        return {"id": batch["id"], **about, "input_file_id": "f", "status": status}


@pytest.fixture
def batching(monkeypatch: pytest.MonkeyPatch) -> type[BatchHandler]:
    fresh = type("Fresh", (BatchHandler,), {"files": {}, "batches": [], "polls": []})
    monkeypatch.setattr(StandIn, "handler", fresh)
    monkeypatch.setattr(language_models, "SECONDS", 0.05)
    return fresh


def test_requests_go_in_batches_and_nothing_is_bought_twice(
    pictures: Path, tmp_path: Path, batching: type[BatchHandler], capsys: pytest.CaptureFixture[str]
) -> None:
    items = read_items(pictures)[:10]
    with StandIn() as server:
        asked = AskSpec(base_url=server.url, provider="openai", batch=5, max_retries=0)
        for trials in (1, 2):
            plan = CallPlan(items, ["judge-1"], trials=trials, settings=asked)
            run_llm(plan, RunSpec(resume=trials > 1), output=tmp_path / "r.jsonl", key="k")
            assert sum(batch["n"] for batch in batching.batches) == 10 * trials
    assert all(batch["n"] <= 5 for batch in batching.batches)
    assert not capsys.readouterr().out, "what is printed belongs to the command"
    rows = rows_of(tmp_path / "r.jsonl")
    assert len(rows) == 20 and not any("error" in row for row in rows)
    entries = read_ledger(tmp_path / "r.run")
    account = account_of(tmp_path / "r.run")
    assert (account.requests, account.answered, account.in_doubt) == (20, 20, 0)
    assert account.tokens == sum(r["tokens"]["input"] + r["tokens"]["output"] for r in rows) > 0
    assert {e["call"] for e in entries} == {f"judge-1|no-tools|{r['trial']}|{r['id']}" for r in rows}


def test_what_failed_in_a_batch_is_asked_again(pictures: Path, tmp_path: Path, batching: type[BatchHandler]) -> None:
    items = read_items(pictures)[:10]
    with StandIn(lambda seen: "400" if (seen.item, seen.times) == (items[3].sha256, 1) else None) as server:
        plan = CallPlan(items, ["judge-1"], settings=AskSpec(base_url=server.url, provider="openai", batch=5))
        run_llm(plan, output=tmp_path / "r.jsonl", key="k")
        failed = [row["id"] for row in rows_of(tmp_path / "r.jsonl") if "error" in row]
        assert items[3].id in failed and len(failed) <= 5
        run_llm(plan, RunSpec(resume=True, retry=True), output=tmp_path / "r.jsonl", key="k")
    assert not any("error" in row for row in rows_of(tmp_path / "r.jsonl"))
    assert sum(batch["n"] for batch in batching.batches) == 10 + len(failed)


def test_a_provider_without_batches_is_refused(pictures: Path, tmp_path: Path) -> None:
    with StandIn() as server:
        plan = CallPlan(read_items(pictures), ["judge-1"], settings=AskSpec(base_url=server.url, batch=5))
        with pytest.raises(UsageError, match="takes no batches"):
            run_llm(plan, output=tmp_path / "r.jsonl")
        assert not server.requests
    with pytest.raises(UsageError, match="batch"):
        AskSpec(batch=0)
