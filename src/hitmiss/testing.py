"""Contract checks for metrics, built in or from plug-ins: `check_metric` tests a metric against its laws.

    number      an ordinary case gives a number, and not every case is undefined
    order       the order of the rows does not matter
    duplicate   repeating every row changes nothing
    weight      an integer weight is a number of repetitions; weight 0 removes the row
    range       the value lies in the registered range
    nan         NaN scores are refused, not scored
    classes     without a class that the metric needs it is NaN
    rank        a strictly increasing map of the scores changes nothing
    mirror      swapping the classes and reversing the answers gives the mirror metric's value

The first five hold for every metric, and `nan` for those that use scores. Which of the others hold follows from the
form that the metric is registered with, if the form determines it, and from the keywords of `check_metric`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from hitmiss.core.errors import HitmissError, UnknownName, UsageError
from hitmiss.core.kinds import FAILED
from hitmiss.core.metric import Metric
from hitmiss.core.metric_spec import MetricSpec, Setting
from hitmiss.core.registry import all_metrics, resolve
from hitmiss.core.sorting import Array
from hitmiss.engine.prepare import form_of

Case = Mapping[str, Array]
Generator = np.random.Generator
Needs = Literal["both", "positive", "negative", "none"]
Question = Callable[..., float] | str | MetricSpec

NEEDS: dict[str, tuple[int, ...]] = {"both": (0, 1), "positive": (1,), "negative": (0,), "none": ()}
"""The classes that a metric needs; without them it is NaN."""
BITS = ("changed_any", "right_all", "right_clean", "aim_reached", "aim_open")
SIZES = ("delta_l2", "delta_linf", "snr_db", "smoothness", "minimal_strength")
"""Columns of zeros and ones, and columns of numbers above 0."""


class ContractBroken(HitmissError, AssertionError):
    """Raised if a metric breaks a law: which one, how, and the case that shows it."""

    def __init__(self, metric: str, law: str, how: str, case: Case) -> None:
        shown = ", ".join(f"{name}={values.tolist()}" for name, values in case.items())
        super().__init__(f"{metric} breaks the law {law!r}: {how}; for example {shown}")
        self.law = law
        self.case = case


@dataclass(frozen=True)
class Subject:
    """A metric with fixed settings, and what was declared about it."""

    name: str
    entry: Metric
    settings: dict[str, Setting]
    needs: tuple[int, ...] = ()
    rank: bool = False
    mirror: Subject | None = None
    tolerance: float = 0.0

    def __call__(self, case: Case) -> float:
        """Return the value on an ordinary case; raising an error breaks the contract. The columns are read-only."""
        try:
            return float(self.entry.function(**case, **self.settings))
        except Exception as error:
            raise ContractBroken(self.name, "number", f"it raised {type(error).__name__}: {error}", case) from error

    def differ(self, one: float, other: float, tolerance: float | None = None) -> bool:
        """Return whether two values that the law requires to be equal differ; NaN equals NaN here."""
        if math.isnan(one) or math.isnan(other):
            return not (math.isnan(one) and math.isnan(other))
        allowed = self.tolerance if tolerance is None else tolerance
        return one != other and not abs(one - other) <= allowed * max(1.0, abs(one))


def check_metric(
    metric: Question,
    *,
    needs: Needs | None = None,
    rank: bool | None = None,
    mirror: Question | None = None,
    waive: Mapping[str, str] | None = None,
    tolerance: float = 1e-12,
    cases: int = 60,
    seed: int = 0,
) -> tuple[str, ...]:
    """Check a registered metric against its laws; raise `ContractBroken` at the first broken one.

    Parameters
    ----------
    metric
        The function, its name, or its text with settings (`"eer(ties=official)"`).
    needs
        The classes without which it is NaN.
    rank
        Whether only the order of the scores counts.
    mirror
        The metric that gives the same value if the classes are swapped and the answers reversed (scores negated,
        probabilities taken from 1, decisions exchanged); the metric itself if it treats both classes alike.
    waive
        Laws that the metric is known to break, each with the reason.
    tolerance
        The largest difference between values that count as equal.
    cases, seed
        The number of random cases, and their seed: the same seed gives the same cases.

    Returns
    -------
    tuple of str
        The laws that were checked.

    Raises
    ------
    ContractBroken
        If the metric breaks a law.

    >>> check_metric("roc_auc", mirror="roc_auc")
    ('number', 'order', 'duplicate', 'weight', 'range', 'nan', 'classes', 'rank', 'mirror')
    >>> try:
    ...     check_metric("recall", mirror="fnr")
    ... except ContractBroken as broken:
    ...     print(str(broken).partition(";")[0])
    recall breaks the law 'mirror': mirrored it must equal fnr, but 1.0 became 0.0
    """
    subject = _declared(_resolved(metric), needs, rank, mirror, tolerance)
    tried = list(make_cases(subject.entry, cases, seed))
    waived = waive or {}
    for name in waived:
        if name not in LAWS:
            raise UnknownName("law", name, LAWS)
    laws = {name: law for name, (applies, law) in LAWS.items() if applies(subject) and name not in waived}
    for number, case in enumerate(tried):
        for place, (name, law) in enumerate(laws.items()):
            for how, shown in law(subject, case, np.random.default_rng((seed, number, place))):
                raise ContractBroken(subject.name, name, how, shown)
    if all(math.isnan(subject(case)) for case in tried):
        raise ContractBroken(subject.name, "number", f"it is NaN on all of {cases} ordinary cases", tried[-1])
    return tuple(laws)


def _resolved(metric: Question) -> Subject:
    if callable(metric):
        name = metric.__name__
        known = all_metrics()
        if name not in known or known[name].function is not metric:
            raise UsageError.of("not-registered", name=name)
        metric = name
    spec, entry, settings = resolve(metric)
    return Subject(str(spec), entry, settings)


def _declared(
    subject: Subject, needs: Needs | None, rank: bool | None, mirror: Question | None, tolerance: float
) -> Subject:
    """Add what the keywords declare about the metric, or what its form says if they are None."""
    form = form_of(subject.entry, subject.settings) if subject.entry.form else None
    if needs is None:
        needs = "both" if form is not None and form.needs_both else "none"
    if needs not in NEEDS:
        raise UnknownName("value of needs", needs, NEEDS)
    ranks = form is not None and form.by_rank if rank is None else rank
    other = None if mirror is None else _resolved(mirror)
    return Subject(subject.name, subject.entry, subject.settings, NEEDS[needs], ranks, other, tolerance)


# --- cases ------------------------------------------------------------------------------------------------------


def make_cases(entry: Metric, cases: int = 60, seed: int = 0) -> Iterator[Case]:
    """Yield small cases for the columns of a metric, with both classes, from two rows up: ties and extremes."""
    for number in range(cases):
        rng = np.random.default_rng((seed, number))
        n = 2 + number // 2
        label = np.concatenate([[1, 0], rng.random(n - 2) < rng.choice([0.15, 0.5, 0.85])]).astype(np.int8)
        rng.shuffle(label)
        columns = {
            "label": label,
            "score": _probabilities(label, rng) if "probability" in entry.kinds else _scores(label, rng, number % 6),
            "decision": np.where(rng.random(n) < 0.3, rng.integers(FAILED, 2, n), label),
            "confidence": _rounded(rng.random(n), rng),
            **{mark: (rng.random(n) < 0.2).astype(np.int8) for mark in ("unparsed", "refused", "cut", "filtered")},
            "seconds": rng.exponential(2.0, n),
            "decision_clean": np.where(rng.random(n) < 0.2, 1 - label, label),
            **{name: (rng.random(n) < 0.6).astype(np.float64) for name in BITS},
            **{name: rng.exponential(1.0, n) for name in SIZES},
            "class_labels": np.stack([label, 1 - label, np.ones_like(label)], axis=1),
            "class_scores": np.round(rng.normal(size=(n, 3)), 1),
            "utterance": np.array([f"u{i // 3}" for i in range(n)], dtype=object),
            "segment": np.arange(n, dtype=np.float64),
            "domain": np.where(np.arange(n) % 3 == 0, "news", "poetry"),
            "attack": np.where(np.arange(n) % 5 == 0, "other", "none"),
            "accepted": (np.arange(n) % 4 == 0).astype(int).astype(str),
            "asv_label": np.where(label == 0, "spoof", np.where(np.arange(n) % 2, "target", "nontarget")),
        }
        own = {name: _rounded(rng.normal(size=n), rng) for name in entry.columns if name not in columns}
        yield {name: _frozen(columns[name] if name in columns else own[name]) for name in entry.columns}


def _evidence(label: Array, rng: Generator) -> Array:
    distance = float(rng.choice([-1.0, 0.0, 1.5, 6.0]))
    return rng.normal(distance * (label - 0.5), 1.0)


def _probabilities(label: Array, rng: Generator) -> Array:
    odds: Array = np.exp(_evidence(label, rng))
    return _rounded(odds / (1.0 + odds), rng)


def _scores(label: Array, rng: Generator, kind: int) -> Array:
    if kind == 1:  # neighbouring doubles
        return 1.0 + rng.integers(0, 4, len(label)) * 2.0**-52
    if kind == 2:
        return np.full(len(label), 0.25)
    if kind == 3:
        return _evidence(label, rng) * 1000.0
    return _rounded(_evidence(label, rng), rng)


def _rounded(values: Array, rng: Generator) -> Array:
    rounded: Array = np.round(values, int(rng.choice([0, 1, 12])))
    return rounded + 0.0  # no -0.0 in what is shown


def _frozen(values: Array) -> Array:
    values = np.array(values)
    values.flags.writeable = False
    return values


def _rows(case: Case, index: Array) -> Case:
    return {name: _frozen(values[index]) for name, values in case.items()}


def _size(case: Case) -> int:
    return len(next(iter(case.values())))


# --- laws: each yields how it is broken and the case that shows it ------------------------------------------------

Breaches = Iterator[tuple[str, Case]]


def _number(subject: Subject, case: Case, _: Generator) -> Breaches:
    subject(case)
    yield from ()


def _order(subject: Subject, case: Case, rng: Generator) -> Breaches:
    exactly = 0.0 if subject.entry.form else None  # a form uses counts, which are equal to the last bit
    value = subject(case)
    for index in (np.arange(_size(case))[::-1], rng.permutation(_size(case))):
        found = subject(_rows(case, index))
        if subject.differ(value, found, exactly):
            yield f"{value!r} became {found!r} with the rows in the order {index.tolist()}", case


def _duplicate(subject: Subject, case: Case, _: Generator) -> Breaches:
    value, found = subject(case), subject(_rows(case, np.tile(np.arange(_size(case)), 2)))
    if subject.differ(value, found):
        yield f"{value!r} became {found!r} when every row was there twice", case


def _weight(subject: Subject, case: Case, rng: Generator) -> Breaches:
    weight = rng.integers(0, 4, _size(case))
    kept = np.unique(case["label"], return_index=True)[1] if "label" in case else [0]
    weight[kept] = 2  # each class keeps a row, so that the number stays defined
    weighted = {**case, "weight": _frozen(weight)}
    found, repeated = subject(weighted), subject(_rows(case, np.repeat(np.arange(_size(case)), weight)))
    if subject.differ(found, repeated):
        yield f"the weights give {found!r}, rows repeated as often give {repeated!r}", weighted


def _range(subject: Subject, case: Case, _: Generator) -> Breaches:
    low, high = subject.entry.range
    value = subject(case)
    if value < low - subject.tolerance or value > high + subject.tolerance:
        yield f"{value!r} is outside {low}..{high}", case


def _nan(subject: Subject, case: Case, _: Generator) -> Breaches:
    score = np.array(case["score"])
    score[len(score) // 2] = math.nan
    holed = {**case, "score": _frozen(score)}
    try:
        value = subject.entry.function(**holed, **subject.settings)
        yield f"a NaN score must be refused, but gave {value!r}", holed
    except ValueError:  # DataError is one
        return
    except Exception as error:
        yield f"a NaN score must raise DataError or ValueError, not {type(error).__name__}", holed


def _classes(subject: Subject, case: Case, _: Generator) -> Breaches:
    for absent in subject.needs:
        left = _rows(case, np.flatnonzero(case["label"] != absent))
        value = subject(left)
        if not math.isnan(value):
            yield f"without label {absent} it must be NaN, but is {value!r}", left


def _rank(subject: Subject, case: Case, rng: Generator) -> Breaches:
    distinct, place = np.unique(case["score"], return_inverse=True)
    steps = np.arange(len(distinct), dtype=np.float64)
    ladders = (
        np.exp2(steps),
        -1.0 - steps[::-1] * 2.0**-52,  # neighbouring doubles
        np.cumsum(rng.exponential(1.0, len(distinct)) + 1e-3) - 5.0,
        np.concatenate([[-math.inf], steps[1:-1], [math.inf]])[: len(distinct)],
    )
    value = subject(case)
    for ladder in ladders:
        mapped = {**case, "score": _frozen(ladder[place])}
        found = subject(mapped)
        if subject.differ(value, found):
            yield f"{value!r} became {found!r} with the scores {mapped['score'].tolist()}, in the same order", case


def _mirror(subject: Subject, case: Case, _: Generator) -> Breaches:
    turn: dict[str, Callable[[Array], Array]] = {
        "label": lambda label: 1 - label,
        "score": lambda score: 1.0 - score if "probability" in subject.entry.kinds else -score,
        "decision": lambda decision: np.where(decision < 0, decision, 1 - decision),  # no answer stays none
    }
    turned = {name: _frozen(turn[name](values)) if name in turn else values for name, values in case.items()}
    assert subject.mirror is not None
    value, found = subject(case), subject.mirror(turned)
    if subject.differ(value, found):
        yield f"mirrored it must equal {subject.mirror.name}, but {value!r} became {found!r}", case


Law = Callable[[Subject, Case, Generator], Breaches]
LAWS: dict[str, tuple[Callable[[Subject], bool], Law]] = {
    "number": (lambda _: True, _number),
    "order": (lambda _: True, _order),
    "duplicate": (lambda _: True, _duplicate),
    "weight": (lambda _: True, _weight),
    "range": (lambda _: True, _range),
    "nan": (lambda subject: "score" in subject.entry.columns, _nan),
    "classes": (lambda subject: bool(subject.needs) and "label" in subject.entry.columns, _classes),
    "rank": (lambda subject: subject.rank and "score" in subject.entry.columns, _rank),
    "mirror": (lambda subject: subject.mirror is not None, _mirror),
}
"""The name of each law, the metrics that it holds for, and the law."""
