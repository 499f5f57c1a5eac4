"""The loop: the same scores whatever the batch, the workers and the order; failures listed; runs resumed."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import polars as pl
import pytest
from detect_parts import KillsOnce, broken_clip, clip, corpus, deadly_clip, expected, louder, ones, two_logits

import hitmiss as hm
from hitmiss.core.errors import DataError, EnvironmentFault, IncompleteRun, UsageError
from hitmiss.core.run_spec import RunSpec
from hitmiss.detection.batches import Budget, Piece, Pool, collate
from hitmiss.detection.detector import Base, CallableDetector
from hitmiss.detection.length import fit_length
from hitmiss.detection.loader_processes import feed
from hitmiss.detection.loop import detect, run_detector
from hitmiss.detection.outputs import Extraction
from hitmiss.detection.prefetch import Prefetch
from hitmiss.detection.preparation import Failed, Preparation
from hitmiss.detection.score_checks import alarms
from hitmiss.detection.settings import Settings
from hitmiss.io.manifest import Manifest, read_manifest
from hitmiss.runs.manifest import load_manifest


class Padded(Base):
    """A detector that takes clips of any length together and masks what is padding; it notes its batches."""

    name, sample_rate, ragged = "padded", 16000, True

    def __init__(self) -> None:
        self.sizes: list[int] = []

    def outputs(self, batch: Any) -> Any:
        self.sizes.append(len(batch))
        return np.concatenate([two_logits(one[None]) for one in batch])


def scores(
    output: Path, manifest: Manifest, detector: Any = two_logits, load: Any = clip, **settings: Any
) -> list[float]:
    return detect(detector, manifest, output=output, load=load, **settings).score.tolist()


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"batch_seconds": 0.001},
        {"batch_seconds": 100.0, "batch_items": 7},
        {"workers": 2},
        {"workers": 1, "batch_items": 3},
    ],
)
def test_scores_do_not_depend_on_batches_or_workers(tmp_path: Path, settings: dict[str, Any]) -> None:
    manifest = corpus(60)
    for detector in (two_logits, Padded()):
        found = scores(tmp_path / type(detector).__name__, manifest, detector, **settings)
        assert found == pytest.approx(expected(manifest).tolist(), abs=1e-9)


def test_scores_do_not_depend_on_the_order(tmp_path: Path) -> None:
    manifest, shuffled = corpus(60), corpus(60)
    order = random.Random(1).sample(range(60), 60)
    shuffled = Manifest(manifest.frame[order], "real", "fake")
    one = dict(zip(manifest.items, scores(tmp_path / "a", manifest), strict=True))
    other = dict(zip(shuffled.items, scores(tmp_path / "b", shuffled), strict=True))
    assert one == other


def test_trials_say_what_they_are(tmp_path: Path) -> None:
    manifest = corpus(40, codec=["quiet", "loud"] * 20)
    detector = CallableDetector(two_logits, sample_rate=16000)
    trials = detect(detector, manifest, output=tmp_path / "run", load=clip, transform=louder)
    assert (
        trials.header.positive == "real" and trials.header.score_kind == "logit" and trials.header.slices == ("codec",)
    )
    assert trials.items == manifest.items and set(trials.header.numbers) == {"probability", "seconds"}
    assert trials.frame["probability"].to_numpy() == pytest.approx(1 / (1 + np.exp(-trials.score)))
    seconds = [len(clip(manifest.row(i))) / 16000 for i in range(40)]
    assert trials.frame["seconds"].to_list() == pytest.approx(seconds)
    assert hm.measure(trials, ["roc_auc"]).one("roc_auc").value == hm.metrics.roc_auc(trials.label, trials.score)


def test_only_like_lengths_share_a_batch_unless_the_detector_or_the_caller_allows_it(tmp_path: Path) -> None:
    manifest = corpus(30)
    lengths: list[set[int]] = []

    def watch(batch: Any) -> Any:
        lengths.append({len(one) for one in batch} if isinstance(batch, list) else {batch.shape[1]})
        return two_logits(batch)

    scores(tmp_path / "a", manifest, watch, check=0)
    assert len(lengths) == 30, "no two of these clips are of one length"
    padded = scores(tmp_path / "b", manifest, watch, pad=True, check=0)
    assert len(lengths) < 45 and padded != pytest.approx(expected(manifest).tolist(), abs=1e-3)


def test_padding_that_changes_scores_is_found_out(tmp_path: Path) -> None:
    outcome = run_detector(two_logits, corpus(30), Settings(pad=True), output=tmp_path / "run", load=clip)
    assert any("depends on what else is in the batch" in text for text in outcome.alarms)
    honest = run_detector(two_logits, corpus(30), Settings(), output=tmp_path / "other", load=clip)
    assert honest.alarms == () and "at most 0" in honest.notes[0]


def test_bad_files_are_listed_and_not_fatal(tmp_path: Path) -> None:
    manifest = corpus(100)
    for workers in (0, 2):
        folder = tmp_path / str(workers)
        outcome = run_detector(two_logits, manifest, Settings(workers=workers), output=folder, load=broken_clip)
        assert (outcome.n_scored, outcome.n_failed) == (90, 10)
        assert outcome.failures[0] == ("c0007", "c0007 is cut off")
        listed = pl.read_csv(folder / "failures.tsv", separator="\t")
        assert listed["item"].to_list() == [f"c{i:04d}" for i in range(7, 100, 10)]
        trials = hm.read(str(folder))
        assert len(trials) == 90 and trials.header.coverage == (90, 100) and "failed(10)" in trials.header.choices
        kept = [i for i in range(100) if i % 10 != 7]
        assert trials.score.tolist() == pytest.approx(expected(manifest)[kept].tolist(), abs=1e-9)


def test_failed_items_are_tried_again_on_request(tmp_path: Path) -> None:
    settings = Settings()
    run_detector(two_logits, corpus(40), settings, output=tmp_path / "run", load=broken_clip)
    again = run_detector(two_logits, corpus(40), Settings(), RunSpec(resume=True), output=tmp_path / "run", load=clip)
    assert again.n_failed == 4, "a failure is an answer until somebody asks again"
    spec = RunSpec(resume=True, retry=True)
    fixed = run_detector(two_logits, corpus(40), Settings(), spec, output=tmp_path / "run", load=clip)
    assert (fixed.n_scored, fixed.n_failed) == (40, 0)
    assert hm.read(str(tmp_path / "run")).header.coverage is None


def test_a_file_that_kills_its_reader_is_to_blame_alone(tmp_path: Path) -> None:
    outcome = run_detector(two_logits, corpus(30), Settings(workers=2), output=tmp_path / "run", load=deadly_clip)
    assert (outcome.n_scored, outcome.n_failed) == (29, 1)
    assert outcome.failures == (("c0005", "the process that read it died (exit code 11)"),)


def test_a_reader_killed_from_outside_costs_no_item(tmp_path: Path) -> None:
    load = KillsOnce("c0005", str(tmp_path / "marker"))
    outcome = run_detector(two_logits, corpus(30), Settings(workers=1), output=tmp_path / "run", load=load)
    assert (tmp_path / "marker").exists() and (outcome.n_scored, outcome.n_failed) == (30, 0)


def test_when_all_fail_the_run_stops_early(tmp_path: Path) -> None:
    seen = []

    def load(row: Any) -> Any:
        seen.append(row)
        raise ValueError("the disk is not mounted")

    with pytest.raises(DataError, match=r"first 20 items all failed .*the disk is not mounted"):
        run_detector(two_logits, corpus(500), Settings(), output=tmp_path / "run", load=load)
    assert len(seen) == 20


def test_a_clip_that_the_model_refuses_fails_alone(tmp_path: Path) -> None:
    def picky(batch: Any) -> Any:
        if (np.abs(batch) > 9).any():
            raise RuntimeError("kernel larger than input")
        return two_logits(batch)

    def load(row: Any) -> Any:
        return np.full(4000, 10.0 if row["file"] == "c0003" else 0.1 + int(row["file"][1:]) / 100, dtype=np.float32)

    outcome = run_detector(picky, corpus(20), Settings(), output=tmp_path / "run", load=load)
    assert outcome.failures == (("c0003", "RuntimeError: kernel larger than input"),)


def test_nan_outputs_are_failures_with_ids(tmp_path: Path) -> None:
    def broken(batch: Any) -> Any:
        found = two_logits(batch)
        found[np.abs(batch).max(axis=1) > 0.5] = np.nan
        return found

    def load(row: Any) -> Any:
        return np.full(4000, 0.9 if row["file"] == "c0002" else 0.01 * (1 + int(row["file"][1:])), dtype=np.float32)

    outcome = run_detector(broken, corpus(20), Settings(), output=tmp_path / "run", load=load)
    assert outcome.failures == (("c0002", "the detector's output is not finite: nan"),)
    assert outcome.alarms[0].startswith("1 item without a score")


def test_a_batch_too_large_for_the_memory_is_halved_for_good(tmp_path: Path) -> None:
    class Small(Padded):
        refused: ClassVar[list[int]] = []

        def outputs(self, batch: Any) -> Any:
            if len(batch) > 5:
                self.refused.append(len(batch))
                raise MemoryError
            return super().outputs(batch)

    detector, manifest = Small(), corpus(64)
    found = scores(tmp_path / "run", manifest, detector, batch_seconds=1e6, batch_items=16, check=0)
    assert found == pytest.approx(expected(manifest).tolist(), abs=1e-9)
    assert max(detector.sizes) <= 5 and sum(detector.sizes) == 64
    assert detector.refused == [16, 8, 8], "later batches are smaller from the start"


def test_windows_are_pooled_and_kept(tmp_path: Path) -> None:
    manifest = corpus(12)
    run = {"window": 4000, "hop": 2000, "pooling": "min"}
    trials = detect(two_logits, manifest, output=tmp_path / "run", load=clip, **run)
    kept = pl.read_parquet(tmp_path / "run" / "windows.parquet")
    for item, score in zip(trials.items, trials.score.tolist(), strict=True):
        assert kept.filter(pl.col("item") == item)["score"].min() == score
    first = clip(manifest.row(0))
    starts = [*range(0, len(first) - 4000, 2000), len(first) - 4000]
    alone = np.concatenate([two_logits(first[None, s : s + 4000]) for s in starts])
    mine = kept.filter(pl.col("item") == "c0000").sort("window")["score"].to_list()
    assert mine == pytest.approx((alone[:, 1] - alone[:, 0]).tolist(), abs=1e-6)


def test_lengths_are_settled_before_batching(tmp_path: Path) -> None:
    shapes = []

    def watch(batch: Any) -> Any:
        shapes.append(batch.shape)
        return two_logits(batch)

    fit = partial(fit_length, cut_length=6000)
    scores(tmp_path / "run", corpus(30), watch, fit=fit, check=0, batch_seconds=4.0)
    assert {shape[1] for shape in shapes} == {6000} and max(shape[0] for shape in shapes) > 5


def test_other_than_sound_is_scored_too(tmp_path: Path) -> None:
    frame = pl.DataFrame(
        {"id": ["1", "2", "3"], "text": ["you rock", "you!!", "go"], "label": ["non-toxic", "toxic", "non-toxic"]}
    )
    manifest = read_manifest(frame)

    def count(batch: list[str]) -> Any:
        return np.array([2.0 * text.count("!") - 1 for text in batch])

    trials = detect(count, manifest, output=tmp_path / "run", load=lambda row: row["text"])
    assert trials.score.tolist() == [-1.0, 3.0, -1.0] and trials.header.positive == "toxic"


def test_outputs_that_could_be_either_are_settled_without_running_again(tmp_path: Path) -> None:
    def half(batch: Any) -> Any:
        return 1 / (1 + np.exp(-two_logits(batch)[:, 1]))

    with pytest.raises(DataError, match="outputs='probability'"):
        scores(tmp_path / "run", corpus(20), half)

    def never(_row: Any) -> Any:
        raise AssertionError("nothing is to be scored again")

    settings = {"resume": True, "extraction": Extraction(kind="probability")}
    found = scores(tmp_path / "run", corpus(20), half, never, **settings)
    wanted = [two_logits(clip(corpus(20).row(i))[None])[0, 1] for i in range(20)]
    assert found == pytest.approx(wanted, abs=1e-6)


def test_a_wide_output_needs_its_column_at_once(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="5 output columns"):
        scores(tmp_path / "run", corpus(300), lambda b: np.tile(two_logits(b)[:, :1], 5))


def test_a_resumed_run_must_be_the_same_run(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    scores(folder, corpus(20))
    with pytest.raises(UsageError, match="finished run"):
        scores(folder, corpus(20))
    with pytest.raises(IncompleteRun, match="window: null before, 4000 now"):
        scores(folder, corpus(20), resume=True, window=4000)
    with pytest.raises(IncompleteRun, match=r"detector\.name"):
        scores(folder, corpus(20), Padded(), resume=True)
    with pytest.raises(IncompleteRun, match="manifest"):
        scores(folder, corpus(20, codec=["x"] * 20), resume=True)
    assert scores(folder, corpus(20), resume=True, workers=2, batch_items=1) == expected(corpus(20)).tolist()


SCRIPT = """
import sys
sys.path.insert(0, sys.argv[1])
from detect_parts import corpus, held_clip, slow_clip, two_logits
from hitmiss.detection.loop import detect
if __name__ == "__main__":
    load = held_clip if len(sys.argv) > 4 else slow_clip
    detect(two_logits, corpus(150), output=sys.argv[2], load=load, resume=True, join=True, batch_items=4, workers=int(sys.argv[3]))
