"""Prediction files of a text classifier: `id, y_true, y_prob` and optionally `y_pred, best_threshold, text, …`.

They pass the same steps as every table (source, columns, rows, values, checks), one file at a time, several in
parallel. All faults of all files are collected before an error is raised. This module holds what is specific to
predictions: which values a cell may have, that a file belongs to a language, and that a row may carry its own
decision or threshold.

Missing values are blank cells, `NA` and the like, and -1 as a label (unlabelled); the caller may drop such rows.
Wrong values are, for example, 0.7 as a label, 1.7 as a probability, or a word where a number belongs; these are
always an error.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import polars as pl
from polars.datatypes import DataTypeClass

from hitmiss.core.classes import code_of
from hitmiss.core.columns import INNER, prefixed
from hitmiss.core.errors import DataError, UnknownName, UsageError, nearest
from hitmiss.core.finding import Place, Remark
from hitmiss.core.header import Header, Source
from hitmiss.core.read_spec import ReadSpec
from hitmiss.core.text import quoted
from hitmiss.core.weights import not_by_sampling, weigh
from hitmiss.io import loaded, tables
from hitmiss.io.aliases import OURS, PREDICTED, may_name_runs, numbers_repetitions, plain
from hitmiss.io.cells import cut_labels, read_cells
from hitmiss.io.checks import check_ids, check_repeats
from hitmiss.io.columns import Match, no_column, no_weight, recognise
from hitmiss.io.diagnostics import Diagnostics, Stop, near_or_listed
from hitmiss.io.labels import check_labels, read_words
from hitmiss.io.languages import language_of, one_spelling
from hitmiss.io.layouts import Layout
from hitmiss.io.nested_fields import paths_in, with_fields
from hitmiss.io.reader import normalise_values
from hitmiss.io.scores import apply_nan_rule
from hitmiss.io.sides import look
from hitmiss.io.source import Kinds, SourceHead
from hitmiss.io.texts import TEXTS, hashed, note_shared
from hitmiss.io.where import Choice, choose

TEXT: Final = f"{INNER}text"
RUN: Final = f"{INNER}run:"
"""Prefix of the columns that may name runs."""
LANGUAGE_COLUMN: Final = f"{INNER}language"
"""The language given in the rows of a file whose name gives it too."""
KINDS: Final[Kinds] = {
    "label": pl.Int8,
    "score": pl.Float64,
    "decision": pl.Int8,
    "threshold": pl.Float64,
}
"""The types of the cells of a file without irregular values."""
FILES_AT_ONCE: Final = 4
"""Files that are read in parallel, if polars has as many threads: hashing and parsing release the interpreter lock."""
LAYOUT: Final = Layout(
    "predictions",
    "the output of a text classifier: id, y_true, y_prob, and y_pred, best_threshold, language if there are any",
    has_header=True,
    aliases=PREDICTED,
    needs=("label", "score"),
    documented=True,
)
ONE: Final = "1"
"""The code of the positive class unless the caller declares another."""


@dataclass(frozen=True)
class Predictions:
    """Checked rows: item, group, label, score; decision and threshold are null where the files have none.

    `file` and `row` (from 0) identify the source of each row; `titles` maps our column names to those of each file;
    `raw` holds each file as text if the caller asked for whole files. `slices`, `numbers` and `runs` are the further
    columns that the caller asked for.
    """

    frame: pl.DataFrame
    sources: tuple[Source, ...]
    titles: tuple[Mapping[str, str], ...]
    notes: tuple[str, ...] = ()
    choices: tuple[str, ...] = ()
    raw: tuple[pl.DataFrame, ...] = ()
    slices: tuple[str, ...] = ()
    numbers: tuple[str, ...] = ()
    runs: tuple[str, ...] = ()
    repeated_by: str | None = None
    """The column of frequency weights, by which the rows were repeated."""
    is_reshaped: bool = False
    """Whether the rows are not those of one file: they were joined with a key, or hold several labels of a text."""


def read_predictions(
    sources: Sequence[tuple[str | None, object]],
    spec: ReadSpec | None = None,
    *,
    whole: bool = False,
    further: bool = False,
) -> Predictions:
    """Read prediction files, each with one group (its name is given) or several (None: a column names the group).

    Parameters
    ----------
    sources
        Pairs of group (or None) and file (a path or a frame).
    spec
        How to read the files; every field is respected.
    whole
        Keep all columns as text, for error dumps.
    further
        Take the further columns that all files have, except texts, as slices, if the caller names none.

    Returns
    -------
    Predictions
        The checked rows of all files.

    Raises
    ------
    DataError
        A single error that carries every fault of every file.
    """
    said, ledger = _understood(spec or ReadSpec()), Diagnostics()
    files = _read_all(sources, said, whole, further, ledger)
    if ledger.findings or not files:
        raise ledger.error()
    frame = pl.concat([f.frame for f in files], how="vertical" if _are_alike(files) else "diagonal")
    by_name = [group for group, _ in sources if group is not None]
    _refuse_spellings(by_name if len(by_name) == len(sources) else frame["group"].unique(), said, ledger)
    if ledger.findings:
        raise ledger.error()
    _sum_up(files, said, ledger)
    if len(files) > len({group for group, _ in sources if group is not None}):
        _refuse_shared_ids(frame, files, ledger)
    known = [f.frame.select("item", "group").with_columns(text=f.texts) for f in files if f.texts is not None]
    if known and (shared := note_shared(pl.concat(known))):
        ledger.notes.append(shared)
    frame = _without_missing(frame, said, ledger)
    if said.nan_rule == "worst":
        kind = said.kind if any_scores(said) else "probability"
        frame = apply_nan_rule(frame.with_columns(pl.col("score").fill_null(float("nan"))), "worst", kind, ledger)
    _refuse_runs(frame, said)
    weight = files[0].match.weight
    if weight is not None and said.weight_kind is not None:
        frame, told = weigh(frame, Header(), weight, said.weight_kind)
        ledger.notes += told.notes
        ledger.choices += told.choices
    if said.label_cut is not None:
        ledger.choices.append(f"label-cut:{said.label_cut:g}")
    if said.threshold_rule not in (None, "same"):
        ledger.choices.append(f"threshold-rule:{said.threshold_rule}")
    match = files[0].match
    slices = [name for name in match.slices if name not in (TEXT, LANGUAGE_COLUMN, *said.runs)]
    if further:  # a column that only some files have says nothing about the others
        slices = [name for name in slices if all(name in file.frame.columns for file in files)]
    return Predictions(
        frame,
        tuple(f.source for f in files if f.source is not None) if all(f.source for f in files) else (),
        tuple(f.match.theirs for f in files),
        tuple(dict.fromkeys(ledger.notes)),
        tuple(ledger.choices),
        tuple(f.raw for f in files if f.raw is not None),
        slices=tuple(slices),
        numbers=tuple(n for n in match.numbers if n in said.numbers),
        runs=said.runs,
        repeated_by=weight,
    )


def _understood(spec: ReadSpec) -> ReadSpec:
    """Adapt the spec to prediction files: a single score column is the score; other columns are ours or requested."""
    if len(spec.score_columns) > 1:
        raise UsageError.of("several-systems")
    if spec.weight is not None and spec.weight_kind == "sampling":
        raise not_by_sampling(spec.weight, "the table of predictions by language")
    if spec.score_columns:
        spec = spec.changed(columns={**spec.columns, "score": spec.score_columns[0]}, score_columns=())
    if spec.positive is not None and code_of(spec.positive) is not None and spec.positive_value is None:
        spec = spec.changed(positive=None, positive_value=spec.positive)  # `--positive 0` names a value, not a class
    asked = {*spec.where, *spec.runs, *spec.numbers, *(spec.slices or ())}
    for ours in spec.columns:
        if OURS.get(ours, ours) not in PREDICTED and ours not in asked:
            raise UnknownName("column", ours, PREDICTED)
    for what, value, known in (
        ("rule for missing values", spec.missing, ("refuse", "drop")),
        ("threshold rule", spec.threshold_rule, ("same", "first", "per-row")),
    ):
        if value is not None and value not in known:
            raise UnknownName(what, value, known)
    negative = spec.negative if spec.positive or spec.negative else "non-toxic"
    return spec.changed(
        positive=spec.positive or "toxic", negative=negative, positive_value=spec.positive_value or ONE
    ).with_own_names()


def any_scores(spec: ReadSpec) -> bool:
    """Return whether scores may be other than probabilities; a threshold must then be given."""
    return spec.score_kind not in (None, "probability")


@dataclass(frozen=True)
class _File:
    """One file, read and checked.

    `stack` maps rows to their lines in the file, `raw` is the whole file as text if requested, `texts` holds hashed
    texts.
    """

    frame: pl.DataFrame
    match: Match
    source: Source | None
    stack: loaded.LoadedRows
    choices: Sequence[Choice] = ()
    raw: pl.DataFrame | None = None
    texts: pl.Series | None = None


def _are_alike(files: Sequence[_File]) -> bool:
    return all(f.frame.schema == files[0].frame.schema for f in files)


def _read_all(
    sources: Sequence[tuple[str | None, object]], spec: ReadSpec, whole: bool, further: bool, ledger: Diagnostics
) -> list[_File]:
    """Read files in parallel; findings enter the ledger in the order of the files."""

    def one(at: int) -> tuple[_File | None, Diagnostics]:
        own = Diagnostics()
        try:
            return _read(at, *sources[at], spec, whole, further, own), own
        except Stop:
            return None, own
        except FileNotFoundError:
            place = Place(Path(str(sources[at][1])).name)
            own.add("missing-file/here", [place])
            return None, own

    with ThreadPoolExecutor(min(FILES_AT_ONCE, pl.thread_pool_size())) as pool:
        read = list(pool.map(one, range(len(sources))))
    for _, own in read:
        ledger.take(own)
    return [file for file, _ in read if file is not None]


def _read(
    at: int, group: str | None, source: object, spec: ReadSpec, whole: bool, further: bool, ledger: Diagnostics
) -> _File:
    shape = with_fields(look(source, "both", spec, ledger), paths_in(spec))
    match = _columns(shape, group, spec, further, ledger)
    file = tables.quick_or_careful(
        lambda own, kinds: _checked(at, group, shape, match, spec, own, kinds), _kinds(match, spec), ledger
    )
    if not whole:
        return file
    raw = tables.load_all(shape, ledger).frame
    return replace(file, raw=raw if file.stack.rows is None else raw[file.stack.rows])


def _kinds(match: Match, spec: ReadSpec) -> Kinds:
    """Return the types that columns may be parsed as; shares of annotators are no codes."""
    return {name: kind for name, kind in match.kinds(KINDS, spec).items() if name != "label" or spec.label_cut is None}


def _columns(shape: SourceHead, group: str | None, spec: ReadSpec, further: bool, ledger: Diagnostics) -> Match:
    """Identify the columns: those that every prediction file has, those that the caller asked for, and the texts."""
    names = shape.names or shape.first[0]
    declared = [theirs for ours, theirs in spec.columns.items() if theirs not in names]
    for name in (*declared, *(name for name in spec.identities if name not in names)):
        hint = near_or_listed(nearest(name, names), names)
        raise ledger.stop("missing-column/named", [Place(shape.name, 1)], name, name=quoted(name), hint=hint)
    match = recognise(shape, "both", spec, ledger, is_whole=further, known=LAYOUT)
    if spec.weight is not None and match.weight is None:
        raise no_weight(spec.weight, names, shape.name, ledger)
    match = _with_runs(match, names)
    if group is None and "group" not in match.picks:
        raise no_column({"group": None}, names, "both", shape.name, ledger, LAYOUT)
    picks = {LANGUAGE_COLUMN if n == "group" and group is not None else n: at for n, at in match.picks.items()}
    asked = {at for ours, at in picks.items() if not further or ours not in match.slices}
    text = next((at for at, n in enumerate(names) if plain(n) in TEXTS and at not in asked), None)
    slices = tuple(n for n in match.slices if picks.get(n) != text or n in (spec.slices or ()))
    picks = {n: at for n, at in picks.items() if n in slices or n not in match.slices}
    picks |= {} if text is None else {TEXT: text}
    theirs = {ours: names[at] for ours, at in picks.items() if ours != TEXT}
    return replace(match, picks=picks, slices=slices, theirs=theirs)


def _with_runs(match: Match, names: Sequence[str]) -> Match:
    """Read the columns that may name runs as well, so that two models in one file are not taken for one."""
    taken = {*match.picks.values()}
    found = {name: at for at, name in enumerate(names) if at not in taken and may_name_runs(name)}
    return replace(match, picks={**match.picks, **{f"{RUN}{name}": at for name, at in found.items()}})


def _refuse_models(stack: loaded.LoadedRows, group: str | None, ledger: Diagnostics) -> None:
    """Refuse a file in which an id has rows of several models: a table of predictions is of one run."""
    frame = stack.frame
    for name in (name for name in frame.columns if name.startswith(RUN)):
        values = frame[name].unique().sort().to_list()
        if len(values) < 2 or len(values) == frame.height:
            continue
        key = ["item"] if group is not None else ["group", "item"]
        has_ids = "item" in frame.columns
        if has_ids and not frame.select((pl.col(name).n_unique().over(key) > 1).any()).item():
            continue
        called = name.removeprefix(RUN)
        if not has_ids and numbers_repetitions(called):
            continue
        other = frame[name] != frame[name][0]
        told = {"name": called, "of": len(values), "values": values[:5], "one": values[0]}
        raise ledger.stop("several-runs/predictions", stack.places(other)[:1], **told)


def _checked(
    at: int, group: str | None, shape: SourceHead, match: Match, spec: ReadSpec, ledger: Diagnostics, kinds: Kinds
) -> _File:
    """Return the rows of one file, filtered and checked, parsed as numbers where no value is irregular."""
    table = tables.load(shape, True, match.picks, match.numeric, ledger, kinds)
    stack = loaded.LoadedRows.of([table], match.theirs)
    stack, choices = choose(stack, match, spec)
    _refuse_models(stack, group, ledger)
    stack = replace(stack, frame=stack.frame.drop(name for name in stack.frame.columns if name.startswith(RUN)))
    if "item" not in match.picks:
        ledger.notes.append(Remark.of("rows-numbered", file=shape.name))
        number = pl.int_range(1, pl.len() + 1).cast(pl.String)
        stack = stack.put((pl.lit(f"{at + 1}:") + number if at and group is None else number).alias("item"))
    stack = cut_labels(normalise_values(stack, spec), spec, ledger)
    check_ids(stack, ledger)
    _refuse_other_language(stack, shape.name, group, spec, ledger)
    if group is None and (blank := stack.frame["group"].str.strip_chars() == "").any():
        ledger.add("empty-group", stack.places(blank, "group"), stack.title("group"))
    stack = check_repeats(stack, ["item"] if group is not None else ["group", "item"], False, spec, ledger)
    frame = _numbered(_clean(stack, group, match, spec, ledger), at)
    check_thresholds(frame, stack, spec, ledger)
    mark = Source(shape.name, shape.content.sha256) if shape.content else None
    texts = hashed(stack.frame[TEXT]) if TEXT in stack.frame.columns else None
    return _File(frame, match, mark, stack, choices, None, texts)


def _clean(
    stack: loaded.LoadedRows, group: str | None, match: Match, spec: ReadSpec, ledger: Diagnostics
) -> pl.DataFrame:
    """Return the values of one file in their types; missing ones are null, impossible ones are in the ledger."""
    has, height = stack.frame.columns, stack.frame.height
    weight = {match.weight: "weight"} if match.weight is not None and spec.weight_kind is not None else {}
    shares = dict.fromkeys(map(prefixed, spec.identities), "share")
    numbers = {name: "number" for name in match.numbers if name in spec.numbers}
    stack = read_cells(stack, {"score": "probability", "threshold": "threshold", **shares}, spec, ledger)
    stack = read_cells(_classes(stack, spec, ledger), {**numbers, **weight}, spec, ledger)
    columns = [
        stack.frame.get_column("item"),
        stack.frame.get_column("group") if group is None else _repeated("group", group, pl.String, height),
        stack.frame.get_column("label"),
        stack.frame.get_column("score"),
        stack.frame.get_column("decision") if "decision" in has else _repeated("decision", None, pl.Int8, height),
        stack.frame.get_column("threshold") if "threshold" in has else _repeated("threshold", None, pl.Float64, height),
        *(stack.frame.get_column(name) for name in shares),
    ]
    further = dict.fromkeys((*match.slices, *spec.runs, *spec.numbers, *filter(None, (match.weight,))))
    # Not `select`: on frames with many chunks it copies every column.
    return pl.DataFrame(
        [*columns, *(stack.frame.get_column(n) for n in further if n in has and n not in (TEXT, LANGUAGE_COLUMN))]
    )


def _repeated(name: str, value: object, kind: DataTypeClass | pl.DataType | None, height: int) -> pl.Series:
    return pl.Series(name, [value], dtype=kind).new_from_index(0, height)


def _numbered(frame: pl.DataFrame, at: int) -> pl.DataFrame:
    """Add to each row the number of its file and its row number there."""
    rows = pl.int_range(frame.height, dtype=pl.UInt32, eager=True).alias("row")
    return frame.hstack([_repeated("file", at, pl.Int32, frame.height), rows])


def _classes(stack: loaded.LoadedRows, spec: ReadSpec, ledger: Diagnostics) -> loaded.LoadedRows:
    """Convert labels and decisions to 1 and 0: -1 for an abstention, null where missing.

    A column of decisions that is blank throughout counts as absent.
    """
    there = [name for name in ("label", "decision") if name in stack.frame.columns]
    texts = [name for name in there if not _are_codes(stack.frame.get_column(name), spec)]
    for name in (name for name in there if name not in texts):
        stack = stack.put(stack.frame[name].cast(pl.Int8))
    if not texts:
        return stack
    stack = stack.put(*(stack.frame[name].cast(pl.String).fill_null("") for name in texts))
    found = {
        name: stack.frame[name].unique().sort().to_list() if name in texts else [] for name in ("label", "decision")
    }
    reading = read_words(found["label"], found["decision"], spec)
    for name in texts:
        is_dropped = spec.missing == "drop"
        stack = check_labels(stack, name, reading[name], ledger, spec.abstain, is_dropped=is_dropped, is_needed=True)
        if name == "decision" and stack.frame[name].null_count() == stack.frame.height:
            column = stack.title("decision")
            ledger.notes.append(Remark.of("blank-column", file=stack.tables[0].name, column=column))
    return stack


def _are_codes(cells: pl.Series, spec: ReadSpec) -> bool:
    """Return whether cells are numbers, all of them 0 or 1, and 1 is the positive class."""
    if cells.dtype == pl.String or cells.null_count() or spec.positive_value != ONE:
        return False
    return bool(cells.is_in([0, 1]).all())


def check_thresholds(frame: pl.DataFrame, stack: loaded.LoadedRows, spec: ReadSpec, ledger: Diagnostics) -> None:
    """Check that each group has one threshold, compared as numbers, unless the rule allows more; note blank ones.

    Where each row has its own threshold and scores may be any number, there is no default for a blank one.
    """
    rule = spec.threshold_rule or "same"
    bound, column = frame["threshold"], stack.title("threshold")
    if bound.null_count() == frame.height or (not bound.null_count() and bound.min() == bound.max()):
        return
    facts = frame.group_by("group", maintain_order=True).agg(
        low=pl.col("threshold").min(),
        high=pl.col("threshold").max(),
        first=pl.col("threshold").drop_nulls().first(),
        blank=pl.col("threshold").null_count(),
        distinct=pl.col("threshold").drop_nulls().n_unique(),
        n=pl.len(),
    )
    for row in facts.iter_rows(named=True):
        several = row["distinct"] > 1
        spread = f"{row['distinct']:,} values of {column} from {row['low']!r} to {row['high']!r}"
        if several and rule == "same":
            other = frame.filter(pl.col("group") == row["group"], pl.col("threshold") != row["first"])
            told = {"group": row["group"], "spread": spread}
            ledger.add("thresholds-differ", stack.at(other["row"], "threshold"), column, **told)
        elif several and rule == "first":
            ledger.notes.append(Remark.of("first-threshold", group=row["group"], spread=spread, first=row["first"]))
        if 0 < row["blank"] < row["n"] and rule == "per-row" and any_scores(spec):
            lacking = (pl.col("group") == row["group"]) & pl.col("threshold").is_null() & pl.col("decision").is_null()
            places = stack.at(frame.filter(lacking)["row"], "threshold")
            ledger.add("missing-threshold", places, column)
        elif 0 < row["blank"] < row["n"]:
            used = "the default was used there" if rule == "per-row" else f"{row['first']!r} was used there too"
            ledger.notes.append(
                Remark.of(
                    "blank-thresholds", group=row["group"], column=column, n=row["blank"], total=row["n"], used=used
                )
            )


def _refuse_other_language(
    stack: loaded.LoadedRows, file: str, group: str | None, spec: ReadSpec, ledger: Diagnostics
) -> None:
    """Check that the language in a file's name agrees with its language column."""
    by_name = group or (None if "group" in spec.columns else language_of(file))
    column = LANGUAGE_COLUMN if group is not None else "group"
    if by_name is None or column not in stack.frame.columns:
        return
    said = stack.frame[column].unique().to_list()
    others = [value for value in said if value.strip() and one_spelling(value) != one_spelling(by_name)]
    if not others:
        return
    places = stack.places(stack.frame[column].is_in(others), column)
    told = {"said": quoted(places[0].value), "named": quoted(by_name), "by": by_name, "column": stack.title(column)}
    ledger.add("column-conflict/language", places, **told)


