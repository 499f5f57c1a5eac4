"""The bytes of files in object stores and on the web (`s3://`, `gs://`, `az://`, `https://`).

Every byte is read, because the digest of the data covers every byte."""

from __future__ import annotations

import fnmatch
import glob
import os
import re
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import SplitResult, unquote, urlsplit

from hitmiss._version import __version__
from hitmiss.core import progress
from hitmiss.core.errors import DataError, EnvironmentFault, HitmissError, UsageError
from hitmiss.core.packages import need_package

if TYPE_CHECKING:
    from obstore.store import ObjectStore
from hitmiss.io.addresses import STORES, WEB, address_shown, is_remote, name_of

DOWNLOAD_PIECE: Final = 4 * 2**20
SILENT_SECONDS: Final = 30
"""How long a server may be silent."""
SLOW_SECONDS, LEAST_BYTES = 60, 2**14
"""A server that sends fewer bytes in this time is given up."""
LEAST_FREE: Final = 2**28
"""What a fetched file leaves free of a disk, in bytes."""


def addresses_in(pattern: str) -> list[str]:
    """Return the addresses that match a pattern in a store (`s3://bucket/run-*/part-?.parquet`), in order."""
    parts = urlsplit(pattern.replace("?", "%3F"))
    if parts.scheme not in STORES:
        return [pattern]
    path = unquote(parts.path).lstrip("/")
    if not glob.has_magic(path):
        return [pattern]
    fixed = re.split(r"[*?\[]", path, maxsplit=1)[0].rpartition("/")[0]
    with _in_one_sentence(pattern):
        store = _store(parts)
        found = [str(one["path"]) for batch in store.list(fixed or None) for one in batch]
    depth = path.count("/")  # as in a shell, * does not match across folders
    hits = sorted(one for one in found if fnmatch.fnmatchcase(one, path) and one.count("/") == depth)
    if not hits:
        raise UsageError.of("no-match", pattern=address_shown(pattern))
    return [f"{parts.scheme}://{parts.netloc}/{one}" for one in hits]


def remote_pieces(address: str) -> Iterator[bytes]:
    """Yield the bytes of the file at an address, a few megabytes at a time."""
    parts = urlsplit(address)
    if parts.scheme not in (*WEB, *STORES):
        raise UsageError.of("remote-file", address=address_shown(address), STORES=", ".join(f"{s}://" for s in STORES))
    done, name = 0, name_of(address)
    with _in_one_sentence(address):
        for piece in _of_web(address, parts) if parts.scheme in WEB else _of_store(parts):
            done += len(piece)
            progress.report(f"fetching {name}, MB", done / 1e6)
            yield piece


@contextmanager
def downloaded(given: object, scratch: str | None) -> Iterator[object]:
    """Yield what was given, with remote sources and pipes copied to files for the block, which may be read repeatedly.

    They become files of the same names in a temporary folder inside `scratch`.
    """
    sources = list(given) if isinstance(given, list | tuple) else [given]
    if not any(is_remote(source) or is_pipe(source) for source in sources):
        yield given
        return
    sources = [one for source in sources for one in (addresses_in(str(source)) if is_remote(source) else [source])]
    with tempfile.TemporaryDirectory(prefix="hitmiss-", dir=scratch) as folder:
        yield [_copied(one, Path(folder) / str(at)) for at, one in enumerate(sources)]


def _copied(source: object, folder: Path) -> object:
    if not is_remote(source) and not is_pipe(source):
        return source
    folder.mkdir()
    path = folder / (name_of(str(source)) if is_remote(source) else Path(str(source)).name)
    with path.open("wb") as file:
        if is_remote(source):
            for piece in remote_pieces(str(source)):
                if shutil.disk_usage(folder).free - len(piece) < LEAST_FREE:
                    what = name_of(str(source))
                    raise EnvironmentFault.of(
                        "scratch-full", what=what, free=LEAST_FREE >> 20, folder=folder.parent.parent
                    )
                file.write(piece)
        else:
            with Path(str(source)).open("rb") as pipe:
                shutil.copyfileobj(pipe, file)
    return str(path)


def is_pipe(source: object) -> bool:
    """Say whether a source is a pipe, as `<(zcat scores.gz)` of a shell is: its bytes come once."""
    try:
        return isinstance(source, str | Path) and Path(source).is_fifo()
    except (OSError, ValueError):
        return False


