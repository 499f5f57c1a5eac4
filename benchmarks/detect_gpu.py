"""BEATs-size transformer on a GPU: throughput, utilisation, and the share of time that the model waits for data.

    python benchmarks/detect_gpu.py [--clips 4096] [--seconds 10] [--workers 0 4 8]

Needs torch, numpy and polars alone, and no network. Weights are random; clips are made by the loaders at about the cost of
decoding a FLAC file (1.2 ms for 3.3 s). Without CUDA it runs tiny, to show that it runs.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import torch

from hitmiss.detect.beats import Beats, BeatsConfig, BeatsDetector, random_checkpoint
from hitmiss.detect.extract import Extraction
from hitmiss.detect.loop import run_detector
from hitmiss.detect.settings import Outcome, Settings
from hitmiss.io.manifest import Manifest, read_manifest

RATE = 16000
TINY = BeatsConfig(
    encoder_layers=2, encoder_embed_dim=64, encoder_ffn_embed_dim=128, encoder_attention_heads=4, embed_dim=32
)
Row = dict[str, Any]
Array = np.ndarray[Any, Any]


def corpus(n: int, seconds: float, vary: bool) -> Manifest:
    """Made-up clips: all of one length, or from a third of it to one and two thirds."""
    rng = np.random.default_rng(0)
    scale = rng.uniform(1 / 3, 5 / 3, n) if vary else np.ones(n)
    names = [f"{i}_{int(s * seconds * RATE)}" for i, s in enumerate(scale)]
    return read_manifest(pl.DataFrame({"file": names, "label": ["real", "fake"] * (n // 2)}))


def load(row: Mapping[str, Any]) -> Array:
    """Noise, in about the time that decoding takes."""
    number, length = map(int, row["file"].split("_"))
    return np.random.default_rng(number).standard_normal(length, dtype=np.float32) * np.float32(0.1)


@dataclass
class Utilisation:
    """Asks the driver twice a second how busy the GPU is."""

    samples: list[float] = field(default_factory=list)
    _end: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> Utilisation:
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: Any) -> None:
        self._end.set()
        self._thread.join()

    def _watch(self) -> None:
        program = shutil.which("nvidia-smi")
        words = [program or "", "--query-gpu=utilization.gpu", "--format=csv,noheader,nounits"]
        while program and torch.cuda.is_available() and not self._end.wait(0.5):
            done = subprocess.run(words, capture_output=True, text=True, check=False)
            self.samples += [float(v) for v in done.stdout.split()[:1]]

    def __str__(self) -> str:
        busy = [s for s in self.samples if s > 0]
        return f"{np.mean(busy):.0f} %" if busy else "–"


def detector(config: BeatsConfig, precision: str) -> BeatsDetector:
    """The network with random weights."""
    network = Beats(config, random_checkpoint(config)["model"])
    return BeatsDetector(network, digest="random", precision=precision)


def run(model: BeatsDetector, manifest: Manifest, **settings: Any) -> tuple[Outcome, float, Utilisation]:
    """One run; its outcome, its seconds from the first batch on, and how busy the GPU was."""
    rule = Extraction(positive_index=1, kind="logit")
    with tempfile.TemporaryDirectory() as folder, Utilisation() as busy:
        marks: list[float] = []
        outcome = run_detector(
            model,
            manifest,
            Settings(check=0, extraction=rule, **settings),
            output=Path(folder) / "run",
            load=load,
            report=lambda clock: marks.append(time.perf_counter()),
        )
        return outcome, marks[-1] - marks[0], busy


def measure(what: str, model: BeatsDetector, manifest: Manifest, **settings: Any) -> Row:
    """A row: clips and seconds of sound a second, from the first batch to the last."""
    outcome, seconds, busy = run(model, manifest, **settings)
    clock, n = outcome.clock, outcome.n_scored
    done = n - min(n, int(model.batch_seconds * RATE / (clock.sound / n * RATE)))  # the first batch is the warm-up
    return {
        "what": what,
        "precision": model.precision,
        "workers": settings.get("workers", 0),
        "clips/s": f"{done / seconds:,.0f}",
        "× real time": f"{done / seconds * clock.sound / n:,.0f}",
        "GPU busy": str(busy),
        "waiting for data": f"{clock.wait / clock.elapsed:.0%}",
        "model": f"{clock.model / clock.elapsed:.0%}",
        "write": f"{clock.write / clock.elapsed:.0%}",
    }


def model_alone(model: BeatsDetector, seconds: float, n: int) -> Row:
    """What the network does with a batch that lies on the device already: the ceiling."""
    per_batch = max(1, int(model.batch_seconds / seconds))
    batch = model.prepare(np.zeros((per_batch, int(seconds * RATE)), dtype=np.float32) + np.float32(0.01))
    model.outputs(batch)
    start, rounds = time.perf_counter(), max(1, n // per_batch)
    for _ in range(rounds):
        model.outputs(batch)
    rate = rounds * per_batch / (time.perf_counter() - start)
    base = dict.fromkeys(("workers", "GPU busy", "waiting for data", "write"), "–")
    shown = {"clips/s": f"{rate:,.0f}", "× real time": f"{rate * seconds:,.0f}", "model": "100%"}
    return {"what": f"the model alone, {seconds:g} s clips", "precision": model.precision, **base, **shown}


def rows(clips: int, seconds: float, workers: list[int]) -> list[Row]:
    """The table: the ceiling, then the loop with more and more workers, then clips of all lengths."""
    on_gpu = torch.cuda.is_available()
    config = BeatsConfig() if on_gpu else TINY
    made: list[Row] = []
    for precision in ("bfloat16", "float32") if on_gpu else ("float32",):
        model = detector(config, precision)
        made.append(model_alone(model, seconds, clips // 2))
        manifest = corpus(clips, seconds, vary=False)
        for n in workers if precision != "float32" or not on_gpu else workers[-1:]:
            made.append(measure(f"{clips:,} clips of {seconds:g} s", model, manifest, workers=n))
        varied = corpus(clips, seconds, vary=True)
        made.append(measure(f"… of {seconds / 3:.1f} to {seconds * 5 / 3:.1f} s", model, varied, workers=workers[-1]))
    columns = list(made[1])
    return [{name: row[name] for name in columns} for row in made]


def main() -> None:
    """Print the table."""
    on_gpu = torch.cuda.is_available()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clips", type=int, default=4096 if on_gpu else 64)
    parser.add_argument("--seconds", type=float, default=10.0 if on_gpu else 1.0)
    parser.add_argument("--workers", type=int, nargs="+", default=[0, 4, 12] if on_gpu else [0, 2])
    given = parser.parse_args()
    found = rows(given.clips, given.seconds, given.workers)
    name = torch.cuda.get_device_name() if on_gpu else "CPU, tiny network"
    parameters = sum(t.numel() for t in detector(BeatsConfig() if on_gpu else TINY, "float32").network.weights.values())
    print(f"{name}, torch {torch.__version__}, Python {sys.version.split()[0]}, {parameters / 1e6:.1f} M parameters\n")
    print(f"| {' | '.join(found[0])} |\n|{'---|' * len(found[0])}")
    for line in found:
        print(f"| {' | '.join(str(v) for v in line.values())} |")


if __name__ == "__main__":
    main()
