"""Reports of streamed results: pictures from counts that are those of the trials, and plain words about what is left out."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from tests.outofcore.conftest import simulated, write, write_shards

from hitmiss.cli.main import run
from hitmiss.core.read_spec import ReadSpec
from hitmiss.core.trials import Trials
from hitmiss.evaluation.protocol import read_trials
from hitmiss.metrics.curves import det_curve, roc_curve
from hitmiss.outofcore.stream import Streamed, evaluate_streamed
from hitmiss.reports.displays.det import DetDisplay
from hitmiss.reports.displays.display import Costs
from hitmiss.reports.displays.histogram import BINS, HistogramDisplay
from hitmiss.reports.displays.precision_recall import PrDisplay
from hitmiss.reports.displays.roc import RocDisplay
from hitmiss.reports.pictures import Picture, load, pictures

ASKED: dict[str, Any] = {"metrics": ["eer", "min_dcf", "roc_auc"], "reading": {"score_kind": "llr"}}


def streamed(folder: Path, kind: str, **changes: Any) -> tuple[Streamed, Trials]:
    """Trials counted in bins, and the trials themselves."""
    paths = list(map(str, write_shards(simulated(20_000, kind=kind), folder, ".parquet", 2)))
    found = evaluate_streamed(paths, "asvspoof5", memory=10**7, **{**ASKED, **changes})
    return found, read_trials(paths, None, None, ReadSpec(score_kind="llr"))


def drawn(found: Streamed) -> Picture:
    [picture] = pictures(found.trials, found.results)
    return picture


@pytest.mark.usefixtures("few_are_many")
@pytest.mark.parametrize("kind", ["normal", "narrow", "tied"])
def test_every_point_of_a_curve_from_bins_is_a_point_of_the_curve(tmp_path: Path, kind: str) -> None:
    found, trials = streamed(tmp_path, kind)
    assert found.trials.is_short
    det, roc = drawn(found).of("det"), drawn(found).of("roc")
    assert isinstance(det, DetDisplay) and isinstance(roc, RocDisplay)
    whole, points = det_curve(trials.label, trials.score), roc_curve(trials.label, trials.score)
    assert set(zip(det.far.tolist(), det.frr.tolist(), strict=True)) <= set(
        zip(whole.far.tolist(), whole.frr.tolist(), strict=True)
    )
    assert set(zip(roc.fpr.tolist(), roc.tpr.tolist(), strict=True)) <= set(
        zip(points.fpr.tolist(), points.tpr.tolist(), strict=True)
    )
    assert len(det.far) > 60
    marks = {p.label: (p.far, p.frr) for p in DetDisplay.from_trials(trials, costs=Costs()).points}
    assert {p.label: (p.far, p.frr) for p in det.points if p.label != "act DCF"} == {
        k: marks[k] for k in ("EER", "min DCF")
    }


@pytest.mark.usefixtures("few_are_many")
@pytest.mark.parametrize("kind", ["normal", "narrow", "saturated", "infinite"])
def test_bars_from_bins_are_those_of_the_scores_to_a_bin(tmp_path: Path, kind: str) -> None:
    found, trials = streamed(tmp_path, kind)
    shown = drawn(found).of("histogram")
    assert isinstance(shown, HistogramDisplay)
    for bars, label in ((shown.positives, 1), (shown.negatives, 0)):
        score = np.clip(trials.score[trials.label == label], shown.edges[0], shown.edges[-1])
        exact = np.histogram(score, shown.edges)[0] / len(score)
        assert bars.sum() == pytest.approx(1.0)
        assert np.abs(np.cumsum(bars) - np.cumsum(exact)).max() < 1 / 100, (
            "no more than the trials of a bin at each edge"
        )
    assert len(shown.positives) == BINS


@pytest.mark.usefixtures("few_are_many")
def test_areas_are_measured_or_not_told(tmp_path: Path) -> None:
    found, _ = streamed(tmp_path / "a", "normal")
    roc, pr = drawn(found).of("roc"), drawn(found).of("pr")
    assert isinstance(roc, RocDisplay) and isinstance(pr, PrDisplay)
    assert roc.area == found.results.one("roc_auc").value and math.isnan(pr.area)
    found, _ = streamed(tmp_path / "b", "normal", metrics=["average_precision"])
    roc, pr = drawn(found).of("roc"), drawn(found).of("pr")
    assert isinstance(roc, RocDisplay) and isinstance(pr, PrDisplay)
    assert pr.area == found.results.one("average_precision").value and math.isnan(roc.area)


@pytest.mark.usefixtures("few_are_many")
def test_the_report_says_how_it_was_drawn_and_what_it_lacks(tmp_path: Path) -> None:
    write(simulated(3000), tmp_path / "s.parquet")
    page, out = tmp_path / "r.html", tmp_path / "r.json"
    asked = ["score", str(tmp_path / "s.parquet"), "-m", "eer", "-m", "f1", "--threshold", "0.1", "--by", "codec"]
    assert run([*asked, "--stream", "--memory", "10MB", "--report", str(page), "-o", str(out)]) == 0
    text = page.read_text()
    assert "Drawn from counts" in text and "the trials were counted, not kept" in text
    assert "E_0000" not in text, "no id of a trial is in it"
    frame = simulated(3000)
    taken = frame.filter(pl.col("score") >= 0.1)["label"].value_counts().rows()
    assert all(f"{n:,}" in text for _, n in taken), "decisions are counted"
    results, stored = load(out)
    assert stored[0].of("pr") is not None and math.isnan(stored[0].of("pr").area)  # type: ignore[union-attr]
    assert run(["report", str(out), "-o", str(tmp_path / "again.html")]) == 0
    assert json.loads(out.read_text())["signature"] == results.signature


def test_counts_and_several_systems_are_reported(tmp_path: Path) -> None:
    frame = simulated(2000, kind="tied")
    write(frame.group_by("label", "codec", "score").agg(n=pl.len()), tmp_path / "counts.parquet")
    assert (
        run(["score", str(tmp_path / "counts.parquet"), "--counts", "-m", "eer", "--report", str(tmp_path / "c.html")])
        == 0
    )
    assert "the trials were counted, not kept" in (tmp_path / "c.html").read_text()
    write(frame.rename({"score": "one"}).with_columns(two=-pl.col("one")), tmp_path / "two.parquet")
    systems = ["--score-column", "one", "--score-column", "two", "--stream"]
    assert (
        run(["score", str(tmp_path / "two.parquet"), "-m", "eer", *systems, "--report", str(tmp_path / "t.html")]) == 0
    )
    text = (tmp_path / "t.html").read_text()
    assert "nothing was tested" in text and "REVERSED" in text


@pytest.mark.parametrize("files", ["stream", "counts"])
def test_what_was_counted_is_verified_and_what_was_changed_is_not(tmp_path: Path, files: str) -> None:
    frame = simulated(1500, kind="tied")
    counts = frame.group_by("label", "codec", "score").agg(n=pl.len())
    path, how = (tmp_path / "s.parquet", "--stream") if files == "stream" else (tmp_path / "c.parquet", "--counts")
    write(frame if files == "stream" else counts, path)
    asked = [
        "score",
        str(path),
        how,
        "-p",
        "asvspoof5",
        "--by",
        "codec",
        "--bootstrap",
        "20",
        "-o",
        str(tmp_path / "r.json"),
    ]
    assert run(asked) == 0
    assert run(["verify", str(tmp_path / "r.json"), str(path)]) == 0
    one = pl.int_range(pl.len()) == 5
    write(
        frame.with_columns(pl.col("score") + one) if files == "stream" else counts.with_columns(pl.col("n") + one), path
    )
    assert run(["verify", str(tmp_path / "r.json"), str(path)]) == 1
