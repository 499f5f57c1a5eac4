"""Simulated predictions of the documented baseline, with the numbers of the toxicity evaluation document.

Nothing is random. Exactly one set of confusion counts fits each printed row; scores are placed on both sides of a
threshold to give those counts, ordered so that the AUC of each language is the printed one, and placed so that the AUC
of all languages together is too. Scores are rounded, so that differences between processors in the last bits do not
matter.
"""

from __future__ import annotations

import csv
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from hitmiss.core.sorting import Floats
from hitmiss.metrics.counts import Counts
from hitmiss.stats.delong import RocSteps

RUN_TAG: Final = "baseline"
MICRO_AUC: Final = 0.9661
EN_THRESHOLD: Final = 0.5
STEPS: Final = 60
PLACES: Final = 9
"""Decimal places of a score: powers differ between processors in the sixteenth digit, far from any tie."""


@dataclass(frozen=True)
class Language:
    """One row of the toxicity evaluation document's table: its counts and its AUC."""

    name: str
    counts: Counts[float]
    auc: float


LANGUAGES: Final = (
    Language("en", Counts(tp=1583, fp=574, fn=555, tn=19643), 0.9686),
    Language("es", Counts(tp=27, fp=20, fn=15, tn=189), 0.8604),
    Language("it", Counts(tp=27, fp=28, fn=22, tn=174), 0.8430),
    Language("tr", Counts(tp=21, fp=4, fn=11, tn=264), 0.9569),
)

README: Final = """SIMULATED predictions, made by hitmiss itself.

The files predictions/baseline_<language>.csv have no real text and no model behind them. Their labels, scores and
thresholds are laid out so that the numbers are those of the table that the documentation of the multilingual toxicity
project prints for its TF-IDF + logistic regression baseline:

hitmiss toxicity --config configs/detoxify_multilingual.yaml --pred_dir predictions --run_tag baseline \\
  --languages en es it tr --output predictions/baseline_metrics.csv
"""

CONFIG: Final = """data:
  languages: [en, es, it, tr]
evaluation:
  default_threshold: 0.5
  threshold_metric: f1
"""


@dataclass(frozen=True)
class Layout:
    """Scores in ascending order, which of them are positive, and the threshold."""

    score: Floats
    positive: np.ndarray[tuple[int], np.dtype[np.bool_]]
    threshold: float


def layout(language: Language, threshold: float) -> Layout:
    """Return scores of one language with its counts at the threshold and its AUC to four places."""
    counts = language.counts
    found = _bisect(lambda k: _auc(_curved(counts, threshold, k)) < language.auc, 0.05, 40.0)
    spread = round(found, 3)  # away from the point where two scores cross, where rounding would make them equal
    rough = _curved(counts, threshold, spread)
    positive = rough.positive.copy()
    pairs = (counts.tp + counts.fn) * (counts.fp + counts.tn)
    _exchange(positive, int(counts.fn + counts.tn), round(language.auc * pairs) - round(_auc(rough) * pairs))
    return Layout(rough.score, positive, threshold)


def _curved(counts: Counts[float], threshold: float, k: float) -> Layout:
    """Place positives higher and negatives lower on each side of the threshold, the more so the greater `k`."""
    low = [threshold * _even(int(n)) ** power for n, power in ((counts.fn, 1 / k), (counts.tn, k))]
    high = [threshold + (1 - threshold) * _even(int(n)) ** power for n, power in ((counts.tp, 1 / k), (counts.fp, k))]
    score = np.concatenate([*low, *high]).round(PLACES)
    positive = np.repeat([True, False, True, False], [int(n) for n in (counts.fn, counts.tn, counts.tp, counts.fp)])
    order = np.argsort(score, kind="stable")
    return Layout(score[order], positive[order], threshold)


def _even(n: int) -> Floats:
    return (np.arange(n) + 0.5) / n


def _auc(laid: Layout) -> float:
    return RocSteps.of_classes(laid.score[laid.positive], laid.score[~laid.positive]).area


def _exchange(positive: np.ndarray[tuple[int], np.dtype[np.bool_]], below: int, gain: int) -> None:
    """Exchange neighbours below the threshold, each changing one ordered pair, until `gain` is reached."""
    is_positive_lower = gain > 0
    for _ in range(abs(gain)):
        lower, upper = positive[: below - 1], positive[1:below]
        place = int(np.flatnonzero((lower == is_positive_lower) & (upper != is_positive_lower))[0])
        positive[[place, place + 1]] = positive[[place + 1, place]]


def _bisect(is_low: Callable[[float], bool], low: float, high: float) -> float:
    for _ in range(STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if is_low(middle) else (low, middle)
    return (low + high) / 2


def layouts() -> dict[str, Layout]:
    """Return the four languages; those after the first at the threshold that gives the printed overall AUC."""
    first, *others = LANGUAGES
    whole = {first.name: layout(first, EN_THRESHOLD)}
    shared = _bisect(lambda t: pooled_auc({**whole, **_at(others, t)}) < MICRO_AUC, 0.2, 0.6)
    return whole | _at(others, round(shared, 3))


def _at(languages: list[Language], threshold: float) -> dict[str, Layout]:
    return {language.name: layout(language, threshold) for language in languages}


def pooled_auc(parts: dict[str, Layout]) -> float:
    """Return the AUC over the rows of all languages."""
    positives = np.sort(np.concatenate([p.score[p.positive] for p in parts.values()]))
    negatives = np.sort(np.concatenate([p.score[~p.positive] for p in parts.values()]))
    return RocSteps.of_classes(positives, negatives).area


def write(folder: str | Path, share: float = 1.0) -> Path:
    """Write the files into a folder. `share` is not used: the counts are the documented ones for any size of demo."""
    del share
    data = Path(folder)
    for name in ("predictions", "configs"):
        (data / name).mkdir(parents=True, exist_ok=True)
    (data / "README.txt").write_text(README, encoding="utf-8")
    (data / "configs" / "detoxify_multilingual.yaml").write_text(CONFIG, encoding="utf-8")
    for name, laid in layouts().items():
        _write_language(data / "predictions" / f"{RUN_TAG}_{name}.csv", name, laid)
    return data


def _write_language(path: Path, name: str, laid: Layout) -> None:
    """Write the rows in an order that is unrelated to the score."""
    order = np.argsort((np.arange(len(laid.score)) * 7919) % 65537, kind="stable")
    with path.open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(["id", "text", "y_true", "y_prob", "best_threshold"])
        for i, at in enumerate(order.tolist()):
            label, score = int(laid.positive[at]), float(laid.score[at])
            rows.writerow([i, f"made-up {name} comment {i}", label, repr(score), laid.threshold])
