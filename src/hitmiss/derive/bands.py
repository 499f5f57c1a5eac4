"""Three-way verdicts: from a score by two thresholds, or from verdicts by a least confidence.

Below `low` an item passes as the negative class, from `high` on it is flagged as the positive class, and between them a
person looks at it. The slip rate depends only on `low` and the false-flag rate only on `high`, so every choice needs
one pass over the tally. Thresholds are optimistic on the data they were chosen on; judge them on other rows.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass, replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from hitmiss.core.design import Bands, LeastConfidence
from hitmiss.core.errors import DataError, UsageError
from hitmiss.core.finding import Remark
from hitmiss.core.kinds import ABSTAIN, FAILED
from hitmiss.core.rates import Rate
from hitmiss.core.scale import ScoreScale
from hitmiss.core.sorting import Array, Floats
from hitmiss.core.tally import Tally
from hitmiss.core.trials import Trials
from hitmiss.core.weights import refuse_sampling


@dataclass(frozen=True)
class Point:
    """The effect of a pair of thresholds on some trials: shares of the positives, of the negatives and of all."""

    bands: Bands
    slip: Rate
    false_flag: Rate
    review: Rate


@dataclass(frozen=True)
class Choice:
    """A chosen pair with its effect on the data it was chosen on; if no pair meets the target, the reason."""

    point: Point | None
    reason: str = ""


def at_bands(trials: Trials, bands: Bands) -> Trials:
    """Decide trials by two thresholds. The pair is recorded in the header.

    Parameters
    ----------
    trials
        Trials with scores.
    bands
        The two thresholds, on the scale and in the direction of the file: below `low` the decision is 0, from `high` on
        it is 1, and between them -1 (a person decides). If the trials were read with `higher=` the negative class, a
        score of the file below `low` is 1, and one from `high` on is 0.

    Returns
    -------
    Trials
        The same trials with a column `decision`.

    Raises
    ------
    UsageError
        If the trials have no scores.

    >>> at_bands(Trials.of([1, 0, 1], [0.9, 0.1, 0.5]), Bands(0.2, 0.8)).column("decision").to_list()
    [1, 0, -1]
    """
    score, head = pl.col("score"), trials.header
    outer, inner = (bands.low, bands.high) if head.scale.is_reversed else (bands.high, bands.low)
    flagged, passed = head.scale.accepts(score, outer), ~head.scale.accepts(score, inner)
    decided = pl.when(flagged).then(1).when(passed).then(0).otherwise(ABSTAIN).cast(pl.Int8)
    told = head.scale.thresholds_text(bands.low, bands.high, head.positive, head.negative)
    choice = f"thresholds={bands.low!r},{bands.high!r} ({bands.origin})"
    notes = head.notes
    if bands.origin.endswith("this data"):
        notes = (
            *notes,
            Remark.of("chosen-on-same-data"),
        )
    trials.column("score")
    titled = {"threshold": None, "decided": f"{told} ({bands.origin})", "choices": (*head.choices, choice)}
    return trials.put(decision=decided).retitle(**titled, notes=notes)


def for_file(point: Point, tally: Tally, scale: ScoreScale) -> Point:
    """Return a point that was chosen on a tally with its thresholds on the scale of the file."""
    if not scale.is_reversed:
        return point
    low, high = (scale.threshold_of(tally, tally.point_at(t)) for t in (point.bands.high, point.bands.low))
    return replace(point, bands=Bands(low, high, point.bands.origin))


def judge(tally: Tally, bands: Bands) -> Point:
    """Return the effect of a pair of thresholds on the trials of a tally."""
    low, high = tally.point_at(bands.low), tally.point_at(bands.high)
    return _point(tally, low, high, bands)


def _point(tally: Tally, low: int, high: int, bands: Bands) -> Point:
    passed, flagged = tally.positives[low].item(), tally.n_negative - tally.negatives[high].item()
    total = tally.positives + tally.negatives
    return Point(
        bands,
        Rate(passed, tally.n_positive),
        Rate(flagged, tally.n_negative),
        Rate(max(0, (total[high] - total[low]).item()), tally.n_positive + tally.n_negative),
    )


def _at(tally: Tally, low: int, high: int, origin: str) -> Point:
    return _point(tally, low, high, Bands(tally.threshold_of(low), tally.threshold_of(high), origin))


def sweep(tally: Tally, rates: tuple[float, ...] = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2)) -> list[Point]:
    """Return, for each pair of allowed rates, the pair of thresholds that sends the fewest items to review.

    >>> t = Tally.of([1, 1, 0, 0], [0.9, 0.4, 0.6, 0.1])
    >>> [(float(p.slip), float(p.false_flag), float(p.review)) for p in sweep(t, (0.0, 0.5))]
    [(0.0, 0.0, 0.5), (0.0, 0.5, 0.0), (0.5, 0.0, 0.0), (0.0, 0.5, 0.0)]
    """
    _refuse_one_class(tally)
    return [_fewest_looks(tally, slip, flag, "sweep on this data") for slip in rates for flag in rates]


def by_rates(tally: Tally, max_slip: float, max_false_flag: float) -> Choice:
    """Return the pair with the fewest items to review that keeps both rates **on this data**, without a guarantee."""
    _refuse_one_class(tally)
    return Choice(_fewest_looks(tally, max_slip, max_false_flag, "empirical rates on this data"))


def _fewest_looks(tally: Tally, max_slip: float, max_flag: float, origin: str) -> Point:
    low = int(np.searchsorted(tally.positives, max_slip * tally.n_positive * (1 + 1e-12), side="right")) - 1
    flagged = tally.n_negative - tally.negatives
    high = int(np.argmax(flagged <= max_flag * tally.n_negative * (1 + 1e-12)))
    return _uncrossed(tally, low, high, origin)


def _uncrossed(tally: Tally, low: int, high: int, origin: str) -> Point:
    """Replace a pair whose low threshold is above the high one by one threshold, the high one: nothing needs review."""
    return _at(tally, min(low, high), high, origin)


def by_cost(tally: Tally, slip: float, false_flag: float, review: float) -> Choice:
    """Return the pair with the least expected cost, given the prices of a slip, a false flag and a review.

    cost = slip · FN + false_flag · FP + review · items between; of equally good pairs, the lowest.

    >>> by_cost(Tally.of([1, 1, 0, 0], [0.9, 0.4, 0.6, 0.1]), slip=10, false_flag=1, review=0.2).point.bands
    Bands(low=0.4, high=0.9, origin='least cost on this data')
    """
    _refuse_one_class(tally)
    if min(slip, false_flag, review) < 0 or not all(map(math.isfinite, (slip, false_flag, review))):
        raise UsageError.of("bad-costs/negative", slip=slip, false_flag=false_flag, review=review)
    total = tally.positives + tally.negatives
    passing = slip * tally.positives - review * total
    flagging = false_flag * (tally.n_negative - tally.negatives) + review * total
    best_low = _first_least(passing)
    high = int(np.argmin(passing[best_low] + flagging))
    return Choice(_at(tally, int(best_low[high]), high, "least cost on this data"))


def _first_least(values: Floats) -> Array:
    """Return, for each position, the first position up to it that has the least value."""
    least = np.minimum.accumulate(values)
    return np.maximum.accumulate(np.where(np.append(True, least[1:] < least[:-1]), np.arange(len(values)), 0))


def by_budget(tally: Tally, review: float) -> Choice:
    """Return the pair with the fewest errors that sends at most this share of items to review.

    >>> found = by_budget(Tally.of([1, 1, 0, 0], [0.9, 0.4, 0.6, 0.1]), review=0.5).point
    >>> float(found.review), float(found.slip), float(found.false_flag)
    (0.5, 0.0, 0.0)
    """
    _refuse_one_class(tally)
    if not 0.0 <= review <= 1.0:
        raise UsageError.of("out-of-range", name="the share to review", low=0, high=1, found=review)
    total = (tally.positives + tally.negatives).astype(np.float64)
    allowed = review * total[-1] * (1 + 1e-12)
    highs = np.searchsorted(total, total + allowed, side="right") - 1
    low = int(np.argmin(tally.positives + (tally.n_negative - tally.negatives[highs])))
    return Choice(_at(tally, low, int(highs[low]), f"review budget {review:g} on this data"))


def guaranteed(
    tally: Tally,
    max_slip: float,
    max_false_flag: float,
    confidence: float = 0.95,
    units: Units | None = None,
) -> Choice:
    """Return a pair that keeps both rates **on new data**, with this confidence over the choice of the data.

    The slip below the (k + 1)-th lowest positive exceeds a with probability P(Bin(n, a) ≤ k), whatever the
    distribution. The greatest k for which this is at most 1 − √confidence gives `low`; `high` is found likewise. This
    is exact and needs no grid. `units`: rows of one unit (frames of a video, texts of an author) are not independent, so the guarantee
    counts units: a unit slips if any of its rows slips. This is exact too, and stricter than needed: if units have
    equal sizes, the share of units with a slip is at least the share of rows that slip. Reference: Wilks 1941;
    Angelopoulos et al. 2022.

    Parameters
    ----------
    tally
        The labels and scores of the data that the pair is chosen on, `Tally.of(label, score)`.
    max_slip, max_false_flag
        The rates that new positives may slip through, and that new negatives may be flagged.
    confidence
        The probability, over the choice of the data, with which both rates hold.
    units
        Which rows belong together.

    Returns
    -------
    Choice
        The pair of thresholds (`point.bands`), or the reason why there is none.

    Raises
    ------
    UsageError
        For a rate or a confidence outside (0, 1).
    DataError
        If the data holds one class only.

    >>> import numpy as np
    >>> label, score = np.repeat([0, 1], 200), np.concatenate([np.arange(200), np.arange(100, 300)])
    >>> bands = guaranteed(Tally.of(label, score), max_slip=0.1, max_false_flag=0.1).point.bands
    >>> bands.low, bands.high
    (111.0, 189.0)
    """
    _refuse_one_class(tally)
    for rate in (max_slip, max_false_flag, confidence):
        if not 0.0 < rate < 1.0:
            raise UsageError.of("bad-rate", rate=rate)
    if units is not None:
        return _by_units(tally, units, max_slip, max_false_flag, confidence)
    return _by_binomial(tally, max_slip, max_false_flag, confidence)


@dataclass(frozen=True, eq=False)
class Units:
    """The rows with the unit of each, for a guarantee over units."""

    score: Floats
    positive: NDArray[np.bool_]
    unit: NDArray[np.int64]

    @classmethod
    def of(cls, trials: Trials, name: str) -> Units:
        """Take the rows of trials, with a column whose values are whole units."""
        refuse_sampling(trials, "a band with a guarantee")
        return cls(trials.score, np.asarray(trials.label == 1), cls.codes_of(trials, name))

    @staticmethod
    def codes_of(trials: Trials, name: str) -> NDArray[np.int64]:
        """Return the unit of each row as a number."""
        values = trials.column(name if name == "item" else trials.own(name)).cast(pl.String)
        return values.rank("dense").to_numpy().astype(np.int64) - 1

    def ends(self, positive: bool) -> Floats:
        """Return the lowest positive, or the highest negative, of each unit with rows of that class, ascending."""
        side = self.positive if positive else ~self.positive
        codes, place = np.unique(self.unit[side], return_inverse=True)
        ends = np.full(len(codes), np.inf if positive else -np.inf)
        (np.minimum if positive else np.maximum).at(ends, place, self.score[side])
        return np.sort(ends)


def _by_units(tally: Tally, units: Units, max_slip: float, max_flag: float, confidence: float) -> Choice:
    """Choose with whole units as draws: the lowest positive of a unit is one draw, and so is its highest negative.

    A unit may hold both classes, so the two guarantees are not independent: each gets half of the risk.
    """
    risk = (1.0 - confidence) / 2.0
    ends = units.ends(True), units.ends(False)
    sides = (("slip", max_slip, len(ends[0])), ("false flag", max_flag, len(ends[1])))
    allowed = [most_allowed(n, rate, risk) for _, rate, n in sides]
    short = [
        f"a {name} of at most {rate:g} needs {enough(rate, risk)} units with its class and there are {n}"
        for (name, rate, n), k in zip(sides, allowed, strict=True)
        if k < 0
    ]
    if short:
        return Choice(None, "; ".join(short))
    low_limit, high_limit = ends[0][allowed[0]], ends[1][::-1][allowed[1]]
    low = int(np.searchsorted(tally.score, low_limit, side="left"))
    high = int(np.searchsorted(tally.score, high_limit, side="right"))
    return Choice(_uncrossed(tally, low, high, f"guarantee {confidence:g} (binomial, units) on this data"))


@dataclass(frozen=True)
class Answering:
    """The least confidence at which to answer, with its effect on the rows it was chosen on.

    If there is none, the reason.
    """

    least: float | None
    slip: Rate | None = None
    answered: Rate | None = None
    reason: str = ""


def least_confidence(
    wrong: NDArray[np.bool_],
    confidence: Floats,
    positive: NDArray[np.bool_],
    max_slip: float,
    level: float | None = 0.95,
    unit: NDArray[np.int64] | None = None,
) -> Answering:
    """Return the least confidence at which to answer so that the slip stays at most `max_slip` on new data.

    A slip is a positive whose verdict is wrong and answered; below the least confidence a person decides. For n
    positives (or units with positives) the slip at a limit t is the share of those with a wrong verdict at t or above.
    Limits are tried from the highest down, and the last one before the first that fails the binomial test is taken
    (fixed-sequence testing: the error of all tests together stays at 1 − level, whatever the distribution). A verdict
    without a confidence (NaN) is never answered.

    Parameters
    ----------
    wrong
        Whether each row's verdict is wrong.
    confidence
        The confidence of each verdict.
    positive
        Which rows are of the class that must not slip.
    max_slip, level
        The largest slip, and the confidence of the guarantee. With `level` None the limit holds only on this data,
        without a guarantee.
    unit
        The unit of each row, if rows of a unit are not independent: a unit slips if any of its rows does.

    Returns
    -------
    Answering
        The limit, with the slip and the share answered at it.

    Raises
    ------
    UsageError
        For rates that are not between 0 and 1.

    >>> wrong = np.array([True] + [False] * 199)
    >>> found = least_confidence(wrong, np.linspace(0.5, 1.0, 200), np.ones(200, dtype=bool), 0.05)
    >>> found.least, float(found.slip)
    (0.5, 0.005)
    """
    for rate in (max_slip, level):
        if rate is not None and not 0.0 <= rate < 1.0:
            raise UsageError.of("bad-rate", rate=rate)
    rows = np.flatnonzero(positive)
    codes = np.arange(len(rows)) if unit is None else np.unique(unit[rows], return_inverse=True)[1]
    n = int(codes.max(initial=-1)) + 1
    most = int(max_slip * n * (1 + 1e-12)) if level is None else most_allowed(n, max_slip, 1.0 - level)
    if most < 0 and level is not None:
        what = "positives" if unit is None else "units with positives"
        need = enough(max_slip, 1.0 - level)
        return Answering(None, reason=f"a slip of at most {max_slip:g} needs {need} {what} and there are {n}")
    slips = np.full(n, -np.inf)  # per unit: the highest confidence of a wrong verdict; limits up to it slip
    np.maximum.at(slips, codes, np.where(wrong[rows], np.nan_to_num(confidence[rows], nan=-np.inf), -np.inf))
    limits = np.unique(confidence[~np.isnan(confidence)])
    if not len(limits):
        return Answering(None, reason="no such verdict has a confidence")
    slipped = n - np.searchsorted(np.sort(slips), limits, side="left")
    failing = np.flatnonzero(slipped > most)
    place = int(failing[-1]) + 1 if len(failing) else 0
    if place == len(limits):
        return Answering(None, reason="even the most confident verdicts slip too often")
    least = float(limits[place])
    answered = confidence >= least
    slip = Rate(int((wrong & answered & positive).sum()), int(positive.sum()))
    return Answering(least, slip, Rate(int(answered.sum()), len(confidence)))


@dataclass(frozen=True)
class Answered:
    """Least confidences of both verdicts, with their effect on the rows they were chosen on.

    If none meets the targets, `sureness` is None and `reason` says why.
    """

    sureness: LeastConfidence | None
    slip: Rate | None = None
    false_flag: Rate | None = None
    review: Rate | None = None
    reason: str = ""


def by_confidence(
    trials: Trials,
    max_slip: float,
    max_false_flag: float,
    confidence: float | None = 0.95,
    unit: str | None = None,
) -> Answered:
    """Return the least confidence of "real" verdicts that keeps the slip, and of "fake" ones that keeps false flags.

    Only a "real" verdict can let a fake slip, and only a "fake" verdict can flag a real. So each has its own limit, and
    more is answered than with one limit for both.

    Parameters
    ----------
    trials
        Trials with verdicts and confidences, of one run.
    max_slip, max_false_flag
        The targets.
    confidence
        The confidence that both targets hold on new data (see `least_confidence`). None: they hold only on these
        trials.
    unit
        The column whose values are whole units: a unit slips if any of its rows does.

    Returns
    -------
    Answered
        The limits, with slip, false flag and the share left to people on these trials.
    """
    refuse_sampling(trials, "a limit of confidences")
    code = None if unit is None else Units.codes_of(trials, unit)
    said = trials.column("decision").fill_null(FAILED).to_numpy()
    sure = trials.column("confidence").cast(pl.Float64).fill_null(np.nan).to_numpy()
    positive = np.asarray(trials.label == 1)
    # Independent classes hold together with the product of their levels. A unit may hold both classes, so with units
    # each guarantee gets half of the risk instead.
    level = None if confidence is None else math.sqrt(confidence) if unit is None else 1.0 - (1.0 - confidence) / 2.0
    sides = ((positive, 0, max_slip, "slip"), (~positive, 1, max_false_flag, "false flag"))
    found = [
        least_confidence(said == verdict, np.where(said == verdict, sure, np.nan), own, most, level, code)
        for own, verdict, most, _ in sides
    ]
    real, fake = (f.least for f in found)
    if real is None or fake is None:
        short = [f"{name}: {f.reason}" for f, (*_, name) in zip(found, sides, strict=True) if f.least is None]
        return Answered(None, reason="; ".join(short))
    how = "empirical rates" if confidence is None else f"guarantee {confidence:g} (binomial{', units' if unit else ''})"
    return judge_sureness(trials, LeastConfidence(real, fake, f"{how} on this data"))


def judge_sureness(trials: Trials, sureness: LeastConfidence) -> Answered:
    """Return the effect of least confidences on trials with verdicts."""
    refuse_sampling(trials, "a limit of confidences")
    said = at_sureness(trials, sureness).column("decision").fill_null(FAILED).to_numpy()
    positive = np.asarray(trials.label == 1)
    return Answered(
        sureness,
        Rate(int((positive & (said == 0)).sum()), int(positive.sum())),
        Rate(int((~positive & (said == 1)).sum()), int((~positive).sum())),
        Rate(int(((said != 0) & (said != 1)).sum()), len(said)),
    )


def at_sureness(trials: Trials, sureness: LeastConfidence) -> Trials:
    """Leave verdicts below the least confidence, or without one, to people. The rule is recorded in the header.

    >>> t = Trials.of([1, 0, 1], decision=[1, 0, 0], confidence=[0.9, 0.8, 0.5])
    >>> at_sureness(t, LeastConfidence(0.7, 0.7)).column("decision").to_list()
    [1, 0, -1]
    """
    for name in ("decision", "confidence"):
        trials.column(name)
    least = pl.when(pl.col("decision") == 1).then(sureness.positive).otherwise(sureness.negative)
    stated = pl.col("confidence").cast(pl.Float64).fill_nan(None)  # polars orders NaN above every number
    sure = (stated >= least).fill_null(False)
    open_ = pl.col("decision").is_in([0, 1]) & ~sure
    decided = pl.when(open_).then(pl.lit(ABSTAIN)).otherwise(pl.col("decision")).cast(pl.Int8)
    head, notes = trials.header, trials.header.notes
    if sureness.origin.endswith("this data"):
        notes = (
            *notes,
            Remark.of("chosen-on-same-data/least-confidences"),
        )
    choice = f"least-confidence={sureness.negative!r},{sureness.positive!r} ({sureness.origin})"
    return trials.put(decision=decided).retitle(choices=(*head.choices, choice), notes=notes)


def sweep_sureness(trials: Trials) -> list[Answered]:
    """Return, for each pair of allowed rates, the least confidences that keep both on these trials.

    Of those that keep both rates, they answer the most.
    """
    rates = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2)
    pairs = [(slip, flag) for slip in rates for flag in rates]
    return [found for pair in pairs if (found := by_confidence(trials, *pair, confidence=None)).sureness is not None]


def _by_binomial(tally: Tally, max_slip: float, max_flag: float, confidence: float) -> Choice:
    risk = 1.0 - math.sqrt(confidence)  # the classes are independent, so both hold with the product
    sides = (("slip", max_slip, tally.n_positive), ("false flag", max_flag, tally.n_negative))
    allowed = [most_allowed(int(n), rate, risk) for _, rate, n in sides]
    short = [
        f"a {name} of at most {rate:g} needs {enough(rate, risk)} trials of its class and there are {int(n)}"
        for (name, rate, n), k in zip(sides, allowed, strict=True)
        if k < 0
    ]
    if short:
        return Choice(None, "; ".join(short))
    low = int(np.searchsorted(tally.positives, allowed[0], side="right")) - 1
    high = int(np.argmax(tally.n_negative - tally.negatives <= allowed[1]))
    return Choice(_uncrossed(tally, low, high, f"guarantee {confidence:g} (binomial) on this data"))


def most_allowed(n: int, rate: float, risk: float) -> int:
    """Return the greatest k with P(Bin(n, rate) ≤ k) ≤ risk; -1 if there is none.

    >>> most_allowed(72, 0.05, 0.025), most_allowed(71, 0.05, 0.025)
    (0, -1)
    """
    from scipy.stats import binom

    k = int(binom.ppf(risk, n, rate))
    return k if binom.cdf(k, n, rate) <= risk else k - 1


def enough(rate: float, risk: float) -> int:
    """Return the least number of trials, all without error, that can show a rate.

    >>> enough(0.05, 0.025)
    72
    """
    return math.ceil(math.log(risk) / math.log1p(-rate))


def halves(trials: Trials, seed: int = 0, unit: str | None = None) -> tuple[Trials, Trials]:
    """Split the trials in two by a hash of their items (or of a wider unit), so that the rows of one stay together."""
    whole = trials.items if unit in (None, "item") else trials.column(trials.own(str(unit))).to_list()
    first = [hashlib.sha256(f"{seed}\x1f{item}".encode()).digest()[0] < 128 for item in whole]
    mask = pl.Series(first)
    return trials.keep(pl.lit(mask)), trials.keep(pl.lit(~mask))


def _refuse_one_class(tally: Tally) -> None:
    if not tally.has_both_classes:
        raise DataError.of("one-class", what="the choice of thresholds")
