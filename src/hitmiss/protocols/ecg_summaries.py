"""Success rates and summaries of attack results, with the names of the ECG attack evaluation document."""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np

from hitmiss.attacks.result import AttackResult
from hitmiss.core.errors import UnknownName
from hitmiss.core.rates import Rate
from hitmiss.detection.detector import need

if TYPE_CHECKING:
    import pandas as pd


def compute_untargeted_asr(results: Sequence[AttackResult]) -> float:
    """Return the share of results whose prediction changed in any bit; NaN without results.

    >>> compute_untargeted_asr([])
    Rate(0/0 = nan)
    """
    return Rate(sum(bool((r.y_hat_clean != r.y_hat_adv).any()) for r in results), len(results))


def compute_targeted_success(
    results: Sequence[AttackResult], class_name: str, mode: str, *, eligible_only: bool = False
) -> tuple[float, int]:
    """Return (success rate, count) of the results that aimed at a class in a mode; (NaN, 0) if no result did.

    As documented, `force` counts records whose bit was already 1, and `suppress` divides also by records at bit 0;
    `eligible_only` divides by the records that could change. `summarize_success` shows both beside the base rate.
    """
    if mode not in ("force", "suppress"):
        raise UnknownName("target mode", mode, ("force", "suppress"))
    known = {name for r in results for name in r.classes}
    if known and class_name not in known:
        raise UnknownName("class", class_name, sorted(known))
    aimed = [r for r in results if r.target_class == class_name and r.target_mode == mode]
    if eligible_only:
        aimed = [r for r in aimed if r.is_eligible]
    return Rate(sum(bool(r.targeted_success) for r in aimed), len(aimed)), len(aimed)


def _pandas() -> ModuleType:
    found: ModuleType = need("pandas", "frames")
    return found


def results_to_dataframe(
    results: Sequence[AttackResult], include_probabilities: bool = False, include_vectors: bool = False
) -> pd.DataFrame:
    """Return one row per result; keys of `config_extra` become columns `extra_…`. The flags add the vectors."""
    names = (
        "record_id", "ptype", "strength", "center_time", "window_seconds", "target_class", "target_mode", "delta_norm_l2",
        "delta_norm_linf", "delta_smoothness", "snr_db", "untargeted_success", "targeted_success", "threshold",
    )  # fmt: skip
    vectors: tuple[str, ...] = ("y_true", "y_hat_clean", "y_hat_adv") if include_vectors else ()
    vectors += ("y_proba_clean", "y_proba_adv") if include_probabilities else ()
    rows = [
        {
            **{name: getattr(r, name) for name in (*names, *vectors)},
            **{f"extra_{k}": v for k, v in r.config_extra.items()},
        }
        for r in results
    ]
    columns = list(dict.fromkeys([*names, *vectors, *(key for row in rows for key in row)]))
    return _pandas().DataFrame(rows, columns=columns)


def summarize_norms(results: Sequence[AttackResult]) -> pd.DataFrame:
    """Return mean and standard deviation of the L2 and L∞ norms by (ptype, strength); NaN deviation for one record."""
    return _summary(results, ("delta_norm_l2", "delta_norm_linf"))


def summarize_smoothness(results: Sequence[AttackResult]) -> pd.DataFrame:
    """Return mean and standard deviation of the smoothness by (ptype, strength)."""
    return _summary(results, ("delta_smoothness",))


def _summary(results: Sequence[AttackResult], names: Sequence[str]) -> pd.DataFrame:
    groups: dict[tuple[str, float], list[AttackResult]] = {}
    for r in results:
        groups.setdefault((r.ptype, r.strength), []).append(r)
    rows = []
    for (ptype, strength), group in sorted(groups.items()):
        row: dict[str, object] = {"ptype": ptype, "strength": strength, "count": len(group)}
        for name in names:
            values = np.array(
                [np.nan if getattr(r, name) is None else getattr(r, name) for r in group], dtype=np.float64
            )
            row[f"{name}_mean"] = float(values.mean())
            row[f"{name}_std"] = float(values.std(ddof=1)) if len(values) > 1 else float("nan")
        rows.append(row)
    columns = ["ptype", "strength", "count", *(f"{n}_{k}" for n in names for k in ("mean", "std"))]
    return _pandas().DataFrame(rows, columns=columns)


def summarize_success(results: Sequence[AttackResult]) -> pd.DataFrame:
    """Summarise success by (ptype, strength, target).

    The rows hold changed, changed among clean-correct and exact match, and the targeted rates with their eligible counts
    and base rate.
    """
    groups: dict[Attacked, list[AttackResult]] = {}
    for r in results:
        groups.setdefault((r.ptype, r.strength, r.target_class or "", r.target_mode or ""), []).append(r)
    rows = [_success_row(key, group) for key, group in sorted(groups.items())]
    return _pandas().DataFrame(rows)


Attacked = tuple[str, float, str, str]
"""Family, strength, target class and target mode."""


def _success_row(key: Attacked, group: Sequence[AttackResult]) -> dict[str, object]:
    right = [r for r in group if np.array_equal(r.y_true, r.y_hat_clean)]
    row: dict[str, object] = dict(zip(("ptype", "strength", "target_class", "target_mode"), key, strict=True))
    row |= {"count": len(group), "changed": float(compute_untargeted_asr(group))}
    row |= {"changed_correct": float(compute_untargeted_asr(right)), "n_correct": len(right)}
    row["exact_match"] = float(np.mean([np.array_equal(r.y_true, r.y_hat_adv) for r in group]))
    if key[2]:
        eligible, n = compute_targeted_success(group, key[2], key[3], eligible_only=True)
        row |= {"targeted": float(compute_targeted_success(group, key[2], key[3])[0])}
        row |= {"targeted_eligible": float(eligible), "n_eligible": n, "base_rate": 1 - n / len(group)}
    return row
