"""The ledger of a run of models equals the log of the server that was asked, whatever goes wrong."""

from __future__ import annotations

import json
import os
import random
import signal
import time
from pathlib import Path
from typing import Any

import pytest
from llm_parts import rows_of

pytest.importorskip("inspect_ai", reason="inspect_ai is not installed")

from forked import command, done, fork
from tests.llm.faulty import Seen, StandIn

from hitmiss.llm.ledger import Account, account_of, read_ledger

pytestmark = [pytest.mark.extras, pytest.mark.usefixtures("canary")]

FAULTS = ("429", "500", "malformed", "cut", "drop", "400", "prose", "hang")


def named(entry: dict[str, Any]) -> str:
    return f"hitmiss-{entry['id']}"


def usage(body: bytes) -> int | None:
    try:
        return int(json.loads(body)["usage"]["total_tokens"])
    except (ValueError, KeyError):
        return None


def agree(folder: Path, server: StandIn) -> int:
    """Compare a ledger with the log of the server, request by request; return how many are in doubt."""
    entries = {named(entry): entry for entry in read_ledger(folder)}
    assert {seen.id for seen in server.requests} <= set(entries), "a request is not in the ledger"
    assert len({seen.id for seen in server.requests}) == len(server.requests), "two requests have one name"
    in_doubt = 0
    for name, entry in entries.items():
        outcome = entry["outcome"]
        if outcome is None:
            in_doubt += 1
        elif "status" in outcome:
            status, body = server.log[name]
            assert outcome["status"] == status
            spent = outcome.get("tokens")
            assert usage(body) == (None if spent is None else spent["input"] + spent["output"])
        else:
            assert outcome["error"], "a request that got no answer says why"
    return in_doubt


def test_ten_kills_and_every_fault(pictures: Path, tmp_path: Path) -> None:
    rng, out, folder, connections = random.Random(23), tmp_path / "r.jsonl", tmp_path / "r.run", 4

    def script(_: Seen) -> str | None:
        fault = rng.choice(FAULTS) if rng.random() < 0.15 else None
        return "slow" if fault == "hang" else fault

    with StandIn(script, slow=1.5) as server:
        more = ["--tools", "both", "--trials", "2", "--max-connections", str(connections), "--attempt-timeout", "1"]
        words = command(pictures, server, out, *more, "--limit", "16", "--vision-model", "eyes-1", "--resume")
        for _ in range(10):
            goal = len(server.requests) + rng.randint(1, 12)
            process = fork(words, tmp_path)
            while len(server.requests) < goal and process.is_alive():
                time.sleep(0.002)
            time.sleep(rng.random() * 0.05)
            os.kill(process.pid or 0, signal.SIGKILL)
            process.join()
            assert agree(folder, server) <= 10 * connections
        code, said, err = done([*words, "--json"], tmp_path)
        assert code == 0, err
        in_doubt = agree(folder, server)
        assert in_doubt <= 10 * connections
        told = json.loads(said)["ledger"]
        answered = {named(e) for e in read_ledger(folder) if "status" in (e["outcome"] or {})}
        assert told["tokens"] == sum(usage(server.log[name][1]) or 0 for name in answered)
        assert told["requests"] == len(read_ledger(folder)) and told["in_doubt"] == in_doubt
    rows = rows_of(out)
    assert len({(r["use_tools"], r["trial"], r["id"]) for r in rows}) == len(rows) == 16 * 2 * 2
    assert {entry["role"] for entry in read_ledger(folder)} == {"agent", "vision"}


def test_one_failed_call_does_not_blank_the_cost(pictures: Path, tmp_path: Path) -> None:
    (tmp_path / "prices.toml").write_text('["judge-1"]\ninput = 2\noutput = 8\n')
    with StandIn(lambda seen: "400" if seen.number == 3 else None) as server:
        words = command(pictures, server, tmp_path / "r.jsonl", "--limit", "5", "--max-connections", "1")
        code, out, err = done([*words, "--prices", str(tmp_path / "prices.toml"), "--json"], tmp_path)
    assert code == 0, err
    found = json.loads(out)
    tokens = [r["tokens"] for r in rows_of(tmp_path / "r.jsonl") if r["tokens"]]
    expected = sum(2 * t["input"] + 8 * t["output"] for t in tokens) / 1e6
    assert len(tokens) == 4 and found["cells"][0]["cost"] == pytest.approx(expected)
    assert found["ledger"]["cost"] == pytest.approx(expected) and found["ledger"]["failed"] == 1


