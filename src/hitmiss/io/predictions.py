"""Prediction files of a text classifier, one per language: found, read, checked."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from hitmiss.core.errors import DataError, Fault, UnknownName, UsageError, nearest
from hitmiss.core.question import INNER, OPTION, Missing, ReadSpec, ThresholdRule, apart, shown
from hitmiss.core.trials import Source
from hitmiss.io import tables
from hitmiss.io.checks import DECIMAL_COMMA, check_ids, check_repeats, to_numbers
from hitmiss.io.columns import ABSENT, FAMILIES, plain
from hitmiss.io.diagnostics import Ledger, Place, Stop, listed, quoted
from hitmiss.io.parse import Shape, read_typed
from hitmiss.io.tables import Stack

# ----------------------------------------------------------------------
# The single values of prediction files: labels, scores, decisions, thresholds. A missing value is told from a wrong one.
#
# Missing is blank, `NA` and the like, and -1 as a label (unlabelled); a caller may drop such rows. Wrong is 0.7 as a label,
# 1.7 as a probability, a word as a number; nobody may drop those.

DROP: Final = "mend them, or leave such rows out with --missing drop"
TOXIC: Final = next(f for f in FAMILIES if "toxic" in f.positive)
CODES: Final = {
    **dict.fromkeys(("1", "true", *TOXIC.positive), 1),
    **dict.fromkeys(("0", "false", *TOXIC.negative), 0),
}
"""What the words of labels and decisions mean, in small letters; spreadsheets write TRUE."""


def is_absent(texts: pl.Series) -> pl.Series:
    """Which cells say nothing.

    >>> is_absent(pl.Series(["", " NA", "0", "None", "nan", "no"])).to_list()
    [True, True, False, True, True, False]
    """
    return texts.str.strip_chars().str.to_lowercase().is_in(list(ABSENT))


def labels(stack: Stack, may_miss: bool, ledger: Ledger) -> pl.Series:
    """1 and 0, null where missing."""
    column = stack.title("label")
    values, absent, wrong = _binary(stack.frame["label"])
    unlabelled = _equals(stack.frame["label"], -1.0) if wrong.any() else wrong
    wrong &= ~unlabelled
    fix = "a label is 1 or toxic, 0 or non-toxic; mend them"
    each = "it is neither 1 nor 0"
    ledger.add("bad-label", "{n} label{s} neither 1 nor 0", fix, stack.places(wrong, "label"), column, each)
    if not may_miss:
        places = stack.places(absent, "label")
        ledger.add("missing-label", "{n} missing label{s}", DROP, places, column, "the label is missing")
        what, each = "{n} label{s} of -1, which marks rows without a label", "-1 marks a row without a label"
        ledger.add("unlabelled", what, DROP, stack.places(unlabelled, "label"), column, each)
    return values


def decisions(stack: Stack, may_miss: bool, ledger: Ledger) -> pl.Series:
    """1 and 0; null where missing. A column that is all blank is none."""
    column = stack.title("decision")
    values, absent, wrong = _binary(stack.frame["decision"])
    fix = "a decision is 1 or toxic, 0 or non-toxic; mend them"
    what, each = "{n} decision{s} neither 1 nor 0", "it is neither 1 nor 0"
    ledger.add("bad-decision", what, fix, stack.places(wrong, "decision"), column, each)
    if absent.all():
        ledger.notes.append(f"{stack.tables[0].name}: the column {column} is blank and counts as absent")
    elif not may_miss:
        places = stack.places(absent, "decision")
        ledger.add("missing-decision", "{n} missing decision{s}", DROP, places, column, "the decision is missing")
    return values


def _binary(texts: pl.Series) -> tuple[pl.Series, pl.Series, pl.Series]:
    """Values 1, 0 or null; which cells are absent; which are something else."""
    one, zero = texts == "1", texts == "0"
    nothing = pl.Series([False]).new_from_index(0, len(texts))
    if (one | zero).all():
        return one.cast(pl.Int8), nothing, nothing
    words = texts.str.strip_chars().str.to_lowercase()
    values = words.replace_strict(CODES, default=None, return_dtype=pl.Int8)
    numbers = texts.str.strip_chars().cast(pl.Float64, strict=False)
    values = pl.select(pl.when(numbers == 1).then(1).when(numbers == 0).then(0).otherwise(values)).to_series()
    absent = is_absent(texts)
    return values.cast(pl.Int8), absent, values.is_null() & ~absent


def _equals(texts: pl.Series, number: float) -> pl.Series:
    return (texts.str.strip_chars().cast(pl.Float64, strict=False) == number).fill_null(False)


def scores(stack: Stack, rules: PredictionRules, ledger: Ledger) -> pl.Series:
    """Exact float64, null where missing; probabilities unless the caller allows any number."""
    numbers, absent = _numbers(stack, "score", rules.decimal, ledger)
    if rules.missing == "refuse":
        places = stack.places(absent, "score")
        ledger.add("missing-score", "{n} missing score{s}", DROP, places, stack.title("score"), "the score is missing")
    if not rules.any_scores:
        outside = ((numbers < 0) | (numbers > 1)).fill_null(False)
        fix = "if they are logits, allow them with --scores any and give a --threshold; nothing is squashed by guess"
        ledger.add(
            "score-outside",
            "{n} score{s} outside 0..1",
            fix,
            stack.places(outside, "score"),
            stack.title("score"),
            "it is outside 0..1",
        )
    return numbers


def thresholds(stack: Stack, rules: PredictionRules, ledger: Ledger) -> pl.Series:
    """The threshold that stands in each row, null where blank."""
    numbers, _ = _numbers(stack, "threshold", rules.decimal, ledger)
    if not rules.any_scores:
        outside = ((numbers < 0) | (numbers > 1)).fill_null(False)
        places = stack.places(outside, "threshold")
        ledger.add(
            "bad-threshold",
            "{n} threshold{s} outside 0..1",
            "mend them",
            places,
            stack.title("threshold"),
            "it is outside 0..1",
        )
    return numbers


def shares(stack: Stack, name: str, decimal: str, ledger: Ledger) -> pl.Series:
    """A column of the user's with shares from 0 to 1, null where blank."""
    numbers, _ = _numbers(stack, apart(name), decimal, ledger)
    outside = ((numbers < 0) | (numbers > 1)).fill_null(False)
    places = stack.places(outside, apart(name))
    what, each = f"{{n}} value{{s}} of {name} outside 0..1", "it is outside 0..1"
    ledger.add("share-outside", what, "mend them", places, name, each)
    return numbers


