"""Do 95 % intervals hold the truth 95 % of the time, and are they as narrow as they can be?

    python benchmarks/interval_coverage.py [--repeats N] [--minutes M] [--workers N] [--replicates B]
                                           [--json FILE [--doubtful] | --from-json FILE]
                                           [--places PLACE …] [--settings SETTING …] [--held-out]
    python benchmarks/interval_coverage.py --direct N [--settings SETTING …]

Simulated systems with known figures, measured by the very calls that a command makes. Every metric that is printed with an
interval × what is drawn (trials; 6, 10, 20, 40, 150 speakers; uneven ones; speakers of one class each; speakers × attacks)
× small and large samples × where it stands (pooled, one slice, macro average, gap, worst slice, paired difference). The
scores are log-likelihood ratios of Gaussian classes, 30 % positives; a speaker's own level makes up a quarter of the
variance (with attacks: 16 % each, and the class of a speaker of one class is drawn). Truths come from one sample of two
million independent trials. Data sets are made in rounds over all designs, so that every cell has some when the time is over;
Beside the coverage stands the mean width relative to the ideal, 2 · 1.96 · the standard deviation of the estimate over
the data sets of the cell (not for worst slices, whose true value differs from data set to data set).
`--json` keeps the counts, and a run goes on from what the file holds; `--places` and `--settings` measure a part of the
grid (after a change, delete the cells that it touches from the file and run those). With 3,700 cells some are marked by
chance: `--doubtful` with more `--repeats` goes on with the places of settings that have one, and no other. A cell shows the coverage in per cent and how often no
interval was given (`none`: never one). The worst slice is judged by the true figure of the slice that was picked. Metrics
that are computed again for every replicate are measured on every third data set.

What is accepted: 93 to 97 %, or no interval with its reason; above 97 % (marked `+`) an interval is wider than it need be,
which is accepted where it rests on few units or few errors (see docs/intervals.md, "Wider than they need be"); below 93 %
(marked `-`) is not accepted. A mark stands only where chance alone does not explain it (exact binomial test, 5 %).

`derived` are expressions of metrics: of two whose errors go together, and of a mean over slices that share all positive
trials (and so overlap); an interval that lost their covariance would show it here. `--held-out`: settings that were not
looked at when the constants of the rules were chosen (skewed scores, tied scores, units of very unequal sizes).

Settings of `three classes` (30 % targets, 30 % nontargets, 40 % spoofs) have the metrics of tandems, and no other: a
countermeasure tells bona fide speech from spoofs, a speaker verifier targets from nontargets (a spoof looks like 60 % of a
target), each with a level of its own for every claimed speaker, and the score of both is their soft minimum. The error
rates of the verifier in the t-DCFs are those of ASVspoof 5, held fixed.

`--direct`: the figures of N data sets of speakers and of their replicates by plain numpy, and the intervals by the function
that the engine calls (`stats.intervals.student`): many times as fast, for fewer figures, and a second implementation.

Metrics that are not columns of the table are computed like one that is: shares of a class (fnr, fpr, slip, catch, pass,
coverage of a class … as recall and specificity), shares of all trials (error rate, coverage, abstentions, changed, flipped,
lost, exact match, robust accuracy, targets … as accuracy), shares of what was answered (as precision), F1 of either class (as
f1), `dcf_at` (as act_dcf), means over trials (norms, SNR, shifts, drift: as smoothness, here of log-normal values).
"""

from __future__ import annotations

import os

os.environ.update(
    dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "POLARS_MAX_THREADS"), "1")
)

import argparse
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from scipy.stats import binomtest

import rounds
from hitmiss.core.design import Design, names_of
from hitmiss.core.header import Header
from hitmiss.core.protocol import Gap, Protocol
from hitmiss.core.trials import Trials
from hitmiss.derive.decisions import at_threshold
from hitmiss.engine.compare import compare
from hitmiss.engine.measure import measure, measure_design
from hitmiss.stats import enough_units, intervals, jackknife
from hitmiss.stats.forms.three_classes import CLASSES
from hitmiss.stats.optimism import growth_of_least_cost
from hitmiss.stats.students_t import t_quantile

