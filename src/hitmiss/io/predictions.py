"""Find, read and check the prediction files of a text classifier, one file per language."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import polars as pl
from polars.datatypes import DataTypeClass

from hitmiss.core.classes import code_of
from hitmiss.core.columns import INNER, prefixed
from hitmiss.core.errors import DataError, Fault, UnknownName, UsageError, nearest
from hitmiss.core.header import Header, Source
from hitmiss.core.read_spec import ReadSpec
from hitmiss.core.weights import not_by_sampling, weigh
from hitmiss.io import tables
from hitmiss.io.cells import check_labels, check_numbers, check_weight, read_scores, read_shares, read_thresholds
from hitmiss.io.checks import check_ids, check_repeats
from hitmiss.io.columns import (
    OURS,
    PREDICTED,
    Match,
    may_name_runs,
    no_column,
    no_weight,
    numbers_repetitions,
    plain,
    recognise,
)
from hitmiss.io.parse import Kinds, Ledger, Place, Shape, Stop, listed, quoted
from hitmiss.io.reader import Choice, choose, look, read_rows, read_words, settle, settle_nan
from hitmiss.io.tables import TextRows

# ----------------------------------------------------------------------
# The files of one run, `{run_tag}_{language}.csv`, are found by name in a folder.

SUFFIXES: Final = (".csv", ".csv.gz", ".tsv", ".jsonl", ".parquet")
SHOWN: Final = 8
OWN_OUTPUTS: Final = re.compile(r"metrics|results|errors_.+")
"""The files that hitmiss itself writes beside predictions, named after the run tag."""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


TWO_LETTERS: Final = _words(
    "aa ab ae af ak am an ar as av ay az ba be bg bh bi bm bn bo br bs ca ce ch co cr cs cu cv cy da de dv dz ee el en eo "
    "es et eu fa ff fi fj fo fr fy ga gd gl gn gu gv ha he hi ho hr ht hu hy hz ia id ie ig ii ik io is it iu ja jv ka kg "
    "ki kj kk kl km kn ko kr ks ku kv kw ky la lb lg li ln lo lt lu lv mg mh mi mk ml mn mr ms mt my na nb nd ne ng nl nn "
    "no nr nv ny oc oj om or os pa pi pl ps pt qu rm rn ro ru rw sa sc sd se sg si sk sl sm sn so sq sr ss st su sv sw ta "
    "te tg th ti tk tl tn to tr ts tt tw ty ug uk ur uz ve vi vo wa wo xh yi yo za zh zu"
)
"""ISO 639-1."""
NO_LANGUAGES: Final = _words("all avg dev err log max min new old out raw run set sum tmp val")
"""Three-letter words that are common in file names; as languages they must be given explicitly."""

TAG: Final = re.compile(r"([a-z]{2,3})((?:-[A-Za-z0-9]{2,8}|_[A-Z]{2}|_[0-9]{3}|_[A-Z][a-z]{3})*)")
PLAIN_NAME: Final = re.compile(r"[^/\\\0]+")


def is_language_tag(text: str) -> bool:
    """Return whether a text has the shape of a language tag: a language, optionally with a script and a region.

    >>> [is_language_tag(t) for t in ("en", "pt-BR", "zh_Hant", "fil", "metrics", "errors_en", "xl_en", "val", "v2")]
    [True, True, True, True, False, False, False, False, False]
    """
    match = TAG.fullmatch(text)
    if match is None:
        return False
    language = match[1]
    return language in TWO_LETTERS if len(language) == 2 else language not in NO_LANGUAGES


def one_spelling(language: str) -> str:
    """Return the spelling of a language used for comparison: EN, en and En are equal, and so are pt-BR and pt_BR.

    >>> one_spelling("pt_BR") == one_spelling("PT-br")
    True
    """
    return language.strip().casefold().replace("_", "-")


def without_own_outputs(paths: Sequence[str]) -> tuple[list[str], list[str]]:
    """Split paths into prediction files and files that hitmiss wrote: a pattern like `baseline_*.csv` matches both.

    >>> without_own_outputs(["p/base_en.csv", "p/base_metrics.csv", "p/base_errors_en.csv"])
    (['p/base_en.csv'], ['p/base_metrics.csv', 'p/base_errors_en.csv'])
    """
    is_own = {path: re.search(r"_(metrics|results|errors_[^_].*)$", stem_of(path)) is not None for path in paths}
    return [p for p in paths if not is_own[p]], [p for p in paths if is_own[p]]


def files_of(given: Sequence[str]) -> list[str]:
    """Return the files that the arguments name; `folder:run_tag` means all files of that run."""
    found: list[str] = []
    for path in given:
        folder, colon, tag = path.rpartition(":")
        if Path(path).is_dir():
            raise UsageError(f"{path} is a folder; say which run in it, as {path}:baseline")
        is_run = bool(colon) and not Path(path).exists() and Path(folder).is_dir()
        found += [str(file) for file in find_run(folder, tag)[0].values()] if is_run else [path]
    return found


def language_of(path: str | Path) -> str | None:
    """Return the language at the end of a file name.

    It follows `_`; a two-letter language may also follow a dot, or be the whole name.

    >>> language_of("val/baseline_en.csv"), language_of("run_pt_BR.csv"), language_of("all.parquet")
    ('en', 'pt_BR', None)
    >>> language_of("en.csv"), language_of("preds.en.csv"), language_of("preds.bin.csv")
    ('en', 'en', None)
    """
    stem = one_form(stem_of(path))
    parts = stem.split("_")
    for count in (2, 1):
        tag = "_".join(parts[-count:])
        if len(parts) > count and is_language_tag(tag):
            return tag
    last = stem.rpartition(".")[2]
    return last if re.split("[-_]", last)[0] in TWO_LETTERS and is_language_tag(last) else None


def one_form(name: str) -> str:
    """Return the form of a name used for comparison: accents may be decomposed (NFD, as on macOS) or not (NFC)."""
    return unicodedata.normalize("NFC", name)


def stem_of(path: str | Path) -> str:
    """Return a file's name without the suffix of its format."""
    name = Path(path).name
    return name.removesuffix(next((s for s in sorted(SUFFIXES, key=len, reverse=True) if name.endswith(s)), ""))


