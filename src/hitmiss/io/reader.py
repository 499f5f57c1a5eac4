"""The reader: files in, checked trials out. Anything that could make a number wrong is reported.

`read` raises one `DataError` with every fault; `examine` lists the faults and does not raise because of the data.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import polars as pl

from hitmiss.core import registry
from hitmiss.core.classes import Reading
from hitmiss.core.columns import FIXED, SYSTEM, prefixed, user_name
from hitmiss.core.errors import Fault, UnknownName, UsageError
from hitmiss.core.finding import Place, Remark
from hitmiss.core.header import Header, Source
from hitmiss.core.read_spec import ReadSpec
from hitmiss.core.text import quoted
from hitmiss.core.trials import Trials, with_target
from hitmiss.core.weights import weigh
from hitmiss.io import loaded
from hitmiss.io.aliases import (
    KIND_OF_SCORE,
    SYSTEM_PREFIX,
    plain,
)
from hitmiss.io.cells import (
    cut_labels,
    plain_numbers,
    read_cells,
    score_names,
    score_rules,
)
from hitmiss.io.checks import check_ids, check_one_label, check_repeats
from hitmiss.io.columns import Role, no_weight, refuse_undeclared
from hitmiss.io.diagnostics import Diagnostics, Stop
from hitmiss.io.fetch import expand
from hitmiss.io.finished import open_finished
from hitmiss.io.join import Coverage, join, stems
from hitmiss.io.labels import UNLABELLED, Words, check_labels, read_words, word_of
from hitmiss.io.layouts import find_expanding
from hitmiss.io.logs import may_be_log
from hitmiss.io.nested import expand_rows
from hitmiss.io.nested_fields import paths_in, with_fields
from hitmiss.io.run_columns import note_conditions, with_runs
from hitmiss.io.scores import (
    apply_nan_rule,
    drop_missing,
    is_reversed,
    negate_scores,
    note_oddities,
    refuse_other_direction,
)
from hitmiss.io.sides import Side, look, open_side
from hitmiss.io.source import SourceHead
from hitmiss.io.where import no_such_column, rows_among
from hitmiss.io.wide import MADE_OF_WIDE, Wide, find_wide, long_options, long_rows, note_wide, spread

if TYPE_CHECKING:
    from hitmiss.io.logs.opening import OpenedLog

SHOWN_VALUES: Final = 20


def describe_trials(trials: Trials) -> dict[str, object]:
    """Return counts for a person to check: trials, classes, runs, and slices with their most common values."""
    head, frame = trials.header, trials.frame
    counted = {name: frame[name].value_counts(sort=True, name=":n") for name in (*head.runs, *head.slices)}
    values = {name: dict(zip(c[name].to_list(), c[":n"].to_list(), strict=True)) for name, c in counted.items()}
    told = {name: {"values": len(c), "commonest": dict(list(c.items())[:SHOWN_VALUES])} for name, c in values.items()}
    return {
        "trials": len(trials),
        "classes": {head.positive: trials.n_positive, head.negative: len(trials) - trials.n_positive},
        "positive": head.positive,
        "score_kind": head.score_kind,
        "runs": {user_name(name): told[name] for name in head.runs},
        "slices": {user_name(name): told[name] for name in head.slices},
        "numbers": list(map(user_name, head.numbers)),
        "coverage": list(head.coverage) if head.coverage else None,
    }


LABEL_WORD: Final = "label_word"
REPEATS: Final = ("trial", "seed", "repeat")
"""Run columns that are numbered: there 0, 00 and 0.0 are equal."""


@dataclass(frozen=True)
class Examination:
    """The result of `examine`: every fault, the trials if there is no fault, and what was recognised."""

    faults: tuple[Fault, ...]
    trials: Trials | None
    summary: Mapping[str, object]
    fixes: Mapping[str, str]
    """How to fix each kind of fault that was found."""
    choices: tuple[Mapping[str, str], ...] = ()
    """Options of which one settles what is open."""

    @property
    def is_clean(self) -> bool:
        """Whether the data can be scored."""
        return not self.faults


@dataclass
class ReadState:
    """One pass through the reader: what was requested, and what has been found so far."""

    options: ReadSpec
    ledger: Diagnostics = field(default_factory=Diagnostics)
    files: list[dict[str, object]] = field(default_factory=list)
    sources: list[Source | None] = field(default_factory=list)
    coverage: Coverage | None = None
    classes: tuple[str | None, str | None] = (None, None)
    """The caller's own words for the classes, which a layout may replace by its own."""
    said: ReadSpec | None = None
    facts: dict[str, object] = field(default_factory=dict)
    memory: int | None = None
    """If given, files are read in pieces, and what is kept of their rows must fit into so many bytes."""
    needed: Collection[str] | None = None
    """The slices that the caller uses; None for all."""
    weight: str | None = None
    """Our name of the column of weights."""
    wide: Wide | None = None
    """The labels that the files have side by side."""


