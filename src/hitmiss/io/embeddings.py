"""Read embeddings from files: one or several layers of item × dimension, with columns about the items.

| file           | layers                                                          | about the items                 |
|----------------|-----------------------------------------------------------------|---------------------------------|
| `.npz`         | each 2-D array by its name; a 3-D array is layer × item × dim   | each 1-D array by its name      |
| `.safetensors` | the same                                                        | the same (numbers only)         |
| `.parquet`     | each list column by its name, or all float columns as one layer | every other column by its name  |

Labels and groups may also come from a key: any table with a header, or a known layout without one (an ASVspoof
protocol), joined on the item ids. Nothing is unpickled. Columns about the items are text, or None where missing; no
other value is treated as missing.
"""

from __future__ import annotations

import hashlib
import re
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np
import polars as pl

from hitmiss.core import artifacts
from hitmiss.core.errors import DataError, UnknownName, UsageError
from hitmiss.core.finding import Finding
from hitmiss.core.packages import need_package
from hitmiss.core.read_spec import ReadSpec
from hitmiss.core.sorting import Array
from hitmiss.io.join import stems
from hitmiss.io.text_rows import read_rows

ITEM_NAMES: Final = ("item", "items", "id", "ids", "filename", "flac_file_name", "utt", "utt_id", "trial_anon")
"""Names that the column of item ids may have, in order of preference; case does not matter."""
OF_KEYS: Final = ("columns", "key_columns", "where", "dedupe", "match", "layout", "separator", "encoding")
"""The options that apply to the key of embeddings."""


@dataclass(frozen=True, eq=False)
class Embeddings:
    """Layers by name, columns about the items by name, and the digest of the file."""

    layers: Mapping[str, Array]
    columns: Mapping[str, Array]
    digest: str = ""

    def column(self, name: str) -> Array:
        """Return one column about the items, ignoring case. An unknown name is an error that lists the known ones."""
        found = {known.lower(): values for known, values in self.columns.items()}
        if name.lower() not in found:
            raise UnknownName("column of the embeddings or the key", name, self.columns)
        return found[name.lower()]

    def joined(self, key: pl.DataFrame, ids: str | None = None, *, by_stem: bool = False) -> Embeddings:
        """Return the same embeddings with the columns of a key added, matched on the item ids.

        `by_stem`: match ids without folder and suffix, as with `--match stem`.
        """
        items = pl.Series("item", self.column(ids or item_name(self.columns, "the embeddings")), dtype=pl.String)
        name = item_name(key.columns, "the key")
        if by_stem:
            items, key = stems(items), key.with_columns(stems(key[name]))
        if key[name].is_duplicated().any():
            twice = key.filter(pl.col(name).is_duplicated())[name][0]
            raise DataError.of("duplicate-id/key", twice=twice)
        missing = items.filter(~items.is_in(key[name].to_list()))
        if len(missing):
            raise DataError.of("not-in-key", n_missing=len(missing), n_items=len(items), missing=missing[0])
        found = items.to_frame().join(key.rename({name: "item"}), on="item", how="left", maintain_order="left")
        return replace(self, columns={**self.columns, **{c: found[c].to_numpy() for c in found.columns}})

    def where(self, wanted: Mapping[str, Sequence[str]]) -> Embeddings:
        """Return the items whose columns each have one of the given values."""
        kept = np.ones(len(next(iter(self.layers.values()))), dtype=np.bool_)
        for name, values in wanted.items():
            own = self.column(name)
            for value in values:
                if value not in own:
                    raise UnknownName(f"value of {name}", value, sorted({str(v) for v in own})[:20])
            kept &= np.isin(own.astype(str), list(values))
        if not kept.any():
            raise DataError.of("no-rows/item")
        layers = {name: layer[kept] for name, layer in self.layers.items()}
        return replace(self, layers=layers, columns={name: own[kept] for name, own in self.columns.items()})


def load_embeddings(path: str | Path) -> Embeddings:
    """Read embeddings from an `.npz`, `.safetensors` or `.parquet` file; see the table in this module's docstring."""
    path = Path(path)
    readers = {".npz": _read_npz, ".safetensors": _read_safetensors, ".parquet": _read_parquet}
    if path.suffix.lower() not in readers:
        raise UsageError.of("not-embeddings/format", path_name=path.name, readers=tuple(readers))
    artifacts.note_input(path)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()[: artifacts.SHORT]
    layers, columns = readers[path.suffix.lower()](path)
    _check_lengths(layers, columns, path.name)
    return Embeddings(_in_order(layers), {name: _as_text(values) for name, values in columns.items()}, digest)


