"""The tally of a shard: how many of its trials have which score, cell by cell. It serialises, and merges exactly.

A cell is a combination of the label's word and the values of the columns that are kept (codec, decision …). Counts are
whole numbers, so merging is exact and in any order the same; a tally knows which shards and which settings it is of, so
that a shard counted twice, or in another way than the others, is found.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from hitmiss.core import artifacts
from hitmiss.core.errors import DataError, UsageError
from hitmiss.core.question import SYSTEM
from hitmiss.core.trials import combined, text_codes
from hitmiss.io.diagnostics import Finding
from hitmiss.scale.plan import Window
from hitmiss.stats.sketch import EXACT, Keys, bins_of, first_key, keys_of, scores_of

Cell = tuple[str, ...]
Counts = NDArray[np.int64]
FORMAT: Final = 2
MOST_CELLS: Final = 200_000
"""Combinations of slices (and units) that are counted apart; each costs a kilobyte or so, whatever it holds."""
LOWEST: Final = keys_of([-np.inf])[0]
ZERO: Final = keys_of([0.0])[0]


@dataclass(frozen=True)
class ShardFact:
    """A file that was counted: its name, the hash of its bytes (empty in a second pass), its size, and what was recognised."""

    name: str
    sha256: str
    rows: int
    bytes: int
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Binned:
    """Bins (or whole keys), ascending, and how many trials each holds; None: one each."""

    bins: Keys
    counts: Counts | None = None

    @property
    def total(self) -> int:
        """How many trials."""
        return len(self.bins) if self.counts is None else int(self.counts.sum())

    @property
    def each(self) -> Counts:
        """How many trials each bin holds."""
        return np.ones(len(self.bins), dtype=np.int64) if self.counts is None else self.counts


NOTHING: Final = Binned(np.zeros(0, dtype=np.uint64))


@dataclass(frozen=True, eq=False)
class ShardTally:
    """What one pass over some shards found.

    plan        fingerprint of the plan that it was made by (`ShardPlan.fingerprint`, and the window of a second pass)
    names       the columns that cells are told apart by, `label` first
    shards      the files that were counted
    cells       bins and counts of each cell
    ids         hashes of all ids, in any order, where the plan asks for them and they are not in ascending order anyway
    findings    what the door found wrong; where there are any, the counts are of no use
    noted       what the door counted: trials dropped or given a score (`on-nan`)
    """

    plan: str
    names: tuple[str, ...]
    shards: tuple[ShardFact, ...]
    cells: Mapping[Cell, Binned]
    ids: Keys | None = None
    findings: tuple[Finding, ...] = ()
    noted: Mapping[str, int] = field(default_factory=dict)

    @property
    def n(self) -> int:
        """How many trials."""
        return sum(cell.total for cell in self.cells.values())

    @property
    def content(self) -> str:
        """SHA-256 over what was counted: cells, counts and what was noted, but neither names nor places of files."""
        about = {"names": self.names, "cells": sorted(self.cells), "noted": dict(self.noted)}
        return hashlib.sha256(
            (artifacts.digest(about) + artifacts.digest_of_arrays(self._arrays())).encode()
        ).hexdigest()

    def _arrays(self) -> dict[str, NDArray[Any]]:
        arrays: dict[str, NDArray[Any]] = {}
        for i, cell in enumerate(sorted(self.cells)):
            arrays[f"bins{i}"] = self.cells[cell].bins
            counts = self.cells[cell].counts
            if counts is not None:
                arrays[f"counts{i}"] = counts
        if self.ids is not None:
            arrays["ids"] = self.ids
        return arrays

    def to_bytes(self) -> bytes:
        """The tally as a file holds it: a zip of arrays and a JSON header with a digest over everything."""
        arrays = self._arrays()
        header = {
            "format": FORMAT,
            "plan": self.plan,
            "names": list(self.names),
            "shards": [vars(shard) | {"facts": dict(shard.facts)} for shard in self.shards],
            "cells": [list(cell) for cell in sorted(self.cells)],
            "findings": [vars(f) | {"places": [vars(p) for p in f.places]} for f in self.findings],
            "noted": dict(self.noted),
            "arrays": artifacts.digest_of_arrays(arrays),
        }
        text = json.dumps(artifacts.sealed(header)).encode()
        out = io.BytesIO()
        np.savez(out, allow_pickle=False, header=np.frombuffer(text, dtype=np.uint8), **arrays)
        return out.getvalue()

    @classmethod
    def from_bytes(cls, data: bytes, file: str = "the tally") -> ShardTally:
        """A tally from its bytes.

        Raises
        ------
        DataError
            `tally-format`: another version; `malformed-tally`: a field or an array is not of the form;
            `edited-artifact`: the content is not what was counted; `oversized-archive`, `unreadable-file`: no archive.
        """
        arrays = artifacts.load_arrays(data, "tally", file)
        try:
            plain = json.loads(arrays.pop("header").tobytes())
            version = plain["format"]
        except (KeyError, ValueError, TypeError, RecursionError):
            raise DataError(
                f"{file} is damaged, or is no tally; count its shard again", code="malformed-tally"
            ) from None
        if version != FORMAT:
            raise DataError(
                f"{file} has format {version!r}, this version reads {FORMAT}; count again", code="tally-format"
            )
        header = artifacts.check(_Header, plain, "tally")
        if not artifacts.check_seal(plain, file) or header.arrays != artifacts.digest_of_arrays(arrays):
            raise DataError(
                f"{file} does not match its own digest: it was edited or damaged; count its shard again",
                code="edited-artifact",
            )
        cells = {tuple(cell): _binned(arrays, i, file) for i, cell in enumerate(header.cells)}
        if (
            len(cells) != len(header.cells)
            or any(len(cell) != len(header.names) for cell in cells)
            or not header.shards
        ):
            raise DataError(f"{file}: its cells do not fit its columns; count its shard again", code="malformed-tally")
        ids = _whole(arrays.get("ids"), np.uint64, file)
        return cls(header.plan, header.names, header.shards, cells, ids, header.findings, header.noted)


@dataclass(frozen=True)
class _Header:
    """What the header of a tally says."""

    format: int
    plan: str
    names: tuple[str, ...]
    shards: tuple[ShardFact, ...]
    cells: tuple[tuple[str, ...], ...]
    findings: tuple[Finding, ...]
    noted: dict[str, int]
    arrays: str
    digest: str


def _whole(array: NDArray[Any] | None, kind: type[Any], file: str) -> Any:
    """An array of a tally, flat and of its type."""
    if array is not None and (array.ndim != 1 or array.dtype != kind):
        raise DataError(
            f"{file} holds {array.dtype} of shape {array.shape} where flat {np.dtype(kind)} belong; count its shard again",
            code="malformed-tally",
        )
    return array


def _binned(arrays: Mapping[str, NDArray[Any]], i: int, file: str) -> Binned:
    """Bins and counts of a cell: bins ascending, counts of at least one trial each."""
    bins = _whole(arrays.get(f"bins{i}"), np.uint64, file)
    counts = _whole(arrays.get(f"counts{i}"), np.int64, file)
    sound = bins is not None and bool((bins[1:] > bins[:-1]).all())
    if not sound or (counts is not None and (len(counts) != len(bins) or (counts < 1).any())):
        raise DataError(f"{file}: the counts of cell {i} are none; count its shard again", code="malformed-tally")
    return Binned(bins, counts)


def merge_tallies(tallies: Iterable[ShardTally]) -> ShardTally:
    """One tally of all shards. Different settings and a shard that is there twice are refused.

    Two files with the same bytes are one shard given twice: their trials would count double.
    """
    merged: ShardTally | None = None
    waiting: list[ShardTally] = []
    held = 0
    for tally in tallies:
        _refuse_mixture(merged or (waiting[0] if waiting else None), tally)
        waiting.append(tally)
        held += sum(len(cell.bins) for cell in tally.cells.values())
        # Merging sorts: it is put off until there is as much to merge as there is already.
        if held > 2 * (0 if merged is None else sum(len(cell.bins) for cell in merged.cells.values())):
            merged, waiting, held = _merge([merged, *waiting] if merged else waiting), [], 0
    if waiting:
        merged = _merge([merged, *waiting] if merged else waiting)
    if merged is None:
        raise DataError("there is no tally to merge; count at least one shard")
    _refuse_twice(merged)
    return merged


def _refuse_mixture(first: ShardTally | None, other: ShardTally) -> None:
    if first is not None and (first.plan, first.names) != (other.plan, other.names):
        raise DataError(
            f"{other.shards[0].name} was counted with other settings than {first.shards[0].name}; "
            "tallies merge only where every setting is the same, so count them again alike"
        )


def _refuse_twice(merged: ShardTally) -> None:
    seen: dict[tuple[str, Any], str] = {}
    for shard in merged.shards:
        content = shard.sha256, shard.facts.get(SYSTEM)
        if shard.sha256 and content in seen:
            raise DataError(
                f"{shard.name} has the same content as {seen[content]}: the shard was given twice; leave one out"
            )
        seen[content] = shard.name


def _merge(parts: list[ShardTally]) -> ShardTally:
    if len(parts) == 1:
        return parts[0]
    keys = sorted({cell for part in parts for cell in part.cells})
    cells = {cell: merge_binned([part.cells[cell] for part in parts if cell in part.cells]) for cell in keys}
    ids = [part.ids for part in parts if part.ids is not None]
    ids = ids if len(ids) == len(parts) else []  # hashes of some are of no use
    noted: dict[str, int] = {}
    for part in parts:
        for name, count in part.noted.items():
            noted[name] = noted.get(name, 0) + count
    shards = sorted((s for part in parts for s in part.shards), key=lambda s: (s.name, s.sha256))
    findings = tuple(f for part in parts for f in part.findings)
    joined = np.concatenate(ids) if ids else None
    return ShardTally(parts[0].plan, parts[0].names, tuple(shards), cells, joined, findings, noted)


def merge_binned(parts: list[Binned]) -> Binned:
    """The same bins counted together.

    >>> a, b = Binned(np.array([1, 4], dtype=np.uint64)), Binned(np.array([4, 9], dtype=np.uint64))
    >>> merge_binned([a, b]).bins.tolist(), merge_binned([a, b]).each.tolist()
    ([1, 4, 9], [1, 2, 1])
    """
    parts = [part for part in parts if len(part.bins)] or parts[:1]  # a combination of slices may have no trial
    if len(parts) == 1:
        return parts[0]
    if all(part.counts is None for part in parts):
        return counted(ordered(np.concatenate([part.bins for part in parts])))
    bins = np.concatenate([part.bins for part in parts])
    counts = np.concatenate([part.each for part in parts])
    order = np.argsort(bins, kind="stable")
    bins, counts = bins[order], counts[order]
    first = np.append(True, bins[1:] != bins[:-1])
    return Binned(bins[first], np.add.reduceat(counts, np.flatnonzero(first)))


def cells_of_counts(answer: pl.DataFrame, cells: Sequence[str], window: Window) -> dict[Cell, Binned]:
    """What an engine has counted, as the cells of a tally. Rows may come in any order, and rows of one group add up.

    `answer` has the columns `cells`, then `score` or, of bins, `place` (and `part` where there are cuts); and `n`, or
    none where each row is one trial.

    >>> answer = pl.DataFrame({"label": ["a", "b", "a"], "score": [1.0, -0.0, 0.5], "n": [2, 1, 3]})
    >>> {cell: binned.each.tolist() for cell, binned in cells_of_counts(answer, ["label"], Window()).items()}
    {('a',): [3, 2], ('b',): [1]}
    """
    if not answer.height:
        return {}
    if window.bits == EXACT:
        keys = keys_of(answer["score"].to_numpy())
    else:
        part = answer["part"].to_numpy() if window.cuts else None
        keys = bins_from_places(answer["place"].to_numpy(), window, part)
    counts = answer["n"].cast(pl.Int64).to_numpy() if "n" in answer.columns else None
    code, values = _cell_codes(answer, cells)
    return dict(zip(values, binned_by(code, keys, counts, len(values)), strict=True))


def binned_by(code: NDArray[Any], keys: Keys, counts: Counts | None, n: int) -> list[Binned]:
    """Keys counted apart by a code from 0 to n − 1; `counts` says how many trials each stands for (None: one)."""
    order = np.argsort(code.astype(np.uint16) if n < 2**16 else code, kind="stable")  # radix, for small ones
    ends = np.cumsum(np.bincount(code, minlength=n))
    found: list[Binned] = []
    for at in np.split(order, ends[:-1]):
        if counts is None:
            found.append(counted(ordered(keys[at])))
            continue
        at = at[np.argsort(keys[at], kind="stable")]
        starts = np.flatnonzero(np.append(True, keys[at][1:] != keys[at][:-1])[: len(at)])
        found.append(Binned(keys[at][starts], np.add.reduceat(counts[at], starts) if len(starts) else counts[at]))
    return found


def bins_from_places(place: NDArray[Any], window: Window, part: NDArray[Any] | None = None) -> Keys:
    """The lowest key of each bin, told by the highest bits of its scores as they are, and by how many cuts it has passed."""
    raw, sign = place.astype(np.uint64), np.uint64(1 << (window.bits - 1))
    bins = np.where(raw < sign, raw | sign, ~raw & np.uint64((1 << window.bits) - 1))
    lowest: Keys = np.maximum(first_key(bins, window.bits), LOWEST)  # below −inf there are only NaNs
    if part is not None:
        cuts = np.append(np.uint64(0), keys_of(sorted(window.cuts)))
        lowest = np.maximum(lowest, cuts[part.astype(np.int64)])
    return lowest


def _cell_codes(answer: pl.DataFrame, cells: Sequence[str]) -> tuple[NDArray[np.int64], list[Cell]]:
    """The number of each row's cell, and the cells."""
    places = [(codes, texts) for codes, texts in (text_codes(answer[name].cast(pl.String)) for name in cells)]
    code, size = combined((codes, len(texts)) for codes, texts in places)
    if size <= 1 << 20:
        row = np.full(size, -1, dtype=np.int64)
        row[code] = np.arange(len(code))  # of the rows of a cell the last one
        held = np.flatnonzero(row >= 0)
        number = np.zeros(size, dtype=np.int64)
        number[held] = np.arange(len(held))
        row, code = row[held], number[code]
    else:
        _, row, code = np.unique(code, return_index=True, return_inverse=True)
    if len(row) > MOST_CELLS:
        raise UsageError(
            f"{', '.join(cells[1:])} have more than {MOST_CELLS:,} combinations of values, too many to be counted apart; "
            "leave one of them out, or --stream",
            code="too-many-values",
        )
    columns = [[texts[place] for place in codes[row].tolist()] for codes, texts in places]
    return code, list(zip(*columns, strict=True))


