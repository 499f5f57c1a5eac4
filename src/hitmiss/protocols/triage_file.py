"""The document's metrics file: `_meta`, then per `model|tools` each trial and a summary over trials."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import polars as pl

from hitmiss._version import __version__
from hitmiss.measuring.grouping import Columns, Sample, samples_of_runs
from hitmiss.metrics.confidence import binned, judged
from hitmiss.metrics.counts import (
    Counts,
    accuracy_of,
    balanced_accuracy_of,
    mcc_of,
    precision_of,
    recall_of,
    share,
    specificity_of,
)
from hitmiss.metrics.triage import (
    abstain_rate_of,
    accuracy_answered_of,
    catch_of,
    coverage_fake_of,
    coverage_of,
    coverage_real_of,
    error_rate_of,
    f1_fake_of,
    f1_real_of,
    false_flag_of,
    pass_of,
    precision_real_of,
    slip_of,
)
from hitmiss.stats.binomial import wilson
from hitmiss.trials import Trials
from hitmiss.values import Rate

if TYPE_CHECKING:
    from hitmiss.protocols.triage import Triage

RATES: Final = {
    "accuracy": accuracy_of,
    "accuracy_answered": accuracy_answered_of,
    "coverage": coverage_of,
    "precision_fake": precision_of,
    "recall_fake": recall_of,
    "f1_fake": f1_fake_of,
    "precision_real": precision_real_of,
    "recall_real": specificity_of,
    "f1_real": f1_real_of,
    "balanced_accuracy": balanced_accuracy_of,
}
ANSWERED: Final = (
    "balanced_accuracy",
    "precision_fake",
    "recall_fake",
    "f1_fake",
    "precision_real",
    "recall_real",
    "f1_real",
)
"""Figures that the document also writes with `_answered`: they are over the answered trials anyway."""
LATER: Final = {
    "abstain_rate": abstain_rate_of,
    "abstain_rate_fake": lambda c: share(c.abstained_positive, c.n_positive),
    "abstain_rate_real": lambda c: share(c.abstained_negative, c.n_negative),
    "error_rate": error_rate_of,
    "coverage_fake": coverage_fake_of,
    "coverage_real": coverage_real_of,
    "fake_slip_rate": slip_of,
    "real_false_flag_rate": false_flag_of,
    "fake_catch_rate": catch_of,
    "real_pass_rate": pass_of,
}
HEADLINES: Final = (
    *(
        "accuracy",
        "accuracy_answered",
        "coverage",
        "balanced_accuracy",
        "balanced_accuracy_answered",
        "f1_fake",
        "f1_real",
    ),
    *("precision_fake", "recall_fake", "precision_real", "recall_real", "abstain_rate", "abstain_rate_fake"),
    *("abstain_rate_real", "coverage_fake", "coverage_real", "fake_slip_rate", "real_false_flag_rate"),
    *("fake_catch_rate", "real_pass_rate"),
)


def metrics_file(evaluation: Triage, undefined: str = "null", made_at: float | None = None) -> dict[str, Any]:
    """The metrics file as a mapping; `made_at` is the time to write as `generated_at_unix`."""
    trials = evaluation.trials
    found = documented(trials, undefined)
    groups: dict[str, dict[str, Any]] = {}
    for run, own in found.items():
        cell = dict(run)
        name = "|".join(cell.get(k, "-") for k in ("model", "tools"))
        groups.setdefault(name, {})[cell.get("trial", "0")] = own
    written = {name: {"per_trial": own, "summary": _summary(list(own.values()))} for name, own in groups.items()}
    return {"_meta": _meta(evaluation, made_at), **written}


def documented(trials: Trials, undefined: str = "null") -> dict[tuple[tuple[str, str], ...], dict[str, Any]]:
    """The documented metrics of every run and trial, in the document's order, then ours."""
    columns = Columns(trials)
    return {tuple(s.run.items()): _documented(s, undefined) for s in samples_of_runs(columns)}