def _refuse_spellings(groups: Iterable[str], spec: ReadSpec, ledger: Diagnostics) -> None:
    """Refuse two spellings of one language (EN and en, pt-BR and pt_BR): means would count them as two languages."""
    if spec.columns.get("group", "language") not in PREDICTED["group"]:
        return
    found: dict[str, list[str]] = {}
    for value in sorted(set(groups)):
        found.setdefault(one_spelling(value), []).append(value)
    for several in found.values():
        if len(several) > 1:
            ledger.add("language-spelling", [Place()], "language", one=several[0], others=several[1:])


def _refuse_shared_ids(frame: pl.DataFrame, files: Sequence[_File], ledger: Diagnostics) -> None:
    """Refuse an id that occurs in two files of the same group: it would be counted twice."""
    if frame["item"].n_unique() == frame.height or not (twice := frame.select("group", "item").is_duplicated()).any():
        return
    places = [
        place
        for file, rows in frame.filter(twice).group_by("file", maintain_order=True)
        for place in next(f for f in files if f.frame["file"][0] == file[0]).stack.at(rows["row"])
    ]
    ledger.add("duplicate-id/files", places)
    raise ledger.error()


def _sum_up(files: Sequence[_File], spec: ReadSpec, ledger: Diagnostics) -> None:
    """Report how many rows `where` has kept, over all files together."""
    for at, (name, values) in enumerate(spec.where.items()):
        own = [file.choices[at] for file in files]
        unknown = [v for v in values if not any(v in choice.known for choice in own)]
        if unknown:
            there = sorted({value for choice in own for value in choice.known})
            raise UnknownName(f"value of {name}", unknown[0], there[:20])
        kept, total = sum(c.kept for c in own), sum(c.total for c in own)
        empty = [f.stack.tables[0].name for f, choice in zip(files, own, strict=True) if not choice.kept]
        if empty:
            raise DataError.of("no-rows/file", empty=empty[0], name=name, values_2=values[0])
        ledger.choices.append(f"where:{name}={' & '.join(values)}({kept}/{total})")


