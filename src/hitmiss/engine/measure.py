"""Measure metrics per run and slice, with intervals, averages, derived figures, reasons, warnings and a signature."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Final

import numpy as np

from hitmiss._version import __version__
from hitmiss.core import errors, progress
from hitmiss.core.artifacts import SHORT
from hitmiss.core.classes import same_class
from hitmiss.core.columns import find_column
from hitmiss.core.design import By, Design, Grouping, names_of
from hitmiss.core.errors import DataError, UnknownName, UsageError
from hitmiss.core.protocol import Gap, Gaps, Protocol
from hitmiss.core.rates import Quantile, Rate
from hitmiss.core.read_spec import ReadSpec
from hitmiss.core.registry import Derived, Metric, MetricSpec, Setting, Term, resolve
from hitmiss.core.results import (
    COARSE,
    CONSTANT,
    REPEATED,
    REVERSED,
    TIED,
    UNDIRECTED,
    UNUSED,
    Estimate,
    Remark,
    Results,
    prefixed,
)
from hitmiss.core.sampling import Method, SamplingPlan
from hitmiss.core.scale import ScoreScale
from hitmiss.core.sorting import Floats
from hitmiss.core.tally import Tally
from hitmiss.core.text_codes import is_text
from hitmiss.core.trials import Trials, demanded
from hitmiss.engine.resample import (
    AT_END,
    ONE_UNIT,
    OVER_UNITS,
    SAME,
    Columns,
    Draws,
    Ends,
    OneClass,
    Question,
    Sample,
    TalliedTrials,
    by_target,
    samples_of_runs,
    samples_of_slices,
    share_of_units,
    too_few_errors,
    without_width,
)
from hitmiss.engine.weighted import UNDRAWN, columns_of_trials, plan_for, refuse_unweighted
from hitmiss.metrics.counts import Counts
from hitmiss.stats import intervals
from hitmiss.stats.forms import (
    Crossing,
    Form,
    Functional,
    MinimumCost,
    OfColumns,
    OfConfidences,
    OfTerms,
    Replicated,
    equal_error,
)
from hitmiss.stats.intervals import quantile_interval, wilson

# ----------------------------------------------------------------------
# The signature: one line that records every choice behind a table of figures, and a hash of the figures.
#
# `hitmiss:0.2.0|protocol:asvspoof5|metrics:eer(ties=official)+…|pos:bonafide|kind:llr|by:codec|boot:1000,…|n:5/3|data:…|out:…`

ELSEWHERE = ("score_kind", "on_nan", "dedupe", "allow_missing")
"""Read options that other parts of the signature record."""
USUAL_LEVEL = 0.95
"""The default level of intervals; a signature leaves it out if nothing is resampled."""


GAPS_JOIN: Final = " & "
"""Between the gaps of a signature."""


def sign(
    results: Results,
    trials: Trials,
    questions: Sequence[Question],
    plan: SamplingPlan,
    groupings: Sequence[Grouping],
    gaps: Sequence[Gap],
    slices: str = "none",
) -> str:
    """Return the signature of a measurement; `slices` is "all" if metrics beyond the protocol's choice are sliced."""
    asked = "+".join(str(MetricSpec.of(q.metric.name, **q.settings)).replace(" ", "") for q in questions)
    by = ",".join("*".join(g) for g in groupings)
    level = "none" if plan.bootstrap or plan.level == USUAL_LEVEL else f"{plan.level:g}"
    gap = GAPS_JOIN.join(map(str, gaps)) or "none"
    return signed(results, trials, metrics=asked, by=by or "none", slices=slices, gap=gap, boot=str(plan), level=level)


def signed(
    results: Results,
    trials: Trials,
    *,
    metrics: str = "none",
    by: str = "none",
    slices: str = "none",
    gap: str = "none",
    boot: str = "none",
    level: str = "none",
    drift: str = "none",
) -> str:
    """Return a signature from what was asked and how intervals were made; parts that are "none" are left out."""
    head = trials.header
    parts = {
        "hitmiss": __version__,
        "protocol": results.protocol or "none",
        "drift": drift,
        "metrics": metrics,
        "pos": head.positive,
        "kind": head.score_kind,
        "read": _read_text(results),
        "by": by,
        "slices": slices,
        "gap": gap,
        "boot": boot,
        "units": _units(results.estimates) if "unit=" in boot else "none",
        "level": level,
        "threshold": f"{head.threshold.value!r} ({head.threshold.origin})" if head.threshold else "none",
        "choices": "+".join(head.choices) or "none",
        "complete": share_there(trials),
        "n": f"{len(trials)}/{trials.n_positive}",
        "data": trials.digest,
        "numpy": np.__version__,
        "out": digest_of(results.estimates),
    }
    return render(parts)


def share_there(trials: Trials) -> str:
    """Return how many trials are there of those that there should be, as `81/120`; "none" if no trial is missing."""
    found = trials.completeness
    return "none" if found.is_full else f"{found.n}/{found.of}"


def missing_trials(trials: Trials) -> list[str]:
    """Say which runs lack which questions; what a key lists and no file scores was said when the files were read."""
    found = trials.completeness
    return [found.said] if found.short else []


def _units(estimates: Sequence[Estimate]) -> str:
    """Return the largest number of units behind a figure, which is that of all trials."""
    held = [e.units for e in estimates if e.units is not None]
    return str(max(held)) if held else "none"


def render(parts: Mapping[str, str]) -> str:
    """Build a signature from its parts. Parts that are "none" are left out, and a `|` inside a part is escaped.

    >>> render({"hitmiss": "0.2.0", "pos": "fa|ke", "gap": "none", "n": "5/3"})
    'hitmiss:0.2.0|pos:fa\\\\|ke|n:5/3'
    """
    return "|".join(f"{name}:{_escaped(text)}" for name, text in parts.items() if text != "none")


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("|", "\\|").replace("\n", "\\n").replace("\r", "\\r")


def _plain(text: str) -> str:
    return re.sub(r"\\([|nr\\])", lambda found: {"n": "\n", "r": "\r"}.get(found[1], found[1]), text)


def short(signature: str) -> str:
    """Shorten a signature to at most 60 characters, for a paper: version, protocol, and two hashes.

    The hashes are those of all choices and of the figures.

    >>> len(short("hitmiss:0.2.0|protocol:deepfake-audio|n:5/3|data:2c26b46b68ff|out:fcde2b2edba5")) <= 60
    True
    """
    parts = read_signature(signature.splitlines()[0])
    digest = hashlib.sha256(signature.encode()).hexdigest()[:12]
    ends = f"|sig:{digest}|out:{parts.get('out', '-')[:12]}"
    begin = f"hitmiss:{parts['hitmiss']}|{parts.get('protocol') or parts.get('metrics', '')}"
    return begin[: 60 - len(ends)].rstrip("|") + ends


def _read_text(results: Results) -> str:
    """Return the read options that neither the protocol nor another part of the signature states, as compact JSON."""
    spec = results.reading
    if spec is None:
        return "none"
    rules = results.design.protocol.read if results.design is not None and results.design.protocol else ReadSpec()
    own = [f for f in spec.stated if f not in ELSEWHERE and getattr(spec, f) != getattr(rules, f)]
    told = spec.to_plain()
    return json.dumps({f: told[f] for f in own}, separators=(",", ":"), ensure_ascii=False) if own else "none"