def _numbers(stack: Stack, ours: str, decimal: str, ledger: Ledger) -> tuple[pl.Series, pl.Series]:
    """A column as numbers, null where absent, and which cells are absent; words are found."""
    cells = stack.frame[ours]
    if cells.dtype == pl.String:
        numbers, wrong = to_numbers(cells, decimal)
    else:
        numbers, wrong = cells, cells.is_null() & False
    numbers = numbers.fill_nan(None)
    empty = numbers.is_null()
    if not empty.any():
        return numbers, empty
    absent = is_absent(cells) if cells.dtype == pl.String else empty
    wrong &= ~absent
    if wrong.any():
        places = stack.places(wrong, ours)
        has_comma = all(DECIMAL_COMMA.fullmatch(p.value or "") for p in places)
        fix = "they have a decimal comma: say --decimal ," if has_comma else f"the first is {quoted(places[0].value)}"
        ledger.add(
            "not-a-number", f"{{n}} unreadable {shown(ours)}{{s}}", fix, places, stack.title(ours), "it is no number"
        )
    return numbers, absent


def check_groups(stack: Stack, ledger: Ledger) -> None:
    """Every row needs a group."""
    blank = stack.frame["group"].str.strip_chars() == ""
    what, fix = "{n} row{s} without a value to group by", "give every row its value"
    places = stack.places(blank, "group")
    ledger.add("empty-group", what, fix, places, stack.title("group"), "there is nothing to group by")


def check_thresholds(frame: pl.DataFrame, stack: Stack, rules: PredictionRules, ledger: Ledger) -> None:
    """One threshold a group, compared as numbers, unless the rule says otherwise; some blank ones are noted.

    Where each row has its own and scores may be any number, nothing can stand in for a blank one.
    """
    rule = rules.threshold_rule
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
            what = f"{row['group']} has {spread}, and one is meant"
            fix = "choose --threshold_rule first or --threshold_rule per-row"
            ledger.add("thresholds-differ", what, fix, stack.at(other["row"], "threshold"), column, "it is another one")
        elif several and rule == "first":
            ledger.notes.append(f"{row['group']}: {spread}; the first, {row['first']!r}, was used for all rows")
        if 0 < row["blank"] < row["n"] and rule == "per-row" and rules.any_scores:
            lacking = (pl.col("group") == row["group"]) & pl.col("threshold").is_null() & pl.col("decision").is_null()
            places = stack.at(frame.filter(lacking)["row"], "threshold")
            what, fix = "{n} row{s} without a threshold", "give each its own: no default fits scores of any kind"
            ledger.add("missing-threshold", what, fix, places, column, "the threshold is missing")
        elif 0 < row["blank"] < row["n"]:
            used = "the default was used there" if rule == "per-row" else f"{row['first']!r} was used there too"
            ledger.notes.append(f"{row['group']}: {column} is blank in {row['blank']:,} of {row['n']:,} rows; {used}")


# ----------------------------------------------------------------------
# The quick way for prediction files in which nothing is odd: their numbers are parsed as numbers at once.
#
# A blank, a word, a score beyond 0..1, an id that stands there twice, two thresholds: whatever would be worth a word, and the
# file is read as text instead, cell by cell, by the way that says what is wrong. So nothing is ever reported from here, and
# what is read here is what that way would have read, to the last bit.

