"""Tests: do they hold their level when there is no difference, what do they show where there is one, how long do they take?

    python benchmarks/comparisons.py [--repeats N] [--only NAME …] [--no-speed] [--workers N] [--minutes M]
                                     [--json FILE | --from-json FILE]

Level: every test that prints a p value, on data without any true difference, many times over; a test at 5 % should call a
difference in 5 % of the repeats, an exact one in at most 5 %. Two systems of equal skill share most of their noise, one
positive to two negatives: on independent trials; on 20 speakers, whose own levels are a quarter of the variance; in five
slices, corrected together (the share of repeats in which any slice is called different). Power: the same where the second
system keeps the classes apart by less (d' 1.5 and 1.2; of slices against the others, the first by 0.7 less; of drift, scores
moved by 0.3). Slices of one system against the
others, as a report tests them. Drift of the error rates under a manipulation that changes nothing but noise. Rankings of
many systems are in `rankings.py`. Speed: a paired comparison of EER and minDCF with 1,000 replicates at 680,774 trials
(processor time), against drawing trials and computing both with scikit-learn (a few replicates, scaled).
"""

from __future__ import annotations

import os

os.environ.update(
    dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "POLARS_MAX_THREADS"), "1")
)

import argparse
import time
from collections.abc import Callable, Iterator
from itertools import groupby
from typing import Any

import numpy as np

import rounds
from hitmiss.conclude.slices import weak_slices
from hitmiss.core.header import Header, Source
from hitmiss.core.trials import Trials
from hitmiss.derive.decisions import at_threshold
from hitmiss.engine.compare import compare
from hitmiss.engine.measure import measure
from hitmiss.robustness.manipulation import drift
from hitmiss.stats.intervals import wilson

REPEATS = 400
REPLICATES = 400
ALPHA = 0.05
TRIALS = 680_774
POSITIVES = 138_688
SLOW = 3

Row = dict[str, Any]


LOSS = 0.3
"""By how much less the second system keeps the classes apart where power is measured."""


def pair(rng: np.random.Generator, n1: int, n0: int, loss: float = 0.0, skill: float = 1.5) -> tuple[Trials, Trials]:
    """Two systems on the same trials, with the same true figures unless the second is worse."""
    label = np.repeat([1, 0], [n1, n0])
    base = rng.normal(size=n1 + n0) + skill * label
    header = Header(sources=(Source("simulated.tsv", "0" * 64),))  # as if from a file, whose hash is known
    sides = [
        Trials.of(label, base - own * label + 0.6 * rng.normal(size=n1 + n0), header=header) for own in (0.0, loss)
    ]
    return at_threshold(sides[0], skill / 2), at_threshold(sides[1], skill / 2)


def of_trials(seed: int, loss: float = 0.0, n1: int = 100, n0: int = 200) -> dict[str, float | None]:
    """Return the p values of independent trials."""
    a, b = pair(np.random.default_rng(seed), n1, n0, loss)
    auto = compare(a, b, ["roc_auc", "accuracy", "eer", "min_dcf", "f1"], bootstrap=REPLICATES, seed=seed)
    area = compare(a, b, ["roc_auc"], bootstrap=REPLICATES, seed=seed, test="bootstrap")
    found = {f"{d.test}, {d.metric}": d.p_value for d in (*auto, *area)}
    return found | {"mcnemar mid-p, accuracy": auto.discordances[0].p_mid}


def of_many_trials(seed: int, loss: float = 0.0) -> dict[str, float | None]:
    """Return the same with ten times as many."""
    return of_trials(seed, loss, 1000, 2000)


def permuted(seed: int, loss: float = 0.0) -> dict[str, float | None]:
    """Return the p values of exchanged answers, for figures that are no shares."""
    a, b = pair(np.random.default_rng(seed), 40, 80, loss)
    found = compare(a, b, ["roc_auc", "f1"], bootstrap=REPLICATES, seed=seed, test="permutation")
    return {f"{d.test}, {d.metric}": d.p_value for d in found}


