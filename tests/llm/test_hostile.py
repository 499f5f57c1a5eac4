"""What servers, models and users do to a run: each right, or one clear sentence."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from llm_parts import KEY, rows_of, write_dataset

pytest.importorskip("inspect_ai", reason="inspect_ai is not installed")

from forked import command, done, every, fork
from tests.llm.faulty import Seen, StandIn

from hitmiss.llm.items import read_items
from hitmiss.runs.manifest import require_complete

pytestmark = [pytest.mark.extras, pytest.mark.usefixtures("canary")]

UNPARSED = {
    "german": "'falsch', not real, fake or uncertain",
    "word": "'probably', not real",
    "two": "2 verdicts that disagree",
    "refusal": "states no verdict",
    "length": "it was cut off at the most tokens",
    "empty": "the answer is empty",
}
DOUBTFUL = {"nan": "nan, not a number from 0 to 1", "range": "97, not a number from 0 to 1"}
"""A verdict whose confidence cannot be read."""
PER_CENT = "percent"
PASSING = ("wait", "cut", "drop", "malformed")
LASTING = ("403", "404", "400")


@pytest.fixture(scope="module")
def spoilt(pictures: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """One picture for each fault: those of PASSING at the first request about it only."""
    folder = tmp_path_factory.mktemp("spoilt")
    items = read_items(pictures)
    faults = dict(
        zip((i.sha256 for i in items[1:]), (*UNPARSED, *DOUBTFUL, PER_CENT, *PASSING, *LASTING), strict=False)
    )
    when: dict[str, list[float]] = defaultdict(list)

    def script(seen: Seen) -> str | None:
        when[seen.item].append(time.monotonic())
        fault = faults.get(seen.item)
        return None if fault in PASSING and seen.times > 1 else fault

    with pytest.MonkeyPatch.context() as patch:
        for name in ("XDG_CACHE_HOME", "XDG_DATA_HOME"):
            patch.setenv(name, str(folder / name))
        patch.setenv("CANARY_API_KEY", KEY)
        with StandIn(script) as server:
            words = command(pictures, server, folder / "r.jsonl", "--limit", "17", "--max-connections", "1")
            code, out, err = done(words, folder)
    rows = {faults.get(i.sha256, "honest"): r for i, r in zip(items, rows_of(folder / "r.jsonl"), strict=False)}
    times = {faults.get(sha, "honest"): at for sha, at in when.items()}
    return code, out + err, rows, times, folder


class TestAnswers:
    def test_every_fault_fell(self, spoilt: Any) -> None:
        code, _, rows, _, _ = spoilt
        assert code == 0 and set(rows) == {"honest", *UNPARSED, *DOUBTFUL, PER_CENT, *PASSING, *LASTING}

    @pytest.mark.parametrize("fault", UNPARSED)
    def test_what_is_not_understood_is_no_verdict(self, fault: str, spoilt: Any) -> None:
        row = spoilt[2][fault]
        assert row["prediction"] is None and row["confidence"] is None and "error" not in row
        assert UNPARSED[fault] in row["problem"], row["problem"]

    @pytest.mark.parametrize("fault", DOUBTFUL)
    def test_a_confidence_that_cannot_be_read_leaves_the_verdict(self, fault: str, spoilt: Any) -> None:
        row = spoilt[2][fault]
        assert row["prediction"] == "real" and row["confidence"] is None and DOUBTFUL[fault] in row["problem"]
        assert "2 verdicts have no confidence" in spoilt[1]

    def test_per_cent_are_understood_where_the_value_says_so(self, spoilt: Any) -> None:
        row = spoilt[2][PER_CENT]
        assert (row["prediction"], row["confidence"], row["problem"]) == ("real", 0.85, "")

    @pytest.mark.parametrize("fault", PASSING)
    def test_what_passes_is_asked_again(self, fault: str, spoilt: Any) -> None:
        row, times = spoilt[2][fault], spoilt[3][fault]
        assert row["prediction"] in ("real", "fake", "uncertain") and "error" not in row and len(times) == 2

    def test_the_wait_that_a_server_asks_for_is_kept(self, spoilt: Any) -> None:
        first, second = spoilt[3]["wait"]
        assert second - first >= 2.0  # Retry-After: 2

    @pytest.mark.parametrize("fault", LASTING)
    def test_what_lasts_is_an_error_row(self, fault: str, spoilt: Any) -> None:
        row, times = spoilt[2][fault], spoilt[3][fault]
        assert row["prediction"] is None and row["error"] and len(times) == 1
        kinds = {"403": "permission", "404": "not_found"}
        assert row["error_type"] == kinds.get(fault, "exception")

    def test_the_key_is_nowhere(self, spoilt: Any) -> None:
        _, said, rows, _, folder = spoilt
        assert "[key removed]" in rows["403"]["error"] and KEY not in said  # the server did echo it
        assert [f for f, data in every(folder) if KEY.encode() in data] == []


def small_disk() -> None:
    """No file may grow beyond 12 kB."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (12_000, 12_000))