def find_run(
    folder: str | Path, run_tag: str, languages: Sequence[str] | None = None, *, skip: bool = False
) -> tuple[dict[str, Path], list[str]]:
    """Return the file of each language, in the order asked for, and the notes to report about them.

    Without `languages`, the languages are taken from the file names. A requested language without a file is an error
    unless `skip` is set; it is always an error when no requested language has a file.
    """
    directory = Path(folder)
    if not directory.is_dir():
        raise DataError(f"there is no folder {folder}; say where the predictions are with --pred_dir")
    if not PLAIN_NAME.fullmatch(run_tag):
        raise UsageError(f"a run tag is the beginning of a file name; found {run_tag!r}")
    run_tag, languages = one_form(run_tag), [one_form(language) for language in languages or ()]
    found = _named(directory, run_tag)
    if not languages:
        return _inferred(found, directory, run_tag)
    _refuse_twice(languages)
    missing = [language for language in languages if language not in found]
    if missing and (not skip or len(missing) == len(languages)):
        raise _absent(missing, found, directory, run_tag)
    there = [language for language in languages if language in found]
    notes = [
        f"no file for {', '.join(missing)}: left out, so averages are over {len(there)} of {len(languages)} languages"
    ]
    return {language: _only(found[language]) for language in there}, notes if missing else []


def _named(directory: Path, run_tag: str) -> dict[str, list[Path]]:
    """Map the part of each file name after the run tag to the files that have it."""
    found: dict[str, list[Path]] = {}
    for path in sorted(directory.iterdir()):
        name = one_form(path.name)
        suffix = next((s for s in sorted(SUFFIXES, key=len, reverse=True) if name.endswith(s)), None)
        if suffix and name.startswith(f"{run_tag}_") and path.is_file():
            found.setdefault(name[len(run_tag) + 1 : -len(suffix)], []).append(path)
    return found