def digest_of(estimates: Sequence[Estimate]) -> str:
    """Return a short hash of the figures to ten significant digits; their order does not matter."""
    rows = sorted(
        repr(
            (
                e.metric,
                sorted(e.run.items()),
                sorted(e.slice.items()),
                e.average,
                *map(_rounded, (e.value, e.low, e.high)),
                e.n,
            )
        )
        for e in estimates
    )
    return hashlib.sha256("\n".join(rows).encode()).hexdigest()[:SHORT]


def _rounded(value: float | None) -> str:
    return "-" if value is None else f"{value:.9e}"


def read_signature(text: str) -> dict[str, str]:
    """Split a signature into its parts by name.

    >>> read_signature("hitmiss:0.2.0|protocol:asvspoof5|n:5/3")["protocol"]
    'asvspoof5'
    """
    pieces = re.split(r"(?<!\\)((?:\\\\)*)\|", text.strip())
    whole = [piece + slashes for piece, slashes in zip(pieces[::2], [*pieces[1::2], ""], strict=True)]
    parts = {name: _plain(value) for name, colon, value in (p.partition(":") for p in whole) if colon}
    if "hitmiss" not in parts or "n" not in parts:
        raise UsageError(f"{text[:60]!r} is not a hitmiss signature", code="not-a-signature")
    return parts


# ----------------------------------------------------------------------
# Measure: metrics × runs × slices -> Results, with intervals, averages, derived figures, reasons and warnings.

# ----------------------------------------------------------------------
# Why a figure is undefined, has no interval, or rests on few trials: the notes next to the numbers.

FEW: Final = 10
"""A figure with fewer trials of a class than this is marked."""


def why_undefined(sample: Sample, question: Question) -> str:
    """Say what is missing when a figure cannot be computed."""
    head = sample.columns.trials.header
    if question.labelled and sample.n_positive in (0, sample.n):
        return f"undefined: only {head.positive if sample.n_positive else head.negative} here"
    if "coverage" in question.settings and sample.counts.answered < (least := _least(question, sample)):
        share = f"{sample.counts.answered / sample.mass:.1%} of the trials were answered"
        return f"undefined: {share}, fewer than the {least / sample.mass:.1%} that it is asked for"
    if question.form.kind == "decisions" or "decision" in question.metric.columns:
        return f"undefined: {_what_is_missing(sample.counts, head.positive, head.negative)}"
    return f"undefined: an empty denominator in {question.metric.name}"


def _least(question: Question, sample: Sample) -> float:
    """Return how many answers a figure at a given coverage needs."""
    return float(question.settings["coverage"] or 0.0) * sample.mass


def _what_is_missing(c: Counts[float], positive: str, negative: str) -> str:
    """Name the first empty count of a table of decisions that makes the denominator of a share zero."""
    sides = {
        "nothing was answered": c.answered,
        f"no {positive} was answered": c.tp + c.fn,
        f"no {negative} was answered": c.tn + c.fp,
        f"nothing was called {positive}": c.tp + c.fp,
        f"nothing was called {negative}": c.tn + c.fn,
    }
    return next((text for text, n in sides.items() if not n), "fewer answers with a confidence than it asks for")


def why_no_interval(plan: SamplingPlan, question: Question, sample: Sample, value: float) -> str | None:
    """Say why a figure has no interval although one could be expected; None if no reason is needed."""
    if not question.metric.interval:
        return f"no interval: resampling biases {question.metric.name}" if plan.bootstrap else None
    if sample.weight is not None and not plan.bootstrap:
        return UNDRAWN
    if value > 0.0 and (fitted := _why_fitted(plan, question)):
        return fitted
    if plan.unit or not (plan.bootstrap or question.form.is_area or isinstance(value, Rate | Quantile)):
        return None
    return REPEATED if sample.is_repeated else None


def _why_fitted(plan: SamplingPlan, question: Question) -> str | None:
    """Say why a figure that is fitted to the trials has no interval if trials are drawn, alone or in an average."""
    if not question.form.is_fitted or not plan.bootstrap or plan.unit or plan.method != "auto":
        return None
    return f"no interval: {question.text} is fitted to these trials, and draws of them cover 90 % of truths, not 95 %"


def few(sample: Sample) -> str | None:
    """Return a note if a class has few trials."""
    head = sample.columns.trials.header
    for name, n in ((head.positive, sample.n_positive), (head.negative, sample.n - sample.n_positive)):
        if n < FEW:
            return f"only {n} {name}"
    return None


# ----------------------------------------------------------------------
# Warnings for readers of the figures: reversed, constant or misdeclared scores, ties, useless operating points.

TIE_EFFECT = 1e-4
"""The least difference between the rules for ties that is reported."""


WHOLE = 2.0**53
"""Up to here a float holds every whole number."""


SURE = 5.0
"""So many standard errors away from 0.5, an AUC shows its direction without an interval."""


def alarms(sample: Sample, questions: Sequence[Question]) -> list[str]:
    """Return warnings about the trials of one run as a whole."""
    asked_score = any("score" in q.metric.columns for q in questions)
    if not asked_score or not 0 < sample.n_positive < sample.n:
        return []
    found = [_constant(sample), _coarse(sample), _reversed(sample), _not_llr(sample), _ties(sample, questions)]
    found += _useless(sample, questions)
    where = ", ".join(f"{k}={v}" for k, v in sample.run.items())
    return [prefixed(f"{where}: ", text) if where else text for text in found if text]


def _constant(sample: Sample) -> str | None:
    first = sample.score[0]
    if (sample.score != first).any():
        return None
    return Remark(f"every score is {first:g}: the scores carry no information, whatever the figures are", CONSTANT)


def _coarse(sample: Sample) -> str | None:
    """Warn of finite scores so large that neighbouring whole numbers are one float."""
    ends = float(sample.score.min()), float(sample.score.max())
    if not all(map(math.isfinite, ends)):
        finite = sample.score[np.isfinite(sample.score)]
        ends = float(finite.min(initial=0.0)), float(finite.max(initial=0.0))
    if max(-ends[0], ends[1]) < WHOLE:
        return None
    return Remark(
        "scores beyond 2^53: neighbouring whole numbers are one number there, so trials that differ in the file may "
        "be tied; scale the scores",
        COARSE,
    )


def _reversed(sample: Sample) -> str | None:
    area = sample.steps.area
    if area >= 0.5:
        return None
    low, high = sample.steps.interval()
    if not high < 0.5:
        return None
    head = sample.columns.trials.header
    seen = f"the scores look REVERSED: ROC AUC is {area:.4f} [{low:.4f}, {high:.4f}], so higher scores"
    if head.scale.is_reversed:
        return Remark(
            f"{seen} of the file go with {head.positive}, and --higher {head.negative} says the opposite; "
            "leave it out if that is what the scores mean",
            REVERSED,
        )
    return Remark(
        f"{seen} go with {head.negative}; "
        f"nothing was flipped. Declare the direction (--higher {head.negative}) if that is what the scores mean",
        REVERSED,
    )


