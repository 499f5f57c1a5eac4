"""Which metrics of a protocol trials allow: by their columns, the kind of their scores, their weights, and a verifier."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from hitmiss.core.metric_spec import parse
from hitmiss.core.protocol import Protocol
from hitmiss.core.registry import find_metric
from hitmiss.core.trials import Trials
from hitmiss.engine.prepare import with_protocol_settings
from hitmiss.engine.weighted import needs_whole_trials, one_by_one

Lack = Literal["column", "verifier", "kind", "weight"]
"""What keeps trials from having a metric: a column, the trials of a speaker verifier, another kind of scores, a weight."""


def lack_of(text: str, trials: Trials, protocol: Protocol | None = None) -> Lack | None:
    """Return what trials lack for a metric; None if they allow it.

    >>> trials = Trials.of([1, 0], [2.0, 1.0])
    >>> lack_of("eer", trials), lack_of("cllr", trials), lack_of("f1", trials)
    (None, 'kind', 'column')
    """
    (spec, metric), head = with_protocol_settings(text, protocol or Protocol()), trials.header
    settings = metric.settings(spec)
    if not all(column in trials.frame.columns for column in metric.columns):
        return "column"
    if head.brought is None and settings.get("asv") == "trials":
        return "verifier"
    if metric.kinds and head.score_kind not in metric.kinds:
        return "kind"
    return "weight" if head.weight is not None and needs_whole_trials(metric, settings) else None


def fitting(
    metrics: Sequence[str], trials: Trials, protocol: Protocol | None = None
) -> tuple[list[str], dict[str, Lack]]:
    """Split metrics into those that trials allow, and the others with what the trials lack."""
    found = {text: lack_of(text, trials, protocol) for text in metrics}
    return [text for text, lack in found.items() if lack is None], {t: lack for t, lack in found.items() if lack}


def comparable(protocol: Protocol, runs: Sequence[Trials]) -> tuple[str, ...]:
    """Return the metrics of a protocol that all runs allow."""
    return tuple(text for text in protocol.metrics if all(lack_of(text, t, protocol) is None for t in runs))


def left_out(lacking: Mapping[str, Lack], trials: Trials, protocol: Protocol | None = None) -> list[str]:
    """Return the warnings about metrics that these trials do not allow."""
    found = []
    if absent := [m for m, lack in lacking.items() if lack == "column"]:
        there = trials.frame.columns
        columns = sorted({c for m in absent for c in find_metric(parse(m).name).columns if c not in there})
        found.append(f"{', '.join(absent)} left out: there is no {' and no '.join(columns)}")
    if alone := [m for m, lack in lacking.items() if lack == "verifier"]:
        fix = "give the scores and the key of the speaker verifier, --asv and --asv-key"
        found.append(f"{' and '.join(alone)} left out: {fix}")
    if unfit := [m for m, lack in lacking.items() if lack == "kind"]:
        found.append(
            f"{' and '.join(unfit)} left out: they need natural-log likelihood ratios and these scores are declared "
            f"{trials.header.score_kind!r}; add --score-kind llr if they are LLRs, or --calibrate-on DEV to make them so"
        )
    for text in (m for m, lack in lacking.items() if lack == "weight"):
        spec, metric = with_protocol_settings(text, protocol or Protocol())
        found.append(f"{text} left out: it {one_by_one(metric.name, metric.settings(spec))}")
    return found