def read(
    scores: object,
    key: object = None,
    options: ReadSpec | None = None,
    *,
    memory: int | None = None,
    needed: Collection[str] | None = None,
    **changes: object,
) -> Trials:
    """Read trials from files by these options alone: `hitmiss.read`, which explains them, without a settings file.

    Examples
    --------
    >>> import polars as pl
    >>> scores = pl.DataFrame({"utt": ["a", "b"], "score": [1.5, -0.5]})
    >>> read(scores, key=pl.DataFrame({"filename": ["b", "a"], "cm-label": ["spoof", "bonafide"]}))
    Trials(2 trials, 1 bonafide, 1 spoof, raw scores, slices [])
    """
    visit, trials = _read_or_find(scores, key, options, changes, memory, needed)
    if visit.ledger.findings or trials is None:
        raise visit.ledger.error()
    return trials


def examine(scores: object, key: object = None, options: ReadSpec | None = None, **changes: object) -> Examination:
    """Read without raising for faults in the data: return what was recognised, and every fault with its place.

    >>> import polars as pl
    >>> seen = examine(pl.DataFrame({"id": ["a", "b"], "label": ["bonafide", "spooof"], "score": ["1", "nan"]}))
    >>> [fault.kind for fault in seen.faults]
    ['nan-score', 'unknown-label']
    """
    visit, trials = _read_or_find(scores, key, options, changes)
    summary = {"files": visit.files, "notes": visit.ledger.notes, "choices": visit.ledger.choices}
    summary |= describe_trials(trials) if trials is not None else {}
    fixes = {finding.kind: finding.fix for finding in visit.ledger.findings}
    return Examination(visit.ledger.faults, trials, summary, fixes, visit.ledger.open_choices)


def _read_or_find(
    scores: object,
    key: object,
    options: ReadSpec | None,
    changes: Mapping[str, object],
    memory: int | None = None,
    needed: Collection[str] | None = None,
) -> tuple[ReadState, Trials | None]:
    visit = ReadState((options or ReadSpec()).changed(**changes), memory=memory, needed=needed)
    visit.said = visit.options
    if visit.options.layout is not None and visit.options.layout not in (known := registry.all_of("reader")):
        raise UnknownName("layout", visit.options.layout, known)
    for name in ("threshold_rule", "identities"):  # options of prediction files
        if getattr(visit.options, name):
            raise UsageError.of("unread-option/predictions", name=name)
    run = open_finished(scores, visit.options)
    if run is not None:  # a run folder is read through the table inside it
        scores, visit.options, visit.coverage = list(run.tables), run.options, run.coverage
        visit.facts = {**run.provenance, **visit.facts}
        visit.ledger.notes += run.notes
        visit.ledger.choices += run.choices
    elif (log := _open_log(scores, visit.options)) is not None:
        scores, visit.options, visit.memory = list(log.sources), log.options, None
        visit.facts = {**log.provenance, **visit.facts}
        visit.ledger.notes += log.notes
        visit.ledger.choices += log.choices
    try:
        return visit, _read_sides(scores, key, visit)
    except Stop:
        return visit, None


def _open_log(source: object, options: ReadSpec) -> OpenedLog | None:
    """Open the log of another tool; the readers are imported for a file that may be one."""
    given = source if isinstance(source, list | tuple) else [source]
    if not any(isinstance(one, str | Path) and may_be_log(one) for one in given):
        return None
    from hitmiss.io.logs.opening import open_log

    return open_log(source, options)