def of_speakers(seed: int, loss: float = 0.0, speakers: int = 20, each: int = 15) -> dict[str, float | None]:
    """Return the p values if whole speakers are drawn."""
    rng, n = np.random.default_rng([seed, 1]), speakers * each
    label, speaker = (rng.random(n) < 1 / 3).astype(int), np.repeat(np.arange(speakers), each)
    base = rng.normal(size=n) + 1.5 * label
    sides = []
    for own in (0.0, loss):
        score = base - own * label + 0.5 * rng.normal(size=speakers)[speaker] + 0.6 * rng.normal(size=n)
        made = Trials.of(label, score, speaker=np.char.add("s", speaker.astype(str)))
        sides.append(at_threshold(made, 0.75))
    asked = ["roc_auc", "accuracy", "eer", "min_dcf", "f1"]
    found = compare(sides[0], sides[1], asked, bootstrap=REPLICATES, seed=seed, unit="speaker", force=True)
    return {f"{d.test}, {d.metric}": d.p_value for d in found}


def of_slices(seed: int, loss: float = 0.0, slices: int = 5) -> dict[str, float | None]:
    """Return the least corrected p value of five slices, and that of their mean."""
    rng = np.random.default_rng([seed, 2])
    codec = np.char.add("c", (np.arange(900) % slices).astype(str))
    a, b = (own.put(codec=codec).retitle(slices=("codec",)) for own in pair(rng, 300, 600, loss))
    found = compare(a, b, ["roc_auc", "accuracy", "eer"], by="codec", bootstrap=REPLICATES, seed=seed)
    least: dict[str, float | None] = {}
    for d in found:
        if d.average == "macro":
            least[f"{d.test}, mean of slices, {d.metric}"] = d.p_value
        elif d.slice and d.p_adjusted is not None:
            name = f"{d.test} with Holm, any slice, {d.metric}"
            least[name] = min(least.get(name) or 1.0, d.p_adjusted)
    return least


def of_weak_slices(seed: int, loss: float = 0.0, slices: int = 8) -> dict[str, float | None]:
    """Say whether a report calls any of eight equal slices worse than the others (p 0 or 1)."""
    rng = np.random.default_rng([seed, 3])
    codec = np.char.add("c", (np.arange(1200) % slices).astype(str))
    own = pair(rng, 400, 800)[0]
    moved = np.where((np.arange(1200) % slices == 0) & (own.label == 1), own.score - (0.7 if loss else 0.0), own.score)
    own = at_threshold(own.put(score=moved), 0.75).put(codec=codec).retitle(slices=("codec",))
    found = measure(own, ["eer", "accuracy"], by="codec", bootstrap=REPLICATES, seed=seed)
    return {
        f"slices against the others with Holm, {metric}": float(not weak_slices(found, metric).weak)
        for metric in ("eer", "accuracy")
    }


def of_drift(seed: int, loss: float = 0.0, clips: int = 150) -> dict[str, float | None]:
    """Say whether the interval of a drift leaves out 0 although the manipulation only adds noise (p 0 or 1)."""
    rng = np.random.default_rng([seed, 4])
    label = np.repeat([1, 0], clips)
    base = rng.normal(size=2 * clips) + 2.0 * label
    score = np.concatenate([base + own + 0.5 * rng.normal(size=2 * clips) for own in (0.0, loss)])
    source = np.tile(np.char.add("k", np.arange(2 * clips).astype(str)), 2)
    kind = np.repeat(["clean", "mp3"], 2 * clips)
    trials = Trials.of(
        np.tile(label, 2), score, item=np.char.add(np.char.add(source, "-"), kind), manipulation=kind, source=source
    )
    found = drift(trials, threshold=1.0, bootstrap=REPLICATES, seed=seed)
    return {
        f"drift, {e.metric}": float(not (e.low > 0.0 or e.high < 0.0))
        for e in found
        if e.metric in ("far_drift", "frr_drift") and e.low is not None and e.high is not None
    }


LEVELS: dict[str, Callable[[int, float], dict[str, float | None]]] = {
    "300 trials": of_trials,
    "3,000 trials": of_many_trials,
    "120 trials, answers exchanged": permuted,
    "20 speakers, 300 trials": of_speakers,
    "5 slices, 900 trials": of_slices,
    "8 slices, 1,200 trials": of_weak_slices,
    "300 clips twice": of_drift,
}
"""What is tested, and the p values of one repeat."""