KINDS: Final[Mapping[str, Any]] = {
    "label": pl.Int8,
    "score": pl.Float64,
    "decision": pl.Int8,
    "threshold": pl.Float64,
}


def read_sound(shape: Shape, picks: Mapping[str, int], rules: PredictionRules) -> pl.DataFrame | None:
    """The columns `picks` (our name -> position) of separated text, or None where anything is odd."""
    content = shape.content
    if content is None or shape.frame is not None or "item" not in picks or rules.decimal != "." or rules.identities:
        return None
    if b'"' in content.data:
        return None
    kinds = {position: KINDS[ours] for ours, position in picks.items() if ours in KINDS}
    frame = read_typed(shape, content.data, picks, kinds)
    return frame if frame is not None and _is_sound(frame, rules) else None


def _is_sound(frame: pl.DataFrame, rules: PredictionRules) -> bool:
    has = frame.columns
    if not frame.height or any(frame[c].null_count() for c in has):
        return False
    if not all(_lies_between(frame[c], 0, 1) for c in ("label", "decision") if c in has):
        return False
    score = frame["score"]
    if not (
        score.is_finite().all() if rules.any_scores else _lies_between(score, 0.0, 1.0) and score.is_not_nan().all()
    ):
        return False
    if "threshold" in has and not _is_one_probability(frame["threshold"]):
        return False
    if not frame["item"].str.len_bytes().min() or ("group" in has and (frame["group"].str.strip_chars() == "").any()):
        return False
    return _is_unique(frame)


def _lies_between(values: pl.Series, low: float, high: float) -> bool:
    ends: tuple[Any, Any] = values.min(), values.max()
    return bool(low <= ends[0] and ends[1] <= high)


def _is_one_probability(values: pl.Series) -> bool:
    return values.min() == values.max() and _lies_between(values, 0.0, 1.0) and not values.is_nan().any()


def _ascend(items: pl.Series) -> bool:
    """Whether each id is longer than the one before it, or as long and greater, as row numbers are: none is there twice.

    Chunk by chunk: where the neighbours of all rows are looked at together, polars copies the column first.

    >>> _ascend(pl.Series(["8", "9", "10", "11"])), _ascend(pl.Series(["8", "9", "9"]))
    (True, False)
    """
    before = (0, "")
    for ids in items.get_chunks():
        n, lengths = len(ids) - 1, ids.str.len_bytes()
        short, long = lengths.head(n), lengths.tail(n)
        if (
            before >= (lengths[0], ids[0])
            or not ((long > short) | ((long == short) & (ids.tail(n) > ids.head(n)))).all()
        ):
            return False
        before = (lengths[n], ids[n])
    return True


def _is_unique(frame: pl.DataFrame) -> bool:
    """Whether no row stands for the same text as another. As many hashes as rows prove as many ids; fewer prove nothing."""
    items = frame["item"]
    if _ascend(items) or items.hash().n_unique() == len(items):
        return True
    return "group" in frame.columns and not frame.select(pl.struct("group", "item").is_duplicated().any()).item()


# ----------------------------------------------------------------------
# Texts by id, for files that have none.

IDS = ("id", "item", "comment_id")
TEXTS = ("text", "comment_text", "comment")
GROUPS = ("language", "lang")


def read_texts(paths: Sequence[str]) -> pl.DataFrame:
    """Columns item, text and group (empty where a file has no language column), all text, nothing taken for missing."""
    ledger = Ledger()
    try:
        return pl.concat([_read(path, ledger) for path in paths])
    except Stop:
        raise ledger.error() from None


def _read(path: str, ledger: Ledger) -> pl.DataFrame:
    shape = tables.look(path, ReadSpec(), ledger)
    names = shape.names or shape.first[0]
    picks = {}
    for ours, aliases in (("item", IDS), ("text", TEXTS), ("group", GROUPS)):
        at = next((i for i, name in enumerate(names) if plain(name) in aliases), None)
        if at is None and ours != "group":
            what = f"there is no column {' or '.join(aliases)} among {', '.join(map(quoted, names))}"
            raise ledger.stop("missing-column", what, "give a file with ids and texts", [Place(shape.name, 1)])
        if at is not None:
            picks[ours] = at
    frame = tables.load(shape, True, picks, frozenset(), ledger).frame
    group = pl.col("group") if "group" in picks else pl.lit("")
    return frame.select("item", "text", group=group)


# ----------------------------------------------------------------------
# Texts that stand in more than one group: counted twice in the averages, and often a sign of a wrong file.


def find_text(names: Sequence[str], taken: Sequence[int]) -> int | None:
    """The position of the column with the texts, where there is one.

    >>> find_text(["id", "y_true", "comment_text"], [0, 1])
    2
    """
    return next((at for at, name in enumerate(names) if plain(name) in TEXTS and at not in taken), None)


