"""Formats of files, by their first bytes: which are read, and what to do about the others."""

from __future__ import annotations

import codecs
from pathlib import Path
from typing import Final

from hitmiss.core.finding import Place
from hitmiss.io.diagnostics import Diagnostics

ZIP: Final = b"PK\x03\x04"
GZIP: Final = b"\x1f\x8b"
PARQUET: Final = b"PAR1"
ARROW: Final = b"ARROW1"
HEAD_BYTES: Final = 16
BINARY: Final = (
    (b"\x93NUMPY", "a NumPy array (.npy)", "save ids and scores as CSV"),
    (ZIP, "a zip archive or a workbook (.zip, .npz, .xlsx)", "save ids and scores as CSV or Parquet"),
    (b"\x80\x02", "a Python pickle", "pickles are not opened, as they can run programs; save ids and scores as CSV"),
    (b"\x80\x03", "a Python pickle", "pickles are not opened, as they can run programs; save ids and scores as CSV"),
    (b"\x80\x04", "a Python pickle", "pickles are not opened, as they can run programs; save ids and scores as CSV"),
    (b"\x80\x05", "a Python pickle", "pickles are not opened, as they can run programs; save ids and scores as CSV"),
    (b"SQLite format 3", "an SQLite database", "export the table as CSV"),
    (b"\x89HDF", "an HDF5 file", "save ids and scores as CSV or Parquet"),
    (b"\x28\xb5\x2f\xfd", "a zstd archive", "unpack it"),
    (b"\xd0\xcf\x11\xe0", "an old workbook (.xls)", "save the table as CSV"),
    (b"ORC", "an ORC file", "save it as Parquet"),
    (b"FEA1", "a Feather file of version 1", "save it as Parquet"),
    (b"%PDF", "a PDF", "give the table itself, as CSV"),
    (b"BZh", "a bzip2 archive", "unpack it"),
    (b"\xfd7zXZ", "an xz archive", "unpack it"),
)
"""The first bytes of files that are not text, what the files are, and what to do."""
TABLES: Final = (".parquet", ".pq", ".arrow", ".feather")


def refuse_format(start: bytes, name: str, ledger: Diagnostics, *, is_streamed: bool = False) -> None:
    """Stop at a file whose first bytes show a format that is not read here."""
    if is_streamed and start.startswith(ARROW):
        raise ledger.stop("binary-file/arrow", [Place(name)])
    if start.startswith(b"PK") and name.endswith(".tally"):
        raise ledger.stop("binary-file/tally", [Place(name)])
    for magic, kind, cure in BINARY:
        if start.startswith(magic) and (
            b"\0" in start or not start.isascii() or magic in (b"%PDF", b"SQLite format 3")
        ):
            raise ledger.stop("binary-file", [Place(name)], kind=kind, cure=cure)
    suffix = Path(name).suffix
    if suffix.lower() in TABLES and not start.startswith((PARQUET, ARROW)) and not _is_text(start):
        raise ledger.stop("unreadable-file/suffix", [Place(name)], suffix=suffix)


def _is_text(start: bytes) -> bool:
    """Return whether the first bytes of a file are UTF-8; its last character may be cut."""
    try:
        codecs.getincrementaldecoder("utf-8")().decode(start)
    except UnicodeDecodeError:
        return False
    return True
