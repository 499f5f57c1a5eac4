"""Verify: recompute what a signature or a results file claims, from the files, and say whether it holds."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from hitmiss._version import __version__
from hitmiss.design import Design, Gap
from hitmiss.errors import DataError, GateFailed, UsageError
from hitmiss.measuring.measurement import measure
from hitmiss.measuring.signature import read_signature
from hitmiss.protocol import Protocol, find_protocol, measure_trials, read_trials
from hitmiss.readspec import ReadSpec
from hitmiss.results import Estimate, Results
from hitmiss.trials import Trials

TOLERANCE = 1e-9
"""Figures that differ by less are the same figure."""


@dataclass(frozen=True)
class Verification:
    """What was claimed, what came out, and every difference in words."""

    claim: dict[str, str]
    recomputed: Results
    differences: tuple[str, ...]

    @property
    def holds(self) -> bool:
        """Whether nothing differs."""
        return not self.differences


def load_claim(text: str) -> tuple[str, Results | None]:
    """A claim is a signature, or a results file that carries one; a file that was edited claims nothing that holds."""
    if "|" not in text and Path(text).is_file():
        try:
            results = Results.load(text)
        except DataError as error:
            if error.code == "edited-artifact":
                raise GateFailed(str(error), code=error.code) from None
            raise
        return results.signature, results
    return text, None


def verify(claim: str, scores: Any, key: Any = None, reading: ReadSpec | None = None, **said: object) -> Verification:
    """Recompute a claim from the files it was made from."""
    signature, claimed = load_claim(claim)
    parts = read_signature(signature)
    parts = {**parts, "choices": _but_how(parts["choices"])} if "choices" in parts else parts
    parts = {name: text for name, text in parts.items() if text}
    recomputed = _recompute(parts, scores, key, (reading or ReadSpec()).changed(**said))
    found = read_signature(recomputed.signature)
    differences = [
        f"{name}: claimed {parts.get(name, 'nothing')}, found {found.get(name, 'nothing')}"
        for name in (
            "data",
            "n",
            "pos",
            "kind",
            "threshold",
            "choices",
            "metrics",
            "by",
            "boot",
            "level",
            "gap",
            "identities",
        )
        if parts.get(name) != found.get(name)
    ]
    if claimed is not None:
        differences += _figures_that_differ(claimed, recomputed)
    if parts.get("out") != found.get("out") and not differences:
        differences.append(
            f"the figures differ (claimed digest {parts.get('out')}, found {found.get('out')}){_versions(parts, found)}"
        )
    return Verification(parts, recomputed, tuple(differences))


def _but_how(choices: str) -> str:
    """Choices that can change a figure: those without the word that the trials were streamed."""
    return "+".join(choice for choice in choices.split("+") if choice != "stream")


def _recompute(parts: dict[str, str], scores: Any, key: Any, reading: ReadSpec) -> Results:
    if "calibrat" in parts.get("choices", ""):
        raise UsageError("this claim was made on calibrated scores; verify the calibrated score file itself")
    protocol = find_protocol(parts["protocol"]) if "protocol" in parts else None
    if protocol is not None and protocol.name == "toxicity" and "decisions:" in parts.get("choices", ""):
        return _toxicity(parts, scores, reading)
    declared = reading.over(_reading_choices(parts))
    if {"counts", "tallies"} & {*parts.get("choices", "").split("+")}:
        return _counted(parts, scores, key, protocol, declared)
    trials = read_trials(scores, key, protocol, declared)
    if "threshold" in parts:
        from hitmiss.decisions import at_threshold

        value, _, origin = parts["threshold"].partition(" ")
        trials = at_threshold(trials, float(value), origin.strip("()"))
    settled = replace(protocol, both_eers=False) if protocol else None
    by = [g.split("*") for g in parts["by"].split(",")] if "by" in parts else []
    if protocol is not None and protocol.name == "triage":
        return _triage(parts, trials, by)
    plan = _plan(parts.get("boot")) or ({"level": float(parts["level"])} if "level" in parts else {})
    if protocol is not None and protocol.measured_by:
        return measure_trials(trials, Design.of(by=by, protocol=protocol, **plan))
    gap = Gap.parse(parts["gap"]) if "gap" in parts else None
    return measure(trials, _metrics(parts), by=by, gap=gap, protocol=settled, **plan)


def _counted(parts: dict[str, str], files: Any, key: Any, protocol: Protocol | None, declared: ReadSpec) -> Results:
    """The figures of counts or tallies again, whose files hold no trials."""
    from hitmiss.scale.at_once import evaluate_tallies
    from hitmiss.scale.counted import evaluate_counts

    if key is not None:
        raise UsageError("counts and tallies have no ids to join a key with; leave --key out")
    asked: dict[str, Any] = {
        "metrics": _metrics(parts),
        "by": [g.split("*") for g in parts["by"].split(",")] if "by" in parts else [],
        "gap": Gap.parse(parts["gap"]) if "gap" in parts else False,
        **(_plan(parts.get("boot")) or ({"level": float(parts["level"])} if "level" in parts else {})),
    }
    settled = replace(protocol, both_eers=False) if protocol is not None else None
    if "tallies" in parts["choices"].split("+"):
        return evaluate_tallies(files, settled, **asked).results
    threshold = float(parts["threshold"].partition(" ")[0]) if "threshold" in parts else None
    return evaluate_counts(files, settled, threshold=threshold, reading=declared, **asked).results


def _triage(parts: dict[str, str], trials: Trials, by: list[list[str]]) -> Results:
    """A triage evaluation again: verdicts by the same two thresholds, repeated runs as repeated runs."""
    from hitmiss.bands import at_bands
    from hitmiss.design import Bands
    from hitmiss.protocols.triage import evaluate_trials

    told = parts.get("choices", "")
    pair = re.search(r"thresholds=([^,]+),(\S+) \((.*)\)(?=\+undefined|$)", told)
    if pair is not None:
        trials = at_bands(trials, Bands(float(pair[1]), float(pair[2]), pair[3]))
    plan = _plan(parts.get("boot")) or {"bootstrap": 0}
    options = {name: plan[name] for name in ("bootstrap", "seed", "level") if name in plan}
    undefined = "zero" if "undefined:zero" in told else "null"
    return evaluate_trials(trials, metrics=_metrics(parts), by=by, undefined=undefined, **options).figures


def _toxicity(parts: dict[str, str], scores: Any, reading: ReadSpec) -> Results:
    """A toxicity evaluation again: rows left out, thresholds and undefined figures by the rules that the claim names."""
    from hitmiss.decisions import Deciding
    from hitmiss.io.predictions import PredictionRules
    from hitmiss.protocols.toxicity import evaluate_run, reload

    told = parts.get("choices", "")
    rule, default = re.search(r"threshold-rule:([a-z-]+)", told), re.search(r"default-threshold:([^+]+)", told)
    rules = PredictionRules(
        columns=reading.columns,
        missing="drop" if "missing:drop" in told else "refuse",
        any_scores=parts.get("kind") == "raw",
        threshold_rule=rule[1] if rule else "same",  # type: ignore[arg-type]
        identities=tuple(parts["identities"].split("+")) if "identities" in parts else (),
        dedupe="dedupe" in told,
    )
    given = float(parts["threshold"].partition(" ")[0]) if "decisions:given" in told else None
    deciding = Deciding(given, float(default[1]), "config") if default else Deciding(given)
    skipped, only = re.search(r"missing-language:skip\([^)]*\)", told), re.search(r"only:([^+|]+)", told)
    run = reload(
        scores,
        parts.get("by"),
        rules=rules,
        deciding=deciding,
        choices=(skipped[0],) if skipped else (),
        languages=only[1].split(" & ") if only else None,
    )
    options = {
        name: value for name, value in _plan(parts.get("boot")).items() if name in ("bootstrap", "seed", "level")
    }
    options = options or {"bootstrap": 0, "level": float(parts.get("level", 0.95))}
    return evaluate_run(run, undefined="null" if "undefined:null" in told else "zero", **options).results


def _metrics(parts: dict[str, str]) -> list[str]:
    return [m for m in re.split(r"\+(?![^(]*\))", parts["metrics"]) if m]


def _plan(text: str | None) -> dict[str, Any]:
    if text is None:
        return {}
    count, kind, method, level, seed = text.split(",")
    unit = kind.removeprefix("unit=").split("*") if kind.startswith("unit=") else None
    return {
        "bootstrap": int(count),
        "unit": unit,
        "interval": method,
        "level": float(level),
        "seed": int(seed.removeprefix("seed=")),
    }


def _reading_choices(parts: dict[str, str]) -> ReadSpec:
    """What a signature says of how the files were read."""
    told = parts.get("choices", "")
    on_nan = re.search(r"on-nan:(drop|worst)", told)
    return ReadSpec().changed(
        score_kind=parts.get("kind"),
        on_nan=on_nan[1] if on_nan else None,
        dedupe="dedupe" in told,
        allow_missing="coverage" in told,
    )


def _figures_that_differ(claimed: Results, recomputed: Results) -> list[str]:
    found = {_name(e): e for e in recomputed}
    words = []
    for e in claimed:
        other = found.get(_name(e))
        if other is None:
            words.append(f"{_name(e)}: claimed {e.value}, not found")
            continue
        for part in ("value", "low", "high"):
            a, b = getattr(e, part), getattr(other, part)
            if (a is None) != (b is None) or (a is not None and abs(a - b) > TOLERANCE * max(1.0, abs(a)) and a != b):
                words.append(f"{_name(e)}: claimed {part} {a}, found {b}")
    return words


def _name(e: Estimate) -> str:
    where = ", ".join(f"{k}={v}" for k, v in (*e.run.items(), *e.slice.items()))
    return f"{e.metric}{f' [{where}]' if where else ''}{f' {e.average}' if e.average else ''}"


def _versions(parts: dict[str, str], found: dict[str, str]) -> str:
    if parts.get("hitmiss") == __version__ and parts.get("numpy") == found.get("numpy"):
        return ""
    return (
        f"; the claim was made with hitmiss {parts.get('hitmiss')} and numpy {parts.get('numpy')}, "
        f"this is hitmiss {__version__} and numpy {found.get('numpy')}, whose random streams may differ"
    )
