"""Artifacts: the files that hitmiss writes, and the checks when it reads them back."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import secrets
import stat
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from hitmiss.core.convert import InvalidField, declare
from hitmiss.core.errors import DataError, EnvironmentFault, UsageError
from hitmiss.core.finding import Finding, Value

if TYPE_CHECKING:
    from hitmiss.core.sorting import Array


DIGEST: Final = "digest"
SHORT: Final = 16
"""Number of hex digits of a digest in a signature: 64 bits."""
OLDER: Final = (12, 6)
"""Number of such digits in signatures of older versions: for files, and for the answers of one run in a file."""
MOST_JSON: Final = 2**30
"""The largest JSON artifact that is read, in bytes; the results of the largest report have some ten million."""
MOST_BYTES: Final = 8 * 2**30
BOMB_BYTES: Final = 64 * 2**20
BOMB_RATIO: Final = 200
"""Score files compress 3 to 20 times. A file beyond 64 MiB that unpacks to 200 times its size is not a score file."""
FULL: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
BINARY: Final[int] = getattr(os, "O_BINARY", 0)
"""Without this flag Windows would write every line end as two bytes."""
NO_LINK: Final[int] = getattr(os, "O_NOFOLLOW", 0)
OPEN_FD: Final = re.compile(r"/(?:dev|proc/self)/fd/([0-9]+)")
STREAMS: Final = {"/dev/stdout": 1, "/dev/stderr": 2}
T = TypeVar("T")
Identity = tuple[int, int]
_inputs: ContextVar[dict[Identity, str] | None] = ContextVar("inputs", default=None)
_outputs: ContextVar[dict[Identity, str] | None] = ContextVar("outputs", default=None)
_written: ContextVar[Callable[[Path], None] | None] = ContextVar("written", default=None)


def canonical(data: object) -> bytes:
    """Return the canonical text of JSON data: names in order, ASCII."""
    return json.dumps(data, sort_keys=True, allow_nan=False).encode()


def digest(data: Mapping[str, object], name: str = DIGEST) -> str:
    """Return the SHA-256 over all fields of JSON data except the field that holds the digest.

    >>> digest({"a": 1, "digest": "x"}) == digest({"a": 1})
    True
    """
    return hashlib.sha256(canonical({k: v for k, v in data.items() if k != name})).hexdigest()


def file_digest(path: str | Path) -> str:
    """Return the SHA-256 of a file."""
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def sealed(data: Mapping[str, object], name: str = DIGEST) -> dict[str, object]:
    """Return the data with the digest over all its fields as the last field.

    >>> check_seal(sealed({"schema": 1, "estimates": []}), "r.json")
    True
    """
    plain = {k: v for k, v in data.items() if k != name}
    return {**plain, name: digest(plain)}


def check_seal(data: Mapping[str, object], file: str) -> bool:
    """Return whether the data has a digest; a digest that does not match the data is an error.

    Raises
    ------
    DataError
        `edited-artifact`: the file was changed after it was written.
    """
    if DIGEST not in data:
        return False
    try:
        is_sound = data[DIGEST] == digest(data)
    except ValueError:  # a number beyond every float, which no file of hitmiss holds
        is_sound = False
    if not is_sound:
        raise DataError.of("edited-artifact", file=file)
    return True


def same_digests(a: str, b: str) -> bool:
    """Return whether two texts of shortened digests match; older versions kept fewer digits of each.

    >>> same_digests("0123456789abcdef", "0123456789ab"), same_digests("0123456789abcdef", "0123456789ac")
    (True, False)
    """
    ours, theirs = (re.split(r"([.+])", text) for text in (a, b))
    return len(ours) == len(theirs) and all(map(_is_begun, ours, theirs))


def _is_begun(a: str, b: str) -> bool:
    """Return whether one digest equals the other, or the part of it that an older version wrote."""
    short, long = sorted((a, b), key=len)
    return a == b or (len(short) in OLDER and long.startswith(short))


def load(path: str | Path, what: str) -> dict[str, object]:
    """Read the JSON object of an artifact, and check its digest.

    Parameters
    ----------
    path
        The file.
    what
        What it should be, for messages: `results`.

    Returns
    -------
    dict
        The JSON object.

    Raises
    ------
    DataError
        `not-<what>`: not a JSON object, a repeated name, NaN, or too long; `edited-artifact`: see `check_seal`;
        `unsealed-artifact`: there is no digest.
    """
    note_input(path)
    file = Path(path)
    with file.open("rb") as opened:
        raw = opened.read(MOST_JSON + 1)
    if len(raw) > MOST_JSON:
        raise _not_a("not-a-file/large", file.name, what, most=MOST_JSON)
    try:
        data = json.loads(raw.decode("utf-8"), object_pairs_hook=_once, parse_constant=_no_constant)
    except RecursionError:
        raise _not_a("not-a-file/nested", file.name, what) from None
    except ValueError as error:
        raise _not_a("not-a-file", file.name, what, error=str(error)) from None
    if not isinstance(data, dict):
        raise _not_a("not-a-file/object", file.name, what)
    if not check_seal(data, file.name):
        raise DataError.of("unsealed-artifact", file_name=file.name)
    return data


def _not_a(code: str, name: str, what: str, **values: Value) -> DataError:
    found = Finding(code, values={"file": name, "what": what, **values})
    return DataError.coded(found, f"not-{what.replace(' ', '-')}")


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the name {twice!r} occurs twice in one object")
    return found


def _no_constant(text: str) -> object:
    raise ValueError(f"{text} is not JSON")


def check(kind: type[T], data: object, what: str, where: tuple[str, ...] = ()) -> T:
    """Make a dataclass from a part of an artifact, each field checked by its type hint.

    Raises
    ------
    DataError
        `malformed-<what>`, with the keys that lead to the field.
    """
    try:
        if not isinstance(data, Mapping):
            raise InvalidField(where, "it must be a table of names", data)
        return declare(kind, data, where=where)
    except InvalidField as fault:
        raise malformed(what, fault) from None


def malformed(what: str, fault: InvalidField) -> DataError:
    """Return the error for an artifact whose fields do not have the form that hitmiss writes."""
    shown = repr(fault.value) if fault.value is not None else "nothing"
    found = f" (found {shown[:60]})" if not fault.is_unknown and fault.what != "it is missing" else ""
    values = {"what": what, "where": ".".join(fault.where), "fault": f"{fault.what}{found}"}
    return DataError.coded(Finding("malformed", values=values), f"malformed-{what.replace(' ', '-')}")


def unfolded(packed: int, is_streamed: bool = False) -> int:
    """Return the largest allowed unpacked size of a packed file, in bytes; files read in pieces have no fixed limit.

    >>> unfolded(1000) == BOMB_BYTES, unfolded(10**9) == MOST_BYTES
    (True, True)
    """
    limit = max(BOMB_BYTES, BOMB_RATIO * packed)
    return limit if is_streamed else min(MOST_BYTES, limit)


def load_arrays(path: Path, what: str, file: str) -> dict[str, Array]:
    """Read the arrays of an `.npz` file. No object is unpickled, and archives that would unpack too far are refused.

    Raises
    ------
    DataError
        `oversized-archive`, or `unreadable-file` if the file is damaged or does not exist.
    """
    import numpy as np

    limit = unfolded(path.stat().st_size)
    try:
        with zipfile.ZipFile(path) as packed:
            total = sum(entry.file_size for entry in packed.infolist())
        if total > limit:
            raise DataError.of("oversized-archive", file=file, total=total, limit=limit)
        with np.load(path, allow_pickle=False) as arrays:
            found: dict[str, Array] = {name: arrays[name] for name in arrays.files}
    except (
        Exception
    ) as error:  # a damaged header reaches zipfile, zlib, tokenize and ast, which raise errors of all kinds
        if isinstance(error, DataError | FileNotFoundError | PermissionError | IsADirectoryError):
            raise
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise DataError.of("unreadable-file/damaged", file=file, what=what, reason=reason) from None
    broken = [name for name, array in found.items() if not isinstance(array, np.ndarray)]
    if broken:
        raise DataError.of("unreadable-file/array", file=file, what=what, broken=broken[0])
    return found


@contextmanager
def guarded() -> Iterator[None]:
    """Run a block in which no file that was read may be overwritten, and no finished file written twice."""
    inputs, outputs, after = _inputs.set({}), _outputs.set({}), _written.set(None)
    try:
        yield
    finally:
        _inputs.reset(inputs)
        _outputs.reset(outputs)
        _written.reset(after)


def after_writing(written: Callable[[Path], None]) -> None:
    """Call `written` with each artifact that is written from now to the end of the command."""
    _written.set(written)


def note_input(path: str | Path) -> None:
    """Remember that a file is an input of the running command."""
    known = _inputs.get()
    if known is not None:
        with suppress(OSError, ValueError):
            status = Path(path).stat()
            if stat.S_ISREG(status.st_mode):
                known[status.st_dev, status.st_ino] = str(path)


def write(
    path: str | Path,
    content: str | bytes | Iterable[bytes],
    *,
    then: str = "",
    is_state: bool = False,
    is_final: bool = True,
) -> None:
    """Write a file completely or not at all: write it to a neighbouring file, sync it, and rename it.

    Links are followed, an existing file keeps its mode, and a target that is not a regular file (a device, a pipe) is
    written directly.

    Parameters
    ----------
    path
        The file; its folder must exist.
    content
        The whole content, or its pieces in order; text is written as UTF-8.
    then
        What to do after the disk was full, if running the command again is not enough.
    is_state
        Whether the file is the state of a run, which the command itself maintains and may have read before.
    is_final
        Whether this is a finished artifact, to be signed if signing is asked for, and not an intermediate state.

    Raises
    ------
    UsageError
        `no-folder`, `is-folder`, `own-input`: this command has read the file, or `own-output`: it has written it.
    EnvironmentFault
        `disk-full`: the former file is untouched.
    """
    text = content.encode("utf-8") if isinstance(content, str) else content
    data = [text] if isinstance(text, bytes) else text
    target = Path(path)
    number = _open_fd(str(path))
    try:
        if number is not None:
            _write_into(os.dup(number), data)
            return
        status = _status(target, is_state)
        if status is not None and not stat.S_ISREG(status.st_mode):
            _write_into(os.open(target, os.O_WRONLY | BINARY), data)
            return
        _replace(Path(os.path.realpath(target)), data, status)
        _note_output(target, is_state or not is_final)
    except OSError as error:
        if error.errno in FULL:
            raise disk_full(os.strerror(error.errno or 0), target.name, then) from None
        raise type(error)(error.errno, error.strerror, str(target)) from None
    after = _written.get()
    if is_final and after is not None:
        after(target)


def _open_fd(path: str) -> int | None:
    """Return the number of the open file that a path refers to; opening it again would cut off its content."""
    found = OPEN_FD.fullmatch(path)
    return int(found[1]) if found else STREAMS.get(path)


def _status(target: Path, is_state: bool) -> os.stat_result | None:
    """Return what exists at a path, links followed; refuse what must not be overwritten."""
    if not target.parent.is_dir():
        raise UsageError.of("no-folder/write", parent=target.parent, target_name=target.name)
    try:
        status = target.stat()
    except FileNotFoundError:
        return None
    if stat.S_ISDIR(status.st_mode):
        raise UsageError.of("is-folder", target=target)
    read = None if is_state else (_inputs.get() or {}).get((status.st_dev, status.st_ino))
    if read is not None:
        raise UsageError.of("own-input", target=target, read=read)
    written = None if is_state else (_outputs.get() or {}).get((status.st_dev, status.st_ino))
    if written is not None:
        raise UsageError.of("own-output", target=target, written=written)
    return status


def _note_output(target: Path, is_state: bool) -> None:
    """Remember that a finished file was written by the running command."""
    known = _outputs.get()
    if known is not None and not is_state:
        status = target.stat()
        known[status.st_dev, status.st_ino] = str(target)


def _replace(real: Path, data: Iterable[bytes], status: os.stat_result | None) -> None:
    beside = real.with_name(f".{secrets.token_hex(8)}.part")  # a name that nobody can have put a link at
    try:
        fd = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | NO_LINK | BINARY, 0o666)
        try:
            if status is not None:
                beside.chmod(stat.S_IMODE(status.st_mode))
            for piece in data:
                write_all(fd, piece)
            os.fsync(fd)
        finally:
            os.close(fd)
        beside.replace(real)
    except BaseException:
        with suppress(OSError):
            beside.unlink(missing_ok=True)
        raise
    sync_folder(real.parent)


def _write_into(fd: int, data: Iterable[bytes]) -> None:
    try:
        for piece in data:
            write_all(fd, piece)
    finally:
        os.close(fd)


def push(fd: int, data: bytes | memoryview) -> int:
    """Make one write call and return how many bytes were written. Everything that hitmiss writes goes through here."""
    return os.write(fd, data)


def write_all(fd: int, data: bytes) -> None:
    """Write all of `data`, in as many calls as needed."""
    view = memoryview(data)
    while view:
        view = view[push(fd, view) :]


def sync_folder(folder: Path) -> None:
    """Write the names in a folder to the disk, if the system can do this."""
    with suppress(OSError):
        fd = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)


def disk_full(reason: str, file: str = "", then: str = "") -> EnvironmentFault:
    """Return the error for a full disk."""
    where = f" while {file} was written" if file else ""
    what = then or "the previous content is unchanged: free some space and run again"
    return EnvironmentFault.of("disk-full", reason=reason, where_2=where, what=what)