def _refuse_runs(frame: pl.DataFrame, spec: ReadSpec) -> None:
    for name in spec.runs:
        if name not in frame.columns:
            raise UnknownName("column of runs", name, frame.columns)
        if frame[name].n_unique() > 1:
            values = ", ".join(map(str, frame[name].unique().sort().to_list()[:5]))
            raise UsageError.of("several-runs/table", name=name, values_2=values)


def _without_missing(frame: pl.DataFrame, spec: ReadSpec, ledger: Diagnostics) -> pl.DataFrame:
    """Keep the rows with a label, a score and, where the group has decisions, a decision; count the others."""
    if spec.missing != "drop" and spec.nan_rule != "drop":
        return frame
    has_score = pl.col("score").is_not_null()
    if spec.missing == "drop":  # with the rule "worst score for a missing one" the row is kept
        decided = pl.col("decision").is_not_null().any().over("group")
        has_score = has_score if spec.nan_rule != "worst" else pl.lit(True)
        kept = frame.filter(pl.col("label").is_not_null() & has_score & (pl.col("decision").is_not_null() | ~decided))
    else:
        kept = frame.filter(has_score)
    dropped = frame.height - kept.height
    if dropped:
        lost = frame["group"].value_counts().join(kept["group"].value_counts(), on="group", how="left", suffix="_kept")
        lost = lost.with_columns(n=pl.col("count") - pl.col("count_kept").fill_null(0)).filter(pl.col("n") > 0)
        parts = ", ".join(f"{g} {n:,}" for g, n in sorted(zip(lost["group"], lost["n"], strict=True)))
        ledger.notes.append(Remark.of("rows-dropped/groups", n=dropped, parts=parts))
        ledger.choices.append(f"{'missing' if spec.missing == 'drop' else 'on-nan'}:drop({dropped})")
    if not kept.height:
        raise UsageError.of("no-rows/lacking")
    return kept
