"""Bytes to UTF-8 text with `\n` line ends, or a finding that says where decoding fails."""

from __future__ import annotations

import codecs
import gzip
import io
import zlib
from typing import Final

from hitmiss.core import artifacts, progress
from hitmiss.core.errors import UsageError
from hitmiss.core.finding import Place, Remark
from hitmiss.io.diagnostics import Diagnostics, Stop

BOMS: Final = (  # UTF-32 comes before UTF-16: its little-endian mark begins with that of UTF-16
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
NUL: Final = "unreadable-encoding/nul"
BLANK: Final = b" \t\r\n\0"


def refuse_empty(data: bytes, name: str, ledger: Diagnostics) -> None:
    if not data[:4096].strip(BLANK) and not data.strip(BLANK):
        raise ledger.stop("empty-file", [Place(name)])


def unpack_gzip(raw: bytes, name: str, ledger: Diagnostics) -> bytes:
    """Decompress gzip; stop at a file that expands beyond reason before it fills the memory."""
    out = io.BytesIO()
    limit = artifacts.unfolded(len(raw))
    try:
        packed_at = io.BytesIO(raw)
        with gzip.GzipFile(fileobj=packed_at) as packed:
            while chunk := packed.read(2**22):
                out.write(chunk)
                progress.report(f"unpacking {name}, MB", packed_at.tell() / 1e6, len(raw) / 1e6)
                if out.tell() > limit:
                    raise ledger.stop("oversized-archive/packed", [Place(name)], limit=limit)
    except (OSError, EOFError, zlib.error) as error:
        raise damaged_gzip(name, error, ledger) from None
    return out.getvalue()


def to_utf8(data: bytes, name: str, encoding: str | None, ledger: Diagnostics) -> tuple[bytes, str]:
    """Return UTF-8 bytes without a byte-order mark, and the original encoding of the file."""
    if encoding is not None:
        return _decode(data, encoding, name, ledger), encoding
    for mark, used in BOMS:
        if data.startswith(mark):
            return _decode(data[len(mark) :], used, name, ledger), f"{used} with BOM"
    if b"\0" in data:
        return _decode_with_nul(data, name, ledger)
    if data.isascii():
        return data, "utf-8"
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        return _decode_latin(data, error.start, name, ledger)
    return data, "utf-8"


def _decode_with_nul(data: bytes, name: str, ledger: Diagnostics) -> tuple[bytes, str]:
    """Decode text with NUL bytes: UTF-16 without a mark if every second byte at the start is NUL, else damaged."""
    head = data[:4096]
    even, odd = head[::2].count(0), head[1::2].count(0)
    if len(data) % 2 == 0 and min(even, odd) == 0 and max(even, odd) * 2.5 >= len(head) / 2:
        used = "utf-16-le" if odd else "utf-16-be"
        ledger.notes.append(Remark.of("encoding-guessed", file=name, encoding=used))
        return _decode(data, used, name, ledger), used
    raise _unreadable(NUL, data, data.index(b"\0"), name, ledger)


def _decode_latin(data: bytes, start: int, name: str, ledger: Diagnostics) -> tuple[bytes, str]:
    # In latin-1 these bytes are invisible control characters: the file has another encoding, and guessing would misread
    # ids.
    if any(bytes((code,)) in data for code in range(0x80, 0xA0)):
        raise _unreadable("unreadable-encoding/neither", data, start, name, ledger)
    ledger.notes.append(Remark.of("encoding-guessed/latin", file=name))
    return data.decode("latin-1").encode(), "latin-1"


def _decode(data: bytes, encoding: str, name: str, ledger: Diagnostics) -> bytes:
    try:
        if encoding == "utf-8":
            data.decode(encoding)
            text = data
        else:
            text = data.decode(encoding).removeprefix("\ufeff").encode()
    except LookupError:
        raise UsageError.of("unknown-encoding", encoding=encoding) from None
    except UnicodeDecodeError as error:
        raise _unreadable("unreadable-encoding/other", data, error.start, name, ledger, encoding=encoding) from None
    except UnicodeEncodeError:
        raise _unreadable("unreadable-encoding/half", data, 0, name, ledger, encoding=encoding) from None
    if b"\0" in text:
        raise _unreadable(NUL, text, text.index(b"\0"), name, ledger)
    return text


def _unreadable(code: str, data: bytes, at: int, name: str, ledger: Diagnostics, **values: str) -> Stop:
    row = data.count(b"\n", 0, at) + 1
    value = f"byte 0x{data[at]:02x}" if at < len(data) else None
    return ledger.stop(code, [Place(name, row, value)], **values)


def one_line_end(text: bytes, name: str, ledger: Diagnostics) -> bytes:
    """Convert `\\r\\n` and a lone `\\r` to `\\n`; keep files with quotes, as quoted fields may hold either."""
    if b"\r" not in text or b'"' in text:
        return text
    text = text.replace(b"\r\n", b"\n")
    if b"\r" not in text:
        return text
    if b"\n" not in text:
        return text.replace(b"\r", b"\n")
    row = text.count(b"\n", 0, text.index(b"\r")) + 1
    raise ledger.stop("stray-line-end", [Place(name, row)])


def damaged_gzip(name: str, error: Exception, ledger: Diagnostics) -> Exception:
    return ledger.stop("unreadable-file/broken", [Place(name)], what="gzip archive", reason=str(error))


def check_utf8(data: bytes, name: str, lines_before: int, ledger: Diagnostics) -> bytes:
    at = data.find(b"\0")
    if at < 0 and not data.isascii():
        try:
            data.decode("utf-8")
        except UnicodeDecodeError as error:
            at = error.start
    if at >= 0:
        row = lines_before + data.count(b"\n", 0, at) + 1
        code = NUL if data[at] == 0 else "unreadable-encoding/streamed"
        raise ledger.stop(code, [Place(name, row, f"byte 0x{data[at]:02x}")])
    return data