Array = np.ndarray[Any, Any]
POSITIVES = 0.3
GAPS = {"a": 3.0, "b": 2.6, "c": 2.2}
"""Slices, and how far the classes are apart in each."""
LOSS = 0.3
"""How much less the second system keeps them apart."""
SCORES = (
    *("eer", "min_dcf", "act_dcf", "cllr", "roc_auc", "tpr_at_fpr(fpr=0.05)", "fpr_at_tpr(tpr=0.9)"),
    "average_precision",
)
DECISIONS = ("f1", "mcc", "precision", "recall", "specificity", "accuracy", "balanced_accuracy")
CONFIDENCES = ("aurc", "augrc", "e_aurc", "accuracy_at_coverage", "coverage_at_accuracy", "brier_confidence")
MEANS = ("smoothness_uv2",)
PROBABILITIES = ("brier", "log_loss")
SLOW = ("eer_threshold", "median_seconds", "p95_seconds")
"""Computed again for every replicate, one by one: measured pooled only, on some data sets."""
SOME = 3
"""Slow figures are measured on every data set of this many."""
FIRST = (*SCORES, *DECISIONS, *CONFIDENCES, *MEANS)
METRICS = (*FIRST, *PROBABILITIES, *SLOW)
DERIVED = {
    "auc_and_accuracy": "roc_auc + accuracy",
    "recall_less_f1": "recall - f1",
    "eer_over_sources": "mean(eer, source)",
    "accuracy_and_eer_over_sources": "accuracy + mean(eer, source)",
}
"""Expressions of two metrics, and of slices that overlap: every source of negatives is set against all positives."""
SOURCES = 4
TANDEM = ("min_t_dcf", "min_t_dcf_legacy", "min_a_dcf", "sasv_eer", "sv_eer", "spf_eer", "t_eer")
"""Measured on trials of three classes, and only there."""
THREE_CLASSES = "three classes"
SHARES = (0.3, 0.3, 0.4)
"""Targets, nontargets and spoofs."""
LIKE_TARGETS = (1.0, 0.0, 0.6)
"""How far each class is on the way from nontargets to targets for the speaker verifier."""
PLACES = ("pooled", "slice", "macro", "gap", "worst", "paired", "derived")
TRUTH = 2_000_000
Kept = dict[str, Any]
"""Truths, and counts per cell."""


@dataclass(frozen=True)
class Setting:
    """What is drawn, from how many units, with how many trials each."""

    name: str
    units: int = 0
    each: int = 0
    kind: str = "even"
    scale: float = 1.0
    """How many times as far apart the classes are as `GAPS` says."""
    shape: str = "normal"
    """What the scores are like: normal, skewed (a gamma distribution), tied (rounded to a third), or of three classes."""

    @property
    def is_tandem(self) -> bool:
        """Whether trials have three classes, so that they are measured by the metrics of tandems."""
        return self.shape == THREE_CLASSES

    @property
    def unit(self) -> str | None:
        """What is drawn as a whole."""
        return None if not self.units else "speaker,attack" if self.kind == "two-way" else "speaker"


SETTINGS = (
    *(Setting(f"{n} speakers, 30 each", n, 30) for n in (6, 10, 20, 40, 150)),
    *(Setting(f"{n} uneven speakers, 30 each", n, 30, "uneven") for n in (20, 40)),
    Setting("40 speakers of one class, 30 each", 40, 30, "pure"),
    Setting("40 speakers × 12 attacks, 30 each", 40, 30, "two-way"),
    Setting("400 trials", 0, 400),
    *(Setting(f"{n} speakers, 150 each", n, 150) for n in (6, 10, 20, 40)),
    Setting("20 uneven speakers, 150 each", 20, 150, "uneven"),
    Setting("40 speakers of one class, 100 each", 40, 100, "pure"),
    Setting("40 speakers × 12 attacks, 100 each", 40, 100, "two-way"),
    Setting("4,000 trials", 0, 4000),
    Setting("400 units of one row", 400, 1, "pure"),
    Setting("300 units of three rows", 300, 3),
    Setting("540 texts of six labels", 540, 6),
    Setting("1,000 trials, EER 1 %", 0, 1000, scale=1.55),
    Setting("20 speakers, 30 each, EER 1 %", 20, 30, scale=1.55),
    *(Setting(f"{n} speakers, 60 each, three classes", n, 60, shape=THREE_CLASSES) for n in (20, 40, 150)),
    *(Setting(f"{n:,} trials, three classes", 0, n, shape=THREE_CLASSES) for n in (600, 2400)),
)