def _read_sides(given: object, key_given: object, visit: ReadState) -> Trials | None:
    has_key = key_given is not None
    visit.options = visit.options.with_own_names()
    visit.classes = (visit.options.positive, visit.options.negative)
    if visit.options.dedupe or visit.options.slices is not None:  # rows are the same only if all their cells are
        visit.needed = None
    heads = _look(given, "scores" if has_key else "both", visit)
    key_heads = _look(key_given, "key", visit) if has_key else None
    wide = find_wide(heads, key_heads, visit.options)
    if wide is not None:
        note_wide(wide, visit.ledger)
        visit.wide = wide
        visit.options = long_options(wide, visit.options, has_key=has_key)
        heads = long_rows(heads, wide, visit.ledger, labels=not has_key, scores=True)
        key_heads = long_rows(key_heads, wide, visit.ledger, labels=True, scores=False) if key_heads else None
    scores = _open(heads, "scores" if has_key else "both", visit)
    if visit.needed is not None:  # what both sides say must agree, whether it is used or not
        visit.needed = {*visit.needed, *scores.match.picks}
    key = _open(key_heads, "key", visit) if key_heads is not None else None
    if not scores.is_typed and visit.needed is None:
        return _checked(scores, key, visit)
    trial = replace(visit, ledger=Diagnostics())
    trial.ledger.take(visit.ledger)
    with suppress(Stop):
        found = _checked(scores, key, trial)
        if not trial.ledger.findings:
            visit.ledger = trial.ledger
            return found
    # Only the text shows the exact content of a cell, and only all columns what is wrong with a row.
    scores, key = scores.as_text(visit.ledger), key.as_text(visit.ledger) if key and visit.needed is not None else key
    return _checked(scores, key, visit)


def _checked(scores: Side, key: Side | None, visit: ReadState) -> Trials | None:
    """Return trials from opened sides: select rows, interpret words, check values, join scores and key."""
    ledger = visit.ledger
    if visit.options.label_cut is not None:
        scores = replace(scores, stack=cut_labels(scores.stack, visit.options, ledger))
        key = replace(key, stack=cut_labels(key.stack, visit.options, ledger)) if key else None
    visit.options = options = with_runs(scores, visit.options, ledger)  # flattening may have added runs and numbers
    if _asks_about_targets([scores, key] if key else [scores], options):
        ledger.notes.append(
            "items repeat with another target: each target is a separate question and is measured separately"
        )
        scores, key = scores.with_targets(), key.with_targets() if key else None
    _refuse_absent(scores, key, visit)
    visit.weight = scores.match.weight or (key.match.weight if key else None)
    if options.where:
        scores, key = _chosen_rows(scores, key, options, ledger)
    reading = _read_words(scores, key, options)
    if options.higher is None:
        refuse_other_direction(scores.match.theirs.get("score", ""), reading["label"])
    answers = _check_answers(_normalise_side(scores, options, ledger), scores, reading, visit)
    note_conditions(answers, scores.match.slices, options.runs, ledger)
    coverage = visit.coverage
    if key is None:
        frame = answers.frame
    else:
        truths = _check_key(_normalise_side(key, options, ledger), key, answers, reading, visit)
        frame, coverage = join(answers, truths, options.runs, options, ledger, by_item=visit.wide is not None)
    if ledger.findings:
        return None
    return _trials(frame, _header(scores, key, reading["label"], coverage, visit), visit)


def _look(given: object, role: Role, visit: ReadState) -> list[SourceHead]:
    """Inspect every source of a side; fields inside nested cells become columns."""
    options = visit.options.for_key if role == "key" else visit.options
    layout = find_expanding(options)
    sources = expand(given)
    if layout is not None and layout.inside is not None:
        sources = [f for one in sources for f in (layout.inside(Path(str(one))) if _is_folder(one) else [one])]
    shapes = [look(source, role, options, visit.ledger, visit.memory) for source in sources]
    if layout is not None:
        return shapes
    return [s if s.frame is None else spread(with_fields(s, paths_in(options))) for s in shapes]


def _is_folder(source: object) -> bool:
    return isinstance(source, str | Path) and Path(str(source)).is_dir()


