"""Conclusions from figures: is it good, where does it fail, can it be trusted. Every sentence is based on a test.

The same conclusions appear on the first screen of a report, below terminal tables, and on the pages of comparisons and
gates, so nothing here depends on HTML or terminals. Nothing is called good, bad or worst because of how a number looks:

- *Is it good?* The interval of a figure against chance or the trivial system (accept everything, always answer the more
  frequent class), against another run, or against the limit of a gate.
- *Where does it fail?* Each slice against all others, corrected for the number of tested slices; all trials against
  their slices (score shift).
- *Can I trust it?* A list of checks, each passed, failed or not checked. The list says what was not checked.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING, Final

from hitmiss.core.errors import UsageError
from hitmiss.core.registry import find_metric, parse
from hitmiss.core.results import MIXED, UNDIRECTED, UNUSED, Estimate, Results, code_of
from hitmiss.engine.measure import read_signature
from hitmiss.reports.tabular import explain, figure, interval, is_campaign, is_share, places
from hitmiss.stats.tests import Figure, Tested, against_others, holm, p_text, shift

if TYPE_CHECKING:
    from hitmiss.engine.compare import Comparison, Difference
    from hitmiss.engine.gate import Check as GateCheck
    from hitmiss.engine.rank import Ranking
    from hitmiss.protocols.triage import Asides
    from hitmiss.verdicts.people import Teamwork

PASSED, FAILED, OPEN = "passed", "failed", "not checked"
MARKS: Final = {PASSED: "✓", FAILED: "✗", OPEN: "?"}
PER_CENT: Final = "\u00a0%"
"""A space that keeps a word with its number at the end of a line."""
MOST: Final = 3
"""Lines of one kind for which a card has room; the others are counted."""
FEW: Final = 10
"""Number of trials of a class that a slice needs to be tested."""
ENOUGH: Final = 30
"""Number of trials of each class that figures over all trials need."""
MATERIAL: Final = 0.1
"""A shift of scores is reported if it moves the figure by this share; in a million trials any shift is significant."""
MISCALIBRATED: Final = 0.1
"""The excess of the actual cost is reported if it is above this share of the minimum cost."""
LOUD: Final = ("INVALID", "ATTACK FAILED", "ATTACK INVALID")
"""Words of warnings after which a figure may be wrong and for which there is no check."""


@dataclass(frozen=True)
class Line:
    """One conclusion: whether it is for the detector, against it, or leaves the question open."""

    status: str
    text: str
    name: str = ""
    short: str = ""
    """The same in a few words, for the summary sentence."""

    @property
    def mark(self) -> str:
        """Its sign."""
        return MARKS[self.status]


@dataclass(frozen=True)
class Assessment:
    """The answers to the three questions, and the sentence that sums them up."""

    verdict: str
    good: tuple[Line, ...] = ()
    fails: tuple[Line, ...] = ()
    trust: tuple[Line, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def status(self) -> str:
        """Say whether anything is against the detector, otherwise whether something is for it."""
        of = {line.status for line in self.good}
        return FAILED if FAILED in of else PASSED if PASSED in of else OPEN

    @property
    def sections(self) -> tuple[tuple[str, tuple[Line, ...]], ...]:
        """Return the questions with their answers, in order; questions without an answer are left out."""
        found = (("Is it good?", self.good), ("Where does it fail?", self.fails), ("Can I trust it?", self.trust))
        return tuple((title, lines) for title, lines in found if lines)


@dataclass(frozen=True)
class Shown:
    """A figure as a headline shows it."""

    title: str
    value: str
    interval: str
    gist: str
    metric: str = ""


def shown(e: Estimate) -> Shown:
    """Format an estimate for a headline: shares in per cent, with the digits that its interval allows."""
    entry, scale = explain(e.metric), 100.0 if is_share(e.metric) else 1.0
    digits = places([e], scale)
    unit = PER_CENT if scale != 1.0 and e.value is not None else ""
    value = f"{figure(e.value, digits, scale)}{unit}" if e.value is not None else "undefined"
    ends = interval(e, digits, scale)
    better = "lower is better" if e.best == "low" else "higher is better"
    said = e.note if e.value is None and e.note else entry.gist
    gist = f"{said[:1].upper()}{said[1:].rstrip('.')}; {better}." if said else f"{better.capitalize()}."
    return Shown(entry.title, value, f"{ends}{unit}" if ends else "", gist, e.metric)


def told(e: Estimate) -> str:
    """Format a figure with its interval for a sentence."""
    made = shown(e)
    return f"{made.value} {made.interval.removesuffix(PER_CENT)}".strip()


# --- is it good? ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Level:
    """The value of a figure without any detector, and what gives that value."""

    value: float
    by: str


CHANCE: Final = "chance"
TRIVIAL: Final = "accepting or rejecting everything"


def chance_level(e: Estimate) -> Level | None:
    """Return the figure of chance or of the trivial system; None if the metric alone does not determine it.

    >>> chance_level(Estimate("eer", 0.1)).value
    0.5
    >>> chance_level(Estimate("accuracy", 0.9, n=100, n_positive=20))
    Level(value=0.8, by='always saying the commoner class')
    """
    name = parse(e.metric).name
    fixed = {
        "eer": Level(0.5, CHANCE), "roc_auc": Level(0.5, CHANCE), "macro_auc": Level(0.5, CHANCE),
        "balanced_accuracy": Level(0.5, CHANCE), "mcc": Level(0.0, CHANCE), "kappa": Level(0.0, CHANCE),
        "cllr": Level(1.0, "uninformative scores"), "min_cllr": Level(1.0, "uninformative scores"),
        "youden": Level(0.0, CHANCE),
    }  # fmt: skip
    if name in fixed:
        return fixed[name]
    if name in ("min_dcf", "act_dcf"):
        return Level(1.0, TRIVIAL) if e.settings.get("normalize", True) else None
    if name == "tpr_at_fpr" and isinstance(fpr := e.settings.get("fpr"), float):
        return Level(fpr, CHANCE)
    share = e.n_positive / e.n if e.n else 0.0
    if e.weight and e.weight_positive is not None:
        share = e.weight_positive / e.weight
    if not 0.0 < share < 1.0:
        return None
    by_share = {
        "accuracy": Level(max(share, 1 - share), "always saying the commoner class"),
        "accuracy_answered": Level(max(share, 1 - share), "always saying the commoner class"),
        "f1": Level(2 * share / (1 + share), "calling everything positive"),
        "average_precision": Level(share, CHANCE),
        "brier": Level(share * (1 - share), "always stating the share of positives"),
    }
    return by_share.get(name)


def against_chance(e: Estimate) -> Line | None:
    """Say whether a figure is better than chance, by its interval; None if there is nothing to compare with.

    >>> against_chance(Estimate("eer", 0.25, best="low")).text.partition(":")[0]
    'Not tested against chance, because there is no interval'
    """
    level = chance_level(e)
    if level is None or e.value is None:
        return None
    title, of = explain(e.metric).title, f"{level.by} gives {_plain(level.value, e)}"
    said = f"{title} {told(e)}; {of}."
    if e.low is None or e.high is None:
        return Line(OPEN, f"Not tested against {level.by}, because there is no interval: {said}")
    if (e.high < level.value) if e.best == "low" else (e.low > level.value):
        return Line(PASSED, f"Better than {level.by}: {said}")
    if (e.low > level.value) if e.best == "low" else (e.high < level.value):
        return Line(FAILED, f"Worse than {level.by}: {said}")
    return Line(FAILED, f"Not shown to be better than {level.by}: {said}")


def _plain(value: float, e: Estimate) -> str:
    return f"{100 * value:g}{PER_CENT}" if is_share(e.metric) else f"{value:g}"


def _good(wholes: Sequence[Estimate], primary: str) -> list[Line]:
    """Compare every run with chance: by the primary metric, else by the first metric with a known chance level."""
    runs = list(dict.fromkeys(_run_of(e) for e in wholes))
    lines: dict[str, Line] = {}
    for name in runs:
        own = [e for e in wholes if _run_of(e) == name]
        own = [e for e in own if e.metric == primary] + [e for e in own if e.metric != primary]
        tried = [line for line in map(against_chance, own) if line is not None]
        tested = [line for line in tried if line.status != OPEN] or tried
        if tested:
            lines[name] = tested[0]
    if not lines:
        return [Line(OPEN, "No figure here has a chance level to compare with; compare with a baseline.")]
    if len(lines) == 1:
        return list(lines.values())
    counts = Counter(line.status for line in lines.values())
    found = []
    if counts[PASSED]:
        found.append(Line(PASSED, f"{_of(counts[PASSED], len(lines))} better than chance or the trivial system."))
    bad = [(name, line) for name, line in lines.items() if line.status == FAILED]
    found += [Line(FAILED, f"{name}: {line.text}") for name, line in bad[:MOST]]
    found += [Line(FAILED, f"So are {len(bad) - MOST} more runs.")] if len(bad) > MOST else []
    if counts[OPEN]:
        found.append(Line(OPEN, f"{_of(counts[OPEN], len(lines))} not tested, because they have no intervals."))
    return found


def _of(n: int, total: int) -> str:
    if n == total:
        return "Both runs are" if total == 2 else f"All {total} runs are"
    return f"{n} of {total} runs {'is' if n == 1 else 'are'}"


# --- where does it fail? ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Weak:
    """A slice that was shown to be worse: its figure, that of the others, and the corrected p value."""

    e: Estimate
    test: Tested
    p: float

    @property
    def where(self) -> str:
        """Describe the slice in words."""
        return ", ".join(f"{k} {v}" for k, v in self.e.slice.items())

    def __str__(self) -> str:
        e = self.e
        return (
            f"{self.where}: {explain(e.metric).title} {told(e)}, the others together {_round(self.test.others, e)} "
            f"(adjusted p {p_text(self.p)}; n = {e.n:,}; shrunk towards the others {_round(self.test.shrunken, e)})."
        )


def _round(value: float, e: Estimate) -> str:
    scale = 100.0 if is_share(e.metric) else 1.0
    return f"{figure(value, places([e], scale), scale)}{PER_CENT if scale != 1.0 else ''}"


@dataclass(frozen=True)
class Slices:
    """The outcome of testing slices: those that are worse, how many were tested, and which could not be."""

    weak: tuple[Weak, ...] = ()
    tested: int = 0
    columns: tuple[str, ...] = ()
    few: int = 0
    bare: int = 0
    one_sided: int = 0
    worst: Estimate | None = None


def weak_slices(results: Iterable[Estimate], metric: str) -> Slices:
    """Test every slice of every run and grouping against the others; one correction covers all tested slices.

    Parameters
    ----------
    results
        The estimates; those of other metrics and averages are ignored.
    metric
        The metric to test by.

    Returns
    -------
    Slices
        The slices that survive, the worst first, and what was looked at.
    """
    own = [e for e in results if e.metric == metric and e.slice and e.average is None]
    families: dict[tuple[object, ...], list[Estimate]] = {}
    few = bare = one_sided = 0
    for e in own:
        if e.value is None:
            one_sided += 1
        elif e.low is None or e.high is None or not all(map(math.isfinite, (e.value, e.low, e.high))):
            bare += 1
        elif _rare(e) < FEW:
            few += 1
        else:
            families.setdefault((tuple(e.run.items()), tuple(e.slice)), []).append(e)
    pairs = [(e, test) for family in families.values() for e, test in zip(family, _tests(family), strict=False)]
    adjusted = holm([test.p for _, test in pairs]) if pairs else []
    level = level_of(pairs[0][0]) if pairs else 0.95
    weak = [
        Weak(e, test, p)
        for (e, test), p in zip(pairs, adjusted, strict=True)
        if p < 1.0 - level and test.is_above == (e.best == "low")
    ]
    weak.sort(key=lambda w: -w.test.shrunken if w.e.best == "low" else w.test.shrunken)
    columns = tuple(dict.fromkeys(" × ".join(e.slice) for e, _ in pairs))
    worst = max((e for e, _ in pairs), key=_badness, default=None)
    return Slices(tuple(weak), len(pairs), columns, few, bare, one_sided, worst)


def _badness(e: Estimate) -> float:
    value = e.value if e.value is not None else math.nan
    return value if e.best == "low" else -value


def _rare(e: Estimate) -> int:
    """Return the number of trials of the rarer class; for figures over one class, those of that class."""
    n = int(e.of) if e.of is not None else min(e.n_positive, e.n - e.n_positive)
    return n if n else e.n


def _figure(e: Estimate) -> Figure:
    assert e.value is not None and e.low is not None and e.high is not None
    return Figure(e.value, e.low, e.high, _rare(e))


def _tests(family: Sequence[Estimate]) -> list[Tested]:
    first = family[0]
    return against_others([_figure(e) for e in family], level=level_of(first), bounded=_is_bounded(first.metric))


def _is_bounded(metric: str) -> bool:
    try:
        return find_metric(parse(metric).name).range == (0.0, 1.0)
    except UsageError:
        return is_share(metric)


def level_of(e: Estimate) -> float:
    """Return the level of an estimate's interval, as its method records it; 0.95 if it does not."""
    for part in (e.method or "").replace(" ", ",").split(","):
        try:
            if 0.5 <= (found := float(part)) < 1.0:
                return found
        except ValueError:
            continue
    return 0.95


