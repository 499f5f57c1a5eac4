"""The layouts of files that need no words from the caller: by position where there is no header, else by name."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from hitmiss.io.words import CODES, is_word

Row = tuple[str, ...]
NUMBER: Final = re.compile(r"[-+]?(\.?\d[\d.,]*(e[-+]?\d+)?|nan|inf(inity)?)", re.IGNORECASE)
UNPAIRED: Final = "unpaired"


@dataclass(frozen=True)
class Layout:
    """A layout: its name, one line about it, and our names of its columns in order ("" for one that says nothing)."""

    name: str
    title: str
    columns: Row
    has_header: bool = False

    def fits(self, rows: Sequence[Row], need: str) -> bool:
        """Whether rows without a header have this layout; `need` (score or label) must be among its columns."""
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
        "speaker, item, rooms, microphones and distances, label, trim, subset",
        (
            *("speaker", "item", "room", "microphone", "distance", "attack_room", "attack_microphone"),
            *("attack_distance", "attack_to_speaker", "label", "trim", "subset"),
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


def find_positional(rows: Sequence[Row], need: str) -> Layout | None:
    """The first layout without a header that the rows have.

    >>> find_positional([("-", "-", "real", "0.85"), ("-", "-", "fake", "0.2")], "score").name
    'unpaired'
    >>> find_positional([("E_1", "0.85")], "score").name
    'item-score'
    """
    return next((layout for layout in LAYOUTS if layout.fits(rows, need)), None)


def is_number(text: str) -> bool:
    """Whether a cell was meant as a number: also `0,5` and `1.2.3`, which the door will refuse by name.

    >>> is_number("-0.5e-3"), is_number("NaN"), is_number("info"), is_number("2nd")
    (True, True, False, False)
    """
    return NUMBER.fullmatch(text.strip()) is not None


def _looks_like(ours: str, cells: Sequence[str], need: str) -> bool:
    """Whether most cells of a column can be what the layout says; the door judges each of them later.

    Beside a score, 0 and 1 could be labels or scores: only words tell which.
    """
    if ours == "score":
        return 2 * sum(map(is_number, cells)) > len(cells)
    if ours == "label":
        return 2 * sum(is_word(cell) or (need == "label" and cell in CODES) for cell in cells) > len(cells)
    return ours != "" or all(cell == "-" for cell in cells)
