"""Bootstrap intervals: how much less processor time than resampling trials and computing with scikit-learn, and how exact.

    python benchmarks/bootstrap.py

One run, one thread, processor time; 680,774 trials (138,688 + 542,086, Gaussian scores, EER 6 to 7 %), 1,000 replicates.
Each metric has draws of its own, as in a measurement; those of scikit-learn are shared by all metrics.
What is too slow to run 1,000 times is timed on a few replicates and scaled; the table says on how many.
"""

from __future__ import annotations

import os

os.environ.update(
    dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "POLARS_MAX_THREADS"), "1")
)

import time
import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from sklearn import metrics as sk

from hitmiss import metrics
from hitmiss.core.tally import Tally
from hitmiss.metrics.calibration import brier_form
from hitmiss.metrics.counts import Counts, f1
from hitmiss.metrics.detection import act_dcf_form, cllr_form, eer_form, min_dcf_form
from hitmiss.stats.forms.base import Form
from hitmiss.stats.forms.sums import PairShare
from hitmiss.stats.intervals import percentile
from hitmiss.stats.paired import paired_replicates
from hitmiss.stats.random import Random, generator
from hitmiss.stats.replicates import count_replicates, trial_replicates
from hitmiss.stats.units import UnitSample, draw_units, unit_replicates
from timing import cpu

POSITIVES, NEGATIVES = 138_688, 542_086
REPLICATES = 1000
NAIVE = 5
SPEAKERS = 1000
GROWTH = 50
COSTS = ((0.95, 1.0, 10.0), (0.5, 1.0, 1.0), (0.01, 10.0, 1.0))

Row = dict[str, Any]
Array = np.ndarray[Any, Any]


def scores(positives: int, negatives: int, seed: int = 0, systems: int = 2) -> tuple[Array, list[Array]]:
    """Labels in random order and correlated log-likelihood ratios of each system."""
    rng = np.random.default_rng(seed)
    label = np.zeros(positives + negatives, dtype=np.int8)
    label[:positives] = 1
    rng.shuffle(label)
    shared = rng.standard_normal(len(label)) * np.sqrt(0.7)
    made = []
    for gap in (3.1, 2.9)[:systems]:
        z = shared + np.sqrt(0.3) * rng.standard_normal(len(label)) + gap * label
        made.append(gap * (z - gap / 2))
    return label, made


def scaled(replicate: Callable[[], Any]) -> float:
    """Processor seconds of all replicates, from a few."""
    replicate()
    start = time.process_time()
    for _ in range(NAIVE):
        replicate()
    return (time.process_time() - start) / NAIVE * REPLICATES


def row(what: str, ours: float, peer: str, theirs: float, target: float, note: str = "") -> Row:
    """A row that wants ours × target <= theirs."""
    return {
        "what": what,
        "hitmiss": f"{ours:.3f} s",
        "against": peer,
        "takes": f"{theirs:.3g} s",
        "ratio": f"{theirs / ours:,.1f}×",
        "target": f"≥ {target:,g}×",
        "met": "yes" if theirs / ours >= target else "NO",
        "note": note,
    }


def limit(what: str, value: float, shown: str, most: float, target: str, note: str = "") -> Row:
    """A row that wants a value at most so large."""
    base = dict.fromkeys(("hitmiss", "against", "takes"), "")
    return {
        "what": what,
        **base,
        "ratio": shown,
        "target": target,
        "met": "yes" if value <= most else "NO",
        "note": note,
    }


def eer_and_costs(false: Array, true: Array, costs: int = 1) -> list[float]:
    """EER and least costs from a curve of scikit-learn."""
    missed = 1 - true
    at = np.argmin(np.abs(missed - false))
    least = []
    for p_target, c_miss, c_fa in COSTS[:costs]:
        a, b = c_miss * p_target, c_fa * (1 - p_target)
        least.append(float(np.min(a * missed + b * false) / min(a, b)))
    return [float(missed[at] + false[at]) / 2, *least]


def with_sklearn(label: Array, score: Array, costs: int = 1) -> list[float]:
    """EER and least costs, the usual way."""
    false, true, _ = sk.roc_curve(label, score, drop_intermediate=False)
    return eer_and_costs(false, true, costs)


def point_forms(costs: int = 1) -> list[Form]:
    """EER and least costs, our way."""
    return [eer_form("grouped"), *(min_dcf_form(*c, True) for c in COSTS[:costs])]


