"""Every verb that writes is killed (SIGKILL) at random moments, and run again; long runs of `detect` and `attack` are resumed.

    python benchmarks/kills.py [KILLS]        for each command and each long run; 8, so more than 200 in all

First the commands of `tests/adversary/writing.py`: a process that has imported everything begins the command and is killed after a
random share of the time that it takes; kills that come after its end do not count. Then every file is as it was or as the command
writes it, and the same command (with `--resume`, if a run folder is there) gives what an undisturbed one gives. Then runs over
400 items in processes of their own, killed again and again until they are done: each item must be stored exactly once, and the
scores must be those of a run that nobody disturbed.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.adversary import corpus
from tests.adversary.injecting import Trial, contents
from tests.adversary.writing import WRITING

from hitmiss.attacks.campaign import run_campaign
from hitmiss.attacks.model import as_classifier
from hitmiss.attacks.plan import AttackPlan, sweep
from hitmiss.attacks.recordings import Recordings
from hitmiss.attacks.worker import PlannedAttacks
from hitmiss.cli.main import run
from hitmiss.core.run_spec import RunSpec
from hitmiss.detection.loop import detect
from hitmiss.io.manifest import read_manifest
from hitmiss.io.reader import read

ITEMS = 400
PAUSE = 0.02
CLASSES = ("NORM", "MI")


def clip(row: Mapping[str, str]) -> NDArray[np.float32]:
    """A made-up clip that takes as long as a small file."""
    time.sleep(PAUSE)
    return np.random.default_rng(int(row["file"])).standard_normal(4000).astype(np.float32)


def level(batch: NDArray[np.float32]) -> NDArray[np.float32]:
    """The detector: a number that differs from clip to clip."""
    return np.asarray(batch).sum(axis=1)


def model(x: NDArray[np.float32]) -> NDArray[np.float64]:
    """The model under attack: two probabilities."""
    time.sleep(PAUSE * len(x) / 4)
    return 1.0 / (1.0 + np.exp(-np.stack([x[:, :, 0].mean(axis=1), x[:, :, 1].std(axis=1) - 1.0], axis=1)))


def detecting(folder: Path, workers: int) -> None:
    """One process of a run of `detect`, from where it is to its end."""
    names = [str(i) for i in range(ITEMS)]
    manifest = read_manifest(pl.DataFrame({"file": names, "label": ["real", "fake"] * (ITEMS // 2)}))
    detect(level, manifest, output=folder, load=clip, resume=folder.exists(), batch_items=4, workers=workers)


def attacking(folder: Path) -> None:
    """One process of a run of `attack`."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(0, 1, (40, 200, 2)), rng.integers(0, 2, (40, 2))
    recordings = Recordings(x, y.astype(np.int8), 100.0, CLASSES, [f"r{i}" for i in range(40)])
    plan = AttackPlan(sweep(["band_noise", "baseline_wander"], [0.25, 0.5, 1.0]))
    run_campaign(PlannedAttacks(recordings, as_classifier(model), plan), folder, RunSpec(resume=folder.exists()))


def once(kind: str, folder: Path) -> None:
    """Do the work of a killed process."""
    if kind == "attack":
        attacking(folder)
    else:
        detecting(folder, int(kind.rpartition(" ")[2]))


def rounds(kind: str, kills: int) -> str:
    """Kill a run that many times, let it end, and compare it with one that was left alone."""
    rng, struck, runs = random.Random(kind), 0, 0
    with tempfile.TemporaryDirectory() as name:
        once(kind, Path(name) / "whole")
        wanted = read(str(Path(name) / "whole"))
        while struck < kills:
            runs += 1
            folder = Path(name) / f"run{runs}"
            while True:
                process = subprocess.Popen([sys.executable, __file__, "--once", kind, str(folder)])
                try:
                    process.wait(timeout=rng.uniform(0.7, 3.5) if struck < kills else None)
                    break
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()
                    struck += 1
            found = read(str(folder))
            lines = sum(len(path.read_bytes().splitlines()) for path in folder.glob("items/*.jsonl"))
            whole = sum(len(path.read_bytes().splitlines()) for path in Path(name).glob("whole/items/*.jsonl"))
            assert process.returncode == 0 and list(found.items) == list(wanted.items), "something was lost"
            assert np.array_equal(found.score, wanted.score), "another score"
            assert lines == whole, "something is there twice"
    return f"| {kind}, {whole} items | {struck} | 0 | 0 | |"


class Nursery:
    """A process that has imported everything and begun no thread: each command is a copy of it."""

    def __init__(self) -> None:
        words = [sys.executable, __file__, "--nursery"]
        self.process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._answer()

    def _answer(self) -> int:
        assert self.process.stdout is not None
        return int(self.process.stdout.readline())

    def run(self, words: list[str], folder: Path, seconds: float | None = None) -> tuple[int, float]:
        """Run a command, and kill it after so many seconds; its exit code (-9: killed), and how long it took."""
        assert self.process.stdin is not None
        print(json.dumps([str(folder), *words]), file=self.process.stdin, flush=True)
        child, at = self._answer(), time.monotonic()
        if seconds is not None:
            time.sleep(seconds)
            with suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)  # waited for below, so its number is still its own
        print(file=self.process.stdin, flush=True)
        return self._answer(), time.monotonic() - at


def nursery() -> None:
    """Begin the commands that come in, one after another."""
    print(0, flush=True)
    for line in sys.stdin:
        folder, *words = json.loads(line)
        child = os.fork()
        if child == 0:
            nowhere = os.open(os.devnull, os.O_RDWR)
            for number in range(3):
                os.dup2(nowhere, number)
            os.chdir(folder)
            os._exit(run(words))
        print(child, flush=True)
        sys.stdin.readline()  # only now is the child waited for: until then its number belongs to no other process
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


def killed(name: str, kills: int, trial: Trial, beginner: Nursery) -> str:
    """Kill one command that many times, each time at another moment, and run it again."""
    rng, struck, torn, lost, left = random.Random(name), 0, 0, 0, 0
    trial.fresh()
    code, whole = beginner.run([*WRITING[name]], trial.folder)
    assert code == 0, f"{name}: exit code {code}"
    while struck < kills:
        trial.fresh()
        code, _ = beginner.run([*WRITING[name]], trial.folder, rng.uniform(0, whole))
        if code == 0:
            continue
        assert code == -signal.SIGKILL, f"{name}: exit code {code}"
        struck += 1
        found = contents(trial.folder)
        torn += trial.lost(found) is not None
        left += sum(file.endswith(".part") for file in found)
        code, _ = beginner.run([*WRITING[name], *trial.resumed()], trial.folder)
        lost += code != 0 or not trial.is_whole(contents(trial.folder))
    return f"| {name} | {struck} | {torn} | {lost} | {left} |"


def main() -> None:
    """Print the table."""
    if "--nursery" in sys.argv:
        nursery()
        return
    if "--once" in sys.argv:
        once(sys.argv[-2], Path(sys.argv[-1]))
        return
    kills = int(sys.argv[1]) if len(sys.argv) > 1 else 8
    print("| command | kills | torn | lost or not as undisturbed | part files left |\n|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as name:
        beginner, clean = Nursery(), Path(name) / "clean"
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            corpus.make(clean)
        for command in WRITING:
            print(killed(command, kills, Trial(command, clean, Path(name)), beginner), flush=True)
    for kind in ("detect, workers 0", "detect, workers 2", "attack"):
        print(rounds(kind, kills), flush=True)


if __name__ == "__main__":
    main()