HELD_OUT = (
    Setting("30 speakers, 40 each, skewed", 30, 40, shape="skewed"),
    Setting("30 speakers, 40 each, tied", 30, 40, shape="tied"),
    Setting("30 very unequal speakers, 40 each", 30, 40, "pareto"),
    Setting("12 speakers, 60 each, skewed, EER 3 %", 12, 60, scale=1.2, shape="skewed"),
    Setting("600 trials, skewed", 0, 600, shape="skewed"),
    Setting("600 trials, tied, EER 3 %", 0, 600, scale=1.2, shape="tied"),
    Setting("60 speakers of one class, 15 each, skewed", 60, 15, "pure", shape="skewed"),
)
"""Settings that were not used to choose a constant."""


def scores(
    rng: np.random.Generator,
    label: Array,
    speaker: Array | None,
    attack: Array | None,
    codec: Array,
    loss: float,
    scale: float = 1.0,
    shape: str = "normal",
) -> Array:
    """Log-likelihood ratios of one system; the levels of speakers (and attacks) are part of a variance of 1."""
    noise = (rng.gamma(4.0, size=len(label)) - 4.0) / 2.0 if shape == "skewed" else rng.normal(size=len(label))
    if speaker is None and shape == "skewed":  # of new speakers, whose levels are normal
        noise = math.sqrt(0.25) * rng.normal(size=len(label)) + math.sqrt(0.75) * noise
    if speaker is not None:
        share = 0.25 if attack is None else 0.16
        rest = np.full(len(label), 1.0 - share)
        noise_of = math.sqrt(share) * rng.normal(size=int(speaker.max()) + 1)[speaker]
        if attack is not None:
            rest = np.where(label, rest, rest - share)
            noise_of = noise_of + np.where(label, 0.0, math.sqrt(share) * rng.normal(size=12)[attack])
        noise = noise_of + np.sqrt(rest) * noise
    gap = scale * np.array(list(GAPS.values()))[codec] - loss
    made = gap * (noise + gap * label) - gap**2 / 2
    return np.round(3.0 * made) / 3.0 if shape == "tied" else made


def data(setting: Setting, rng: np.random.Generator) -> tuple[Trials, Trials, Trials, Trials]:
    """Two systems with log-likelihood ratios, decisions, confidences and times, and both with probabilities."""
    speaker = attack = None
    if not setting.units:
        n = setting.each
    else:
        sizes = np.full(setting.units, setting.each)
        if setting.kind in ("uneven", "pareto"):
            share = rng.lognormal(0.0, 1.0, setting.units)
            share = share if setting.kind == "uneven" else 0.3 + rng.pareto(1.5, setting.units)
            sizes = np.maximum(np.round(setting.each * share / share.mean()), 2).astype(int)
        speaker = np.repeat(np.arange(setting.units), sizes)
        n = len(speaker)
    label = rng.random(n) < POSITIVES
    if setting.kind == "pure" and speaker is not None:
        label = (rng.random(setting.units) < POSITIVES)[speaker]
    if setting.kind == "two-way":
        attack = rng.integers(0, 12, n)
    codec = rng.integers(0, len(GAPS), n)
    source = np.where(label, "none", np.char.add("S", (np.arange(n) % SOURCES).astype(str)))
    made = []
    for loss in (0.0, LOSS):
        score = scores(rng, label, speaker, attack, codec, loss, setting.scale, setting.shape)
        slices = {"codec": np.array(list(GAPS))[codec], "source": source}
        own = Trials.of(label, score, header=Header(score_kind="llr"), **slices)
        seconds = np.exp(0.5 * scores(rng, np.zeros(n, dtype=bool), speaker, None, codec, loss) / 3.0)
        made.append(_decided(own, score, seconds, speaker, attack, label))
    prior = math.log(POSITIVES / (1 - POSITIVES))
    chances = [
        Trials.of(
            label,
            1.0 / (1.0 + np.exp(-(own.score + prior))),
            header=Header(score_kind="probability"),
            codec=np.array(list(GAPS))[codec],
        )
        for own in made
    ]
    return (*made, *(_with_units(own, speaker, attack, label) for own in chances))


def _decided(
    trials: Trials, score: Array, seconds: Array, speaker: Array | None, attack: Array | None, label: Array
) -> Trials:
    prior = math.log(POSITIVES / (1 - POSITIVES))
    sure = 1.0 / (1.0 + np.exp(-np.abs(score + prior)))
    made = at_threshold(trials, -prior).put(confidence=np.round(sure, 3), seconds=seconds, smoothness=seconds)
    return _with_units(made, speaker, attack, label)


