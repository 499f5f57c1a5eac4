"""detect, attack and llm are one loop: the same faults, in real processes, end alike in all three."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

MODEL = '''
import os, time
import numpy as np

SLOW = float(os.environ.get("SLOW", "0"))
if os.environ.get("LOADING"):
    open(os.environ["LOADING"], "w").close()
    time.sleep(60)

def is_broken(number):
    """Every tenth item fails until the file FIXED exists; with ALL every item does."""
    if os.path.exists(os.environ["FIXED"]):
        return False
    return bool(os.environ.get("ALL")) or number % 10 == 3

def seen(number):
    with open(os.environ["CALLS"], "a") as file:
        file.write(f"{number}\\n")
    time.sleep(SLOW)
    if is_broken(number):
        raise ValueError(f"no answer for {number}")

def texts(batch):
    for text in batch:
        seen(int(text))
    return np.array([[0.0, int(text) / 7 - 2.0] for text in batch])

def signals(x):
    """A record is a sine about its number; what an attack has changed has another spread."""
    x = np.asarray(x)
    for record in x:
        if abs(record.std() - np.sqrt(0.5)) > 1e-3 or os.environ.get("ALL"):
            seen(int(round(float(record.mean()))))
    return 1.0 / (1.0 + np.exp(-x.mean(axis=(1, 2)) / 7 + x.std(axis=(1, 2))))[:, None]

def judge(item):
    seen(int(item.text))
    return int(item.text) / 41
'''
N = 40


@dataclass(frozen=True)
class Verb:
    """How one of the verbs is called: the same items, a model of the same behaviour."""

    name: str
    words: Callable[[Path], list[str]]

    def folder(self, place: Path) -> Path:
        return place / "out.run"

    def begin(self, place: Path, *more: str, **environment: str) -> subprocess.Popen[str]:
        known = {"CALLS": str(place / "calls"), "FIXED": str(place / "fixed"), "OMP_NUM_THREADS": "1"}
        words = [sys.executable, "-m", "hitmiss", *self.words(place), *more]
        pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        return subprocess.Popen(words, env={**os.environ, **known, **environment}, **pipes)

    def run(self, place: Path, *more: str, **environment: str) -> tuple[int, str]:
        process = self.begin(place, *more, **environment)
        out, err = process.communicate()
        return process.returncode, out + err

    def table(self, place: Path) -> pl.DataFrame:
        """The finished table, without what time and place change."""
        frame = pl.read_parquet(self.folder(place) / "trials.parquet")
        times = [c for c in frame.columns if c.endswith(("seconds", "timestamp")) or c in ("model", "_origin")]
        return frame.drop(times)


def detect(place: Path) -> list[str]:
    path = place / "items.csv"
    rows = [f"i{k},{k},{'real' if k % 2 else 'fake'}" for k in range(N)]
    path.write_text("\n".join(["file,text,label", *rows]) + "\n")
    given = ["--detector", f"{place / 'model.py'}:texts", "--data", str(path), "--input", "text", "--positive", "real"]
    return ["detect", *given, "--batch-items", "1", "--check", "0", "--outputs", "logit", "-o", str(place / "out.run")]


def attack(place: Path) -> list[str]:
    path = place / "items.npz"
    n = N // 4
    x = np.arange(n)[:, None, None] + np.sin(np.arange(100) * 0.2 * np.pi)[None, :, None] * np.ones((n, 100, 2))
    y = (np.arange(n) % 2)[:, None]
    np.savez(path, x=x, y=y, classes=["MI"], fs=100.0, record=[f"r{k}" for k in range(n)])
    given = ["--detector", f"{place / 'model.py'}:signals", "--data", str(path), "--outputs", "probability"]
    kinds = ["--family", "band_noise", "--strengths", "0.2", "--strengths", "0.4", "--strengths", "0.6", "--no-control"]
    return ["attack", *given, *kinds, "--multi-label", "-o", str(place / "out.run")]


def llm(place: Path) -> list[str]:
    path = place / "items.jsonl"
    rows = [{"id": f"i{k}", "text": str(k), "label": "real" if k % 2 else "fake"} for k in range(N)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return ["llm", "--dataset", str(path), "--models", f"{place / 'model.py'}:judge", "-o", str(place / "out.jsonl")]


VERBS = [Verb("detect", detect), Verb("attack", attack), Verb("llm", llm)]


@pytest.fixture(params=VERBS, ids=lambda verb: verb.name)
def verb(request: pytest.FixtureRequest) -> Verb:
    found: Verb = request.param
    return found


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "model.py").write_text(MODEL)
    (tmp_path / "calls").touch()
    return tmp_path


def stored(folder: Path) -> Iterator[dict[str, Any]]:
    for path in sorted((folder / "items").glob("*.jsonl")):
        for line in path.read_bytes().splitlines(keepends=True):
            if line.endswith(b"\n"):
                yield json.loads(line)


def wait_for(done: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    end = time.monotonic() + 60
    while not done() and process.poll() is None and time.monotonic() < end:
        time.sleep(0.005)
    assert done(), process.communicate()


def n_stored(verb: Verb, place: Path) -> int:
    return sum(1 for _ in stored(verb.folder(place)))


def _has_stored(verb: Verb, place: Path, n: int) -> bool:
    return n_stored(verb, place) >= n


def whole(verb: Verb, tmp_path: Path) -> pl.DataFrame:
    """The table of a run that nothing disturbed; what fails is the same."""
    place = tmp_path / "whole"
    place.mkdir()
    (place / "model.py").write_text(MODEL)
    (place / "fixed").touch()
    code, said = verb.run(place)
    assert code == 0, said
    return verb.table(place)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_run_as_interrupted_and_it_goes_on(verb: Verb, place: Path, number: signal.Signals) -> None:
    (place / "fixed").touch()
    process = verb.begin(place, SLOW="0.1")
    wait_for(lambda: n_stored(verb, place) > 12, process)
    process.send_signal(number)
    _, err = process.communicate()
    assert process.returncode == 130 and "interrupted" in err
    assert json.loads((verb.folder(place) / "manifest.json").read_text())["state"] == "interrupted"
    assert not (verb.folder(place) / "owner.json").exists()
    kept = list(stored(verb.folder(place)))
    code, said = verb.run(place)
    assert code == 4 and "--resume" in said
    code, said = verb.run(place, "--resume")
    assert code == 0, said
    assert list(stored(verb.folder(place)))[: len(kept)] == kept
    assert verb.table(place).equals(whole(verb, place))


def test_a_signal_while_the_model_is_loading(verb: Verb, place: Path) -> None:
    process = verb.begin(place, LOADING=str(place / "loading"))
    wait_for((place / "loading").exists, process)
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate()
    assert process.returncode == 130 and "interrupted" in err


def test_kills_lose_nothing_and_repeat_nothing(verb: Verb, place: Path) -> None:
    (place / "fixed").touch()
    rng = random.Random(5)
    kept: list[dict[str, Any]] = []
    for goal in (0, 11, 23):
        process = verb.begin(place, "--resume", SLOW="0.02")
        wait_for(partial(_has_stored, verb, place, goal), process)
        time.sleep(rng.random() * 0.05)
        process.kill()
        process.communicate()
        if (verb.folder(place) / "items").is_dir():
            found = list(stored(verb.folder(place)))
            assert found[: len(kept)] == kept, "a record was lost"
            kept = found
    code, said = verb.run(place, "--resume")
    assert code == 0, said
    names = [record["item"] for record in stored(verb.folder(place))]
    assert len(names) == len(set(names)) == json.loads((verb.folder(place) / "manifest.json").read_text())["n_items"]
    assert verb.table(place).equals(whole(verb, place))


def test_failed_items_are_tried_again_only_on_request(verb: Verb, place: Path) -> None:
    assert verb.run(place, "--retry")[0] == 2, "--retry goes with --resume"
    code, said = verb.run(place)
    assert code == 0, said
    failed = [record["item"] for record in stored(verb.folder(place)) if "error" in record]
    assert failed
    (place / "fixed").touch()
    before = n_stored(verb, place)
    assert verb.run(place, "--resume")[0] == 0 and n_stored(verb, place) == before
    code, said = verb.run(place, "--resume", "--retry")
    assert code == 0, said
    again = list(stored(verb.folder(place)))[before:]
    assert sorted(record["item"] for record in again) == sorted(failed)
    assert not any("error" in record for record in again)
    assert verb.table(place).equals(whole(verb, place))


def test_another_configuration_is_refused_with_the_difference(verb: Verb, place: Path) -> None:
    (place / "fixed").touch()
    assert verb.run(place)[0] == 0
    code, said = verb.run(place)
    assert code == 2 and "finished run" in said
    code, said = verb.run(place, "--resume", "--limit", "4")
    assert code == 4 and "before" in said and "now" in said
    (place / "model.py").write_text(MODEL + "\n# another version\n")
    code, said = verb.run(place, "--resume")
    assert code == 4 and "before" in said and "now" in said


def test_a_second_process_is_refused_or_joins(verb: Verb, place: Path) -> None:
    (place / "fixed").touch()
    process = verb.begin(place, SLOW="0.1")
    wait_for(lambda: n_stored(verb, place) > 0, process)
    code, said = verb.run(place, "--resume")
    assert code == 5 and f"process {process.pid} on" in said and "--join" in said
    code, said = verb.run(place, "--join")
    assert code == 0, said
    out, err = process.communicate()
    assert process.returncode == 0, out + err
    names = [record["item"] for record in stored(verb.folder(place))]
    assert len(names) == len(set(names))
    assert verb.table(place).equals(whole(verb, place))


def test_a_budget_of_time_ends_a_run_and_it_goes_on(verb: Verb, place: Path) -> None:
    (place / "fixed").touch()
    code, said = verb.run(place, "--max-time", "0.5", SLOW="0.1")
    assert code == 4 and "--max-time 0.5" in said and "--resume" in said
    n_items = json.loads((verb.folder(place) / "manifest.json").read_text())["n_items"]
    assert 0 < n_stored(verb, place) < n_items
    code, said = verb.run(place, "--resume")
    assert code == 0, said
    assert verb.table(place).equals(whole(verb, place))


def test_too_many_failures_are_exit_4_and_can_be_tried_again(verb: Verb, place: Path) -> None:
    code, said = verb.run(place, "--fail-rate", "0.01")
    assert code == 4 and "more than --fail-rate 0.01" in said and "no answer for" in said
    assert not (verb.folder(place) / "trials.parquet").exists()
    (place / "fixed").touch()
    code, said = verb.run(place, "--fail-rate", "0.01", "--resume", "--retry")
    assert code == 0, said
    assert verb.table(place).equals(whole(verb, place))


def test_where_everything_fails_the_run_stops_and_begins_afresh(verb: Verb, place: Path) -> None:
    code, said = verb.run(place, ALL="1")
    assert code in (3, 5) and "no answer for" in said
    (place / "fixed").touch()
    (place / "model.py").write_text(MODEL + "\n# mended\n")
    code, said = verb.run(place)
    assert code == 0, said
    assert verb.table(place).equals(whole(verb, place))