def hashed(texts: pl.Series) -> pl.Series:
    """A number for each text, null for a blank one: all that is kept of texts that nobody asked for."""
    trimmed = texts.str.strip_chars()
    return pl.select(pl.when(trimmed != "").then(trimmed.hash())).to_series().alias("text")


def note_shared(rows: pl.DataFrame) -> str | None:
    """What to say about texts that several groups have; `rows` has item, group and text (hashed).

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


# ----------------------------------------------------------------------
# The files of one run: `{run_tag}_{language}.csv`, found by name in a folder.

SUFFIXES: Final = (".csv", ".csv.gz", ".tsv", ".jsonl", ".parquet")
SHOWN: Final = 8
OWN_OUTPUTS: Final = re.compile(r"metrics|results|errors_.+")
"""What hitmiss itself writes beside predictions, after the run tag."""


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
"""Words of three letters that people put into file names; as languages they must be named."""

TAG: Final = re.compile(r"([a-z]{2,3})((?:-[A-Za-z0-9]{2,8}|_[A-Z]{2}|_[0-9]{3}|_[A-Z][a-z]{3})*)")
PLAIN_NAME: Final = re.compile(r"[^/\\\0]+")


def is_language_tag(text: str) -> bool:
    """Whether a text is shaped like a language tag: a language, perhaps a script and a region.

    >>> [is_language_tag(t) for t in ("en", "pt-BR", "zh_Hant", "fil", "metrics", "errors_en", "xl_en", "val", "v2")]
    [True, True, True, True, False, False, False, False, False]
    """
    match = TAG.fullmatch(text)
    if match is None:
        return False
    language = match[1]
    return language in TWO_LETTERS if len(language) == 2 else language not in NO_LANGUAGES


def one_spelling(language: str) -> str:
    """A language as it is compared: EN, en and En are one, and so are pt-BR and pt_BR.

    >>> one_spelling("pt_BR") == one_spelling("PT-br")
    True
    """
    return language.strip().casefold().replace("_", "-")


def without_own_outputs(paths: Sequence[str]) -> tuple[list[str], list[str]]:
    """Files of predictions, and files that hitmiss wrote beside them: a pattern such as `baseline_*.csv` catches both.

    >>> without_own_outputs(["p/base_en.csv", "p/base_metrics.csv", "p/base_errors_en.csv"])
    (['p/base_en.csv'], ['p/base_metrics.csv', 'p/base_errors_en.csv'])
    """
    is_own = {path: re.search(r"_(metrics|results|errors_[^_].*)$", stem_of(path)) is not None for path in paths}
    return [p for p in paths if not is_own[p]], [p for p in paths if is_own[p]]


def files_of(given: Sequence[str]) -> list[str]:
    """The files that arguments stand for: `folder:run_tag` is those of a run."""
    found: list[str] = []
    for path in given:
        folder, colon, tag = path.rpartition(":")
        if Path(path).is_dir():
            raise UsageError(f"{path} is a folder; say which run in it, as {path}:baseline")
        is_run = bool(colon) and not Path(path).exists() and Path(folder).is_dir()
        found += [str(file) for file in find_run(folder, tag)[0].values()] if is_run else [path]
    return found


def language_of(path: str | Path) -> str | None:
    """The language at the end of a file's name, after `_`.

    >>> language_of("val/baseline_en.csv"), language_of("run_pt_BR.csv"), language_of("all.parquet")
    ('en', 'pt_BR', None)
    """
    parts = stem_of(path).split("_")
    for count in (2, 1):
        tag = "_".join(parts[-count:])
        if len(parts) > count and is_language_tag(tag):
            return tag
    return None


def stem_of(path: str | Path) -> str:
    """A file's name without the suffix of its format."""
    name = Path(path).name
    return name.removesuffix(next((s for s in sorted(SUFFIXES, key=len, reverse=True) if name.endswith(s)), ""))


def find_run(
    folder: str | Path, run_tag: str, languages: Sequence[str] | None = None, *, skip: bool = False
) -> tuple[dict[str, Path], list[str]]:
    """The file of each language, in the order asked, and what to say about it. Without `languages` names tell.

    A language without a file is an error unless `skip`, and so it is where none has one.
    """
    directory = Path(folder)
    if not directory.is_dir():
        raise DataError(f"there is no folder {folder}; say where the predictions are with --pred_dir")
    if not PLAIN_NAME.fullmatch(run_tag):
        raise UsageError(f"a run tag is the beginning of a file name; found {run_tag!r}")
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
    """What stands after the run tag in the names of a folder's files, and the files."""
    found: dict[str, list[Path]] = {}
    for path in sorted(directory.iterdir()):
        suffix = next((s for s in sorted(SUFFIXES, key=len, reverse=True) if path.name.endswith(s)), None)
        if suffix and path.name.startswith(f"{run_tag}_") and path.is_file():
            found.setdefault(path.name[len(run_tag) + 1 : -len(suffix)], []).append(path)
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
    """What there is instead: the files of the run, or else of the folder."""
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
# Prediction files of a text classifier: `id, y_true, y_prob` and perhaps `y_pred, best_threshold, text, …`.
#
# Read strictly: ids and texts stay text, scores are exact, every fault of every file is found before anything is said.

