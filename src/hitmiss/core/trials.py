"""Trials: a table of questions put to detectors, with a header that states what the columns mean."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol, Self, TypeAlias
from urllib.parse import quote, unquote

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray

from hitmiss.core.artifacts import SHORT
from hitmiss.core.classes import code_of, understand
from hitmiss.core.columns import ANSWERS, FIXED, ColumnKeywords, column_name, find_column, prefixed, user_name
from hitmiss.core.completeness import Completeness, completeness
from hitmiss.core.errors import DataError, UnknownName, UsageError
from hitmiss.core.finding import Finding, Value
from hitmiss.core.kinds import ABSTAIN, FAILED, ScoreKind
from hitmiss.core.read_spec import WeightKind, label_text, refuse_unkind
from hitmiss.core.scale import ScoreScale
from hitmiss.core.sorting import Array, Floats
from hitmiss.core.tally import Tally, check_label, digest_of_cells
from hitmiss.core.weights import effective_weights, not_allowed, weigh

if TYPE_CHECKING:
    import pandas as pd
from hitmiss.core.header import Header
from hitmiss.core.stacked import stacked
from hitmiss.core.text_codes import PROBE, stretches, text_codes

__all__ = ["ANSWERS", "FIXED", "Trials", "stack"]
COUNTED: Final = "counted["
"""The beginning of hashes of counted trials; the names of the columns follow."""
MIXED: Final = (
    "the scores of some of these runs were reversed and of others not: a threshold is one of the reversed scores here, "
    "where a higher one means the positive class"
)
QUESTION = ("item", "target", "label")
"""The columns that identify a question and its true class."""
CODES = {"label": (0, 1), "decision": (0, 1, ABSTAIN, None)}
"""The values that these columns may hold; a trial that failed has no decision."""


class Table(Protocol):
    """A frame of polars or pandas."""

    @property
    def columns(self) -> Any: ...


TrialsLike: TypeAlias = "Trials | str | Path | Table | Sequence[Mapping[str, Any]] | Mapping[str, Any]"
"""Trials, or a file or a table that holds them, which is read as `hm.read` does."""


@dataclass(frozen=True, eq=False)
class Trials:
    """An immutable table of trials with its header. Make it with `Trials.of`, `Trials.from_frame` or `hitmiss.read`.

    Parameters
    ----------
    frame
        The table, one row per trial; its columns are checked.
    header
        What the columns mean.
    unique_over
        Columns that are known to identify each trial; None if this was not checked.

    Raises
    ------
    DataError
        If a column holds values that it may not hold.

    >>> t = Trials.of(label=[1, 0, 1], score=[2.0, -1.0, 0.5], item=["a", "b", "c"], codec=["C01", "C01", "C02"])
    >>> len(t), t.n_positive, t.header.slices
    (3, 2, ('codec',))
    >>> t.where(codec="C01").items
    ['a', 'b']
    """

    frame: pl.DataFrame
    header: Header
    unique_over: tuple[str, ...] | None = None
    """Columns that are known to identify each trial; None if this was not checked."""

    def __post_init__(self) -> None:
        # All trials are created here, however they were made, so they all pass the same checks as those of `read`.
        settled = _checked(self.frame, self.header)
        if settled is not self.frame:
            object.__setattr__(self, "frame", settled)

    @classmethod
    def of(
        cls,
        label: ArrayLike,
        score: ArrayLike | None = None,
        *,
        item: Iterable[str] | None = None,
        decision: ArrayLike | None = None,
        confidence: ArrayLike | None = None,
        weight: ArrayLike | None = None,
        weight_kind: WeightKind | None = None,
        header: Header | None = None,
        positive: str | int | bool | None = None,
        negative: str | int | bool | None = None,
        **columns: ArrayLike,
    ) -> Trials:
        """Make trials from arrays, which are copied.

        Parameters
        ----------
        label
            1 or True for the positive class, 0 or False for the other; or words, as files have them.
        score
            The scores; higher means positive.
        item
            The ids.
        decision
            1, 0, or -1 for an abstention; None for a trial that failed.
        confidence
            The confidence of each decision, from 0 to 1.
        weight, weight_kind
            The weight of each trial, and what it is: `frequency` (a trial stands for so many trials, which are repeated;
            whole numbers) or `sampling` (one over the chance that the trial was sampled; any number from 0).
        header
            What the columns mean.
        positive, negative
            The classes, as for `read`: needed where the words do not say which class is positive, as real and fake.
        **columns
            Further columns; they become slices unless the header says otherwise. A column `target` says what each row
            asks about if items repeat; otherwise it is a slice like any other.

        Returns
        -------
        Trials
            The trials.

        Raises
        ------
        DataError
            If a value is not allowed in its column.
        """
        is_positive, head = _read_labels(label, positive, negative, header or Header())
        items = pl.int_range(len(is_positive), eager=True).cast(pl.String) if item is None else list(item)
        data: dict[str, object] = {"item": items, "label": is_positive.astype(np.int8)}
        for name, values in (("score", score), ("confidence", confidence)):
            if values is not None:
                data[name] = _numbers(name, values, len(is_positive))
        if decision is not None:
            data["decision"] = _decisions(decision)
        if "target" in columns and item is not None and len(set(items)) < len(items):
            data["target"] = _texts(columns.pop("target"))
        names = {name: column_name(name) for name in columns}
        head = head.renamed(names)
        named = {*head.runs, *head.slices, *head.numbers}
        head = replace(head, slices=(*head.slices, *(c for c in names.values() if c not in named)))
        for name, values in columns.items():
            _refuse_one_value(name, values, len(is_positive))
            data[names[name]] = np.array(values, dtype=np.float64) if names[name] in head.numbers else _texts(values)
        for name, given in data.items():
            n_given = len(given)  # type: ignore[arg-type]
            if n_given != len(is_positive):
                raise DataError.of(
                    "unequal-length", names=("label", user_name(name)), sizes=(len(is_positive), n_given)
                )
        if weight is None and weight_kind is None:
            return cls.from_frame(pl.DataFrame(data), head, is_unique=item is None)
        refuse_unkind(None if weight is None else "weight", weight_kind)
        assert weight is not None and weight_kind is not None
        data["weight"] = _weights(weight, weight_kind, len(is_positive))
        return cls.from_frame(*weigh(pl.DataFrame(data), head, "weight", weight_kind), is_unique=item is None)

    @classmethod
    def from_frame(
        cls, frame: pl.DataFrame, header: Header, *, is_unique: bool = False, keeps_codes: bool = False
    ) -> Trials:
        """Make trials from a polars frame with the columns that this module describes, and check them.

        Parameters
        ----------
        frame
            One row per trial.
        header
            What the columns mean.
        is_unique
            Whether the ids are already known to be unique, so that they need no check.
        keeps_codes
            Whether texts that are given as codes stay so, which is enough for numbers; otherwise they become texts.

        Returns
        -------
        Trials
            The trials.
        """
        frame, header = _with_own_names(frame, header)
        if "target" not in frame.columns:
            frame = with_target(frame, header.positive)
        texts = ["item", "target", *header.runs, *header.slices]
        numbers = (*header.numbers, *([header.weight] if header.weight is not None else []))
        kinds = frame.schema  # made anew each time that it is asked for
        missing = [c for c in ("label", *texts, *numbers) if c not in kinds]
        if missing:
            raise UsageError.of("missing-column/trials", user_name=user_name(missing[0]), columns=frame.columns)
        kept = (pl.String, pl.Categorical) if keeps_codes else (pl.String,)
        others = [frame[c].cast(pl.String) for c in texts if kinds[c] not in kept]
        key = ("item", "target", *header.runs)
        trials = cls(frame.with_columns(*others) if others else frame, header, unique_over=key)
        if not is_unique:
            trials._refuse_duplicates()
            trials._refuse_two_labels()
        return trials

    def _refuse_duplicates(self) -> None:
        n = stacked(self.frame)
        if self.frame["item"].head(n or self.frame.height).n_unique() == (n or self.frame.height):
            return  # far cheaper than comparing whole keys, and nearly always enough
        key = ["item", "target", *self.header.runs]
        if self.frame.select(pl.struct(key).is_duplicated().any()).item():
            twice = self.frame.filter(pl.struct(key).is_duplicated())
            raise DataError.of("duplicate-id/rows", height=twice.height, key=tuple(key), item=twice["item"][0])

    def _refuse_two_labels(self) -> None:
        """Refuse an item with one label in one run and the other in another."""
        if not self.header.runs:
            return
        low, high = (end("label").over("item", "target") for end in (pl.min, pl.max))
        both = self.frame.filter(low != high)
        if both.height:
            first = both["item"][0]
            own = both.filter(pl.col("item") == first).unique("label", maintain_order=True)
            names = (self.header.negative, self.header.positive)
            told = [
                f"{names[row['label']]} in {', '.join(f'{user_name(name)} {row[name]}' for name in self.header.runs)}"
                for row in own.iter_rows(named=True)
            ]
            raise DataError.of("both-labels", item=both["item"].n_unique(), first=first, told=" and ".join(told))

    def __len__(self) -> int:
        return self.frame.height

    @property
    def label(self) -> NDArray[np.int8]:
        """The true classes: 1 = positive, 0 = the other class."""
        return self.frame["label"].to_numpy()

    @property
    def score(self) -> NDArray[np.float64]:
        """The scores; higher = positive. Trials that failed have no score, so this is an error if there are any."""
        values = self.column("score")
        if values.null_count():
            raise DataError.of("empty-score", values_2=values.null_count(), n_values=len(values))
        return values.to_numpy()

    @property
    def weights(self) -> NDArray[np.float64] | None:
        """The sampling weights; None: there are none, and every trial counts once."""
        return None if self.header.weight is None else self.column(self.header.weight).to_numpy()

    @property
    def items(self) -> list[str]:
        """The ids, in the order of the rows."""
        return self.frame["item"].to_list()

    @property
    def n_positive(self) -> int:
        """The number of positive trials."""
        return int(self.frame["label"].sum())

    @property
    def has_rows(self) -> bool:
        """Whether every trial is a row; trials beyond memory are counted by cells (`engine.counted`)."""
        return True

    @property
    def size(self) -> NDArray[np.int64]:
        """The number of trials that each row stands for."""
        return np.ones(self.frame.height, dtype=np.int64)

    @property
    def tally(self) -> Tally:
        """The scores, counted; trials without one (failed calls) are left out, sampling weights add up to their size."""
        scores, weights = self.column("score"), effective_weights(self)
        there = scores.is_not_null().to_numpy()
        return Tally.of(self.label[there], scores.drop_nulls().to_numpy(), None if weights is None else weights[there])

    @property
    def is_short(self) -> bool:
        """Whether some scores are known only by the bins that contain them."""
        return False

    @property
    def has_targets(self) -> bool:
        """Whether there is more than one target.

        Uses a polars expression, so that a target that all rows share is never expanded to one value per row.
        """
        least, greatest = self.frame.select(least=pl.col("target").min(), greatest=pl.col("target").max()).row(0)
        return bool(least != greatest)

    def column(self, name: str) -> pl.Series:
        """Return one column; if it does not exist, the error lists those that do."""
        if name not in self.frame.columns:
            raise UnknownName("column", name, self.frame.columns)
        return self.frame[name]

    def own(self, name: str) -> str:
        """Return the column that a caller means by a name: a column of the user comes before one of the engine."""
        found = find_column(name, self.frame.columns)
        if found is None:
            raise UnknownName("column", name, map(user_name, ("item", *self.header.runs, *self.header.slices)))
        return found

    def unit_names(self, names: Sequence[str]) -> tuple[str, ...]:
        """Return the columns of a unit; the file's own name of its ids (`id`, `utt`) means the items.

        >>> Trials.of([1, 0], [2.0, 1.0], codec=["a", "b"]).unit_names(["id", "codec"])
        ('item', 'codec')
        """
        columns = [known for file in self.header.files if isinstance(known := file.get("columns"), Mapping)]
        ids = {"id", *(known["item"] for known in columns if "item" in known)}
        return tuple(
            "item" if name in ids and find_column(name, self.frame.columns) is None else name for name in names
        )

    def where(self, **values: str) -> Trials:
        """Return the trials whose columns have these values."""
        same = [pl.col(self.own(name)) == value for name, value in values.items()]
        return self.keep(pl.all_horizontal(*same) if same else pl.lit(True))

    def keep(self, condition: pl.Expr) -> Trials:
        """Return the trials for which a polars expression is true."""
        return replace(self, frame=self.frame.filter(condition))

    def put(self, header: Header | None = None, **columns: pl.Series | pl.Expr) -> Trials:
        """Return the same trials with columns added or replaced, and optionally another header."""
        known = None if {*columns} & {*(self.unique_over or ())} else self.unique_over
        frame = self.frame.with_columns(**columns)
        return replace(self, frame=frame, header=header or self.header, unique_over=known)

    def retitle(self, **changes: Any) -> Self:
        """Return the same trials with some fields of the header changed."""
        return replace(self, header=replace(self.header, **changes))

    @property
    def is_repeated(self) -> bool:
        """Whether some question occurs more than once in a run, as when the trials of a repeated run are pooled."""
        key = ["item", "target", *self.header.runs]
        if self.unique_over is not None and {*self.unique_over} <= {*key}:
            return False
        if self.frame["item"].n_unique() == self.frame.height:
            return False
        return bool(self.frame.select(pl.struct(key).is_duplicated().any()).item())

    @cached_property
    def completeness(self) -> Completeness:
        """How many trials there are of those that there should be: every question in every run, or those of the key."""
        n, of = self.header.coverage or (0, 0)
        return self._matrix if n >= of else replace(self._matrix, n=n, of=of)

    @property
    def _matrix(self) -> Completeness:
        if self.header.unnamed is None:
            return completeness(self.frame, self.header.runs)
        return Completeness(len(self), len(self), len(self))  # which runs answer the same questions is not known

    @cached_property
    def digest(self) -> str:
        """A short hash of the content: of the bytes of the files if there are any, otherwise of the columns."""
        sha = hashlib.sha256()
        if self.header.sources:
            for digest in sorted(s.sha256 for s in self.header.sources):
                sha.update(digest.encode())
            return sha.hexdigest()[:SHORT]
        for name in sorted(self.frame.columns):
            values = self.frame[name]
            sha.update(name.encode())
            sha.update(_bytes(values))
        return sha.hexdigest()[:SHORT]

    def codes(self, name: str) -> tuple[NDArray[np.int64], list[str]]:
        """Return a text column as integers, and the sorted values that they encode; computed once per table."""
        if name not in self._codes:
            self._codes[name] = text_codes(self.column(name))
        return self._codes[name]

    @cached_property
    def _codes(self) -> dict[str, tuple[NDArray[np.int64], list[str]]]:
        return {}

    @property
    def content(self) -> str:
        """A hash of the rows. It does not depend on their order, so a sorted copy of a file has the same hash.

        >>> a = Trials.of([1, 0], [2.0, 1.0], item=["a", "b"])
        >>> a.content == Trials.of([0, 1], [1.0, 2.0], item=["b", "a"]).content
        True
        """
        return self._hashes[0]

    @property
    def questions(self) -> str:
        """A hash of what was asked: items, targets and true classes, each once; the order of rows does not matter.

        >>> a, b = Trials.of([1, 0], [2.0, 1.0], item=["a", "b"]), Trials.of([0, 1], [0.5, 0.1], item=["b", "a"])
        >>> a.questions == b.questions, a.questions == Trials.of([1, 1], [2.0, 1.0], item=["a", "b"]).questions
        (True, False)
        """
        return self._hashes[1]

    @cached_property
    def _hashes(self) -> tuple[str, str]:
        """The hashes of the rows and of the questions; computed together, because sorting takes most of the time."""
        key = ["item", *(["target"] if self.has_targets else []), *self.header.runs]
        # Most files are sorted. An id that occurs twice says nothing about the order of its rows.
        items = self.frame["item"]
        is_sorted = len(key) == 1 and items.is_sorted() and not (items == items.shift()).any()
        # gathering rows from one chunk takes a fraction of the time
        frame = self.frame if is_sorted else self.frame.rechunk()
        flat = [name for name, kind in sorted(frame.schema.items()) if not kind.is_nested()]
        order = None if is_sorted else _order(frame, list(dict.fromkeys((*key, *self.header.slices, *flat))))
        content = hashlib.sha256()
        asked: dict[str, bytes] = {}
        for name in sorted(frame.columns):
            if name == "target" and "target" not in key and len(self):
                data = ((frame[name][0].encode() + b"\x1f") * len(self))[:-1]
            else:
                data = _bytes(frame[name] if order is None else frame[name].gather(order))
            content.update(name.encode() + b"\x1e")
            content.update(data)
            content.update(b"\x1e")
            if name in QUESTION:
                asked[name] = data
        if not {*(self.unique_over or ("",))} <= {"item", "target"}:
            once = self.frame.select(*QUESTION).unique().sort(*QUESTION)
            asked = {name: _bytes(once[name]) for name in QUESTION}
        questions = hashlib.sha256(asked[QUESTION[0]])
        for name in QUESTION[1:]:
            questions.update(b"\x1e")
            questions.update(asked[name])
        return content.hexdigest(), questions.hexdigest()

    def content_like(self, content: str) -> str:
        """Return the hash of these trials in the form of a given hash: of the rows, or of how often each score occurs.

        >>> a, b = Trials.of([1, 0], [2.0, 1.0]), Trials.of([0, 1], [1.0, 2.0])
        >>> a.content_like(b.counted(["label"])) == b.counted(["label"])
        True
        """
        if not content.startswith(COUNTED):
            return self.content
        columns = [unquote(name) for name in content.removeprefix(COUNTED).partition("]")[0].split(",")]
        return self.counted(columns) if {*columns} <= {*self.frame.columns} else ""

    def counted(self, columns: Sequence[str]) -> str:
        """Return a hash of how often each score occurs for each value of some columns, in any order of the rows.

        This is all that can be computed when trials are only counted (`--stream`). The hash names the columns it was
        made from.
        """
        named = sorted(columns)
        cells = ((json.dumps(values), scores, counts) for values, scores, counts in self._cells(named))
        return f"{COUNTED}{','.join(quote(name, safe='') for name in named)}]:{digest_of_cells(cells)}"

    def _cells(self, columns: Sequence[str]) -> Iterator[tuple[list[str], Floats, NDArray[np.int64]]]:
        """Yield the values of some columns, the scores that occur with them, and how often each score occurs."""
        scores_of = pl.col("score") if "score" in self.frame.columns else pl.lit(0.0)
        table = self.frame.select(pl.col(columns).cast(pl.String), scores_of.alias(":score"))
        for values, rows in table.group_by(columns):
            scores = rows.to_series(-1).to_numpy()
            yield list(map(str, values)), scores, np.ones(len(scores), dtype=np.int64)

    def to_polars(self) -> pl.DataFrame:
        """Return the table as a polars frame."""
        return self.frame.clone()

    def to_pandas(self) -> pd.DataFrame:
        """Return the table as a pandas frame (needs pandas)."""
        import pandas as pd

        return pd.DataFrame({name: self.frame[name].to_list() for name in self.frame.columns})

    def __repr__(self) -> str:
        head = self.header
        return f"Trials({len(self)} trials, {self.n_positive} {head.positive}, {len(self) - self.n_positive} {head.negative}, {head.score_kind} scores, slices {list(map(user_name, head.slices))})"

    @property
    def plot(self) -> object:
        """Plots of these trials: `trials.plot.det()`, `.roc()`, `.pr()`, `.reliability()`, … (needs matplotlib)."""
        return import_module("hitmiss.reports.plotting").Plots(
            self
        )  # imported by name: `core` must not import `report`

    def _repr_html_(self) -> str:
        table = self.frame if self.has_targets else self.frame.drop("target")
        rows = table.head(10).iter_rows()
        import html  # needed only in notebooks

        cells = "".join(f"<tr>{''.join(f'<td>{html.escape(str(v))}</td>' for v in row)}</tr>" for row in rows)
        names = "".join(f"<th>{html.escape(user_name(c))}</th>" for c in table.columns)
        return f"<p>{html.escape(repr(self))}</p><table><thead><tr>{names}</tr></thead><tbody>{cells}</tbody></table>"


def _with_own_names(frame: pl.DataFrame, header: Header) -> tuple[pl.DataFrame, Header]:
    """Rename columns of the user that have the name of an engine column, and use the new names in the header."""
    clash = [n for n in dict.fromkeys((*header.runs, *header.slices, *header.numbers)) if n in FIXED]
    if not clash or any(n not in frame.columns for n in clash):
        return frame, header
    texts = {n: frame[n] if n in header.numbers else frame[n].cast(pl.String) for n in clash}
    frame = frame.with_columns(column.alias(prefixed(n)) for n, column in texts.items())
    if "target" in clash and not frame["item"].is_duplicated().any():
        frame = frame.drop("target")
    return frame, header.renamed({n: prefixed(n) for n in clash})


def _read_labels(
    label: ArrayLike, positive: object, negative: object, head: Header
) -> tuple[NDArray[np.bool_], Header]:
    """Return a mask of the positives and the header with the names of the classes; words are read as those of files."""
    if hasattr(label, "columns"):
        raise UsageError.of("table-for-labels")
    given = np.asarray(label)
    ours, other = (None if name is None else str(label_text(name)) for name in (positive, negative))
    if given.dtype.kind not in "UOT" or not any(isinstance(value, str) for value in given.flat):
        mask = check_label(label)
        code = None if ours is None else code_of(ours)
        if ours is None or code is not None:
            return (~mask if code == "0" else mask), head
        return mask, replace(head, positive=ours, negative=other or f"not {ours}")
    words = [str(value) for value in given.tolist()]
    found = sorted(set(words))
    is_named = head.positive != "positive"
    reading = understand(
        found, ours or (head.positive if is_named else None), other or (head.negative if is_named else None)
    )
    if reading.choices:
        raise reading.refusal()
    if reading.problems:
        wrong = reading.problems[0]
        values: dict[str, Value] = {"n": words.count(wrong.word), "word": wrong.word, "meant": wrong.meant}
        code = "labels-name-no-class/meant" if wrong.meant else "labels-name-no-class"
        raise DataError.coded(Finding(code, values=values), wrong.kind)
    head = replace(head, positive=reading.positive, negative=reading.negative, settled=reading.settled)
    return np.isin(np.array(words), reading.positive_words), head


def _texts(values: ArrayLike) -> pl.Series | list[str]:
    """Return values as texts, as Python writes them; integers are converted by polars, which is many times faster."""
    given = np.asarray(values)
    if given.dtype.kind in "iu" and given.ndim == 1:
        return pl.Series(given).cast(pl.String)
    return [str(v) for v in given.tolist()]


HEADED: Final = ("positive", "negative", "score_kind")
"""What a header says in one word."""


def _refuse_one_value(name: str, values: ArrayLike, n: int) -> None:
    """Refuse one value where a column is needed; it may be meant for the header."""
    if not isinstance(values, str | bytes) and np.ndim(values) == 1:
        return
    found = repr(values) if np.ndim(values) == 0 else f"an array of shape {np.shape(values)}"
    hint = f"; if it says what the columns mean, give header=hm.Header({name}={values!r})" if name in HEADED else ""
    raise UsageError.of("not-a-column", name=name, n=n, found=found, hint=hint)


def with_target(frame: pl.DataFrame, target: str) -> pl.DataFrame:
    """Add the one target that all rows share; polars stores it once as long as the column is not taken out.

    It is added next to a single column and then moved to the end, because `with_columns` would expand it if the columns
    are split into different chunks.
    """
    if not frame.width:
        return frame.with_columns(target=pl.lit(target))
    alone = frame.to_series(0).to_frame().with_columns(pl.lit(target).alias("target")).select("target")
    return pl.concat([frame, alone], how="horizontal")


def _order(frame: pl.DataFrame, names: Sequence[str]) -> pl.Series:
    """Return the order of the rows by the first column, then of rows that it leaves equal by the next, and so on.

    An id may be that of several rows, as in files of several languages. Further columns only split the rows that are
    equal so far, and sorting numbers that are nearly in order takes a fraction of the time of sorting texts.
    """
    found = frame[names[0]].arg_sort()
    held = frame[names[0]].gather(found)
    is_new = held.ne_missing(held.shift()).to_numpy().copy()
    is_new[:1] = False
    if is_new[1:].all():
        return found
    order = found.to_numpy().astype(np.intp)
    group = np.cumsum(is_new)  # the number of the group of equal rows, in this order
    for name in names[1:]:
        rank, size = _rank(frame[name])
        code = rank[order]
        code += group * size
        again = np.argsort(code, kind="stable")
        order, code = order[again], code[again]
        np.not_equal(code[1:], code[:-1], out=is_new[1:])
        if is_new[1:].all():
            break
        group = np.cumsum(is_new)
    return pl.Series(order.astype(np.uint32 if len(order) < 2**32 else np.uint64))


def _rank(values: pl.Series) -> tuple[NDArray[np.int64], int]:
    """Return the rank of each value, equal for equal values, 0 for null; and a number greater than all ranks."""
    if values.dtype == pl.String and stretches(values.head(PROBE)) is not None and not values.null_count():
        codes, texts = text_codes(values)
        return codes, len(texts)
    ranks = values.rank("dense").fill_null(0).to_numpy().astype(np.int64)
    return ranks, int(ranks.max(initial=0)) + 1


def _bytes(values: pl.Series) -> bytes:
    """Return the content of a column as bytes, for hashing."""
    if values.dtype.is_numeric():
        return values.to_numpy().tobytes()
    if values.dtype == pl.String and not values.null_count():
        joined: str = values.str.join("\x1f").item()
        return joined.encode()
    return "\x1f".join(map(str, values)).encode()


def _numbers(name: str, values: ArrayLike, n: int) -> pl.Series:
    """Return an array as numbers, one per trial.

    None and NaN are kept distinct from numbers; any other value that is not a number is refused.
    """
    if np.ma.is_masked(values):
        raise DataError.of("masked-value", name=name)
    try:
        given = np.array(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError.of("not-a-number/value", name=name, error=error) from None
    if given.shape != (n,):
        raise DataError.of("unequal-length", names=("label", name), sizes=(str((n,)), str(given.shape)))
    return pl.Series(name, given)


def _weights(values: ArrayLike, kind: WeightKind, n: int) -> pl.Series:
    """Return an array as weights, one per trial; those that are not allowed are refused."""
    given = _numbers("weight", values, n)
    wrong, allowed = not_allowed(given, kind)
    if wrong.any():
        raise _refused("bad-weight/values", given, wrong, kind=kind, allowed=allowed)
    return given


def _decisions(values: ArrayLike) -> Array | list[object]:
    """Return an array as decisions; `FAILED` and None become null."""
    if np.ma.is_masked(values):
        raise DataError.of("masked-value", name="decision")
    given = np.array(values)
    if given.dtype == np.object_ or (given == FAILED).any():
        return [None if d == FAILED else d for d in given.tolist()]
    return given


def _checked(frame: pl.DataFrame, header: Header) -> pl.DataFrame:
    """Return the frame with its engine columns as numbers, all checked; the same object if nothing changes."""
    changed: list[pl.Series] = []
    for name in frame.columns:
        if name not in (*CODES, "score", "confidence"):
            continue
        column = frame[name]
        if name == "score":
            settled = _scores(_floats(column), header.score_kind, frame)
        elif name == "confidence":
            settled = _confidences(_floats(column))
        else:
            settled = _codes(column, CODES[name])
        if settled is not column:
            changed.append(settled)
    return frame.with_columns(changed) if changed else frame


def _floats(column: pl.Series) -> pl.Series:
    """Return a column as float64. Values that are not numbers are refused; null stays null."""
    if column.dtype == pl.Float64:
        return column
    exact = column.cast(pl.Float64, strict=False) if not column.dtype.is_nested() else pl.Series(column.name, [None])
    if len(exact) != len(column) or exact.null_count() > column.null_count():
        raise DataError.of("not-a-number", column_name=column.name, dtype=column.dtype)
    return exact


def _scores(scores: pl.Series, kind: ScoreKind, frame: pl.DataFrame) -> pl.Series:
    """Return scores that can be ranked. Only a trial that failed, as its `error` says, may have no score."""
    nan = scores.is_nan()
    if nan.any():
        raise _refused("nan-score/values", scores, nan)
    if scores.has_nulls():
        has_failed = frame["error"].fill_null("") != "" if "error" in frame.columns else pl.Series([False])
        empty = scores.is_null() & ~has_failed
        if empty.any():
            raise _refused("empty-score/values", scores, empty)
    return (
        _within("score", scores, "declare another score kind (raw, logit or llr)") if kind == "probability" else scores
    )


def _confidences(values: pl.Series) -> pl.Series:
    """Return confidences from 0 to 1. NaN and None mean missing: only calibration leaves such a trial out."""
    values = values.fill_nan(None) if values.is_nan().any() else values
    return _within("confidence", values, "divide by 100 what is in per cent")


def _within(name: str, values: pl.Series, fix: str) -> pl.Series:
    beyond = ~values.is_between(0.0, 1.0)
    if beyond.any():
        raise _refused("not-a-probability/values", values, beyond, name=name, fix=fix)
    return values


def _refused(code: str, values: pl.Series, wrong: pl.Series, **more: Any) -> DataError:
    first = wrong.fill_null(False).arg_max() or 0
    return DataError.of(code, n=int(wrong.sum()), total=len(values), value=repr(values[first]), first=first, **more)


def _codes(column: pl.Series, allowed: tuple[int | None, ...]) -> pl.Series:
    """Return a column of codes as small integers; other values are refused, not rounded."""
    least = min(c for c in allowed if c is not None)
    may_be_null = None in allowed or not column.has_nulls()
    if column.dtype == pl.Int8 and may_be_null and column.is_between(least, 1).all():
        return column
    exact = column.cast(pl.Float64, strict=False)
    wrong = ~exact.is_in([float(c) for c in allowed if c is not None]).fill_null(False)
    if None in allowed:
        wrong &= column.is_not_null()
    if wrong.any():
        first = wrong.arg_max() or 0
        values: dict[str, Value] = {"name": column.name, "allowed": str(allowed), "n": int(wrong.sum()), "first": first}
        raise DataError.coded(
            Finding("not-allowed", values={**values, "value": repr(column[first])}), f"bad-{column.name}"
        )
    return exact.cast(pl.Int8)


def stack(parts: Mapping[str, Trials], column: str) -> Trials:
    """Combine several sets of trials as runs of one set, with a new run column that names them.

    >>> a, b = Trials.of([1, 0], [2.0, 1.0]), Trials.of([1, 0], [1.0, 2.0])
    >>> stack({"a": a, "b": b}, "system").header.runs
    ('system',)
    """
    first = next(iter(parts.values())).header
    for name, part in parts.items():
        for field_name in ("positive", "negative", "score_kind", "weight", "repeated_by"):
            ours, theirs = getattr(first, field_name), getattr(part.header, field_name)
            if ours != theirs:
                raise DataError.of("unlike-headers", name=name, field_name=field_name, theirs=theirs, ours=ours)
    frames = [t.frame.with_columns(pl.lit(name).alias(column)) for name, t in parts.items()]
    headers = [t.header for t in parts.values()]
    scales = {h.scale for h in headers}
    mixed = (MIXED,) if len(scales) > 1 else ()
    header = replace(
        first,
        scale=first.scale if len(scales) == 1 else ScoreScale(),
        runs=(column, *first.runs),
        slices=tuple(s for s in first.slices if all(s in h.slices for h in headers)),
        sources=tuple(dict.fromkeys(s for h in headers for s in h.sources)),
        coverage=_coverage(parts.values()),
        notes=(*dict.fromkeys(n for h in headers for n in h.notes), *mixed),
        choices=tuple(dict.fromkeys(c for h in headers for c in h.choices)),
    )
    return Trials.from_frame(pl.concat(frames, how="diagonal"), header)


def _coverage(parts: Iterable[Trials]) -> tuple[int, int] | None:
    """Return how many trials of several parts are there, and of how many; None if no part says."""
    told = [(part.header.coverage, len(part)) for part in parts]
    if not any(coverage for coverage, _ in told):
        return None
    n, of = (sum(n if coverage is None else coverage[side] for coverage, n in told) for side in (0, 1))
    return n, of


def demanded(value: object, verb: str, reading: ColumnKeywords | None = None) -> Trials:
    """Return trials; a file or a table is read as `hm.read` does, and anything else is refused with how to make trials.

    `reading` are keywords that say what the columns of a table are; trials are read already.
    """
    if isinstance(value, Trials):
        if reading:
            raise UsageError.of("read-already", verb=verb, names=tuple(reading))
        return value
    made: Trials = import_module("hitmiss.evaluation.given").trials_of(value, verb, reading or {})  # a higher layer
    return made