def _open(shapes: list[SourceHead], role: Role, visit: ReadState) -> Side:
    """Recognise and load every source of a side."""
    ledger = visit.ledger
    options = visit.options.for_key if role == "key" else visit.options
    options = options.changed(positive=visit.classes[0], negative=visit.classes[1])
    expanding = find_expanding(options)
    if expanding is not None:
        shapes, options, facts_found = expand_rows(shapes, expanding, options, ledger)
        visit.facts = {**facts_found, **visit.facts}
        own = "key_columns" if role == "key" and visit.options.key_columns else "columns"
        classes = {"positive": options.positive, "negative": options.negative}
        visit.options = visit.options.changed(
            runs=options.runs, numbers=options.numbers, **classes, **{own: options.columns}
        )
    needed = None if visit.needed is None or role == "scores" else {*visit.needed, *options.where}
    side = open_side(shapes, role, options, ledger, are_numbers_wanted=role != "key", needed=needed)
    if visit.needed is None:  # one chunk: gathering rows from the parser's many chunks takes seven times as long
        side = replace(side, stack=replace(side.stack, frame=side.stack.frame.rechunk()))
    for shape, match, table in zip(shapes, side.matches, side.stack.tables, strict=True):
        sha, layout = shape.content.sha256 if shape.content else None, expanding.name if expanding else None
        visit.sources.append(Source(shape.name, sha) if sha else None)
        facts: dict[str, object] = {
            "name": shape.name,
            "sha256": sha,
            "role": role,
            "layout": layout or match.layout,
            "encoding": shape.encoding,
        }
        columns = dict(match.theirs)
        if visit.wide is not None:
            columns = {ours: theirs for ours, theirs in columns.items() if ours not in MADE_OF_WIDE}
            facts["pairs"] = dict(visit.wide.scores)
        visit.files.append({**facts, "rows": table.frame.height, "columns": columns})
    if visit.wide is None:
        return side
    by_question = {"label": visit.wide.labels, "score": visit.wide.scores}
    return replace(side, stack=replace(side.stack, by_question=by_question))


def _asks_about_targets(sides: Sequence[Side], options: ReadSpec) -> bool:
    """Return whether `target` is needed to identify rows; if each item occurs once, it is a property of the item."""
    if any("target" in side.match.picks for side in sides):
        return False
    return any(_repeats(side.stack.frame, options) for side in sides if prefixed("target") in side.match.slices)


def _repeats(frame: pl.DataFrame, options: ReadSpec) -> bool:
    known = _identity(frame, options)
    return "item" in known and bool(frame.select(pl.struct(known).is_duplicated().any()).item())


def refuse_unread(options: ReadSpec, honoured: Collection[str], why: str) -> None:
    """Refuse options that do not apply to this kind of file."""
    other = [name for name in options.stated if name not in honoured]
    if other:
        from hitmiss.core.options import option_name

        raise UsageError.of("unread-option/refused", option_name=option_name(other[0]), why=why)


def _chosen_rows(scores: Side, key: Side | None, options: ReadSpec, ledger: Diagnostics) -> tuple[Side, Side | None]:
    """Return the rows that `where` keeps: each side by its own columns, and scores also by the key's columns."""
    for name, values in options.where.items():
        sides = [scores, key] if key else [scores]
        columns = [side.match.own(name) for side in sides]
        if not any(columns):
            raise no_such_column(name, [side.match for side in sides])
        told = [
            rows_among(side.stack.frame[column], name, values, options) if column else None
            for side, column in zip(sides, columns, strict=True)
        ]
        known = {value for one in told if one for value in one[1]}
        for value in values:
            if value not in known:
                raise UnknownName(f"value of {name}", value, sorted(known)[:20])
        kept = [one[0] if one else None for one in told]
        if kept[0] is None and key is not None and kept[1] is not None:  # ids that the key filter removes need no score
            mine, theirs = scores.stack.frame["item"], key.stack.frame["item"]
            dropped = theirs.filter(~kept[1])
            still = dropped.filter(~dropped.is_in(theirs.filter(kept[1]).implode()))
            kept[0] = ~mine.is_in(still.implode())
        sides = [
            side if mask is None else replace(side, stack=side.stack.keep(mask))
            for side, mask in zip(sides, kept, strict=True)
        ]
        n, whole = sides[0].stack.frame.height, scores.stack.frame.height
        ledger.choices.append(f"where:{name}={' & '.join(values)}({n}/{whole})")
        if not n:
            raise ledger.stop("no-rows/condition", [scores.stack.place(0)], name=name, value=values[0])
        scores, key = sides[0], sides[1] if len(sides) > 1 else None
    return scores, key


def _refuse_absent(scores: Side, key: Side | None, visit: ReadState) -> None:
    """Stop if the caller names columns, runs or numbers that no file has; absent slices are only noted."""
    options, ledger, file = visit.options, visit.ledger, scores.shapes[0].name
    sides = [scores, key] if key else [scores]
    refuse_undeclared(options, tuple(dict.fromkeys(name for side in sides for name in side.names)), file, ledger)
    have = {name for side in sides for name in side.match.picks}
    absent = [user_name(name) for name in options.runs if name not in scores.match.picks]
    absent += [user_name(name) for name in options.numbers if name not in have]
    if options.weight is not None and not any(side.match.weight for side in sides):
        raise no_weight(options.weight, [name for side in sides for name in side.names], file, ledger)
    if absent:
        raise ledger.stop("missing-column/run", [Place(file, 1)], absent[0], name=absent[0], quoted=quoted(absent[0]))
    unseen = [user_name(name) for name in options.slices or () if name not in have and name != LABEL_WORD]
    if unseen:
        ledger.notes.append(Remark.of("no-slice-column", columns=unseen))


