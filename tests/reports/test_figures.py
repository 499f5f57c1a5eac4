"""The documented pictures of scores: what they show is what was counted, and odd scores are drawn too."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from hitmiss.core.errors import DataError
from hitmiss.core.header import Header
from hitmiss.core.trials import Trials
from hitmiss.reports.displays.det import DetDisplay
from hitmiss.reports.displays.display import operating_points, plate_of
from hitmiss.reports.figures import displays, save_figures
from hitmiss.reports.flow_plate import FlowPath, flow_plate
from hitmiss.reports.matplots import draw
from hitmiss.reports.plate import Block, Dots, Ribbon
from hitmiss.reports.svg import svg_of

rng = np.random.default_rng(0)
LABEL = np.repeat([1, 0], [60, 90])
SCORE = np.concatenate([rng.normal(1, 1, 60), rng.normal(-1, 1, 90)])
HEAD = Header("real", "fake")


def scored(score: np.ndarray) -> Trials:  # type: ignore[type-arg]
    return Trials.of(LABEL, score, header=HEAD)


@pytest.mark.parametrize("score", [SCORE, np.where(LABEL == 1, 1.0, 0.0), -SCORE, np.zeros(150)], ids=["usual", "perfect", "reversed", "constant"])  # fmt: skip
def test_odd_scores_are_drawn_too(tmp_path: Path, score: np.ndarray) -> None:  # type: ignore[type-arg]
    drawn = save_figures(tmp_path, scored(score), 0.0)
    assert [path.stem for path in drawn] == ["histogram", "roc", "det"]
    assert all(path.stat().st_size > 5000 for path in drawn)


def test_the_point_of_a_threshold_accepts_what_lies_above_it() -> None:
    from hitmiss.core.tally import Tally

    score = np.round(SCORE)
    tally = Tally.of(LABEL, score)
    points = operating_points(tally, threshold=float(np.nextafter(0.0, 1)))
    point = next(p for p in points if p.label == "threshold")
    assert point.far == np.mean(score[LABEL == 0] > 0.0) and point.frr == np.mean(score[LABEL == 1] <= 0.0)
    axes = DetDisplay.from_tally(tally, points=points).plot()
    marked = {
        tuple(np.round([*line.get_xdata(), *line.get_ydata()], 6))
        for line in axes.get_lines()
        if len(line.get_xdata()) == 1
    }
    from scipy.special import ndtri

    assert tuple(np.round([ndtri(point.far), ndtri(point.frr)], 6)) in marked


def test_one_class_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError) as err:
        save_figures(tmp_path, Trials.of([1, 1], [0.1, 0.2]), 0.0)
    assert err.value.code == "one-class"


def test_both_renderers_draw_every_mark_of_every_plate() -> None:
    """One model of a figure: what one renderer draws, the other draws."""
    for display in displays(scored(SCORE)):
        plate = plate_of([("a", display), ("b", display)])
        axes, page = draw(plate), svg_of(plate, "x")
        dots = sum(len(m.x) for m in plate.marks if isinstance(m, Dots))
        assert page.count('class="hollow') + page.count('class="dot') == dots
        assert len(axes.containers) == sum(isinstance(m, Dots) for m in plate.marks)
        assert axes.get_xlabel().replace("\\", "") == plate.x.title and plate.y.title in page


def test_a_flow_is_drawn_by_both_renderers() -> None:
    ways = [FlowPath(("fake", "right"), 3), FlowPath(("fake", "wrong"), 2), FlowPath(("real", "right"), 5)]
    plate = flow_plate(("in truth", "outcome"), ways)
    blocks, ribbons = ([m for m in plate.marks if isinstance(m, kind)] for kind in (Block, Ribbon))
    assert sorted(round(b.y[1] - b.y[0]) for b in blocks) == [2, 5, 5, 8] and len(ribbons) == 3
    page, axes = svg_of(plate, "f"), draw(plate)
    assert page.count('class="block') == 4 and page.count('class="ribbon') == 3 and len(axes.patches) == 7