def shifted(results: Sequence[Estimate], wholes: Sequence[Estimate], metric: str) -> list[Line]:
    """Return groupings whose slices are all better than the whole: scores have a different meaning in each slice."""
    found = []
    for whole in (e for e in wholes if e.metric == metric and e.low is not None and e.high is not None):
        own = [
            e for e in results if e.metric == metric and dict(e.run) == dict(whole.run) and e.slice and not e.average
        ]
        for names in dict.fromkeys(tuple(e.slice) for e in own if len(e.slice) == 1):
            slices = [e for e in own if tuple(e.slice) == names and e.low is not None and _rare(e) >= FEW]
            test = shift(_figure(whole), [_figure(e) for e in slices], [e.n for e in slices], level=level_of(whole))
            if test is None or test.p >= 1.0 - level_of(whole) or not _is_material(test.whole, test.within, whole):
                continue
            values = sorted(e.value for e in slices if e.value is not None)
            found.append(
                Line(
                    FAILED,
                    f"{_who(whole)}Scores shift between {names[0]}s: {explain(metric).title} over all trials is {told(whole)}, "
                    f"within each {names[0]} {_round(values[0], whole)} to {_round(values[-1], whole)} (mean "
                    f"{_round(test.within, whole)}; p {p_text(test.p)}). One threshold does not fit all of them.",
                    short=f"scores shift between {names[0]}s",
                )
            )
    return found