def own(form: Form) -> Random:
    """The random stream of a metric."""
    return generator(0, repr(form))


def draw(label: Array, rng: np.random.Generator) -> Array:
    """Trials drawn within each class."""
    return np.concatenate([rng.choice(m, len(m)) for m in (np.flatnonzero(label == 1), np.flatnonzero(label == 0))])


def points(label: Array, score: Array) -> Iterator[Row]:
    """(a) The figures themselves."""

    def ours() -> list[float]:
        return [metrics.eer(label, score), metrics.min_dcf(label, score)]

    off = max(abs(a - b) for a, b in zip(ours(), with_sklearn(label, score), strict=True))
    mine, theirs, sort = cpu(ours, 7), cpu(lambda: with_sklearn(label, score), 3), cpu(lambda: np.sort(score), 7)
    yield row("EER + minDCF", mine, "scikit-learn roc_curve", theirs, 5, f"largest difference {off:.0e}")
    yield limit(
        "… against sorting the scores alone", mine / sort, f"{mine / sort:.2f}×", 2.5, "≤ 2.5×", f"sort {sort:.3f} s"
    )


def intervals(label: Array, score: Array) -> Iterator[Row]:
    """(b), (c) Intervals of trials, our sort included."""
    rng = np.random.default_rng(1)

    def naive() -> list[float]:
        i = draw(label, rng)
        return with_sklearn(label[i], score[i])

    def ours(forms: list[Form]) -> list[tuple[float, float]]:
        tally = Tally.of(label, score)
        return [percentile(v) for form in forms for v in trial_replicates(tally, [form], REPLICATES, own(form))]

    slow = scaled(naive)
    note = f"scikit-learn: {NAIVE} replicates, scaled"
    yield row("interval of EER", cpu(lambda: ours(point_forms(0)), 5), "resample + roc_curve", slow, 1200, note)
    yield row("interval of EER + minDCF", cpu(lambda: ours(point_forms()), 5), "resample + roc_curve", slow, 1200, note)
    probability, decision = 1 / (1 + np.exp(-score)), score >= 0

    def naive_full() -> list[float]:
        i = draw(label, rng)
        y, s, p = label[i], score[i], probability[i]
        false, true, _ = sk.roc_curve(y, s, drop_intermediate=False)
        fixed = [sk.f1_score(y, decision[i]), np.mean(s[y == 1] < -0.64) + np.mean(s[y == 0] >= -0.64)]
        cllr = np.logaddexp(0, -s[y == 1]).mean() + np.logaddexp(0, s[y == 0]).mean()
        return [*eer_and_costs(false, true, 3), sk.auc(false, true), cllr, sk.brier_score_loss(y, p), *fixed]

    def full() -> None:
        gen = generator(3, "full")
        tally = Tally.of(label, score)
        forms = [*point_forms(3), act_dcf_form(0.95, 1.0, 10.0, True), PairShare(), cllr_form()]
        drawn = [v for form in forms for v in trial_replicates(tally, [form], REPLICATES, own(form))]
        drawn += trial_replicates(tally.rescored(1 / (1 + np.exp(-tally.score))), [brier_form()], REPLICATES, gen)
        counts = Counts.of(label, decision)
        outcomes = count_replicates(
            np.array([getattr(counts, n) for n in counts.__dataclass_fields__]), REPLICATES, gen
        )
        drawn.append(f1.of(Counts(*outcomes.T)))
        for values in drawn:
            percentile(values)

    what = "interval of EER, 3 minDCF, actDCF, AUC, Cllr, Brier, F1"
    yield row(what, cpu(full, 3), "resample + scikit-learn", scaled(naive_full), 400, note)


