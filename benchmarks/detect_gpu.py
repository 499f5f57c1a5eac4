"""BEATs-size transformer on a GPU: the model alone, the loop that feeds it, and other ways to do the same beside them.

    python benchmarks/detect_gpu.py [--clips 12288] [--seconds 10] [--workers 12] [--minutes 5.5]

Needs torch and numpy; polars for the loop's rows and ray for those through a cluster, which are left out without them. No network. Weights are random. Clips are
made by the loaders: drawing 10 s of noise takes 1 to 2 ms, which is what decoding 3 to 5 s of FLAC takes. Without CUDA it
runs tiny, to show that it runs. Beside hitmiss, in the same run: the network as the official code is shaped (convolution,
bias matrix, products and softmax one by one, autocast), and a plain loop over torch's DataLoader with pinned memory.
Every row says how busy the driver found the GPU, and rates are taken from the second batch to the last.
"""

from __future__ import annotations

import argparse
import math
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from hitmiss.detection.beats import Beats, BeatsConfig, BeatsDetector, random_checkpoint
from hitmiss.detection.beats_encoder import PLAIN, Arrangement, relative_buckets
from hitmiss.detection.filterbank import BINS, DEVIATION, MEAN, fbank

RATE = 16000
TINY = BeatsConfig(
    encoder_layers=2, encoder_embed_dim=64, encoder_ffn_embed_dim=128, encoder_attention_heads=4, embed_dim=32
)
ON_GPU = torch.cuda.is_available()
Row = dict[str, str]
Array = np.ndarray[Any, Any]


def noise(number: int, length: int) -> Array:
    """A clip, in about the time that decoding takes."""
    return np.random.default_rng(number).standard_normal(length, dtype=np.float32) * np.float32(0.1)


def lengths(n: int, seconds: float, vary: bool) -> list[int]:
    """Samples of made-up clips: all of one length, or from a third of it to one and two thirds."""
    scale = np.random.default_rng(0).uniform(1 / 3, 5 / 3, n) if vary else np.ones(n)
    return [int(s * seconds * RATE) for s in scale]


def load(row: Mapping[str, Any]) -> Array:
    """The clip of a manifest's row."""
    number, length = map(int, row["file"].split("_"))
    return noise(number, length)


def opened(precision: str, device: str) -> BeatsDetector:
    """The network with random weights, in any process."""
    config = BeatsConfig() if ON_GPU else TINY
    network = Beats(config, random_checkpoint(config)["model"])
    return BeatsDetector(network, digest="random", precision=precision, device=device)