def _documented(sample: Sample, undefined: str) -> dict[str, Any]:
    c, frame = sample.counts, sample.columns.trials.frame[sample.rows]
    first = {name: function(c) for name, function in RATES.items()}
    later = {name: function(c) for name, function in LATER.items()}
    shares: dict[str, Any] = {**first, **{f"{name}_answered": first[name] for name in ANSWERED}}
    means = _means(frame.filter(pl.col("decision").is_in([0, 1])))
    counts = {
        "abstain_count": c.abstained,
        "abstain_count_fake": c.abstained_positive,
        "abstain_count_real": c.abstained_negative,
        "error_count": c.failed,
    }
    return {
        "total": c.n,
        "correct": c.tp + c.tn,
        "answered": c.answered,
        **{name: _defined(value, undefined) for name, value in shares.items()},
        **{name: _defined(value, undefined) for name, value in means.items()},
        **counts,
        **{name: _defined(value, undefined) for name, value in later.items()},
        "confusion": {"tp": c.tp, "tn": c.tn, "fp": c.fp, "fn": c.fn},
        "support": {"real": c.n_negative, "fake": c.n_positive},
        **_ours(sample, c, frame, {**first, **later}, undefined),
    }


def _ours(sample: Sample, c: Counts, frame: pl.DataFrame, shares: Mapping[str, Any], undefined: str) -> dict[str, Any]:
    """What the document describes and its file lacks: MCC, unparsed verdicts, calibration, intervals."""
    found: dict[str, Any] = {"mcc": _defined(mcc_of(c), undefined)}
    if "unparsed" in frame.columns:
        found["unparsed_count"] = int(frame["unparsed"].sum())
    if "confidence" in frame.columns:
        tally = judged(sample.label, sample.columns.named("decision")[sample.rows], frame["confidence"].to_numpy())
        found |= {name: _defined(value, undefined) for name, value in _calibration(tally).items()}
    rates = {name: value for name, value in shares.items() if isinstance(value, Rate) and value.of}
    found["wilson_95"] = {name: list(wilson(value.hits, value.of)) for name, value in rates.items()}
    return found


def _calibration(tally: Any) -> dict[str, float]:
    n = tally.n_positive + tally.n_negative
    if not n:
        return {"ece": math.nan, "brier": math.nan}
    bins = binned(tally)
    squares = tally.positive_counts @ (1 - tally.score) ** 2 + tally.negative_counts @ tally.score**2
    return {"ece": float(bins.gaps @ bins.n[bins.n > 0]) / n, "brier": float(squares) / n}


def _means(answered: pl.DataFrame) -> dict[str, float]:
    """Averages over the answered trials, as the document has them."""
    columns = {
        "avg_confidence": "confidence",
        "avg_latency_seconds": "latency_seconds",
        "avg_tool_count": "tool_count",
        "avg_tool_seconds_total": "tools_seconds",
    }
    present = {name: answered[c].mean() for name, c in columns.items() if c in answered.columns}
    return {name: math.nan if value is None else float(value) for name, value in present.items()}  # type: ignore[arg-type]


def _defined(value: float, undefined: str) -> float | None:
    if math.isnan(value):
        return 0.0 if undefined == "zero" else None
    return float(value)


def _summary(own: list[dict[str, Any]]) -> dict[str, Any]:
    """Mean and sample standard deviation over trials; 0 for one trial, as the document has it."""
    values = {name: [t[name] for t in own if t[name] is not None] for name in HEADLINES}
    return {
        "mean": {name: float(np.mean(v)) if v else None for name, v in values.items()},
        "std": {name: float(np.std(v, ddof=1)) if len(v) > 1 else 0.0 if v else None for name, v in values.items()},
        "mean_error_rate": float(np.mean([t["error_rate"] for t in own])),
        "mean_abstain_rate": float(np.mean([t["abstain_rate"] for t in own])),
        "totals": {
            "avg_total": float(np.mean([t["total"] for t in own])),
            "avg_support_fake": float(np.mean([t["support"]["fake"] for t in own])),
            "avg_support_real": float(np.mean([t["support"]["real"] for t in own])),
        },
    }


def _meta(evaluation: Triage, made_at: float | None) -> dict[str, Any]:
    trials = evaluation.trials
    told = {k: v for k, v in trials.header.provenance.items() if k not in ("files", "rename")}
    n_trials = trials.frame["trial"].n_unique() if "trial" in trials.frame.columns else 1
    time = {} if made_at is None else {"generated_at_unix": made_at}
    return {
        **{k: told.pop(k) for k in ("temperature", "max_iterations", "reasoning_effort") if k in told},
        "trials": n_trials,
        **time,
        "completed_records": len(trials),
        **told,
        "files": {s.name: s.sha256 for s in trials.header.sources},
        "signature": evaluation.figures.signature,
        "hitmiss": __version__,
    }
