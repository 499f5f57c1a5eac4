"""BEATs in float32 on the processor: this checkout against that of an older commit, in turns.

    taskset -c 0,1 python benchmarks/beats_cpu.py OLD_CHECKOUT                  the network alone (needs torch)
    taskset -c 0,1 python benchmarks/beats_cpu.py OLD_CHECKOUT --command        the whole command (needs soundfile too)

As many threads as the process may use processors. Weights and clips are random: only their cost matters here. The whole
command is `hitmiss detect --detector beats:checkpoint.pt` with its own choice of batches; it runs over a few clips and over
more of them, and the difference divided by the further clips is the cost of a clip without the start of the command.
Options after `--command`, such as `--precision int8`, are given to the command of this checkout only.
"""

from __future__ import annotations

import importlib
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

RATE = 16000
SECONDS = 10
TURNS = 3
CLIPS = (1, 4)
FEW, MANY = 4, 16
LENGTHS = {"10 s": (10.0, 10.0), "3 to 12 s": (3.0, 12.0)}


def beats_once(threads: int) -> None:
    """Print seconds and processor seconds per clip of BEATs in float32, and its outputs; run by the code of any commit."""
    import torch

    torch.set_num_threads(threads)
    for name in ("hitmiss.detection.beats", "hitmiss.detect.beats"):
        try:
            module = importlib.import_module(name)
            break
        except ModuleNotFoundError:
            continue
    checkpoint = module.random_checkpoint(module.BeatsConfig())
    network = module.Beats(module.BeatsConfig.of(checkpoint["cfg"]), checkpoint["model"]).to("cpu")
    for clips in CLIPS:
        waves = torch.randn(clips, SECONDS * RATE, generator=torch.Generator().manual_seed(clips)) * 0.1
        with torch.inference_mode():
            found, best, least = network(waves), float("inf"), float("inf")
            for _ in range(TURNS):
                began, busy = time.perf_counter(), time.process_time()
                network(waves)
                best, least = min(best, time.perf_counter() - began), min(least, time.process_time() - busy)
        print(clips, best / clips, least / clips, *found[0].tolist())


def environment(checkout: Path) -> dict[str, str]:
    """Return the environment of a process that runs the code of a checkout, without a limit on its threads."""
    path = os.pathsep.join([str(checkout / "src"), os.environ.get("PYTHONPATH", "")])
    return {k: v for k, v in os.environ.items() if not k.endswith("_NUM_THREADS")} | {"PYTHONPATH": path}


def trees(old: str) -> dict[str, dict[str, str]]:
    """Return the environments of both checkouts."""
    return {"before": environment(Path(old)), "now": environment(Path(__file__).resolve().parent.parent)}


def beats(old: str) -> None:
    """Print BEATs of this checkout against that of an older one, in turns, on the processors that this process may use."""
    threads = len(os.sched_getaffinity(0))
    taken: dict[str, dict[int, list[tuple[float, float]]]] = {"now": {}, "before": {}}
    logits: dict[str, dict[int, NDArray[np.float64]]] = {"now": {}, "before": {}}
    for _ in range(TURNS):
        for which, env in trees(old).items():
            words = [sys.executable, __file__, "--once", str(threads)]
            for line in subprocess.run(words, env=env, capture_output=True, text=True, check=True).stdout.splitlines():
                clips, wall, busy, *found = map(float, line.split())
                taken[which].setdefault(int(clips), []).append((wall, busy))
                logits[which][int(clips)] = np.array(found)
    print(
        f"90 M parameters, clips of {SECONDS} s, {threads} threads; seconds per clip, least of {TURNS} turns of {TURNS} runs.\n"
    )
    print(
        "| clips in a batch | before | now | ratio | processor time before | now | ratio | logits differ by |\n|---|---|---|---|---|---|---|---|"
    )
    for clips in CLIPS:
        (before, busy_before), (now, busy_now) = (
            tuple(map(min, zip(*taken[w][clips], strict=True))) for w in ("before", "now")
        )
        change = np.abs(logits["now"][clips] - logits["before"][clips]).max()
        print(
            f"| {clips} | {before:.2f} s | {now:.2f} s | {before / now:.2f}× | {busy_before:.2f} s | {busy_now:.2f} s | "
            f"{busy_before / busy_now:.2f}× | {change:.0e} |"
        )