class Official(torch.nn.Module):
    """The network in the shape of the official code: one step after the other, every matrix formed."""

    def __init__(self, config: BeatsConfig, weights: Mapping[str, Any], device: str) -> None:
        super().__init__()
        self.config = config
        self.w = {name: tensor.float().to(device) for name, tensor in weights.items()}
        direction = self.w["encoder.pos_conv.0.weight_v"]
        self.kernel = self.w["encoder.pos_conv.0.weight_g"] * direction / direction.norm(dim=(0, 1), keepdim=True)

    def forward(self, waves: Any) -> Any:
        config, w, functional = self.config, self.w, torch.nn.functional
        size = config.input_patch_size
        energies = (fbank(waves * 2.0**15, BINS) - MEAN) / (2 * DEVIATION)
        x = functional.conv2d(energies[:, None], w["patch_embedding.weight"], stride=size).flatten(2).transpose(1, 2)
        x = self._linear(self._norm(x, "layer_norm"), "post_extract_proj")
        around = functional.conv1d(
            x.transpose(1, 2),
            self.kernel,
            w["encoder.pos_conv.0.bias"],
            padding=config.conv_pos // 2,
            groups=config.conv_pos_groups,
        )
        x = self._norm(x + functional.gelu(around[..., : x.shape[1]]).transpose(1, 2), "encoder.layer_norm")
        at = torch.arange(x.shape[1], device=x.device)
        buckets = relative_buckets(at[None, :] - at[:, None], config.num_buckets, config.max_distance)
        bias = w["encoder.layers.0.self_attn.relative_attention_bias.weight"][buckets].permute(2, 0, 1)[None]
        for i in range(config.encoder_layers):
            name = f"encoder.layers.{i}."
            x = self._norm(x * config.alpha + self._attention(x, name, bias), f"{name}self_attn_layer_norm")
            inner = functional.gelu(self._linear(x, f"{name}fc1"))
            x = self._norm(x * config.alpha + self._linear(inner, f"{name}fc2"), f"{name}final_layer_norm")
        return self._linear(x, "predictor").mean(dim=1)

    def _attention(self, x: Any, name: str, bias: Any) -> Any:
        heads, (n, length, width) = self.config.encoder_attention_heads, x.shape
        q, k, v = (
            self._linear(x, f"{name}self_attn.{part}_proj").view(n, length, heads, width // heads).transpose(1, 2)
            for part in "qkv"
        )
        sums = self._linear(q, f"{name}self_attn.grep_linear").view(n, heads, length, 2, 4).sum(dim=-1)
        first, second = torch.sigmoid(sums).split(1, dim=-1)
        gate = first * (second * self.w[f"{name}self_attn.grep_a"] - 1.0) + 2.0
        weights = torch.softmax((q @ k.transpose(-1, -2)).float() / math.sqrt(width // heads) + gate * bias, dim=-1)
        out = (weights.to(v.dtype) @ v).transpose(1, 2).reshape(n, length, width)
        return self._linear(out, f"{name}self_attn.out_proj")

    def _linear(self, x: Any, name: str) -> Any:
        return torch.nn.functional.linear(x, self.w[f"{name}.weight"], self.w[f"{name}.bias"])

    def _norm(self, x: Any, name: str) -> Any:
        weight, bias = self.w[f"{name}.weight"], self.w[f"{name}.bias"]
        return torch.nn.functional.layer_norm(x, weight.shape, weight, bias)


@dataclass
class Utilisation:
    """Asks the driver five times a second how busy the GPU is."""

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
        while program and ON_GPU and not self._end.wait(0.2):
            done = subprocess.run(words, capture_output=True, text=True, check=False)
            self.samples += [float(v) for v in done.stdout.split()[:1] if v.isdigit()]

    def __str__(self) -> str:
        busy = [s for s in self.samples if s > 0]
        return f"{np.mean(busy):.0f} %" if busy else "–"


def synchronize() -> None:
    """Wait for the GPU, where there is one."""
    if ON_GPU:
        torch.cuda.synchronize()


def steady(step: Callable[[], Any], per_step: int, seconds: float) -> tuple[float, Utilisation]:
    """Items per second of a step that is repeated, after two for warming up."""
    for _ in range(2):
        step()
    synchronize()
    with Utilisation() as busy:
        start, n = time.perf_counter(), 0
        while time.perf_counter() - start < seconds:
            for _ in range(4):
                step()
            synchronize()
            n += 4
        return n * per_step / (time.perf_counter() - start), busy


class Bench:
    """The rows of the table, each left out where its time or its parts are missing."""

    def __init__(self, given: argparse.Namespace) -> None:
        self.given, self.config = given, BeatsConfig() if ON_GPU else TINY
        self.weights = random_checkpoint(self.config)["model"]
        self.began = time.monotonic()
        self.rows: list[Row] = []
        self.made: dict[str, BeatsDetector] = {}
        self.device = "cuda" if ON_GPU else "cpu"
        self.batch = max(2, int(655 / given.seconds)) if ON_GPU else 4
        self.best = 0.0

    @property
    def left(self) -> float:
        """Seconds that are left."""
        return 60 * self.given.minutes - (time.monotonic() - self.began)

    def attempt(self, what: str, precision: str, needs: float, measure: Callable[[], Mapping[str, str]]) -> None:
        """A row, or the reason why there is none."""
        row = {"what": what, "precision": precision, "clips/s": "", "× real time": "", "GPU busy": "", "note": ""}
        try:
            row |= {"note": "no time left"} if self.left < needs else dict(measure())
        except Exception as error:
            row["note"] = f"{type(error).__name__}: {' '.join(str(error).split())[:160]}"
        self.rows.append(row)
        print(f"{60 * self.given.minutes - self.left:5.0f} s  {' | '.join(row.values())}", flush=True)

    def detector(self, precision: str, arrangement: Arrangement | None = None) -> BeatsDetector:
        """The network with random weights, made once."""
        key = f"{precision} {arrangement}"
        if key not in self.made:
            network = Beats(self.config, self.weights)
            made = BeatsDetector(
                network, digest="random", precision=precision, device=self.device, arrangement=arrangement
            )
            self.made[key] = made
        return self.made[key]

    def rated(self, rate: float, busy: Utilisation, note: str = "", seconds: float | None = None) -> Row:
        """The cells of a rate."""
        sound = rate * (seconds or self.given.seconds)
        return {"clips/s": f"{rate:,.0f}", "× real time": f"{sound:,.0f}", "GPU busy": str(busy), "note": note}

    def alone(self, precision: str, arrangement: Arrangement | None = None, is_best: bool = False) -> Row:
        """What the network does with a batch that is on the device already: the ceiling."""
        model = self.detector(precision, arrangement)
        staged = model.prepare([noise(i, int(self.given.seconds * RATE)) for i in range(self.batch)])
        start = time.perf_counter()
        model.outputs(staged)
        compiling = time.perf_counter() - start
        rate, busy = steady(lambda: model.launch(staged), self.batch, 3.0 if ON_GPU else 0.5)
        self.best = rate if is_best else self.best
        return self.rated(rate, busy, "; ".join([f"first batch {compiling:.1f} s", *model.notes]))

    def official(self, precision: str) -> Row:
        """The network in the official shape."""
        network = Official(self.config, self.weights, self.device)
        waves = torch.from_numpy(np.stack([noise(i, int(self.given.seconds * RATE)) for i in range(self.batch)]))
        moved = waves.to(self.device)

        def step() -> Any:
            with torch.inference_mode(), autocast(precision, self.device):
                return network(moved)

        ours = self.detector("float32").outputs(list(waves.numpy()))
        change = np.abs(step().float().cpu().numpy() - ours).max()
        rate, busy = steady(step, self.batch, 3.0 if ON_GPU else 0.5)
        return self.rated(rate, busy, f"logits differ from ours in float32 by at most {change:.1e}")

    def loop(self, precision: str, clips: int, vary: bool) -> Row:
        """The loop of hitmiss with worker processes."""
        return self.fed(self.detector(precision), precision, clips, vary)

    def over_ray(self, precision: str, clips: int, vary: bool) -> Row:
        """The same through a Ray cluster on this machine: one process with the model, and its workers."""
        from hitmiss.cluster.ray import joined
        from hitmiss.detection.cluster import RayDetector

        opening = partial(opened, precision, self.device)
        with joined("auto") as cluster, RayDetector(cluster, opening, actors=1, decoders=self.given.workers) as fleet:
            return self.fed(fleet, precision, clips, vary)

    def fed(self, model: object, precision: str, clips: int, vary: bool) -> Row:
        """A run over made-up clips."""
        import polars as pl

        from hitmiss.detection.loop import run_detector
        from hitmiss.detection.outputs import Extraction
        from hitmiss.detection.settings import Settings
        from hitmiss.io.manifest import read_manifest

        sizes = lengths(clips, self.given.seconds, vary)
        names = [f"{i}_{size}" for i, size in enumerate(sizes)]
        manifest = read_manifest(pl.DataFrame({"file": names, "label": ["real", "fake"] * (clips // 2)}))
        marks: list[tuple[float, int]] = []
        settings = Settings(check=0, extraction=Extraction(1, "logit"), workers=self.given.workers)
        with tempfile.TemporaryDirectory() as folder, Utilisation() as busy:
            outcome = run_detector(
                model,
                manifest,
                settings,
                output=Path(folder) / "run",
                load=load,
                report=lambda clock: marks.append((time.perf_counter(), clock.n_done)),
            )
        rate = between(marks)
        share = f"{rate / self.best:.0%} of the model alone; " if self.best and precision == "bfloat16" else ""
        return self.rated(rate, busy, share + outcome.progress.line(), sum(sizes) / len(sizes) / RATE)

    def decoding(self, clips: int) -> Row:
        """What the workers give when nothing is done with it."""
        from hitmiss.detection.loader_processes import feed
        from hitmiss.detection.preparation import Preparation

        length = int(self.given.seconds * RATE)
        tasks = iter([(i, {"file": f"{i}_{length}"}) for i in range(clips)])
        model, marks = self.detector("bfloat16" if ON_GPU else "float32"), list[tuple[float, int]]()
        for n, _ in enumerate(feed(Preparation(load), tasks, self.given.workers, model.buffer)):
            marks.append((time.perf_counter(), n))
        return self.rated(between(marks), Utilisation(), "the workers alone: no model")

    def dataloader(self, precision: str, clips: int, official: bool, vary: bool = False) -> Row:
        """A plain loop over torch's own loader: pinned memory, prefetching, batches in the order of the files."""
        sizes = lengths(clips, self.given.seconds, vary)
        loader = torch.utils.data.DataLoader(
            Noise(sizes),
            batch_size=self.batch,
            num_workers=self.given.workers,
            pin_memory=ON_GPU,
            prefetch_factor=4 if self.given.workers else None,
            collate_fn=padded,
        )
        network = Official(self.config, self.weights, self.device) if official else None
        model = self.detector(precision)
        marks: list[tuple[float, int]] = []
        with Utilisation() as busy:
            for n, scores in enumerate(self._plain(loader, network, model, precision)):
                marks.append((time.perf_counter(), n * self.batch))
                assert len(scores)
        return self.rated(between(marks), busy, seconds=sum(sizes) / len(sizes) / RATE)

    def _plain(self, loader: Any, network: Any, model: BeatsDetector, precision: str) -> Iterator[Array]:
        for waves, sizes in loader:
            moved = waves.to(self.device, non_blocking=True)
            if network is not None:
                with torch.inference_mode(), autocast(precision, self.device):
                    logits = network(moved)
            else:
                with model.arithmetic():
                    logits = model.network(moved, sizes)
            yield logits.float().cpu().numpy()

    def correctness(self) -> None:
        """How far the precisions and arrangements are from the plain form in float32, and padding from none."""
        sizes = lengths(16, min(self.given.seconds, 6.0), vary=True)
        clips = [noise(1000 + i, size) for i, size in enumerate(sizes)]
        wanted = self.detector("float32", PLAIN).outputs(clips)
        odds = wanted[:, 1] - wanted[:, 0]
        print(f"log-odds of 16 clips of mixed lengths: {odds.min():.3f} to {odds.max():.3f}; largest change against the "
              f"plain form in float32, and of a clip alone against the same clip in its batch:")  # fmt: skip
        kinds = (
            [("float32", None), ("tf32", None), ("bfloat16", None), ("bfloat16", PLAIN)]
            if ON_GPU
            else [("float32", None)]
        )
        for precision, arrangement in kinds:
            try:
                model = self.detector(precision, arrangement)
                found = model.outputs(clips)
                alone = np.concatenate([model.outputs([clip]) for clip in clips[:6]])
                change = np.abs((found[:, 1] - found[:, 0]) - odds).max()
                moved = np.abs((alone[:, 1] - alone[:, 0]) - (found[:6, 1] - found[:6, 0])).max()
                name = "plain" if arrangement == PLAIN else "arranged"
                print(f"  {precision:9} {name:9} {change:.1e}   {moved:.1e}   {'; '.join(model.notes)}", flush=True)
            except Exception as error:
                print(f"  {precision}: {type(error).__name__}: {str(error)[:300]}", flush=True)


class Noise(torch.utils.data.Dataset):  # type: ignore[type-arg]
    """The same clips for torch's loader."""

    def __init__(self, sizes: list[int]) -> None:
        self.sizes = sizes

    def __len__(self) -> int:
        return len(self.sizes)

    def __getitem__(self, at: int) -> Any:
        return torch.from_numpy(noise(at, self.sizes[at]))


def padded(clips: list[Any]) -> tuple[Any, list[int]]:
    """Clips as one tensor, padded to the longest."""
    return torch.nn.utils.rnn.pad_sequence(clips, batch_first=True), [len(clip) for clip in clips]


def autocast(precision: str, device: str) -> AbstractContextManager[Any]:
    """Mixed precision as a plain script has it."""
    if precision == "float32":
        torch.backends.cudnn.allow_tf32 = False  # torch lets convolutions round to TF32 unless told not to
        return nullcontext()
    return torch.autocast(device, dtype=getattr(torch, precision))


def between(marks: list[tuple[float, int]]) -> float:
    """Items per second between the first mark with anything done and the last."""
    told = [mark for mark in marks if mark[1] > 0]
    if len(told) < 2 or told[-1][0] == told[0][0]:
        return float("nan")
    return (told[-1][1] - told[0][1]) / (told[-1][0] - told[0][0])


def measured(bench: Bench) -> None:
    """All rows, the most wanted first."""
    seconds, clips = bench.given.seconds, bench.given.clips
    half = "bfloat16" if ON_GPU else "float32"
    bench.attempt(f"the model alone, {seconds:g} s clips", half, 30, lambda: bench.alone(half, is_best=True))
    name = f"the loop, {clips:,} clips of {seconds:g} s, {bench.given.workers} workers"
    bench.attempt(name, half, 30, lambda: bench.loop(half, clips, vary=False))
    span = f"{seconds / 3:.1f} to {seconds * 5 / 3:.1f} s"
    bench.attempt(f"the loop, clips of {span}", half, 30, lambda: bench.loop(half, clips, vary=True))
    many = 4 * clips
    name = f"the loop through --cluster, {many:,} clips of {seconds:g} s"
    bench.attempt(name, half, 60, lambda: bench.over_ray(half, many, vary=False))
    bench.attempt("the workers alone", "–", 20, lambda: bench.decoding(clips // 2))
    bench.attempt("DataLoader, our network", half, 20, lambda: bench.dataloader(half, clips // 2, official=False))
    name = f"DataLoader, our network, {span}"
    bench.attempt(name, half, 20, lambda: bench.dataloader(half, clips // 2, official=False, vary=True))
    bench.attempt("official shape alone", half, 15, lambda: bench.official(half))
    few = max(bench.batch * 8, clips // 4)
    bench.attempt("DataLoader, official shape", half, 20, lambda: bench.dataloader(half, few, official=True))
    if ON_GPU:
        bench.attempt("the model alone", "float32", 30, lambda: bench.alone("float32"))
        bench.attempt("official shape alone", "float32", 15, lambda: bench.official("float32"))
        bench.attempt("the plain form alone", half, 15, lambda: bench.alone(half, PLAIN))
        bench.attempt("the plain form alone", "float32", 15, lambda: bench.alone("float32", PLAIN))
        bench.attempt("the model alone", "tf32", 30, lambda: bench.alone("tf32"))
        bench.attempt("the loop", "float32", 30, lambda: bench.loop("float32", few, vary=False))
        padded_form = Arrangement.best(bench.device)
        bench.attempt("padded clips", half, 15, lambda: bench.alone(half, padded_form))
    bench.correctness()


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clips", type=int, default=12288 if ON_GPU else 64)
    parser.add_argument("--seconds", type=float, default=10.0 if ON_GPU else 1.0)
    parser.add_argument("--workers", type=int, default=12 if ON_GPU else 1)
    parser.add_argument("--minutes", type=float, default=5.5)
    given = parser.parse_args()
    bench = Bench(given)
    name = torch.cuda.get_device_name() if ON_GPU else "CPU, tiny network"
    parameters = sum(tensor.numel() for tensor in bench.weights.values())
    print(f"{name}, torch {torch.__version__}, Python {sys.version.split()[0]}, {parameters / 1e6:.1f} M parameters\n")
    measured(bench)
    print(f"\n| {' | '.join(bench.rows[0])} |\n|{'---|' * len(bench.rows[0])}")
    for line in bench.rows:
        print(f"| {' | '.join(line.values())} |")


if __name__ == "__main__":
    main()
