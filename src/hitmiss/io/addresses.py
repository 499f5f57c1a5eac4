"""Addresses of files in object stores and on the web, and of tables of engines.

Only the name of a file leaves an address: the users, passwords and queries of one (which may hold a signature) never appear
in a result, message or log."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import SplitResult, unquote, urlsplit, urlunsplit

from hitmiss.core.errors import UsageError

ADDRESS: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://\S")
TABLE: Final = re.compile(r"(spark|duckdb):(?!//)(.+)", re.DOTALL)
WEB: Final = ("http", "https")
STORES: Final = ("s3", "gs", "az")


def is_remote(path: object) -> bool:
    """Return whether a path is a network address; an existing local file with such a name counts as a file.

    >>> is_remote("s3://bucket/scores.parquet"), is_remote("scores.parquet"), is_remote("C:/scores.parquet")
    (True, False, False)
    """
    return isinstance(path, str) and ADDRESS.match(path) is not None and not Path(path).exists()


@dataclass(frozen=True)
class TableAddress:
    """The address of a table: `engine:table`, for DuckDB `duckdb:FILE#table`."""

    engine: str
    place: str
    table: str

    @property
    def name(self) -> str:
        """The name of the table in results."""
        return self.table.rstrip("/").rpartition("/")[2]


def table_of(given: str) -> TableAddress | None:
    """Return the table that an argument names, or None if it is a file.

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
        raise UsageError.of("bad-address", given=given)
    return TableAddress(engine, place, table)


def name_of(address: str) -> str:
    """Return the name of the file at an address.

    >>> name_of("https://host/a/scores%201.csv?X-Amz-Signature=secret")
    'scores 1.csv'
    """
    return unquote(urlsplit(address).path).rstrip("/").rpartition("/")[2] or "index"


def address_shown(address: str) -> str:
    """Return an address without the parts that may be secret: user, password, query and fragment.

    >>> address_shown("https://me:word@host:8080/a.csv?token=1#x")
    'https://host:8080/a.csv'
    """
    parts = urlsplit(address)
    return urlunsplit(SplitResult(parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def source_shown(path: str) -> str:
    """Return a source as messages may show it: an address without its secrets, anything else unchanged."""
    return address_shown(path) if is_remote(path) else path


STDIN: Final = "-"