def _inferred(found: dict[str, list[Path]], directory: Path, run_tag: str) -> tuple[dict[str, Path], list[str]]:
    languages = [name for name in found if is_language_tag(name)]
    if not languages:
        raise DataError(
            f"there is no file {run_tag}_<language>.csv in {directory.name}: {_there(found, directory)}; "
            "check --run_tag, or name the languages with --languages"
        )
    notes = [f"languages inferred from file names: {', '.join(languages)}"]
    others = [
        p.name for name in found if name not in languages and not OWN_OUTPUTS.fullmatch(name) for p in found[name]
    ]
    if others:
        notes.append(f"no language was seen in {', '.join(others)}: left out; name it with --languages if it is one")
    return {language: _only(found[language]) for language in languages}, notes


def _refuse_twice(languages: Sequence[str]) -> None:
    twice = [language for language in dict.fromkeys(languages) if languages.count(language) > 1]
    if twice:
        raise UsageError(f"the language {twice[0]!r} was asked for twice; it would count twice in the macro average")


def _absent(missing: list[str], found: dict[str, list[Path]], directory: Path, run_tag: str) -> DataError:
    faults = [Fault("missing-language", "there is no such file", file=f"{run_tag}_{m}.csv") for m in missing]
    small = {name.casefold(): name for name in found}
    meant = [small[m.casefold()] for m in missing if m.casefold() in small]
    hint = f"did you mean {', '.join(meant)}? " if meant else ""
    return DataError(
        f"no predictions of {run_tag} for {', '.join(missing)} in {directory.name}: {_there(found, directory)}; {hint}"
        "a mean over fewer languages is another figure, so name only those that are there, or say --missing_language skip",
        faults,
    )


def _there(found: dict[str, list[Path]], directory: Path) -> str:
    """Describe what was found instead: the files of the run, or else the files of the folder."""
    own = [p.name for name, paths in found.items() if not OWN_OUTPUTS.fullmatch(name) for p in paths]
    if own:
        return f"of this run it has {_listed(own)}"
    others = sorted(p.name for p in directory.iterdir() if p.name.endswith(SUFFIXES) and p.is_file())
    return f"it has {_listed(others)}" if others else "it has no predictions at all"


def _listed(names: Sequence[str]) -> str:
    rest = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + rest


def _only(paths: list[Path]) -> Path:
    if len(paths) > 1:
        raise DataError(f"{' and '.join(quoted(p.name) for p in paths)} are the same language; keep one of them")
    return paths[0]


# ----------------------------------------------------------------------
# Prediction files of a text classifier: `id, y_true, y_prob` and optionally `y_pred, best_threshold, text, …`.
#
# They pass the same steps as every table (source, columns, rows, values, checks), one file at a time, several in
# parallel. All faults of all files are collected before an error is raised. This part holds what is specific to
# predictions: which values a cell may have, that a file belongs to a language, and that a row may carry its own
# decision or threshold.
#
# Missing values are blank cells, `NA` and the like, and -1 as a label (unlabelled); the caller may drop such rows.
# Wrong values are, for example, 0.7 as a label, 1.7 as a probability, or a word where a number belongs; these are
# always an error.

TEXTS: Final = ("text", "comment_text", "comment")
TEXT: Final = f"{INNER}text"
RUN: Final = f"{INNER}run:"
"""Prefix of the columns that may name runs."""
TOLD: Final = f"{INNER}language"
"""The language given in the rows of a file whose name gives it too."""
KINDS: Final[Kinds] = {
    "label": pl.Int8,
    "score": pl.Float64,
    "decision": pl.Int8,
    "threshold": pl.Float64,
}
"""The types of the cells of a file without irregular values."""
AT_ONCE: Final = 4
"""Files that are read in parallel, if polars has as many threads: hashing and parsing release the interpreter lock."""
DROP: Final = "fix them, or leave such rows out with --missing drop"
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
    said, ledger = _understood(spec or ReadSpec()), Ledger()
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
        frame = settle_nan(frame.with_columns(pl.col("score").fill_null(float("nan"))), "worst", kind, ledger)
    _refuse_runs(frame, said)
    weight = files[0].match.weight
    if weight is not None and said.weight_kind is not None:
        frame, told = weigh(frame, Header(), weight, said.weight_kind)
        ledger.notes += told.notes
        ledger.choices += told.choices
    if said.threshold_rule not in (None, "same"):
        ledger.choices.append(f"threshold-rule:{said.threshold_rule}")
    match = files[0].match
    slices = [name for name in match.slices if name not in (TEXT, TOLD, *said.runs)]
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
        raise UsageError(
            "a table of predictions is of one system: give one --score-column, or score the systems one by one",
            code="several-systems",
        )
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
    stack: tables.Stack
    choices: Sequence[Choice] = ()
    raw: pl.DataFrame | None = None
    texts: pl.Series | None = None


