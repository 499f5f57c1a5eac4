"""Multilingual toxicity: from the prediction files of a run, one per language, to the documented table with intervals.

read_run("output/predictions", "baseline", ["en", "es"])     files -> Trials, (item, language) the question
load_run(...)                                                the same, with what is needed for dumps and tables
evaluate_run(run)                                            -> Board: Results, rows for languages, macro, micro, worst
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Final

import numpy as np
import polars as pl

from hitmiss.core.classes import class_name, understand
from hitmiss.core.columns import column_name, prefixed, user_name
from hitmiss.core.design import Design, Languages, names_of
from hitmiss.core.errors import DataError, Fault, UnknownName, UsageError
from hitmiss.core.header import Header
from hitmiss.core.read_spec import ReadSpec
from hitmiss.core.results import Estimate, Results, merged
from hitmiss.core.scale import ScoreScale
from hitmiss.core.trials import Trials
from hitmiss.derive.decisions import Deciding, GroupThreshold, decide_groups, decided_trials
from hitmiss.evaluation.protocol import find_protocol, measure_trials
from hitmiss.findings.render import brief
from hitmiss.io.aliases import PREDICTED, plain
from hitmiss.io.cells import read_threshold
from hitmiss.io.diagnostics import Diagnostics
from hitmiss.io.languages import files_of, find_run, language_of, without_own_outputs
from hitmiss.io.loaded import LoadedRows
from hitmiss.io.mentions import read_shares
from hitmiss.io.predictions import Predictions, any_scores, check_thresholds, read_predictions
from hitmiss.io.reader import read
from hitmiss.io.scores import is_reversed, negate_scores, note_oddities
from hitmiss.io.source import Table
from hitmiss.io.text_rows import read_rows
from hitmiss.io.wide import TYPE, are_wide
from hitmiss.metrics.counts import Counts

LANGUAGE: Final = "language"
EVERY: Final = "all"
"""The group of texts about whose languages nothing is said."""
UNNAMED: Final = f"nothing names the languages: the texts are one group, called {EVERY}"
FIRST: Final = ("roc_auc", "f1", "precision", "recall", "accuracy")
"""The numbers of the first table."""
LATER: Final = ("specificity", "fpr", "fnr")
"""The numbers of the table of errors."""
AVERAGES: Final = ("macro", "micro", "worst")
REPLICATES: Final = 1000
MORE: Final = {"score_columns", "runs", "slices", "numbers", "itself", "layout"}
"""Fields of a spec that ask for more than one run, or for more than one table of languages."""


@dataclass(frozen=True)
class Run:
    """The trials of one run, how each language was decided, and the files as they are.

    Numbers are computed on `measured`, where the items may be the ids in the files, which can repeat between languages.
    `files` are the predictions that were read.
    """

    measured: Trials
    group: str
    groups: tuple[str, ...]
    rules: Mapping[str, GroupThreshold]
    predictions: Predictions
    bounds: pl.Series
    tag: str = ""
    is_bare: bool = False
    files: tuple[Path, ...] = ()
    asked: Languages = field(default_factory=Languages)
    threshold: float | None = None
    identities: tuple[str, ...] = ()

    @cached_property
    def trials(self) -> Trials:
        """The trials with items `language/id`; built only when needed, because numbers do not use them."""
        if not self.is_bare:
            return self.measured
        return replace(
            self.measured, frame=self.measured.frame.with_columns(item=_named(column_name(self.group), "item"))
        )


@dataclass(frozen=True)
class Row:
    """One row of the table: a language, or an average over languages."""

    name: str
    figures: Mapping[str, Estimate]
    n: int
    positive_rate: float | None
    always_f1: float | None
    n_positive: int | None = None
    counts: Counts[float] | None = None
    rule: GroupThreshold | None = None
    within: Estimate | None = None
    note: str = ""


@dataclass(frozen=True)
class Board:
    """All results about a run."""

    run: Run
    results: Results
    rows: tuple[Row, ...]
    level: float = 0.95


def read_run(
    pred_dir: str | Path,
    run_tag: str,
    languages: Sequence[str] | None = None,
    *,
    spec: ReadSpec | None = None,
    deciding: Deciding | None = None,
    skip_missing: bool = False,
) -> Trials:
    """Read the trials of a run with decisions: items are `language/id`, the slice column is `language`.

    Two run tags read in this way pair by item; see `load_run` for the options.
    """
    return load_run(
        pred_dir, run_tag, languages, spec=spec, deciding=deciding, skip_missing=skip_missing, further=True
    ).trials


def read_files(sources: object, spec: ReadSpec, needed: Collection[str] | None = None) -> Trials | None:
    """Read the trials of files whose names end in languages; None if they do not, or if the caller asks for more.

    The further columns are slices: all of them, or those `needed`.
    """
    given = sources if isinstance(sources, list | tuple) else [sources]
    given = [f for p in given for f in (files_of([p]) if isinstance(p, str) and ":" in p else [p])]
    paths = [p for p in given if isinstance(p, str | Path) and language_of(p)]
    if len(paths) < len(given) or MORE & {*spec.stated}:
        return None
    chosen = spec if needed is None else spec.changed(slices=tuple(needed))
    return load_files(paths, spec=chosen, further=True).trials


def load_files(
    paths: Sequence[str | Path],
    *,
    spec: ReadSpec | None = None,
    deciding: Deciding | None = None,
    whole: bool = False,
    further: bool = False,
) -> Run:
    """Load files whose names end in languages, such as `baseline_en.csv`; they may be in different folders."""
    named = [(str(language_of(path)), path) for path in paths]
    languages = tuple(language for language, _ in named)
    twice = [language for language in languages if languages.count(language) > 1]
    if twice:
        raise UsageError.of("repeated-language", twice=twice[0])
    predictions = read_predictions(named, spec, whole=whole, further=further)
    run = run_of(predictions, LANGUAGE, languages, spec=spec, deciding=deciding, one_each=True)
    return replace(run, files=tuple(map(Path, paths)))


def reload(
    sources: object,
    by: str | None = None,
    *,
    languages: Sequence[str] | None = None,
    choices: Sequence[str] = (),
    spec: ReadSpec | None = None,
    deciding: Deciding | None = None,
) -> Run:
    """Load a run from a description of its sources: `folder:run_tag`, files named after languages, or long files.

    `by` is the column of the groups; `choices` are the settings that cannot be read from the files.
    """
    paths = [str(p) for p in sources] if isinstance(sources, list | tuple) else [str(sources)]
    folder, colon, tag = paths[0].rpartition(":")
    if len(paths) == 1 and colon and Path(folder).is_dir():
        files, _ = find_run(folder, tag)
        paths = [str(path) for path in files.values()]
    if by in (None, LANGUAGE) and languages is None and all(language_of(path) for path in paths):
        run = load_files(paths, spec=spec, deciding=deciding)
    else:
        group = None if by == LANGUAGE else by
        run = load_table(paths, group, languages=languages, spec=spec, deciding=deciding)
    header = run.measured.header
    return replace(run, measured=run.measured.retitle(choices=_in_order(header.choices, choices)))


def _in_order(own: Sequence[str], added: Sequence[str]) -> tuple[str, ...]:
    """Return the choices with further ones inserted before the decisions."""
    at = next((i for i, choice in enumerate(own) if choice.startswith(("default-threshold", "decisions"))), len(own))
    return (*own[:at], *added, *own[at:])


def load_run(
    pred_dir: str | Path,
    run_tag: str,
    languages: Sequence[str] | None = None,
    *,
    spec: ReadSpec | None = None,
    deciding: Deciding | None = None,
    whole: bool = False,
    skip_missing: bool = False,
    further: bool = False,
) -> Run:
    """Load the files `{run_tag}_{language}.csv` of a folder; without `languages`, all whose names contain a language.

    `skip_missing`: languages without a file are left out with a warning, and the signature names them. `further`: the
    columns that are not ours are slices.
    """
    languages = [tag for text in languages or () for tag in text.replace(",", " ").split()]  # `en,es` are two languages
    files, notes = find_run(pred_dir, run_tag, languages, skip=skip_missing)
    predictions = read_predictions(list(files.items()), spec, whole=whole, further=further)
    absent = [language for language in languages if language not in files]
    run = run_of(
        predictions,
        LANGUAGE,
        tuple(files),
        notes=notes,
        spec=spec,
        deciding=deciding,
        tag=run_tag,
        one_each=True,
        choices=(f"missing-language:skip({' & '.join(absent)})",) if absent else (),
    )
    asked = replace(run.asked, run_tag=run_tag, names=tuple(languages), skip_missing=skip_missing)
    return replace(run, files=tuple(files.values()), asked=asked)


def load_table(
    sources: Sequence[object],
    group: str | None = None,
    *,
    languages: Sequence[str] | None = None,
    spec: ReadSpec | None = None,
    deciding: Deciding | None = None,
    whole: bool = False,
) -> Run:
    """Load files or frames in which a column holds the language; `group` names another column to use."""
    chosen = spec or ReadSpec()
    if group is not None:
        chosen = replace(chosen, columns={**chosen.columns, "group": group})
    predictions = read_predictions([(None, source) for source in sources], chosen, whole=whole)
    there = predictions.frame["group"].unique(maintain_order=True).to_list()
    asked = list(languages or sorted(there))
    predictions = _only_groups(predictions, asked, there)
    name = LANGUAGE if group in (None, "lang") else str(group)
    tag = Path(sources[0]).name.split(".")[0] if isinstance(sources[0], str | Path) else "table"
    files = tuple(Path(source) for source in sources if isinstance(source, str | Path))
    # No id occurs twice in a group: this was checked when the files were read.
    run = run_of(predictions, name, tuple(asked), spec=chosen, deciding=deciding, tag=tag, one_each=True)
    return replace(run, files=files)


def _only_groups(predictions: Predictions, asked: Sequence[str], there: Sequence[str]) -> Predictions:
    """Return the rows of the groups that are asked for; a group without rows is an error."""
    absent = [g for g in asked if g not in there]
    if absent:
        raise UsageError.of("unknown-language", absent=tuple(absent), there=tuple(sorted(there)))
    if set(asked) == set(there):
        return predictions
    kept = predictions.frame.filter(pl.col("group").is_in(list(asked)))
    return replace(predictions, frame=kept, choices=(*predictions.choices, f"only:{' & '.join(sorted(asked))}"))


def load_any(
    given: Sequence[str],
    group: str | None = None,
    *,
    languages: Sequence[str] | None = None,
    key: str | None = None,
    label_cut: float | None = None,
    spec: ReadSpec | None = None,
    deciding: Deciding | None = None,
    whole: bool = False,
) -> Run:
    """Load files with a language column or, if no file has one, with languages in their names; or `folder:run_tag`.

    Parameters
    ----------
    given
        The files.
    group
        The column of the groups, if it is not the language.
    languages
        Which groups, in the order of the table.
    key
        A file with the labels, joined by id. Where it has columns of the same names as the predictions (Kaggle's
        `test_labels.csv` beside a submission), each of them is a type of toxicity with numbers of its own.
    label_cut
        Labels are shares of annotators: positive from this share on.
    """
    chosen = spec or ReadSpec()
    chosen = chosen if label_cut is None else chosen.changed(label_cut=label_cut)
    paths, _ = without_own_outputs(files_of(given))
    if not paths:
        raise UsageError.of("no-predictions")
    if key is not None or are_wide(paths, chosen):
        run = _load_by_reader(paths, group, key, languages, chosen, deciding, whole)
    else:
        run = _load_any(paths, group, languages, chosen, deciding, whole)
    asked = replace(run.asked, group=group, names=tuple(languages or ()), label_cut=chosen.label_cut)
    return replace(run, asked=asked)


def _load_by_reader(
    paths: Sequence[str],
    group: str | None,
    key: str | None,
    languages: Sequence[str] | None,
    spec: ReadSpec,
    deciding: Deciding | None,
    whole: bool,
) -> Run:
    """Load files whose labels are in another file, or that have several labels of a text side by side."""
    read_so = spec.over(find_protocol("toxicity").read).changed(threshold_rule=None, identities=())
    named = [language_of(path) for path in paths]
    sources: list[object] = list(paths)
    if len(paths) > 1 and all(named):
        sources = [
            read_rows(path).frame.with_columns(pl.lit(language).alias(LANGUAGE))
            for path, language in zip(paths, named, strict=True)
        ]
    kind = spec.kind if any_scores(spec) else "probability"
    trials = read(sources, key, read_so.changed(higher=read_so.positive, score_kind=kind))
    frame, slices = trials.frame, {user_name(name): name for name in trials.header.slices}
    is_wide = group is None and TYPE in slices
    by = group or (TYPE if is_wide else next((n for n in (LANGUAGE, "lang") if n in slices), None))
    by = by or next((user_name(n) for n in trials.header.slices if spec.columns.get("group") == user_name(n)), None)
    if by is not None and by not in slices:
        raise UnknownName("column of the groups", by, slices)
    notes = [] if by is not None or all(named) else [UNNAMED]
    groups = frame[slices[by]] if by is not None else pl.Series([named[0] or EVERY]).new_from_index(0, frame.height)
    predictions = _predictions(trials, groups.alias("group"), spec, whole)
    there = predictions.frame["group"].unique(maintain_order=True).to_list()
    asked = list(languages or (there if is_wide else sorted(there)))
    predictions = _only_groups(predictions, asked, there)
    name = LANGUAGE if by in (None, "lang") else str(by)
    tag = Path(paths[0]).name.split(".")[0]
    run = run_of(
        predictions,
        name,
        tuple(asked),
        notes=notes,
        spec=spec,
        deciding=deciding,
        tag=tag,
        one_each=len(paths) == 1 and not is_wide,
        is_wide=is_wide,
    )
    files = (*map(Path, paths), *([Path(key)] if key is not None else []))
    return replace(run, files=files, measured=run.measured.retitle(coverage=trials.header.coverage))


def _predictions(trials: Trials, groups: pl.Series, spec: ReadSpec, whole: bool) -> Predictions:
    """Return the trials of the one reader as predictions, with their thresholds and identities."""
    frame, header, ledger = trials.frame, trials.header, Diagnostics()
    known = {plain(user_name(name)): name for name in header.slices}
    rows = LoadedRows.of([Table(header.sources[0].name if header.sources else "table", frame)], {})
    bound = next((known[name] for name in PREDICTED["threshold"] if name in known), None)
    thresholds = pl.Series("threshold", [None], pl.Float64).new_from_index(0, frame.height)
    if bound is not None:
        renamed = rows.renamed({bound: "threshold"})
        thresholds = read_threshold(renamed, "threshold", spec, ledger)
    shares = []
    for name in spec.identities:
        if plain(name) not in known:
            raise UnknownName("identity column", name, known)
        renamed = rows.renamed({known[plain(name)]: prefixed(name)})
        shares.append(read_shares(renamed, name, spec, ledger))
    decided = frame["decision"] if "decision" in frame.columns else thresholds.cast(pl.Int8).clear(frame.height)
    further = [name for name in header.slices if name not in (bound, TYPE) and spec.slices and name in spec.slices]
    count = pl.int_range(frame.height, dtype=pl.UInt32, eager=True).alias("row")
    own = pl.DataFrame(
        [
            frame["item"],
            groups,
            frame["label"].cast(pl.Int8),
            frame["score"],
            decided.alias("decision").cast(pl.Int8),
            thresholds.alias("threshold"),
            *shares,
            *(frame[name] for name in further),
            pl.Series("file", [0], pl.Int32).new_from_index(0, frame.height),
            count,
        ]
    )
    check_thresholds(own, rows, spec, ledger)
    if ledger.findings:
        raise ledger.error()
    return Predictions(
        own,
        header.sources,
        ({"item": "id"},),
        merged(header.notes, tuple(ledger.notes)),
        header.choices,
        (_as_text(frame),) if whole else (),
        slices=tuple(further),
        repeated_by=header.repeated_by,
        is_reshaped=True,
    )


def _as_text(frame: pl.DataFrame) -> pl.DataFrame:
    """Return trials as a table of predictions under the documented names."""
    named = {"item": "id", "label": "y_true", "score": "y_prob", "decision": "y_pred"}
    others = [c for c in frame.columns if c not in (*named, "target") and user_name(c) not in named.values()]
    kept = [*(c for c in named if c in frame.columns), *others]
    return frame.select(pl.col(c).cast(pl.String).alias(named.get(c, user_name(c))) for c in kept)


def _load_any(
    paths: Sequence[str],
    group: str | None,
    languages: Sequence[str] | None,
    spec: ReadSpec,
    deciding: Deciding | None,
    whole: bool,
) -> Run:
    try:
        return load_table(paths, group, languages=languages, spec=spec, deciding=deciding, whole=whole)
    except DataError as error:
        if group is not None or {(f.kind, f.column) for f in error.faults} != {("missing-column", "group")}:
            raise
    if not any(map(language_of, paths)) and not languages:
        return _load_ungrouped(paths, spec, deciding, whole)
    if not all(map(language_of, paths)):
        unnamed = next(path for path in paths if not language_of(path))
        name = Path(unnamed).name
        fault = Fault("missing-column", "nothing says its language", file=name, column="group")
        raise DataError.of("missing-column/language", file=name).with_faults([fault])
    kept = [path for path in paths if not languages or language_of(path) in languages]
    absent = [language for language in languages or () if language not in map(language_of, kept)]
    if absent:
        raise UsageError.of("unknown-language/no", absent=tuple(absent))
    return load_files(kept, spec=spec, deciding=deciding, whole=whole)


def _load_ungrouped(paths: Sequence[str], spec: ReadSpec | None, deciding: Deciding | None, whole: bool) -> Run:
    """Load files that say nothing about languages: all texts are one group."""
    predictions = read_predictions([(EVERY, path) for path in paths], spec, whole=whole)
    notes = [UNNAMED]
    tag = Path(paths[0]).name.split(".")[0]
    run = run_of(predictions, LANGUAGE, (EVERY,), notes=notes, spec=spec, deciding=deciding, tag=tag, one_each=True)
    return replace(run, files=tuple(map(Path, paths)))


def run_of(
    predictions: Predictions,
    group: str,
    groups: tuple[str, ...],
    *,
    notes: Sequence[str] = (),
    spec: ReadSpec | None = None,
    deciding: Deciding | None = None,
    tag: str = "",
    one_each: bool = False,
    choices: Sequence[str] = (),
    is_wide: bool = False,
) -> Run:
    """Decide predictions and make trials; `one_each`: every file is one group, and no two files are the same.

    `is_wide`: the groups are labels of the same texts.
    """
    chosen = spec or ReadSpec()
    is_any = any_scores(chosen)
    clash = [g for g in groups if g in AVERAGES]
    if clash:
        raise UsageError.of("reserved-name", group=group, clash=clash[0])
    how = replace(deciding or Deciding(), per_row=chosen.threshold_rule == "per-row")
    _refuse_threshold(how.given, is_any)
    how = replace(how, default=None) if is_any else how
    predictions, scale = _turned(predictions, chosen)
    decided = decide_groups(predictions.frame, how, _titles(predictions), scale)
    kinds = dict.fromkeys(rule.origin for rule in decided.rules.values())
    named = understand((), class_name(chosen.positive) or "toxic", chosen.negative)
    header = Header(
        positive=named.positive,
        negative=named.negative,
        score_kind=chosen.kind if is_any else "probability",
        runs=predictions.runs,
        slices=(column_name(group), *predictions.slices),
        numbers=predictions.numbers,
        repeated_by=predictions.repeated_by,
        sources=predictions.sources,
        notes=merged(tuple(notes), predictions.notes),
        choices=(*predictions.choices, *choices, *_default_told(how, kinds), f"decisions:{' & '.join(kinds)}"),
        reading=chosen,
        scale=scale,
    )
    rows = predictions.frame
    is_stacked = (
        group != LANGUAGE
        and len(groups) > 1
        and (is_wide or rows["item"].n_unique() * rows["group"].n_unique() == rows.height)
    )
    is_bare = one_each and bool(predictions.sources)  # without files, the digest also covers the items
    items = rows["item"] if is_bare else rows.select(item=_named("group", "item"))["item"]
    weight = () if predictions.repeated_by is None else (predictions.repeated_by,)
    further = (*predictions.runs, *predictions.slices, *predictions.numbers, *weight)
    mentioned = [rows[prefixed(name)].alias(prefixed(name)) for name in chosen.identities]
    named_so = [rows["group"].alias(column_name(group)), *(rows[name] for name in further)]
    own = [rows["label"], rows["score"], *named_so, *(own for own in mentioned if own.name not in further)]
    if is_stacked:  # one text, several labels: the text is the item, and each label a question about it
        items, own, is_bare = rows["item"], [*own, rows["group"].alias("target")], False
    frame = pl.DataFrame([items, *own])
    ledger = Diagnostics()
    note_oddities(frame, header, ledger)
    header = replace(header, notes=merged(header.notes, tuple(ledger.notes)))
    trials = decided_trials(Trials.from_frame(frame, header, is_unique=one_each), decided)
    told = deciding if deciding is not None else Deciding()
    default = told.default if told.default_origin == "config" else None
    asked = Languages(default_threshold=default)
    return Run(
        trials,
        group,
        groups,
        decided.rules,
        predictions,
        decided.bound,
        tag,
        is_bare,
        asked=asked,
        threshold=told.given,
        identities=chosen.identities,
    )


def _turned(predictions: Predictions, spec: ReadSpec) -> tuple[Predictions, ScoreScale]:
    """Reverse scores so that a higher one means toxic, where the caller says that it means the other class."""
    named = understand((), class_name(spec.positive) or "toxic", spec.negative)
    header = Header(named.positive, named.negative, spec.kind if any_scores(spec) else "probability")
    if spec.higher is None or not is_reversed(header, spec.higher):
        return predictions, ScoreScale()
    ledger = Diagnostics()
    frame, scale = negate_scores(predictions.frame, header, ledger)
    notes, choices = (*predictions.notes, *ledger.notes), (*predictions.choices, *ledger.choices)
    return replace(predictions, frame=frame, notes=notes, choices=choices), scale


def _refuse_threshold(given: float | None, any_scores: bool) -> None:
    """Refuse NaN, and a threshold above 1 for probabilities: everything would silently be called non-toxic."""
    if given is not None and (given != given or not (any_scores or 0.0 <= given <= 1.0)):
        fix = "give a number" if given != given else "probabilities lie in 0..1; other scores need --scores any"
        raise UsageError.of("bad-threshold", given=given, fix=fix)


def _default_told(deciding: Deciding, origins: Mapping[str, None]) -> tuple[str, ...]:
    """Return the threshold for groups without one, if it decided any group and is not the default."""
    used = deciding.default_origin in origins and deciding.default != Deciding().default
    return (f"default-threshold:{deciding.default!r}",) if used else ()


def _named(group: str, item: str) -> pl.Expr:
    """Return the name of an item among those of all languages."""
    return pl.format("{}/{}", group, item)


def _titles(predictions: Predictions) -> dict[str, str]:
    """Return the names of the deciding columns in the files; the documented names if they differ between files."""
    found: dict[str, str] = {}
    for ours in ("decision", "threshold"):
        names = {t[ours] for t in predictions.titles if ours in t}
        if len(names) == 1:
            found[ours] = names.pop()
    return found


def evaluate_run(
    run: Run,
    *,
    bootstrap: int = REPLICATES,
    unit: str | Sequence[str] | None = None,
    seed: int = 0,
    level: float = 0.95,
    undefined: str = "zero",
) -> Board:
    """Measure every number of every language with its interval, the averages, and the warnings.

    `unit` names a column (an author, a thread) whose texts are drawn together; it must be one of the `slices` that
    were read.
    """
    several = len(run.groups) > 1
    design = Design(protocol=find_protocol("toxicity"), by=((run.group,),) if several else ()).changed(
        bootstrap=bootstrap,
        unit=_units(run, names_of(unit)),
        identity=run.identities,
        seed=seed,
        level=level,
        undefined=undefined,
        threshold=run.threshold,
        languages=run.asked,
    )
    told = () if undefined == "zero" else ("undefined:null",)
    trials = run.measured.retitle(choices=(*run.measured.header.choices, *told))
    results = measure_trials(trials, design)
    return Board(run, results, tuple(_rows(run, results)), level)


def _units(run: Run, names: Sequence[str]) -> tuple[str, ...]:
    """Return the columns of a unit; the file's own name of its ids means the texts."""
    ids = {titles["item"] for titles in run.predictions.titles if "item" in titles}
    return run.measured.unit_names(["id" if name in ids else name for name in names])