def test_a_revoked_key_stops_within_twenty_calls(pictures: Path, tmp_path: Path) -> None:
    with StandIn(lambda seen: "401" if seen.number > 20 else None) as server:
        more = ["--trials", "4", "--max-connections", "4"]
        words = command(pictures, server, tmp_path / "r.jsonl", *more)
        code, _, err = done(words, tmp_path)
        assert code == 4 and "Incorrect API key" in err and "--resume" in err
        assert 20 < len(server.requests) <= 40
        server.script = lambda seen: None
        assert done([*words, "--resume", "--retry"], tmp_path)[0] == 0
        assert agree(tmp_path / "r.run", server) == 0
    assert not any("error" in row for row in rows_of(tmp_path / "r.jsonl"))


@pytest.mark.parametrize("budget", ["--max-cost", "--max-total-tokens", "--max-calls"])
def test_a_budget_is_kept_to_within_the_calls_in_flight(pictures: Path, tmp_path: Path, budget: str) -> None:
    (tmp_path / "prices.toml").write_text('["judge-1"]\ninput = 10000\noutput = 10000\n')
    connections, limits = 3, {"--max-cost": "5", "--max-total-tokens": "500", "--max-calls": "10"}
    with StandIn() as server:
        words = command(pictures, server, tmp_path / "r.jsonl", "--max-connections", str(connections))
        words += ["--prices", str(tmp_path / "prices.toml")]
        code, _, err = done([*words, budget, limits[budget]], tmp_path)
        assert code == 4 and f"{budget} {limits[budget]}" in err
        account, each = account_of(tmp_path / "r.run"), max(usage(body) or 0 for _, body in server.log.values())
        assert account == Account(account.requests, account.requests, 0, 0, account.tokens, account.cost)
        most = float(limits[budget])
        used = {"--max-cost": account.cost * 100, "--max-total-tokens": account.tokens, "--max-calls": account.requests}
        room = {"--max-cost": each, "--max-total-tokens": each, "--max-calls": 0}
        scale = {"--max-cost": 100.0}.get(budget, 1.0)
        assert most * scale <= used[budget] <= most * scale + connections * room[budget]
        assert done([*words, "--resume"], tmp_path)[0] == 0
        assert len(server.requests) == 24, "nothing is bought twice"


def test_a_budget_of_money_without_prices_is_refused_before_anything_is_bought(pictures: Path, tmp_path: Path) -> None:
    (tmp_path / "prices.toml").write_text('["judge-1"]\ninput = 2\noutput = 8\n')
    with StandIn() as server:
        words = command(pictures, server, tmp_path / "r.jsonl", "--max-cost", "1")
        code, _, err = done(words, tmp_path)
        assert code == 2 and "judge-1 has no price" in err
        more = ["--prices", str(tmp_path / "prices.toml"), "--vision-model", "eyes-1"]
        code, _, err = done([*words, *more], tmp_path)
        assert code == 2 and "eyes-1 has no price" in err and not server.requests


def test_too_many_failures_are_exit_4_and_can_be_asked_again(pictures: Path, tmp_path: Path) -> None:
    with StandIn(lambda seen: "400" if seen.number % 4 == 0 else None) as server:
        words = command(pictures, server, tmp_path / "r.jsonl", "--max-connections", "1", "--fail-rate", "0.1")
        code, _, err = done(words, tmp_path)
        assert code == 4 and "more than --fail-rate 0.1" in err and not (tmp_path / "r.jsonl").exists()
        asked = len(server.requests)
        server.script = lambda seen: None
        assert done([*words, "--resume", "--retry"], tmp_path)[0] == 0
        assert len(server.requests) - asked == 6, "only what failed is asked again"


def test_requests_per_minute(pictures: Path, tmp_path: Path) -> None:
    with StandIn() as server:
        words = command(pictures, server, tmp_path / "r.jsonl", "--requests-per-minute", "5", "--max-time", "8")
        assert done([*words, "--max-connections", "2"], tmp_path)[0] == 4
        assert len(server.requests) <= 7