def _is_material(whole: float, within: float, e: Estimate) -> bool:
    """Say whether the whole is worse than its slices by more than a small amount."""
    if e.best == "low":
        return whole > within * (1 + MATERIAL)
    return (1 - whole) > (1 - within) * (1 + MATERIAL) if _is_bounded(e.metric) else whole < within * (1 - MATERIAL)


def _fails(results: Sequence[Estimate], wholes: Sequence[Estimate], primary: str) -> list[Line]:
    metric = _sliced_metric(results, primary)
    lines = _gaps(results, metric or primary)
    if metric is None:
        return [*lines, Line(OPEN, "Slices not checked: none were measured; add --by COLUMN.")]
    found = weak_slices(results, metric)
    lines += shifted(results, wholes, metric)
    weak_in: dict[str, list[Weak]] = {}
    for w in found.weak:
        weak_in.setdefault(w.where, []).append(w)
    n_runs = len({_run_of(e) for e in results if e.slice})
    if n_runs > 2:
        ordered = sorted(weak_in.items(), key=lambda pair: -len(pair[1]))
        said = [
            Line(FAILED, f"{where} is worse than the others in {len(own)} of {n_runs} runs.", short=f"weak on {where}")
            for where, own in ordered
        ]
    else:
        said = [Line(FAILED, f"{_who(w.e)}{w}", short=f"{_who(w.e)}weak on {w.where}") for w in found.weak]
    lines += said[:MOST]
    if len(said) > MOST:
        left = len(said) - MOST
        rest = "1 more slice is worse" if left == 1 else f"{left} more slices are worse"
        lines.append(Line(FAILED, f"{rest} than the others."))
    return [*lines, *_looked_at(found, metric, bool(said))]