def undirected(sample: Sample, questions: Sequence[Question]) -> list[Remark]:
    """Return a remark if the trials of a run do not show which class higher scores go with."""
    asked_score = any("score" in q.metric.columns for q in questions)
    fewer = min(sample.n_positive, sample.n - sample.n_positive)
    if not asked_score or fewer == 0:
        return []
    area = sample.steps.area
    # The variance of an AUC is at most area (1 - area) / n of the rarer class; far from 0.5 no interval is needed.
    if (area - 0.5) ** 2 > SURE**2 * area * (1.0 - area) / fewer:
        return []
    low, high = sample.steps.interval()
    if low > 0.5 or high < 0.5:
        return []
    where = "".join(f"{k}={v}: " for k, v in sample.run.items())
    text = f"not shown that higher scores go with the positive class: ROC AUC is {area:.4f} [{low:.4f}, {high:.4f}]"
    return [Remark(f"{where}{text}, which includes 0.5", UNDIRECTED)]


def _not_llr(sample: Sample) -> str | None:
    """Warn if scores declared as log-likelihood ratios look like probabilities.

    Log-likelihood ratios lie on both sides of 0 and have no bound; probabilities declared as such give absurd costs.
    """
    if sample.columns.trials.header.score_kind != "llr":
        return None
    low, high = float(sample.score.min()), float(sample.score.max())
    if low < 0.0 or high > 1.0 or low == high:
        return None
    return (
        f"the scores are declared llr and all lie in 0..1 ({low:g} to {high:g}), as probabilities do: act_dcf and cllr are then "
        "meaningless. Declare what they are (--score-kind probability) or turn them into log-likelihood ratios"
    )


def ties_matter(sample: Sample) -> bool:
    """Return whether the EER depends on the rule for ties by more than `TIE_EFFECT`."""
    return sample.weight is None and 0 < sample.n_positive < sample.n and ties_differ(sample.tally)


def ties_differ(tally: Tally) -> bool:
    """Return the same as `ties_matter`, for a tally with both classes."""
    return abs(equal_error("official").value(tally) - equal_error("grouped").value(tally)) > TIE_EFFECT


def _ties(sample: Sample, questions: Sequence[Question]) -> str | None:
    if not any(q.metric.name == "eer" for q in questions):
        return None
    tally = sample.tally
    if sample.weight is not None:
        straight, grouped = equal_error("interpolated").value(tally), equal_error("grouped").value(tally)
        if abs(straight - grouped) <= TIE_EFFECT or not tally.tied_mass:
            return None
        return (
            f"ties matter: the EER is {grouped:.4f} with tied scores taken together and {straight:.4f} on a straight "
            f"line through them; {tally.tied_mass:.1%} of the weight is at a score that both classes share"
        )
    if not ties_matter(sample):
        return None
    official, grouped = equal_error("official").value(tally), equal_error("grouped").value(tally)
    return Remark(
        f"ties matter: the EER is {official:.4f} by the official rule and {grouped:.4f} with tied scores taken together; "
        f"{tally.tied_mass:.1%} of the trials have a score that both classes share (saturated or rounded scores?)",
        TIED,
    )


def _useless(sample: Sample, questions: Sequence[Question]) -> list[str]:
    costs = [q for q in questions if isinstance(q.form, MinimumCost) and q.settings.get("normalize")]
    return [
        f"{q.text} is 1: at this operating point no threshold is better than accepting or rejecting everything"
        for q in costs
        if q.value(sample) >= 1.0
    ]


# ----------------------------------------------------------------------
# Questions: a metric prepared for trials, and its figure, interval and note for one sample.

ROUNDING: Final = 1e-12
"""Ends with a smaller relative difference than this differ only by rounding."""
BEYOND: Final = 5.0
"""How many replicates must lie beyond each end of an interval for a percentile interval."""


def ask(metric: str | MetricSpec, trials: Trials, protocol: Protocol) -> Question:
    """Prepare a metric for these trials: fill in the settings of the protocol and check the score kind."""
    spec, entry, _ = resolve(metric)
    spec = MetricSpec.of(spec.name, **{**protocol.settings.get(spec.name, {}), **dict(spec.settings)})
    settings = entry.settings(spec)
    shown = {k: v for k, v in spec.settings if protocol.settings.get(spec.name, {}).get(k, entry.defaults[k]) != v}
    refuse_absent(spec.name, entry, trials)
    kind = trials.header.score_kind
    if "score" in entry.columns and entry.kinds and kind not in entry.kinds:
        raise DataError(
            f"{spec.name} needs {' or '.join(entry.kinds)} scores and these are declared {kind!r}; "
            f"declare the kind if you know better, or calibrate on a development set",
            code="wrong-score-kind",
        )
    if entry.positive is not None and not _takes(entry.positive, trials.header.positive):
        raise DataError(
            f"{spec.name} takes {entry.positive} to be the positive class and in these trials it is "
            f"{trials.header.positive!r}; read them with --positive {entry.positive}",
            code="wrong-positive",
        )
    form = form_of(entry, inside(settings, trials.header.scale) if "score" in entry.columns else settings)
    question = Question(str(MetricSpec.of(spec.name, **shown)), entry, settings, form)
    refuse_unweighted(question, trials)
    return question


def inside(settings: Mapping[str, Setting], scale: ScoreScale) -> Mapping[str, Setting]:
    """Return the settings of a metric with a threshold of the file as one of the scores inside."""
    given = settings.get("threshold")
    if not scale.is_reversed or not isinstance(given, int | float):
        return settings
    return {**settings, "threshold": scale.to_inside(float(given))}


def refuse_absent(name: str, entry: Metric, trials: Trials) -> None:
    """Refuse a metric whose columns the trials do not have, and say what to do about it."""
    absent = [c for c in entry.columns if c not in trials.frame.columns]
    if not absent:
        return
    if absent[0] == "decision":
        how = f"decide at a threshold: {'--threshold 0.5' if errors.is_command else 'hm.decide(trials, 0.5)'}"
        raise UsageError(f"{name} needs decisions, and these trials have none; {how}", code="no-decisions")
    own = sorted({*trials.frame.columns} - {"item", "target"})
    raise UnknownName(f"column that {name} needs", absent[0], own)


def form_of(entry: Metric, settings: Mapping[str, Setting]) -> Functional:
    """Return the form of a metric with its settings; equal requests give the same object, so it can be looked up."""
    if entry.form is not None:
        return _made(entry.form, tuple(sorted(settings.items())))
    if entry.judged is not None:
        return OfConfidences(entry.function, entry.columns, settings, judged=entry.judged)
    return OfColumns(entry.function, entry.columns, settings)


@cache
def _made(form: Callable[..., object], settings: tuple[tuple[str, Setting], ...]) -> Functional:
    made = form(**dict(settings))
    if not isinstance(made, Functional):
        raise UsageError(f"the form of a metric is made of hitmiss.stats.forms; found {type(made).__name__}")
    return made


def _takes(wanted: str, positive: str) -> bool:
    """Return whether a metric's positive class is that of the trials; an undeclared class (`positive`) is accepted."""
    return positive == "positive" or same_class(wanted, positive)