def _are_alike(files: Sequence[_File]) -> bool:
    return all(f.frame.schema == files[0].frame.schema for f in files)


def _read_all(
    sources: Sequence[tuple[str | None, object]], spec: ReadSpec, whole: bool, further: bool, ledger: Ledger
) -> list[_File]:
    """Read files in parallel; findings enter the ledger in the order of the files."""

    def one(at: int) -> tuple[_File | None, Ledger]:
        own = Ledger()
        try:
            return _read(at, *sources[at], spec, whole, further, own), own
        except Stop:
            return None, own
        except FileNotFoundError:
            place = Place(Path(str(sources[at][1])).name)
            own.add("missing-file", "there is no such file", "check its name", [place])
            return None, own

    with ThreadPoolExecutor(min(AT_ONCE, pl.thread_pool_size())) as pool:
        read = list(pool.map(one, range(len(sources))))
    for _, own in read:
        ledger.take(own)
    return [file for file, _ in read if file is not None]


def _read(
    at: int, group: str | None, source: object, spec: ReadSpec, whole: bool, further: bool, ledger: Ledger
) -> _File:
    shape = look(source, "both", spec, ledger)
    match = _columns(shape, group, spec, further, ledger)
    file = tables.quick_or_careful(
        lambda own, kinds: _checked(at, group, shape, match, spec, own, kinds), match.kinds(KINDS, spec), ledger
    )
    if not whole:
        return file
    raw = tables.load_all(shape, ledger).frame
    return replace(file, raw=raw if file.stack.rows is None else raw[file.stack.rows])


def _columns(shape: Shape, group: str | None, spec: ReadSpec, further: bool, ledger: Ledger) -> Match:
    """Identify the columns: those that every prediction file has, those that the caller asked for, and the texts."""
    names = shape.names or shape.first[0]
    declared = [theirs for ours, theirs in spec.columns.items() if theirs not in names]
    for name in (*declared, *(name for name in spec.identities if name not in names)):
        near = nearest(name, names)
        fix = f"did you mean {quoted(near)}?" if near else f"there are {listed(names)}"
        raise ledger.stop("missing-column", f"there is no column {quoted(name)}", fix, [Place(shape.name, 1)], name)
    match = recognise(shape, "predictions", spec, ledger, is_whole=further)
    if spec.weight is not None and match.weight is None:
        raise no_weight(spec.weight, names, shape.name, ledger)
    match = _with_runs(match, names)
    if group is None and "group" not in match.picks:
        raise no_column({"group": ""}, names, "predictions", shape.name, ledger)
    picks = {TOLD if n == "group" and group is not None else n: at for n, at in match.picks.items()}
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


def _refuse_models(stack: tables.Stack, group: str | None, ledger: Ledger) -> None:
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
        what = f"a table of predictions is of one run, and {called} names {len(values)} ({', '.join(values[:5])})"
        raise ledger.stop("several-runs", what, f"choose one, as --where {called}={values[0]}", stack.places(other)[:1])