def speakers(label: Array, score: Array) -> Iterator[Row]:
    """(d) Whole speakers drawn."""
    rng = np.random.default_rng(4)
    unit = rng.integers(0, SPEAKERS, size=len(label))
    positive = label == 1
    members = np.split(np.argsort(unit, kind="stable"), np.cumsum(np.bincount(unit, minlength=SPEAKERS))[:-1])

    def naive() -> list[float]:
        i = np.concatenate([members[u] for u in rng.integers(0, SPEAKERS, size=SPEAKERS)])
        return with_sklearn(label[i], score[i])

    def ours() -> tuple[Array, list[Array]]:
        weights = draw_units(unit, positive, SPEAKERS, REPLICATES, generator(5, "speakers"))
        sample = UnitSample.of(positive, score, unit, SPEAKERS)
        return weights, [v for form in point_forms() for v in unit_replicates(sample, [form], weights)]

    weights, drawn = ours()
    off = 0.0
    for r in range(20):
        tally = Tally.of(label, score, weights[r][unit].astype(np.int64))
        off = max(off, *(abs(f.value(tally) - v[r]) for f, v in zip(point_forms(), drawn, strict=True)))
    note = f"largest difference to brute force on the same weights, 20 replicates: {off:.0e}; scikit-learn: {NAIVE} replicates, scaled"
    yield row(
        f"interval over {SPEAKERS:,} speakers, EER + minDCF",
        cpu(ours, 3),
        "draw speakers + roc_curve",
        scaled(naive),
        300,
        note,
    )


def pairs(label: Array, a: Array, b: Array) -> Iterator[Row]:
    """(e) Two systems on the same trials."""
    rng, positive = np.random.default_rng(6), label == 1

    def naive() -> list[list[float]]:
        i = draw(label, rng)
        return [with_sklearn(label[i], s[i]) for s in (a, b)]

    def ours(forms: list[Form]) -> None:
        tallies = Tally.of(label, a), Tally.of(label, b)
        for form in forms:
            paired_replicates(positive, a, b, [form], REPLICATES, own(form), tallies=tallies)

    slow = scaled(naive)
    for name, costs in (("EER", 0), ("EER + minDCF", 1)):
        mine = cpu(lambda k=costs: ours(point_forms(k)), 3)
        yield row(
            f"paired difference of {name}",
            mine,
            "resample + roc_curve, both systems",
            slow,
            400,
            f"scikit-learn: {NAIVE} replicates, scaled",
        )


def growth(small: Tally) -> Iterator[Row]:
    """(f) Fifty times the trials."""

    def kernel(tally: Tally) -> float:
        return cpu(lambda: [trial_replicates(tally, [form], REPLICATES, own(form)) for form in point_forms()], 3)

    rng = np.random.default_rng(9)
    of_positives = 3.1 * (rng.standard_normal(GROWTH * POSITIVES) + 3.1 / 2)
    of_negatives = 3.1 * (rng.standard_normal(GROWTH * NEGATIVES) - 3.1 / 2)
    start = time.process_time()
    large = Tally.of_classes(of_positives, of_negatives)
    tallied = time.process_time() - start
    del of_positives, of_negatives
    times = kernel(small), kernel(large)
    n = GROWTH * (POSITIVES + NEGATIVES)
    note = f"{n:,} trials: replicates {times[1]:.3f} s after a tally of {tallied:.1f} s; {times[0]:.3f} s at {n // GROWTH:,}"
    yield limit(
        f"{GROWTH}× the trials, EER + minDCF",
        times[1] / times[0],
        f"{times[1] / times[0]:.1f}× the time",
        10,
        "≤ 10× the time",
        note,
    )


def memory(label: Array, score: Array) -> Iterator[Row]:
    """(g) What an interval needs beyond its input."""
    tracemalloc.start()
    tally = Tally.of(label, score)
    values = [f.value(tally) for f in point_forms()]
    for form in point_forms():
        values += [x for v in trial_replicates(tally, [form], REPLICATES, own(form)) for x in percentile(v)]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    given = label.nbytes + score.nbytes
    yield limit(
        "peak memory, EER + minDCF with interval",
        peak / given,
        f"{peak / given:.2f}× the columns",
        3,
        "≤ 3×",
        f"{peak / 1e6:.0f} MB for {given / 1e6:.0f} MB of labels and scores",
    )


def rows() -> list[Row]:
    """All measurements."""
    label, (a, b) = scores(POSITIVES, NEGATIVES)
    found = [*points(label, a), *intervals(label, a), *speakers(label, a), *pairs(label, a, b), *memory(label, a)]
    return [*found, *growth(Tally.of(label, a))]


def table(found: list[Row]) -> str:
    """Markdown."""
    head = list(found[0])
    lines = [head, ["---"] * len(head), *([str(r[h]) for h in head] for r in found)]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def main() -> None:
    """Print the table."""
    print(table(rows()))


if __name__ == "__main__":
    main()
