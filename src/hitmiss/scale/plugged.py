"""Files that only a plug-in's reader understands, streamed: as Parquet files of the same names for as long as it takes."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from hitmiss.core import registry
from hitmiss.core.question import ReadSpec
from hitmiss.core.trials import Header, Source
from hitmiss.io.parse import expand
from hitmiss.io.tables import frame_of
from hitmiss.scale.reading import digest


@dataclass(frozen=True)
class Plugged:
    """What is to be counted, how it is read, and which file each one was made from (by the hash of what was made)."""

    scores: Any
    options: ReadSpec
    made_from: Mapping[str, Source] = field(default_factory=dict)

    def named(self, header: Header) -> Header:
        """A header whose sources are the files themselves."""
        return replace(header, sources=tuple(self.made_from.get(s.sha256, s) for s in header.sources))


@contextmanager
def plugged(scores: Any, options: ReadSpec, scratch: str | None) -> Iterator[Plugged]:
    """The files of a plug-in's reader as tables in a folder made in `scratch`; other files as they are."""
    reader = registry.find("reader", options.layout) if options.layout is not None else None
    if not callable(reader):
        yield Plugged(scores, options)
        return
    with tempfile.TemporaryDirectory(prefix="hitmiss-", dir=scratch) as folder:
        made = [_made(reader, path, Path(folder) / str(at)) for at, path in enumerate(expand(scores))]
        yield Plugged(
            [str(path) for path, _, _ in made], replace(options, layout=None), {sha: was for _, sha, was in made}
        )


def _made(reader: Callable[..., Any], path: str | Path, folder: Path) -> tuple[Path, str, Source]:
    folder.mkdir()
    table = folder / Path(path).name
    frame_of(reader(path)).write_parquet(table)
    return table, digest(str(table))[0], Source(table.name, digest(str(path))[0])
