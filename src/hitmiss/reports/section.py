"""A section of a report: a title and blocks. Renderers know the kinds of blocks, never a section by its name."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from hitmiss.reports.dumbbells import Dumbbells
from hitmiss.reports.explorer import Explorer
from hitmiss.reports.heat import HeatMap
from hitmiss.reports.plate import Plate
from hitmiss.reports.readings import Reading
from hitmiss.reports.table import Table
from hitmiss.reports.worst_errors import WorstErrors


@dataclass(frozen=True, eq=False)
class FigureView:
    """A figure: its plate for the renderer, the words around it, and its numbers."""

    id: str
    kind: str
    reading: Reading
    plate: Plate
    numbers: Table
    subtitle: str = ""

    @property
    def title(self) -> str:
        """Return what the figure shows, in a sentence; its kind if there is no such sentence."""
        return self.plate.finding or self.reading.title


@dataclass(frozen=True, eq=False)
class TableBlock:
    """A table; `tall` ones scroll within the page, and `captioned` says whether the title is shown."""

    kind: ClassVar[str] = "table"
    table: Table
    tall: bool = False
    captioned: bool = True


@dataclass(frozen=True, eq=False)
class FiguresBlock:
    """Figures side by side; `small` ones are many and have no legend of their own."""

    kind: ClassVar[str] = "figures"
    figures: tuple[FigureView, ...]
    small: bool = False
    wide: bool = False


@dataclass(frozen=True, eq=False)
class SlicesBlock:
    """Small figures of single slices, which a click on their row opens."""

    kind: ClassVar[str] = "slices"
    figures: tuple[FigureView, ...]


@dataclass(frozen=True, eq=False)
class MapsBlock:
    """Heat maps side by side."""

    kind: ClassVar[str] = "maps"
    maps: tuple[HeatMap, ...]


@dataclass(frozen=True, eq=False)
class DumbbellsBlock:
    """Two runs slice by slice."""

    kind: ClassVar[str] = "dumbbells"
    dumbbells: Dumbbells


@dataclass(frozen=True, eq=False)
class ExplorerBlock:
    """The threshold that a reader can move; a page without scripts leaves it out."""

    kind: ClassVar[str] = "explorer"
    explorer: Explorer


@dataclass(frozen=True, eq=False)
class ErrorsBlock:
    """Wrongly answered trials; `is_named` says whether the run has to be told apart from others."""

    kind: ClassVar[str] = "errors"
    errors: WorstErrors
    is_named: bool = False


@dataclass(frozen=True)
class TextBlock:
    """A remark below what it explains."""

    kind: ClassVar[str] = "text"
    text: str


@dataclass(frozen=True)
class PointsBlock:
    """Sentences one below the other."""

    kind: ClassVar[str] = "points"
    texts: tuple[str, ...]


@dataclass(frozen=True)
class CodeBlock:
    """Lines that are copied as they are, such as signatures."""

    kind: ClassVar[str] = "code"
    texts: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class FoldedBlock:
    """Blocks behind a line that opens them."""

    kind: ClassVar[str] = "folded"
    title: str
    blocks: tuple[Block, ...]


Block = (
    TableBlock
    | FiguresBlock
    | SlicesBlock
    | MapsBlock
    | DumbbellsBlock
    | ExplorerBlock
    | ErrorsBlock
    | TextBlock
    | PointsBlock
    | CodeBlock
    | FoldedBlock
)


@dataclass(frozen=True, eq=False)
class Section:
    """A name for links, a title, and the blocks in their order."""

    name: str
    title: str
    blocks: tuple[Block, ...]

    @property
    def every(self) -> list[Block]:
        """All blocks, those behind a line included."""
        return list(_flat(self.blocks))

    @property
    def tables(self) -> list[Table]:
        """All tables."""
        return [b.table for b in self.every if isinstance(b, TableBlock)]

    @property
    def figures(self) -> list[FigureView]:
        """All figures, those of single slices included."""
        return [f for b in self.every if isinstance(b, FiguresBlock | SlicesBlock) for f in b.figures]

    @property
    def maps(self) -> list[HeatMap]:
        """All heat maps."""
        return [m for b in self.every if isinstance(b, MapsBlock) for m in b.maps]

    @property
    def errors(self) -> list[WorstErrors]:
        """All lists of wrongly answered trials."""
        return [b.errors for b in self.every if isinstance(b, ErrorsBlock)]

    @property
    def texts(self) -> list[str]:
        """All remarks and sentences."""
        found = [
            b.texts if isinstance(b, PointsBlock) else (b.text,)
            for b in self.every
            if isinstance(b, TextBlock | PointsBlock)
        ]
        return [text for texts in found for text in texts]


def _flat(blocks: Sequence[Block]) -> Iterator[Block]:
    for block in blocks:
        yield block
        if isinstance(block, FoldedBlock):
            yield from _flat(block.blocks)