def _checked(
    at: int, group: str | None, shape: Shape, match: Match, spec: ReadSpec, ledger: Ledger, kinds: Kinds
) -> _File:
    """Return the rows of one file, filtered and checked, parsed as numbers where no value is irregular."""
    table = tables.load(shape, True, match.picks, match.numeric, ledger, kinds)
    stack = tables.Stack.of([table], match.theirs)
    stack, choices = choose(stack, match, spec)
    _refuse_models(stack, group, ledger)
    stack = replace(stack, frame=stack.frame.drop(name for name in stack.frame.columns if name.startswith(RUN)))
    if "item" not in match.picks:
        ledger.notes.append(f"{shape.name}: it has no ids; rows are numbered and cannot be paired with another run's")
        number = pl.int_range(1, pl.len() + 1).cast(pl.String)
        stack = stack.put((pl.lit(f"{at + 1}:") + number if at and group is None else number).alias("item"))
    stack = settle(stack, spec)
    check_ids(stack, ledger)
    _refuse_other_language(stack, shape.name, group, spec, ledger)
    if group is None and (blank := stack.frame["group"].str.strip_chars() == "").any():
        what, fix = "{n} row{s} without a value to group by", "give every row its value"
        each = "there is nothing to group by"
        ledger.add("empty-group", what, fix, stack.places(blank, "group"), stack.title("group"), each)
    stack = check_repeats(stack, ["item"] if group is not None else ["group", "item"], False, spec, ledger)
    frame = _numbered(_clean(stack, group, match, spec, ledger), at)
    _check_thresholds(frame, stack, spec, ledger)
    mark = Source(shape.name, shape.content.sha256) if shape.content else None
    texts = hashed(stack.frame[TEXT]) if TEXT in stack.frame.columns else None
    return _File(frame, match, mark, stack, choices, None, texts)


def _clean(stack: tables.Stack, group: str | None, match: Match, spec: ReadSpec, ledger: Ledger) -> pl.DataFrame:
    """Return the values of one file in their types; missing ones are null, impossible ones are in the ledger."""
    has, height = stack.frame.columns, stack.frame.height
    scores = _scores(stack, spec, ledger)
    thresholds = _repeated("threshold", None, pl.Float64, height)
    if "threshold" in has:
        thresholds = read_thresholds(stack, spec, ledger, is_probability=not any_scores(spec))
    shares = [read_shares(stack, prefixed(name), spec, ledger) for name in spec.identities]
    stack = _classes(stack, spec, ledger)
    columns = [
        stack.frame.get_column("item"),
        stack.frame.get_column("group") if group is None else _repeated("group", group, pl.String, height),
        stack.frame.get_column("label"),
        scores,
        stack.frame.get_column("decision") if "decision" in has else _repeated("decision", None, pl.Int8, height),
        thresholds,
        *shares,
    ]
    stack = check_numbers(stack, [n for n in match.numbers if n in spec.numbers], spec, ledger)
    stack = check_weight(stack, match.weight, spec, ledger)
    further = dict.fromkeys((*match.slices, *spec.runs, *spec.numbers, *filter(None, (match.weight,))))
    # Not `select`: on frames with many chunks it copies every column.
    return pl.DataFrame([*columns, *(stack.frame.get_column(n) for n in further if n in has and n not in (TEXT, TOLD))])


def _repeated(name: str, value: object, kind: DataTypeClass | pl.DataType | None, height: int) -> pl.Series:
    return pl.Series(name, [value], dtype=kind).new_from_index(0, height)


def _numbered(frame: pl.DataFrame, at: int) -> pl.DataFrame:
    """Add to each row the number of its file and its row number there."""
    rows = pl.int_range(frame.height, dtype=pl.UInt32, eager=True).alias("row")
    return frame.hstack([_repeated("file", at, pl.Int32, frame.height), rows])


def _classes(stack: tables.Stack, spec: ReadSpec, ledger: Ledger) -> tables.Stack:
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
        stack = check_labels(
            stack, name, reading[name], ledger, spec.abstain, is_dropped=is_dropped, is_needed=True, fix=DROP
        )
        if name == "decision" and stack.frame[name].null_count() == stack.frame.height:
            column = stack.title("decision")
            ledger.notes.append(f"{stack.tables[0].name}: the column {column} is blank and counts as absent")
    return stack