"""


def started(folder: Path, workers: int = 0, *more: str) -> subprocess.Popen[bytes]:
    script = folder.parent / "script.py"
    script.write_text(SCRIPT)
    words = [sys.executable, str(script), str(Path(__file__).parent), str(folder), str(workers), *more]
    return subprocess.Popen(words, stderr=subprocess.PIPE)


@pytest.mark.nightly
@pytest.mark.parametrize("workers", [0, 2])
def test_killed_anywhere_the_run_ends_with_the_same_scores(tmp_path: Path, workers: int) -> None:
    folder, rng = tmp_path / "run", random.Random(workers)
    for _ in range(4):
        process = started(folder, workers)
        before = time.monotonic()
        while not list(folder.glob("items/*.jsonl")) and process.poll() is None and time.monotonic() - before < 30:
            time.sleep(0.01)
        time.sleep(rng.uniform(0.05, 0.5))
        process.kill()
        process.communicate()
    process = started(folder, workers)
    _, errors = process.communicate()
    assert process.returncode == 0, errors.decode()
    assert hm.read(str(folder)).score.tolist() == pytest.approx(expected(corpus(150)).tolist(), abs=1e-9)
    lines = [line for path in folder.glob("items/*.jsonl") for line in path.read_bytes().splitlines()]
    assert len(lines) == 150, "nothing twice"


def test_terminated_the_run_is_interrupted_and_goes_on(tmp_path: Path) -> None:
    process = started(tmp_path / "run", 0, "held")
    while len(list((tmp_path / "run").glob("items/*.jsonl"))) == 0 or not any(
        p.stat().st_size for p in (tmp_path / "run").glob("items/*.jsonl")
    ):
        time.sleep(0.02)
        assert process.poll() is None
    process.send_signal(signal.SIGTERM)
    process.communicate()
    assert load_manifest(tmp_path / "run")["state"] == "interrupted"
    with pytest.raises(IncompleteRun, match="resume=True"):
        hm.read(str(tmp_path / "run"))


def test_two_processes_share_one_run(tmp_path: Path) -> None:
    crew = [started(tmp_path / "run") for _ in range(2)]
    codes = [(p.communicate()[1], p.returncode)[1] for p in crew]
    assert 0 in codes
    assert hm.read(str(tmp_path / "run")).score.tolist() == pytest.approx(expected(corpus(150)).tolist(), abs=1e-9)


def test_functions_that_cannot_travel_are_refused_in_words(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="workers=0"):
        scores(tmp_path / "run", corpus(20), load=lambda row: clip(row), workers=1)


def test_what_the_machine_lacks_ends_the_run(tmp_path: Path) -> None:
    def load(_row: Any) -> Any:
        raise EnvironmentFault("sound needs a package")

    with pytest.raises(EnvironmentFault, match="sound needs a package"):
        scores(tmp_path / "run", corpus(20), load=load)


@pytest.mark.parametrize("may_mix", [True, False])
def test_the_pool_is_bounded_and_gives_every_piece_once(may_mix: bool) -> None:
    pool, seen = Pool(Budget(units=1000, items=4), may_mix), []
    rng = np.random.default_rng(0)
    for i in range(400):
        seen += pool.add(Piece(i, 0, 1, np.zeros(int(rng.integers(50, 400)))))
        assert sum(piece.size for piece in pool.pieces) <= 8 * 1000 and len(pool.pieces) <= 32
    while batch := pool.take():
        seen.append(batch)
    assert sorted(piece.at for batch in seen for piece in batch) == list(range(400))
    assert all(len(b) == 1 or len(b) * max(p.size for p in b) <= 1000 for b in seen)
    assert may_mix or all(len({p.shape for p in b}) == 1 for b in seen)


def test_clips_of_one_length_leave_as_soon_as_they_fill_a_batch() -> None:
    pool = Pool(Budget(units=1000, items=64))
    sizes = [sum(map(len, pool.add(Piece(i, 0, 1, np.zeros(100))))) for i in range(20)]
    assert sizes == [0] * 9 + [10] + [0] * 9 + [10]


def test_collate_pads_only_when_it_must() -> None:
    same = [Piece(0, 0, 1, np.ones(3)), Piece(1, 0, 1, np.zeros(3))]
    assert collate(same, False).shape == (2, 3)
    mixed = [Piece(0, 0, 1, np.ones(2)), Piece(1, 0, 1, np.ones(3))]
    assert collate(mixed, False).tolist() == [[1, 1, 0], [1, 1, 1]]
    assert [len(one) for one in collate(mixed, True)] == [2, 3]


def test_ahead_hands_on_errors_and_stops_when_told() -> None:
    def source() -> Any:
        yield 1
        raise ValueError("inside")

    with pytest.raises(ValueError, match="inside"):
        list(Prefetch(source(), 2))
    closed = []

    def endless() -> Any:
        try:
            while True:
                yield 1
        finally:
            closed.append(True)

    ahead = Prefetch(endless(), 2)
    assert next(iter(ahead)) == 1
    ahead.close()
    assert closed == [True]


def test_feed_gives_every_task_once() -> None:
    manifest = corpus(25)
    tasks = [(at, manifest.row(at)) for at in range(25)]
    for workers in (0, 3):
        found = list(feed(Preparation(broken_clip), iter(tasks), workers))
        assert sorted(f.at for f in found) == list(range(25))
        assert {f.at for f in found if isinstance(f, Failed)} == {7, 17}
        clips = {f.at: f.parts[0] for f in found if not isinstance(f, Failed)}
        assert all(np.array_equal(clips[at], clip(row)) for at, row in tasks if at not in (7, 17))
    assert os.getpid()


def test_large_rows_do_not_block_the_workers() -> None:
    tasks = [(at, {"file": f"c{at:04d}", "label": "real", "note": "x" * 200_000}) for at in range(12)]
    assert len(list(feed(Preparation(clip), iter(tasks), 2))) == 12


@pytest.mark.parametrize(
    ("found", "label", "words"),
    [
        (np.full(9, 2.0), None, "all 9 scores are 2"),
        (np.r_[np.full(30, 1e3), np.arange(70.0)], None, "31.0% of the scores are tied at the ends"),
        (
            np.r_[np.zeros(50) + np.arange(50) / 100, 1 + np.arange(50) / 100],
            np.r_[np.ones(50), np.zeros(50)],
            "REVERSED",
        ),
    ],
)
def test_alarms(found: Any, label: Any, words: str) -> None:
    assert any(words in text for text in alarms(found, label, "real", "fake"))


def test_no_alarm_where_all_is_well() -> None:
    rng = np.random.default_rng(0)
    label = np.arange(200) % 2
    assert alarms(rng.normal(size=200) + label, label, "real", "fake") == []


class Async(Padded):
    """A detector that answers later, as a GPU does; it notes what was asked before what was answered."""

    is_async = True

    def __init__(self) -> None:
        super().__init__()
        self.events: list[str] = []

    def launch(self, batch: Any) -> Any:
        if len(batch) > 6:
            raise MemoryError
        self.events.append("launch")
        return [one.copy() for one in batch]

    def collect(self, launched: Any) -> Any:
        self.events.append("collect")
        return np.concatenate([two_logits(one[None]) for one in launched])

    def outputs(self, batch: Any) -> Any:
        return self.collect(self.launch(batch))


@pytest.mark.parametrize("workers", [0, 2])
def test_a_detector_that_answers_later_has_the_next_batch_under_way(tmp_path: Path, workers: int) -> None:
    manifest, detector = corpus(60), Async()
    found = scores(tmp_path / "run", manifest, detector, batch_items=5, check=0, workers=workers)
    assert found == pytest.approx(expected(manifest).tolist(), abs=1e-9)
    assert (
        detector.events[:5] == ["launch", "launch", "launch", "collect", "launch"] and detector.events[-1] == "collect"
    )
    too_large = Async()
    found = scores(tmp_path / "large", manifest, too_large, batch_items=16, batch_seconds=1e6, check=0)
    assert found == pytest.approx(expected(manifest).tolist(), abs=1e-9)


def test_a_clip_too_large_for_the_shared_memory_travels_all_the_same() -> None:
    tasks = [(at, {"n": n}) for at, n in enumerate((10, 3_000_000, 20))]
    found = {f.at: f.parts[0] for f in feed(Preparation(ones), iter(tasks), 1) if not isinstance(f, Failed)}
    assert [len(found[at]) for at in range(3)] == [10, 3_000_000, 20] and all(found[1] == 1.0)


def test_broken_items_do_not_stop_a_run_while_good_ones_wait(tmp_path: Path) -> None:
    def load(row: Any) -> Any:
        if int(row["file"][1:]) % 3 == 0:
            raise ValueError("broken")
        return clip(row)

    outcome = run_detector(two_logits, corpus(90), Settings(check=0), output=tmp_path / "run", load=load)
    assert (outcome.n_scored, outcome.n_failed) == (60, 30)


def test_pictures_are_batched_by_their_pixels() -> None:
    pool = Pool(Budget(units=48e6, items=256), may_mix=True)
    big = np.zeros((3000, 4000, 3), dtype=np.uint8)
    batches = [batch for i in range(12) for batch in pool.add(Piece(i, 0, 1, big))]
    assert all(len(batch) == 1 for batch in batches) and len(pool.pieces) <= 1


def test_unclear_outputs_stop_the_run_at_its_first_batch(tmp_path: Path) -> None:
    seen: list[int] = []

    def unclear(batch: Any) -> Any:
        seen.append(len(batch))
        return np.full((len(batch), 2), 0.3)

    with pytest.raises(DataError) as refused:
        run_detector(unclear, corpus(100), Settings(check=0, batch_items=4), output=tmp_path / "run", load=clip)
    assert refused.value.code == "outputs-unknown" and sum(seen) <= 40
