"""What a Ray cluster on one machine costs and gains: scoring clips, and counting shards.

    python benchmarks/cluster.py           (needs ray, pyarrow and pandas; the latter two for Ray Data)

Every row is a program of its own. `start` is all before the first clip or shard (imports, cluster, model), `work` the
clips or shards. Each has its seconds by the clock and, in brackets, the processor seconds of the program and of every
process under it, Ray's own included, as has the peak memory (proportional set size). The scoring program runs a numpy detector, one thread a process, over made-up clips of 4 s;
the Ray Data row is the same detector in `map_batches` with an actor pool, its outputs taken and not stored, which the
others do. The counting programs take EER, minDCF and AUC by codec from the same Parquet shards. Where the machine has
other work (the last line tells), seconds of the wall say little, and processor seconds and memory are what to compare.
"""

from __future__ import annotations

import os

os.environ.update(dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1"))

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

BEGAN = time.perf_counter()

import numpy as np  # noqa: E402
import polars as pl  # noqa: E402

RATE, SECONDS, CLIPS = 16000, 4, 3000
SHARDS, ROWS = 20, 500_000
CALLS = 2000
TICK = os.sysconf("SC_CLK_TCK")


def load(row: Mapping[str, Any]) -> Any:
    """Noise, the same for the same row."""
    return np.random.default_rng(int(row["file"])).standard_normal(RATE * SECONDS, dtype=np.float32)


def opening() -> Any:
    """A detector with made-up weights: what it costs is what matters."""
    from hitmiss.simulate.spectral_baseline import BANDS, SpectralBaseline

    return SpectralBaseline(np.random.default_rng(0).standard_normal(3 * BANDS).astype(np.float32) / 100, 0.0)


class Actor:
    """The same detector for Ray Data."""

    def __init__(self) -> None:
        self.detector = opening()

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        clips = [load({"file": file}) for file in batch["file"]]
        return {"file": batch["file"], "outputs": self.detector.outputs(clips)}


def corpus() -> Any:
    from hitmiss.io.manifest import read_manifest

    return read_manifest(
        pl.DataFrame({"file": [str(i) for i in range(CLIPS)], "label": ["real", "fake"] * (CLIPS // 2)})
    )


class Laps:
    """Seconds since the program began, at its turning points."""

    def __init__(self) -> None:
        self.at: list[float] = []

    def mark(self) -> None:
        self.at.append(time.perf_counter() - BEGAN)


def score_here(folder: str, laps: Laps) -> None:
    from hitmiss.detection.loop import run_detector
    from hitmiss.detection.settings import Settings

    detector, manifest = opening(), corpus()
    laps.mark()
    run_detector(detector, manifest, Settings(), output=f"{folder}/run", load=load)
    laps.mark()


def score_on(actors: int) -> Callable[[str, Laps], None]:
    def score(folder: str, laps: Laps) -> None:
        from hitmiss.cluster.ray import joined
        from hitmiss.detection.cluster import RayDetector
        from hitmiss.detection.loop import run_detector
        from hitmiss.detection.settings import Settings

        with joined("auto") as cluster, RayDetector(cluster, opening, actors=actors) as fleet:
            laps.mark()
            run_detector(fleet, corpus(), Settings(), output=f"{folder}/run", load=load)
            laps.mark()

    return score


def score_by_ray_data(_: str, laps: Laps) -> None:
    import logging

    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    import ray

    ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level=logging.CRITICAL)
    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    laps.mark()
    rows = ray.data.from_items([{"file": str(i)} for i in range(CLIPS)], override_num_blocks=16)
    found = rows.map_batches(Actor, batch_size=75, compute=ray.data.ActorPoolStrategy(size=2), num_cpus=1).take_all()
    assert len(found) == CLIPS
    laps.mark()
    ray.shutdown()


def count(cluster: str | None) -> Callable[[str, Laps], None]:
    def evaluate(folder: str, laps: Laps) -> None:
        from hitmiss.outofcore.executors import sequential
        from hitmiss.outofcore.stream import evaluate_streamed

        with _executor(cluster) as run:
            laps.mark()
            asked = {"metrics": ["eer", "min_dcf", "roc_auc"], "by": ["codec"]}
            evaluate_streamed(f"{folder}/shards/*.parquet", run=run or sequential, **asked)
            laps.mark()

    return evaluate


@contextmanager
def _executor(cluster: str | None) -> Iterator[Any]:
    if cluster is None:
        yield None
        return
    from hitmiss.cluster.ray import joined
    from hitmiss.cluster.tasks import RayTasks

    with joined(cluster) as found:
        list(RayTasks(found)(abs, [(1,), (2,)]))  # the processes are there
        yield RayTasks(found)


def call(_: str, laps: Laps) -> None:
    """Tasks that do nothing."""
    with _executor("auto") as run:
        laps.mark()
        assert len(list(run(abs, [(i,) for i in range(CALLS)]))) == CALLS
        laps.mark()


PROGRAMS: dict[str, Callable[[str, Laps], None]] = {
    "one process": score_here,
    "--cluster auto, 1 actor": score_on(1),
    "--cluster auto, 2 actors": score_on(2),
    "Ray Data, pool of 2 actors": score_by_ray_data,
    "--stream, one process (polars has both cores)": count(None),
    "--cluster auto, 2 workers": count("auto"),
    "tasks that do nothing": call,
}


class Watch:
    """Processor seconds and memory of a process and all under it, looked at five times a second."""

    def __init__(self) -> None:
        self.peak = 0
        self._cpu: dict[int, float] = {}
        self._sums: list[tuple[float, float]] = [(0.0, 0.0)]

    def look(self, root: int, now: float) -> None:
        memory = 0
        for pid in list(_family(root)):
            try:
                memory += int(Path(f"/proc/{pid}/smaps_rollup").read_text().partition("\nPss:")[2].split()[0])
                self._cpu[pid] = processor(pid)
            except (OSError, IndexError):
                continue  # it ended; what it had used by then counts
        self.peak = max(self.peak, memory)
        self._sums.append((now, sum(self._cpu.values())))

    def until(self, then: float) -> float:
        """Processor seconds up to a time."""
        return max(total for at, total in self._sums if at <= then)


def processor(pid: int) -> float:
    """Processor seconds of a process that lives."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICK


def _family(pid: int) -> Iterator[int]:
    yield pid
    try:
        for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
            yield from _family(int(child))
    except OSError:
        return


def run(name: str, folder: str) -> dict[str, tuple[float, float]]:
    """One program: its phases, its processor seconds and its memory."""
    words = [sys.executable, __file__, name, folder]
    nowhere = subprocess.DEVNULL
    began = time.perf_counter()
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=nowhere, text=True)
    watch = Watch()
    while process.poll() is None:
        watch.look(process.pid, time.perf_counter() - began)
        time.sleep(0.2)
    whole = time.perf_counter() - began
    assert process.returncode == 0 and process.stdout is not None, name
    start, end = json.loads(process.stdout.read().splitlines()[-1])
    spent = [watch.until(t) for t in (start, end, whole)]
    phases = {"start": (start, spent[0]), "work": (end - start, spent[1] - spent[0]), "all": (whole, spent[2])}
    return {**phases, "mb": (watch.peak / 1e3, 0.0)}


def make_shards(folder: Path) -> None:
    folder.mkdir()
    for k in range(SHARDS):
        rng = np.random.default_rng(k)
        real = rng.random(ROWS) < 0.2
        frame = pl.DataFrame(
            {
                "item": pl.Series(np.arange(ROWS)).cast(pl.String) + f"_{k}",
                "label": np.where(real, "bonafide", "spoof"),
                "score": (rng.standard_normal(ROWS) + 3 * real).astype(np.float32),
                "codec": rng.choice([f"C{i:02d}" for i in range(12)], ROWS),
            }
        )
        frame.write_parquet(folder / f"{k:03d}.parquet")


def table(names: list[str]) -> dict[str, dict[str, tuple[float, float]]]:
    """Run some programs and print what they took."""
    print("| program | start | work | all | peak memory |\n|---|---|---|---|---|")
    found = {}
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            shards = Path(folder) / "shards"
            if "--stream" in names[0]:
                make_shards(shards)
            row = found[name] = run(name, folder)
        times = " | ".join(f"{row[k][0]:.1f} s ({row[k][1]:.1f})" for k in ("start", "work", "all"))
        print(f"| {name} | {times} | {row['mb'][0]:,.0f} MB |", flush=True)
    return found


def main() -> None:
    names, before = list(PROGRAMS), os.getloadavg()[0]
    print(f"{CLIPS:,} clips scored:\n")
    table(names[:4])
    print(f"\n{SHARDS} shards of {ROWS:,} rows counted:\n")
    table(names[4:6])
    print()
    idle = table(names[6:])[names[6]]
    wall, cpu = (1e3 * seconds / CALLS for seconds in idle["work"])
    print(f"\nA task costs {wall:.1f} ms ({cpu:.1f} ms of a processor) beside its work; {CALLS:,} were done.")
    after, cores = os.getloadavg()[0], len(os.sched_getaffinity(0))
    print(f"Processes that wanted a core, before and after: {before:.0f} and {after:.0f}, for {cores} cores.")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        marks = Laps()
        PROGRAMS[sys.argv[1]](sys.argv[2], marks)
        print(json.dumps(marks.at))
    else:
        main()
