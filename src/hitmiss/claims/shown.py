"""What a file shows besides its numbers: verdict, curves, the parts of a triage. They are recomputed like the numbers."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Final

from hitmiss.core.results import Results
from hitmiss.core.trials import Trials
from hitmiss.metrics.usual import AREA
from hitmiss.protocols.triage import LISTS

if TYPE_CHECKING:
    from hitmiss.protocols.toxicity import Board
    from hitmiss.protocols.triage import TriageExtras

TABLES: Final = "hitmiss.reports.toxicity_tables"

TRIAGE: Final = ("confusion", *LISTS)
"""The parts of a triage besides its numbers."""
ASIDE: Final = {
    "people": "the verdicts of people, which another file holds",
    "provenance": "how the answers were made, which the run states",
    "choice": "how thresholds were chosen; the thresholds themselves are used",
    "settings": "what a settings file said; its values are used",
}
"""Fields that only repeat what somebody stated, and what they are."""
DRAWN: Final = 2e-4
"""Curves are stored with five digits; numbers that differ by less, relative to their size, look the same."""


SHOWN: Final = (*TRIAGE, *ASIDE, "pictures", "verdict", "table")
"""Every field of a file that `shown_differences` looks after."""


@dataclass(frozen=True)
class Recomputed:
    """What was measured again: results and trials, the parts of a triage, and the development data of a calibration."""

    results: Results
    trials: object = None
    extras: TriageExtras | None = None
    board: Board | None = None
    development: Trials | None = None
    method: str = "affine"

    @property
    def verdict(self) -> dict[str, object]:
        """What the numbers allow to conclude, as `--json` prints it."""
        conclusions = import_module("hitmiss.conclude.verdict")  # by name: conclusions are above claims
        primary = AREA if self.board is not None else self.results._primary
        beside = conclusions.Beside(asides=() if self.extras is None else (self.extras,))
        found: dict[str, object] = json.loads(
            json.dumps(conclusions.conclude(self.results, primary, beside=beside).to_dict())
        )
        return found


def shown_differences(data: Mapping[str, object], made: Recomputed) -> tuple[list[str], list[str]]:
    """Compare what a file shows besides its numbers; return the differences, and what was left out."""
    found: list[str] = []
    left_out = [f"{name} ({why})" for name, why in ASIDE.items() if data.get(name)]
    if made.extras is not None:
        known = json.loads(json.dumps(made.extras.asides_dict()))
        for name in (name for name in TRIAGE if name in data or name in known):
            if not _alike(data.get(name) or [], known.get(name) or [], 1e-9):
                found.append(f"{name}: not as claimed")
    elif any(data.get(name) for name in TRIAGE):
        left_out.append("confusions, flips, times and costs")
    if "table" in data:
        table = None if made.board is None else json.loads(json.dumps(import_module(TABLES).records(made.board)))
        if not _alike(data["table"], table, 1e-9):
            found.append("table: not as claimed")
    if "verdict" in data:
        again = made.verdict
        found += verdict_differences(data["verdict"], again)
        old, new = (_subject(verdict).get("run") for verdict in (data["verdict"], again))
        left_out += [f"the name {old} (the file is {new})"] if old and old != new else []
    if "pictures" in data:
        drawn = _pictures(made)
        if drawn is None:
            left_out += ["curves (their trials are not at hand)"] if data["pictures"] else []
        else:
            found += _curves(data["pictures"], drawn)
    return found, left_out


def verdict_differences(claimed: object, found: Mapping[str, object], *, may_rename: bool = True) -> list[str]:
    """Compare a verdict with the one that the recomputed numbers allow; a file may have another name now."""
    old, new = (subject.get("run") for subject in map(_subject, (claimed, found)))
    if may_rename and isinstance(old, str) and isinstance(new, str) and old != new:
        found = {name: _with_name(value, new, old) for name, value in found.items()}
    if not isinstance(claimed, Mapping) or {*claimed} != {*found}:
        return ["verdict: not as claimed"]
    return [f"verdict: {name} is not as claimed" for name in found if not _alike(claimed[name], found[name], 1e-9)]


def _subject(verdict: object) -> Mapping[str, object]:
    subject = verdict.get("subject") if isinstance(verdict, Mapping) else None
    return subject if isinstance(subject, Mapping) else {}


def _with_name(value: object, new: str, old: str) -> object:
    """Return a verdict with the name of its run replaced, in its sentences too."""
    if isinstance(value, Mapping):
        return {k: _with_name(v, new, old) for k, v in value.items()}
    if isinstance(value, list):
        return [_with_name(v, new, old) for v in value]
    return value.replace(new, old) if isinstance(value, str) else value


def _pictures(made: Recomputed) -> list[dict[str, object]] | None:
    """Draw the curves of recomputed results again; None where their trials are not known one by one."""
    trials = made.trials
    if not isinstance(trials, Trials):
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
        if not isinstance(own, Mapping) or {*own} != {*now} or not _alike(own.get("run"), now["run"], 0.0):
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
