"""Running a detector over a corpus: throughput, ONNX against eager torch, what the loop adds, memory.

    python benchmarks/detect.py            (needs torch, onnx, onnxruntime, onnxscript)
    python benchmarks/detect.py --photos 1000        the memory of a run over photos alone

One run, one thread, processor time. The corpus is made in memory (no decoding): lengths as in a speech corpus, 1.4 to
12.6 s, mean about 4.4 s at 16 kHz. The models have random weights: only their cost matters here.
"""

from __future__ import annotations

import os

os.environ.update(dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1"))

import resource
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from hitmiss.detection.loop import run_detector
from hitmiss.detection.outputs import Extraction
from hitmiss.detection.settings import Outcome, Settings
from hitmiss.io.manifest import Manifest, read_manifest
from timing import cpu

RATE = 16000
CLIPS = 192
BATCH = 32
Row = dict[str, Any]
Array = np.ndarray[Any, Any]


def lengths(n: int) -> Array:
    """Samples of each clip: log-normal, cut to 1.4 … 12.6 s."""
    rng = np.random.default_rng(0)
    return np.clip(rng.lognormal(1.35, 0.5, n), 1.4, 12.6) * RATE // 160 * 160


def corpus(n: int) -> Manifest:
    """A manifest whose file names are the lengths of made-up clips."""
    names = [f"{i}_{int(length)}" for i, length in enumerate(lengths(n))]
    return read_manifest(pl.DataFrame({"file": names, "label": ["real", "fake"] * (n // 2)}))


def load(row: Mapping[str, Any]) -> Array:
    """The clip of a row: noise of that length."""
    number, length = map(int, row["file"].split("_"))
    return np.random.default_rng(number).standard_normal(length, dtype=np.float32) * np.float32(0.1)


def spectral_net(torch: Any) -> Any:
    """A small CNN on a log spectrogram: what many detectors look like."""

    class Net(torch.nn.Module):  # type: ignore[name-defined,misc]
        def __init__(self) -> None:
            super().__init__()
            layers = []
            for inner, outer in ((1, 16), (16, 32), (32, 32)):
                layers += [
                    torch.nn.Conv2d(inner, outer, 3, stride=2, padding=1),
                    torch.nn.BatchNorm2d(outer),
                    torch.nn.ReLU(),
                ]
            self.body, self.head = torch.nn.Sequential(*layers), torch.nn.Linear(32, 2)
            self.register_buffer("window", torch.hann_window(400))

        def forward(self, x: Any) -> Any:
            spectrum = torch.stft(x, 512, 160, 400, self.window, return_complex=True).abs()
            return self.head(self.body(torch.log(spectrum + 1e-3)[:, None]).mean(dim=(2, 3)))

    torch.manual_seed(0)
    return Net().eval()


def raw_net(torch: Any) -> Any:
    """Residual blocks on the waveform, in the manner of AASIST's encoder: exports to ONNX as it is."""
    nn = torch.nn

    class Block(nn.Module):  # type: ignore[name-defined,misc]
        def __init__(self, inner: int, outer: int) -> None:
            super().__init__()
            self.first, self.second = nn.BatchNorm2d(inner), nn.BatchNorm2d(outer)
            self.one, self.two = (
                nn.Conv2d(inner, outer, (2, 3), padding=(1, 1)),
                nn.Conv2d(outer, outer, (2, 3), padding=(0, 1)),
            )
            self.skip = nn.Conv2d(inner, outer, (1, 3), padding=(0, 1))
            self.shrink = nn.MaxPool2d((1, 3))

        def forward(self, x: Any) -> Any:
            y = torch.selu(self.second(self.one(torch.selu(self.first(x)))))
            return self.shrink(self.two(y) + self.skip(x))

    class Net(nn.Module):  # type: ignore[name-defined,misc]
        def __init__(self) -> None:
            super().__init__()
            self.front = nn.Conv1d(1, 70, 129, stride=1)
            self.shrink = nn.MaxPool2d((3, 3))
            self.blocks = nn.Sequential(*(Block(a, b) for a, b in ((1, 32), (32, 32), (32, 64), (64, 64))))
            self.head = nn.Linear(64, 2)

        def forward(self, x: Any) -> Any:
            y = torch.selu(self.shrink(self.front(x[:, None]).abs()[:, None]))
            return self.head(self.blocks(y).mean(dim=(2, 3)))

    torch.manual_seed(0)
    return Net().eval()


def through_the_loop(detector: Any, manifest: Manifest, load: Any = load, **settings: Any) -> Outcome:
    """One run into a folder that is thrown away."""
    with tempfile.TemporaryDirectory() as folder:
        chosen = Settings(**{"check": 0, "extraction": Extraction(kind="logit"), **settings})
        return run_detector(detector, manifest, chosen, output=Path(folder) / "run", load=load)


def plain_loop(torch: Any, net: Any, clips: list[Array], longest: int | None, grad: bool) -> None:
    """Batches of 32 in the order of the files, padded to the longest of the batch or of the corpus."""
    with torch.set_grad_enabled(grad):
        for start in range(0, len(clips), BATCH):
            part = clips[start : start + BATCH]
            padded = np.zeros((len(part), longest or max(map(len, part))), dtype=np.float32)
            for row, clip in zip(padded, part, strict=True):
                row[: len(clip)] = clip
            torch.softmax(net(torch.from_numpy(padded)), dim=1)[:, 1].detach().numpy()


def row(what: str, ours: float, peer: str, theirs: float, target: float, n: int) -> Row:
    """A row that wants ours × target <= theirs, in milliseconds a clip."""
    return {
        "what": what,
        "hitmiss": f"{1e3 * ours / n:.1f} ms",
        "against": peer,
        "takes": f"{1e3 * theirs / n:.1f} ms",
        "ratio": f"{theirs / ours:.1f}×",
        "target": f"≥ {target:g}×",
        "met": "yes" if theirs / ours >= target else "NO",
    }


def limit(what: str, value: float, shown: str, most: float, target: str) -> Row:
    """A row that wants a value at most so large."""
    base = dict.fromkeys(("against", "takes", "ratio"), "")
    return {"what": what, "hitmiss": shown, **base, "target": target, "met": "yes" if value <= most else "NO"}


def throughput(torch: Any) -> list[Row]:
    """The loop against what people write first."""
    from hitmiss.detection.torch import TorchDetector

    manifest, net = corpus(CLIPS), spectral_net(torch)
    clips = [load(manifest.row(i)) for i in range(CLIPS)]
    kept = dict(zip(manifest.items, clips, strict=True))
    detector = TorchDetector(net, sample_rate=RATE, name="spectral")
    exact = cpu(lambda: through_the_loop(detector, manifest, lambda r: kept[r["item"]]), 2)
    padded = cpu(lambda: through_the_loop(detector, manifest, lambda r: kept[r["item"]], pad=True), 2)
    longest = max(map(len, clips))
    corpus_wide = cpu(lambda: plain_loop(torch, net, clips, longest, True))
    batch_wide = cpu(lambda: plain_loop(torch, net, clips, None, False))
    return [
        row(
            "length-varied corpus, no padding (the default)",
            exact,
            "batch 32, padded to the longest, eager",
            corpus_wide,
            3,
            CLIPS,
        ),
        row("… neighbours in length padded (--pad)", padded, "the same", corpus_wide, 3, CLIPS),
        row("… no padding", exact, "batch 32, padded to the batch's longest, no_grad", batch_wide, 1, CLIPS),
    ]


def onnx_against_torch(torch: Any) -> list[Row]:
    """One exported model, both ways through the same loop."""
    from hitmiss.detection.onnx import OnnxDetector
    from hitmiss.detection.torch import TorchDetector

    n, net = 16, raw_net(torch)
    manifest = corpus(n)
    kept = {r["item"]: load(r)[:RATE] for r in (manifest.row(i) for i in range(n))}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        axes = {"x": {0: torch.export.Dim("batch"), 1: torch.export.Dim("time", min=4000)}}
        options = {
            "dynamo": True,
            "dynamic_shapes": axes,
            "input_names": ["x"],
            "output_names": ["logits"],
            "verbose": False,
        }
        torch.onnx.export(net, (torch.zeros(2, RATE),), **options).save(str(path))
        eager, runtime = (
            TorchDetector(net, sample_rate=RATE, name="raw"),
            OnnxDetector(path, sample_rate=RATE, threads=1),
        )
        batch = np.stack(list(kept.values())[:4])
        agree = float(np.abs(eager.outputs(batch) - runtime.outputs(batch)).max())
        slow = cpu(lambda: through_the_loop(eager, manifest, lambda r: kept[r["item"]]), 2)
        fast = cpu(lambda: through_the_loop(runtime, manifest, lambda r: kept[r["item"]]), 2)
        best_slow, best_fast = (_best(detector, manifest, kept) for detector in (eager, runtime))
    return [
        row("a model as ONNX, batches of 8 s", fast, "the same model and batches, torch eager", slow, 2.5, n),
        row("… at its best batch size", best_fast, "torch eager at its best batch size", best_slow, 1, n),
        limit("… largest difference of the logits", agree, f"{agree:.1e}", 1e-5, "≤ 1e-5"),
    ]


def _best(detector: Any, manifest: Manifest, kept: Mapping[str, Array]) -> float:
    """Processor seconds with the batch size that suits a detector best."""

    def once(items: int) -> float:
        return cpu(lambda: through_the_loop(detector, manifest, lambda r: kept[r["item"]], batch_items=items), 2)

    return min(map(once, (1, 2, 4)))


def overhead() -> list[Row]:
    """What the loop itself takes beside loading and the model."""
    n = 2000
    manifest, clip = corpus(n), np.zeros(4 * RATE, dtype=np.float32)
    outcome: list[Outcome] = []
    wall = cpu(lambda: outcome.append(through_the_loop(quick, manifest, lambda row: clip)))
    clock = outcome[0].clock
    each = 1e3 * (wall - clock.decode - clock.augment - clock.model) / n
    return [limit("what the loop adds beside decode and model", each, f"{each:.2f} ms a clip", 1.0, "≤ 1 ms")]


def quick(batch: Array) -> Array:
    """The cheapest of models."""
    return batch[:, 0] + np.arange(len(batch))


def memory() -> list[Row]:
    """The largest memory of a run over a small and a large corpus, each in a process of its own."""
    sizes = (400, 4000)
    peaks = [_peak(n) for n in sizes]
    growth = (peaks[1] - peaks[0]) / 2**20
    shown = f"{peaks[0] / 2**20:.0f} and {peaks[1] / 2**20:.0f} MiB"
    sound = lengths(sizes[1]).sum() * 4 / 2**20
    what = f"peak memory, {sizes[0]} and {sizes[1]} clips ({sound:,.0f} MiB of sound)"
    return [limit(what, growth, shown, 16.0, "+ ≤ 16 MiB")]


def _peak(n: int) -> int:
    words = [sys.executable, __file__, "--peak", str(n)]
    return int(subprocess.run(words, capture_output=True, text=True, check=True).stdout.split()[-1])


def rows() -> list[Row]:
    """Every row of the table; those of torch only where torch is."""
    made = [*overhead(), *memory()]
    try:
        import torch
    except ModuleNotFoundError:
        return made
    torch.set_num_threads(1)
    with warnings.catch_warnings(action="ignore"):
        return [*throughput(torch), *onnx_against_torch(torch), *made]


PICTURES = 20
NETWORK = """
import torch

def network():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    nn, widths = torch.nn, ((3, 16), (16, 32), (32, 64))
    steps = [step for a, b in widths for step in (nn.Conv2d(a, b, 3, stride=2, padding=1), nn.ReLU())]
    return nn.Sequential(*steps, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 2))
"""


def photos(n: int) -> None:
    """Print the memory of all processes of `hitmiss detect` over photos of 12 megapixels (20 pictures under n names)."""
    from PIL import Image

    from cluster import Watch

    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        paths = [folder / "data" / ("real" if i % 2 else "fake") / f"{i}.jpg" for i in range(n)]
        for i, path in enumerate(paths):
            path.parent.mkdir(parents=True, exist_ok=True)
            if i < PICTURES:
                rough = Image.fromarray(rng.integers(0, 256, (300, 400, 3), dtype=np.uint8))
                rough.resize((4000, 3000), Image.Resampling.BICUBIC).save(path, quality=90)
            else:
                path.hardlink_to(paths[i % PICTURES])
        size = sum(path.stat().st_size for path in paths) / n / 1e6
        (folder / "net.py").write_text(NETWORK)
        words = [
            "detect",
            "--data",
            "data",
            "--detector",
            "net.py:network",
            "--input",
            "image",
            "--picture",
            "crop=224",
        ]
        words += ["--workers", "1", "--check", "0", "--device", "cpu", "--scores", "scores.tsv", "-o", "run"]
        start, peaks = time.monotonic(), []
        process = subprocess.Popen([sys.executable, "-m", "hitmiss", *words], cwd=folder, stdout=subprocess.DEVNULL)
        while process.poll() is None:
            watch = Watch()
            watch.look(process.pid, time.monotonic() - start)
            peaks.append(watch.peak / 1000)
            time.sleep(0.5)
        scored = len((folder / "scores.tsv").read_text(encoding="utf-8").splitlines()) - 1
    quarters = [max(part) for part in np.array_split(peaks, 4)]
    print(f"{scored} of {n} photos of 4,000 × 3,000 pixels (JPEG, {size:.1f} MB) scored.")
    print("All processes together (proportional set size), at most in each quarter of the run:")
    print(", ".join(f"{peak:,.0f}" for peak in quarters), "MB.")


def main() -> None:
    """Print the table."""
    if "--photos" in sys.argv:
        photos(int(sys.argv[-1]))
        return
    if "--peak" in sys.argv:
        through_the_loop(quick, corpus(int(sys.argv[-1])))
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
        return
    table = rows()
    print(f"| {' | '.join(table[0])} |\n|{'---|' * len(table[0])}")
    for line in table:
        print(f"| {' | '.join(str(v) for v in line.values())} |")


if __name__ == "__main__":
    main()