def _of_web(address: str, parts: SplitResult) -> Iterator[bytes]:
    if "@" in parts.netloc:
        raise UsageError.of("password-in-address", address=address_shown(address))
    import urllib.request  # slow to import, and needed only for the web

    request = urllib.request.Request(address, headers={"User-Agent": f"hitmiss/{__version__}"})
    with urllib.request.urlopen(request, timeout=SILENT_SECONDS) as answer:
        length, done = answer.headers.get("Content-Length"), 0
        began, before = time.monotonic(), 0
        while piece := answer.read1(DOWNLOAD_PIECE):  # what has come, not what is still to come
            done += len(piece)
            yield piece
            if (now := time.monotonic()) - began > SLOW_SECONDS:
                if done - before < LEAST_BYTES:
                    raise _unreachable(address, f"{done - before} bytes came in {now - began:.0f} s")
                began, before = now, done
    # when reading in pieces, Python does not notice a truncated response
    if length is not None and done != int(length):
        raise DataError.of("cut-short", address=address_shown(address), done=done, length=length)


def _of_store(parts: SplitResult) -> Iterator[bytes]:
    path = unquote(parts.path).lstrip("/")
    for piece in _store(parts).get(path).stream(min_chunk_size=DOWNLOAD_PIECE):
        yield bytes(piece)


def _store(parts: SplitResult) -> ObjectStore:
    """Open the bucket of an address. Credentials are found where the store's own tools look for them."""
    need_package("obstore", f"{parts.scheme}://", "hitmiss[remote]")
    from obstore.store import from_url

    more: dict[str, object] = {}
    if parts.scheme == "s3" and not {"AWS_ACCESS_KEY_ID", "AWS_SKIP_SIGNATURE"} & os.environ.keys():
        more = _profile()
    retry = {"max_retries": 3}
    return from_url(f"{parts.scheme}://{parts.netloc}", client_options=_client(), retry_config=retry, **more)


def _client() -> dict[str, object]:
    is_plain = any(os.environ.get(name, "").startswith("http://") for name in ("AWS_ENDPOINT_URL", "AWS_ENDPOINT"))
    return {"timeout": f"{SILENT_SECONDS}s", "connect_timeout": f"{SILENT_SECONDS}s", "allow_http": is_plain}


def _profile() -> dict[str, object]:
    """Return the credentials of the profiles in ~/.aws, if boto3 is installed to read them."""
    try:
        from obstore.auth.boto3 import Boto3CredentialProvider

        return {"credential_provider": Boto3CredentialProvider()}
    except (ImportError, ValueError):  # no boto3, or it finds no credentials: a public bucket, or the machine's role
        return {}


@contextmanager
def _in_one_sentence(address: str) -> Iterator[None]:
    """Turn errors on the way into one sentence, without the secrets that libraries put into their messages."""
    import http.client
    import urllib.error

    try:
        yield
    except HitmissError:
        raise
    except urllib.error.HTTPError as error:
        error.close()
        raise _refused(address, error.code) from None
    except (urllib.error.URLError, http.client.HTTPException, TimeoutError, ConnectionError) as error:
        raise _unreachable(address, getattr(error, "reason", None) or type(error).__name__) from None
    except Exception as error:
        code = {
            "NotFoundError": 404,
            "FileNotFoundError": 404,
            "PermissionDeniedError": 403,
            "UnauthenticatedError": 401,
        }
        name = type(error).__name__
        if name in code:
            raise _refused(address, code[name]) from None
        if type(error).__module__.partition(".")[0] not in ("obstore", "builtins", "botocore"):
            raise
        raise _unreachable(address, name) from None


def _refused(address: str, status: int) -> DataError:
    if status in (401, 403):
        what = (
            "may not be read with the credentials that are set here (AWS_ACCESS_KEY_ID and the like), or is not there"
        )
        return DataError.of("forbidden-file", address=address_shown(address), what=what)
    what = "is not there" if status in (404, 410) else f"is not given out (HTTP status {status})"
    return DataError.of("missing-file/refused", address=address_shown(address), what=what)


def _unreachable(address: str, why: object) -> EnvironmentFault:
    return EnvironmentFault.of("unreachable", address=address_shown(address), why=why)
