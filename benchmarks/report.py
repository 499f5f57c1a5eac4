"""The report of a million trials: how long it takes to build, how large it is, when a browser first paints it.

    python benchmarks/report.py

Trials are simulated (two classes, 12 codecs × 5 qualities, 16 attacks, 200 domains, LLRs); measuring is not counted, thinning the
curves and writing the page is, in processor seconds (the best of three). "With sounds": each of the worst errors has a
clip of 3 s, within the default budget of bytes. First paint and the time until every figure is drawn are those of headless Chromium
through playwright, the median of five; a dash where it is not installed. A page of one line is what any page takes here.
"All points" is one DET curve without thinning.
"""

from __future__ import annotations

import json
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from hitmiss.core.design import Design
from hitmiss.core.header import Header
from hitmiss.core.trials import Trials
from hitmiss.metrics.curves import det_curve
from hitmiss.reports.embedded_media import Media, Refusal, open_media
from hitmiss.reports.evaluations import RunData
from hitmiss.reports.html import render
from hitmiss.reports.page import compose
from hitmiss.reports.pictures import pictures
from hitmiss.reports.sources import Measuring, measured

FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"]


def simulated(n: int) -> Trials:
    """Trials with domains that matter."""
    rng = np.random.default_rng(0)
    label = rng.random(n) < 0.2
    codec, quality, attack = rng.integers(0, 12, n), rng.integers(1, 6, n), rng.integers(17, 33, n)
    score = 2.2 * (rng.normal(size=n) + label * (3.0 - codec / 12 + quality / 10) - 1.5)
    names = {"codec": np.char.add("C", codec.astype(str)), "codec_q": quality.astype(str)}
    attacks = np.where(label, "-", np.char.add("A", attack.astype(str)))
    domain = np.char.add("d", np.char.zfill(rng.integers(0, 200, n).astype(str), 3))
    return Trials.of(label, score, header=Header("bonafide", "spoof", "llr"), attack=attacks, domain=domain, **names)


def timed(work: Callable[[], Any], repeats: int = 3) -> tuple[float, Any]:
    """The least processor time of some runs, and what came out."""
    best, made = float("inf"), None
    for _ in range(repeats):
        start = time.process_time()
        made = work()
        best = min(best, time.process_time() - start)
    return best, made


def painted(page: str, ready: str) -> tuple[float, float] | None:
    """Milliseconds to the first paint, and until every figure is drawn."""
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        return None
    if chromium is None:
        return None
    first, whole = [], []
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as started:
        path = Path(folder) / "report.html"
        path.write_text(page, encoding="utf-8")
        browser = started.chromium.launch(executable_path=chromium, args=FLAGS)
        for _ in range(5):
            tab = browser.new_context(viewport={"width": 1440, "height": 900}).new_page()
            start = time.perf_counter()
            tab.goto(path.as_uri())
            tab.evaluate("window.dispatchEvent(new Event('beforeprint'))")
            tab.wait_for_function(ready)
            whole.append(1000 * (time.perf_counter() - start))
            first.append(tab.wait_for_function(PAINTED).json_value())
            tab.context.close()
        browser.close()
    return statistics.median(first), statistics.median(whole)


PAINTED = "() => performance.getEntriesByName('first-contentful-paint')[0]?.startTime"
READY = "() => document.documentElement.dataset.ready"


def rows(n: int = 1_000_000) -> list[dict[str, object]]:
    """The table: what, seconds to build, bytes, milliseconds to paint."""
    trials = simulated(n)
    metrics = ("min_dcf", "eer", "act_dcf", "cllr", "roc_auc")
    run = measured(trials, "simulated", Measuring(Design.of(metrics, by=("codec", "codec,codec_q", "attack"))))
    sliced = measured(trials, "simulated", Measuring(Design.of(("min_dcf", "eer"), by="domain")))
    found = []
    for what, source, names, static, finder in (
        (f"{n:,} trials, one run", run, ["a"], False, None),
        (f"{n:,} trials, one run, --static", run, ["a"], True, None),
        (f"{n:,} trials, one run with sounds", run, ["a"], False, Tones()),
        (f"{n:,} trials, two runs side by side (not compared)", run, ["a", "b"], False, None),
        (f"{n:,} trials × 200 slices", sliced, ["a"], False, None),
        ("30 systems (not compared)", run, [f"system {i}" for i in range(30)], False, None),
    ):
        seconds, page = timed(lambda r=source, who=names, f=static, s=finder: _built(r, who, f, s))  # type: ignore[misc]
        paint = painted(page, "() => true" if static else READY)
        found.append(
            {
                "what": what,
                "build, CPU s": seconds,
                "MB": len(page.encode()) / 1e6,
                "first paint ms": paint[0] if paint else "–",
                "every figure drawn ms": paint[1] if paint else "–",
            }
        )
    line = "<!doctype html><html lang=en><title>x</title><p>one line</p></html>"
    floor = painted(line, "() => true")
    found.append({"what": "a page of one line", "MB": len(line) / 1e6, "first paint ms": floor[0] if floor else "–"})
    curve = det_curve(trials.label, trials.score)
    whole = len(json.dumps([curve.far.tolist(), curve.frr.tolist(), curve.thresholds[:-1].tolist()])) / 1e6
    points = len(run.pictures[0].displays[0].far)  # type: ignore[attr-defined]
    found.append(
        {
            "what": f"all points of the DET curve alone, in place of {points}",
            "build, CPU s": "–",
            "MB": whole,
            "first paint ms": "–",
        }
    )
    return found


class Tones:
    """A finder on which every trial has a clip of its own."""

    def find(self, row: Mapping[str, Any]) -> Media | Refusal | None:
        """A tone of three seconds with noise, through the same door as a file."""
        import soundfile

        rng = np.random.default_rng(int(row["item"]))
        tone = np.sin(2 * np.pi * 220 * np.arange(48_000) / 16_000) + 0.1 * rng.normal(size=48_000)
        with tempfile.NamedTemporaryFile(suffix=".wav") as file:
            soundfile.write(file.name, 0.5 * tone, 16_000)
            return open_media(Path(file.name))


def _built(run: RunData, names: list[str], static: bool, finder: Tones | None) -> str:
    """Curves thinned and the page written; trials only for one run, as two would be compared."""
    assert run.trials is not None
    trials = run.trials if len(names) == 1 else None
    sources = [RunData(name, run.results, tuple(pictures(run.trials, run.results)), trials, finder) for name in names]
    return render(compose(sources), static=static)


def main() -> None:
    """Print the table."""
    found = rows()
    heads = list(found[0])
    print(f"| {' | '.join(heads)} |\n|{'---|' * len(heads)}")
    for row in found:
        cells = (row.get(head, "–") for head in heads)
        print(
            f"| {' | '.join(f'{v:.0f}' if isinstance(v, float) and v >= 100 else f'{v:.3g}' if isinstance(v, float | int) else str(v) for v in cells)} |"
        )


if __name__ == "__main__":
    main()
