"""Prediction files of a text classifier: `id, y_true, y_prob` and perhaps `y_pred, best_threshold, text, …`.

Read strictly: ids and texts stay text, scores are exact, every fault of every file is found before anything is said.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from hitmiss.columns import INNER, apart
from hitmiss.errors import UnknownName, UsageError, nearest
from hitmiss.io import cells, tables
from hitmiss.io.checks import check_ids, check_repeats
from hitmiss.io.findings import Ledger, Place, Stop, listed, quoted
from hitmiss.io.names import plain
from hitmiss.io.runfiles import language_of, one_spelling
from hitmiss.io.shapes import Shape
from hitmiss.io.shared_texts import find_text, hashed, note_shared
from hitmiss.io.sound import read_sound
from hitmiss.readspec import OPTION, Missing, ReadSpec, ThresholdRule
from hitmiss.trials import Source

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
        return _read(at, group, source, rules, whole, ledger)
    except Stop:
        return None
    except FileNotFoundError:
        ledger.add("missing-file", "there is no such file", "check its name", [Place(Path(source).name)])
        return None


def _read(at: int, group: str | None, source: Any, rules: PredictionRules, whole: bool, ledger: Ledger) -> _File:
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
    cells.check_thresholds(frame, stack, rules, ledger)
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
        cells.check_groups(stack, ledger)
    decision = cells.decisions(stack, may_miss, ledger) if "decision" in has else empty
    return pl.DataFrame(
        {
            "item": stack.frame["item"],
            "group": stack.frame["group"],
            "label": cells.labels(stack, may_miss, ledger),
            "score": cells.scores(stack, rules, ledger),
            "decision": decision.cast(pl.Int8),
            "threshold": cells.thresholds(stack, rules, ledger) if "threshold" in has else empty,
            **{apart(name): cells.shares(stack, name, rules.decimal, ledger) for name in rules.identities},
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