@dataclass(frozen=True, eq=False)
class Work:
    """The questions and the draws, and the replicates of every sample that was measured."""

    columns: Columns
    questions: list[Question]
    draws: Draws
    protocol: Protocol = field(default_factory=Protocol)
    replicates: dict[str, list[Floats]] = field(default_factory=dict)
    alone: Work | None = None
    """The same questions with draws of trials, for samples in which no item repeats (see `_plans`)."""

    def of(self, sample: Sample) -> Work:
        """Return the work whose draws are those of a sample."""
        return self if self.alone is None or sample.is_repeated else self.alone

    def estimates(self, sample: Sample) -> list[Estimate]:
        """Return the figure of every question for one sample."""
        if self.draws.plan.bootstrap:
            pairs = zip(self.questions, self._replicates(sample), strict=True)
            self.replicates[sample.name] = [np.nan_to_num(r) if self._is_zeroed(q) else r for q, r in pairs]
        return [self._estimate(i, q, sample) for i, q in enumerate(self.questions)]

    def drawn(self, sample: Sample, index: int) -> Floats:
        """Return the replicates of a question for a measured sample, for an average or a difference of figures."""
        return self.questions[index].form.for_averages(self._replicated(sample, index))

    def left(self, sample: Sample, index: int) -> Floats | None:
        """Return the figures of a question without one unit each, as `drawn` returns replicates; None without units."""
        of = self._replicated(sample, index)
        return self.questions[index].form.left_for_averages(of, lambda form: self.draws.left(form, sample))

    def corrected(self, sample: Sample, index: int) -> float:
        """Return the figure of a question for a measured sample, without the optimism of a minimum."""
        return self.questions[index].form.corrected(self._replicated(sample, index))

    def _replicated(self, sample: Sample, index: int) -> Replicated:
        question, replicates = self.questions[index], self.replicates[sample.name][index]
        return self.draws.replicated(question, sample, float(question.value(sample)), replicates)

    def _replicates(self, sample: Sample) -> list[Floats]:
        """Return the replicates of every question; a figure that gets no interval needs none."""
        drawn = iter(self.draws.replicates([q for q in self.questions if q.metric.interval], sample))
        unknown = np.full(self.draws.plan.bootstrap, math.nan)
        return [next(drawn) if q.metric.interval else unknown for q in self.questions]

    def _estimate(self, index: int, question: Question, sample: Sample) -> Estimate:
        value = question.value(sample)
        row = blank(question, sample.n, sample.n_positive, sample.run, sample.slice)
        row = replace(row, of=getattr(value, "of", None) if sample.weight is None else None)
        row = with_units(weighed(row, sample), self.draws, [sample], question.labelled)
        if math.isnan(value) and self._is_zeroed(question):
            return replace(row, value=0.0, note=f"0 by convention: nothing to divide by in {question.metric.name}")
        if math.isnan(value):
            return replace(row, value=None, note=why_undefined(sample, question))
        found = self._interval(index, question, sample, value)
        notes = filter(None, (few(sample) if question.labelled else None, found.note))
        row = replace(row, low=found.low, high=found.high, method=found.method)
        return replace(row, value=float(value), note="; ".join(notes) or None)

    def _is_zeroed(self, question: Question) -> bool:
        return self.protocol.zero_undefined and question.metric.zero

    def at_level(self, index: int, sample: Sample, level: float) -> Ends:
        """Return the interval of a question's figure at another level.

        If too few replicates lie beyond its ends to estimate them, Student's interval is used, which needs only their
        spread.
        """
        plan, question = replace(self.draws.plan, level=level), self.questions[index]
        value = question.value(sample)
        found = replace(self, draws=replace(self.draws, plan=plan))._interval(index, question, sample, value)
        beyond = plan.bootstrap * (1.0 - level) / 2.0
        if plan.unit or beyond >= BEYOND or found.method is None or not found.method.startswith("bootstrap"):
            return found
        drawn, centre = self.drawn(sample, index), self.corrected(sample, index)
        low, high = intervals.student(drawn, centre, intervals.MANY, question.metric.range, level)
        return Ends.of((min(low, float(value)), max(high, float(value))), found.method, found.note)

    def _interval(self, index: int, question: Question, sample: Sample, value: float) -> Ends:
        plan = self.draws.plan
        silence = why_no_interval(plan, question, sample, value)
        if silence is not None:
            return Ends(note=silence)
        if isinstance(value, Rate) and not plan.unit:
            return Ends.of(wilson(value.hits, value.of, plan.level), "wilson")
        if isinstance(value, Quantile) and not plan.unit:
            return Ends.of(quantile_interval(value.ordered, value.share, plan.level), "order statistics")
        is_area = question.form.is_area
        if plan.bootstrap and not (is_area and self.protocol.delong and not plan.unit):
            return self._resampled(index, question, sample, value)
        if is_area:
            return Ends.of(sample.steps.interval(plan.level), "delong" if sample.steps.variance else "newcombe")
        return Ends()

    def _resampled(self, index: int, question: Question, sample: Sample, value: float) -> Ends:
        drawn = self.replicates[sample.name][index]
        little = self.draws.too_few(sample, question.labelled)
        if little is not None:
            return Ends(note=little)
        low, high = self.draws.interval(question, sample, value, drawn)
        plan = self.draws.plan
        if isinstance(value, Rate) and 0.0 < value < 1.0 and len(plan.unit) == 1 and plan.method == "auto":
            widest = share_of_units(question, sample, value, self.draws)
            if widest is not None and widest[1]:
                return Ends.of(widest[0], OVER_UNITS)
            if (
                widest is not None and sample.weight is None
            ):  # weights may go with the outcome, and then it is too narrow
                low, high = max(low, widest[0][0]), min(high, widest[0][1])
        if math.isclose(low, high, rel_tol=ROUNDING):  # equal replicates do not make the figure certain
            return without_width(question, sample, value, self.draws)
        rare = AT_END if float(value) in question.metric.range else too_few_errors(question.form, sample, high - low)
        if rare is not None:
            return Ends(note=rare)
        lost = int(np.isnan(drawn).sum())
        if self.draws.plan.unit and math.isnan(low) and lost < len(drawn):
            return Ends(note=ONE_UNIT)
        return Ends.of(
            (low, high),
            f"bootstrap {self.draws.said(question)}",
            f"{lost} replicates without a class left out" if lost else None,
        )


def blank(question: Question, n: int, n_positive: int, run: Mapping[str, str], slice_: Mapping[str, str]) -> Estimate:
    """Return an estimate of a question that has no figure yet."""
    return Estimate(
        question.text,
        None,
        n=n,
        n_positive=n_positive,
        run=dict(run),
        slice=dict(slice_),
        settings=question.settings,
        best=question.metric.best,
    )


def weighed(row: Estimate, sample: Sample) -> Estimate:
    """Return an estimate with the sums of the sampling weights behind it, if there are any."""
    return row if sample.totals is None else replace(row, weight=sample.totals[0], weight_positive=sample.totals[1])


