"""Addresses: files in buckets and on the web (`s3://`, `gs://`, `az://`, `https://`), and tables of engines.

The bytes of a file at an address are read as those of a file on this machine.

Every byte is read, since every byte is in the digest of the data. Only the name of a file goes further than this module:
users, passwords and queries of an address (which may hold a signature) are in no result, message or log.
"""

from __future__ import annotations

import fnmatch
import glob
import http.client
import os
import re
import tempfile
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import SplitResult, unquote, urlsplit, urlunsplit

from hitmiss._version import __version__
from hitmiss.core import progress
from hitmiss.core.errors import DataError, EnvironmentFault, HitmissError, UsageError

ADDRESS: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://\S")
TABLE: Final = re.compile(r"(spark|duckdb):(?!//)(.+)", re.DOTALL)
WEB: Final = ("http", "https")
STORES: Final = ("s3", "gs", "az")
PIECE: Final = 4 * 2**20
SECONDS: Final = 30
"""How long a server may be silent."""


def is_remote(path: object) -> bool:
    """Whether a path is an address of a network; a file that is called like one is a file.

    >>> is_remote("s3://bucket/scores.parquet"), is_remote("scores.parquet"), is_remote("C:/scores.parquet")
    (True, False, False)
    """
    return isinstance(path, str) and ADDRESS.match(path) is not None and not Path(path).exists()


@dataclass(frozen=True)
class TableAddress:
    """Where a table is: `engine:table`, for DuckDB `duckdb:FILE#table`."""

    engine: str
    place: str
    table: str

    @property
    def name(self) -> str:
        """What results call it."""
        return self.table.rstrip("/").rpartition("/")[2]


def table_of(given: str) -> TableAddress | None:
    """The table that an argument names, or None where it is a file.

    >>> table_of("spark:lake.trials")
    TableAddress(engine='spark', place='', table='lake.trials')
    >>> table_of("duckdb:/data/results.db#trials")
    TableAddress(engine='duckdb', place='/data/results.db', table='trials')
    >>> table_of("scores.parquet"), table_of("s3://bucket/x")
    (None, None)
    """
    found = TABLE.fullmatch(given)
    if found is None or Path(given).exists():
        return None
    engine, rest = found.groups()
    if engine == "spark":
        return TableAddress(engine, "", rest)
    place, mark, table = rest.rpartition("#")
    if not (place and mark and table):
        raise UsageError(f"{given}: a table of DuckDB is named duckdb:FILE#TABLE", code="bad-address")
    return TableAddress(engine, place, table)


def name_of(address: str) -> str:
    """The name of the file at an address.

    >>> name_of("https://host/a/scores%201.csv?X-Amz-Signature=secret")
    'scores 1.csv'
    """
    return unquote(urlsplit(address).path).rstrip("/").rpartition("/")[2] or "index"


