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
    "sound-needs-package-pip": Entry(ERROR, "sound needs the package {package!r}: pip install 'hitmiss[audio]'"),
    "pictures-need-pillow-pip": Entry(ERROR, "pictures need Pillow ({error}): pip install 'hitmiss[image]'"),
    "no-file": Entry(ERROR, "there is no file {name}"),
    "not-picture-broken": Entry(ERROR, "{name} is not a picture, or it is broken"),
    "cannot-decoded": Entry(ERROR, "{name} cannot be decoded: {error}"),
    "no-file-2": Entry(ERROR, "there is no file {path}"),
    "unusable-audio": Entry(ERROR, "{file}: {why}"),
}