def with_interval(
    row: Estimate,
    drawn: Floats,
    work: Work,
    samples: Sequence[Sample],
    question: Question,
    centre: float,
    left: Floats | None = None,
    skewed: Callable[[tuple[float, float]], tuple[float, float]] = lambda ends: ends,
) -> Estimate:
    """Return a figure made of other figures, with an interval from its value in each replicate.

    With trials as units the interval is a percentile interval; with other units it is Student's, on the scale of the
    metric (the plain scale for a gap, then `skewed`), with its value without one unit each (`left`). Samples with
    too few units get none. `centre` is the figure without the optimism of its parts; if the interval does not contain
    the figure, the note gives both.
    """
    draws, plan = work.draws, work.draws.plan
    row = with_units(row, draws, samples, question.labelled)
    if plan.unit and plan.method == "auto":
        bounds = (-math.inf, math.inf) if row.average == "gap" else question.metric.range
        degrees = min(draws.degrees(sample, question.labelled) for sample in samples)
        without = draws.left_out(question, samples, left)
        smooth = not isinstance(question.form, Crossing)
        low, high = skewed(intervals.student(drawn, centre, degrees, bounds, plan.level, without, smooth))
    else:
        low, high = intervals.percentile(drawn, plan.level)
    rare = None if row.average == "macro" else _rare(question, samples, high - low)
    silence = next(
        filter(None, (_why_fitted(plan, question), *(draws.too_few(s, question.labelled) for s in samples))),
        SAME if math.isclose(low, high, rel_tol=ROUNDING) else rare,
    )
    if silence:
        return replace(row, note="; ".join(filter(None, (row.note, silence))))
    said = replace(plan, method="auto" if plan.unit and plan.method == "auto" else "percentile")
    ends = Ends.of((low, high), f"bootstrap {draws.said(question, said)}")
    row = replace(row, low=ends.low, high=ends.high, method=ends.method)
    return outside(row, centre)


def _rare(question: Question, samples: Sequence[Sample], width: float) -> str | None:
    """Say why a difference of samples gets no interval because one of them shows too few errors."""
    return next(filter(None, (too_few_errors(question.form, s, width) for s in samples)), None)


def outside(row: Estimate, centre: float) -> Estimate:
    """Add a note if an interval does not contain its own figure: a minimum is too low in its own sample."""
    if row.value is None or row.low is None or row.high is None or row.low <= row.value <= row.high:
        return row
    why = f"optimistic: chosen on the same trials; about {centre:.4f} without that, which the interval is of"
    return replace(row, note="; ".join(filter(None, (row.note, why))))


def with_units(row: Estimate, draws: Draws, samples: Sequence[Sample], labelled: bool) -> Estimate:
    """Note the number of units behind a figure and the effective number; of several samples, the least."""
    if not draws.plan.unit or not draws.plan.bootstrap:
        return row
    held = [draws.units(sample, labelled) for sample in samples]
    return replace(row, units=min(n for n, _ in held), units_effective=min(e for _, e in held))


# ----------------------------------------------------------------------
# Figures made of slices: the macro average, the worst slice, pairs within slices, and the gap between domains.


def by_slices(work: Work, whole: Sample, grouping: Grouping, warnings: list[str]) -> list[Estimate]:
    """Return every figure of every slice, then their averages; a grouping with a single slice is left out."""
    samples = samples_of_slices(whole, grouping)
    if len(samples) == 1:
        value = ", ".join(f"{k}={v}" for k, v in samples[0].slice.items())
        warnings.append(f"a table by {' × '.join(grouping)} is trivial here: every trial has {value}")
        return []
    told = progress.each(samples, f"by {' × '.join(grouping)}", [sample.n for sample in samples])
    rows = [e for sample in told for e in _slice_rows(work, sample)]
    warnings += _one_sided(work, grouping, samples, rows)
    size = len(work.questions)
    averages = []
    for i, question in enumerate(work.questions):
        cells = rows[i::size]
        averages += [_macro(work, whole, grouping, i, question, samples, cells), *_worst(work, i, samples, cells)]
        if work.protocol.within and question.form.is_area:
            averages.append(_within(work, whole, grouping, i, question, samples, cells))
    return rows + averages


def _slice_rows(work: Work, sample: Sample) -> list[Estimate]:
    """Return every figure of a slice; averages need the draws of all slices together, whatever its own are."""
    own, rows = work.of(sample), work.estimates(sample)
    return rows if own is work else own.estimates(sample)


def _one_sided(work: Work, grouping: Grouping, samples: list[Sample], rows: list[Estimate]) -> list[str]:
    """Say what to do if figures are undefined because every slice has only one class, as with a column of attacks."""
    held = [0 < sample.n_positive < sample.n for sample in samples]
    if any(held) or all(e.value is not None for e in rows):
        return []
    head = work.columns.trials.header
    kinds = {"negative": head.negative, "positive": head.positive}
    many = "negative" if 2 * sum(s.n_positive == 0 for s in samples) >= len(samples) else "positive"
    other = head.positive if many == "negative" else head.negative
    name = grouping[0] if len(grouping) == 1 else "COLUMN"
    return [
        f"by {' × '.join(grouping)}: every slice holds one class only, so what compares the classes is undefined; "
        f"--{many}-only {name} sets each slice of {kinds[many]} trials against all {other} trials"
    ]


def _macro(
    work: Work,
    whole: Sample,
    grouping: Grouping,
    i: int,
    question: Question,
    samples: list[Sample],
    cells: list[Estimate],
) -> Estimate:
    """Return the simple mean over the slices where the figure is defined, with the mean of their replicates."""
    defined = [(s, e) for s, e in zip(samples, cells, strict=True) if e.value is not None]
    everywhere = dict.fromkeys(grouping, "*")
    row = replace(weighed(blank(question, whole.n, whole.n_positive, whole.run, everywhere), whole), average="macro")
    if not defined:
        return replace(row, note="undefined: in no slice defined")
    values = [e.value for _, e in defined if e.value is not None]
    note = None if len(defined) == len(cells) else f"over {len(defined)} of {len(cells)} slices"
    row = replace(row, value=float(np.mean(values)), note=note)
    if not work.draws.plan.bootstrap:
        return row
    bound, is_positive = work.columns.one_class.of(grouping)
    if not work.draws.plan.unit and bound:
        head = work.columns.trials.header
        other = head.negative if is_positive else head.positive
        shared = f"no interval: these slices share their {other} trials; resample a --unit to get one"
        return replace(row, note="; ".join(filter(None, (note, shared))))
    if not work.draws.plan.unit and whole.is_repeated and "target" in grouping:
        shared = "no interval: these slices share their items; resample whole items (unit=item)"
        return replace(row, note="; ".join(filter(None, (note, shared))))
    drawn = np.mean([work.drawn(s, i) for s, _ in defined], axis=0)
    centre = float(np.mean([work.corrected(s, i) for s, _ in defined]))
    without = [left for s, _ in defined if (left := work.left(s, i)) is not None]
    left = np.mean(without, axis=0) if without else None
    return with_interval(row, drawn, work, [whole], question, centre, left)


def _within(
    work: Work,
    whole: Sample,
    grouping: Grouping,
    i: int,
    question: Question,
    samples: list[Sample],
    cells: list[Estimate],
) -> Estimate:
    """Return the AUC over pairs within one slice: the mean over slices, weighted by their numbers of pairs."""
    defined = [(s, e.value) for s, e in zip(samples, cells, strict=True) if e.value is not None]
    row = replace(blank(question, whole.n, whole.n_positive, whole.run, dict.fromkeys(grouping, "*")), average="within")
    row = weighed(row, whole)
    if not defined:
        return replace(row, note="undefined: in no slice defined")
    pairs = np.array([s.size_of_pairs for s, _ in defined], dtype=np.float64)
    note = None if len(defined) == len(cells) else f"over {len(defined)} of {len(cells)} slices"
    row = replace(row, value=float(pairs @ [v for _, v in defined] / pairs.sum()), note=note)
    if not work.draws.plan.bootstrap:
        return row
    drawn = pairs @ np.array([work.replicates[s.name][i] for s, _ in defined]) / pairs.sum()
    return with_interval(row, drawn, work, [whole], question, float(row.value or 0.0))