def normalise_values(stack: loaded.LoadedRows, options: ReadSpec) -> loaded.LoadedRows:
    """Bring values to the spelling shown in tables: renamed, numbered, ids without folder and suffix if requested."""
    for name, values in options.rename.items():
        if name in stack.frame.columns:
            stack = stack.put(pl.col(name).replace(dict(values)))
    for name in stack.frame.columns:
        if name in REPEATS and name in options.runs:  # trial 00 or 0.0 is the same as trial 0
            stack = stack.put(plain_numbers(stack.frame[name]))
    if "item" in stack.frame.columns and options.matching == "stem":
        stack = stack.put(stems(stack.frame["item"]))
    return stack


def unpaired_note(file: str) -> str:
    """Return the note that a file has no ids."""
    return f"{file}: unpaired, it has no ids; rows are numbered, and cannot be matched with other files"


def _normalise_side(side: Side, options: ReadSpec, ledger: Diagnostics) -> loaded.LoadedRows:
    """Do the same as `normalise_values`, and make ids for files without any."""
    stack = normalise_values(side.stack, options)
    if "item" not in stack.frame.columns:
        ledger.notes.append(unpaired_note(side.shapes[0].name))
        return stack.put((pl.int_range(1, pl.len() + 1).cast(pl.String)).alias("item"))
    check_ids(stack, ledger)
    return stack


def _read_words(scores: Side, key: Side | None, options: ReadSpec) -> Words:
    """Interpret the labels of both sides and the decisions."""
    frames = [side.stack.frame for side in (scores, key) if side is not None]
    found: dict[str, list[str]] = {"label": [], "decision": []}
    for column, words in found.items():
        new = dict(options.rename.get(column, {}))
        for frame in frames:
            if column in frame.columns:
                words += frame[column].unique().cast(pl.String).replace(new).sort().to_list()
    return read_words(found["label"], found["decision"], options)


def _check_answers(stack: loaded.LoadedRows, side: Side, reading: Words, visit: ReadState) -> loaded.LoadedRows:
    options, ledger = visit.options, visit.ledger
    rules = {**score_rules(stack.frame), **_number_rules(side, options), "confidence": "confidence"}
    stack = read_cells(stack, rules, options, ledger)
    stack = check_repeats(_keep_words(stack, visit), _identity(stack.frame, options), False, options, ledger)
    if options.runs and {"item", "label"} <= {*stack.frame.columns}:
        question = [name for name in ("item", "target") if name in stack.frame.columns]
        check_one_label(stack, question, reading["label"], ledger)
    for column in ("label", "decision"):
        if column in stack.frame.columns:
            is_dropped = options.missing == "drop"
            stack = check_labels(stack, column, reading[column], ledger, options.abstain, is_dropped=is_dropped)
    return read_cells(stack, {"error": "error"}, options, ledger)


def _number_rules(side: Side, options: ReadSpec) -> dict[str, str]:
    """Return the rules of the further columns with numbers: those to summarise, and the weight."""
    weight = side.match.weight if options.weight_kind is not None else None
    return {**dict.fromkeys(side.match.numbers, "number"), **({} if weight is None else {weight: "weight"})}


def _check_key(
    stack: loaded.LoadedRows, side: Side, answers: loaded.LoadedRows, reading: Words, visit: ReadState
) -> loaded.LoadedRows:
    options, ledger = visit.options, visit.ledger
    stack = read_cells(stack, _number_rules(side, options), options, ledger)
    key = [name for name in ("item", "target") if name in stack.frame.columns]
    stack = check_repeats(stack, key, True, options, ledger, twin=answers)
    is_dropped = options.missing == "drop"
    return check_labels(_keep_words(stack, visit), "label", reading["label"], ledger, is_dropped=is_dropped)


