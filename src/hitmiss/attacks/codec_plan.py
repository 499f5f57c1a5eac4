"""Codec plans: which codecs at which qualities a corpus is sent through, from a table or from a list.

A plan's table has a header and, separated by tabs, the columns `codec` (the label in tables, C01), `name` (the codec,
opus_wb), `sample_rate` and the bit rates `q1` … in kbit/s; other columns are ignored. Each clip also stays uncoded
(`NONE`), so one uncoded corpus gives domains that are paired clip by clip (`Manifest.crossed` makes the rows).
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from hitmiss.attacks.codecs import Codec, all_codecs, code, find_codec
from hitmiss.core.errors import DataError, Fault, UnknownName, UsageError
from hitmiss.media.audio import Clip

NONE: Final = "NONE"
MOST_QUALITIES: Final = 9


@dataclass(frozen=True)
class Condition:
    """One cell of a plan: a codec at a quality, or no codec. Called with a clip, it returns the coded clip."""

    codec: Codec | None = None
    quality: int = 0

    @property
    def columns(self) -> dict[str, str]:
        """The values of the slices `codec` and `codec_q`."""
        if self.codec is None:
            return {"codec": NONE, "codec_q": NONE}
        return {"codec": self.codec.label, "codec_q": str(self.quality)}

    def __str__(self) -> str:
        return f"{self.codec.label}-q{self.quality}" if self.codec else NONE

    def __call__(self, clip: Clip, sample_rate: int = 16000) -> Clip:
        if self.codec is None:
            return clip
        return code(clip, self.codec, self.quality, sample_rate=sample_rate).clip


UNCODED: Final = Condition()


def parse_conditions(text: str) -> tuple[Condition, ...]:
    """Return conditions from a text: `opus`, `mp3:1`, `C09:1+3`, separated by commas; by default all qualities.

    >>> [str(c) for c in parse_conditions("mp3:1+5,gsm")]
    ['C05-q1', 'C05-q5', 'X02-q1']
    """
    found: list[Condition] = []
    for word in filter(None, (part.strip() for part in text.split(","))):
        name, colon, wanted = word.partition(":")
        codec = find_codec(name)
        found += _conditions(codec, wanted.split("+") if colon else codec.qualities)
    if not found:
        raise UsageError.of("no-codec", text=text)
    return tuple(dict.fromkeys(found))


def read_codec_plan(path: str | Path, qualities: Sequence[int] = ()) -> tuple[Condition, ...]:
    """Read the conditions of a plan's table, in its order; `qualities` takes only these of each codec.

    A codec that this machine lacks is still in the plan: see `usable`.
    """
    path = Path(path)
    if not path.is_file():
        raise UsageError.of("missing-file", what="codec plan", file=path.name)
    with path.open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    if not rows or not {"codec", "name"} <= set(rows[0]):
        raise DataError.of("bad-codec-plan", path_name=path.name)
    codecs = [_codec_of(row, number, path.name) for number, row in enumerate(rows, 2)]
    twice = [c.label for c in codecs if [d.label for d in codecs].count(c.label) > 1]
    if twice:
        raise DataError.of("codec-twice", path_name=path.name, twice=twice[0])
    chosen = [
        c
        for codec in codecs
        for c in _conditions(codec, [q for q in qualities or codec.qualities if q in codec.qualities])
    ]
    return tuple(chosen)  # fmt: skip


def usable(conditions: Iterable[Condition]) -> tuple[tuple[Condition, ...], dict[str, str]]:
    """Return the conditions that this machine can make, and what is lacking for the other codecs."""
    given = list(conditions)
    codecs = {c.codec.name: c.codec for c in given if c.codec is not None}
    missing = {name: why for name, codec in codecs.items() if (why := codec.engine.lacks()) is not None}
    return tuple(c for c in given if c.codec is None or c.codec.name not in missing), missing


def _conditions(codec: Codec, qualities: Iterable[int | str]) -> list[Condition]:
    chosen = [_whole(q, codec) for q in qualities]
    for quality in chosen:
        codec.rate_of(quality)
    return [Condition(codec, quality) for quality in chosen]


def _whole(text: int | str, codec: Codec) -> int:
    try:
        return int(text)
    except ValueError:
        raise UsageError.of("bad-quality/range", name=codec.name, n=len(codec.kbps), found=text) from None


def _codec_of(row: Mapping[str, str | None], number: int, file: str) -> Codec:
    name = row["name"] or ""
    known = all_codecs()
    if name not in known:
        raise UnknownName(f"codec in {file}, row {number},", name, known)
    rates = [cell for q in range(1, MOST_QUALITIES + 1) if (cell := (row.get(f"q{q}") or "").strip())]
    try:
        kbps = tuple(float(cell) for cell in rates) or known[name].kbps
        sample_rate = int(row.get("sample_rate") or known[name].sample_rate)
    except ValueError as error:
        fault = Fault("bad-plan", f"a rate is not a number: {error}", file=file, row=number)
        raise DataError.of("bad-codec-plan/rate", file=file, row=number, error=error).at(fault) from None
    return replace(known[name], label=row["codec"] or name, kbps=kbps, sample_rate=sample_rate)
