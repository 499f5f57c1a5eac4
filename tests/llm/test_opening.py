"""Models that cannot be asked: one sentence, nothing left behind, and the next try just works."""

from __future__ import annotations

import json
import os
import signal
import socket
import time
from pathlib import Path

import pytest
from llm_parts import KEY, rows_of, write_dataset

pytest.importorskip("inspect_ai", reason="inspect_ai is not installed")

from forked import command, done, every, fork
from tests.llm.faulty import StandIn

from hitmiss.simulate.pictures import items as simulated

pytestmark = [pytest.mark.extras, pytest.mark.usefixtures("canary")]


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as found:
        return int(found.getsockname()[1])


def left(folder: Path) -> list[str]:
    """What is there beside the caches and what was said."""
    return sorted(p.name for p in folder.iterdir() if p.name not in ("home", "out", "err"))


@pytest.mark.parametrize(("fault", "why"), [("401", "Incorrect API key"), ("404", "does not exist")])
def test_what_a_server_refuses_stops_at_the_first_call(fault: str, why: str, pictures: Path, tmp_path: Path) -> None:
    is_wrong = True
    with StandIn(lambda seen: fault if is_wrong else None) as server:
        words = command(pictures, server, tmp_path / "r.jsonl", "--max-connections", "1")
        code, out, err = done(words, tmp_path)
        assert (code, len(server.requests)) == (5, 1)
        assert err.count("\n") <= 2 and "the first call failed" in err and why in err and KEY not in err + out
        assert left(tmp_path) == ["r.run"]  # the failed call is kept
        is_wrong = False
        assert done(words, tmp_path)[0] == 0
    assert len(rows_of(tmp_path / "r.jsonl")) == 24


def test_no_server(pictures: Path, tmp_path: Path) -> None:
    port = free_port()
    with StandIn() as server:
        words = command(pictures, server, tmp_path / "r.jsonl", "--limit", "3")
        absent = [w.replace(server.url, f"http://127.0.0.1:{port}/v1") for w in words]
        code, _, err = done(absent, tmp_path)
        assert code == 5 and f"there is no server at 127.0.0.1:{port} (Connection refused)" in err
        assert left(tmp_path) == []
        assert done(words, tmp_path)[0] == 0  # another address is no other run: there was none


def test_no_key_and_no_such_provider(pictures: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    for name, why in (("gpt-5.1", "OPENAI_API_KEY"), ("nobody/model", "nobody")):
        words = ["llm", "--dataset", str(pictures), "--models", name, "-o", str(tmp_path / "r.jsonl")]
        code, _, err = done(words, tmp_path)
        assert code == 5 and f"the model {name} cannot be asked" in err and why in err and left(tmp_path) == []


def test_a_run_where_every_call_failed_leaves_no_rows(pictures: Path, tmp_path: Path) -> None:
    with StandIn(lambda seen: "400") as server:
        words = command(pictures, server, tmp_path / "r.jsonl", "--limit", "3")
        code, _, err = done(words, tmp_path)
    assert code == 5 and "all 3 calls failed" in err and left(tmp_path) == ["r.run"]


def test_a_run_killed_before_its_first_answer_is_begun_afresh(pictures: Path, tmp_path: Path) -> None:
    is_slow = True
    with StandIn(lambda seen: "slow" if is_slow else None, slow=5) as server:
        words = command(pictures, server, tmp_path / "r.jsonl", "--limit", "3")
        process = fork(words, tmp_path)
        while not server.requests and process.is_alive():
            time.sleep(0.01)
        os.kill(process.pid or 0, signal.SIGKILL)
        process.join()
        assert left(tmp_path) == ["r.run"]
        is_slow = False
        other = [*words, "--temperature", "0.5"]  # nothing was answered, so nothing is bound to the first settings
        assert done(other, tmp_path)[0] == 0
    assert [r["run_config"]["temperature"] for r in rows_of(tmp_path / "r.jsonl")] == [0.5] * 3


def test_a_run_with_answers_stays(pictures: Path, tmp_path: Path) -> None:
    with StandIn(lambda seen: None if seen.number <= 2 else "401") as server:
        words = command(pictures, server, tmp_path / "r.jsonl", "--limit", "4", "--max-connections", "1")
        assert done(words, tmp_path)[0] == 0
    assert sum("error" in r for r in rows_of(tmp_path / "r.jsonl")) == 2


class TestAddressFromTheEnvironment:
    """The document's own command, word for word, against a server that a variable names."""

    WORDS = (
        "llm --dataset data/benchmark.jsonl --models gpt-5.1 --tools both --temperature 0.0 --trials 5 "
        "--output results.jsonl --metrics-output metrics.json"
    )

    @pytest.fixture(autouse=True)
    def place(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (tmp_path / "data" / "images").mkdir(parents=True)
        made = list(simulated(4, seed=1, side=32))
        for row, data in made:
            (tmp_path / "data" / row["image"]).write_bytes(data)
        write_dataset(tmp_path / "data", [row for row, _ in made], "benchmark.jsonl")
        monkeypatch.setenv("OPENAI_API_KEY", KEY)

    def test_the_document_s_command(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        with StandIn() as server:
            monkeypatch.setenv("OPENAI_BASE_URL", server.url)
            code, out, err = done(self.WORDS.split(), tmp_path, tmp_path)
            assert code == 0, err
            assert len(server.requests) == 4 * 5 * (1 + 2) and {seen.key for seen in server.requests} == {KEY}
        rows = rows_of(tmp_path / "results.jsonl")
        assert len(rows) == 4 * 5 * 2 and all(r["prediction"] for r in rows)
        assert {r["run_config"]["base_url"] for r in rows} == {server.url}
        assert set(json.loads((tmp_path / "metrics.json").read_text())) >= {"gpt-5.1|tools", "gpt-5.1|no-tools"}
        assert KEY not in out + err and not [f for f, data in every(tmp_path) if KEY.encode() in data]
        monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
        code, _, err = done([*self.WORDS.split(), "--resume"], tmp_path, tmp_path)
        assert code == 4 and "base_url" in err  # another server is another run

    @pytest.mark.parametrize("name", ["OPENAI_BASE_URL", "ANTHROPIC_BASE_URL", "--base-url"])
    def test_a_key_inside_an_address(self, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        secret, words = "hidden-in-the-url-77", self.WORDS.split()
        address = f"http://user:{secret}@127.0.0.1:{free_port()}/v1"
        if name.startswith("--"):
            words += [name, address]
        else:
            monkeypatch.setenv(name, address)
        code, out, err = done(["--debug", *words], tmp_path, tmp_path)
        assert code == 2 and name in err and secret not in out + err and left(tmp_path) == ["data"]
        assert not [f for f, data in every(tmp_path) if secret.encode() in data]