def _rows(run: Run, results: Results) -> list[Row]:
    """Return the languages in the requested order, then macro, micro and worst."""
    whole = [e for e in results if not e.slice and e.average is None]
    rows = []
    for group in run.groups:
        cells = [e for e in results if e.slice == {run.group: group} and e.average is None] or whole
        rows.append(_row(group, cells, run.rules[group], _counted(run, group)))
    within = next((e for e in results if e.average == "within"), None)
    micro = replace(_row("micro", whole, counts=_counted(run)), within=within)
    return [*rows, _macro_row(results, rows), micro, _worst_row(run, results, rows)]


def _counted(run: Run, group: str | None = None) -> Counts[float] | None:
    """Return the counts of a group where some answers were withheld, because numbers do not give them then."""
    frame = run.measured.frame
    if not (frame["decision"] < 0).any():
        return None
    own = frame if group is None else frame.filter(pl.col(column_name(run.group)) == group)
    return Counts.of(own["label"].to_numpy(), own["decision"].to_numpy())


def _row(
    name: str, cells: Sequence[Estimate], rule: GroupThreshold | None = None, counts: Counts[float] | None = None
) -> Row:
    n, positives = cells[0].n, cells[0].n_positive
    figures = {e.metric: e for e in cells}
    rate, always = positives / n, 2 * positives / (n + positives)
    return Row(name, figures, n, rate, always, positives, counts or counts_of(figures), rule, note=_notes(figures))


