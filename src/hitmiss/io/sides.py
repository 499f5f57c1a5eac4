"""One side of the input, scores or key: open its files, recognise their columns, load their rows."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import polars as pl

from hitmiss.core import progress, registry
from hitmiss.core.columns import prefixed
from hitmiss.core.finding import Place
from hitmiss.core.read_spec import ReadSpec
from hitmiss.io import loaded, tables
from hitmiss.io.aliases import (
    SYSTEM_PREFIX,
)
from hitmiss.io.columns import Match, Role, recognise
from hitmiss.io.diagnostics import Diagnostics
from hitmiss.io.fetch import fetch
from hitmiss.io.source import Kinds, SourceBytes, SourceHead, Table


def names_in(shapes: Sequence[SourceHead], match: Match) -> list[str]:
    """Return the names of all columns of some files; without a header, their positions in both spellings."""
    if match.has_header:
        return [name for shape in shapes for name in shape.names or shape.first[0]]
    return [spelling.format(i + 1) for i in range(shapes[0].width) for spelling in ("{}", "column_{}")]


@dataclass(frozen=True)
class Side:
    """One side of the input (scores or key) after opening: its files, what was recognised, its rows."""

    shapes: tuple[SourceHead, ...]
    match: Match
    stack: loaded.LoadedRows
    matches: tuple[Match, ...] = ()
    """What was recognised in each of its files; `match` is that of the first, without columns that were not read."""

    def with_targets(self) -> Side:
        """Return this side with a column `target` that says what each row asks about."""
        own = prefixed("target")
        if own not in self.match.picks:
            return self
        return replace(
            self,
            match=replace(
                self.match,
                picks={"target" if n == own else n: at for n, at in self.match.picks.items()},
                slices=tuple(n for n in self.match.slices if n != own),
                theirs={"target" if n == own else n: theirs for n, theirs in self.match.theirs.items()},
            ),
            stack=self.stack.renamed({own: "target"}),
        )

    @property
    def is_typed(self) -> bool:
        """Whether numbers were parsed directly, so that their original text is not available."""
        return any(
            shape.frame is None and any(kind.is_numeric() for kind in table.frame.dtypes)
            for shape, table in zip(self.shapes, self.stack.tables, strict=True)
        )

    def as_text(self, ledger: Diagnostics) -> Side:
        """Return this side with all its columns, and every cell as the text in its file."""
        match = self.matches[0]
        rows = loaded.LoadedRows.of(load_sources(self.shapes, self.matches, {}, ledger), match.theirs)
        return replace(self, match=match, stack=replace(rows, by_question=self.stack.by_question))

    @property
    def names(self) -> list[str]:
        """The names of all columns; without a header, their positions in both spellings."""
        return names_in(self.shapes, self.match)


def open_side(
    shapes: Sequence[SourceHead],
    role: Role,
    options: ReadSpec,
    ledger: Diagnostics,
    *,
    are_numbers_wanted: bool = False,
    needed: Collection[str] | None = None,
) -> Side:
    """Recognise the columns of the sources and load their rows: the common start for every kind of table.

    `are_numbers_wanted`: parse scores directly as numbers if every one of them is a number; `needed`: load only these
    slices. For both see `Side.as_text`.
    """
    matches = [recognise(shape, role, options, ledger) for shape in shapes]
    for shape, match in zip(shapes, matches, strict=True):
        if set(match.picks) != set(matches[0].picks):
            raise ledger.stop("shards-differ", [Place(shape.name, 1)], other=shapes[0].name)
    scores = [name for name in matches[0].picks if name == "score" or name.startswith(SYSTEM_PREFIX)]
    kinds = matches[0].kinds(dict.fromkeys(scores, pl.Float64), options) if are_numbers_wanted else {}
    used = matches if needed is None else [match.only(needed) for match in matches]
    if needed is not None:
        kinds = {**kinds, **used[0].words(shapes[0].first, options)}
    stack = loaded.LoadedRows.of(load_sources(shapes, used, kinds, ledger), used[0].theirs)
    return Side(tuple(shapes), used[0], stack, tuple(matches))


def load_sources(
    shapes: Sequence[SourceHead], matches: Sequence[Match], kinds: Kinds, ledger: Diagnostics
) -> list[Table]:
    order = list(matches[0].picks)
    sizes = [len(shape.content.data) if shape.content else 0 for shape in shapes]
    return [
        tables.load(s, m.has_header, {c: m.picks[c] for c in order}, m.numeric, ledger, kinds)
        for s, m in progress.each(list(zip(shapes, matches, strict=True)), "parsing files", sizes)
    ]


def look(source: object, role: Role, options: ReadSpec, ledger: Diagnostics, memory: int | None = None) -> SourceHead:
    """Take a first look at a source; if the layout names a plug-in's reader, it turns a score file into a frame."""
    return look_by_plugin(source, role, options, ledger) or tables.look(source, options, ledger, memory)


def look_by_plugin(source: object, role: Role, options: ReadSpec, ledger: Diagnostics) -> SourceHead | None:
    """Return the frame that a plug-in's reader turns a score file into; None if the layout does not name one."""
    reader = registry.find("reader", options.layout) if options.layout is not None else None
    if role == "key" or not callable(reader) or not isinstance(source, str | Path):
        return None
    return _by_plugin(reader, source, options, ledger)


def _by_plugin(reader: Callable[..., object], path: str | Path, options: ReadSpec, ledger: Diagnostics) -> SourceHead:
    shape = tables.look(reader(path), options, ledger)
    content = SourceBytes(
        Path(path).name, fetch(path, "latin-1", Diagnostics()).sha256, b"", f"reader {options.layout}"
    )
    return SourceHead(content.name, shape.first, shape.names, content=content, frame=shape.frame)