def _are_codes(cells: pl.Series, spec: ReadSpec) -> bool:
    """Return whether cells are numbers, all of them 0 or 1, and 1 is the positive class."""
    if cells.dtype == pl.String or cells.null_count() or spec.positive_value != ONE:
        return False
    return bool(cells.is_in([0, 1]).all())


def _scores(stack: tables.Stack, spec: ReadSpec, ledger: Ledger) -> pl.Series:
    """Return scores as exact float64, null where missing; they must be probabilities unless any number is allowed."""
    range_fix = "if they are logits, allow them with --scores any and give a --threshold; nothing is converted by guess"
    is_probability, fix = not any_scores(spec), f"{DROP}; or choose --on-nan worst"
    return read_scores(
        stack, "score", spec, ledger, is_probability=is_probability, fix=fix, range_fix=range_fix
    ).fill_nan(None)


def _check_thresholds(frame: pl.DataFrame, stack: tables.Stack, spec: ReadSpec, ledger: Ledger) -> None:
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
            what = f"{row['group']} has {spread}, but there must be one"
            fix = "choose --threshold_rule first or --threshold_rule per-row"
            ledger.add("thresholds-differ", what, fix, stack.at(other["row"], "threshold"), column, "it is another one")
        elif several and rule == "first":
            ledger.notes.append(f"{row['group']}: {spread}; the first, {row['first']!r}, was used for all rows")
        if 0 < row["blank"] < row["n"] and rule == "per-row" and any_scores(spec):
            lacking = (pl.col("group") == row["group"]) & pl.col("threshold").is_null() & pl.col("decision").is_null()
            places = stack.at(frame.filter(lacking)["row"], "threshold")
            what, fix = "{n} row{s} without a threshold", "give each its own: no default fits scores of any kind"
            ledger.add("missing-threshold", what, fix, places, column, "the threshold is missing")
        elif 0 < row["blank"] < row["n"]:
            used = "the default was used there" if rule == "per-row" else f"{row['first']!r} was used there too"
            ledger.notes.append(f"{row['group']}: {column} is blank in {row['blank']:,} of {row['n']:,} rows; {used}")


def _refuse_other_language(stack: tables.Stack, file: str, group: str | None, spec: ReadSpec, ledger: Ledger) -> None:
    """Check that the language in a file's name agrees with its language column."""
    by_name = group or (None if "group" in spec.columns else language_of(file))
    column = TOLD if group is not None else "group"
    if by_name is None or column not in stack.frame.columns:
        return
    said = stack.frame[column].unique().to_list()
    others = [value for value in said if value.strip() and one_spelling(value) != one_spelling(by_name)]
    if not others:
        return
    places = stack.places(stack.frame[column].is_in(others), column)
    what = f"{{n}} row{{s}} of another language ({quoted(places[0].value)}) than the name of the file says ({quoted(by_name)})"
    fix = f"rename the file or correct the column; or go by the column alone, with --group {stack.title(column)}"
    ledger.add("column-conflict", what, fix, places, each=f"the name of the file says {by_name}")


def _refuse_spellings(groups: Iterable[str], spec: ReadSpec, ledger: Ledger) -> None:
    """Refuse two spellings of one language (EN and en, pt-BR and pt_BR): means would count them as two languages."""
    if spec.columns.get("group", "language") not in PREDICTED["group"]:
        return
    found: dict[str, list[str]] = {}
    for value in sorted(set(groups)):
        found.setdefault(one_spelling(value), []).append(value)
    for several in found.values():
        if len(several) > 1:
            what = f"the language {several[0]} is also written {' and '.join(several[1:])}"
            ledger.add("language-spelling", what, "write it in one way", [Place()], "language")


def _refuse_shared_ids(frame: pl.DataFrame, files: Sequence[_File], ledger: Ledger) -> None:
    """Refuse an id that occurs in two files of the same group: it would be counted twice."""
    if frame["item"].n_unique() == frame.height or not (twice := frame.select("group", "item").is_duplicated()).any():
        return
    places = [
        place
        for file, rows in frame.filter(twice).group_by("file", maintain_order=True)
        for place in next(f for f in files if f.frame["file"][0] == file[0]).stack.at(rows["row"])
    ]
    what, fix = "{n} row{s} of ids that are in more than one file", "keep one row of each"
    ledger.add("duplicate-id", what, fix, places, each="the id is also in another file")
    raise ledger.error()