def shown(address: str) -> str:
    """An address without what may be secret: its user, password, query and fragment.

    >>> shown("https://me:word@host:8080/a.csv?token=1#x")
    'https://host:8080/a.csv'
    """
    parts = urlsplit(address)
    return urlunsplit(SplitResult(parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def said(path: str) -> str:
    """What may be said of a source: an address without its secrets, anything else as it is."""
    return shown(path) if is_remote(path) else path


def listed(pattern: str) -> list[str]:
    """The addresses that a pattern in a store stands for (`s3://bucket/run-*/part-?.parquet`), in order."""
    parts = urlsplit(pattern.replace("?", "%3F"))
    if parts.scheme not in STORES:
        return [pattern]
    path = unquote(parts.path).lstrip("/")
    if not glob.has_magic(path):
        return [pattern]
    fixed = re.split(r"[*?\[]", path, maxsplit=1)[0].rpartition("/")[0]
    with _told(pattern):
        store = _store(parts)
        found = [str(one["path"]) for batch in store.list(fixed or None) for one in batch]
    depth = path.count("/")  # as in a shell, * does not go into folders
    hits = sorted(one for one in found if fnmatch.fnmatchcase(one, path) and one.count("/") == depth)
    if not hits:
        raise UsageError(f"no file matches {shown(pattern)!r}", code="no-match")
    return [f"{parts.scheme}://{parts.netloc}/{one}" for one in hits]


def pieces(address: str) -> Iterator[bytes]:
    """The bytes of the file at an address, a few megabytes at a time."""
    parts = urlsplit(address)
    if parts.scheme not in (*WEB, *STORES):
        raise UsageError(
            f"{shown(address)}: files are read from this machine, from {', '.join(f'{s}://' for s in STORES)} and "
            f"https://; fetch it first and give its path",
            code="remote-file",
        )
    done, name = 0, name_of(address)
    with _told(address):
        for piece in _of_web(address, parts) if parts.scheme in WEB else _of_store(parts):
            done += len(piece)
            progress.tell(f"fetching {name}, MB", done / 1e6)
            yield piece


@contextmanager
def fetched(given: Any, scratch: str | None) -> Iterator[Any]:
    """What was given; sources at an address as files of the same names in a folder made in `scratch`, for the block."""
    sources = list(given) if isinstance(given, list | tuple) else [given]
    if not any(map(is_remote, sources)):
        yield given
        return
    sources = [one for source in sources for one in (listed(source) if is_remote(source) else [source])]
    with tempfile.TemporaryDirectory(prefix="hitmiss-", dir=scratch) as folder:
        yield [_kept(one, Path(folder) / str(at)) if is_remote(one) else one for at, one in enumerate(sources)]


def _kept(address: str, folder: Path) -> str:
    folder.mkdir()
    path = folder / name_of(address)
    with path.open("wb") as file:
        file.writelines(pieces(address))
    return str(path)


def _of_web(address: str, parts: SplitResult) -> Iterator[bytes]:
    if "@" in parts.netloc:
        raise UsageError(
            f"{shown(address)}: an address with a password in it is not read, since addresses are kept in shells and "
            f"logs; use a signed link, or fetch the file first",
            code="password-in-address",
        )
    request = urllib.request.Request(address, headers={"User-Agent": f"hitmiss/{__version__}"})
    with urllib.request.urlopen(request, timeout=SECONDS) as answer:
        length, done = answer.headers.get("Content-Length"), 0
        while piece := answer.read(PIECE):
            done += len(piece)
            yield piece
    if length is not None and done != int(length):  # reading piece by piece, Python does not notice
        raise DataError(f"{shown(address)}: {done:,} of {length} bytes came; try again", code="cut-short")


def _of_store(parts: SplitResult) -> Iterator[bytes]:
    path = unquote(parts.path).lstrip("/")
    for piece in _store(parts).get(path).stream(min_chunk_size=PIECE):
        yield bytes(piece)


def _store(parts: SplitResult) -> Any:
    """The bucket of an address. Who may read it is found where the store's own tools find it."""
    try:
        from obstore.store import from_url
    except ImportError as error:
        raise EnvironmentFault(
            f"{parts.scheme}:// needs the package 'obstore' ({error}): pip install 'hitmiss[remote]'"
        ) from None
    more: dict[str, Any] = {}
    if parts.scheme == "s3" and not {"AWS_ACCESS_KEY_ID", "AWS_SKIP_SIGNATURE"} & os.environ.keys():
        more = _profile()
    retry = {"max_retries": 3}
    return from_url(f"{parts.scheme}://{parts.netloc}", client_options=_client(), retry_config=retry, **more)


def _client() -> dict[str, Any]:
    is_plain = any(os.environ.get(name, "").startswith("http://") for name in ("AWS_ENDPOINT_URL", "AWS_ENDPOINT"))
    return {"timeout": f"{SECONDS}s", "connect_timeout": f"{SECONDS}s", "allow_http": is_plain}


def _profile() -> dict[str, Any]:
    """The profiles of ~/.aws, where the package is there that reads them."""
    try:
        from obstore.auth.boto3 import Boto3CredentialProvider

        return {"credential_provider": Boto3CredentialProvider()}
    except (ImportError, ValueError):  # no boto3, or it knows of no credentials: a public bucket, or the machine's role
        return {}


@contextmanager
def _told(address: str) -> Iterator[None]:
    """What goes wrong on the way, as one sentence without the secrets that libraries put into theirs."""
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
        return DataError(f"{shown(address)} {what}", code="forbidden-file")
    what = "is not there" if status in (404, 410) else f"is not given out (HTTP status {status})"
    return DataError(f"{shown(address)} {what}", code="missing-file")


def _unreachable(address: str, why: object) -> EnvironmentFault:
    return EnvironmentFault(f"{shown(address)} cannot be reached ({why})", code="unreachable")