def _looked_at(found: Slices, metric: str, any_weak: bool) -> list[Line]:
    """Say what was tested, so that silence is never taken as a good result."""
    left = [
        f"{found.few} with fewer than {FEW} trials of a class" * bool(found.few),
        f"{found.bare} without an interval" * bool(found.bare),
        f"{found.one_sided} undefined" * bool(found.one_sided),
    ]
    rest = f" Not tested: {', '.join(filter(None, left))}." if any(left) else ""
    if not found.tested:
        why = "there are fewer than three slices with an interval" if not found.bare else "the slices have no intervals"
        return [Line(OPEN, f"Slices not tested: {why}; add --bootstrap 1000.{rest}")]
    what = f"{found.tested} slices of {', '.join(found.columns)} tested by {explain(metric).title}, corrected together."
    if any_weak:
        return [Line(OPEN, f"{what}{rest}")] if rest else []
    seen = ""
    if found.worst is not None and found.worst.value is not None:
        where = ", ".join(f"{k} {v}" for k, v in found.worst.slice.items())
        seen = f" The worst-looking, {where} at {told(found.worst)}, is within what chance gives among so many."
    return [Line(PASSED, f"No slice was shown to be worse than the others: {what}{seen}{rest}")]


def _sliced_metric(results: Sequence[Estimate], primary: str) -> str | None:
    """Return the metric for testing slices: the primary one if it has slices with intervals, else the first."""
    sliced = [e for e in results if e.slice and e.average is None]
    with_ends = list(dict.fromkeys(e.metric for e in sliced if e.low is not None))
    for metrics in (with_ends, list(dict.fromkeys(e.metric for e in sliced))):
        if metrics:
            return primary if primary in metrics else metrics[0]
    return None


def _gaps(results: Sequence[Estimate], metric: str) -> list[Line]:
    """Return gaps to unseen domains whose interval is on the bad side of zero."""
    found = []
    for e in (e for e in results if e.average == "gap" and e.metric == metric):
        if e.value is None or e.low is None or e.high is None:
            continue
        if e.low > 0 if e.best == "low" else e.high < 0:
            domain = ", ".join(f"{k}: {v}" for k, v in e.slice.items())
            title = explain(e.metric).title.lower()
            text = f"{_who(e)}Worse outside the known domain: {title} {_signed(e)} ({domain})."
            found.append(Line(FAILED, text, short=f"{_who(e)}worse outside the known domain"))
    return found[:MOST]


def _who(e: Estimate) -> str:
    return f"{_run_of(e)}: " if e.run else ""


def _run_of(e: Estimate) -> str:
    return ", ".join(e.run.values())


def _signed(e: Estimate) -> str:
    """Format a difference: for shares in percentage points, because per cent would be ambiguous."""
    made = shown(e)
    value, ends = (text.removesuffix(PER_CENT) for text in (made.value, made.interval))
    unit = " percentage points" if value != made.value else ""
    return f"{'+' if e.value is not None and e.value > 0 else ''}{value}{unit} {ends}".strip()


# --- can I trust it? --------------------------------------------------------------------------------------------------


def checks(results: Results, wholes: Sequence[Estimate]) -> tuple[list[Line], list[str]]:
    """Return the list of checks, and the warnings that no check covers."""
    signatures = [parts for line in results.signature.splitlines() if (parts := _parts(line)) is not None]
    left = [w for w in results.warnings if code_of(w) not in (UNUSED, UNDIRECTED, MIXED)]

    def warned(*words: str) -> list[str]:
        found = [w for w in left if any(word in w for word in words)]
        left[:] = [w for w in left if w not in found]
        return found

    lines = [
        _direction(warned("REVERSED"), [w for w in results.warnings if code_of(w) == UNDIRECTED], wholes),
        _informative(warned("every score is", "beyond 2^53", "ties matter", "tied at the ends"), wholes),
        _sizes(wholes),
        _independent(signatures, wholes, [w for w in results.warnings if code_of(w) == UNUSED]),
        _thresholds(signatures, warned("optimistic", "same data")),
        *_calibrated(wholes),
        _complete(signatures, results),
        *(Line(FAILED, str(w), "conditions") for w in results.warnings if code_of(w) == MIXED),
        _simulated(warned("simulated")),
        _provenance(signatures),
    ]
    lines += [Line(FAILED, text, "validity") for text in warned(*LOUD)]
    return [line for line in lines if line is not None], left


def _parts(line: str) -> dict[str, str] | None:
    try:
        return read_signature(line)
    except UsageError:
        return None


def _direction(reversed_: list[str], undirected: list[str], wholes: Sequence[Estimate]) -> Line | None:
    name = "direction"
    if reversed_:
        return Line(FAILED, reversed_[0], name)
    if undirected:
        return Line(OPEN, undirected[0], name)
    ranked = [e for e in wholes if parse(e.metric).name in ("roc_auc", "eer", "min_dcf", "average_precision")]
    return Line(PASSED, "Higher scores go with the positive class.", name) if ranked else None


def _informative(found: list[str], wholes: Sequence[Estimate]) -> Line | None:
    name = "scores"
    if found:
        return Line(FAILED, found[0], name)
    if not any(parse(e.metric).name in ("roc_auc", "eer", "min_dcf") for e in wholes):
        return None
    return Line(PASSED, "Scores separate trials: no ties that change a figure.", name)


def _sizes(wholes: Sequence[Estimate]) -> Line | None:
    sized = [(min(e.n_positive, e.n - e.n_positive), True) if _is_labelled(e) else (e.n, False) for e in wholes if e.n]
    if not sized:
        return None
    rare, of_class = min(sized)
    text = f"The rarer class has {rare:,} trials" if of_class else f"There are {rare:,} trials"
    if rare < ENOUGH:
        return Line(FAILED, f"{text}: fewer than {ENOUGH} are too few for a reliable figure.", "size")
    return Line(PASSED, f"{text}.", "size")