ALIASES: Final[Mapping[str, tuple[str, ...]]] = {
    "item": ("id", "item", "item_id", "comment_id"),
    "label": ("y_true", "label", "target", "toxic"),
    "score": ("y_prob", "prob", "probability", "prediction", "pred_score", "pred", "score", "y_score"),
    "decision": ("y_pred", "pred_label", "prediction_binary", "decision"),
    "threshold": ("best_threshold", "threshold"),
    "group": ("language", "lang"),
}
"""The names that a column may have; the first is the documented one and beats the others."""
NEEDED: Final = ("label", "score")
TOLD: Final = f"{INNER}language"
"""The language that the rows of a file tell whose name tells it too."""
AT_ONCE: Final = 4
"""Files that are read side by side, where polars has as many threads: hashing and parsing leave the interpreter to others."""
HONOURED: Final = {
    "columns", "missing", "score_kind", "threshold_rule", "identities", "dedupe", "decimal", "encoding", "separator",
}  # fmt: skip
"""What a spec may say about prediction files."""


@dataclass(frozen=True)
class PredictionRules:
    """What a caller may say about prediction files.

    columns         our name -> the file's column, for `item`, `label`, `score`, `decision`, `threshold`, `group`
    missing         `refuse`, or `drop`: rows without label, score or decision are left out and counted
    any_scores      scores need not be probabilities; a threshold must then be given
    threshold_rule  `same`: one threshold a group, or an error; `first` takes the first; `per-row` each row its own
    identities      columns that say how far a text mentions an identity: 0..1, blank where nobody looked
    """

    columns: Mapping[str, str] = field(default_factory=dict)
    missing: Missing = "refuse"
    any_scores: bool = False
    threshold_rule: ThresholdRule = "same"
    identities: tuple[str, ...] = ()
    dedupe: bool = False
    decimal: str = "."
    encoding: str | None = None
    separator: str | None = None

    def __post_init__(self) -> None:
        for what, value, known in (
            ("rule for missing values", self.missing, ("refuse", "drop")),
            ("threshold rule", self.threshold_rule, ("same", "first", "per-row")),
        ):
            if value not in known:
                raise UnknownName(what, value, known)
        for ours in self.columns:
            if ours not in ALIASES:
                raise UnknownName("column", ours, ALIASES)

    @classmethod
    def of(cls, spec: ReadSpec) -> PredictionRules:
        """The rules that a spec states; what prediction files do not have is refused."""
        other = [name for name in spec.said if name not in HONOURED]
        if other:
            raise UsageError(
                f"--{OPTION.get(other[0], other[0])} is not for prediction files; leave it out", code="unread-option"
            )
        return cls(
            columns=spec.columns,
            missing=spec.missing or "refuse",
            any_scores=spec.kind != "probability" if spec.score_kind is not None else False,
            threshold_rule=spec.threshold_rule or "same",
            identities=spec.identities,
            dedupe=spec.dedupe,
            decimal=spec.decimal_sign,
            encoding=spec.encoding,
            separator=spec.separator,
        )

    @property
    def spec(self) -> ReadSpec:
        """The rules as a spec, as results keep them."""
        return ReadSpec(
            columns=self.columns,
            missing=None if self.missing == "refuse" else self.missing,
            score_kind="raw" if self.any_scores else None,
            threshold_rule=None if self.threshold_rule == "same" else self.threshold_rule,
            identities=self.identities,
            dedupe=self.dedupe,
            decimal=None if self.decimal == "." else self.decimal,
            encoding=self.encoding,
            separator=self.separator,
        )

    @property
    def reading(self) -> ReadSpec:
        """The part that is about bytes and repeats."""
        return ReadSpec(dedupe=self.dedupe, decimal=self.decimal, encoding=self.encoding, separator=self.separator)


@dataclass(frozen=True)
class Predictions:
    """Checked rows: item, group, label, score; decision and threshold are null where the files have none.

    `file` and `row` (from 0) lead back to the file; `titles` tells what each file calls our columns; `raw` holds each
    file as text where the caller wants it whole.
    """

    frame: pl.DataFrame
    sources: tuple[Source, ...]
    titles: tuple[Mapping[str, str], ...]
    notes: tuple[str, ...] = ()
    choices: tuple[str, ...] = ()
    raw: tuple[pl.DataFrame, ...] = ()