def ranges_of(first: Keys, last: Keys) -> tuple[tuple[float, float], ...]:
    """Ranges of keys as ranges of scores.

    >>> ranges_of(keys_of([-1.0]), keys_of([0.0]) - np.uint64(1))  # nothing between the lowest number above 0 and 0
    ((-1.0, -5e-324),)
    """
    lowest, highest = keys_of([-np.inf, np.inf])
    last = np.where(last == ZERO - np.uint64(1), last - np.uint64(1), last)  # the key that −0.0 would have
    ends = (scores_of(np.clip(keys, lowest, highest)) + 0.0 for keys in (first, last))
    return tuple(zip(*(end.tolist() for end in ends), strict=True))


def truncated(keys: Keys, bits: int, cuts: tuple[float, ...]) -> Keys:
    """The lowest key of each key's bin; a cut begins a bin of its own.

    >>> truncated(keys_of([1.0, 1.3, 1.4]), 14, (1.35,)) == keys_of([1.0, 1.25, 1.35])
    array([ True,  True,  True])
    """
    if bits == EXACT:
        return keys
    lowest: Keys = np.maximum(first_key(bins_of(keys, bits), bits), LOWEST)
    for cut in keys_of(sorted(cuts)) if cuts else ():
        lowest[(keys >= cut) & (lowest < cut)] = cut
    return lowest


def counted(keys: Keys) -> Binned:
    """Ascending keys with repeats, counted."""
    if len(keys) < 2:
        return Binned(keys)
    first = np.append(True, keys[1:] != keys[:-1])
    if first.all():
        return Binned(keys)
    starts = np.flatnonzero(first)
    return Binned(keys[starts], np.diff(np.append(starts, len(keys))).astype(np.int64))


def ordered(keys: Keys) -> Keys:
    """Keys in ascending order; polars sorts long arrays in half the time."""
    if len(keys) < 2**16:
        return np.sort(keys)
    return pl.Series(keys).sort().to_numpy()