def _is_labelled(e: Estimate) -> bool:
    """Say whether a figure depends on which trials are positive; shares of changed records do not."""
    try:
        return "label" in find_metric(parse(e.metric).name).columns
    except UsageError:
        return True


def _independent(signatures: Sequence[Mapping[str, str]], wholes: Sequence[Estimate], unused: Sequence[str]) -> Line:
    name = "independence"
    if unused:
        return Line(FAILED, unused[0], name)
    if any("items repeat" in (e.note or "") for e in wholes):
        return Line(FAILED, "Items repeat and were not drawn as wholes: intervals would be too narrow.", name)
    units = {part.split("unit=")[1].split(",")[0] for s in signatures if "unit=" in (part := s.get("boot", ""))}
    if units:
        return Line(PASSED, f"Intervals draw whole {', '.join(sorted(units))}s.", name)
    if not any(e.low is not None for e in wholes):
        return Line(FAILED, "No figure has an interval; add --bootstrap 1000.", name)
    return Line(OPEN, "Trials were taken to be independent; name --unit if speakers, sources or items repeat.", name)


def _thresholds(signatures: Sequence[Mapping[str, str]], warned: list[str]) -> Line | None:
    name = "threshold"
    if warned:
        return Line(FAILED, warned[0], name)
    found = list(dict.fromkeys(s["threshold"] for s in signatures if "threshold" in s))
    if not found:
        return None
    bad = [t for t in found if "optimistic" in t or "this very data" in t]
    return Line(FAILED if bad else PASSED, f"Decided at {', '.join((bad or found)[:MOST])}.", name)


def _calibrated(wholes: Sequence[Estimate]) -> list[Line]:
    """Say what miscalibration costs if costs were measured; otherwise that it was not checked."""
    by_run: dict[tuple[tuple[str, str], ...], dict[str, Estimate]] = {}
    for e in wholes:
        by_run.setdefault(tuple(e.run.items()), {})[parse(e.metric).name] = e
    pairs = [(own["min_dcf"], own["act_dcf"]) for own in by_run.values() if {"min_dcf", "act_dcf"} <= set(own)]
    known = [(a, b) for a, b in pairs if a.value and b.value is not None]
    stated = [(own["ece"], own["ece_by_chance"]) for own in by_run.values() if {"ece", "ece_by_chance"} <= set(own)]
    if stated and not known:
        return _stated(stated)
    if not known:
        return [Line(OPEN, "No figure of calibration was measured.", "calibration")]
    bad = []
    for least, actual in known:
        assert least.value is not None and actual.value is not None
        sure = actual.low is None or least.high is None or actual.low > least.high
        if actual.value - least.value > MISCALIBRATED * least.value and sure:
            digits = min(places([actual]), places([least]))
            cost = f"{figure(actual.value, digits)} {interval(actual, digits)}".strip()
            best = figure(least.value, digits)
            text = f"Decisions by these scores cost {cost}, those at the best threshold {best}"
            bad.append(f"{_who(actual)}{text}; calibrate on a development set.")
    if not bad:
        return [
            Line(
                PASSED, "Decisions by these scores cost no more than a tenth above the best threshold's.", "calibration"
            )
        ]
    more = [f"So do {len(bad) - 1} more runs."] if len(bad) > 1 else []
    return [Line(FAILED, " ".join([bad[0], *more]), "calibration")]


def _stated(pairs: Sequence[tuple[Estimate, Estimate]]) -> list[Line]:
    """Say whether the calibration error of stated confidences is larger than chance gives a calibrated detector."""
    sure = [(a, b) for a, b in pairs if a.value is not None and b.value is not None]
    bad = [f"{_who(a)}{a.value:.3f}, by chance at most {b.value:.3f}" for a, b in sure if a.value > b.value]  # type: ignore[operator]
    if not sure:
        return [Line(OPEN, "The calibration error of confidences is undefined.", "calibration")]
    if bad:
        return [
            Line(FAILED, f"Stated confidences are off: expected calibration error {'; '.join(bad)}.", "calibration")
        ]
    return [Line(PASSED, "Stated confidences are off by no more than chance explains.", "calibration")]


def _complete(signatures: Sequence[Mapping[str, str]], results: Iterable[Estimate]) -> Line:
    """Say whether every question was answered in every run; what was left out is counted."""
    name = "completeness"
    failed = max((e.n_failed for e in results if not e.slice), default=0)
    there = dict.fromkeys(s["complete"] for s in signatures if "complete" in s)
    said = [c for s in signatures for c in s.get("choices", "").split("+") if c.startswith(_LEFT_OUT)]
    said += [f"left-out:{s['left-out']}" for s in signatures if "left-out" in s]
    if failed or said or there:
        parts = [f"{int(n):,} of {int(of):,} are there" for n, of in (share.split("/") for share in there)]
        parts += [f"{failed:,} calls failed" * bool(failed), *dict.fromkeys(said)]
        return Line(FAILED, f"Trials are missing: {', '.join(filter(None, parts))}.", name)
    if not signatures:
        return Line(OPEN, "No signature says whether trials are missing.", name)
    return Line(PASSED, "No trial is missing and no call failed.", name)


_LEFT_OUT: Final = ("failed(", "allow-missing", "missing", "on-nan", "nan", "drop", "skip", "unlisted")


def _simulated(warned: list[str]) -> Line:
    if warned:
        return Line(FAILED, warned[0], "data")
    return Line(OPEN, "Nothing says whether the data are real or simulated, or how they were collected.", "data")


def _provenance(signatures: Sequence[Mapping[str, str]]) -> Line:
    if signatures and all("data" in s or "a" in s or "runs" in s for s in signatures):
        return Line(
            PASSED, "Data and settings are pinned by the signature; `hitmiss verify` recomputes it.", "provenance"
        )
    return Line(OPEN, "These results carry no signature with a digest of their data.", "provenance")


