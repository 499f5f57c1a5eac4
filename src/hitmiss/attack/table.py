"""The records of a campaign as trials: one row a record, class, attack and strength."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import polars as pl

from hitmiss.attack.config import PerturbationConfig
from hitmiss.detect.extract import to_probability
from hitmiss.results import infinite
from hitmiss.robustness.campaign import CLEAN, CONTROL
from hitmiss.trials import Header

if TYPE_CHECKING:
    from hitmiss.attack.campaigner import Campaigner

MINIMAL: Final = "minimal"
HIGHEST: Final = 50.0
"""Millivolts that no ECG reaches."""
NUMBERS: Final = ("delta_l2", "delta_linf", "snr_db", "smoothness", "zero_gradient", "budget", "budget_used")


def header_of(campaigner: Campaigner, made: dict[int, dict[str, Any]]) -> Header:
    """What the columns mean."""
    notes = sorted({note for record in made.values() for note in record.get("notes", ())})
    highest = float(np.abs(campaigner.recordings.x).max(initial=0.0))
    if highest > HIGHEST:
        notes.append(f"signals reach {highest:,.0f} mV; budgets are in mV: are these microvolts (x_uv)?")
    least = ("minimal_strength",) if campaigner.plan.searches else ()
    return Header(
        "present", "absent", "logit", runs=run_columns(campaigner), slices=tuple(campaigner.recordings.columns),
        numbers=(*NUMBERS, *least), notes=tuple(notes), provenance=_provenance(campaigner),
    )  # fmt: skip


def _provenance(campaigner: Campaigner) -> dict[str, Any]:
    """How the answers were made: the data, the seed, and each attack with its settings, by what it is called in tables."""
    plan, attacks = campaigner.plan, {}
    for name, config in plan.steps:
        if config is not None:
            run = {
                k: v for k, v in sorted(plan.cells[name].items()) if (k, v) not in (("aim", "any"), ("place", "whole"))
            }
            attacks[" ".join(run.values())] = name
    return {"dataset_digest": campaigner.recordings.digest, "seed": plan.seed, "attacks": attacks}


def run_columns(campaigner: Campaigner) -> tuple[str, ...]:
    """The run columns: aim and place only where some attack has one."""
    configs = [c for _, c in campaigner.plan.steps if c is not None]
    aims = ("aim",) if any(c.target_class for c in configs) else ()
    return ("attack", "strength", *aims, *(("place",) if any(c.window_seconds for c in configs) else ()))


def table_of(campaigner: Campaigner, made: dict[int, dict[str, Any]]) -> pl.DataFrame:
    """One row a record, class, attack and strength."""
    n, rows = len(campaigner.recordings.ids), []
    for at in sorted(made):
        step, row = divmod(at, n)
        run = campaigner.plan.cells[campaigner.plan.steps[step][0]]
        rows.append((run, row, made[at]))
        if "control" in made[at]:
            rows.append(({**run, "attack": CONTROL + run["attack"]}, row, made[at]["control"]))
    return _frame(campaigner, rows)


def run_of(name: str, config: PerturbationConfig | None) -> dict[str, str]:
    """The values of the run columns of one step."""
    if config is None:
        return {"attack": CLEAN, "strength": "0", "aim": "any", "place": "whole"}
    aim = "any" if config.target_class is None else f"{config.mode} {config.target_class}"
    place = "whole" if config.window_seconds is None else f"{config.center_time:g} s"
    strength = MINIMAL if name.startswith(f"{MINIMAL} ") else f"{config.strength:g}"
    return {"attack": config.family, "strength": strength, "aim": aim, "place": place}


def _frame(campaigner: Campaigner, rows: Sequence[tuple[dict[str, str], int, dict[str, Any]]]) -> pl.DataFrame:
    data, header = campaigner.recordings, header_of(campaigner, {})
    classes, at = len(data.classes), np.array([row for _, row, _ in rows], dtype=np.int64)
    score = np.array([[infinite(v) for v in record["log_odds"]] for _, _, record in rows], dtype=np.float64)
    decision = campaigner.model.bits(to_probability(score), campaigner.threshold)
    columns: dict[str, Any] = {
        "item": np.repeat(np.array(data.ids, dtype=object)[at], classes).tolist(),
        "target": list(data.classes) * len(rows),
        "label": data.y[at].reshape(-1).astype(np.int8),
        "score": score.reshape(-1),
        "decision": decision.reshape(-1),
    }
    for name in header.runs:
        columns[name] = [run[name] for run, _, _ in rows for _ in range(classes)]
    for name, values in data.columns.items():
        columns[name] = np.repeat(np.array(values, dtype=object)[at], classes).tolist()
    for name in header.numbers:
        own = [infinite(record.get(name)) for _, _, record in rows]
        columns[name] = np.repeat(np.array([np.nan if v is None else v for v in own], dtype=np.float64), classes)
    return pl.DataFrame(columns)
