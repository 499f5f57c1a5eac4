"""What `media` finds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from hitmiss.core.finding import ERROR, Entry

ENTRIES: Final[Mapping[str, Entry]] = {
    "bad-picture": Entry(
        ERROR, "{name} holds values from {numbers:g} to {numbers_2:g}; 0 to 65535, or 0 to 1, are understood"
    ),
    "picture-crop": Entry(ERROR, "a crop of {crop} does not fit a side of {resize}"),
    "picture-size": Entry(ERROR, "crop and resize are whole numbers of pixels; found {text!r}"),
    "wfdb-header": Entry(ERROR, "{header_name}: there is no such header"),
    "wfdb-header/first": Entry(ERROR, "{header_name}: its first line names no record and number of signals"),
    "wfdb-segments": Entry(ERROR, "{header_name}: records of several segments are not read"),
    "wfdb-header/signals": Entry(ERROR, "{header_name}: {n_signals} signals announced, {n_channels} described"),
    "wfdb-header/line": Entry(ERROR, "{name}: a line of a signal cannot be read: {line!r}"),
    "wfdb-format": Entry(ERROR, "{name}: signals of format {form} are not read; {BITS} are"),
    "wfdb-format/several": Entry(ERROR, "{name}: several samples per frame, or skewed signals, are not read"),
    "wfdb-units": Entry(ERROR, "{name}: a signal is in {units}; volts are needed"),
    "wfdb-checksum": Entry(
        ERROR, "{file}: the checksum of {channel_name} is not the header's: cut off, damaged or another file"
    ),
    "wfdb-file": Entry(ERROR, "{header_name}: the signal file {file!r} is not beside it"),
    "wfdb-file/no": Entry(ERROR, "{header_name}: there is no signal file {file}"),
    "wfdb-format/mixes": Entry(ERROR, "{header_name}: {file} mixes formats, which is not read"),
    "wfdb-short": Entry(ERROR, "{file} holds {n_numbers:,} samples per signal; the header says {n:,}"),
    "not-a-picture": Entry(ERROR, "{name} is not a picture, or it is broken"),
    "unusable-audio": Entry(ERROR, "{file}: {why}"),
}