# --- put together -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Beside:
    """What a run was compared with besides chance: other runs, the limits of a gate; and the parts of a triage."""

    compared: Comparison | Ranking | None = None
    gate: tuple[GateCheck, ...] = ()
    asides: tuple[Asides, ...] = ()


def assess(results: Results, primary: str = "", *, beside: Beside | None = None) -> Assessment:
    """Return the conclusions that some results allow.

    Parameters
    ----------
    results
        The figures of one run, or of several.
    primary
        The metric that counts most; by default the first that was measured.
    beside
        A comparison or the checks of a gate, where there are some.

    Returns
    -------
    Assessment
        The conclusions, each with the test on which it is based.

    Examples
    --------
    >>> coin = Results((Estimate("eer", 0.498, 0.478, 0.522, n=2000, n_positive=1000),))
    >>> assess(coin).verdict
    'Not shown to be better than chance.'
    """
    wholes = wholes_of(results)
    if not wholes and any(e.metric in DRIFTS for e in results):
        return _assess_drift(results)
    chief = primary or (wholes[0].metric if wholes else "")
    good = [*_beside(beside, chief), *_good(wholes, chief)] if wholes else _beside(beside, chief)
    fails = _fails(list(results), wholes, chief)
    trust, notes = checks(results, wholes)
    for asides in beside.asides if beside is not None else ():
        good, fails = (
            [*_with_people(asides.people, "accuracy", good=True), *good],
            [
                *_with_people(asides.people, "fake_slip_rate", good=False),
                *_with_people(asides.people, "real_false_flag_rate", good=False),
                *fails,
            ],
        )
        trust = [_no_calls_lost(line, asides) for line in trust] + _repetition(asides) + _agreement(asides.people)
    return Assessment(_verdict(good, fails, trust), tuple(good), tuple(fails), tuple(trust), tuple(notes))


def _with_people(work: Teamwork | None, metric: str, *, good: bool) -> list[Line]:
    """Say what people change in a figure of each run: better or worse where the two intervals do not overlap."""
    from hitmiss.protocols.triage import repeats_of
    from hitmiss.verdicts.people import SYSTEM, TOGETHER, WHO

    whole = (
        {tuple(e.run.items()): e for e in repeats_of(work.figures) if e.metric == metric} if work is not None else {}
    )
    found = []
    for run, alone in whole.items():
        named = dict(run)
        both = whole.get(tuple({**named, WHO: TOGETHER}.items())) if named.get(WHO) == SYSTEM else None
        if both is None or None in (alone.low, alone.high, both.low, both.high):
            continue
        assert alone.low is not None and alone.high is not None and both.low is not None and both.high is not None
        better = both.high < alone.low if alone.best == "low" else both.low > alone.high
        worse = both.low > alone.high if alone.best == "low" else both.high < alone.low
        who = "|".join(v for k, v in run if k != WHO)
        title = explain(metric).title
        said = f"{title} {told(both)} together, {told(alone)} by the system alone{f' ({who})' if who else ''}."
        if good:
            status, head = (PASSED, "Better with people") if better else (OPEN, "No gain from people was shown")
            found.append(Line(FAILED, f"Worse with people: {said}") if worse else Line(status, f"{head}: {said}"))
        elif worse:
            found.append(Line(FAILED, f"Worse with people: {said}", short=f"people raise the {title.lower()}"))
    return found


ALPHA: Final = 0.667
"""Krippendorff's alpha below which, by his own rule, no conclusion should be based on people's answers."""


def _agreement(work: Teamwork | None) -> list[Line]:
    if work is None:
        return []
    a, name = work.agreement, "agreement of people"
    if a.alpha is None or a.low is None or a.high is None:
        what = "is undefined" if a.alpha is None else f"is {a.alpha:.2f}, without an interval"
        return [Line(OPEN, f"Krippendorff's alpha {what}: {a.note or 'too few answers'}.", name)]
    said = f"Krippendorff's alpha {a.alpha:.2f} [{a.low:.2f}, {a.high:.2f}] over {a.n_items:,} items"
    if a.low >= ALPHA:
        return [Line(PASSED, f"{said}, above {ALPHA:g}.", name)]
    if a.high < ALPHA:
        return [Line(FAILED, f"{said}: below {ALPHA:g} answers of people do not support a conclusion.", name)]
    return [Line(OPEN, f"{said}; whether it is above {ALPHA:g} was not shown.", name)]


def _no_calls_lost(line: Line, asides: Asides) -> Line:
    """Fail the check of completeness if calls of a triage failed: its figures count them, so no row is missing."""
    failed = sum(int(c.counts.failed_positive + c.counts.failed_negative) for c in asides.confusions)
    if line.name != "completeness" or line.status == FAILED or not failed:
        return line
    return Line(FAILED, f"{failed:,} calls failed; they count as wrong.", line.name)


def _repetition(asides: Asides) -> list[Line]:
    """Say how often verdicts flip between trials, if items were asked more than once."""
    own = [e for e in asides.flips if e.metric == "flip_rate" and e.value is not None]
    if not own:
        return [Line(OPEN, "No item was found to be asked again: how far verdicts flip is not known.", "repetition")]
    said = "; ".join(f"{_who(e)}{told(e)}" for e in own)
    return [Line(PASSED, f"Items were asked again; another verdict came for {said} of them.", "repetition")]


DRIFTS: Final = ("far_drift", "frr_drift")
"""How far an error rate at a fixed threshold moves from that of unchanged trials."""