def read_predictions(
    sources: Sequence[tuple[str | None, Any]], rules: PredictionRules | None = None, *, whole: bool = False
) -> Predictions:
    """Read files, each of one group (its name given) or of several (None: a column tells).

    One `DataError` carries every fault of every file. `whole` keeps all columns as text, for error dumps.
    """
    chosen, ledger = rules or PredictionRules(), Ledger()
    files = _read_all(sources, chosen, whole, ledger)
    frame = pl.concat([f.frame for f in files]) if files else None
    if ledger.findings or frame is None:
        raise ledger.error()
    by_name = [group for group, _ in sources if group is not None]
    _refuse_spellings(by_name if len(by_name) == len(sources) else frame["group"].unique(), chosen, ledger)
    if ledger.findings:
        raise ledger.error()
    if len(files) > 1 and any(group is None for group, _ in sources):
        _refuse_shared_ids(frame, files, ledger)
    known = [f.frame.select("item", "group").with_columns(text=f.texts) for f in files if f.texts is not None]
    if known and (shared := note_shared(pl.concat(known))):
        ledger.notes.append(shared)
    frame = _without_missing(frame, chosen, ledger)
    if chosen.threshold_rule != "same":
        ledger.choices.append(f"threshold-rule:{chosen.threshold_rule}")
    return Predictions(
        frame,
        tuple(f.source for f in files if f.source is not None) if all(f.source for f in files) else (),
        tuple(f.theirs for f in files),
        tuple(dict.fromkeys(ledger.notes)),
        tuple(ledger.choices),
        tuple(f.raw for f in files if f.raw is not None),
    )


@dataclass(frozen=True)
class _File:
    """One file, read and checked: `places` tells where rows stand in it, `raw` is all of it as text where that is wanted,
    `texts` its texts hashed."""

    frame: pl.DataFrame
    theirs: Mapping[str, str]
    source: Source | None
    places: Callable[[pl.Series], list[Place]]
    raw: pl.DataFrame | None = None
    texts: pl.Series | None = None


def _refuse_shared_ids(frame: pl.DataFrame, files: Sequence[_File], ledger: Ledger) -> None:
    """An id that stands in two files of the same group would count twice."""
    key = frame.select("group", "item")
    if frame["item"].n_unique() == frame.height or not (twice := key.is_duplicated()).any():
        return
    places = [
        place
        for file, rows in frame.filter(twice).group_by("file", maintain_order=True)
        for place in files[file[0]].places(rows["row"])
    ]
    what, fix = "{n} row{s} of ids that stand in more than one file", "keep one row of each"
    ledger.add("duplicate-id", what, fix, places, each="the id stands in another file too")
    raise ledger.error()


def _as_text(shape: Shape, rows: NDArray[np.int64] | None, ledger: Ledger) -> pl.DataFrame:
    """Every column of a file as text, in its own order."""
    names = shape.names or shape.first[0]
    frame = tables.load(shape, True, {name: at for at, name in enumerate(names)}, frozenset(), ledger).frame
    return frame if rows is None else frame[rows]


def _read_all(
    sources: Sequence[tuple[str | None, Any]], rules: PredictionRules, whole: bool, ledger: Ledger
) -> list[_File]:
    """Files read side by side; what is found about them comes into the ledger in their order."""

    def one(at: int) -> tuple[_File | None, Ledger]:
        own = Ledger()
        return _try(at, *sources[at], rules, whole, own), own

    with ThreadPoolExecutor(min(AT_ONCE, pl.thread_pool_size())) as pool:
        read = list(pool.map(one, range(len(sources))))
    for _, own in read:
        ledger.findings += own.findings
        ledger.notes += own.notes
        ledger.choices += own.choices
    return [file for file, _ in read if file is not None]


def _try(at: int, group: str | None, source: Any, rules: PredictionRules, whole: bool, ledger: Ledger) -> _File | None:
    try:
        return _predictions_read(at, group, source, rules, whole, ledger)
    except Stop:
        return None
    except FileNotFoundError:
        ledger.add("missing-file", "there is no such file", "check its name", [Place(Path(source).name)])
        return None


