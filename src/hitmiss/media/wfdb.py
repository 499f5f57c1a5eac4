"""WFDB records (PhysioNet): a header `.hea` and the signal files that it names, read without a package.

The formats with 8 bits (80), 12 bits (212), 16 bits (16, 61, 160), 24 and 32 bits are read, with one segment and one
sample per frame, as in collections of ECGs. Signals are returned in mV. The checksum of every signal is compared if the
header has one, so that a file that was cut off or exchanged is refused.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hitmiss.core.errors import DataError, UsageError, message_of

Ints = NDArray[np.int64]
LIST: Final = "RECORDS"
"""The file in a folder that lists its records."""
MILLIVOLTS: Final = {"mv": 1.0, "uv": 1e-3, "\N{MICRO SIGN}v": 1e-3, "v": 1e3, "nv": 1e-6}
PLAIN: Final = {"80": "u1", "16": "<i2", "61": ">i2", "160": "<u2", "32": "<i4"}
"""Formats whose samples are plain numbers of one type."""
OFFSETS: Final = {"80": 128, "160": 32768}
BITS: Final = {"80": 8, "212": 12, "16": 16, "61": 16, "160": 16, "24": 24, "32": 32}
GAIN: Final = re.compile(r"^([-+.\deE]+)(?:\(([-+]?\d+)\))?(?:/(\S+))?$")
FORMAT: Final = re.compile(r"^(\d+)(?:x(\d+))?(?::(\d+))?(?:\+(\d+))?$")
DEFAULT_GAIN: Final = 200.0
DEFAULT_RATE: Final = 250.0


@dataclass(frozen=True, eq=False)
class Record:
    """One record: sample × lead in mV, NaN where the file marks a sample as missing."""

    name: str
    signal: NDArray[np.float64]
    fs: float
    leads: tuple[str, ...]
    comments: Mapping[str, str]
    """The comments of the header, for example `#Sex: Male` as sex."""
    files: tuple[Path, ...]


@dataclass(frozen=True)
class _Channel:
    file: str
    form: str
    skip: int
    gain: float
    baseline: int
    units: str
    checksum: int | None
    name: str


def is_wfdb(path: str | Path) -> bool:
    """Return whether a path is a header, a list of records or a folder of them."""
    path = Path(path)
    return path.suffix == ".hea" or path.name == LIST or path.is_dir()


def read_records(path: str | Path) -> tuple[list[Record], dict[str, str]]:
    """Read the records of a header, a list or a folder; return also those that cannot be read, with the reason.

    Raises
    ------
    UsageError
            If there is no such file or folder.
    """
    path = Path(path)
    if not path.exists():
        raise UsageError.of("missing-file", what="file", file=path)
    found: list[Record] = []
    failures: dict[str, str] = {}
    root = path if path.is_dir() else path.parent
    for header in _headers(path):
        name = header.relative_to(root).with_suffix("").as_posix()
        try:
            found.append(read_record(header, name))
        except (DataError, OSError, ValueError) as error:
            failures[name] = message_of(error)
    return found, failures


def _headers(path: Path) -> list[Path]:
    if path.suffix == ".hea":
        return [path]
    listed = path / LIST if path.is_dir() else path
    if listed.is_file():
        names = [line.strip() for line in listed.read_text(encoding="utf-8").splitlines() if line.strip()]
        return [listed.parent / f"{name}.hea" for name in names if not name.endswith("/")]
    return sorted(path.rglob("*.hea"))


def read_record(header: str | Path, name: str | None = None) -> Record:
    """Read one record.

    Raises
    ------
    DataError
            If the header or a signal file is invalid or inconsistent.
    """
    header = Path(header)
    if not header.is_file():
        raise DataError.of("wfdb-header", header_name=header.name)
    lines = header.read_text(encoding="utf-8", errors="replace").splitlines()
    comments = dict(_comment(line) for line in lines if line.startswith("#") and ":" in line)
    said = [line for line in lines if line.strip() and not line.startswith("#")]
    words = said[0].split() if said else []
    if len(words) < 2 or not words[1].isdigit():
        raise DataError.of("wfdb-header/first", header_name=header.name)
    if "/" in words[0]:
        raise DataError.of("wfdb-segments", header_name=header.name)
    n_signals = int(words[1])
    rate = float(words[2].partition("/")[0]) if len(words) > 2 else DEFAULT_RATE
    length = int(words[3]) if len(words) > 3 else 0
    channels = [_channel(line, header.name) for line in said[1 : 1 + n_signals]]
    if len(channels) < n_signals or not channels:
        raise DataError.of(
            "wfdb-header/signals", header_name=header.name, n_signals=n_signals, n_channels=len(channels)
        )
    values, files = _read(header, channels, length)
    signal = np.empty(values.shape)
    for at, channel in enumerate(channels):
        own = values[:, at]
        if channel.checksum is not None and (int(own.sum()) - channel.checksum) % 65536:
            raise DataError.of("wfdb-checksum", file=channel.file, channel_name=channel.name)
        missing = -(1 << (BITS[channel.form] - 1))
        volts = (own - channel.baseline) / channel.gain * MILLIVOLTS[channel.units.lower()]
        signal[:, at] = np.where(own == missing, np.nan, volts)
    leads = tuple(channel.name for channel in channels)
    return Record(name or header.stem, signal, rate, leads, comments, (header, *files))


def _comment(line: str) -> tuple[str, str]:
    key, _, value = line.lstrip("# ").partition(":")
    return key.strip().lower(), value.strip()


def _channel(line: str, name: str) -> _Channel:
    words = line.split(maxsplit=8)
    form = FORMAT.match(words[1]) if len(words) > 1 else None
    gain = GAIN.match(words[2]) if len(words) > 2 else None
    if form is None or (len(words) > 2 and gain is None):
        raise DataError.of("wfdb-header/line", name=name, line=line.strip()[:80])
    if form[1] not in BITS:
        raise DataError.of("wfdb-format", name=name, form=form[1], BITS=tuple(BITS))
    if (form[2] or "1") != "1" or (form[3] or "0") != "0":
        raise DataError.of("wfdb-format/several", name=name)
    zero = int(words[4]) if len(words) > 4 else 0
    units = (gain[3] if gain else None) or "mV"
    if units.lower() not in MILLIVOLTS:
        raise DataError.of("wfdb-units", name=name, units=units)
    scale = float(gain[1]) if gain else 0.0
    return _Channel(
        words[0], form[1], int(form[4] or 0), scale or DEFAULT_GAIN, int(gain[2]) if gain and gain[2] else zero, units,
        int(words[6]) if len(words) > 6 else None, words[8].strip() if len(words) > 8 else f"signal {words[0]}",
    )  # fmt: skip


def _read(header: Path, channels: list[_Channel], length: int) -> tuple[Ints, list[Path]]:
    """Read integers, sample × signal; signals of one file are interleaved."""
    columns: list[Ints] = []
    files: list[Path] = []
    for file in dict.fromkeys(channel.file for channel in channels):
        own = [channel for channel in channels if channel.file == file]
        if Path(file).name != file:
            raise DataError.of("wfdb-file", header_name=header.name, file=file)
        path = header.parent / file
        if not path.is_file():
            raise DataError.of("wfdb-file/no", header_name=header.name, file=file)
        if len({channel.form for channel in own}) > 1:
            raise DataError.of("wfdb-format/mixes", header_name=header.name, file=file)
        numbers = samples(path.read_bytes()[own[0].skip :], own[0].form)
        n = length or len(numbers) // len(own)
        if len(numbers) < n * len(own):
            raise DataError.of("wfdb-short", file=file, n_numbers=len(numbers) // len(own), n=n)
        columns += list(numbers[: n * len(own)].reshape(n, len(own)).T)
        files.append(path)
    return np.stack(columns, axis=1), files


def samples(data: bytes, form: str) -> Ints:
    """Decode the integers of a signal file.

    >>> samples(bytes([0x34, 0xF1, 0xFF, 0xFF, 0x00, 0x01]), "212").tolist(), samples(b"\\x02\\x01", "16").tolist()
    ([308, -1, 255, 1], [258])
    """
    if form in PLAIN:
        kind = np.dtype(PLAIN[form])
        whole = len(data) // kind.itemsize * kind.itemsize
        return np.frombuffer(data[:whole], kind).astype(np.int64) - OFFSETS.get(form, 0)
    n = len(data) // 3 if form == "24" else len(data) * 2 // 3  # with 12 bits, the last may be half of a pair
    raw = np.frombuffer(data + bytes(-len(data) % 3), np.uint8).astype(np.int64).reshape(-1, 3)
    if form == "24":
        found = raw[:, 0] | raw[:, 1] << 8 | raw[:, 2] << 16
    else:  # 212: two samples of 12 bits in three bytes
        found = np.stack([raw[:, 0] | (raw[:, 1] & 15) << 8, raw[:, 2] | (raw[:, 1] >> 4) << 8], axis=1).reshape(-1)
    half = 1 << (BITS[form] - 1)
    return np.asarray((found[:n] ^ half) - half)
