"""Verify a claim: recompute what a results file or a signature claims from the files, and compare in both directions.

A results file, a comparison or a ranking states what was asked (`design`) and how the files were read (`reading`); both
are used again as they are. A signature alone, or a file of an older version, is parsed instead.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from hitmiss._version import __version__
from hitmiss.claims.open import open_run, runs_inside
from hitmiss.claims.shown import Recomputed, shown_differences, unknown_fields
from hitmiss.core import artifacts
from hitmiss.core.design import Bands, ComparisonRules, Design, Drift, Languages, LeastConfidence, Side, TriageRules
from hitmiss.core.errors import DataError, GateFailed, UsageError, message_of
from hitmiss.core.metric_spec import parse
from hitmiss.core.protocol import Protocol
from hitmiss.core.read_spec import ReadSpec
from hitmiss.core.results import UNUSED, Results
from hitmiss.core.sampling import SamplingPlan
from hitmiss.core.trials import COUNTED, Trials
from hitmiss.derive.decisions import Deciding, at_threshold
from hitmiss.engine.compare import with_contents
from hitmiss.engine.comparison import Comparison
from hitmiss.engine.ranking import Ranking
from hitmiss.engine.signature import GAPS_JOIN, digest_of, read_signature
from hitmiss.evaluation.protocol import (
    compare_trials,
    find_protocol,
    measure_files,
    measure_trials,
    protocols,
    read_side,
    read_trials,
)
from hitmiss.io.addresses import table_of
from hitmiss.io.fetch import expand

if TYPE_CHECKING:
    from hitmiss.protocols.toxicity import Run

TOLERANCE: Final = 1e-9
"""Figures that differ by less than this are equal."""
COMPARISONS: Final = ("comparison", "ranking")
ROWS: Final[Mapping[str, tuple[str, ...]]] = {
    "estimates": ("metric", "run", "slice", "average"),
    "differences": ("metric", "slice", "average"),
    "mcnemar": ("reading", "slice"),
    "standings": ("metric", "run", "slice", "average"),
    "pairs": ("run_a", "run_b", "metric", "slice", "average"),
}
"""The tables of a claim, with the fields that identify a row."""
VALUES: Final = ("protocol", "warnings", "a", "b", "runs", "level", "correction")
"""What a claim states in addition to its tables."""
KNOWN: Final = ("questions", "facts", "note_codes")
"""What is compared only if both sides have it: results of counts and tallies have no items."""
LATER: Final = ("units",)
"""Parts of a signature that older versions did not write; they are compared only if the claim has them."""
ELSEWHERE: Final = ("hitmiss", "numpy", "out", "data", "a", "b", "runs")
"""Parts of a signature that are not compared as texts: versions, and hashes, which have their own rules."""


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


@dataclass(frozen=True)
class Claim:
    """A claim as it was given: its signature and, if it is a file, everything that the file states."""

    signature: str
    document: Mapping[str, object] | None = None
    design: Design | None = None
    reading: ReadSpec | None = None
    file: Mapping[str, object] | None = None
    """Everything that the file holds, what is no number included."""

    @property
    def parts(self) -> dict[str, str]:
        """The parts of the signature, without the note that trials were streamed, which changes no figure."""
        parts = read_signature(self.signature.splitlines()[0] if self.signature else "")
        if "choices" in parts:
            parts["choices"] = "+".join(c for c in parts["choices"].split("+") if c != "stream")
        return {name: text for name, text in parts.items() if text}


@dataclass(frozen=True)
class Verification:
    """What was claimed, what was recomputed, and every difference in words."""

    claim: dict[str, str]
    recomputed: Results | Comparison | Ranking
    differences: tuple[str, ...]
    not_recomputed: tuple[str, ...] = ()
    """What the claim shows and nobody can recompute from the files."""

    @property
    def holds(self) -> bool:
        """Whether nothing differs."""
        return not self.differences

    @property
    def n_figures(self) -> int:
        """The number of figures that were recomputed."""
        made = self.recomputed
        return len(made.duels) if isinstance(made, Ranking) else len(made)


def load_claim(text: str) -> Claim:
    """Read a claim: a signature, or a file with one; a file that was edited after it was written is refused."""
    if "|" in text or not Path(text).is_file():
        return Claim(text)
    try:
        data = artifacts.load(text, "results")
        if data.get("kind") in COMPARISONS:
            design = Design.from_plain(data["design"]) if data.get("design") is not None else None
            return Claim(str(data.get("signature") or ""), data, design, file=data)
        results = Results.load(text)
    except DataError as error:
        if error.code == "edited-artifact":
            raise GateFailed(message_of(error), code=error.code) from None
        raise
    return Claim(results.signature, _document(results), results.design, results.reading, data)


def verify(
    claim: str,
    scores: object,
    key: object = None,
    reading: ReadSpec | None = None,
    *,
    calibrate_on: str | None = None,
    calibrate_key: str | None = None,
    **said: object,
) -> Verification:
    """Recompute a claim from the files it was made from.

    Parameters
    ----------
    claim
        A signature, or a file of results, of a comparison or of a ranking.
    scores, key
        The files, as they were given when the claim was made. For a comparison: one file per run, with one key for all
        or one per run.
    reading
        Read options that the claim does not state; keywords are its fields.
    calibrate_on, calibrate_key
        Development files, if scores were calibrated or confidences recalibrated.
    **said
        Fields of `reading`, as keywords.

    Returns
    -------
    Verification
        What was recomputed, and every difference; `holds` is true if there is none.

    Raises
    ------
    UsageError
        If the claim cannot be read, or the files do not fit it.
    DataError
        If the files cannot be scored as they are.
    GateFailed
        If the claim is a file that was edited after it was written.

    >>> import tempfile
    >>> from hitmiss.evaluation.protocol import evaluate
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "scores.csv")
    ...     _ = path.write_text("id,label,score\\nx,real,2\\ny,fake,1\\nz,real,0\\n")
    ...     evaluate(path, metrics=["eer"], positive="real").save(f"{folder}/results.json")
    ...     verify(f"{folder}/results.json", str(path)).holds
    True
    """
    given = load_claim(claim)
    files = Files(_listed(scores), _listed(key), calibrate_on, calibrate_key)
    own = (reading or ReadSpec()).changed(**said)
    parts = given.parts
    if given.design is not None:
        made = _replayed(given.design, own.over(given.reading or ReadSpec()), files, parts)
    else:
        made = _recompute(parts, files, own)
    differences, left_out = list(_differences(given, parts, made)), list[str]()
    if given.file is not None:
        differences += unknown_fields(given.file, _document(made))
        if isinstance(made, Results):
            shown, left_out = shown_differences(given.file, _recomputed(given, made, files, own))
            differences += shown
    return Verification(parts, made, tuple(differences), tuple(left_out))


def _recomputed(given: Claim, made: Results, files: Files, reading: ReadSpec) -> Recomputed:
    """Return what was measured again, with what the curves and the parts of a triage need."""
    choices = given.signature.partition("|choices:")[2].partition("|")[0].split("+")
    design, trials = given.design, made.behind
    if design is None or not isinstance(trials, Trials):
        return Recomputed(made, trials, is_streamed="stream" in choices)
    development, drawn = None, trials
    if design.calibration is not None and design.triage is None:  # drawn before and after
        read = reading.over(given.reading or ReadSpec())
        development, drawn = _development(design, read, files), read_side(files.scores, files.key, read, design)
    extras = None
    if design.triage is not None and design.protocol is not None:
        from hitmiss.protocols.triage import extras_of

        plan = SamplingPlan(design.bootstrap, design.unit, design.seed, design.level)
        extras = extras_of(trials, design.protocol, plan).asides_dict()
    return Recomputed(made, drawn, extras, development, design.calibration or "affine", "stream" in choices)


def _listed(given: object) -> tuple[object, ...]:
    return () if given is None else tuple(given) if isinstance(given, list | tuple) else (given,)


def _replayed(
    design: Design, reading: ReadSpec, files: Files, parts: Mapping[str, str]
) -> Results | Comparison | Ranking:
    """Measure again what a design asks."""
    if design.contest is not None:
        return _contest(design, design.contest, files)
    if design.languages is not None:
        return _languages(design, design.languages, reading, files)
    told = {*parts.get("choices", "").split("+")}
    table = table_of(str(files.scores[0])) if len(files.scores) == 1 else None
    if table is not None:
        from hitmiss.outofcore.warehouse import evaluate_table

        key = None if files.key is None else table_of(str(files.key))
        if files.key is not None and key is None:
            raise UsageError.of("key-not-a-table")
        return evaluate_table(table, key=key, reading=reading, design=design).results
    if "tallies" in told:
        raise UsageError.of("claim-of-tallies")
    if "counts" in told:
        return _counted(design, reading, files)
    if design.drift is not None:
        from hitmiss.robustness.manipulation import drift_of

        return drift_of(read_trials(files.scores[0], files.key, design.protocol, reading), design)
    scores = [str(p) for p in expand(list(files.scores))] if design.seeds else files.scores
    trials = read_side(scores, files.key, reading, design)
    if design.triage is not None:
        from hitmiss.protocols.triage import decided, evaluate_design

        return evaluate_design(decided(trials, design, _development(design, reading, files)), design).figures
    if design.calibration is not None and files.development is None:
        raise UsageError.of("no-development")
    return measure_files(trials, _development(design, reading, files), design)


def _development(design: Design, reading: ReadSpec, files: Files) -> Trials | None:
    if files.development is None:
        return None
    key = files.development_key if design.triage is None else files.key
    return read_trials(files.development, key, design.protocol, reading)


def _contest(design: Design, contest: ComparisonRules, files: Files) -> Comparison | Ranking:
    """Repeat a comparison or a ranking: each run is read as before, under its former name."""
    sides, words, keys = contest.sides, list(files.scores), list(files.keys)
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
        raise UsageError.of("keys", n_keys=len(keys), n_sides=len(sides))
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


def _languages(design: Design, asked: Languages, reading: ReadSpec, files: Files) -> Results:
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
    return _board(
        run, SamplingPlan(design.bootstrap, design.unit, design.seed, design.level), design.undefined or "zero"
    )


def _board(run: Run, plan: SamplingPlan, undefined: str) -> Results:
    from hitmiss.protocols.toxicity import evaluate_run

    bootstrap, unit, seed = plan.bootstrap, plan.unit, plan.seed
    board = evaluate_run(run, undefined=undefined, bootstrap=bootstrap, unit=unit, seed=seed, level=plan.level)
    return board.results


def _counted(design: Design, reading: ReadSpec, files: Files) -> Results:
    """Recompute the figures of counts, whose files hold no trials."""
    from hitmiss.outofcore.stream import evaluate_streamed

    if files.keys:
        raise UsageError.of("key-of-counts")
    return evaluate_streamed(list(files.scores), are_counts=True, reading=reading, design=design).results


def _document(made: Results | Comparison | Ranking) -> dict[str, object]:
    """Return what is compared: the JSON form, as a file would hold it."""
    data: dict[str, object] = json.loads(json.dumps(made.to_dict()))
    return data


def _differences(given: Claim, parts: Mapping[str, str], made: Results | Comparison | Ranking) -> Iterator[str]:
    """Yield every statement of the claim that differs, is missing, or is not reproduced."""
    found, told = read_signature(made.signature.splitlines()[0]), _document(made)
    found["choices"] = "+".join(c for c in found.get("choices", "").split("+") if c != "stream")
    names = dict.fromkeys([*parts, *found])
    texts = [
        f"{name}: claimed {parts.get(name) or 'nothing'}, found {found.get(name) or 'nothing'}"
        for name in names
        if name not in ELSEWHERE
        and not (name in LATER and name not in parts)
        and (parts.get(name) or "") != (found.get(name) or "")
    ]
    behind = made.behind if isinstance(made, Results) else None
    texts += _data_differences(given, parts, found, told, behind if isinstance(behind, Trials) else None)
    if given.document is not None:
        whole = given.design is not None  # notes of an older version may be worded differently
        files = [] if not isinstance(behind, Trials) else [source.name for source in behind.header.sources]
        texts += _document_differences(given.document, told, whole, files)
        texts += _unlike_known(given.design.protocol) if given.design is not None else []
    if not texts and not _is_same_outcome(given, parts.get("out", ""), found.get("out", "")):
        texts.append(f"the figures differ (claimed digest {parts.get('out')}, found {found.get('out')})")
    hint = _versions(dict(parts), found) if texts else ""
    yield from texts[:-1]
    yield from (text + hint for text in texts[-1:])


def _is_same_outcome(given: Claim, claimed: str, found: str) -> bool:
    """Return whether the hash of the figures is that of the recomputed ones, or of the figures that the file states.

    The figures of a file are compared one by one, within the tolerance; another scipy may change their tenth digit, and
    with it the hash.
    """
    if artifacts.same_digests(claimed, found):
        return True
    if given.document is None or "estimates" not in given.document:
        return False
    return artifacts.same_digests(claimed, digest_of(Results.from_dict(given.document).estimates))


def _data_differences(
    given: Claim, parts: Mapping[str, str], found: Mapping[str, str], told: Mapping[str, object], behind: Trials | None
) -> list[str]:
    """Compare the data. Files with other bytes but the same rows, in any order, are the same data.

    Other rows are not.
    """
    claimed, now = _contents(given.document or {}), _contents(told)
    if behind is not None and claimed and claimed[0].startswith(COUNTED):  # streamed: how often each score occurs
        now = [text for text in [behind.content_like(claimed[0])] if text]
    if claimed and now:
        return [f"data: claimed rows {a[:12]}, found {b[:12]}" for a, b in zip(claimed, now, strict=False) if a != b]
    return [
        f"{name}: claimed {parts.get(name, 'nothing')}, found {found.get(name, 'nothing')}"
        for name in ("data", "a", "b", "runs")
        if not artifacts.same_digests(parts.get(name, ""), found.get(name, ""))
    ]


def _contents(document: Mapping[str, object]) -> list[str]:
    """Return the hashes of the rows of every run; empty if one of them is not known."""
    design = document.get("design") or {}
    sides = (design.get("contest") or {}).get("sides") if isinstance(design, Mapping) else None
    found = [side.get("content", "") for side in sides] if sides else [document.get("content", "")]
    return [str(text) for text in found] if all(found) else []


def _document_differences(
    claimed: Mapping[str, object], found: Mapping[str, object], whole: bool, files: Sequence[str]
) -> Iterator[str]:
    """Yield rows and values that differ; without `whole` only numbers are compared. `files` may have other names now."""
    for table, key in ROWS.items():
        if table in found or table in claimed:
            yield from _row_differences(_table(claimed, table), _table(found, table), key, whole)
    if not whole:
        return
    for name in KNOWN:
        a, b = claimed.get(name), found.get(name)
        if a and b and a != b:
            yield f"{name}: claimed {a}, found {b}"
    for name in VALUES:
        a, b = claimed.get(name), found.get(name)
        if name == "warnings":
            advice = _advice(found)  # it changes no figure; older versions lack it, and streams do not measure it
            heads = {text.partition(";")[0] for text in advice}
            unmeasured = not heads and str(claimed.get("content", "")).startswith(COUNTED)
            advice |= {text for text in _advice(claimed) if unmeasured or text.partition(";")[0] in heads}
            said, seen = _list(claimed, name), _list(found, name)
            renamed = _renamed(said, seen, files)
            said = [renamed.get(text, text) for text in said]
            yield from (f"warning not claimed: {t}" for t in seen if t not in said and t not in advice)
            yield from (f"warning claimed and not found: {t}" for t in said if t not in seen and t not in advice)
        elif not _same(a, b):
            yield f"{name}: claimed {a}, found {b}"


def _renamed(said: Sequence[object], seen: Sequence[object], files: Sequence[str]) -> dict[object, object]:
    """Map claimed warnings about a file to the warnings found, which differ by the name of the file alone.

    >>> _renamed(["old.csv: read as latin-1", "eer: few trials"], ["b/new.csv: read as latin-1"], ["b/new.csv"])
    {'old.csv: read as latin-1': 'b/new.csv: read as latin-1'}
    """
    about = [(text, str(text)[len(file) :]) for file in files for text in seen if str(text).startswith(f"{file}: ")]
    return {own: text for text, rest in about for own in said if own not in seen and str(own).endswith(rest)}


def _list(document: Mapping[str, object], name: str) -> list[object]:
    found = document.get(name)
    return found if isinstance(found, list) else []


def _table(document: Mapping[str, object], name: str) -> list[Mapping[str, object]]:
    return [row for row in _list(document, name) if isinstance(row, Mapping)]


def _advice(document: Mapping[str, object]) -> set[str]:
    """Return the warnings that only advise what else to ask."""
    pairs = zip(_list(document, "warnings"), _list(document, "warning_codes"), strict=False)
    return {str(text) for text, code in pairs if code == UNUSED}


def _row_differences(
    claimed: Sequence[Mapping[str, object]], found: Sequence[Mapping[str, object]], key: Sequence[str], whole: bool
) -> Iterator[str]:
    ours, theirs = _named_rows(found, key), _named_rows(claimed, key)
    for name, row in theirs.items():
        other = ours.get(name)
        if other is None:
            yield f"{name}: claimed, not found"
            continue
        for field in dict.fromkeys([*row, *other]):
            a, b = row.get(field), other.get(field)
            if not _same(a, b) and (whole or not isinstance(a if a is not None else b, str)):
                yield f"{name}: claimed {field} {a}, found {b}"
    yield from (f"{name}: found, not claimed" for name in ours if name not in theirs)


def _named_rows(rows: Iterable[Mapping[str, object]], key: Sequence[str]) -> dict[str, Mapping[str, object]]:
    """Return the rows by their names; a repeated row gets a number."""
    named: dict[str, Mapping[str, object]] = {}
    for row in rows:
        name = _name(row, key)
        times = sum(other == name or other.startswith(f"{name} (") for other in named)
        named[f"{name} ({times + 1})" if times else name] = row
    return named


def _name(row: Mapping[str, object], key: Sequence[str]) -> str:
    words = []
    for field in key:
        value = row.get(field)
        if isinstance(value, Mapping):
            words += [f"[{', '.join(f'{k}={v}' for k, v in value.items())}]"] if value else []
        elif value:
            words.append(str(value))
    return " ".join(words)


def _same(a: object, b: object) -> bool:
    """Return whether two JSON values are equal, numbers within the tolerance; an infinity equals only itself."""
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    if isinstance(a, int | float) and isinstance(b, int | float):
        try:
            return a == b or (math.isfinite(a) and math.isfinite(b) and abs(a - b) <= TOLERANCE * max(1.0, abs(a)))
        except OverflowError:  # an integer too large for a float
            return False
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        return {*a} == {*b} and all(_same(a[k], b[k]) for k in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(_same, a, b))
    return bool(a == b)


def _unlike_known(protocol: Protocol | None) -> list[str]:
    """Report a protocol that has the name of a known one but other rules."""
    known = protocols().get(protocol.name) if protocol is not None else None
    if known is None or protocol is None or replace(known, natural=()) == replace(protocol, natural=()):
        return []
    return [f"protocol: the claim was made by a protocol called {protocol.name} that is not the one known here"]


def _recompute(parts: dict[str, str], files: Files, reading: ReadSpec) -> Results | Comparison | Ranking:
    """Recompute a claim that is only a signature, or a file of an older version, from the parts of the signature."""
    if "compare" in parts:
        raise UsageError.of("comparison-signature")
    if "calibrat" in parts.get("choices", ""):
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
    return _replayed(replace(design, threshold=given), declared, files, parts)


def _design_of(parts: Mapping[str, str], protocol: Protocol | None) -> Design:
    """Return the design that a signature describes."""
    told = parts.get("choices", "")
    settled = replace(protocol, both_eers=False) if protocol is not None else None
    asked = Design.of(
        [m for m in re.split(r"\+(?![^(]*\))", parts.get("metrics", "")) if m],
        by=[g.split("*") for g in parts["by"].split(",")] if "by" in parts else [],
        gap=parts["gap"].split(GAPS_JOIN) if "gap" in parts else False,
        protocol=settled,
        level=float(parts.get("level", 0.95)),
    )
    if "boot" in parts:
        plan = SamplingPlan.parse(parts["boot"])
        drawn = replace(asked, bootstrap=plan.bootstrap, unit=plan.unit, seed=plan.seed, level=plan.level)
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
    unit = () if asked.unit == ("item",) else asked.unit  # repeated runs use this unit without being asked
    own = TriageRules(bands, sureness=sureness)
    return asked.changed(triage=own, protocol=protocol, unit=unit, interval="auto", undefined=undefined)


def _toxicity(parts: dict[str, str], scores: object, reading: ReadSpec) -> Results:
    """Repeat a toxicity evaluation: rows left out, thresholds and undefined figures follow the rules in the claim."""
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
    return _board(run, plan, "null" if "undefined:null" in told else "zero")


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


def _versions(parts: dict[str, str], found: dict[str, str]) -> str:
    if parts.get("hitmiss") == __version__ and parts.get("numpy") == found.get("numpy"):
        return ""
    return (
        f"; the claim was made with hitmiss {parts.get('hitmiss')} and numpy {parts.get('numpy')}, "
        f"this is hitmiss {__version__} and numpy {found.get('numpy')}"
    )