def _predictions_read(
    at: int, group: str | None, source: Any, rules: PredictionRules, whole: bool, ledger: Ledger
) -> _File:
    shape = tables.look(source, rules.reading, ledger)
    names = shape.names or shape.first[0]
    picks = _picks(names, group, rules, shape.name, ledger)
    theirs = {ours: names[position] for ours, position in picks.items()}
    mark = Source(shape.name, shape.content.sha256) if shape.content else None
    text = find_text(names, list(picks.values()))
    picks |= {} if text is None else {"text": text}
    told = _told(names, group, rules)
    picks |= {} if told is None else {TOLD: told}
    sound = read_sound(shape, picks, rules)
    if sound is not None and not _disagrees(sound, shape.name, group, rules):
        raw = _as_text(shape, None, ledger) if whole else None
        place = partial(_places, shape.name, sound["item"])
        return _File(_numbered(_whole(sound, group), at), theirs, mark, place, raw, _texts(sound))
    table = tables.load(shape, True, picks, frozenset(("score", "threshold", *map(apart, rules.identities))), ledger)
    stack = tables.Stack.of([table], theirs if told is None else {**theirs, TOLD: names[told]})
    if "item" not in picks:
        ledger.notes.append(f"{shape.name}: it has no ids; rows are numbered and cannot be paired with another run's")
        number = pl.int_range(1, pl.len() + 1).cast(pl.String)
        stack = stack.put((pl.lit(f"{at + 1}:") + number if at and group is None else number).alias("item"))
    check_ids(stack, ledger)
    _refuse_other_language(stack, shape.name, group, rules, ledger)
    if group is not None:
        stack = stack.put(pl.lit(group).alias("group"))
    stack = check_repeats(stack, ["group", "item"], False, rules.reading, ledger)
    frame = _numbered(_clean(stack, rules, ledger), at)
    check_thresholds(frame, stack, rules, ledger)
    raw = _as_text(shape, stack.rows, ledger) if whole else None
    return _File(frame, theirs, mark, stack.at, raw, _texts(stack.frame))


def _told(names: Sequence[str], group: str | None, rules: PredictionRules) -> int | None:
    """The position of a column of languages in a file whose name tells its language."""
    if group is None:
        return None
    taken = {*rules.columns.values(), *rules.identities}
    return next((at for at, n in enumerate(names) if plain(n) in ALIASES["group"] and n not in taken), None)


def _by_name_and_column(
    frame: pl.DataFrame, file: str, group: str | None, rules: PredictionRules
) -> tuple[str, str] | None:
    """The language that a file's name tells and the column that tells it too; None where only one of them does."""
    if group is not None:
        return (group, TOLD) if TOLD in frame.columns else None
    by_name = None if "group" in rules.columns else language_of(file)
    return None if by_name is None or "group" not in frame.columns else (by_name, "group")


def _others(frame: pl.DataFrame, language: str, column: str) -> pl.Series:
    """Which rows say another language; a blank says none."""
    said = [v for v in frame[column].unique().to_list() if v.strip() and one_spelling(v) != one_spelling(language)]
    return frame[column].is_in(said)


def _disagrees(frame: pl.DataFrame, file: str, group: str | None, rules: PredictionRules) -> bool:
    told = _by_name_and_column(frame, file, group, rules)
    return told is not None and bool(_others(frame, *told).any())


def _refuse_other_language(
    stack: tables.Stack, file: str, group: str | None, rules: PredictionRules, ledger: Ledger
) -> None:
    """The name of a file and its column of languages are two sources of one fact: they must say the same."""
    told = _by_name_and_column(stack.frame, file, group, rules)
    if told is not None and (wrong := _others(stack.frame, *told)).any():
        places = stack.places(wrong, told[1])
        what = f"{{n}} row{{s}} of another language ({quoted(places[0].value)}) than the name of the file tells ({quoted(told[0])})"
        fix = f"rename the file or correct the column; or go by the column alone, with --group {stack.title(told[1])}"
        ledger.add("column-conflict", what, fix, places, each=f"the name of the file says {told[0]}")


def _refuse_spellings(groups: Iterable[str], rules: PredictionRules, ledger: Ledger) -> None:
    """EN and en, pt-BR and pt_BR: two spellings of one language would be two languages in every mean."""
    if rules.columns.get("group", "language") not in ALIASES["group"]:
        return
    found: dict[str, list[str]] = {}
    for value in sorted(set(groups)):
        found.setdefault(one_spelling(value), []).append(value)
    for several in found.values():
        if len(several) > 1:
            what = f"the language {several[0]} is also written {' and '.join(several[1:])}"
            ledger.add("language-spelling", what, "write it in one way", [Place()], "language")


def _places(file: str, items: pl.Series, rows: pl.Series) -> list[Place]:
    """Where rows of a file stand that has a line each under its header."""
    return [Place(file, row + 2, item=item) for row, item in zip(rows, items[rows], strict=True)]


def _texts(frame: pl.DataFrame) -> pl.Series | None:
    return hashed(frame["text"]) if "text" in frame.columns else None


def _numbered(frame: pl.DataFrame, at: int) -> pl.DataFrame:
    """Rows that know the file and the row that they come from."""
    rows = pl.int_range(frame.height, dtype=pl.UInt32, eager=True).alias("row")
    return frame.hstack([_repeated("file", at, pl.Int32, frame.height), rows])


def _whole(frame: pl.DataFrame, group: str | None) -> pl.DataFrame:
    """Values that need no cleaning, with every column that cleaned ones have."""
    absent = {"group": (group, pl.String), "decision": (None, pl.Int8), "threshold": (None, pl.Float64)}
    names = ("item", "group", "label", "score", "decision", "threshold")
    has = frame.columns
    # Not `select`: on frames of many chunks it copies every column.
    return pl.DataFrame([frame.get_column(n) if n in has else _repeated(n, *absent[n], frame.height) for n in names])


