"""Prepare a metric for trials: its settings, its form, and the columns and score kind that it needs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache

from hitmiss.core.classes import same_class
from hitmiss.core.errors import DataError, UnknownName, UsageError
from hitmiss.core.metric import Metric
from hitmiss.core.metric_spec import MetricSpec, Setting, parse
from hitmiss.core.protocol import Protocol
from hitmiss.core.registry import find_metric
from hitmiss.core.scale import ScoreScale
from hitmiss.core.trials import Trials
from hitmiss.engine.columns import OneClassColumns, Sample
from hitmiss.engine.prepared_metric import PreparedMetric
from hitmiss.engine.weighted import refuse_unweighted
from hitmiss.stats.forms.base import Functional
from hitmiss.stats.forms.trials import OfColumns, OfConfidences


def prepare_metric(metric: str | MetricSpec, trials: Trials, protocol: Protocol) -> PreparedMetric:
    """Prepare a metric for these trials: fill in the settings of the protocol and check the score kind."""
    spec, entry = with_protocol_settings(metric, protocol)
    settings = entry.settings(spec)
    stated = {*dict(spec.settings)} & {*entry.brought} - {"asv"}
    refuse_absent(spec.name, entry, trials)
    kind = trials.header.score_kind
    if "score" in entry.columns and entry.kinds and kind not in entry.kinds:
        raise DataError.of("wrong-score-kind", spec_name=spec.name, kinds=" or ".join(entry.kinds), kind=kind)
    if entry.positive is not None and not _takes(entry.positive, trials.header.positive):
        raise DataError.of(
            "wrong-positive", spec_name=spec.name, positive=entry.positive, positive_2=trials.header.positive
        )
    form = form_of(entry, inside(settings, trials.header.scale) if "score" in entry.columns else settings)
    question = PreparedMetric(display_text(metric, protocol), entry, settings, form)
    if settings.get("asv") in ("trials", "own") and trials.header.brought is None and not stated:
        raise UsageError.of("no-asv/rates", metric=spec.name)
    if entry.brought and not stated:
        one_class = OneClassColumns(protocol.negative_only, protocol.positive_only)
        question = with_brought(question, trials, one_class, {})
    if trials.header.weight is not None:
        refuse_unweighted(question)
    return question


def with_protocol_settings(metric: str | MetricSpec, protocol: Protocol) -> tuple[MetricSpec, Metric]:
    """Return a metric with the settings of the protocol filled in."""
    spec = parse(metric)
    entry = find_metric(spec.name)
    return MetricSpec.of(spec.name, **{**protocol.settings.get(spec.name, {}), **dict(spec.settings)}), entry


def display_text(metric: str | MetricSpec, protocol: Protocol) -> str:
    """Return a metric as it is called in tables: without settings that are usual, or those of the protocol."""
    spec, entry = with_protocol_settings(metric, protocol)
    usual = {**entry.defaults, **protocol.settings.get(spec.name, {})}
    return str(MetricSpec.of(spec.name, **{k: v for k, v in spec.settings if usual[k] != v}))


def with_brought(
    question: PreparedMetric, trials: Trials, one_class: OneClassColumns, slice: Mapping[str, str]
) -> PreparedMetric:
    """Return the metric with the settings that the trials bring for a slice; the same if they bring none."""
    brought = trials.header.brought
    if not question.metric.brought or brought is None:
        return question
    settings = {
        **question.settings,
        **brought.settings(slice, one_class.negative, one_class.positive, question.settings.get("asv")),
    }
    return replace(question, settings=settings, form=form_of(question.metric, settings), brings=True)


def prepared_for(question: PreparedMetric, sample: Sample) -> PreparedMetric:
    """Return the metric for a sample: in a slice, with the settings that the trials bring for it."""
    if not question.brings or not sample.slice:
        return question
    return with_brought(question, sample.columns.trials, sample.columns.one_class, sample.slice)


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
    if "confidence" in absent and trials.header.score_kind != "probability":
        raise UsageError.of("no-confidence/metric", name=name)
    if absent[0] == "decision":
        how = "decide at a threshold: --threshold 0.5, in Python hm.decide(trials, 0.5)"
        raise UsageError.of("no-decisions", name=name, how=how)
    own = sorted({*trials.frame.columns} - {"item", "target"})
    raise UnknownName(f"column that {name} needs", absent[0], own)


def form_of(entry: Metric, settings: Mapping[str, Setting]) -> Functional:
    """Return the form of a metric with its settings; equal requests give the same object, so it can be looked up."""
    if entry.form is not None:
        return _made(entry.form, tuple(sorted(settings.items())))
    if entry.judged is not None:
        return OfConfidences(entry.function, entry.columns, settings, judged=entry.judged)
    return OfColumns(entry.function, entry.columns, settings, one_by_one=entry.one_by_one)


@cache
def _made(form: Callable[..., object], settings: tuple[tuple[str, Setting], ...]) -> Functional:
    made = form(**dict(settings))
    if not isinstance(made, Functional):
        raise UsageError.of("bad-metric-form", name=type(made).__name__)
    return made


def _takes(wanted: str, positive: str) -> bool:
    """Return whether a metric's positive class is that of the trials; an undeclared class (`positive`) is accepted."""
    return positive == "positive" or same_class(wanted, positive)