def _worst(work: Work, i: int, samples: list[Sample], cells: list[Estimate]) -> list[Estimate]:
    """Return the slice with the worst figure, with an interval of its true figure that allows for having picked it.

    The end on the side of worse figures is that of the slice's own interval; see `intervals.tail_of_worst` for the other.
    """
    defined = [(s, e) for s, e in zip(samples, cells, strict=True) if e.value is not None]
    if not defined:
        return []
    level, sign = work.draws.plan.level, 1.0 if work.questions[i].metric.best == "low" else -1.0
    value, *ends = (sign * np.array([getattr(e, end) for _, e in defined], float) for end in ("value", "low", "high"))
    sample, worst = defined[int(np.argmax(value))]
    said = f"worst of {len(defined)}"
    row = replace(worst, average="worst", note="; ".join(filter(None, (said, worst.note))))
    if worst.low is None or len(defined) == 1:
        return [row]
    degrees = intervals.MANY if worst.units_effective is None else max(worst.units_effective - 1.0, 1.0)
    low, high = ends if sign > 0.0 else reversed(ends)
    tail, several = intervals.tail_of_worst(value, low, high, level, degrees)
    said += f"; {several} of them may be the worst, and the interval allows for that" if several > 1 else ", clearly"
    if several == 1:  # it keeps its own interval
        return [replace(row, note=said)]
    found = work.of(sample).at_level(i, sample, 1.0 - 2.0 * tail)
    if found.low is None:
        return [replace(row, low=None, high=None, method=None, note="; ".join(filter(None, (said, found.note))))]
    better = {"low": found.low} if sign > 0.0 else {"high": found.high}
    return [replace(row, **better, method=found.method, note=said)]


def gap_rows(work: Work, whole: Sample, gap: Gap) -> list[Estimate]:
    """Return figure(out) − figure(in) for every question."""
    codes, values = work.columns.asked_codes(gap.column)
    unknown = [v for v in (*gap.inside, *gap.outside) if v not in values]
    if unknown:
        raise UsageError(f"no {gap.column} is {unknown[0]!r}; there are {', '.join(values)}", code="unknown-gap-value")
    own = codes[whole.rows]
    inside = {*gap.inside}
    outside = {*gap.outside} or {values[code] for code in np.unique(own).tolist()} - inside
    # A side is named by what it holds, so that the order in which values were given changes no draw.
    sides = [
        work.columns.sample(
            whole.rows[np.isin(own, [values.index(v) for v in held])],
            whole.run,
            {gap.column: f"{name} {sorted(inside)} {sorted(outside)}"},
        )
        for name, held in (("in", inside), ("out", outside))
    ]
    pairs = [work.estimates(side) for side in sides]
    return [
        _gap_row(work, i, gap, sides, within, beyond) for i, (within, beyond) in enumerate(zip(*pairs, strict=True))
    ]


def _gap_row(work: Work, i: int, gap: Gap, sides: list[Sample], within: Estimate, beyond: Estimate) -> Estimate:
    row = replace(
        beyond,
        slice={gap.column: gap.label},
        average="gap",
        n=within.n + beyond.n,
        value=None,
        low=None,
        high=None,
        method=None,
    )
    row = replace(row, n_positive=within.n_positive + beyond.n_positive)
    if within.weight is not None and beyond.weight is not None:
        positive = (within.weight_positive or 0.0) + (beyond.weight_positive or 0.0)
        row = replace(row, weight=within.weight + beyond.weight, weight_positive=positive)
    if within.value is None or beyond.value is None:
        return replace(row, note=within.note or beyond.note)
    row = replace(row, value=beyond.value - within.value, note=f"{beyond.value:.4f} out, {within.value:.4f} in")
    if not work.draws.plan.bootstrap:
        return row
    first, second = (work.drawn(side, i) for side in sides)
    inner, outer = (work.corrected(side, i) for side in sides)
    plan = work.draws.plan
    ends = [e for e in (within.low, within.high, beyond.low, beyond.high) if e is not None and math.isfinite(e)]
    if plan.unit or plan.method != "auto" or len(ends) < 4:
        without = [work.left(side, i) for side in sides]
        left = None if without[0] is None or without[1] is None else without[1] - without[0]
        question, found = work.questions[i], (row, second - first, work, sides, work.questions[i], outer - inner, left)
        if not isinstance(question.form, Crossing):
            return with_interval(*found)
        # What units add to a figure that is read at a quantile does not show how skewed it is; its scale does.
        both = (inner, first), (outer, second), question.metric.range
        return with_interval(*found, lambda ends: intervals.on_both_scales(ends, *both))
    # The two sides share no trial, so each keeps its own interval, which is better than percentiles of the difference.
    # Rates of few errors change in steps, so either interval may be too short: the wider end is used.
    low, high = intervals.of_difference((inner, ends[0], ends[1]), (outer, ends[2], ends[3]))
    if not isinstance(work.questions[i].form, Crossing):
        first, second = (work.replicates[side.name][i] for side in sides)
        steps = intervals.percentile(second - first, plan.level)
        low, high = min(low, steps[0]), max(high, steps[1])
    rare = _rare(work.questions[i], sides, high - low)
    if rare is not None:
        return replace(row, note=f"{row.note}; {rare}")
    row = replace(row, low=low, high=high, method=beyond.method if beyond.method == within.method else within.method)
    return outside(row, outer - inner)


# ----------------------------------------------------------------------
# Derived figures: the value of an expression of figures, with its interval (see `registry.Derived`).
#
# The interval comes from the value of the expression in each replicate. All its figures must therefore come from the
# same draws; if no unit is resampled, every trial is a unit.
#
# The greatest of several noisy figures is too high in the sample, and even more so in every replicate: the percentile
# interval of a maximum over eight equal slices covers the truth in a quarter of all samples, the reflected interval
# (2 · figure − quantile) in 93 to 96 of 100. So expressions with `max` or `min` get the reflected interval.
#
# One number has one interval: an expression that only names a metric, its mean over slices or its worst slice is the
# number of a row of the tables, and has the interval of this row if there is one.

MOST_WEIGHTS: Final = 1 << 28
"""The largest product of replicates and trials that is drawn if every trial is a unit."""
TOO_MANY: Final = (
    "no interval: its figures share trials, and those are too many to resample together; resample a --unit"
)


def derived_rows(work: Work, whole: Sample, derived: Sequence[Derived]) -> list[Estimate]:
    """Return every derived figure of one run, computed from the metrics that the work measures."""
    if not derived:
        return []
    joint, questions = _joint(work, whole), {q.text: q for q in work.questions}
    return [_as_shown(work, whole, _row(joint, whole, one, questions), one, questions) for one in derived]


def _as_shown(
    work: Work, whole: Sample, row: Estimate, derived: Derived, questions: Mapping[str, Question]
) -> Estimate:
    """Return a derived figure with the interval that the tables have for the same number."""
    term = derived.alone
    if term is None or row.value is None:
        return row
    own = replace(work, questions=[questions[term.metric]], replicates={})
    worst = "max" if own.questions[0].metric.best == "low" else "min"
    average = {"": None, "mean": "macro", worst: "worst"}.get(term.over, "none")
    found = by_slices(own, whole, term.columns, []) if term.over else own.estimates(whole)
    same = next((e for e in found if e.average == average and e.low is not None), None)
    if same is None or same.value != row.value:
        return row
    return replace(row, low=same.low, high=same.high, method=same.method, note=same.note)


