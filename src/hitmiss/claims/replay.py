"""Measure a claim again: what a design asks of the files, or what a signature alone describes."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from hitmiss.claims.open import open_run, runs_inside
from hitmiss.core.design import (
    INDEPENDENT,
    Bands,
    ComparisonRules,
    Design,
    Drift,
    Languages,
    LeastConfidence,
    Side,
    TriageRules,
)
from hitmiss.core.errors import UsageError
from hitmiss.core.finding import Option
from hitmiss.core.metric_spec import parse
from hitmiss.core.protocol import Protocol
from hitmiss.core.read_spec import ReadSpec
from hitmiss.core.results import Results
from hitmiss.core.sampling import SamplingPlan
from hitmiss.core.trials import Trials
from hitmiss.derive.decisions import Deciding, at_threshold
from hitmiss.engine.compare import with_contents
from hitmiss.engine.comparison import Comparison
from hitmiss.engine.ranking import Ranking
from hitmiss.engine.signature import GAPS_JOIN, read_signature
from hitmiss.evaluation.protocol import (
    compare_trials,
    find_protocol,
    measure_files,
    measure_trials,
    read_side,
    read_trials,
)
from hitmiss.io.addresses import table_of
from hitmiss.io.fetch import expand

if TYPE_CHECKING:
    from hitmiss.protocols.toxicity import Board, Run

FITTED: Final = ("calibration=", "recalibration=")
"""How the choices of a signature begin that say on which other rows scores or confidences were fitted."""


@dataclass(frozen=True)
class Files:
    """The files that a claim was made from: scores, keys (one for all, or one per file), and development files."""

    scores: tuple[object, ...]
    keys: tuple[object, ...] = ()
    development: str | None = None
    development_key: str | None = None

    @property
    def key(self) -> object:
        """The single key; an error if there are several."""
        if len(self.keys) > 1:
            raise UsageError.of("several-keys")
        return self.keys[0] if self.keys else None


def replayed(design: Design, reading: ReadSpec, files: Files, choices: Sequence[str]) -> Results | Comparison | Ranking:
    """Measure again what a design asks."""
    if design.contest is not None:
        return _contest(design, design.contest, reading, files)
    if design.languages is not None:
        return languages_of(design, design.languages, reading, files).results
    table = table_of(str(files.scores[0])) if len(files.scores) == 1 else None
    if table is not None:
        from hitmiss.outofcore.warehouse import evaluate_table

        key = None if files.key is None else table_of(str(files.key))
        if files.key is not None and key is None:
            raise UsageError.of("key-not-a-table")
        return evaluate_table(table, key=key, reading=reading, design=design).results
    if "tallies" in choices:
        raise UsageError.of("claim-of-tallies")
    if "counts" in choices or ("stream" in choices and not design.seeds and files.development is None):
        return _streamed(design, reading, files, "counts" in choices)
    if design.drift is not None:
        from hitmiss.robustness.manipulation import drift_of

        return drift_of(read_trials(files.scores[0], files.key, design.protocol, reading), design)
    scores = [str(p) for p in expand(list(files.scores))] if design.seeds else files.scores
    trials = read_side(scores, files.key, reading, design)
    if design.triage is not None:
        from hitmiss.protocols.triage import decided, evaluate_design

        return evaluate_design(decided(trials, design, development_of(design, reading, files)), design).figures
    if design.calibration is not None and files.development is None:
        raise UsageError.of("no-development")
    return measure_files(trials, development_of(design, reading, files), design)


def replayed_as_drawn(
    design: Design, parts: Mapping[str, str], reading: ReadSpec, files: Files, choices: Sequence[str]
) -> Results | Comparison | Ranking:
    """Measure again what a design asks, by single trials if the claim drew those where natural units are usual now."""
    made = replayed(design, reading, files, choices)
    if design.unit or "boot" not in parts or SamplingPlan.parse(parts["boot"]).unit:
        return made
    drawn = read_signature(made.signature).get("boot", "")
    if not drawn or not SamplingPlan.parse(drawn).unit:
        return made
    return replayed(replace(design, unit=INDEPENDENT), reading, files, choices)


def development_of(design: Design, reading: ReadSpec, files: Files) -> Trials | None:
    if files.development is None:
        return None
    key = files.development_key if design.triage is None else files.key
    return read_trials(files.development, key, design.protocol, reading)


def _contest(design: Design, contest: ComparisonRules, reading: ReadSpec, files: Files) -> Comparison | Ranking:
    """Repeat a comparison or a ranking: each run is read as before, under its former name."""
    sides = [replace(side, read=reading.over(side.read)) for side in contest.sides]
    words, keys = list(files.scores), list(files.keys)
    names = design.languages.names if design.languages is not None else ()
    if len(words) == 1 and len(sides) > 1:
        if all(side.read == sides[0].read for side in sides):
            found = runs_inside(_opened(words[0], keys[0] if keys else None, design, sides[0], names))
            if not found:
                raise UsageError.of("other-runs", n_sides=len(sides), n_words=1)
            return _compared(found, design)
        words *= len(sides)
    if len(words) != len(sides):
        raise UsageError.of("other-runs", n_sides=len(sides), n_words=len(words))
    if len(keys) not in (0, 1, len(sides)):
        raise UsageError.of("option-count", option=Option("key"), n=len(keys), total=len(sides))
    own = keys * len(sides) if len(keys) == 1 else keys or [None] * len(sides)
    runs = {s.name: _opened(w, k, design, s, names) for s, w, k in zip(sides, words, own, strict=True)}
    return _compared(_in_place(runs, contest), design)


def _in_place(runs: Mapping[str, Trials], contest: ComparisonRules) -> dict[str, Trials]:
    """Return the files under the names that the claim gives their rows, in whichever order they were given.

    Only runs that were read alike may change places, and only if every file is found.
    """
    sides = contest.sides
    if any(side.read != sides[0].read or side.threshold != sides[0].threshold for side in sides):
        return dict(runs)
    held = {trials.content: trials for trials in runs.values()}
    claimed = [side.content for side in sides]
    if len(held) != len(runs) or set(held) != set(claimed):
        return dict(runs)
    return {side.name: held[side.content] for side in sides}


def _compared(runs: Mapping[str, Trials], design: Design) -> Comparison | Ranking:
    made = compare_trials(runs, design)
    return replace(made, design=with_contents(made.design or design, runs))


def _opened(word: object, key: object, design: Design, side: Side, languages: Sequence[str]) -> Trials:
    trials = open_run(str(word), None if key is None else str(key), design.protocol, side.read, languages=languages)
    return trials if side.threshold is None else at_threshold(trials, side.threshold)


def languages_of(design: Design, asked: Languages, reading: ReadSpec, files: Files) -> Board:
    """Repeat a toxicity evaluation."""
    from hitmiss.protocols.toxicity import load_any, load_run

    default = asked.default_threshold
    deciding = Deciding(design.threshold) if default is None else Deciding(design.threshold, default, "config")
    words = [str(p) for p in files.scores]
    if asked.run_tag is not None:
        folder = words[0].removesuffix(f":{asked.run_tag}")
        folder = folder if Path(folder).is_dir() else str(Path(folder).parent)
        run = load_run(
            folder,
            asked.run_tag,
            list(asked.names) or None,
            spec=reading,
            deciding=deciding,
            skip_missing=asked.skip_missing,
        )
    else:
        run = load_any(
            words,
            asked.group,
            languages=list(asked.names) or None,
            key=None if files.key is None else str(files.key),
            label_cut=asked.label_cut,
            spec=reading,
            deciding=deciding,
        )
    return board_of(
        run, SamplingPlan(design.bootstrap, design.units, design.seed, design.level), design.undefined or "zero"
    )


def board_of(run: Run, plan: SamplingPlan, undefined: str) -> Board:
    """Measure a toxicity run."""
    from hitmiss.protocols.toxicity import evaluate_run

    bootstrap, unit, seed = plan.bootstrap, plan.unit or INDEPENDENT, plan.seed
    return evaluate_run(run, undefined=undefined, bootstrap=bootstrap, unit=unit, seed=seed, level=plan.level)


def _streamed(design: Design, reading: ReadSpec, files: Files, are_counts: bool) -> Results:
    """Recompute the numbers of trials that were counted, not kept, or of files that hold counts."""
    from hitmiss.outofcore.stream import evaluate_streamed

    if are_counts and files.keys:
        raise UsageError.of("key-of-counts")
    key = None if files.key is None else str(files.key)
    found = evaluate_streamed(list(files.scores), key=key, are_counts=are_counts, reading=reading, design=design)
    return replace(found.results, behind=found.trials)


def replayed_signature(parts: dict[str, str], files: Files, reading: ReadSpec) -> Results | Comparison | Ranking:
    """Measure again what the parts of a signature describe."""
    if "compare" in parts:
        raise UsageError.of("comparison-signature")
    if any(choice.startswith(FITTED) for choice in parts.get("choices", "").split("+")):
        raise UsageError.of("calibrated-signature")
    protocol = find_protocol(parts["protocol"]) if "protocol" in parts else None
    if protocol is not None and protocol.reader and "decisions:" in parts.get("choices", ""):
        return _toxicity(parts, files.scores[0] if len(files.scores) == 1 else list(files.scores), reading)
    declared, design = reading.over(_reading_of(parts)), _design_of(parts, protocol)
    value, _, origin = parts.get("threshold", "").partition(" ")
    if value and origin not in ("", "(given)") and design.drift is None:
        trials = read_side(list(files.scores), files.key, declared, design)
        return measure_trials(at_threshold(trials, float(value), origin.strip("()")), design)
    given = float(value) if value and (design.drift is None or origin == "(that was given)") else None
    return replayed(replace(design, threshold=given), declared, files, parts.get("choices", "").split("+"))


def _design_of(parts: Mapping[str, str], protocol: Protocol | None) -> Design:
    """Return the design that a signature describes."""
    told = parts.get("choices", "")
    settled = replace(protocol, both_eers=False) if protocol is not None else None
    asked = Design.of(
        [m for m in re.split(r"\+(?![^(]*\))", parts.get("metrics", "")) if m],
        by=[g.split("*") for g in parts["by"].split(",")] if "by" in parts else [],
        gap=parts["gap"].split(GAPS_JOIN) if "gap" in parts else False,
        identity=parts["identities"].split("+") if "identities" in parts else (),
        protocol=settled,
        level=float(parts.get("level", 0.95)),
    )
    if "boot" in parts:
        plan = SamplingPlan.parse(parts["boot"])
        drawn = replace(
            asked, bootstrap=plan.bootstrap, unit=plan.unit or INDEPENDENT, seed=plan.seed, level=plan.level
        )
        asked = replace(drawn, interval=plan.method, stratify=plan.stratify)
    if protocol is not None and ("by" in parts or "gap" in parts) and "slices" not in parts:
        beyond = {parse(text).name for text in asked.metrics} - {*protocol.slice_metrics}
        is_chosen = bool(beyond and protocol.slice_metrics) and not protocol.verdicts
        asked = replace(asked, metrics=()) if is_chosen else asked  # the protocol chose the metrics
    if "drift" in parts:
        clean, linked = re.fullmatch(r"clean=(.*),linked=(.*)", parts["drift"], re.DOTALL).groups()  # type: ignore[union-attr]
        unit = () if asked.unit == (linked,) else asked.unit
        return replace(asked, drift=Drift(clean, linked), gap="none", unit=unit, interval="auto")
    if protocol is None or not protocol.verdicts:
        return asked
    pair = re.search(r"thresholds=([^,]+),(\S+) \((.*)\)(?=\+undefined|$)", told)
    bands = Bands(float(pair[1]), float(pair[2]), pair[3]) if pair is not None else None
    limits = re.search(r"least-confidence=([^,]+),(\S+) \((.*)\)(?=\+undefined|$)", told)
    sureness = LeastConfidence(float(limits[1]), float(limits[2]), limits[3]) if limits is not None else None
    undefined = "zero" if "undefined:zero" in told else "null"
    unit = INDEPENDENT if asked.unit == ("item",) else asked.unit  # repeated runs use this unit without being asked
    own = TriageRules(bands, sureness=sureness)
    return asked.changed(triage=own, protocol=protocol, unit=unit, interval="auto", undefined=undefined)


def _toxicity(parts: dict[str, str], scores: object, reading: ReadSpec) -> Results:
    """Repeat a toxicity evaluation: rows left out, thresholds and undefined numbers follow the rules in the claim."""
    from hitmiss.protocols.toxicity import reload

    told = parts.get("choices", "")
    rule, default = re.search(r"threshold-rule:([a-z-]+)", told), re.search(r"default-threshold:([^+]+)", told)
    stated = ReadSpec.from_plain(json.loads(parts.get("read", "{}"))).changed(
        missing="drop" if "missing:drop" in told else None,
        score_kind=None if parts.get("kind") == "probability" else parts.get("kind"),
        threshold_rule=rule[1] if rule else None,
        identities=tuple(parts["identities"].split("+")) if "identities" in parts else (),
        dedupe="dedupe" in told,
    )
    given = float(parts["threshold"].partition(" ")[0]) if "decisions:given" in told else None
    deciding = Deciding(given, float(default[1]), "config") if default else Deciding(given)
    skipped, only = re.search(r"missing-language:skip\([^)]*\)", told), re.search(r"only:([^+|]+)", told)
    run = reload(
        scores,
        parts.get("by"),
        spec=reading.over(stated),
        deciding=deciding,
        choices=(skipped[0],) if skipped else (),
        languages=only[1].split(" & ") if only else None,
    )
    plan = SamplingPlan.parse(parts["boot"]) if "boot" in parts else SamplingPlan(level=float(parts.get("level", 0.95)))
    return board_of(run, plan, "null" if "undefined:null" in told else "zero").results


def _reading_of(parts: Mapping[str, str]) -> ReadSpec:
    """Return how the files were read, according to a signature."""
    told = parts.get("choices", "")
    on_nan = re.search(r"on-nan:(drop|worst)", told)
    return ReadSpec.from_plain(json.loads(parts.get("read", "{}"))).changed(
        score_kind=parts.get("kind"),
        on_nan=on_nan[1] if on_nan else None,
        dedupe="dedupe" in told,
        allow_missing="coverage" in told,
    )