def one_repeat(data: str, seed: int) -> dict[str, tuple[bool, bool]]:
    """Whether each test calls a difference where there is none, and where there is one."""
    same, other = LEVELS[data](seed, 0.0), LEVELS[data](seed, LOSS)
    return {name: tuple(p is not None and p < ALPHA for p in (same[name], other.get(name))) for name in same}


def level_rows(given: argparse.Namespace) -> Iterator[Row]:
    """The share of repeats in which each test calls a difference that is not there, and one that is."""
    counts: dict[str, list[int]] = rounds.kept_in(given.from_json or given.json)
    begun = {name.split("|")[0]: cell[2] for name, cell in counts.items()}
    tasks = (
        (data, seed)
        for seed in range(given.repeats)
        for data in given.only or LEVELS
        if begun.get(data, 0) <= seed < (given.repeats if "3,000" not in data else given.repeats // 2)
    )

    def note(task: tuple[Any, ...], found: dict[str, tuple[bool, bool]]) -> None:
        for name, calls in found.items():
            cell = counts.setdefault(f"{task[0]}|{name}", [0, 0, 0])
            cell[:] = cell[0] + calls[0], cell[1] + calls[1], cell[2] + 1

    if not given.from_json:
        rounds.carry_out(one_repeat, tasks, note, given, counts)
    for data in LEVELS:
        for place in sorted(own for own in counts if own.startswith(f"{data}|")):
            false, true, n = counts[place]
            low, high = wilson(false, n)
            yield {
                "test": place.split("|")[1],
                "data": data,
                "repeats": n,
                "no difference: called at 5 %": f"{false / n:.1%}",
                "95 % interval": f"{low:.1%} to {high:.1%}",
                "a difference: called": f"{true / n:.0%}",
            }


def resample_with_sklearn(a: Trials, b: Trials, rng: np.random.Generator) -> tuple[float, float]:
    """One replicate by hand: draw trials within each class, both curves, both EERs and both least costs."""
    members = [np.flatnonzero(a.label == k) for k in (1, 0)]
    drawn = np.concatenate([rng.choice(m, len(m)) for m in members])
    from sklearn.metrics import roc_curve

    rates, costs = [], []
    for side in (a, b):
        false, true, _ = roc_curve(side.label[drawn], side.score[drawn], drop_intermediate=False)
        at = np.argmin(np.abs(1 - true - false))
        rates.append((1 - true[at] + false[at]) / 2)
        costs.append(np.min(0.95 * (1 - true) + 0.5 * false) / 0.5)
    return float(rates[1] - rates[0]), float(costs[1] - costs[0])


def speed_rows() -> Iterator[Row]:
    """One comparison at full size against resampling by hand."""
    rng = np.random.default_rng(0)
    a, b = pair(rng, POSITIVES, TRIALS - POSITIVES)
    start = time.process_time()
    compare(a, b, ["eer", "min_dcf"], bootstrap=1000)
    ours = time.process_time() - start
    start = time.process_time()
    for _ in range(SLOW):
        resample_with_sklearn(a, b, rng)
    theirs = (time.process_time() - start) / SLOW * 1000
    start = time.process_time()
    compare(a, b, ["roc_auc"])
    area = time.process_time() - start
    yield {"work at 680,774 trials": "EER + minDCF, 1,000 paired replicates", "hitmiss s": f"{ours:.1f}",
           "scikit-learn s": f"{theirs:.0f}", "ratio": f"{theirs / ours:.0f}×"}  # fmt: skip
    yield {"work at 680,774 trials": "ROC AUC, paired DeLong", "hitmiss s": f"{area:.2f}", "scikit-learn s": "–",
           "ratio": "–"}  # fmt: skip


def main() -> None:
    """Print the tables as Markdown."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=REPEATS)
    parser.add_argument("--only", nargs="*", choices=list(LEVELS), help="data whose tests are run")
    parser.add_argument("--no-speed", action="store_true")
    rounds.add_options(parser, 30.0)
    given = parser.parse_args()
    every = level_rows(given), speed_rows() if not given.no_speed and not given.from_json else ()
    for header, own in groupby((row for rows in every for row in rows), key=tuple):
        print(f"\n| {' | '.join(header)} |\n|{'---|' * len(header)}")
        for row in own:
            print(f"| {' | '.join(map(str, row.values()))} |", flush=True)


if __name__ == "__main__":
    main()
