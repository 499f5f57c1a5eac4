"""What callers hand over in Python: files, tables of any kind, arrays, and columns by the keywords that people write."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Sized
from pathlib import Path
from typing import Any, Final

import numpy as np
import polars as pl

from hitmiss.core.columns import RoleKeywords
from hitmiss.core.errors import DataError, HitmissError, UsageError
from hitmiss.core.keywords import DesignKeywords, ReadKeywords
from hitmiss.core.kinds import one_or_several
from hitmiss.core.trials import Trials

__all__ = ["EvaluateKeywords", "TableKeywords", "of_arrays", "reading_of", "refuse_arrays", "table_of", "trials_of"]

COLUMNS: Final = ("item", "label", "score", "decision", "confidence", "verdict")
"""Keywords that name a column of the table, or hold the values themselves."""
BESIDE: Final = ("by", "unit", "weight", "run")
"""Keywords that name further columns; beside arrays they may hold values too."""
MOST_NAMES: Final = 8
"""A longer list of texts holds values, not names."""
ARRAYS: Final = "hm.evaluate(label=y, score=s, metrics='eer')"


class TableKeywords(RoleKeywords, ReadKeywords, total=False):
    """Columns by their roles, as names or as arrays, and the fields of `ReadSpec`."""


class EvaluateKeywords(TableKeywords, DesignKeywords, total=False):
    """Everything that can be stated about files and asked of their trials."""


def of_arrays(scores: object, key: object, keywords: Mapping[str, Any]) -> tuple[object, object, dict[str, Any]]:
    """Return the arguments of a call with its arrays as one table, whose columns the keywords name.

    Two arrays are labels and scores, in this order, as for the functions of `hm.metrics`; scores that are true and false
    are decisions. Arrays by name are the columns that their keywords say. What is no array stays as it is.

    >>> table, _, keywords = of_arrays([1, 0], [0.9, 0.2], {"by": {"codec": ["a", "b"]}})
    >>> list(table), keywords
    (['label', 'score', 'item', 'codec'], {'by': ['codec']})
    """
    made = dict(keywords)
    if _is_array(scores) and getattr(key, "ndim", 1) == 2 and not hasattr(key, "columns"):
        raise UsageError.of("two-dimensional", shape=str(getattr(key, "shape", "")))
    if _is_array(scores) and _is_array(key) and not _is_paths(key) and not {"label", "score"} & made.keys():
        if len({*map(str, scores)}) > 2 >= len({*map(str, key)}):  # type: ignore[call-overload]
            raise UsageError.of("swapped-arrays", ARRAYS=ARRAYS)
        made, scores, key = {"label": scores, "decision" if _are_booleans(key) else "score": key, **made}, None, None
    given = {name: made[name] for name in COLUMNS if made.get(name) is not None}
    if scores is not None or not given or any(map(_is_name, given.values())):
        return scores, key, made
    table = {name: made.pop(name) for name in given}
    if "item" not in table:
        table["item"] = list(map(str, range(len(next(iter(table.values()))))))
    for name in (name for name in BESIDE if name in made):
        if isinstance(value := made[name], Mapping):
            table, made[name] = {**table, **value}, list(value)
        elif not _is_name(value):
            own = str(getattr(value, "name", None) or name)
            table[own], made[name] = value, own
    return table, key, made


def reading_of(
    scores: object, keywords: Mapping[str, object], key: object = None
) -> tuple[object, object, dict[str, object]]:
    """Return what is to be read, its key, and read options, from the arguments of a call.

    `label="truth"` names a column; `run="model"` names the column of the runs, `score=["a", "b"]` the scores of two
    systems.

    >>> reading_of("own.csv", {"label": "truth", "score": "p", "positive": "fake"})
    ('own.csv', None, {'positive': 'fake', 'columns': {'label': 'truth', 'score': 'p'}})
    """
    if isinstance(key, str) and key in getattr(scores, "columns", ()) and not Path(key).exists():
        raise UsageError.of("columns-by-keyword", key=key)
    named = {name: keywords[name] for name in COLUMNS if keywords.get(name) is not None}
    options = {name: value for name, value in keywords.items() if name not in (*COLUMNS, "run")}
    if keywords.get("run") is not None:
        options["runs"] = one_or_several(keywords["run"])
    for name, value in named.items():
        if not _is_name(value) and scores is not None:
            raise UsageError.of("bad-column", wrong=name, name=type(value).__name__, ARRAYS=ARRAYS)
    if scores is None:
        raise UsageError.of("nothing-to-read", ARRAYS=ARRAYS)
    if isinstance(score := named.get("score"), Sequence) and not isinstance(score, str):
        options["score_columns"] = tuple(map(str, named.pop("score")))  # type: ignore[call-overload]
    if named:
        options["columns"] = {**_mapping(options.get("columns")), **{k: str(v) for k, v in named.items()}}
    return table_of(scores), table_of(key), options


def refuse_arrays(keywords: Mapping[str, object]) -> None:
    """Refuse columns that are given as values where a name is meant."""
    for name in BESIDE:
        value = keywords.get(name)
        if isinstance(value, Mapping) or (_is_array(value) and not _is_name(value) and not _is_names(value)):
            raise UsageError.of("array-for-name", name=name)


def _is_names(value: object) -> bool:
    """Return whether a value is a list of texts that never repeats, or a short one, whose parts may be lists of names."""
    if not isinstance(value, list | tuple):
        return False
    return len(value) <= MOST_NAMES or (all(isinstance(v, str) for v in value) and len({*value}) == len(value))


def _is_array(value: object) -> bool:
    """Return whether a value is a row of values, and not a table, a name or one thing."""
    if isinstance(value, str | bytes | Mapping | Trials):
        return False
    if isinstance(value, list | tuple):
        return bool(value) and not any(isinstance(v, Mapping | Path) for v in value)
    return getattr(value, "ndim", None) == 1 or (hasattr(value, "to_list") and not hasattr(value, "columns"))


def _are_booleans(values: object) -> bool:
    """Return whether an array or a list holds true and false."""
    kind = str(getattr(values, "dtype", "")).lower()
    return kind.startswith("bool") or (isinstance(values, list | tuple) and all(type(v) is bool for v in values))


def _is_name(value: object) -> bool:
    """Return whether a value names columns: a text, the place of a column, or a short list of texts."""
    if isinstance(value, str) or type(value) is int:
        return True
    return (
        isinstance(value, list | tuple)
        and bool(value)
        and all(isinstance(v, str) for v in value)
        and len(value) <= MOST_NAMES
    )


def _mapping(value: object) -> Mapping[str, str]:
    if value is None or isinstance(value, Mapping):
        return value or {}
    raise UsageError.of("bad-columns", value=value)


def table_of(value: object) -> object:
    """Return a polars frame of a list of dicts, a dict of columns, a Hugging Face dataset or an Arrow table.

    Paths, trials and frames stay as they are; arrays are refused, because nothing says which are labels and which scores.

    >>> table_of([{"label": 1, "score": 0.9}, {"label": 0, "score": 0.2}]).shape
    (2, 2)
    """
    kind = type(value).__module__.partition(".")[0]
    if callable(getattr(value, "read", None)):
        raise UsageError.of("open-file", file=str(getattr(value, "name", "scores.csv")))
    try:
        if kind == "datasets":
            return _dataset(value)
        if isinstance(value, Mapping):
            _refuse_unequal(value)
            return pl.DataFrame({str(k): _plain(v) for k, v in value.items()}, strict=False)
        if isinstance(value, list) and value and all(isinstance(row, Mapping) for row in value):
            return pl.DataFrame(value, infer_schema_length=None, strict=False)
        if kind not in ("polars", "pandas") and hasattr(value, "__arrow_c_stream__"):
            return pl.from_arrow(value)
    except (pl.exceptions.PolarsError, TypeError, ValueError) as error:
        if isinstance(error, HitmissError):
            raise
        raise DataError.of("not-a-table", error=str(error).splitlines()[0]) from None
    if isinstance(value, Iterator):
        return table_of(list(value))
    if kind in ("numpy", "torch", "jax") or (_is_array(value) and not _is_paths(value)):
        raise UsageError.of("nameless-array", name=type(value).__name__, ARRAYS=ARRAYS)
    return value


def _refuse_unequal(columns: Mapping[object, object]) -> None:
    """Refuse columns of different lengths."""
    lengths = {str(name): len(values) for name, values in columns.items() if isinstance(values, Sized)}
    if len({*lengths.values()}) > 1:
        (first, n), *others = lengths.items()
        other, m = next((name, length) for name, length in others if length != n)
        raise DataError.of("unequal-columns", first=first, n=n, other=other, m=m)


def _is_paths(values: object) -> bool:
    return isinstance(values, list | tuple) and all(isinstance(v, str | Path) or hasattr(v, "columns") for v in values)


def _plain(values: Any) -> object:
    """Return the values of a column as polars takes them; tensors leave their device first."""
    if hasattr(values, "detach"):
        return values.detach().cpu().numpy()
    own = type(values).__module__.partition(".")[0] == "pandas" and not hasattr(values, "to_list")
    return np.asarray(values) if own else values


def _dataset(value: Any) -> object:
    """Return a Hugging Face dataset as a frame; one with several splits says which there are.

    The codes of a `ClassLabel` become the names that the dataset declares for them: only they say what 0 and 1 are.
    """
    if isinstance(value, Mapping):
        if len(value) != 1:
            raise UsageError.of("several-splits", value=tuple(value))
        (value,) = value.values()
    frame = value.to_polars() if hasattr(value, "to_polars") else pl.from_pandas(value.to_pandas())
    named = {
        column: list(feature.names)
        for column, feature in (value.features or {}).items()
        if hasattr(feature, "int2str") and getattr(feature, "names", None)
    }
    return frame.with_columns(
        pl.col(column).replace_strict(dict(enumerate(names)), default=None, return_dtype=pl.String)
        for column, names in named.items()
    )


def trials_of(value: object, verb: str, reading: TableKeywords) -> Trials:
    """Return trials that a function was given as a file or a table, read as `read` reads them."""
    from hitmiss.evaluation.evaluate import read

    if isinstance(behind := getattr(value, "behind", None), Trials):
        return behind  # results keep the trials that they were measured on
    try:
        return read(value, **reading)
    except HitmissError as error:
        if error.code in ("nameless-array", "nothing-to-read", "bad-source", "usage"):
            raise UsageError.of("not-trials", verb=verb, name=type(value).__name__) from None
        raise