def _with_units(trials: Trials, speaker: Array | None, attack: Array | None, label: Array) -> Trials:
    if speaker is not None:
        trials = trials.put(speaker=np.char.add("s", speaker.astype(str)))
    if attack is not None:
        trials = trials.put(attack=np.where(label, "none", np.char.add("A", attack.astype(str))))
    return trials


def three_classes(setting: Setting, rng: np.random.Generator) -> tuple[Trials, Trials]:
    """Two systems with the scores of a countermeasure, a speaker verifier, and both."""
    n = setting.each * max(setting.units, 1)
    speaker = np.repeat(np.arange(setting.units), setting.each) if setting.units else None
    kind, codec = rng.choice(len(CLASSES), n, p=SHARES), rng.integers(0, len(GAPS), n)
    kinds = np.array(CLASSES)[kind]
    bona_fide = kinds != "spoof"
    made = []
    for loss in (0.0, LOSS):
        cm, asv = (scores(rng, own, speaker, None, codec, loss) for own in (bona_fide, np.array(LIKE_TARGETS)[kind]))
        own = Trials.of(bona_fide, cm, codec=np.array(list(GAPS))[codec], asv_label=kinds)
        own = own.put(asv_score=asv, sasv_score=-np.logaddexp(-cm, -asv))
        made.append(_with_units(own, speaker, None, bona_fide))
    return made[0], made[1]


def drawn(setting: Setting, rng: np.random.Generator) -> tuple[Trials, ...]:
    """The systems of a setting: two, and for two classes both again with probabilities."""
    return three_classes(setting, rng) if setting.is_tandem else data(setting, rng)


def asked(
    systems: Sequence[Trials], slow: bool, places: Sequence[str] = PLACES, **options: Any
) -> Iterator[tuple[str, str, str | None, Any]]:
    """Every estimate of every metric of the first system: its metric, where it stands, its slice."""
    whole = {"by": "codec", "gap": Gap("codec", ("a",)) if "gap" in places else None, **options}
    calls = [(one, metrics, whole) for one, _, metrics in pairs(systems)]
    for trials, metrics, asked_for in (*calls, *([(systems[0], SLOW, options)] if slow else [])):
        for e in measure(trials, metrics, **asked_for):
            place = e.average or ("slice" if e.slice else "pooled")
            if place in PLACES:
                yield e.metric, place, e.slice.get("codec"), e


def pairs(systems: Sequence[Trials]) -> list[tuple[Trials, Trials, tuple[str, ...]]]:
    """What two systems are measured by: tandems, or detectors of two classes and their probabilities."""
    if len(systems) == 2:
        return [(systems[0], systems[1], TANDEM)]
    return [(systems[0], systems[1], FIRST), (systems[2], systems[3], PROBABILITIES)]


def derived(first: Trials, **options: Any) -> Iterator[tuple[str, str, str | None, Any]]:
    """Every derived estimate."""
    rules = Protocol(metrics=("roc_auc", "accuracy", "recall", "f1", "eer"), derived=DERIVED, negative_only=("source",))
    design = Design(protocol=rules, metrics=rules.metrics, gap="none").changed(
        **{**options, "unit": names_of(options.get("unit"))}
    )
    for e in measure_design(first, design, derived=rules.expressions()):
        if e.metric in DERIVED:
            yield e.metric, "derived", None, e


@cache
def truths(scale: float = 1.0, shape: str = "normal") -> dict[tuple[str, str, str | None], float]:
    """The figures of two million independent trials: pooled, of each slice, macro, gap, and the paired difference."""
    setting = Setting("truth", 0, TRUTH, scale=scale, shape=shape)
    systems = drawn(setting, np.random.default_rng(2026))
    found = {(m, p, s): e.value for m, p, s, e in asked(systems, not setting.is_tandem) if p != "worst"}
    if not setting.is_tandem:
        found |= {(m, p, s): e.value for m, p, s, e in derived(systems[0])}
    two = (e for _, second, metrics in pairs(systems) for e in measure(second, metrics))
    return found | {(e.metric, "paired", None): e.value - found[e.metric, "pooled", None] for e in two}


