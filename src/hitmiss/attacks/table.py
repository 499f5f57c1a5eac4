"""The records of a campaign as trials: one row per record, class, attack and strength."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from hitmiss.attacks.worker import Facts, PlannedAttacks
from hitmiss.core.finding import Remark
from hitmiss.core.header import Header
from hitmiss.core.results import infinite
from hitmiss.detection.outputs import to_probability
from hitmiss.robustness.campaign import CONTROL

SHOWN_FAILURES: Final = 5
HIGHEST: Final = 50.0
"""Millivolts that no ECG reaches."""
NUMBERS: Final = ("delta_l2", "delta_linf", "snr_db", "smoothness", "zero_gradient", "budget", "budget_used")


def header_of(planned: PlannedAttacks, made: dict[int, Facts]) -> Header:
    """Return the header, which describes the columns."""
    notes = sorted({note for record in made.values() for note in record.get("notes", ())})
    left_out = failures_of(planned, made)
    if left_out:
        parts = [f"{name}: {why}" for name, why in list(left_out.items())[:SHOWN_FAILURES]]
        parts += [f"and {len(left_out) - SHOWN_FAILURES} more"] * (len(left_out) > SHOWN_FAILURES)
        total = len(left_out) + _n_used(planned, made)
        notes.append(Remark.of("records-left-out", n=len(left_out), total=total, parts=tuple(parts)))
    highest = float(np.abs(planned.recordings.x).max(initial=0.0))
    if highest > HIGHEST:
        notes.append(Remark.of("millivolts", highest=highest))
    least = ("minimal_strength",) if planned.plan.searches else ()
    return Header(
        "present", "absent", "logit", runs=run_columns(planned), slices=tuple(planned.recordings.columns),
        numbers=(*NUMBERS, *least), notes=tuple(notes), provenance=_provenance(planned),
    )  # fmt: skip


def failures_of(planned: PlannedAttacks, made: Mapping[int, Facts]) -> dict[str, str]:
    """Return the records that are not in the table, and why: a record that fails in one step is left out of all."""
    ids = planned.recordings.ids
    failed = {ids[at % len(ids)]: str(record["error"]) for at, record in sorted(made.items()) if "error" in record}
    return {**planned.recordings.failures, **failed}


def _n_used(planned: PlannedAttacks, made: Mapping[int, Facts]) -> int:
    ids = planned.recordings.ids
    return len(ids) - len(set(ids) & set(failures_of(planned, made)))


def _provenance(planned: PlannedAttacks) -> dict[str, object]:
    """Return how the answers were made: the data, the seed, and each attack's settings, by its name in tables."""
    plan, attacks = planned.plan, {}
    for name, config in plan.steps:
        if config is not None:
            run = {
                k: v for k, v in sorted(plan.cells[name].items()) if (k, v) not in (("aim", "any"), ("place", "whole"))
            }
            attacks[" ".join(run.values())] = name
    return {"dataset_digest": planned.recordings.digest, "seed": plan.seed, "attacks": attacks}


def run_columns(planned: PlannedAttacks) -> tuple[str, ...]:
    """Return the run columns; aim and place are included only if some attack has one."""
    configs = [c for _, c in planned.plan.steps if c is not None]
    aims = ("aim",) if any(c.target_class for c in configs) else ()
    return ("attack", "strength", *aims, *(("place",) if any(c.window_seconds for c in configs) else ()))


def table_of(planned: PlannedAttacks, made: dict[int, Facts]) -> pl.DataFrame:
    """Return one row per record, class, attack and strength."""
    n, rows = len(planned.recordings.ids), []
    failed = failures_of(planned, made)
    for at in sorted(made):
        step, row = divmod(at, n)
        if planned.recordings.ids[row] in failed:
            continue
        run = planned.plan.cells[planned.plan.steps[step][0]]
        rows.append((run, row, made[at]))
        if "control" in made[at]:
            rows.append(({**run, "attack": CONTROL + run["attack"]}, row, made[at]["control"]))
    return _frame(planned, rows)


def _frame(planned: PlannedAttacks, rows: Sequence[tuple[dict[str, str], int, Facts]]) -> pl.DataFrame:
    data, header = planned.recordings, header_of(planned, {})
    classes, at = len(data.classes), np.array([row for _, row, _ in rows], dtype=np.int64)
    score = np.array([[infinite(v) for v in record["log_odds"]] for _, _, record in rows], dtype=np.float64)
    decision = planned.model.bits(to_probability(score), planned.threshold)
    columns: dict[str, Sequence[object] | NDArray[np.generic]] = {
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
