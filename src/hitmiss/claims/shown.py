"""What a file shows besides its numbers: the curves, and the parts of a triage. They are recomputed like the numbers."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Final

from hitmiss.core.results import Results
from hitmiss.core.trials import Trials
from hitmiss.engine.counted import TalliedTrials

RESULTS: Final = (
    *("schema", "signature", "protocol", "warnings", "warning_codes", "warning_values", "reading", "design", "content"),
    *("questions", "facts", "decisions", "estimates", "pictures", "digest", "verdict", "findings", "requirements"),
    *("confusion", "flips", "majority", "latency", "spending", "people", "provenance", "table", "holds", "differences"),
)
"""Every field that a file of results may have."""
CONTESTS: Final = (
    *("schema", "kind", "signature", "protocol", "a", "b", "runs", "level", "correction", "warnings", "warning_codes"),
    *("warning_values", "design", "differences", "mcnemar", "standings", "pairs", "digest", "verdict", "findings"),
    *("requirements", "facts", "questions", "content", "reading"),
)
"""Every field that a file of a comparison or a ranking may have."""
TRIAGE: Final = ("confusion", "flips", "majority", "latency", "spending")
ASIDE: Final = {
    "people": "the verdicts of people, which another file holds",
    "provenance": "how the answers were made, which the run states",
}
"""Fields that only repeat what somebody stated, and what they are."""
DRAWN: Final = 2e-4
"""Curves are stored with five digits; numbers that differ by less, relative to their size, look the same."""


def unknown_fields(data: Mapping[str, object], written: Iterable[str]) -> Iterator[str]:
    """Yield a difference for every field that no version of hitmiss writes: a reader could take it for checked.

    `written` are the fields that this version writes for the same claim.
    """
    known = {*written, *(CONTESTS if "kind" in data else RESULTS)}
    yield from (f"{name}: hitmiss does not know this field" for name in data if name not in known)


@dataclass(frozen=True)
class Recomputed:
    """What was measured again: results and trials, the parts of a triage, and the development data of a calibration."""

    results: Results
    trials: object = None
    extras: Mapping[str, object] | None = None
    development: Trials | None = None
    method: str = "affine"
    is_streamed: bool = False


def shown_differences(data: Mapping[str, object], made: Recomputed) -> tuple[list[str], list[str]]:
    """Compare curves and the parts of a triage with those recomputed; return the differences, and what was left out."""
    found: list[str] = []
    left_out = [f"{name} ({why})" for name, why in ASIDE.items() if data.get(name)]
    if made.extras is not None:
        known = json.loads(json.dumps(made.extras))
        for name in (name for name in TRIAGE if name in data or name in known):
            if not _alike(data.get(name) or [], known.get(name) or [], 1e-9):
                found.append(f"{name}: not as claimed")
    elif any(data.get(name) for name in TRIAGE):
        left_out.append("confusions, flips, times and costs")
    if data.get("pictures"):
        drawn = _pictures(made)
        if drawn is None:
            left_out.append("curves (the trials were counted, not kept)")
        else:
            found += _curves(data["pictures"], drawn)
    return found, left_out


def _pictures(made: Recomputed) -> list[dict[str, object]] | None:
    """Draw the curves of recomputed results again; None where their trials are not known one by one."""
    trials = made.trials
    if not isinstance(trials, Trials) or isinstance(trials, TalliedTrials) or made.is_streamed:
        return None
    draw = import_module("hitmiss.reports.pictures").drawn_of  # by name: reports are above claims
    drawn = draw(trials, made.results, made.development, made.method)
    body = [{"run": dict(p.run), "displays": [d.to_dict() for d in p.displays]} for p in drawn]
    plain: list[dict[str, object]] = json.loads(json.dumps(body))
    return plain


def _curves(claimed: object, found: list[dict[str, object]]) -> Iterator[str]:
    stated = claimed if isinstance(claimed, list) else []
    if len(stated) != len(found):
        yield f"curves: claimed of {len(stated)} runs, found of {len(found)}"
        return
    for own, now in zip(stated, found, strict=True):
        who = ", ".join(str(v) for v in (now["run"] or {}).values()) or "the run"  # type: ignore[attr-defined]
        if not isinstance(own, Mapping) or not _alike(own.get("run"), now["run"], 0.0):
            yield f"curves of {who}: claimed of another run"
            continue
        kinds = {str(d.get("kind")): d for d in own.get("displays") or [] if isinstance(d, Mapping)}
        again = {str(d["kind"]): d for d in now["displays"]}  # type: ignore[attr-defined]
        if len(kinds) != len(own.get("displays") or []) or set(kinds) != set(again):
            yield f"curves of {who}: claimed {', '.join(kinds) or 'none'}, found {', '.join(again) or 'none'}"
        yield from (
            f"{kind} curve of {who}: not as claimed"
            for kind in again
            if kind in kinds and not _alike(kinds[kind], again[kind], DRAWN)
        )


def _alike(a: object, b: object, tolerance: float) -> bool:
    """Say whether two JSON values are equal, numbers within the tolerance."""
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    if isinstance(a, int | float) and isinstance(b, int | float):
        return math.isclose(a, b, rel_tol=tolerance, abs_tol=tolerance * 1e-3)
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        return {*a} == {*b} and all(_alike(a[k], b[k], tolerance) for k in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(_alike(x, y, tolerance) for x, y in zip(a, b, strict=True))
    return bool(a == b)