def one_data_set(
    setting: Setting, k: int, places: Sequence[str], replicates: int, known: dict[Any, float]
) -> list[tuple[str, str, int, float, float]]:
    """For each metric and place 1 where the interval holds the truth, 0 where not, −1 where there is none.

    Then the width of the interval, and the estimate.
    """
    rng = np.random.default_rng([k, setting.units, setting.each, len(setting.kind)])
    systems = drawn(setting, rng)
    options = {"bootstrap": replicates, "seed": k, "unit": setting.unit}
    found = []
    slow = "pooled" in places and k % SOME == 0 and not setting.is_tandem
    for metric, place, where, e in asked(systems, slow, places, **options) if {*places} - {"paired", "derived"} else ():
        true = known[metric, "slice" if place == "worst" else place, where]
        if place in places and (place != "slice" or where == "c"):
            found.append((metric, place, *_held(e.low, true, e.high), e.value))
    if "derived" in places and not setting.is_tandem:
        for metric, place, where, e in derived(systems[0], **options):
            found.append((metric, place, *_held(e.low, known[metric, place, where], e.high), e.value))
    if "paired" not in places:
        return found
    left_out = () if setting.unit or k % SOME == 0 else CONFIDENCES
    for first, second, metrics in pairs(systems):
        for d in compare(first, second, [m for m in metrics if m not in left_out], force=True, **options):
            found.append((d.metric, "paired", *_held(d.low, known[d.metric, "paired", None], d.high), d.delta))
    return found


def _held(low: float | None, true: float, high: float | None) -> tuple[int, float]:
    return (-1, 0.0) if low is None or high is None else (int(low <= true <= high), high - low)


def made(counts: dict[str, list[int]], setting: Setting, place: str) -> int:
    """How many data sets of a setting were measured at a place; some figures are measured on some of them only."""
    own = f"{setting.name}|{place}|"
    return max((sum(cell[:3]) for name, cell in counts.items() if name.startswith(own)), default=0)


def run(given: argparse.Namespace, settings: Sequence[Setting]) -> Kept:
    """Make data sets in rounds over the settings until each has enough, or the time is over."""
    places, state = given.places, rounds.kept_in(given.json)
    state.setdefault("counts", {})
    populations = sorted({(s.scale, s.shape) for s in settings})
    there = {(row[0], row[1]) for row in state.get("truths", ())}
    state["truths"] = [
        *state.get("truths", ()),
        *([*own, *place, v] for own in populations if own not in there for place, v in truths(*own).items()),
    ]
    known = {
        own: {(m, p, s): v for scale, shape, m, p, s, v in state["truths"] if (scale, shape) == own}
        for own in populations
    }
    counts = state["counts"]
    done = {s.name: {place: made(counts, s, place) for place in places} for s in settings}
    again = (
        {tuple(name.split("|")[:2]) for name, cell in counts.items() if _mark(cell) == "-"} if given.doubtful else None
    )
    wanted = {s.name: [p for p in places if again is None or (s.name, p) in again] for s in settings}
    asked_of = (
        (s, k, [p for p in wanted[s.name] if k >= done[s.name][p]]) for k in range(given.repeats) for s in settings
    )
    tasks = ((s, k, left) for s, k, left in asked_of if left)
    work = ((s, k, left, given.replicates, known[s.scale, s.shape]) for s, k, left in tasks)

    def note(task: tuple[Any, ...], found: list[tuple[str, str, int, float, float]]) -> None:
        for metric, place, held, width, value in found:
            cell = counts.setdefault(f"{task[0].name}|{place}|{metric}", [0, 0, 0, 0.0, 0.0, 0.0])
            cell[{1: 0, 0: 1, -1: 2}[held]] += 1
            if value is not None:
                cell[3:] = [a + b for a, b in zip(cell[3:], (width, value, value * value), strict=True)]

    rounds.carry_out(one_data_set, work, note, given, state)
    return state