def _sum_up(files: Sequence[_File], spec: ReadSpec, ledger: Ledger) -> None:
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
            raise DataError(
                f"{empty[0]}: no row has {name}={values[0]}; check --where, or leave the file out", code="no-rows"
            )
        ledger.choices.append(f"where:{name}={' & '.join(values)}({kept}/{total})")


def _refuse_runs(frame: pl.DataFrame, spec: ReadSpec) -> None:
    for name in spec.runs:
        if name not in frame.columns:
            raise UnknownName("column of runs", name, frame.columns)
        if frame[name].n_unique() > 1:
            values = ", ".join(map(str, frame[name].unique().sort().to_list()[:5]))
            raise UsageError(
                f"a table of predictions is of one run, and {name} names several ({values}): choose one with --where",
                code="several-runs",
            )


def _without_missing(frame: pl.DataFrame, spec: ReadSpec, ledger: Ledger) -> pl.DataFrame:
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
        ledger.notes.append(f"{dropped:,} rows without a label, score or decision were dropped ({parts})")
        ledger.choices.append(f"{'missing' if spec.missing == 'drop' else 'on-nan'}:drop({dropped})")
    if not kept.height:
        raise UsageError("no row is left: every one lacks its label, score or decision")
    return kept


def hashed(texts: pl.Series) -> pl.Series:
    """Return a hash of each text, null for a blank one; only hashes are kept of texts that were not requested."""
    trimmed = texts.str.strip_chars()
    return pl.select(pl.when(trimmed != "").then(trimmed.hash())).to_series().alias("text")


def note_shared(rows: pl.DataFrame) -> str | None:
    """Return the note about texts that occur in several groups, if any; `rows` has item, group and text (hashed).

    >>> note_shared(pl.DataFrame({"item": ["1", "2", "7"], "group": ["en", "en", "es"], "text": [5, 6, 5]}))
    "1 text stands in more than one group, the first as id '1' of en and id '7' of es; each counts in every one of them"
    """
    known = rows.filter(pl.col("text").is_not_null())
    several = pl.col("group").n_unique().over("text") > 1
    twice = known.filter(several) if known["text"].is_duplicated().any() else known.clear()
    if not twice.height:
        return None
    first = twice.filter(pl.col("text") == twice["text"][0]).unique("group", keep="first", maintain_order=True)
    places = " and ".join(f"id {quoted(item)} of {group}" for item, group in first.select("item", "group").iter_rows())
    n = twice["text"].n_unique()
    stand = "text stands" if n == 1 else "texts stand"
    return f"{n:,} {stand} in more than one group, the first as {places}; each counts in every one of them"


def read_texts(paths: Sequence[str]) -> pl.DataFrame:
    """Read texts by id, for prediction files without texts: item, text and group (empty without a language column)."""
    return pl.concat([_texts_of(read_rows(path)) for path in paths])


def _texts_of(rows: TextRows) -> pl.DataFrame:
    found: dict[str, pl.Series] = {"group": _repeated("group", "", pl.String, rows.frame.height)}
    for ours, aliases in (("item", PREDICTED["item"]), ("text", TEXTS), ("group", PREDICTED["group"])):
        theirs = next((name for name in rows.frame.columns if plain(name) in aliases), None)
        if theirs is None and ours != "group":
            names = ", ".join(map(quoted, rows.frame.columns))
            ledger = Ledger()
            ledger.add(
                "missing-column",
                f"there is no column {' or '.join(aliases)} among {names}",
                "give a file with ids and texts",
                [Place(rows.name, 1)],
            )
            raise ledger.error()
        if theirs is not None:
            found[ours] = rows.frame[theirs].alias(ours)
    return pl.DataFrame([found[name] for name in ("item", "text", "group")])