def corpus(folder: Path, shortest: float, longest: float) -> None:
    """Write clips of lengths between two, spread evenly in a mixed order, and a manifest of the first ones and of all."""
    import soundfile

    rng = np.random.default_rng(17)
    lengths = [shortest + (longest - shortest) * (7 * i % MANY) / (MANY - 1) for i in range(MANY)]
    for i, seconds in enumerate(lengths):
        wave = 0.1 * rng.standard_normal(round(seconds * RATE))
        soundfile.write(folder / f"{i:02d}.flac", wave, RATE, subtype="PCM_16")
    for n in (FEW, MANY):
        rows = [f"{i:02d}.flac,{('fake', 'real')[i % 2]}" for i in range(n)]
        (folder / f"{n}.csv").write_text("\n".join(["file,label", *rows]) + "\n")


def spent(env: dict[str, str], words: list[str]) -> tuple[float, float]:
    """Return the seconds and the processor seconds (of all its processes) of a command."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run([sys.executable, "-m", "hitmiss", *words], env=env, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stderr)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.perf_counter() - began, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def command(old: str, *more: str) -> None:
    """Print the cost of a clip in the whole command, before and now."""
    import torch

    from hitmiss.detection.beats import BeatsConfig, random_checkpoint

    print(
        f"Seconds per clip: {MANY} clips less {FEW}, least of {TURNS} turns, {len(os.sched_getaffinity(0))} processors. The "
        "check of clips one by one, the same number in every run, is left out (`--check 0`).\n\n"
        "| clips | before | now | ratio | processor time before | now | ratio | start (processor) before | now | scores differ by |\n"
        "|---|---|---|---|---|---|---|---|---|---|"
    )
    with tempfile.TemporaryDirectory() as place:
        torch.save(random_checkpoint(BeatsConfig()), Path(place, "beats.pt"))
        for name, (shortest, longest) in LENGTHS.items():
            folder = Path(place, name.replace(" ", "_"))
            folder.mkdir()
            corpus(folder, shortest, longest)
            taken: dict[tuple[str, int], list[tuple[float, float]]] = {}
            for turn in range(TURNS):
                for n in (FEW, MANY):
                    for which, env in trees(old).items():
                        words = ["detect", "--detector", f"beats:{place}/beats.pt", "--data", str(folder / f"{n}.csv")]
                        words += ["--outputs", "logit", "--check", "0", "-o", str(folder / f"{which}-{n}-{turn}")]
                        words += more if which == "now" else ()
                        taken.setdefault((which, n), []).append(spent(env, words))
            print(row(name, {key: tuple(map(min, zip(*found, strict=True))) for key, found in taken.items()}, folder))


def row(name: str, least: dict[tuple[str, int], tuple[float, ...]], folder: Path) -> str:
    """Return one line of the table."""
    import polars as pl

    cells, starts = [], []
    for kind in (0, 1):
        before, now = ((least[w, MANY][kind] - least[w, FEW][kind]) / (MANY - FEW) for w in ("before", "now"))
        cells.append(f"{before:.3f} s | {now:.3f} s | {before / now:.2f}×")
        starts = [f"{least[w, FEW][kind] - FEW * each:.1f} s" for w, each in (("before", before), ("now", now))]
    scores = [pl.read_parquet(folder / f"{w}-{MANY}-0" / "trials.parquet")["score"] for w in ("before", "now")]
    return f"| {name} | {' | '.join(cells)} | {' | '.join(starts)} | {(scores[0] - scores[1]).abs().max():.0e} |"


if __name__ == "__main__":
    if "--once" in sys.argv:
        beats_once(int(sys.argv[-1]))
    elif "--command" in sys.argv:
        at = sys.argv.index("--command")
        command(sys.argv[1], *sys.argv[at + 1 :])
    else:
        beats(sys.argv[-1])
