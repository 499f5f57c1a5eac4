"""Figures of attacks for reports: everything of `drawing_attacks`, and curves over strength from the results of a run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hitmiss.campaign import CONTROL, Campaign
from hitmiss.drawing_attacks import (
    PALETTE,
    asr_over_time,
    asr_vs_strength,
    classwise_metric_bars,
    minimal_strength_histogram,
    norm_distributions,
    triptych,
)
from hitmiss.errors import DataError
from hitmiss.results import Estimate, Results
from hitmiss.trials import Trials

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = [
    "asr_over_time", "asr_vs_strength", "classwise_metric_bars", "curves_over_strength", "minimal_strength_histogram",
    "norm_distributions", "save_figures", "triptych",
]  # fmt: skip


def curves_over_strength(results: Results, metric: str = "changed") -> Figure:
    """One figure against strength: a line an attack with its interval, its noise control dotted in the same colour."""
    from matplotlib.figure import Figure

    rows = [
        e for e in results if e.metric == metric and not e.slice and _strength(e) is not None and e.value is not None
    ]
    attacks = list(dict.fromkeys(e.run["attack"].removeprefix(CONTROL) for e in rows if e.run["attack"] != "clean"))
    if not attacks:
        raise DataError(
            f"these results hold no {metric} of an attack; make them with `hitmiss score run -p ecg-attacks`"
        )
    figure = Figure(figsize=(5.6, 3.9), layout="constrained")
    axes = figure.add_subplot()
    for i, attack in enumerate(attacks):
        _line(axes, [e for e in rows if e.run["attack"] == attack], PALETTE[i % 7], "-", attack)
        _line(axes, [e for e in rows if e.run["attack"] == CONTROL + attack], PALETTE[i % 7], ":", f"{CONTROL}{attack}")
    clean = next((e for e in rows if e.run["attack"] == "clean"), None)
    if clean is not None and clean.value is not None:
        axes.axhline(clean.value, color="#888888", linewidth=1.0, linestyle="--", label="clean")
    axes.set(xlabel="strength", ylabel=metric.replace("_", " "), ylim=(-0.03, 1.03))
    axes.grid(color="#dddddd", linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside lower center", ncols=2, frameon=False, fontsize=8)
    return figure


def _strength(e: Estimate) -> float | None:
    try:
        return float(e.run.get("strength", ""))
    except ValueError:
        return None


def _line(axes: Any, rows: list[Estimate], color: str, style: str, name: str) -> None:
    """The mean over aims and places would hide them: the first of each strength is drawn."""
    at = {float(e.run["strength"]): e for e in reversed(rows)}
    if not at:
        return
    x = sorted(at)
    axes.plot(x, [at[s].value for s in x], style, color=color, marker="o", markersize=4, linewidth=1.6, label=name)
    ends = [(s, at[s].low, at[s].high) for s in x if at[s].low is not None]
    if ends:
        s, low, high = (np.array(v, dtype=np.float64) for v in zip(*ends, strict=True))
        axes.fill_between(s, low, high, color=color, alpha=0.13, linewidth=0)


def save_figures(folder: str | Path, trials: Trials, results: Results) -> list[Path]:
    """Every picture that a run allows, as PNG: success, exact match and AUC over strength, and minimal strengths."""
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    drawn = []
    has_strengths = any(e.metric == "changed" and _strength(e) is not None for e in results)
    for metric in ("changed", "exact_match", "macro_auc") if has_strengths else ():
        drawn.append(target / f"{metric}.png")
        curves_over_strength(results, metric).savefig(drawn[-1], dpi=150)
    if "minimal_strength" in trials.header.numbers:
        for cell in Campaign.of(trials).cells:
            if cell.run["strength"] == "minimal" and not cell.is_control:
                drawn.append(target / f"minimal_{cell.run['attack']}.png")
                minimal_strength_histogram(cell.numbers["minimal_strength"])[0].savefig(drawn[-1], dpi=150)
    return drawn