def read_key(path: str | Path, options: ReadSpec | None = None) -> pl.DataFrame:
    """Read a table about items, all as text, like every key: with a header, or in a known layout without one.

    The label of such a layout is available as `label` and as `key`, the name that ASVspoof uses.
    """
    frame = read_rows(path, options, is_key=True).frame
    is_by_layout = "label" in frame.columns and "key" not in frame.columns
    return frame.with_columns(key=pl.col("label")) if is_by_layout else frame


def _read_npz(path: Path) -> tuple[dict[str, Array], dict[str, Array]]:
    try:
        return _sorted_out(artifacts.load_arrays(path, ".npz file", path.name), path.name)
    except DataError as error:
        if "pickle" in str(error) and zipfile.is_zipfile(path):
            raise DataError.coded(Finding("holds-objects", values={"file": path.name}), error.code) from None
        raise


def _read_safetensors(path: Path) -> tuple[dict[str, Array], dict[str, Array]]:
    need_package("safetensors", "reading .safetensors", "safetensors")
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    try:
        return _sorted_out(load_file(path), path.name)
    except (SafetensorError, TypeError, KeyError, AttributeError) as error:
        hint = "numpy has no bfloat16: save such embeddings as float32"
        raise DataError.of("not-embeddings/damaged", path_name=path.name, error=error, hint=hint) from None


def _read_parquet(path: Path) -> tuple[dict[str, Array], dict[str, Array]]:
    try:
        frame = pl.read_parquet(path)
    except pl.exceptions.PolarsError as error:
        raise DataError.of("not-a-file", file=path.name, what="Parquet", error=str(error).splitlines()[0]) from None
    lists = [name for name, kind in frame.schema.items() if isinstance(kind, pl.List | pl.Array)]
    floats = [name for name, kind in frame.schema.items() if kind.is_float()]
    layers = {name: _stacked(frame[name], path.name) for name in lists}
    if not lists and floats:
        layers = {"embedding": frame.select(floats).to_numpy()}
    others = [name for name in frame.columns if name not in (*lists, *floats)]
    return layers, {name: frame[name].cast(pl.String).to_numpy() for name in others}


def _stacked(column: pl.Series, file: str) -> Array:
    lengths = column.cast(pl.List(pl.Float64)).list.len().unique()
    if len(lengths) != 1 or column.null_count():
        raise DataError.of("not-embeddings/lengths", file=file, column_name=column.name, lengths=lengths.to_list())
    inner = pl.Float32 if getattr(column.dtype, "inner", None) == pl.Float32 else pl.Float64
    return column.cast(pl.Array(inner, int(lengths[0]))).to_numpy()


def _sorted_out(arrays: Mapping[str, Array], file: str) -> tuple[dict[str, Array], dict[str, Array]]:
    """Separate named arrays into layers and columns by their number of dimensions."""
    layers: dict[str, Array] = {}
    columns: dict[str, Array] = {}
    several = sum(a.ndim == 3 for a in arrays.values()) > 1
    for name, array in arrays.items():
        if array.ndim == 1:
            columns[name] = array
        elif array.ndim == 2 and array.dtype.kind in "fiu":
            layers[name] = array
        elif array.ndim == 3 and array.dtype.kind in "fiu":
            layers |= {f"{name}.{k}" if several else str(k): layer for k, layer in enumerate(array)}
        else:
            raise DataError.of("not-embeddings/array", file=file, name=name, shape=str(array.shape), dtype=array.dtype)
    return layers, columns


def _as_text(values: Array) -> Array:
    return np.array([None if v is None or v != v else str(v) for v in values.tolist()], dtype=object)


def _check_lengths(layers: Mapping[str, Array], columns: Mapping[str, Array], file: str) -> None:
    if not layers:
        raise DataError.of("not-embeddings", file=file, columns=", ".join(columns) or "nothing")
    sizes = {name: len(values) for name, values in {**columns, **layers}.items()}
    if len(set(sizes.values())) > 1:
        raise DataError.of("not-embeddings/sizes", file=file, sizes=sizes)


def _in_order(layers: Mapping[str, Array]) -> dict[str, Array]:
    """Sort layers by number if all names end in one (layer_2 before layer_10), else keep the order of the file."""
    numbers = {name: re.search(r"(\d+)$", name) for name in layers}
    if not all(numbers.values()):
        return dict(layers)
    order = sorted(layers, key=lambda n: (n[: -len(m[1])] if (m := numbers[n]) else n, int(m[1]) if m else 0))
    return {name: layers[name] for name in order}


def item_name(names: Iterable[object], where: str) -> str:
    """Return the column of ids, by its usual names."""
    known = {str(name).lower(): str(name) for name in names}
    found = [known[name] for name in ITEM_NAMES if name in known]
    if not found:
        raise DataError.of(
            "missing-column/ids", where_2=where, ITEM_NAMES=tuple(ITEM_NAMES), known=", ".join(known) or "none"
        )
    return found[0]
