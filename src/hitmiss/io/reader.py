"""The reader: files in, checked trials out. Anything that could make a number wrong is reported."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

import polars as pl

from hitmiss.core import progress, registry
from hitmiss.core.classes import Reading, is_word, same_class
from hitmiss.core.columns import FIXED, INNER, SYSTEM, prefixed, user_name
from hitmiss.core.errors import DataError, Fault, UnknownName, UsageError
from hitmiss.core.header import Header, Source
from hitmiss.core.kinds import ScoreKind
from hitmiss.core.options import option_name
from hitmiss.core.read_spec import OnNan, ReadSpec
from hitmiss.core.scale import ScoreScale
from hitmiss.core.trials import Trials, with_target
from hitmiss.core.weights import weigh
from hitmiss.io import tables
from hitmiss.io.cells import (
    check_labels,
    check_numbers,
    check_scores,
    check_weight,
    is_silent,
    plain_numbers,
    score_names,
    understand,
    without_false,
    word_of,
)
from hitmiss.io.checks import Coverage, check_ids, check_one_label, check_repeats, join, stems
from hitmiss.io.columns import (
    ANSWERED_BY,
    KIND_OF_SCORE,
    MADE_BY,
    REPETITIONS,
    SYSTEM_PREFIX,
    Match,
    Role,
    class_of_score,
    find_positional,
    is_condition,
    looks_headed,
    may_name_runs,
    mixed_note,
    no_weight,
    numbers_repetitions,
    plain,
    recognise,
    refuse_twins,
    refuse_undeclared,
)
from hitmiss.io.parse import Content, Kinds, Ledger, Place, Shape, Stop, Table, expand, fetch, is_remote, quoted
from hitmiss.io.tables import TextRows, find_reshaping, reshape
from hitmiss.runs.manifest import FILES, MANIFEST, TABLE, load_manifest, require_complete, run_facts

# ----------------------------------------------------------------------
# A finished run as a source: the table inside it, what the run says about its own scores, and where its files were.


@dataclass(frozen=True)
class FinishedRun:
    """The tables of one or more runs, how to read them, and how many of their items have an answer."""

    tables: tuple[str, ...]
    options: ReadSpec
    coverage: Coverage | None
    notes: tuple[str, ...]
    provenance: Mapping[str, object] = field(default_factory=dict)
    """What the run records about how its answers were made."""

    @property
    def choices(self) -> tuple[str, ...]:
        """What the signature must state: how many items failed."""
        return (f"failed({self.coverage[1] - self.coverage[0]})",) if self.coverage else ()

    def parts(self, kept: pl.DataFrame, is_clean: pl.Expr) -> Iterator[Trials]:
        """Yield the attacks (or the conditions) one by one, each with the rows without a change.

        `kept` has the values of the columns that tell them apart, of those that are wanted.
        """
        names, renamed = kept.columns, self.options.rename
        table = pl.scan_parquet(list(self.tables)).with_columns(
            pl.col(name).replace(dict(renamed[name])) for name in names if name in renamed
        )
        there = table.select(names).unique(maintain_order=True).collect()
        asked = there.join(kept, on=names, how="semi", maintain_order="left")
        options = self.options.changed(where={k: v for k, v in self.options.where.items() if k not in names})
        changed = asked.filter(~is_clean)
        for own in progress.each((changed if changed.height else asked).rows(named=True), "conditions"):
            is_own = pl.all_horizontal(pl.col(name) == value for name, value in own.items())
            yield read(table.filter(is_own | is_clean).collect(), None, options)


def open_finished(source: object, options: ReadSpec) -> FinishedRun | None:
    """Open the tables of run folders; return None for any other source. Unfinished or changed runs are refused.

    The run records the kind of its scores, the names of its classes and its numeric columns; a caller who has
    calibrated the scores may still declare them to be LLRs. Several runs are parts of one evaluation: what they record
    must be the same.
    """
    given = source if isinstance(source, list | tuple) else [source]
    is_local = all(isinstance(one, str | Path) and not is_remote(one) for one in given)
    sources = expand(list(given)) if is_local and given else []
    are_runs = [(Path(str(one)) / MANIFEST).is_file() for one in sources]
    if not any(are_runs):
        return None
    if not all(are_runs):
        other = sources[are_runs.index(False)]
        raise UsageError(f"{other} is not the folder of a run, unlike the others; give one kind", code="mixed-sources")
    first, *others = (_open_run(Path(str(folder)), options) for folder in sources)
    for folder, run in zip(sources[1:], others, strict=True):
        if run.options != first.options:
            raise UsageError(
                f"{folder} has other classes, columns or kinds of scores than {sources[0]}; score them one by one",
                code="runs-differ",
            )
    runs = [first, *others]
    told = {name: fact for name, fact in first.provenance.items() if all(r.provenance.get(name) == fact for r in runs)}
    scored, items = (sum(run.coverage[at] for run in runs if run.coverage) for at in (0, 1))
    notes = tuple(dict.fromkeys(note for run in runs for note in run.notes))
    coverage = (scored, items) if scored < items else None
    return FinishedRun(tuple(run.tables[0] for run in runs), first.options, coverage, notes, told)


def _open_run(folder: Path, options: ReadSpec) -> FinishedRun:
    facts = run_facts(require_complete(folder))
    options = options.changed(positive=options.positive or facts.positive, negative=options.negative or facts.negative)
    if facts.rows is not None:  # verdicts, which have their own layout
        own = options.changed(layout=options.layout or facts.layout)
        return FinishedRun((str(folder / facts.rows),), own, None, ())
    columns = {"item": "item", "score": "score", **options.columns}
    if "target" in pl.read_parquet_schema(folder / TABLE):
        columns.setdefault("target", "target")
    if facts.has_labels:
        columns.setdefault("label", "label")
    options = options.changed(
        columns=columns,
        numbers=tuple(dict.fromkeys((*options.numbers, *facts.numbers))),
        runs=tuple(dict.fromkeys((*options.runs, *facts.runs))),
        score_kind="llr" if options.score_kind == "llr" else facts.score_kind,
    )
    coverage = (facts.n_scored, facts.n_scored + facts.n_failed)
    return FinishedRun((str(folder / TABLE),), options, coverage, facts.notes, facts.provenance)


def run_behind(source: str | Path) -> Path | None:
    """Return the run of a source: the folder itself, or for `results.jsonl` the `results.run` beside it that wrote it.

    >>> run_behind(".") is run_behind("no-such.jsonl") is None
    True
    """
    path = Path(source)
    beside = (path.with_suffix(".run"),) if path.is_file() else ()
    return next((p for p in (path, *beside) if (p / MANIFEST).is_file()), None)


def media_folder(run: Path) -> Path | None:
    """Return the folder (or the single signal file) that the run recorded for its inputs; None if not recorded."""
    told = run_facts(load_manifest(run)).media
    return None if told is None else run / told


def files_of(run: Path) -> dict[str, str]:
    """Return the file of each item, relative to the folder of the files."""
    if not (run / FILES).is_file():
        return {}
    table = pl.read_parquet(run / FILES)
    return dict(zip(table["item"].to_list(), table["file"].to_list(), strict=True))


# ----------------------------------------------------------------------
# Changes to scores that the caller asks for, and notes about trials that are valid but unusual.

SATURATED: Final = 0.01
"""Share of scores at exactly 0 or 1 above which a note is added."""
SHOWN_VALUES: Final = 20


def settle_nan(
    frame: pl.DataFrame, rule: OnNan, kind: ScoreKind, ledger: Ledger, *, is_turned: bool = False
) -> pl.DataFrame:
    """Drop trials without a score, or give each the worst score for its own class, as the caller has chosen.

    `is_turned`: here a higher score means the negative class; the scores are reversed later.
    """
    if rule == "refuse" or not frame["score"].is_nan().any():
        return frame
    nan = pl.col("score").is_nan()
    ledger.choices.append(f"on-nan:{rule}({frame.select(nan.sum()).item()})")
    if rule == "drop":
        return frame.filter(~nan)
    low, high = worst_scores(kind)
    low, high = (high, low) if is_turned else (low, high)
    worst = pl.when(pl.col("label") == 1).then(low).otherwise(high)
    return frame.with_columns(score=pl.when(nan).then(worst).otherwise(pl.col("score")))


def worst_scores(kind: ScoreKind | None) -> tuple[float, float]:
    """Return the lowest and the highest possible score of a kind."""
    return (0.0, 1.0) if kind == "probability" else (-float("inf"), float("inf"))


def reversed_note(header: Header) -> str:
    """Return the note that a higher score meant the negative class."""
    how = "1 - p" if header.score_kind == "probability" else "their sign changed"
    return f"a higher score meant {header.negative} in the file: the scores were reversed ({how})"


def turn_round(frame: pl.DataFrame, header: Header, ledger: Ledger) -> tuple[pl.DataFrame, ScoreScale]:
    """Make a higher score mean positive (change the sign, or replace p by 1 - p), add a note, and return the scale."""
    scale = ScoreScale(is_reversed=True, is_probability=header.score_kind == "probability")
    score = frame["score"]
    turned = scale.turned(score)
    note = reversed_note(header)
    lost = score.n_unique() - turned.n_unique()
    if lost > 0:
        note += f"; {lost:,} distinct scores became equal to others by rounding, so give log-odds if there are any"
    ledger.notes.append(note)
    ledger.choices.append(f"higher:{header.negative}")
    return frame.with_columns(turned.alias("score")), scale


_S: Final = pl.col("score")
FACTS: Final = (
    _S.min().alias(":low"),
    _S.max().alias(":high"),
    _S.is_infinite().sum().alias(":inf"),
    ((_S == 0) | (_S == 1)).mean().alias(":ends"),
    pl.len().alias(":n"),
)
"""What notes about scores quote."""


def note_oddities(
    frame: pl.DataFrame, header: Header, ledger: Ledger, facts: Sequence[pl.Expr] = FACTS, n: pl.Expr | None = None
) -> None:
    """Note a single class, infinite scores, a constant score, and probabilities that cluster at 0 or 1.

    `n` is how many trials each row counts for, and `facts` what is read from the rows then.
    """
    label = pl.col("label").cast(pl.Int64)
    total, positive = frame.select(
        pl.len() if n is None else n.sum(), label.sum() if n is None else (label * n).sum()
    ).row(0)
    if total and positive in (0, total):
        name = header.positive if positive else header.negative
        ledger.notes.append(f"all {total:,} trials are {name}: nothing that compares the classes is defined")
    if "score" not in frame.columns or not total:
        return
    runs = list(header.runs)
    table = frame.group_by(runs, maintain_order=True).agg(*facts) if runs else frame.select(*facts)
    for row in table.iter_rows(named=True):
        who = "".join(f"{user_name(name)} {row[name]}: " for name in runs)
        ledger.notes += [who + note for note in _score_notes(row, header)]


def _score_notes(row: Mapping[str, float], header: Header) -> list[str]:
    found = []
    if row[":low"] == row[":high"] and row[":n"] > 1:
        found.append(f"all {row[':n']:,} scores are {row[':low']!r}: they do not separate the classes")
    if row[":inf"]:
        found.append(
            f"{row[':inf']:,} scores are infinite: metrics of the order are defined, those of the value are not"
        )
    if header.score_kind == "probability" and row[":ends"] > SATURATED:
        found.append(
            f"{row[':ends']:.1%} of the probabilities are exactly 0 or 1, so their order is lost; give log-odds if there are any"
        )
    return found


def sealed(header: Header, ledger: Ledger) -> Header:
    """Return the header with all notes and choices made while reading."""
    return replace(header, notes=tuple(dict.fromkeys(ledger.notes)), choices=tuple(ledger.choices))


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


# ----------------------------------------------------------------------
# The reader: files in, checked trials out. Anything that could make a number wrong is reported.
#
# `read` raises one `DataError` with every fault; `examine` lists the faults and does not raise because of the data.

WORDS: Final = "label_word"
REPEATS: Final = ("trial", "seed", "repeat")
"""Run columns that are numbered: there 0, 00 and 0.0 are equal."""
Words = Mapping[str, Reading]
"""The meaning of the words in the columns `label` and `decision`."""


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


def names_in(shapes: Sequence[Shape], match: Match) -> list[str]:
    """Return the names of all columns of some files; without a header, their positions in both spellings."""
    if match.has_header:
        return [name for shape in shapes for name in shape.names or shape.first[0]]
    return [spelling.format(i + 1) for i in range(shapes[0].width) for spelling in ("{}", "column_{}")]


@dataclass(frozen=True)
class Side:
    """One side of the input (scores or key) after opening: its files, what was recognised, its rows."""

    shapes: tuple[Shape, ...]
    match: Match
    stack: tables.Stack
    matches: tuple[Match, ...] = ()
    """What was recognised in each of its files; `match` is that of the first, without columns that were not read."""

    def with_targets(self) -> Side:
        """Return this side with a column `target` that says what each row asks about."""
        own = prefixed("target")
        if own not in self.match.picks:
            return self
        return replace(
            self,
            match=replace(
                self.match,
                picks={"target" if n == own else n: at for n, at in self.match.picks.items()},
                slices=tuple(n for n in self.match.slices if n != own),
                theirs={"target" if n == own else n: theirs for n, theirs in self.match.theirs.items()},
            ),
            stack=self.stack.renamed({own: "target"}),
        )

    @property
    def is_typed(self) -> bool:
        """Whether numbers were parsed directly, so that their original text is not available."""
        return any(
            shape.frame is None and any(kind.is_numeric() for kind in table.frame.dtypes)
            for shape, table in zip(self.shapes, self.stack.tables, strict=True)
        )

    def as_text(self, ledger: Ledger) -> Side:
        """Return this side with all its columns, and every cell as the text in its file."""
        match = self.matches[0]
        return replace(
            self, match=match, stack=tables.Stack.of(_loaded(self.shapes, self.matches, {}, ledger), match.theirs)
        )

    @property
    def names(self) -> list[str]:
        """The names of all columns; without a header, their positions in both spellings."""
        return names_in(self.shapes, self.match)


@dataclass
class Visit:
    """One pass through the reader: what was requested, and what has been found so far."""

    options: ReadSpec
    ledger: Ledger = field(default_factory=Ledger)
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


def read(
    scores: object,
    key: object = None,
    options: ReadSpec | None = None,
    *,
    memory: int | None = None,
    needed: Collection[str] | None = None,
    **changes: object,
) -> Trials:
    """Read trials from score files and, if those have no labels, a key.

    Parameters
    ----------
    scores
        A path, `-` for stdin, a pattern, a list of these (shards of one run), or a polars or pandas frame.
    key
        The labels, given in the same ways; None if the score files hold them.
    options
        How to read (columns, classes, score kind, …); None for the defaults.
    memory
        Read files in pieces, so that they need not fit into memory; what is kept of their rows may take so many bytes.
    needed
        The slices that are used; others may be left out, which saves time. None keeps all.
    **changes
        Single options, by name, that replace those in `options`.

    Returns
    -------
    Trials
        One row per trial; a higher score means the positive class.

    Raises
    ------
    DataError
        If the data cannot be scored: a single error that carries every fault.
    UsageError
        If the rows do not fit into `memory`.

    Examples
    --------
    >>> import polars as pl
    >>> scores = pl.DataFrame({"utt": ["a", "b"], "score": [1.5, -0.5]})
    >>> read(scores, key=pl.DataFrame({"filename": ["b", "a"], "cm-label": ["spoof", "bonafide"]}))
    Trials(2 trials, 1 bonafide, 1 spoof, raw scores, slices [])
    """
    visit, trials = _visit(scores, key, options, changes, memory, needed)
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
    visit, trials = _visit(scores, key, options, changes)
    summary = {"files": visit.files, "notes": visit.ledger.notes, "choices": visit.ledger.choices}
    summary |= describe_trials(trials) if trials is not None else {}
    fixes = {finding.kind: finding.fix for finding in visit.ledger.findings}
    return Examination(visit.ledger.faults, trials, summary, fixes, visit.ledger.open_choices)


def _visit(
    scores: object,
    key: object,
    options: ReadSpec | None,
    changes: Mapping[str, object],
    memory: int | None = None,
    needed: Collection[str] | None = None,
) -> tuple[Visit, Trials | None]:
    visit = Visit((options or ReadSpec()).changed(**changes), memory=memory, needed=needed)
    visit.said = visit.options
    _refuse_unknown_layout(visit.options)
    _refuse_unread(visit.options)
    run = open_finished(scores, visit.options)
    if run is not None:  # a run folder is read through the table inside it
        scores, visit.options, visit.coverage = list(run.tables), run.options, run.coverage
        visit.facts = {**run.provenance, **visit.facts}
        visit.ledger.notes += run.notes
        visit.ledger.choices += run.choices
    try:
        return visit, _pass(scores, key, visit)
    except Stop:
        return visit, None


def _refuse_unknown_layout(options: ReadSpec) -> None:
    known = registry.all_of("reader") if options.layout is not None else {}
    if options.layout is not None and options.layout not in known:
        raise UnknownName("layout", options.layout, known)


def _refuse_unread(options: ReadSpec) -> None:
    """Refuse options for prediction files, which have no effect in this reader."""
    for name in ("missing", "threshold_rule", "identities"):
        if getattr(options, name):
            raise UsageError(f"{name} applies only to predictions (-p toxicity)", code="unread-option")


def _pass(given: object, key_given: object, visit: Visit) -> Trials | None:
    has_key = key_given is not None
    visit.options = visit.options.with_own_names()
    visit.classes = (visit.options.positive, visit.options.negative)
    if visit.options.dedupe or visit.options.slices is not None:  # rows are the same only if all their cells are
        visit.needed = None
    scores = _open(given, "scores" if has_key else "both", visit)
    if visit.needed is not None:  # what both sides say must agree, whether it is used or not
        visit.needed = {*visit.needed, *scores.match.picks}
    key = _open(key_given, "key", visit) if has_key else None
    if not scores.is_typed and visit.needed is None:
        return _checked(scores, key, visit)
    trial = replace(visit, ledger=Ledger())
    trial.ledger.take(visit.ledger)
    with suppress(Stop):
        found = _checked(scores, key, trial)
        if not trial.ledger.findings:
            visit.ledger = trial.ledger
            return found
    # Only the text shows the exact content of a cell, and only all columns what is wrong with a row.
    scores, key = scores.as_text(visit.ledger), key.as_text(visit.ledger) if key and visit.needed is not None else key
    return _checked(scores, key, visit)


def _checked(scores: Side, key: Side | None, visit: Visit) -> Trials | None:
    """Return trials from opened sides: select rows, interpret words, check values, join scores and key."""
    ledger = visit.ledger
    visit.options = options = _with_runs(scores, visit.options, ledger)  # flattening may have added runs and numbers
    if _asks_about_targets([scores, key] if key else [scores], options):
        ledger.notes.append(
            "items repeat with another target: each target is a separate question and is measured separately"
        )
        scores, key = scores.with_targets(), key.with_targets() if key else None
    _refuse_absent(scores, key, visit)
    visit.weight = scores.match.weight or (key.match.weight if key else None)
    scores, key = _chosen_rows(scores, key, options, ledger)
    reading = _read_words(scores, key, options)
    refuse_other_direction(scores.match.theirs.get("score", ""), reading["label"], options)
    answers = _check_answers(_settle(scores, options, ledger), scores, reading, visit)
    _note_conditions(answers, scores.match.slices, options.runs, ledger)
    coverage = visit.coverage
    if key is None:
        frame = answers.frame
    else:
        truths = _check_key(_settle(key, options, ledger), key, answers, reading, visit)
        frame, coverage = join(answers, truths, options.runs, options, ledger)
    if ledger.findings:
        return None
    return _trials(frame, _header(scores, key, reading["label"], coverage, visit), visit)


def _open(given: object, role: Role, visit: Visit) -> Side:
    """Inspect, recognise and load every source of a side."""
    ledger = visit.ledger
    options = visit.options.for_key if role == "key" else visit.options
    options = options.changed(positive=visit.classes[0], negative=visit.classes[1])
    shapes = [look(source, role, options, ledger, visit.memory) for source in expand(given)]
    reshaping = find_reshaping(options)
    if reshaping is not None:
        shapes, options, facts_found = reshape(shapes, reshaping, options, ledger)
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
        sha, layout = shape.content.sha256 if shape.content else None, reshaping.name if reshaping else None
        visit.sources.append(Source(shape.name, sha) if sha else None)
        facts = {
            "name": shape.name,
            "sha256": sha,
            "role": role,
            "layout": layout or match.layout,
            "encoding": shape.encoding,
        }
        visit.files.append({**facts, "rows": table.frame.height, "columns": dict(match.theirs)})
    return side


def open_side(
    shapes: Sequence[Shape],
    role: Role,
    options: ReadSpec,
    ledger: Ledger,
    *,
    are_numbers_wanted: bool = False,
    needed: Collection[str] | None = None,
) -> Side:
    """Recognise the columns of the sources and load their rows: the common start for every kind of table.

    `are_numbers_wanted`: parse scores directly as numbers if every one of them is a number; `needed`: load only these
    slices. For both see `Side.as_text`.
    """
    matches = [recognise(shape, role, options, ledger) for shape in shapes]
    for shape, match in zip(shapes, matches, strict=True):
        if set(match.picks) != set(matches[0].picks):
            what = f"its columns differ from those of {shapes[0].name}"
            raise ledger.stop("shards-differ", what, "give shards of one kind", [Place(shape.name, 1)])
    scores = [name for name in matches[0].picks if name == "score" or name.startswith(SYSTEM_PREFIX)]
    kinds = matches[0].kinds(dict.fromkeys(scores, pl.Float64), options) if are_numbers_wanted else {}
    used = matches if needed is None else [match.only(needed) for match in matches]
    if needed is not None:
        kinds = {**kinds, **used[0].words(shapes[0].first, options)}
    stack = tables.Stack.of(_loaded(shapes, used, kinds, ledger), used[0].theirs)
    return Side(tuple(shapes), used[0], stack, tuple(matches))


def _loaded(shapes: Sequence[Shape], matches: Sequence[Match], kinds: Kinds, ledger: Ledger) -> list[Table]:
    order = list(matches[0].picks)
    sizes = [len(shape.content.data) if shape.content else 0 for shape in shapes]
    return [
        tables.load(s, m.has_header, {c: m.picks[c] for c in order}, m.numeric, ledger, kinds)
        for s, m in progress.each(list(zip(shapes, matches, strict=True)), "parsing files", sizes)
    ]


def _with_runs(scores: Side, options: ReadSpec, ledger: Ledger) -> ReadSpec:
    """Return the options with the columns that say which run a row belongs to, as their names and values show.

    Answers of two models are never pooled. A column `model` may also say how an item was made: it names runs if items
    occur under several of its values, or if there are no ids and each of its values has both classes.
    """
    named = [name for name in scores.match.slices if may_name_runs(name) and name not in options.runs]
    frame = _kept_rows(scores, options) if named else scores.stack.frame
    several = [name for name in named if frame[name].n_unique() > 1]
    if not several:
        return options
    order = (*ANSWERED_BY, *MADE_BY, *REPETITIONS)
    runs = list(options.runs)
    for name in sorted(several, key=lambda name: order.index(plain(user_name(name)))):
        if _names_runs(frame, name, runs):
            runs.append(name)
        elif plain(user_name(name)) in MADE_BY and _has_both(frame, name):
            values = ", ".join(frame[name].unique().sort().to_list()[:SHOWN_RUNS])
            ledger.notes.append(
                f"{user_name(name)} has {frame[name].n_unique()} values ({values}), and no id occurs under two of them: they "
                f"were taken as a property of the items and pooled; say --run-column {user_name(name)} if they are runs"
            )
    return options.changed(runs=tuple(runs))


SHOWN_RUNS: Final = 3


def _note_conditions(stack: tables.Stack, slices: Sequence[str], runs: Sequence[str], ledger: Ledger) -> None:
    """Say where a run mixes prompts, temperatures or versions; repetitions belong to one run."""
    named = [name for name in slices if is_condition(name) and name in stack.frame.columns and name not in runs]
    several = [name for name in named if 1 < stack.frame[name].n_unique() < stack.frame.height]
    if not several:
        return
    rest = [name for name in runs if not numbers_repetitions(name)]
    parts = stack.frame.group_by(rest, maintain_order=True) if rest else [((), stack.frame)]
    for key, own in parts:
        values = {user_name(name): own[name].unique().to_list() for name in several if own[name].n_unique() > 1}
        if values:
            ledger.notes.append(mixed_note(", ".join(map(str, key)), values, are_columns=True))


def _kept_rows(scores: Side, options: ReadSpec) -> pl.DataFrame:
    """Return the rows of the scores that `where` keeps, by the columns that the scores have."""
    frame = scores.stack.frame
    for name, values in options.where.items():
        column = scores.match.own(name)
        if column is not None:
            frame = frame.filter(_among(frame[column], name, values, options)[0])
    return frame


def _names_runs(frame: pl.DataFrame, name: str, runs: Sequence[str]) -> bool:
    """Return whether the values of a column are runs, beside those that other columns name already."""
    if "item" not in frame.columns:
        return not numbers_repetitions(name) and _has_both(frame, name)
    identity = [column for column in ("item", "target", *runs) if column in frame.columns]
    if frame["item"].n_unique() < frame.height and frame[name].n_unique() < frame.height:
        again = frame.filter(pl.struct(identity).is_duplicated())
        if again.height and again.select((pl.col(name).n_unique().over(identity) > 1).any()).item():
            return True
    return plain(user_name(name)) in ANSWERED_BY and frame[name].n_unique() < frame.height


def _has_both(frame: pl.DataFrame, name: str) -> bool:
    """Return whether each value of a column has rows with several labels; not if the labels are in another file."""
    if "label" not in frame.columns:
        return False
    return bool(frame.group_by(name).agg(pl.col("label").n_unique() > 1)["label"].all())


def _asks_about_targets(sides: Sequence[Side], options: ReadSpec) -> bool:
    """Return whether `target` is needed to identify rows; if each item occurs once, it is a property of the item."""
    if any("target" in side.match.picks for side in sides):
        return False
    return any(_repeats(side.stack.frame, options) for side in sides if prefixed("target") in side.match.slices)


def _repeats(frame: pl.DataFrame, options: ReadSpec) -> bool:
    known = _identity(frame, options)
    return "item" in known and bool(frame.select(pl.struct(known).is_duplicated().any()).item())


@dataclass(frozen=True)
class Choice:
    """The effect of `where` on one column: its values, how many rows were kept, and out of how many."""

    known: frozenset[str]
    kept: int
    total: int


def choose(stack: tables.Stack, match: Match, options: ReadSpec) -> tuple[tables.Stack, list[Choice]]:
    """Return the rows of a table that `where` keeps, and for each column used the choice that was made."""
    choices = []
    for name, values in options.where.items():
        column = match.own(name)
        if column is None:
            raise _no_such_column(name, [match])
        is_kept, known = _among(stack.frame[column], name, values, options)
        total = stack.frame.height
        stack = stack.keep(is_kept)
        choices.append(Choice(known, stack.frame.height, total))
    return stack, choices


def keep_rows(stack: tables.Stack, match: Match, options: ReadSpec) -> tables.Stack:
    """Return the rows that `where` keeps; a value that no row has is an error that suggests the nearest value."""
    stack, choices = choose(stack, match, options)
    for (name, values), choice in zip(options.where.items(), choices, strict=True):
        for value in values:
            if value not in choice.known:
                raise UnknownName(f"value of {name}", value, sorted(choice.known)[:20])
        if not choice.kept:
            raise DataError(f"no row has {name}={values[0]}; check --where", code="no-rows")
    return stack


def read_rows(source: object, options: ReadSpec | None = None, *, is_key: bool = False) -> TextRows:
    """Read a table without interpretation: every column as text under its own name; no value is treated as missing.

    Parameters
    ----------
    source
        A path to CSV, TSV, JSON lines or Parquet, or a frame.
    options
        How to read; columns that the caller declares get the declared names.
    is_key
        Whether a file without a header may be a key in a known layout, which then names the columns.

    >>> read_rows(pl.DataFrame({"id": ["007"], "text": ["NA"]})).frame.row(0)
    ('007', 'NA')
    """
    said, ledger = (options or ReadSpec()).for_key, Ledger()
    try:
        shape = look(source, "key", said, ledger)
        is_headed = not is_key or shape.names is not None or looks_headed(shape, said)
        layout = None if is_headed else find_positional(shape.first, "label")
        names = layout.columns if layout is not None else shape.names or shape.first[0]
        if is_key:
            refuse_twins([name for name in names if name], shape.name, ledger)
            refuse_undeclared(said, tuple(names), shape.name, ledger)
        called = {theirs: ours for ours, theirs in said.columns.items()}
        table = tables.load_all(shape, ledger, layout is None, [called.get(n, n) for n in names] if is_key else names)
    except Stop:
        raise ledger.error() from None
    picks = {name: at for at, name in enumerate(table.frame.columns)}
    stack = keep_rows(tables.Stack.of([table], {}), Match("rows", layout is None, picks), said)
    if said.dedupe:
        stack = stack.keep(stack.frame.select(pl.struct(pl.all()).is_first_distinct()).to_series())
    return TextRows(stack, shape.name, shape.content.sha256 if shape.content else "")


def refuse_unread(options: ReadSpec, honoured: Collection[str], why: str) -> None:
    """Refuse options that do not apply to this kind of file."""
    other = [name for name in options.stated if name not in honoured]
    if other:
        raise UsageError(f"{option_name(other[0])} {why}; leave it out", code="unread-option")


def _among(column: pl.Series, name: str, values: Sequence[str], options: ReadSpec) -> tuple[pl.Series, frozenset[str]]:
    """Return which rows have one of the values, as spelt in the file or after renaming, and all values."""
    texts = column.cast(pl.String)
    renamed = texts.replace(dict(options.rename.get(column.name, options.rename.get(name, {}))))
    wanted = list(values)
    return texts.is_in(wanted) | renamed.is_in(wanted), frozenset((*texts.unique(), *renamed.unique()))


def _no_such_column(name: str, matches: Sequence[Match]) -> UnknownName:
    there = tuple(dict.fromkeys(user_name(n) for match in matches for n in match.picks if not n.startswith(INNER)))
    return UnknownName("column to choose rows by", name, there)


def _chosen_rows(scores: Side, key: Side | None, options: ReadSpec, ledger: Ledger) -> tuple[Side, Side | None]:
    """Return the rows that `where` keeps: each side by its own columns, and scores also by the key's columns."""
    for name, values in options.where.items():
        sides = [scores, key] if key else [scores]
        columns = [side.match.own(name) for side in sides]
        if not any(columns):
            raise _no_such_column(name, [side.match for side in sides])
        told = [
            _among(side.stack.frame[column], name, values, options) if column else None
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
            raise ledger.stop("no-rows", f"no row has {name}={values[0]}", "check --where", [scores.stack.place(0)])
        scores, key = sides[0], sides[1] if len(sides) > 1 else None
    return scores, key


def look(source: object, role: Role, options: ReadSpec, ledger: Ledger, memory: int | None = None) -> Shape:
    """Take a first look at a source; if the layout names a plug-in's reader, it turns a score file into a frame."""
    return look_by_plugin(source, role, options, ledger) or tables.look(source, options, ledger, memory)


def look_by_plugin(source: object, role: Role, options: ReadSpec, ledger: Ledger) -> Shape | None:
    """Return the frame that a plug-in's reader turns a score file into; None if the layout does not name one."""
    reader = registry.find("reader", options.layout) if options.layout is not None else None
    if role == "key" or not callable(reader) or not isinstance(source, str | Path):
        return None
    return _by_plugin(reader, source, options, ledger)


def _by_plugin(reader: Callable[..., object], path: str | Path, options: ReadSpec, ledger: Ledger) -> Shape:
    shape = tables.look(reader(path), options, ledger)
    content = Content(Path(path).name, fetch(path, "latin-1", Ledger()).sha256, b"", f"reader {options.layout}")
    return Shape(content.name, shape.first, shape.names, content=content, frame=shape.frame)


def _refuse_absent(scores: Side, key: Side | None, visit: Visit) -> None:
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
        fix = f"say which one it is with --column {absent[0]}=NAME"
        raise ledger.stop("missing-column", f"there is no column {quoted(absent[0])}", fix, [Place(file, 1)], absent[0])
    unseen = [user_name(name) for name in options.slices or () if name not in have and name != WORDS]
    if unseen:
        ledger.notes.append(f"there is no column {', '.join(unseen)} to slice by")


def settle(stack: tables.Stack, options: ReadSpec) -> tables.Stack:
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


def _settle(side: Side, options: ReadSpec, ledger: Ledger) -> tables.Stack:
    """Do the same as `settle`, and make ids for files without any."""
    stack = settle(side.stack, options)
    if "item" not in stack.frame.columns:
        ledger.notes.append(unpaired_note(side.shapes[0].name))
        return stack.put((pl.int_range(1, pl.len() + 1).cast(pl.String)).alias("item"))
    check_ids(stack, ledger)
    return stack


def _read_words(scores: Side, key: Side | None, options: ReadSpec) -> Words:
    """Interpret the labels of both sides and the decisions."""
    frames = [side.stack.frame for side in (scores, key) if side is not None]
    found = {
        column: [w for frame in frames if column in frame.columns for w in _distinct(frame[column], options)]
        for column in ("label", "decision")
    }
    return read_words(found["label"], found["decision"], options)


def read_words(labels: Sequence[str], decisions: Sequence[str], options: ReadSpec) -> Words:
    """Interpret the distinct words of labels and decisions: together, or separately if only one of them has codes.

    >>> read_words(["0", "1"], ["toxic"], ReadSpec(positive="toxic", positive_value="1"))["decision"].positive_words
    ('toxic',)
    """
    classes = (options.positive, options.negative)
    declared = [word for word in (*classes, options.positive_value) if word is not None]
    said = [cell for cell in decisions if word_of(cell, declared) and not is_silent(cell, options.abstain)]
    if options.positive_value is not None and _has_words(said) and not _has_words(labels):
        own = understand(labels, *classes, options.positive_value)
        return {"label": own, "decision": understand(said, own.positive, own.negative)}
    if options.positive_value is not None and _are_codes(said) and not _are_codes([options.positive_value, *labels]):
        own = understand(labels, *classes, options.positive_value)
        return {"label": own, "decision": understand(said, own.positive, own.negative, "1")}
    together = understand(list(dict.fromkeys((*labels, *said))), *classes, options.positive_value)
    return {"label": together, "decision": together}


def _has_words(cells: Sequence[str]) -> bool:
    return any(is_word(word_of(cell)) for cell in cells)


def _are_codes(cells: Sequence[str]) -> bool:
    """Return whether some cells are 0, 1, true or false, in any spelling."""
    return any(word_of(cell) in ("0", "1", "true", "false") for cell in cells)


def _distinct(column: pl.Series, options: ReadSpec) -> list[str]:
    return column.unique().cast(pl.String).replace(dict(options.rename.get(column.name, {}))).sort().to_list()


def _check_answers(stack: tables.Stack, side: Side, reading: Words, visit: Visit) -> tables.Stack:
    options, ledger = visit.options, visit.ledger
    stack = check_scores(stack, options, ledger)
    names = [*side.match.numbers, *(["confidence"] if "confidence" in stack.frame.columns else [])]
    stack = check_numbers(stack, names, options, ledger)
    stack = check_weight(stack, side.match.weight, options, ledger)
    stack = check_repeats(_keep_words(stack, visit), _identity(stack.frame, options), False, options, ledger)
    if options.runs and {"item", "label"} <= {*stack.frame.columns}:
        question = [name for name in ("item", "target") if name in stack.frame.columns]
        check_one_label(stack, question, reading["label"], ledger)
    for column in ("label", "decision"):
        if column in stack.frame.columns:
            stack = check_labels(stack, column, reading[column], ledger, options.abstain)
    if "error" in stack.frame.columns:
        stack = stack.put(without_false(stack.frame["error"]))
    return stack


def _check_key(stack: tables.Stack, side: Side, answers: tables.Stack, reading: Words, visit: Visit) -> tables.Stack:
    options, ledger = visit.options, visit.ledger
    stack = check_numbers(stack, side.match.numbers, options, ledger)
    stack = check_weight(stack, side.match.weight, options, ledger)
    key = [name for name in ("item", "target") if name in stack.frame.columns]
    stack = check_repeats(stack, key, True, options, ledger, twin=answers)
    return check_labels(_keep_words(stack, visit), "label", reading["label"], ledger)


def _keep_words(stack: tables.Stack, visit: Visit) -> tables.Stack:
    """Keep the original words as a slice if a class has several (nontarget and spoof): they say more than 1 and 0."""
    is_wanted = all(chosen is None or WORDS in chosen for chosen in (visit.options.slices, visit.needed))
    if not is_wanted or "label" not in stack.frame.columns or stack.frame["label"].n_unique() <= 2:
        return stack
    spelt = {cell: word_of(cell) for cell in stack.frame["label"].unique().cast(pl.String).to_list()}
    return (
        stack.put(pl.col("label").cast(pl.String).replace(spelt).alias(WORDS)) if len({*spelt.values()}) > 2 else stack
    )


def _identity(frame: pl.DataFrame, options: ReadSpec) -> list[str]:
    return [name for name in ("item", "target", *options.runs) if name in frame.columns]


def _header(scores: Side, key: Side | None, reading: Reading, coverage: Coverage | None, visit: Visit) -> Header:
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


def _trials(frame: pl.DataFrame, header: Header, visit: Visit) -> Trials:
    """Return one row per trial, higher = positive, without NaN; record every change made on the way."""
    ledger = visit.ledger
    frame = _one_row_a_system(frame)
    if WORDS in frame.columns:
        header = replace(header, slices=(*header.slices, WORDS))
    if "score" in frame.columns:
        is_turned = visit.options.higher is not None and is_reversed(header, visit.options.higher)
        frame = settle_nan(frame, visit.options.nan_rule, header.score_kind, ledger, is_turned=is_turned)
        if is_turned:
            frame, scale = turn_round(frame, header, ledger)
            header = replace(header, scale=scale)
    if "target" not in frame.columns:
        frame = with_target(frame, header.positive)
    frame = _name_themselves(frame, visit.options.itself)
    note_oddities(frame, header, ledger)
    weight, kind = visit.weight, visit.options.weight_kind
    known = (*FIXED, *header.runs, *header.slices, *header.numbers, weight)
    ordered = [name for name in known if name in frame.columns]
    header = sealed(header, ledger)
    keeps_codes = visit.needed is not None and bool(header.sources)  # without files, the texts are hashed
    # Not `select`, which would copy columns that are divided into different chunks.
    frame = frame[ordered]
    if weight is None or kind is None:
        return Trials.from_frame(frame, header, is_unique=True, keeps_codes=keeps_codes)
    frame, header = weigh(frame, header, weight, kind)
    return Trials.from_frame(frame, header, is_unique=True, keeps_codes=keeps_codes)


def _name_themselves(frame: pl.DataFrame, itself: Mapping[str, str]) -> pl.DataFrame:
    """In columns that refer to another trial, replace the value that means "this trial" by the trial's own id."""
    present = {c: v for c, v in itself.items() if c in frame.columns}
    return frame.with_columns(
        **{c: pl.when(pl.col(c) == v).then(pl.col("item")).otherwise(pl.col(c)) for c, v in present.items()}
    )


def _one_row_a_system(frame: pl.DataFrame) -> pl.DataFrame:
    systems = [name for name in score_names(frame) if name != "score"]
    if not systems:
        return frame
    others = frame.drop(systems)
    parts = [
        others.with_columns(frame[s].alias("score"), pl.lit(s.removeprefix(SYSTEM_PREFIX)).alias(SYSTEM))
        for s in systems
    ]
    return pl.concat(parts)


def refuse_other_direction(column: str, reading: Reading, options: ReadSpec) -> None:
    """Refuse scores whose column is named after the negative class, if nobody says what a higher score means."""
    named = class_of_score(column)
    if options.higher is not None or named is None or reading.choices or not same_class(named, reading.negative):
        return
    if same_class(named, reading.positive):
        return
    raise UsageError(
        f"the column {quoted(column)} says that a higher score means {named}, and the positive class is "
        f"{reading.positive}; say what a higher score means, or make {named} the positive class",
        code="score-direction",
        choices=({"higher": named}, {"positive": named}),
    )


def is_reversed(header: Header | Reading, higher: str) -> bool:
    """Return whether a higher score means the negative class."""
    if same_class(higher, header.positive):
        return False
    if same_class(higher, header.negative):
        return True
    raise UnknownName("class for a higher score", higher, (header.positive, header.negative))