def _joint(work: Work, whole: Sample) -> Work:
    """Return work whose samples all come from the same draws: those of units, or with every trial as a unit."""
    plan, n = work.draws.plan, whole.n
    if not plan.bootstrap or plan.unit:
        return work
    if plan.bootstrap * n > MOST_WEIGHTS or len(whole.rows) != n:  # rows that are counts of trials
        return replace(work, draws=Draws(plan, work.columns, whole.rows))
    return replace(work, draws=Draws.prepare(replace(plan, unit=("item",)), work.columns, whole.rows))


def _row(work: Work, whole: Sample, derived: Derived, questions: Mapping[str, Question]) -> Estimate:
    asked, plan = [questions[term.metric] for term in derived.terms], work.draws.plan
    row = Estimate(
        derived.name,
        None,
        n=whole.n,
        n_positive=whole.n_positive,
        run=dict(whole.run),
        settings={"of": derived.text},
        best=asked[0].metric.best,
    )
    row = weighed(row, whole)
    parts = [_samples(whole, term, question) for term, question in zip(derived.terms, asked, strict=True)]
    lost = next((str(term) for term, part in zip(derived.terms, parts, strict=True) if not part), None)
    if lost is not None:
        return replace(row, note=f"undefined: {lost} is")
    with np.errstate(divide="ignore", invalid="ignore"):
        figures = [over(term, [v for _, v in part]) for term, part in zip(derived.terms, parts, strict=True)]
        value = float(derived.of(figures))
    if math.isnan(value):
        return replace(row, note="undefined: nothing to divide by")
    row = replace(row, value=value)
    if not plan.bootstrap:
        return row
    if work.draws.weights is None:
        return replace(row, note=TOO_MANY)
    drawn = [
        over(term, [work.draws.replicates([question], sample)[0] for sample, _ in part])
        for term, question, part in zip(derived.terms, asked, parts, strict=True)
    ]
    little = next(filter(None, (work.draws.too_few(sample) for part in parts for sample, _ in part)), None)
    with np.errstate(divide="ignore", invalid="ignore"):
        low, high = intervals.percentile(np.asarray(derived.of(drawn)), plan.level)
    if little is not None or not low < high:
        return replace(row, note=little or SAME)
    if derived.is_extreme:
        least, most = derived.range([q.metric.range for q in asked])
        low, high = max(2 * value - high, least), min(2 * value - low, most)
    kind = "reflected" if derived.is_extreme else "percentile"
    return replace(row, low=low, high=high, method=f"bootstrap {replace(plan, method='percentile')}, {kind}")


def _samples(whole: Sample, term: Term, question: Question) -> list[tuple[Sample, float]]:
    """Return the samples of a term in which its metric is defined, with their figures."""
    samples = samples_of_slices(whole, term.columns) if term.columns else [whole]
    figures = [(sample, float(question.value(sample))) for sample in samples]
    return [(sample, value) for sample, value in figures if not math.isnan(value)]


def over(term: Term, values: Sequence[Floats] | Sequence[float]) -> Floats:
    """Return the value of a term, given the figures of its samples (sample × replicate)."""
    table = np.asarray(values, dtype=np.float64)
    return np.asarray(getattr(table, term.over)(axis=0) if term.over else table[0])


# ----------------------------------------------------------------------
# Measure: metrics × runs × slices -> Results, with intervals, averages, the gap and warnings.

__all__ = ["FEW", "Gap", "ask", "measure", "measure_design"]


def measure(
    trials: Trials,
    metrics: Sequence[str | MetricSpec] | Design,
    *,
    by: By = (),
    bootstrap: int = 0,
    unit: str | Sequence[str] | None = None,
    seed: int = 0,
    level: float = 0.95,
    interval: Method = "auto",
    stratify: bool | None = None,
    gap: Gaps = None,
    protocol: Protocol | None = None,
    remarks: Sequence[str] = (),
) -> Results:
    """Measure every metric for every run, over all trials and per slice.

    Parameters
    ----------
    trials
        The trials.
    metrics
        Metrics with their settings, such as `eer` or `min_dcf(c_fa=10)`; or a design, which states everything else too.
    by
        Slice columns, or several crossed (`"codec,codec_q"`). The slices of each grouping are followed by their macro
        average and the worst slice.
    bootstrap
        The number of bootstrap replicates. 0: only intervals that need no replicates.
    unit
        The column whose values are resampled as whole units, such as speakers (two columns may be crossed).
    seed, level, interval, stratify
        The seed of the draws, the level and the kind of intervals, and whether units are drawn within classes.
    gap
        Two domains, as `codec=NONE` or `codec=NONE:C01`; adds figure(out) − figure(in). A list gives several.
    protocol
        The evaluation rules to use.
    remarks
        Further warnings to print.

    Returns
    -------
    Results
        One estimate per metric, run and slice.

    Raises
    ------
    UsageError
        For an unknown metric, setting or column, or a metric of decisions if there are none.
    DataError
        If there are no trials, or the score kind or the classes do not fit a metric.

    Examples
    --------
    >>> t = Trials.of(label=[1, 1, 0, 0], score=[0.9, 0.4, 0.6, 0.1])
    >>> print(measure(t, ["eer", "roc_auc"]).one("roc_auc"))
    roc_auc = 0.7500 [0.0470, 0.9946]
    """
    trials = demanded(trials, "measure")
    design = Design.of(
        () if isinstance(metrics, Design) else metrics,
        by=by,
        gap=gap or False,
        unit=unit,
        bootstrap=bootstrap,
        seed=seed,
        level=level,
        interval=interval,
        stratify=stratify,
        protocol=protocol,
    )
    if isinstance(metrics, Design):
        design = metrics.alone(design, Design(gap="none"))
    return measure_design(trials, design, remarks)


