"""The numbers of the pictures are right, and the pictures hold what they should."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hitmiss.core.errors import DataError
from hitmiss.drawing.scores import FIGURES, det_figure, histogram_figure, roc_figure, save_figures, scores_of

rng = np.random.default_rng(0)
LABEL = np.repeat([1, 0], [60, 90])
SCORE = np.concatenate([rng.normal(1, 1, 60), rng.normal(-1, 1, 90)])


@given(st.lists(st.tuples(st.integers(0, 1), st.integers(-3, 3)), min_size=2, max_size=40), st.integers(-3, 3))
def test_shares_and_rates_are_counts(rows: list[tuple[int, int]], threshold: int) -> None:
    label, score = np.array([y for y, _ in rows]), np.array([s for _, s in rows], dtype=float)
    if label.min() == label.max():
        return
    found = scores_of(label, score, threshold)
    assert found.real.sum() == pytest.approx(1) and found.fake.sum() == pytest.approx(1)
    assert found.far == np.mean(score[label == 0] > threshold) and found.frr == np.mean(score[label == 1] <= threshold)
    assert found.n_real + found.n_fake == len(rows)


def test_infinite_scores_stand_in_the_outer_bins() -> None:
    found = scores_of([1, 1, 0, 0], [np.inf, 1.0, 0.0, -np.inf], 0.5)
    assert found.real[-1] == 1.0 and found.fake[0] == 1.0


def test_the_figures_show_the_curves() -> None:
    numbers = scores_of(LABEL, SCORE, 0.0)
    roc = roc_figure(numbers).axes[0]
    assert any(np.array_equal(line.get_xdata(), numbers.roc.fpr) for line in roc.lines)
    det = det_figure(numbers).axes[0]
    texts = [tick.get_text() for tick in det.get_xticklabels()]
    assert "10" in texts and "50" not in texts and det.get_xlim() == det.get_ylim()
    assert f"EER {numbers.eer:.2%}" in [text.get_text() for text in det.get_legend().get_texts()]
    title = histogram_figure(numbers).axes[0].get_title(loc="left")
    assert f"FAR {numbers.far:.1%}" in title and f"FRR {numbers.frr:.1%}" in title


@pytest.mark.parametrize("score", [SCORE, np.where(LABEL == 1, 1.0, 0.0), -SCORE, np.zeros(150)], ids=["usual", "perfect", "reversed", "constant"])  # fmt: skip
def test_odd_scores_are_drawn_too(tmp_path: Path, score: np.ndarray) -> None:  # type: ignore[type-arg]
    drawn = save_figures(tmp_path, LABEL, score, 0.0)
    assert [path.stem for path in drawn] == list(FIGURES)
    assert all(path.stat().st_size > 5000 for path in drawn)


def test_one_class_is_refused() -> None:
    with pytest.raises(DataError, match="both classes"):
        scores_of([1, 1], [0.1, 0.2], 0.0)