def _keep_words(stack: loaded.LoadedRows, visit: ReadState) -> loaded.LoadedRows:
    """Keep the original words as a slice if a class has several (nontarget and spoof): they say more than 1 and 0."""
    is_wanted = all(chosen is None or LABEL_WORD in chosen for chosen in (visit.options.slices, visit.needed))
    if not is_wanted or "label" not in stack.frame.columns or stack.frame["label"].n_unique() <= 2:
        return stack
    found = stack.frame["label"].unique().cast(pl.String).to_list()
    is_dropped = visit.options.missing == "drop"  # what is left out says nothing about the classes
    spelt = {cell: word_of(cell) for cell in found if not (is_dropped and word_of(cell) in ("", UNLABELLED))}
    return (
        stack.put(pl.col("label").cast(pl.String).replace(spelt).alias(LABEL_WORD))
        if len({*spelt.values()}) > 2
        else stack
    )


def _identity(frame: pl.DataFrame, options: ReadSpec) -> list[str]:
    return [name for name in ("item", "target", *options.runs) if name in frame.columns]


def _header(scores: Side, key: Side | None, reading: Reading, coverage: Coverage | None, visit: ReadState) -> Header:
    options = visit.options
    sides = [scores, key] if key else [scores]
    slices = tuple(dict.fromkeys(name for side in sides for name in side.match.slices))
    numbers = tuple(dict.fromkeys(name for side in sides for name in side.match.numbers))
    # A frame in memory has no file hash: unless every source has one, the trials hash their columns instead.
    sources = tuple(s for s in visit.sources if s) if all(visit.sources) else ()
    runs = (*options.runs, *((SYSTEM,) if options.score_columns else ()))
    provenance = {
        **visit.facts,
        "files": visit.files,
        "rename": {name: dict(values) for name, values in options.rename.items()},
    }
    return Header(
        positive=reading.positive,
        negative=reading.negative,
        settled=reading.settled,
        score_kind=options.score_kind or KIND_OF_SCORE.get(plain(scores.match.theirs.get("score", "")), "raw"),
        runs=runs,
        slices=tuple(name for name in slices if name not in runs),
        numbers=numbers,
        sources=sources,
        coverage=coverage,
        provenance=provenance,
        reading=visit.said,
    )


def _trials(frame: pl.DataFrame, header: Header, visit: ReadState) -> Trials:
    """Return one row per trial, higher = positive, without NaN; record every change made on the way."""
    ledger = visit.ledger
    if visit.options.score_columns:
        frame = _one_row_a_system(frame)
    if visit.options.missing == "drop":
        frame = drop_missing(frame, visit.options, ledger)
    if visit.options.label_cut is not None:
        ledger.choices.append(f"label-cut:{visit.options.label_cut:g}")
    if LABEL_WORD in frame.columns:
        header = replace(header, slices=(*header.slices, LABEL_WORD))
    if "score" in frame.columns:
        is_turned = visit.options.higher is not None and is_reversed(header, visit.options.higher)
        if visit.options.nan_rule != "refuse":
            frame = apply_nan_rule(frame, visit.options.nan_rule, header.score_kind, ledger, is_turned=is_turned)
        if is_turned:
            frame, scale = negate_scores(frame, header, ledger)
            header = replace(header, scale=scale)
    if "target" not in frame.columns:
        frame = with_target(frame, header.positive)
    for name, value in visit.options.itself.items():  # it refers to another trial, and may mean the trial itself
        if name in frame.columns:
            own = pl.when(pl.col(name) == value).then(pl.col("item")).otherwise(pl.col(name))
            frame = frame.with_columns(own.alias(name))
    note_oddities(frame, header, ledger)
    weight, kind = visit.weight, visit.options.weight_kind
    known = (*FIXED, *header.runs, *header.slices, *header.numbers, weight)
    there = {*frame.columns}
    ordered = [name for name in known if name in there]
    header = replace(header, notes=tuple(dict.fromkeys(ledger.notes)), choices=tuple(ledger.choices))
    keeps_codes = visit.needed is not None and bool(header.sources)  # without files, the texts are hashed
    # Not `select`, which would copy columns that are divided into different chunks.
    frame = frame[ordered]
    if weight is None or kind is None:
        return Trials.from_frame(frame, header, is_unique=True, keeps_codes=keeps_codes)
    frame, header = weigh(frame, header, weight, kind)
    return Trials.from_frame(frame, header, is_unique=True, keeps_codes=keeps_codes)


def _one_row_a_system(frame: pl.DataFrame) -> pl.DataFrame:
    """Return one row for each of several systems, whose scores stand side by side."""
    systems = [name for name in score_names(frame) if name != "score"]
    others = frame.drop(systems)
    parts = [
        others.with_columns(frame[s].alias("score"), pl.lit(s.removeprefix(SYSTEM_PREFIX)).alias(SYSTEM))
        for s in systems
    ]
    return pl.concat(parts)
