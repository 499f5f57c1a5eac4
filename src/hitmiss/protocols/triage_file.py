"""The documented metrics file of triage: `_meta`, then for each `model|tools` every trial and a summary over trials."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from hitmiss._version import __version__
from hitmiss.core.convert import fit
from hitmiss.core.rates import Rate
from hitmiss.core.trials import Trials
from hitmiss.engine.columns import Columns, Sample
from hitmiss.engine.interval import share_interval
from hitmiss.engine.prepare import prepare_metric
from hitmiss.engine.samples import samples_of_runs
from hitmiss.evaluation.protocol import Protocol
from hitmiss.metrics.counts import share
from hitmiss.verdicts.stability import completed, is_repeated, uneven

if TYPE_CHECKING:
    from hitmiss.protocols.triage import Triage

RATES: Final = (
    *("accuracy", "accuracy_answered", "coverage", "precision_fake", "recall_fake", "f1_fake"),
    *("precision_real", "recall_real", "f1_real", "balanced_accuracy"),
)
ANSWERED: Final = (
    "balanced_accuracy",
    "precision_fake",
    "recall_fake",
    "f1_fake",
    "precision_real",
    "recall_real",
    "f1_real",
)
"""Numbers that the triage evaluation document also writes with `_answered`: they use answered trials anyway."""
LATER: Final = (
    *("error_rate", "coverage_fake", "coverage_real"),
    *("fake_slip_rate", "real_false_flag_rate", "fake_catch_rate", "real_pass_rate"),
)
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


def metrics_file(evaluation: Triage, undefined: str = "null", made_at: float | None = None) -> dict[str, object]:
    """Return the metrics file as a mapping; `made_at` is the time to write as `generated_at_unix`."""
    trials = evaluation.trials
    found = documented(trials, undefined)
    groups: dict[str, dict[str, Mapping[str, object]]] = {}
    for run, own in found.items():
        groups.setdefault(_named(dict(run)), {})[dict(run).get("trial", "0")] = own
    rounds = _rounds(trials, undefined)
    written = {
        name: {"per_trial": own, "summary": _summary(list(own.values()), rounds.get(name, []))}
        for name, own in groups.items()
    }
    return {"_meta": _meta(evaluation, made_at), **written}


def _named(run: Mapping[str, str]) -> str:
    """Return the documented name of a run, `model|tools`, and what else tells it apart."""
    others = [value for name, value in run.items() if name not in ("model", "tools", "trial")]
    return "|".join([*(run.get(name, "-") for name in ("model", "tools")), *others])


def _rounds(trials: Trials, undefined: str) -> dict[str, list[dict[str, object]]]:
    """Return, for each run whose trials lack items, the metrics of rounds that have all of them."""
    if not is_repeated(trials) or not uneven(trials):
        return {}
    found: dict[str, list[dict[str, object]]] = {}
    for run, own in documented(completed(trials)[0], undefined).items():
        found.setdefault(_named(dict(run)), []).append(own)
    return found


def documented(trials: Trials, undefined: str = "null") -> dict[tuple[tuple[str, str], ...], dict[str, object]]:
    """Return the documented metrics of every run and trial, in the documented order, then further ones."""
    columns = Columns(trials)
    return {tuple(s.run.items()): _documented(s, undefined) for s in samples_of_runs(columns)}


def _documented(sample: Sample, undefined: str) -> dict[str, object]:
    c, frame = sample.counts, sample.columns.trials.frame[sample.rows]
    first = {name: _figure(name, sample) for name in RATES}
    later = {
        "abstain_rate": _figure("abstain_rate", sample),
        "abstain_rate_fake": share(c.abstained_positive, c.n_positive),
        "abstain_rate_real": share(c.abstained_negative, c.n_negative),
        **{name: _figure(name, sample) for name in LATER},
    }
    shares: dict[str, float] = {**first, **{f"{name}_answered": first[name] for name in ANSWERED}}
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
        **_ours(sample, frame, {**first, **later}, undefined),
    }


def _figure(metric: str, sample: Sample) -> float:
    return prepare_metric(metric, sample.columns.trials, Protocol()).value(sample)


def _ours(sample: Sample, frame: pl.DataFrame, shares: Mapping[str, float], undefined: str) -> dict[str, object]:
    """Return what the document describes but its file lacks: MCC, unparsed verdicts, calibration, intervals."""
    found: dict[str, object] = {"mcc": _defined(_figure("mcc", sample), undefined)}
    if "unparsed" in frame.columns:
        found["unparsed_count"] = int(frame["unparsed"].sum())
    if "confidence" in frame.columns:
        found["ece"] = _defined(_figure("ece", sample), undefined)
        found["brier"] = _defined(_figure("brier_confidence", sample), undefined)
    rates = {name: value for name, value in shares.items() if isinstance(value, Rate) and value.of}
    found["wilson_95"] = {name: list(share_interval(value.hits, value.of)) for name, value in rates.items()}
    return found


def _means(answered: pl.DataFrame) -> dict[str, float]:
    """Return averages over the answered trials, as documented."""
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


def _summary(own: Sequence[Mapping[str, object]], rounds: Sequence[Mapping[str, object]] = ()) -> dict[str, object]:
    """Return mean and sample standard deviation over trials; 0 for one trial, as documented.

    `rounds`: where trials lack items, rounds that have all of them. The mean is over these then, and so over items; the
    deviation is that of the trials that have all items.
    """

    def known(name: str, trials: Sequence[Mapping[str, object]]) -> list[float]:
        return [value for t in trials if isinstance(value := t[name], int | float)]

    def mean(name: str) -> float | None:
        found = known(name, rounds or own)
        return float(np.mean(found)) if found else None

    whole = [t for t in own if not rounds or t["total"] == rounds[0]["total"]]
    values = {name: known(name, whole) for name in HEADLINES}
    return {
        "mean": {name: mean(name) for name in HEADLINES},
        "std": {name: float(np.std(v, ddof=1)) if len(v) > 1 else 0.0 if v else None for name, v in values.items()},
        "mean_error_rate": mean("error_rate"),
        "mean_abstain_rate": mean("abstain_rate"),
        "totals": _totals(own),
    }


def _totals(own: Sequence[Mapping[str, object]]) -> dict[str, float]:
    """Return how many items a trial has on average, of both classes and of each."""
    support = [fit(dict[str, int], trial["support"]) for trial in own]
    return {
        "avg_total": float(np.mean([sum(sizes.values()) for sizes in support])),
        "avg_support_fake": float(np.mean([sizes["fake"] for sizes in support])),
        "avg_support_real": float(np.mean([sizes["real"] for sizes in support])),
    }


def _meta(evaluation: Triage, made_at: float | None) -> dict[str, object]:
    trials = evaluation.trials
    told = {k: v for k, v in trials.header.provenance.items() if k not in ("files", "rename")}
    n_trials = trials.frame["trial"].n_unique() if "trial" in trials.frame.columns else 1
    time = {} if made_at is None else {"generated_at_unix": made_at}
    return {
        **{k: told.pop(k) for k in ("temperature", "max_iterations", "reasoning_effort") if k in told},
        "trials": n_trials,
        **time,
        "completed_records": trials.completeness.n,
        **({} if trials.completeness.is_full else {"expected_records": trials.completeness.of}),
        **told,
        "files": {s.name: s.sha256 for s in trials.header.sources},
        "signature": evaluation.figures.signature,
        "hitmiss": __version__,
    }
