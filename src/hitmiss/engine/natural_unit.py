"""The natural unit of trials (speakers, patients), and what drawing it would change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

import numpy as np
import polars as pl

from hitmiss.core.columns import find_column
from hitmiss.core.design import Design, names_of
from hitmiss.core.finding import Remark, has_code
from hitmiss.core.protocol import Protocol
from hitmiss.core.results import Estimate
from hitmiss.core.sampling import SamplingPlan
from hitmiss.core.text_codes import is_text
from hitmiss.core.trials import Trials
from hitmiss.engine.columns import Sample
from hitmiss.engine.draws import Draws
from hitmiss.engine.measurement import Measurement
from hitmiss.stats.enough_units import LEAST_EFFECTIVE, Sizes, effective_units, enough
from hitmiss.stats.forms.base import Form

USUAL_UNITS: Final = ("speaker", "patient", "patient_id", "subject", "author")
"""Columns that usually name units with several trials; used if no protocol lists its own."""
HINTED: Final = 100
"""Number of replicates from which a warning estimates roughly how much wider an interval would be."""
HINTED_METRICS: Final = 4
NOTABLE: Final = 1.1
"""Intervals that would be wider by no more than this over units speak for independent trials."""


def with_natural_unit(design: Design, trials: Trials) -> Design:
    """Return a design that names its units: those of the caller, or the natural ones of its protocol that trials have.

    They must be enough for an interval; otherwise trials are drawn one by one, and the check "independence" says so.
    """
    units = natural_units(trials, natural_candidates(design))
    found = next((unit for unit in units if _are_enough(trials, unit, design.level)), None)
    return design if found is None else replace(design, unit=found)


def natural_candidates(design: Design) -> list[tuple[str, ...]]:
    """Return the units that a design draws if the trials have them; none if it names its own, or draws nothing."""
    if design.unit or not design.bootstrap or design.interval == "bca" or design.stratify is not None:
        return []
    return [names_of(unit) for unit in design.rules.natural]


def natural_units(trials: Trials, candidates: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Return the units among candidates whose columns exist, vary, and have several trials per value."""
    return [names for names in candidates if all(_repeats(trials, name) for name in names)]


def usual_unit(trials: Trials, protocol: Protocol) -> tuple[str, ...]:
    """Return the unit that trials of a protocol, or of any kind, usually have; empty if there is none."""
    return next(iter(natural_units(trials, [names_of(unit) for unit in protocol.natural or USUAL_UNITS])), ())


def _repeats(trials: Trials, name: str) -> bool:
    """Return whether a text column has at least two values in trials, none of them blank, but fewer than questions."""
    own = find_column(name, trials.frame.columns)
    if own is None or not is_text(trials.frame[own].dtype):
        return False
    values = trials.frame[own].unique()
    runs = trials.frame.select(trials.header.runs).n_unique() if trials.header.runs else 1
    return 1 < len(values) < len(trials) / runs and not (values.cast(pl.String).str.strip_chars() == "").any()


def _are_enough(trials: Trials, unit: Sequence[str], level: float) -> bool:
    """Return whether there are as many units as an interval needs, each class apart (see `enough_units`)."""
    crossed = [_sizes(trials, trials.own(name)) for name in unit]
    several = [own[own > 0] for pair in crossed for own in pair if np.count_nonzero(own) > 1]
    return effective_units(*crossed) >= LEAST_EFFECTIVE and min(map(len, several), default=0) >= enough(level)


def _sizes(trials: Trials, column: str) -> Sizes:
    """Return how many positives and how many negatives each value of a column has."""
    codes = trials.frame[column].cast(pl.String).rank("dense").to_numpy().astype(np.int64) - 1
    is_positive, count, n = trials.label == 1, trials.size, int(codes.max(initial=-1)) + 1
    return (
        np.bincount(codes[is_positive], count[is_positive], n),
        np.bincount(codes[~is_positive], count[~is_positive], n),
    )


def unused_unit(work: Measurement, whole: Sample, found: Sequence[Estimate]) -> list[str]:
    """Say what resampling the natural unit would change, where trials are resampled although the data have one."""
    plan, trials = work.draws.plan, work.columns.trials
    if plan.method == "bca" or not trials.has_rows:
        return []
    unit = usual_unit(trials, work.protocol)
    cheap = [
        q for q in work.questions if q.metric.interval and (isinstance(q.form, Form) or q.form.kind == "decisions")
    ]
    if not unit or not cheap:
        return []
    drawn = replace(plan, unit=unit, bootstrap=HINTED, stratify=None)
    draws = Draws.prepare(drawn, work.columns, whole.rows)
    other = Measurement(work.columns, cheap[:HINTED_METRICS], draws, work.protocol)
    now = {e.metric: e for e in found if not e.slice and e.average is None and dict(e.run) == dict(whole.run)}
    name, option = " × ".join(unit), ",".join(unit)
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
        why = next((e.note for e in wider if has_code(e.note, "no-interval")), None)
        return [Remark.of("unit-not-used/no-interval", name=name, unit=option, why=why)] if why else []
    if max(ratios.values()) <= NOTABLE:
        return []  # units that change nothing fail no check
    return [Remark.of("unit-not-used", name=name, unit=option, ratios=ratios_text(ratios), factors=ratios)]


def ratios_text(ratios: Mapping[str, float]) -> str:
    """Say how many times as wide each interval would be.

    >>> ratios_text({"eer": 2.91})
    'eer 2.9'
    """
    return ", ".join(f"{metric} {ratio:.1f}" for metric, ratio in ratios.items())


def undrawn(plan: SamplingPlan) -> list[str]:
    """Warn about a unit that was asked for and is not resampled; repeated runs use items as units by themselves."""
    if plan.unit == ("item",):
        return []
    return [
        f"no intervals: the unit {' × '.join(plan.unit)} is resampled by a bootstrap, and none was requested (--bootstrap 1000)"
    ]
