"""Plain requests, without inspect_ai: the same requests and rows, in the ledger before they are sent, and repeated if it helps."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from llm_parts import rows_of, write_dataset

pytest.importorskip("httpx", reason="httpx is not installed")
pytest.importorskip("inspect_ai", reason="inspect_ai is not installed")

from forked import command, done
from tests.llm.faulty import Seen, StandIn
from tests.llm.running import run_llm

from hitmiss.core.ask_spec import AskSpec
from hitmiss.llm.items import read_items
from hitmiss.llm.ledger import read_ledger
from hitmiss.llm.plan import CallPlan

pytestmark = [pytest.mark.extras, pytest.mark.usefixtures("canary")]

THROUGH_INSPECT = ("--provider", "openai-api/hitmiss")
"""Has inspect_ai send the same requests."""


class Recording(StandIn):
    """A server that keeps the whole of every request."""

    def __init__(self) -> None:
        super().__init__()
        self.bodies: list[dict[str, Any]] = []

    def note(self, body: Any, key: str, length: int = 0, name: str = "") -> Seen:
        self.bodies.append(dict(body))
        return super().note(body, key, length, name)


@pytest.fixture
def everything(tmp_path: Path, pictures: Path) -> Path:
    """A text, a picture and two sounds, one of which is sent in another form."""
    import soundfile

    picture = read_items(pictures)[0]
    (tmp_path / "p.jpg").write_bytes(picture.load())
    for form in ("wav", "flac"):
        soundfile.write(tmp_path / f"s.{form}", np.linspace(-0.5, 0.5, 400), 8000)
    items = {"text": 'Grüße, "quoted"', "image": "p.jpg"}
    rows: list[dict[str, Any]] = [{"id": kind, kind: value, "label": "real"} for kind, value in items.items()]
    rows += [{"id": form, "audio": f"s.{form}", "label": "fake", "meta": {"about": form}} for form in ("wav", "flac")]
    return write_dataset(tmp_path, rows)


def settings(tmp_path: Path, which: str) -> list[str]:
    (tmp_path / "rules.txt").write_text("Is it {{positive}}? Answer in JSON.")
    shown = write_dataset(tmp_path, [{"id": "e", "text": "an example", "label": "fake"}], "examples.jsonl")
    return {
        "plain": [],
        "all": [
            *("--seed", "7", "--max-tokens", "99", "--reasoning-effort", "low", "--logprobs", "--temperature", "0.5"),
            *("--examples", str(shown), "--prompt", str(tmp_path / "rules.txt")),
        ],
        "roles": ["--vision-model", "eyes-1", "--structuring-model", "form-1", "--seed", "3"],
    }[which]


@pytest.mark.parametrize("which", ["plain", "all", "roles"])
def test_the_requests_and_rows_are_those_through_inspect_ai(everything: Path, tmp_path: Path, which: str) -> None:
    sent, rows = [], []
    for name, through in (("plain", ()), ("inspect", THROUGH_INSPECT)):
        with Recording() as server:
            words = command(everything, server, tmp_path / f"{name}.jsonl", *settings(tmp_path, which), *through)
            code, _, err = done([*words, "--max-connections", "1"], tmp_path)
            assert code == 0, err
            sent.append(sorted(json.dumps(body, sort_keys=True) for body in server.bodies))
        rows.append([_lasting(row) for row in rows_of(tmp_path / f"{name}.jsonl")])
    assert sent[0] == sent[1] and len(sent[0]) == 4 * (3 if which == "roles" else 1)
    assert rows[0] == rows[1]


def _lasting(row: dict[str, Any]) -> dict[str, Any]:
    """Leave out of a row what differs from run to run: times, and the number that the server gives an answer."""
    timed = ("timings", "latency_seconds", "timestamp", "rationale", "raw_analysis", "description")
    row["run_config"].pop("base_url")
    return {name: value for name, value in row.items() if name not in timed}


def test_inspect_ai_is_not_imported(pictures: Path, tmp_path: Path) -> None:
    with StandIn() as server:
        words = command(pictures, server, tmp_path / "r.jsonl", "--limit", "3")
        code = f"import sys; from hitmiss.cli.main import run; run({words!r}); sys.exit('inspect_ai' in sys.modules)"
        assert subprocess.run([sys.executable, "-c", code], capture_output=True).returncode == 0
    assert len(rows_of(tmp_path / "r.jsonl")) == 3


def test_requests_are_on_the_disk_before_they_are_sent(
    pictures: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger, fsync, synced, too_early = tmp_path / "r.run" / "ledger", os.fsync, [0], list[str]()
    n_syncs = 0

    def counted(fd: int) -> None:
        nonlocal n_syncs
        size = os.fstat(fd).st_size
        is_ledger = any(os.path.samestat(os.fstat(fd), path.stat()) for path in ledger.glob("*.jsonl"))
        fsync(fd)
        if is_ledger:
            n_syncs, synced[0] = n_syncs + 1, max(synced[0], size)

    def script(seen: Seen) -> None:
        written = next(ledger.glob("*.jsonl")).read_bytes()[: synced[0]]
        if f'"{seen.id.removeprefix("hitmiss-")}"'.encode() not in written:
            too_early.append(seen.id)

    monkeypatch.setattr(os, "fsync", counted)
    with StandIn(script) as server:
        asked = AskSpec(base_url=server.url, max_connections=12)
        plan = CallPlan(read_items(pictures), ["judge-1"], trials=5, settings=asked)
        run_llm(plan, output=tmp_path / "r.jsonl")
    assert not too_early and len(server.requests) == len(read_ledger(tmp_path / "r.run")) == 120
    assert n_syncs < 100, "requests that come together share a sync"


def test_an_account_that_is_used_up_stops_the_run_at_once(pictures: Path, tmp_path: Path) -> None:
    with StandIn(lambda seen: "quota" if seen.number > 4 else None) as server:
        words = command(pictures, server, tmp_path / "r.jsonl", "--max-connections", "2", "--trials", "3")
        code, _, err = done(words, tmp_path)
        assert code == 4 and "insufficient_quota" in err
        assert len(server.requests) <= 4 + 5 + 2, "no request is repeated, and five refusals end the run"


def test_a_hanging_request_is_sent_again(pictures: Path, tmp_path: Path) -> None:
    with StandIn(lambda seen: "slow" if seen.times == 1 else None, slow=3.0) as server:
        words = command(pictures, server, tmp_path / "r.jsonl", "--limit", "3", "--attempt-timeout", "1")
        assert done(words, tmp_path)[0] == 0
    entries = read_ledger(tmp_path / "r.run")
    assert sorted(str(e["outcome"].get("error")) for e in entries) == ["None"] * 3 + ["timeout"] * 3  # type: ignore[union-attr, attr-defined]
    assert [row["retries"] for row in rows_of(tmp_path / "r.jsonl")] == [1, 1, 1]