def measure_design(
    trials: Trials,
    design: Design,
    remarks: Sequence[str] = (),
    derived: Sequence[Derived] = (),
    narrow: Collection[str] = (),
) -> Results:
    """Measure what a design with metrics and gaps asks, and the `derived` figures made of its metrics.

    `narrow` are the metrics that are shown by slice where the protocol chose the metrics; empty: all of them.
    """
    chosen, groupings, gaps = design.settled, design.groupings, design.gaps
    plan = plan_for(trials, replace(design.plan, unit=trials.unit_names(design.plan.unit)))
    only = OneClass(chosen.negative_only, chosen.positive_only)
    if isinstance(trials, TalliedTrials):
        columns: Columns = trials.columns(only)
    else:
        columns = columns_of_trials(trials, only, by_target(trials, groupings))
    questions = [ask(m, trials, chosen) for m in design.metrics]
    if not len(trials):
        raise DataError("there are no trials to measure", code="no-trials")
    if not plan.bootstrap and not isinstance(trials, TalliedTrials):
        for name in plan.unit:
            trials.own(name)  # an unknown name is refused, whether units are resampled or not
    wholes = samples_of_runs(columns)
    if chosen.both_eers and any(ties_matter(s) for s in wholes) and any(q.text == "eer" for q in questions):
        questions.insert(1 + [q.text for q in questions].index("eer"), ask("eer(ties=grouped)", trials, chosen))
    alone, plan = _plans(plan, columns)
    estimates: list[Estimate] = []
    warnings: list[str] = [*trials.header.notes, *missing_trials(trials), *remarks, *_undrawn(plan)]
    tables = 1 + len(groupings) + len(gaps)
    for whole in progress.each(wholes, "measuring", [sample.n for sample in wholes]):
        work = Work(columns, questions, Draws.prepare(plan, columns, whole.rows), chosen)
        sliced = replace(work, questions=[q for q in questions if not narrow or q.metric.name in narrow], replicates={})
        if alone is not plan:
            own = replace(sliced, draws=Draws.prepare(alone, columns, whole.rows), replicates={})
            sliced = replace(sliced, alone=own)
        with progress.step("all trials", tables):
            with progress.part():
                estimates += work.estimates(whole)
                estimates += derived_rows(work, whole, derived)
            warnings += [*alarms(whole, questions), *undirected(whole, questions)]
            if whole is wholes[0]:
                warnings += _unused_unit(work, whole, estimates)
            for grouping in groupings:
                with progress.part():
                    estimates += by_slices(sliced, whole, grouping, warnings)
            for gap in gaps:
                with progress.part():
                    estimates += gap_rows(sliced, whole, gap)
    estimates = [replace(e, title=title) if (title := chosen.names.get(e.metric)) else e for e in estimates]
    results = Results(tuple(estimates), "", tuple(dict.fromkeys(warnings)), chosen.name or None, trials)
    results = replace(results, reading=trials.header.reading, design=design)
    is_wider = bool(groupings or gaps) and len(sliced.questions) > len(_narrowed(questions, chosen))
    told = sign(results, trials, questions, plan, groupings, gaps, "all" if is_wider else "none")
    return replace(results, signature=told)


def _narrowed(questions: Sequence[Question], protocol: Protocol) -> list[Question]:
    """Return the questions that a protocol shows by slice if nobody asks for others."""
    return [q for q in questions if not protocol.slice_metrics or q.metric.name in protocol.slice_metrics]


def _plans(plan: SamplingPlan, columns: Columns) -> tuple[SamplingPlan, SamplingPlan]:
    """Return how figures of samples without repeated items are drawn, and how all others are.

    If one item has several targets and figures pool them (the six labels of a text), the item is the unit: its rows are
    not independent. A sample of one target has each item once, and needs no unit.
    """
    pools = columns.pools_targets and plan.bootstrap and plan.unit in ((), ("item",)) and columns.trials.has_targets
    if not pools or isinstance(columns.trials, TalliedTrials):
        return plan, plan
    return replace(plan, unit=()), replace(plan, unit=("item",))


def measure_share(
    trials: Trials, hits: str, plan: SamplingPlan, *, of: str | None = None, name: str | None = None
) -> list[Estimate]:
    """Measure the share of each run's trials that a column of 0 and 1 marks, with the interval of any other share.

    `of` is a column that says how much each trial counts; `name` is the name of the figure.
    """
    asked = (hits,) if of is None else (hits, of)

    def terms(**arrays: Floats) -> tuple[Floats, Floats]:
        below = np.ones_like(arrays[hits]) if of is None else arrays[of]
        return arrays[hits] * below, below

    def figure(**arrays: Floats) -> Rate:
        above, below = terms(**arrays)
        return Rate(math.fsum(above), math.fsum(below))

    entry = Metric(name or hits, figure, "low", (0.0, 1.0), asked, {})
    question = Question(entry.name, entry, {}, OfTerms(figure, asked, terms=terms, is_share=True))
    columns = Columns(trials, pools_targets=True)
    drawn = plan if plan.unit else replace(plan, bootstrap=0)
    return [
        e
        for sample in samples_of_runs(columns)
        for e in Work(columns, [question], Draws.prepare(drawn, columns, sample.rows)).estimates(sample)
    ]


USUAL_UNITS: Final = ("speaker", "patient", "patient_id", "subject", "author")
"""Columns that usually name units with several trials; used if no protocol lists its own."""
HINTED: Final = 100
"""Number of replicates from which a warning estimates roughly how much wider an interval would be."""
HINTED_METRICS: Final = 4


def natural_unit(whole: Sample, candidates: Sequence[str]) -> tuple[str, ...]:
    """Return the first unit whose columns exist, vary, and have several trials per value; empty if there is none."""
    known = whole.columns.trials.frame.columns
    named = map(names_of, candidates)
    return next((names for names in named if all(_repeats(whole, find_column(name, known)) for name in names)), ())


def _repeats(whole: Sample, name: str | None) -> bool:
    """Return whether a text column has at least two values in a sample, none of them blank, but fewer than trials."""
    frame = whole.columns.trials.frame
    if name is None or not is_text(frame[name].dtype):
        return False
    codes, values = whole.columns.codes(name)
    return 1 < len(np.unique(codes[whole.rows])) < whole.n and all(value.strip() for value in values)


def _unused_unit(work: Work, whole: Sample, found: Sequence[Estimate]) -> list[str]:
    """Say what resampling the natural unit would change, if trials were resampled although the data have one."""
    plan, trials = work.draws.plan, work.columns.trials
    if plan.unit or not plan.bootstrap or plan.method == "bca" or isinstance(trials, TalliedTrials):
        return []
    unit = natural_unit(whole, work.protocol.natural or USUAL_UNITS)
    cheap = [
        q for q in work.questions if q.metric.interval and (isinstance(q.form, Form) or q.form.kind == "decisions")
    ]
    if not unit or not cheap:
        return []
    drawn = replace(plan, unit=unit, bootstrap=HINTED, stratify=None)
    draws = Draws.prepare(drawn, work.columns, whole.rows)
    other = Work(work.columns, cheap[:HINTED_METRICS], draws, work.protocol)
    now = {e.metric: e for e in found if not e.slice and e.average is None and dict(e.run) == dict(whole.run)}
    name, option = " × ".join(unit), ",".join(unit)
    head = f"trials were drawn one by one, and those of one {name} are not independent"
    wider = other.estimates(whole)
    ratios = {
        e.metric: (e.high - e.low) / (own.high - own.low)
        for e in wider
        if e.low is not None
        and e.high is not None
        and (own := now.get(e.metric)) is not None
        and own.low is not None
        and own.high is not None
        and own.high > own.low
    }
    if not ratios:
        why = next((e.note for e in wider if e.note and "no interval" in e.note), None)
        return [Remark(f"{head}; with --unit {option}: {why}", UNUSED)] if why else []
    return [Remark(f"{head}; {widths(option, ratios)}", UNUSED, {"unit": option, "factors": ratios})]


def widths(option: str, ratios: Mapping[str, float]) -> str:
    """Say how wide intervals would be if whole units were drawn, compared with now.

    >>> widths("speaker", {"eer": 2.91})
    'with --unit speaker intervals would be about so many times as wide: eer 2.9'
    """
    told = ", ".join(f"{metric} {ratio:.1f}" for metric, ratio in ratios.items())
    return f"with --unit {option} intervals would be about so many times as wide: {told}"


def _undrawn(plan: SamplingPlan) -> list[str]:
    """Warn about a unit that was asked for and is not resampled; repeated runs use items as units by themselves."""
    if plan.bootstrap or plan.unit in ((), ("item",)):
        return []
    return [
        f"no intervals: the unit {' × '.join(plan.unit)} is resampled by a bootstrap, and none was requested (--bootstrap 1000)"
    ]