def table(counts: dict[str, Any], metrics: tuple[str, ...] = (*METRICS, *DERIVED, *TANDEM)) -> str:
    """Markdown: a line per setting and place, a column per metric that some cell has; coverage in per cent."""
    measured = {name.split("|")[2] for name in counts}
    columns = [metric for metric in metrics if metric in measured]
    lines = [["drawn", "place", "data sets", *columns], ["---"] * (3 + len(columns))]
    for setting in (*SETTINGS, *HELD_OUT):
        for place in PLACES:
            cells = [counts.get(f"{setting.name}|{place}|{metric}", [0, 0, 0]) for metric in columns]
            if any(sum(cell[:3]) for cell in cells):
                told = [_shown(cell, place) for cell in cells]
                lines.append([setting.name, place, str(made(counts, setting, place)), *told])
    marks = [_mark(c) for c in counts.values() if sum(c[:2])]
    shares = [c[0] / sum(c[:2]) for c in counts.values() if sum(c[:2])]
    within = sum(0.93 <= share <= 0.97 for share in shares)
    n = sorted(sum(c[:2]) for c in counts.values() if sum(c[:2]))
    error = 196 * math.sqrt(0.95 * 0.05 / n[len(n) // 2]) if n else math.nan
    never = sum(not sum(c[:2]) for c in counts.values())
    ratios = sorted(r for name, c in counts.items() if (r := _ratio(c, name.split("|")[1])) is not None)
    middle = f"{ratios[len(ratios) // 2]:.2f}" if ratios else "–"
    wide = sorted(
        ((r, name) for name, c in counts.items() if (r := _ratio(c, name.split("|")[1])) is not None), reverse=True
    )
    foot = (
        f"{reasons(counts)}\nWidth relative to the ideal: median {middle}, {sum(r > 1.5 for r in ratios)} of {len(ratios)} cells above 1.5; "
        f"the widest: {'; '.join(f'{name} {r:.2f}' for r, name in wide[:5])}."
        f"\n{len(marks)} cells with intervals: {within} within 93 to 97 %; beyond chance {marks.count('-')} below (`-`) and "
        f"{marks.count('+')} above (`+`: wider than they need be); {never} cells without any interval. "
        f"Monte Carlo error of a cell (median): ± {error:.1f} points (95 %)."
    )
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n" + foot


def reasons(counts: dict[str, Any]) -> str:
    """Why cells are wider than half as much again as the ideal, and which cell of all holds the truth least often."""
    kinds: dict[str, list[float]] = {}
    by_name = {s.name: s for s in (*SETTINGS, *HELD_OUT)}
    for name, cell in counts.items():
        setting, place, metric = name.split("|")
        ratio = _ratio(cell, place)
        if ratio is not None and ratio > WIDE:
            kinds.setdefault(_reason(by_name[setting], place, metric), []).append(ratio)
    told = [f"- {len(own)} cells, up to {max(own):.1f}: {why}" for why, own in sorted(kinds.items())]
    held = [
        (c[0] / sum(c[:2]), name) for name, c in counts.items() if sum(c[:2]) > 0.5 * sum(c[:3]) and sum(c[:2]) >= 20
    ]
    worst = f"\nThe worst cell: {min(held)[1]}, {100 * min(held)[0]:.1f} %." if held else ""
    return (f"\nCells above {WIDE}, by their reason:\n" + "\n".join(told) if told else "") + worst


WIDE = 1.5


def _reason(setting: Setting, place: str, metric: str) -> str:
    """Why an interval of this setting is wide: what an honest one must allow for."""
    if setting.scale > 1.0:
        return "few errors: the estimate is far more skewed than its errors show, and sets with more of them are wide"
    if setting.kind in ("uneven", "pareto"):
        return "unequal units: they say as little as 4 to 8 equal ones, so Student's quantile is 2.4 to 3.2, not 1.96"
    if 0 < setting.units <= 10:
        return f"{setting.units} units: Student's quantile is {t_quantile(0.975, setting.units - 1.0):.2f}, not 1.96, on the scale of the bounds"
    if place == "derived":
        return "a derived number of few or unequal units, whose skewness moves its ends"
    if metric in SLOW:
        return "a quantile: its error is read off the few values around it"
    if place == "gap":
        return "a gap between slices of which one has few errors"
    if metric in ("coverage_at_accuracy", "accuracy_at_coverage"):
        return "read at a threshold of its own: it jumps from one trial to the next"
    if setting.kind == "two-way":
        return "crossed units: 12 attacks carry most of the error, Student's quantile is 2.2"
    if setting.kind == "pure" and setting.each > 1:
        return "units of one class each: as many units as the rarer class has, of which few show errors"
    return "a slice of few trials of one class"


def _mark(cell: list[int]) -> str:
    """`-` if a cell covers less than 93 %, `+` if it covers more than 97 %, beyond what chance explains."""
    inside, of = cell[0], cell[0] + cell[1]
    if inside < 0.93 * of and binomtest(inside, of, 0.93, alternative="less").pvalue < 0.05:
        return "-"
    return "+" if inside > 0.97 * of and binomtest(inside, of, 0.97, alternative="greater").pvalue < 0.05 else ""


def _shown(cell: list[Any], place: str) -> str:
    inside, outside, none = cell[:3]
    if not inside + outside:
        return "none" if none else ""
    share, ratio = 100.0 * inside / (inside + outside), _ratio(cell, place)
    wide = "" if ratio is None else f" / {ratio:.2f}"
    return f"{share:.1f}{_mark(cell)}{wide}" + (f" ({none} none)" if none else "")


def _ratio(cell: list[Any], place: str) -> float | None:
    """The mean width over the ideal; None for worst slices, or where nothing varies or too few have an interval."""
    if len(cell) < 6 or place == "worst" or sum(cell[:2]) < 20 or not sum(cell[:2]) > 0.5 * sum(cell[:3]):
        return None
    n, (width, total, squares) = sum(cell[:3]), cell[3:]
    variance = (squares - total * total / n) / (n - 1)
    return None if not variance > 0.0 else width / sum(cell[:2]) / (2.0 * 1.96 * math.sqrt(variance))


# ----------------------------------------------------------------------
# The same for speakers by plain numpy: many more data sets in the same time.

MISS, FALSE_ALARM = 0.95, 0.5
"""Weights of the default costs; the better trivial system costs the second."""
RANGES = {
    **dict.fromkeys(("eer", "min_dcf", "roc_auc", "tpr_at_fpr(fpr=0.05)"), (0.0, 1.0)),
    **dict.fromkeys(("act_dcf", "cllr"), (0.0, math.inf)),
    **dict.fromkeys(("recall", "specificity", "precision", "f1", "accuracy", "brier"), (0.0, 1.0)),
    "mcc": (-1.0, 1.0),
}


def figures_of(label: Array, unit: Array, score: Array, weights: Array) -> dict[str, Array]:
    """Every figure for every row of unit weights; the first row is the sample itself."""
    order = np.argsort(score, kind="stable")
    label, score, w = label[order], score[order], weights[:, unit[order]].astype(np.float64)
    p = w * label
    q = w - p
    cp, cn = (np.concatenate([np.zeros((len(w), 1)), np.cumsum(x, axis=1)], axis=1) for x in (p, q))
    n1, n0, row = cp[:, -1], cn[:, -1], np.arange(len(w))
    miss, alarm = cp / n1[:, None], 1.0 - cn / n0[:, None]
    cost = (MISS * miss + FALSE_ALARM * alarm) / FALSE_ALARM
    after = np.argmax(miss > alarm, axis=1)
    ends = [np.stack([miss[row, at], alarm[row, at]]) for at in (np.maximum(after - 1, 0), after)]
    nearest = np.abs(ends[0][0] - ends[0][1]) <= np.abs(ends[1][0] - ends[1][1])
    loss = np.logaddexp(0.0, np.where(label, -score, score))
    prior = math.log(POSITIVES / (1 - POSITIVES))
    accepted = score >= -prior
    tp, fp = p @ accepted, q @ accepted
    fn, tn = n1 - tp, n0 - fp
    return {
        "eer": np.where(nearest, ends[0].mean(axis=0), ends[1].mean(axis=0)),
        "tpr_at_fpr(fpr=0.05)": 1.0 - miss[row, np.argmax(alarm <= 0.05, axis=1)],
        "min_dcf": cost.min(axis=1),
        "at best": cost[:, int(np.argmin(cost[0]))],
        "act_dcf": cost[:, int(np.searchsorted(score, -math.log(MISS / FALSE_ALARM)))],
        "roc_auc": (p * cn[:, :-1]).sum(axis=1) / (n1 * n0),
        "cllr": 0.5 * ((p @ loss) / n1 + (q @ loss) / n0) / math.log(2.0),
        "recall": tp / n1,
        "specificity": tn / n0,
        "precision": tp / (tp + fp),
        "f1": 2 * tp / (2 * tp + fp + fn),
        "accuracy": (tp + tn) / (n1 + n0),
        "mcc": (tp * tn - fp * fn) / np.sqrt((tp + fp) * (tp + fn) * (tn + fp) * (tn + fn)),
        "brier": (w @ (1.0 / (1.0 + np.exp(-(score + prior))) - label) ** 2) / w.sum(axis=1),
    }


def ends_of(metric: str, own: dict[str, Array], other: dict[str, Array] | None, units: float, drawn: int) -> Any:
    """The interval of a figure, or of its difference from that of another system or slice."""
    values, bounds = own[metric], RANGES[metric]
    if units < enough_units.LEAST_EFFECTIVE:
        return math.nan, math.nan
    smooth = metric not in ("eer", "tpr_at_fpr(fpr=0.05)")
    if other is not None:
        values, bounds, smooth = other[metric] - values, (-math.inf, math.inf), smooth and metric != "min_dcf"
    elif metric == "min_dcf":
        least, values = values, own["at best"]
        values = values * growth_of_least_cost(least[1 : drawn + 1], float(least[0]))
    left = jackknife.LeftOut((values[drawn + 1 :],), (units,))
    known = values[1 : drawn + 1]
    low, high = intervals.student(known[np.isfinite(known)], float(values[0]), units - 1.0, bounds, 0.95, left, smooth)
    return (
        (min(low, own[metric][0]), max(high, own[metric][0])) if other is None and metric == "min_dcf" else (low, high)
    )


def direct(setting: Setting, repeats: int, known: dict[Any, float], drawn: int = 200) -> dict[str, list[int]]:
    """Counts per cell, as `run` makes them: pooled, the third slice, and the paired difference."""
    counts: dict[str, list[int]] = {}
    n = setting.units
    for k in range(repeats):
        rng = np.random.default_rng([k, n, setting.each, len(setting.kind), 1])
        first, second, *_ = data(setting, rng)
        label, unit = first.label == 1, first.codes("speaker")[0]
        third = first.frame["codec"].to_numpy() == "c"
        weights = np.concatenate([np.ones((1, n)), rng.multinomial(n, np.full(n, 1 / n), size=drawn), 1.0 - np.eye(n)])
        one, two = (figures_of(label, unit, t.score, weights) for t in (first, second))
        inside = figures_of(label[third], unit[third], first.score[third], weights)
        for place, own, other, rows in (("pooled", one, None, ~third | third), ("slice", inside, None, third),
                                        ("paired", one, two, ~third | third)):  # fmt: skip
            counted = enough_units.error_units if other is None else enough_units.effective
            units = enough_units.effective_units(enough_units.unit_sizes(unit[rows], label[rows]), count=counted)
            for metric in RANGES:
                low, high = ends_of(metric, own, other, units, drawn)
                true = known[metric, place, "c" if place == "slice" else None]
                at = 2 if not low < high else 0 if low <= true <= high else 1
                counts.setdefault(f"{setting.name}|{place}|{metric}", [0, 0, 0])[at] += 1
    return counts


def main() -> None:
    """Print the table, and write it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    rounds.add_options(parser, 30.0)
    parser.add_argument("--repeats", type=int, default=400, help="data sets per setting")
    parser.add_argument("--replicates", type=int, default=200)
    parser.add_argument(
        "--doubtful", action="store_true", help="only what the file shows to be below 93 %%, as often again"
    )
    parser.add_argument("--direct", type=int, default=0, help="data sets per setting, by plain numpy")
    parser.add_argument("--places", nargs="+", choices=PLACES, default=PLACES)
    parser.add_argument("--settings", nargs="+", choices=[s.name for s in (*SETTINGS, *HELD_OUT)], metavar="SETTING")
    parser.add_argument("--held-out", action="store_true", help="the settings that no constant was chosen on")
    given = parser.parse_args()
    listed = HELD_OUT if given.held_out else SETTINGS
    chosen = [s for s in listed if not given.settings or s.name in given.settings]
    if given.direct:
        known = truths()
        chosen = [s for s in chosen if s.units and s.kind in ("even", "uneven") and s.scale == 1.0 and not s.is_tandem]
        with np.errstate(divide="ignore", invalid="ignore"):
            counts = {name: c for s in chosen for name, c in direct(s, given.direct, known).items()}
        print(table(counts, tuple(RANGES)))
        return
    state = rounds.kept_in(given.from_json) if given.from_json else run(given, chosen)
    own = {s.name for s in chosen}
    print(table({name: cell for name, cell in state["counts"].items() if name.split("|")[0] in own}))


if __name__ == "__main__":
    main()