def _assess_drift(results: Results) -> Assessment:
    """Say how manipulations change error rates at a fixed threshold: each drift tested against 0, corrected for all."""
    own = [
        e for e in results if e.metric in DRIFTS and e.value is not None and e.low is not None and e.high is not None
    ]
    tested = [(e, p) for e in own if (p := _p_of_zero(e)) is not None]
    adjusted = holm([p for _, p in tested]) if tested else []
    level = level_of(own[0]) if own else 0.95
    worse = [
        (e, p)
        for (e, _), p in zip(tested, adjusted, strict=True)
        if p < 1.0 - level and e.value is not None and e.value > 0
    ]
    worse.sort(key=lambda pair: -(pair[0].value or 0.0))
    lines = [
        Line(
            FAILED,
            f"{_cell(e)}: {NAMES_OF_DRIFT[e.metric]} {_points(e)} against untouched trials (adjusted p {p_text(p)}).",
            short=f"worse under {_cell(e)}",
        )
        for e, p in worse
    ]
    conditions = {tuple(e.slice.items()) for e, _ in tested}
    what = f"{len(conditions)} conditions tested, both error rates, corrected together."
    if not tested:
        good = Line(OPEN, "Drift not tested: no condition has an interval; add --bootstrap 1000.")
    elif worse:
        n = len({tuple(e.slice.items()) for e, _ in worse})
        good = Line(FAILED, f"Errors grow under {n} of {len(conditions)} conditions: {what}")
    else:
        good = Line(PASSED, f"No condition was shown to raise an error rate: {what}")
    trust, notes = checks(results, [e for e in results if 0 < e.n_positive < e.n])
    left = [Line(FAILED, f"{len(lines) - MOST} more error rates grow.")] if len(lines) > MOST else []
    fails = [*lines[:MOST], *left]
    return Assessment(_verdict([good], fails, trust), (good,), tuple(fails), tuple(trust), tuple(notes))


NAMES_OF_DRIFT: Final = {
    "far_drift": "the false-acceptance rate moves by",
    "frr_drift": "the false-rejection rate moves by",
}


def _p_of_zero(e: Estimate) -> float | None:
    """Return the two-sided p value of a zero difference, from its interval's half width; None without a width."""
    assert e.value is not None and e.low is not None and e.high is not None
    width = (e.high - e.low) / 2
    if not width > 0 or not math.isfinite(width):
        return None
    z = abs(e.value) / width * NormalDist().inv_cdf(0.5 + level_of(e) / 2)
    return math.erfc(z / math.sqrt(2.0))


def _points(e: Estimate) -> str:
    """Format a difference of shares in percentage points with its interval."""
    digits = places([e], 100.0)
    sign = "+" if e.value is not None and e.value > 0 else ""
    return f"{sign}{figure(e.value, digits, 100.0)} percentage points {interval(e, digits, 100.0)}"


def _cell(e: Estimate) -> str:
    return ", ".join(f"{k} {v}" for k, v in e.slice.items())


def wholes_of(results: Results) -> list[Estimate]:
    """Return the figures over all trials of each run; for repeated runs, the mean over the repetitions."""
    own = [e for e in results if not e.slice]
    means = [e for e in own if e.average == "mean"]
    return means or [e for e in own if e.average is None]


def assess_comparison(compared: Comparison | Ranking, primary: str = "") -> Assessment:
    """Return the answers of a comparison alone: which run is better, and where."""
    good = _beside(Beside(compared), primary)
    fails = _compared_slices(compared)
    signature = _parts(compared.signature.splitlines()[0]) if compared.signature else None
    known = [signature] if signature is not None else []
    loud = [Line(FAILED, w, "validity") for w in compared.warnings if any(word in w for word in (*LOUD, "cannot show"))]
    trust = [*loud, _paired_units(known), *_all_pairs(known), _provenance(known)]
    notes = tuple(w for w in compared.warnings if not any(line.text == w for line in loud))
    return Assessment(_verdict(good, fails, trust), tuple(good), tuple(fails), tuple(trust), notes)


def assess_gate(checked: Sequence[GateCheck], warnings: Sequence[str] = ()) -> Assessment:
    """Return the answers of a gate: each limit, kept or broken."""
    good = [
        Line(PASSED if c.passed else FAILED, f"{c.figure}: {c.reason}; the rule fails where {c.rule}.") for c in checked
    ]
    broken = sum(not c.passed for c in checked)
    verdict = f"{broken} of {len(checked)} rules broken." if broken else f"All {len(checked)} rules kept."
    return Assessment(verdict, tuple(good), notes=tuple(warnings))


def _all_pairs(known: Sequence[Mapping[str, str]]) -> list[Line]:
    """Fail the check of completeness if pairs are missing or were left out."""
    line = _complete(known, ())
    return [line] if line.status == FAILED else []


def _paired_units(known: Sequence[Mapping[str, str]]) -> Line:
    units = {part.split("unit=")[1].split(",")[0] for s in known if "unit=" in (part := s.get("boot", ""))}
    if units:
        return Line(PASSED, f"Pairs were drawn by {', '.join(sorted(units))}.", "independence")
    return Line(OPEN, "Pairs were taken to be independent; name --unit if speakers or items repeat.", "independence")


def _beside(beside: Beside | None, primary: str) -> list[Line]:
    if beside is None:
        return []
    lines = [Line(PASSED if c.passed else FAILED, f"{c.figure}: {c.reason} (gate: {c.rule})") for c in beside.gate]
    if beside.compared is None:
        return lines
    from hitmiss.engine.rank import Ranking  # not needed for one run

    if not isinstance(beside.compared, Ranking):
        lines += _two(beside.compared, primary)
    else:
        lines += _many(beside.compared, primary)
    return lines