def _repeated(name: str, value: Any, kind: Any, height: int) -> pl.Series:
    return pl.Series(name, [value], dtype=kind).new_from_index(0, height)


def _picks(
    names: Sequence[str], group: str | None, rules: PredictionRules, file: str, ledger: Ledger
) -> dict[str, int]:
    """Our name -> position, for the columns that are read."""
    if len(set(names)) < len(names):
        twice = next(n for n in names if names.count(n) > 1)
        raise ledger.stop("ambiguous-column", f"two columns are called {quoted(twice)}", "rename one", [Place(file, 1)])
    wanted = [ours for ours in ALIASES if ours != "group" or group is None]
    found = {ours: at for ours in wanted if (at := _claim(ours, names, rules, file, ledger)) is not None}
    for ours in (*NEEDED, *(("group",) if group is None else ())):
        if ours not in found:
            raise _no_column(ours, names, file, ledger)
    for name in rules.identities:
        if name not in names:
            near = nearest(name, names)
            fix = f"did you mean {quoted(near)}?" if near else f"there are {listed(names)}"
            raise ledger.stop("missing-column", f"there is no column {quoted(name)}", fix, [Place(file, 1)])
    return found | {apart(name): list(names).index(name) for name in rules.identities}


def _claim(ours: str, names: Sequence[str], rules: PredictionRules, file: str, ledger: Ledger) -> int | None:
    declared = rules.columns.get(ours)
    if declared is not None and declared in names:
        return list(names).index(declared)
    if declared is not None:
        near = nearest(declared, names)
        fix = f"did you mean {quoted(near)}?" if near else f"there are {listed(names)}"
        raise ledger.stop("missing-column", f"there is no column {quoted(declared)}", fix, [Place(file, 1)], declared)
    taken = {*rules.columns.values(), *rules.identities}
    hits = {plain(n): at for at, n in enumerate(names) if plain(n) in ALIASES[ours] and n not in taken}
    documented = ALIASES[ours][0]
    if documented in hits or len(hits) <= 1:
        return hits.get(documented, next(iter(hits.values()), None))
    several = [names[at] for at in hits.values()]
    what = f"the {ours} could be any of the columns {', '.join(map(quoted, several))}"
    raise ledger.stop("ambiguous-column", what, f"say which, as --column {ours}={several[0]}", [Place(file, 1)])


def _no_column(ours: str, names: Sequence[str], file: str, ledger: Ledger) -> Stop:
    what = f"there is no {ours} column; it may be called {', '.join(ALIASES[ours])} and there are {listed(names)}"
    return ledger.stop("missing-column", what, f"say which it is, as --column {ours}=NAME", [Place(file, 1)], ours)


def _clean(stack: tables.Stack, rules: PredictionRules, ledger: Ledger) -> pl.DataFrame:
    """The values of one file, each as what it is; missing ones are null, impossible ones are in the ledger."""
    may_miss, has = rules.missing == "drop", stack.frame.columns
    empty = pl.Series([None], dtype=pl.Float64).new_from_index(0, stack.frame.height)
    if "group" in stack.theirs:
        check_groups(stack, ledger)
    decision = decisions(stack, may_miss, ledger) if "decision" in has else empty
    return pl.DataFrame(
        {
            "item": stack.frame["item"],
            "group": stack.frame["group"],
            "label": labels(stack, may_miss, ledger),
            "score": scores(stack, rules, ledger),
            "decision": decision.cast(pl.Int8),
            "threshold": thresholds(stack, rules, ledger) if "threshold" in has else empty,
            **{apart(name): shares(stack, name, rules.decimal, ledger) for name in rules.identities},
        }
    )


def _without_missing(frame: pl.DataFrame, rules: PredictionRules, ledger: Ledger) -> pl.DataFrame:
    """Rows with label, score and, where the group has decisions, a decision; the others are counted."""
    if rules.missing == "refuse":
        return frame
    decided = pl.col("decision").is_not_null().any().over("group")
    whole = pl.col("label").is_not_null() & pl.col("score").is_not_null()
    kept = frame.filter(whole & (pl.col("decision").is_not_null() | ~decided))
    dropped = frame.height - kept.height
    if dropped:
        lost = frame["group"].value_counts().join(kept["group"].value_counts(), on="group", how="left", suffix="_kept")
        lost = lost.with_columns(n=pl.col("count") - pl.col("count_kept").fill_null(0)).filter(pl.col("n") > 0)
        parts = ", ".join(f"{g} {n:,}" for g, n in sorted(zip(lost["group"], lost["n"], strict=True)))
        ledger.notes.append(f"{dropped:,} rows without a label, score or decision were dropped ({parts})")
        ledger.choices.append(f"missing:drop({dropped})")
    if not kept.height:
        raise UsageError("no row is left: every one lacks its label, score or decision")
    return kept