class TestUse:
    def test_two_processes_on_one_output(self, pictures: Path, tmp_path: Path) -> None:
        first, second = tmp_path / "first", tmp_path / "second"
        first.mkdir(), second.mkdir()
        with StandIn(lambda seen: "slow", slow=0.5) as server:
            words = command(pictures, server, tmp_path / "r.jsonl", "--limit", "6", "--max-connections", "1")
            process = fork(words, first)
            while len(server.requests) < 1 and process.is_alive():
                time.sleep(0.01)
            for more, code, why in (
                ([], 4, "holds a run that is not finished"),
                (["--resume"], 5, f"process {process.pid} on"),
            ):
                assert done([*words, *more], second)[0] == code and why in (second / "err").read_text()
            process.join()
            assert process.exitcode == 0 and len(server.requests) == 6
        assert len(rows_of(tmp_path / "r.jsonl")) == 6

    def test_no_server_sends_items_on_to_another(self, pictures: Path, tmp_path: Path) -> None:
        with StandIn() as other, StandIn(lambda seen: f"{other.url}/chat/completions") as server:
            words = command(pictures, server, tmp_path / "r.jsonl", "--max-connections", "1")
            code, _, err = done(words, tmp_path)
        assert code == 5 and "307" in err and (len(server.requests), len(other.requests)) == (1, 0)
        assert not (tmp_path / "r.jsonl").exists()

    def test_a_full_disk(self, pictures: Path, tmp_path: Path) -> None:
        """Files may grow to 12 kB: less than the answers take, and far less than what inspect_ai logs."""
        with StandIn() as server:
            words = command(pictures, server, tmp_path / "r.jsonl", "--max-connections", "1")
            limited = [sys.executable, "-m", "hitmiss", *words, "--trials", "3"]
            alone = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}  # or half of a module's code would be left behind
            ended = subprocess.run(limited, preexec_fn=small_disk, env=alone, capture_output=True, text=True)
            assert ended.returncode == 5 and "the disk is full" in ended.stderr, ended.stderr
            assert KEY not in ended.stderr
            assert not (tmp_path / "r.jsonl").exists()
            kept = sum(path.read_bytes().count(b"\n") for path in (tmp_path / "r.run" / "items").glob("*.jsonl"))
            asked = len(server.requests)
            assert 0 < kept <= asked < 72
            assert done([*words, "--trials", "3", "--resume"], tmp_path)[0] == 0
            assert len(server.requests) - asked == 72 - kept
        assert len(rows_of(tmp_path / "r.jsonl")) == 72

    def test_a_run_grows_by_items_trials_and_models_and_nothing_is_bought_twice(
        self, pictures: Path, tmp_path: Path
    ) -> None:
        with StandIn() as server:
            words = command(pictures, server, tmp_path / "r.jsonl")
            at = words.index("judge-1") + 1
            steps = (
                (["--limit", "2"], [], 2),
                (["--limit", "5"], [], 5),
                (["--limit", "5", "--trials", "2"], [], 10),
                (["--limit", "5", "--trials", "2"], ["judge-2"], 20),
            )
            kept: list[str] = []
            for more, models, n in steps:
                code, _, err = done([*words[:at], *models, *words[at:], *more, "--resume"], tmp_path)
                assert code == 0, err
                rows = rows_of(tmp_path / "r.jsonl")
                assert len(rows) == len(server.requests) == n
                said = [row["rationale"] for row in rows]
                assert set(kept) <= set(said) and len(set(said)) == n, "an answer was lost, or is in two rows"
                kept = said
            assert require_complete(tmp_path / "r.run")["n_items"] == 20
            for more in (["--limit", "3"], ["--temperature", "1"]):
                code, _, err = done([*words, "--resume", *more], tmp_path)
                assert code == 4 and "before" in err and "now" in err
            assert len(server.requests) == 20

    def test_an_item_that_was_changed_is_not_mixed_with_its_old_answers(self, tmp_path: Path) -> None:
        texts = [{"id": f"t{i}", "label": "fake", "text": f"a b c {i}"} for i in range(3)]
        with StandIn() as server:
            words = command(write_dataset(tmp_path, texts), server, tmp_path / "r.jsonl")
            assert done(words, tmp_path)[0] == 0
            write_dataset(tmp_path, [{**texts[0], "text": "another text"}, *texts[1:]])
            code, _, err = done([*words, "--resume"], tmp_path)
            assert code == 4 and "t0" in err and "changed" in err and len(server.requests) == 3