def _two(compared: Comparison, primary: str) -> list[Line]:
    """Say which of two runs is better, by the primary metric and then by the others together."""
    from hitmiss.engine.compare import A_BETTER, B_BETTER

    whole = [d for d in compared if not d.slice and not d.average]
    chief = [d for d in whole if d.metric == primary] or whole[:1]
    lines = [_difference(d, compared.names) for d in chief]
    rest: dict[str, list[str]] = {}
    for d in whole:
        if d not in chief:
            rest.setdefault(d.verdict, []).append(d.metric)
    words = {A_BETTER: f"{compared.names[0]} better", B_BETTER: f"{compared.names[1]} better"}
    said = [f"{words.get(v, v)} by {', '.join(metrics)}" for v, metrics in rest.items()]
    return [*lines, *([Line(OPEN, f"Other metrics: {'; '.join(said)}.")] if said else [])]


def _difference(d: Difference, names: tuple[str, str]) -> Line:
    from hitmiss.engine.compare import A_BETTER, B_BETTER, IDENTICAL

    title = explain(d.metric).title
    if d.delta is None or d.a is None or d.b is None:
        return Line(OPEN, f"{title}: {d.note or 'undefined'}.")
    e = Estimate(d.metric, d.delta, d.low, d.high, best=d.best)
    said = f"{title} {_round(d.a, e)} and {_round(d.b, e)}, difference {_signed(e)}, p {p_text(d.p_adjusted)}."
    if d.verdict in (A_BETTER, B_BETTER):
        better, other = names if d.verdict == A_BETTER else names[::-1]
        return Line(PASSED, f"{better} does better than {other}: {said}")
    if d.verdict == IDENTICAL:
        return Line(OPEN, f"{names[0]} and {names[1]} are identical by {title}.")
    least = f" A true difference of {_round(d.mdd, e)} would have shown." if d.mdd is not None else ""
    return Line(OPEN, f"No difference between {names[0]} and {names[1]} was shown: {said}{least}")


def _many(ranked: Ranking, primary: str) -> list[Line]:
    """Return the best of many runs, and those that were not shown to differ from it."""
    whole = [s for s in ranked.standings if not s.slice and not s.average and s.value is not None]
    metric = primary if any(s.metric == primary for s in whole) else (whole[0].metric if whole else "")
    own = [s for s in whole if s.metric == metric]
    if not own:
        return []
    best = own[0]
    level = [s for s in own[1:] if set(s.letters) & set(best.letters)]
    assert best.value is not None
    e = Estimate(metric, best.value, best=best.best)
    head = f"{best.run} has the best {explain(metric).title}, {_round(best.value, e)}"
    if not level:
        return [Line(PASSED, f"{head}, and is shown to be better than each of the other {len(own) - 1} runs.")]
    if len(level) == len(own) - 1:
        return [Line(OPEN, f"{head}, but no run was shown to differ from it.")]
    names = ", ".join(s.run for s in level[:MOST]) + (f" and {len(level) - MOST} more" if len(level) > MOST else "")
    return [
        Line(
            PASSED, f"{head}; not shown to differ from it: {names}. Better than the other {len(own) - 1 - len(level)}."
        )
    ]


def _compared_slices(compared: Comparison | Ranking) -> list[Line]:
    """Return slices where the order of two runs was shown to be reversed, or shown at all."""
    from hitmiss.engine.compare import A_BETTER, B_BETTER
    from hitmiss.engine.rank import Ranking

    if isinstance(compared, Ranking):
        return []
    sliced = [d for d in compared if d.slice and not d.average]
    if not sliced:
        return []
    lines = []
    for name, verdict in zip(compared.names, (A_BETTER, B_BETTER), strict=True):
        own = [d for d in sliced if d.verdict == verdict]
        if own:
            where = ", ".join(dict.fromkeys(", ".join(d.slice.values()) for d in own[:MOST]))
            more = f" and {len(own) - MOST} more" if len(own) > MOST else ""
            lines.append(Line(PASSED, f"{name} does better in {len(own)} of {len(sliced)} slices ({where}{more})."))
    open_ = sum(d.verdict not in (A_BETTER, B_BETTER) for d in sliced)
    return [*lines, *([Line(OPEN, f"In {open_} of {len(sliced)} slices no difference was shown.")] if open_ else [])]


def _verdict(good: Sequence[Line], fails: Sequence[Line], trust: Sequence[Line]) -> str:
    """Return one sentence: the first answer in short, what fails, and which checks failed."""
    said = []
    first = next((line for line in good if line.status == FAILED), good[0] if good else None)
    if first is not None:
        said.append(first.text.split(": ")[0].rstrip("."))
    broken = list(
        dict.fromkeys(line.short for line in fails if line.status == FAILED and line.short and ": " not in line.short)
    )
    if first is None and fails and not broken:  # nothing was measured over all trials
        said.append(fails[0].text.rstrip("."))
    if broken and (first is None or first.status != FAILED):
        more = f" (and {len(broken) - 1} more)" if len(broken) > 1 else ""
        said.append(f"but {broken[0]}{more}" if said else f"{broken[0]}{more}")
    bad = [line.name for line in trust if line.status == FAILED and line.name]
    text = ", ".join(said)
    if bad:
        text = f"{text}; failed checks: {', '.join(dict.fromkeys(bad))}" if text else f"Failed checks: {', '.join(bad)}"
    return f"{text}."


def assessed(results: Results, primary: str = "") -> Assessment:
    """Return what results allow to conclude, whether they are of detectors or of attacks on one."""
    if not is_campaign(results):
        return assess(results, primary)
    from hitmiss.reports.campaigns import assess_attacks

    return assess_attacks(results)