def counts_of(figures: Mapping[str, Estimate]) -> Counts[float]:
    """Return the counts behind recall and accuracy: each is a ratio of whole numbers, so they are recovered exactly."""
    recall, accuracy = figures["recall"], figures["accuracy"]
    positives, negatives = recall.n_positive, recall.n - recall.n_positive
    tp = round((recall.value or 0.0) * positives)
    tn = round((accuracy.value or 0.0) * accuracy.n) - tp
    return Counts(tp, negatives - tn, positives - tp, tn)


def _notes(figures: Mapping[str, Estimate]) -> str:
    by_text: dict[str, list[str]] = {}
    for name, e in figures.items():
        if e.note:
            by_text.setdefault(
                "; ".join(brief(f) if f.code == "zero-by-convention" else f.text for f in e.findings), []
            ).append(name)
    return "; ".join(
        f"{', '.join(names)}: {text}" if len(names) < len(figures) else text for text, names in by_text.items()
    )


def _macro_row(results: Results, rows: Sequence[Row]) -> Row:
    found = {e.metric: e for e in results if e.average == "macro"}
    figures = found or {name: replace(e, average="macro") for name, e in rows[0].figures.items()}
    rate = float(np.mean([r.positive_rate for r in rows]))
    always = float(np.mean([r.always_f1 for r in rows]))
    return Row("macro", figures, sum(r.n for r in rows), rate, always, note=_notes(figures))


def _worst_row(run: Run, results: Results, rows: Sequence[Row]) -> Row:
    """Return the worst language for each number, and its name."""
    found = {e.metric: e for e in results if e.average == "worst"}
    figures = found or dict(rows[0].figures)
    where = {name: e.slice.get(run.group, run.groups[0]) for name, e in figures.items()}
    by_group: dict[str, list[str]] = {}
    for name, group in where.items():
        by_group.setdefault(group, []).append(name)
    note = "; ".join(f"{group}: {', '.join(names)}" for group, names in by_group.items())
    return Row("worst", figures, 0, None, None, note=note)


if __name__ == "__main__":  # score.py of the document: python -m hitmiss.protocols.toxicity --config … --pred_dir …
    sys.exit(import_module("hitmiss.cli.main").run(["toxicity", *sys.argv[1:]]))
