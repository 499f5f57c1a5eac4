"""Metrics in words, and numbers with the digits that they deserve."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import median
from typing import Final

from hitmiss.core.errors import UsageError
from hitmiss.core.metric_spec import parse
from hitmiss.core.registry import find_metric, metric_of
from hitmiss.core.results import Estimate

PER_CENT: Final = "\u00a0%"
"""A space that keeps a word with its number at the end of a line."""
PLACES: Final = 4
"""Decimal places of a number that has no interval."""
MOST_PLACES: Final = 6
SHARES: Final = ("probe_accuracy", "probe_balanced_accuracy", "flip_rate", "hard_flip_rate")
"""Numbers beside metrics that are shares of trials: only shares are shown in per cent in a headline."""
WORDS: Final = {
    "far": ("False acceptance", "Share of the fakes accepted at the frozen threshold", "Best: low. Range: 0..1."),
    "frr": ("False rejection", "Share of the reals rejected at the frozen threshold", "Best: low. Range: 0..1."),
    "subgroup_auc": (
        "AUC within the identity",
        "AUC among the texts that mention an identity",
        "Best: high. Range: 0..1.",
    ),
    "bpsn_auc": (
        "BPSN AUC",
        "AUC of toxic texts without an identity against harmless ones with it: low if these score too high",
        "Best: high. Range: 0..1.",
    ),
    "bnsp_auc": (
        "BNSP AUC",
        "AUC of toxic texts with an identity against harmless ones without it: low if those score too low",
        "Best: high. Range: 0..1.",
    ),
    "ece_by_chance": (
        "Calibration error by chance",
        "What a calibrated detector with these confidences exceeds in one of twenty cases",
        "An ECE below it shows nothing.",
    ),
}
"""Numbers that are shown under their own names: title, short explanation, and further remarks."""


@dataclass(frozen=True)
class Entry:
    """A metric explained: its name in tables, its title, one sentence, the rest, and which direction is better."""

    name: str
    title: str
    gist: str
    text: str = ""
    best: str = ""


def explain(metric: str) -> Entry:
    """Explain a metric by its name in tables; for an unknown metric the name is the title.

    >>> explain("eer(ties=grouped)").title, explain("no_such_metric").title
    ('Equal error rate', 'no_such_metric')
    """
    if metric in WORDS:
        return Entry(metric, *WORDS[metric])
    entry = metric_of(metric)
    if entry is None:
        return Entry(metric, metric, "")
    return Entry(metric, entry.title, entry.gist, entry.text, entry.best)


def is_share(metric: str) -> bool:
    """Say whether a metric is a share of trials."""
    entry = None if metric in SHARES else metric_of(metric)
    return metric in SHARES or (entry is not None and entry.share)


def places(estimates: Iterable[Estimate], scale: float = 1.0) -> int:
    """Return how many decimal places numbers deserve: two significant digits of the half width of their interval.

    The median decides for a column, so that its numbers line up. Without intervals: four (two for percentages).

    >>> places([Estimate("eer", 0.07741, 0.0758, 0.0791)])
    4
    >>> places([Estimate("eer", 0.0774, 0.04, 0.12)]), places([Estimate("eer", 0.0774)])
    (3, 4)
    """
    halves = [scale * (e.high - e.low) / 2 for e in estimates if e.low is not None and e.high is not None]
    known = [half for half in halves if math.isfinite(half) and half > 0]
    if not known:
        return PLACES if scale == 1.0 else PLACES - 2
    return min(max(1 - math.floor(math.log10(median(known))), 0), MOST_PLACES)


def figure(value: float | None, digits: int, scale: float = 1.0) -> str:
    """Format a number with this many places; `–` if it is undefined.

    >>> figure(0.07741, 4), figure(None, 4), figure(0.07741, 2, 100), figure(-0.00001, 2)
    ('0.0774', '–', '7.74', '0.00')
    """
    if value is None:
        return "–"
    if not math.isfinite(value):
        return "∞" if value > 0 else "-∞"
    text = f"{scale * value:.{digits}f}"
    return text.removeprefix("-") if text.startswith("-") and not text.strip("-0.") else text


def per_cent(share: float, digits: int = 1) -> str:
    """Format a share in per cent.

    >>> per_cent(0.0774).replace("\u00a0", " ")
    '7.7 %'
    """
    return f"{100 * share:.{digits}f}{PER_CENT}"


def interval(e: Estimate, digits: int, scale: float = 1.0) -> str:
    """Format an interval, `[0.0758, 0.0791]`, or return an empty text."""
    if e.low is None or e.high is None:
        return ""
    return f"[{figure(e.low, digits, scale)}, {figure(e.high, digits, scale)}]"


def name_of(metric: str) -> str:
    """Return the name of a metric without its settings; a text that is no metric is its own name.

    >>> name_of("eer(ties=grouped)"), name_of("what is this?")
    ('eer', 'what is this?')
    """
    try:
        return parse(metric).name
    except UsageError:
        return metric


def is_bounded(metric: str) -> bool:
    """Say whether a metric lies between 0 and 1."""
    try:
        return find_metric(parse(metric).name).range == (0.0, 1.0)
    except UsageError:
        return is_share(metric)


@dataclass(frozen=True)
class Shown:
    """A number as a headline shows it."""

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


def format_estimate(e: Estimate) -> str:
    """Format a number with its interval for a sentence."""
    made = shown(e)
    return f"{made.value} {made.interval.removesuffix(PER_CENT)}".strip()


def p_text(p: float | None, draws: int | None = None) -> str:
    """Format a p value for tables. From so many draws nothing below 1 / (draws + 1) is stated.

    >>> p_text(0.0369), p_text(7.476e-59), p_text(0.0), p_text(1.0), p_text(None)
    ('0.0369', '7.5e-59', '<1e-300', '1', '–')
    >>> p_text(7.476e-59, 500), p_text(0.0369, 500)
    ('< 0.002 (500 draws)', '0.0369')
    """
    if p is None:
        return "–"
    if draws and p < 1.0 / (draws + 1):
        return f"< {_above(1.0 / (draws + 1))} ({draws:,} draws)"
    if p < 1e-300:
        return "<1e-300"
    return "1" if p == 1.0 else f"{p:.4f}" if p >= 0.0001 else f"{p:.1e}"


def _above(bound: float) -> str:
    """Format a bound with one significant digit, rounded up so that it still is one.

    >>> _above(1 / 501), _above(1 / 301), _above(1 / 1001)
    ('0.002', '0.004', '0.001')
    """
    places = -math.floor(math.log10(bound))
    return f"{math.ceil(bound * 10**places - 1e-9) / 10**places:g}"
