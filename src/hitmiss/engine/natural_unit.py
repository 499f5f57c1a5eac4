"""The natural unit of trials (speakers, patients), and what drawing it would change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from hitmiss.core.columns import find_column
from hitmiss.core.design import names_of
from hitmiss.core.finding import Remark, has_code
from hitmiss.core.results import Estimate
from hitmiss.core.sampling import SamplingPlan
from hitmiss.core.text_codes import is_text
from hitmiss.engine.columns import Sample
from hitmiss.engine.draws import Draws
from hitmiss.engine.measurement import Measurement
from hitmiss.stats.forms.base import Form

USUAL_UNITS: Final = ("speaker", "patient", "patient_id", "subject", "author")
"""Columns that usually name units with several trials; used if no protocol lists its own."""
HINTED: Final = 100
"""Number of replicates from which a warning estimates roughly how much wider an interval would be."""
HINTED_METRICS: Final = 4
NOTABLE: Final = 1.1
"""Intervals that would be wider by no more than this over units speak for independent trials."""


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


def unused_unit(work: Measurement, whole: Sample, found: Sequence[Estimate]) -> list[str]:
    """Say what resampling the natural unit would change, if trials were resampled although the data have one."""
    plan, trials = work.draws.plan, work.columns.trials
    if plan.unit or not plan.bootstrap or plan.method == "bca" or not trials.has_rows:
        return []
    unit = natural_unit(whole, work.protocol.natural or USUAL_UNITS)
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
    return [Remark.of("unit-not-used", name=name, unit=option, ratios=ratios_said(ratios), factors=ratios)]


def ratios_said(ratios: Mapping[str, float]) -> str:
    """Say how many times as wide each interval would be.

    >>> ratios_said({"eer": 2.91})
    'eer 2.9'
    """
    return ", ".join(f"{metric} {ratio:.1f}" for metric, ratio in ratios.items())


def undrawn(plan: SamplingPlan) -> list[str]:
    """Warn about a unit that was asked for and is not resampled; repeated runs use items as units by themselves."""
    if plan.bootstrap or plan.unit in ((), ("item",)):
        return []
    return [
        f"no intervals: the unit {' × '.join(plan.unit)} is resampled by a bootstrap, and none was requested (--bootstrap 1000)"
    ]
