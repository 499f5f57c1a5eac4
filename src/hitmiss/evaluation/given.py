"""What callers hand over in Python: files, tables of any kind, arrays, and columns by the keywords that people write."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import polars as pl

from hitmiss.core.errors import DataError, HitmissError, UsageError
from hitmiss.core.keywords import DesignKeywords, ReadKeywords
from hitmiss.core.kinds import one_or_several
from hitmiss.core.trials import Trials

__all__ = ["EvaluateKeywords", "TableKeywords", "reading_of", "table_of", "trials_of"]

COLUMNS: Final = ("item", "label", "score", "decision", "confidence", "verdict")
"""Keywords that name a column of the table, or hold the values themselves."""
ARRAYS: Final = "hm.evaluate(label=y, score=s, metrics='eer')"


class TableKeywords(ReadKeywords, total=False):
    """Columns by their roles, as names or as arrays, and the fields of `ReadSpec`."""

    item: object
    label: object
    score: object
    decision: object
    confidence: object
    verdict: object
    run: object


class EvaluateKeywords(TableKeywords, DesignKeywords, total=False):
    """Everything that can be stated about files and asked of their trials."""


def reading_of(scores: object, keywords: Mapping[str, object]) -> tuple[object, dict[str, object]]:
    """Return what is to be read, and read options, from the keywords of a call.

    `label="truth"` names a column, `label=y` is one; `run="model"` names the column of the runs, `score=["a", "b"]` the
    scores of two systems.

    >>> reading_of("own.csv", {"label": "truth", "score": "p", "positive": "fake"})
    ('own.csv', {'positive': 'fake', 'columns': {'label': 'truth', 'score': 'p'}})
    """
    named = {name: keywords[name] for name in COLUMNS if keywords.get(name) is not None}
    options = {name: value for name, value in keywords.items() if name not in (*COLUMNS, "run")}
    if keywords.get("run") is not None:
        options["runs"] = one_or_several(keywords["run"])
    arrays = {name: value for name, value in named.items() if not _is_name(value)}
    if arrays and scores is not None:
        wrong, value = next(iter(arrays.items()))
        raise UsageError.of("bad-column", wrong=wrong, name=type(value).__name__, ARRAYS=ARRAYS)
    if scores is None and (not arrays or len(arrays) < len(named)):
        raise UsageError.of("nothing-to-read", ARRAYS=ARRAYS)
    if arrays:
        table = table_of(arrays)
        assert isinstance(table, pl.DataFrame)
        return (table if "item" in arrays else table.with_row_index("item")), options
    if isinstance(score := named.get("score"), Sequence) and not isinstance(score, str):
        options["score_columns"] = tuple(map(str, named.pop("score")))  # type: ignore[call-overload]
    if named:
        options["columns"] = {**_mapping(options.get("columns")), **{k: str(v) for k, v in named.items()}}
    return table_of(scores), options


def _is_name(value: object) -> bool:
    """Return whether a value names columns: a text, the place of a column, or a short list of texts."""
    if isinstance(value, str) or type(value) is int:
        return True
    return isinstance(value, list | tuple) and bool(value) and all(isinstance(v, str) for v in value) and len(value) < 9


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
    try:
        if kind == "datasets":
            return _dataset(value)
        if isinstance(value, Mapping):
            return pl.DataFrame({str(k): _plain(v) for k, v in value.items()}, strict=False)
        if isinstance(value, list) and value and all(isinstance(row, Mapping) for row in value):
            return pl.DataFrame(value, infer_schema_length=None, strict=False)
        if kind not in ("polars", "pandas") and hasattr(value, "__arrow_c_stream__"):
            return pl.from_arrow(value)
    except (pl.exceptions.PolarsError, TypeError, ValueError) as error:
        if isinstance(error, HitmissError):
            raise
        raise DataError.of("not-a-table", error=str(error).splitlines()[0]) from None
    if kind in ("numpy", "torch", "jax") or (isinstance(value, list | tuple) and value and not _is_paths(value)):
        raise UsageError.of("nameless-array", name=type(value).__name__, ARRAYS=ARRAYS)
    return value


def _is_paths(values: Sequence[object]) -> bool:
    return all(isinstance(v, str | Path) or not isinstance(v, int | float | bool) for v in values)


def _plain(values: Any) -> object:
    """Return the values of a column as polars takes them; tensors leave their device first."""
    return values.detach().cpu().numpy() if hasattr(values, "detach") else values


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


def trials_of(value: object, verb: str) -> Trials:
    """Return trials that a function was given as a file or a table, read as `read` reads them."""
    from hitmiss.evaluation.evaluate import read

    if isinstance(behind := getattr(value, "behind", None), Trials):
        return behind  # results keep the trials that they were measured on
    try:
        return read(value)
    except HitmissError as error:
        if error.code in ("nameless-array", "nothing-to-read", "bad-source", "usage"):
            raise UsageError.of("not-trials", verb=verb, name=type(value).__name__) from None
        error.add_note(f"{verb} read this as hm.read(…) does; with options, read it first: hm.read(…, label='NAME')")
        raise
