"""Layouts of files: data that says which columns a file has, and how nested rows become flat ones."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Protocol

import polars as pl

from hitmiss.core import registry
from hitmiss.core.classes import code_of, is_word
from hitmiss.core.read_spec import ReadSpec
from hitmiss.io.source import Row


@dataclass(frozen=True)
class Conflict:
    """A row (from 0) with two values for one fact: in its own field `name` and in a nested field, or twice in one."""

    row: int
    name: str
    one: str
    other: str
    where: str
    is_inside: bool = False


@dataclass(frozen=True)
class BadCell:
    """A row (from 0) with a field that cannot be read: the code of the fault, the field and what it holds."""

    row: int
    code: str
    name: str
    value: str
    if_all: bool = False
    """Whether it is a fault only if no row of any file has such a field that can be read."""


@dataclass(frozen=True)
class FlatRows:
    """A flat table, its run columns and numeric columns, and facts for the provenance in the header."""

    frame: pl.DataFrame
    runs: tuple[str, ...] = ()
    numbers: tuple[str, ...] = ()
    facts: Mapping[str, object] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    conflicts: tuple[Conflict, ...] = ()
    conditions: Mapping[str, Mapping[str, Sequence[object]]] = field(default_factory=dict)
    """For each run, under which conditions its answers were given: the values of each setting."""
    classes: tuple[str, str] | None = None
    """The layout's names of the classes, if the caller's words for them were replaced."""
    faults: tuple[BadCell, ...] = ()
    n_understood: int = 0
    """How many rows have an answer that was understood."""
    fills: Mapping[str, str] = field(default_factory=dict)
    """What a text column holds in rows that do not say, in another file too; `-` if a column is not listed."""


class Flattening(Protocol):
    """A file that is being flattened, piece by piece; the result does not depend on how it was cut."""

    def add(self, texts: pl.DataFrame) -> None:
        """Add the next rows, as text columns; all pieces have the same columns."""

    @property
    def bytes(self) -> int:
        """The memory that is held."""

    def flat(self) -> FlatRows:
        """Return the flat table of all rows."""


NUMBER: Final = re.compile(r"[-+]?(\.?\d[\d.,]*(e[-+]?\d+)?|nan|inf(inity)?)", re.IGNORECASE)
UNPAIRED: Final = "unpaired"


@dataclass(frozen=True)
class Layout:
    """What the files of one kind look like, as data for the one reader.

    name, title   the name by which a caller chooses it, and a one-line description
    columns       our names of its columns in order, "" for an unused one; without a header they are known by position
    aliases       the names that each of our columns may have; the usual ones if none are given
    needs         the columns that every such file has
    documented    whether the first name of a column is the documented one: it wins over the others, and odd values are
                  faults of the file rather than a sign that another column is meant
    declares      the layout's names of the columns that a caller may declare: `item` -> `id`
    expand        begins to turn nested rows, as columns of text, into flat ones
    inside        returns the files of a folder that have the layout; None if a folder is not read
    """

    name: str
    title: str
    columns: Row = ()
    has_header: bool = False
    aliases: Mapping[str, Row] = field(default_factory=dict)
    needs: Row = ()
    documented: bool = False
    declares: Mapping[str, str] = field(default_factory=dict)
    expand: Callable[[ReadSpec], Flattening] | None = None
    inside: Callable[[Path], list[Path]] | None = None

    def fits(self, rows: Sequence[Row], need: str) -> bool:
        """Return whether rows without a header have this layout; `need` (score or label) must be among its columns."""
        if self.has_header or need not in self.columns or len(rows[0]) != len(self.columns):
            return False
        cells = [[row[i] for row in rows if len(row) > i] for i in range(len(self.columns))]
        return all(_looks_like(ours, column, need) for ours, column in zip(self.columns, cells, strict=True))


PROTOCOL: Final = (
    "speaker",
    "item",
    "gender",
    "codec",
    "codec_q",
    "codec_seed",
    "attack_tag",
    "attack",
    "label",
    "tmp",
)
LAYOUTS: Final = (
    Layout("cm-scores", "ASVspoof 5 scores: filename, cm-score", ("item", "score"), True),
    Layout("cm-key", "ASVspoof 5 key: filename, cm-label", ("item", "label"), True),
    Layout(
        "evaluation-full-key",
        "ASVspoof 5 full key: trial_anon, cm-label, attack_anon, codec, …",
        ("item", "label"),
        True,
    ),
    Layout(
        "sasv-scores",
        "ASVspoof 5 track 2: spk, filename, cm-score, asv-score, sasv-score",
        ("target", "item", "score"),
        True,
    ),
    Layout("sasv-key", "ASVspoof 5 track 2 key: spk, filename, cm-label, asv-label", ("target", "item", "label"), True),
    Layout("table", "any CSV, TSV, JSON lines or Parquet file with names of columns", ("item", "label", "score"), True),
    Layout("asvspoof5-protocol", "the ten columns of an ASVspoof 5 protocol, no header", PROTOCOL),
    Layout(
        "asvspoof2019-protocol",
        "speaker, item, environment, attack, label",
        ("speaker", "item", "environment", "attack", "label"),
    ),
    Layout(
        "asvspoof2021-key",
        "speaker, item, codec, transmission, attack, label, trim, subset",
        ("speaker", "item", "codec", "transmission", "attack", "label", "trim", "subset"),
    ),
    Layout(
        "asvspoof2021-df-key",
        "speaker, item, codec, source, attack, label, trim, subset, vocoder, task, team, gender_pair, language",
        (
            *("speaker", "item", "codec", "source", "attack", "label", "trim", "subset", "vocoder", "task", "team"),
            *("gender_pair", "language"),
        ),
    ),
    Layout(
        "asvspoof2021-pa-key",
        "speaker, item, room, microphone, distance, the attacker's room and microphone, replay device, distance, label, …",
        (
            *("speaker", "item", "room", "microphone", "distance", "attack_room", "attack_microphone"),
            *("replay_device", "attack_to_speaker", "label", "trim", "subset"),
        ),
    ),
    Layout("asvspoof2019-key", "source, item, attack, label", ("source", "item", "attack", "label")),
    Layout(UNPAIRED, "`- - real 0.85`: label and score without an id", ("", "", "label", "score")),
    Layout("item-attack-label-score", "utterance, attack, label, score", ("item", "attack", "label", "score")),
    Layout("speaker-item-score-label", "speaker, utterance, score, label", ("speaker", "item", "score", "label")),
    Layout("item-score-label", "utterance, score, label", ("item", "score", "label")),
    Layout("item-label-score", "utterance, label, score", ("item", "label", "score")),
    Layout("item-score", "utterance, score", ("item", "score")),
    Layout("item-label", "utterance, label", ("item", "label")),
)


def find_expanding(options: ReadSpec) -> Layout | None:
    """Return the layout that the options name, if it turns nested rows into flat ones."""
    reader = registry.find("reader", options.layout) if options.layout is not None else None
    return reader if isinstance(reader, Layout) and reader.expand is not None else None


def find_positional(rows: Sequence[Row], need: str) -> Layout | None:
    """Return the first layout without a header that fits the rows.

    >>> find_positional([("-", "-", "real", "0.85"), ("-", "-", "fake", "0.2")], "score").name
    'unpaired'
    >>> find_positional([("E_1", "0.85")], "score").name
    'item-score'
    """
    return next((layout for layout in LAYOUTS if layout.fits(rows, need)), None)


def is_number(text: str) -> bool:
    """Return whether a cell is meant as a number; includes `0,5` and `1.2.3`, which are refused later by name.

    >>> is_number("-0.5e-3"), is_number("NaN"), is_number("info"), is_number("2nd")
    (True, True, False, False)
    """
    return NUMBER.fullmatch(text.strip()) is not None


def _looks_like(ours: str, cells: Sequence[str], need: str) -> bool:
    """Return whether most cells of a column fit the layout; each cell is checked later.

    Beside a score, 0 and 1 could be labels or scores: only words are accepted as labels there.
    """
    if ours == "score":
        return 2 * sum(map(is_number, cells)) > len(cells)
    if ours == "label":
        return 2 * sum(is_word(cell) or (need == "label" and code_of(cell) is not None) for cell in cells) > len(cells)
    return ours != "" or all(cell == "-" for cell in cells)
