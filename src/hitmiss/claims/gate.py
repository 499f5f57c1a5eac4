"""The outcome of a gate as a claim: what was asked of which run, and the checks judged again."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from hitmiss.claims.differences import document_differences, protocol_differences
from hitmiss.claims.open import is_results, open_source
from hitmiss.claims.shown import verdict_differences
from hitmiss.core.convert import plain
from hitmiss.core.design import Design
from hitmiss.core.errors import DataError, UsageError
from hitmiss.core.gate_spec import GateSpec
from hitmiss.core.read_spec import ReadSpec
from hitmiss.core.results import SCHEMA, Results
from hitmiss.core.trials import Trials
from hitmiss.evaluation.gate import GateOutcome, judge_gate
from hitmiss.evaluation.protocol import decided

KIND = "gate"
ASKED = ("limits", "design", "reading")


@dataclass(frozen=True)
class GateAsked:
    """What a gate was asked: its rules, how scores are measured, and how files are read."""

    limits: GateSpec
    design: Design
    reading: ReadSpec

    def to_plain(self) -> dict[str, object]:
        """Return the JSON form."""
        return {
            "limits": self.limits.to_plain(),
            "design": self.design.to_plain(),
            "reading": self.reading.to_plain(),
        }

    @classmethod
    def from_plain(cls, data: object) -> GateAsked:
        """Make it from its JSON form."""
        if not isinstance(data, Mapping) or not {*ASKED} <= {*data}:
            raise DataError.of("claim-without-design", file_name="the outcome of a gate")
        return cls(
            GateSpec.from_plain(data["limits"]),
            Design.from_plain(data["design"]),
            ReadSpec.from_plain(data["reading"]),
        )


def judge(asked: GateAsked, run: str, baseline: str | None, key: str | None) -> GateOutcome:
    """Judge a run against the rules of a gate."""
    own = None if baseline is None else _opened(baseline, key, asked)
    return judge_gate(_opened(run, key, asked), own, asked.limits, asked.design)


def _opened(run: str, key: str | None, asked: GateAsked) -> Results | Trials:
    found = open_source(run, key, asked.design.protocol, asked.reading)
    return decided(found, asked.design) if isinstance(found, Trials) else found


def gate_document(run: str, asked: GateAsked, outcome: GateOutcome) -> dict[str, object]:
    """Return the JSON form of the outcome of a gate, without its digest."""
    verdict = import_module("hitmiss.conclude.verdict").conclude_gate(list(outcome.checks), run)  # by name: it is above
    return {
        "schema": SCHEMA,
        "kind": KIND,
        "run": run,
        "passed": outcome.passed,
        "warnings": list(map(str, outcome.warnings)),
        "checks": [plain(check) for check in outcome.checks],
        "asked": asked.to_plain(),
        "verdict": verdict.to_dict(),
    }


def gate_differences(
    data: Mapping[str, object], scores: Sequence[str], key: str | None, reading: ReadSpec
) -> tuple[int, list[str], list[str]]:
    """Judge the claim of a gate again; return the number of checks, the differences, and what was not recomputed.

    Parameters
    ----------
    data
        The JSON form of the outcome.
    scores
        The run and, if the gate has one, its baseline.
    key
        The key of score files.
    reading
        Read options that the claim does not state.
    """
    asked = GateAsked.from_plain(data.get("asked"))
    asked = GateAsked(asked.limits, asked.design, reading.over(asked.reading))
    needed = 1 + (asked.limits.baseline is not None)
    if len(scores) != needed:
        raise UsageError.of("other-runs", n_sides=needed, n_words=len(scores))
    outcome = judge(asked, scores[0], scores[1] if needed == 2 else None, key)
    run = str(data.get("run", ""))
    found = json.loads(json.dumps(gate_document(run, asked, outcome)))
    locked = [w for w in _texts(data) if w.startswith(("criteria ", "changed since the criteria"))]
    claimed = {**data, "warnings": [w for w in _texts(data) if w not in locked]}
    beside = ("verdict", "asked", "settings", "digest")
    unlike, left = protocol_differences(asked.design.protocol)
    texts = [
        *document_differences(
            {k: v for k, v in claimed.items() if k not in beside}, {k: v for k, v in found.items() if k not in beside}
        ),
        *verdict_differences(data.get("verdict"), found["verdict"], may_rename=False),
        *(f"asked.{name}: hitmiss does not know this field" for name in _unknown(data.get("asked"))),
        *unlike,
    ]
    left += [f"the name {run} (the file is {scores[0]})"] if Path(run).name != Path(scores[0]).name else []
    left += [f"the numbers of {name}, which its own verification checks" for name in scores if is_results(name)]
    left += ["what was said about locked criteria"] if locked else []
    left += ["what a settings file said; its values are used"] if "settings" in data else []
    return len(outcome.checks), texts, left


def _unknown(asked: object) -> list[str]:
    return [name for name in asked if name not in ASKED] if isinstance(asked, Mapping) else []


def _texts(data: Mapping[str, object]) -> list[str]:
    found = data.get("warnings")
    return [str(w) for w in found] if isinstance(found, list) else []
