"""Results as a review reads them: the id of each row and the system's answer. Labels are not needed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final

import polars as pl

from hitmiss.claims.open import split_choice
from hitmiss.core.classes import same_class
from hitmiss.core.design import Bands
from hitmiss.core.errors import DataError, UnknownName, UsageError
from hitmiss.core.header import Header
from hitmiss.core.read_spec import ReadSpec
from hitmiss.io.scores import is_reversed
from hitmiss.io.text_rows import read_rows
from hitmiss.io.triage import flatten
from hitmiss.io.verdicts import UNCERTAIN, read_verdict
from hitmiss.runs.manifest import MANIFEST, TABLE, require_complete, run_facts

IDS: Final = ("id", "item", "utt_id", "utt", "comment_id")
PICTURES: Final = ("image", "image_path")
FILES: Final = (*PICTURES, "audio", "audio_path", "ecg", "file", "filename", "path", "media")
UNPARSED, ERROR, ALL = "unparsed", "error", "all"
SAID: Final = ("prediction", "verdict", "analysis_verdict", "parsed_verdict")


@dataclass(frozen=True)
class Wish:
    """What is to be reviewed.

    verdicts   which verdicts of the system: uncertain, unparsed, error, a class, all
    items      these ids instead
    sample     how many of them, drawn with `seed`, which also determines the order
    thresholds two numbers that turn scores into verdicts, on the scale of the file
    higher     the class that a higher score means; the positive one if it is not said
    """

    verdicts: tuple[str, ...] = (UNCERTAIN, UNPARSED)
    items: tuple[str, ...] = ()
    sample: int | None = None
    seed: int = 0
    thresholds: tuple[float, float] | None = None
    positive: str | None = None
    negative: str | None = None
    higher: str | None = None
    media: str | None = None
    suffix: str = ""
    blind: bool = True
    allow_missing: bool = False


@dataclass(frozen=True, eq=False)
class Answered:
    """Rows of results: the id, the system's answer (a category), and the row itself as text."""

    frame: pl.DataFrame
    rows: list[dict[str, str]]
    name: str
    sha256: str
    folder: Path
    positive: str
    negative: str


def read_answered(run: str, wish: Wish) -> Answered:
    """Read the rows of a results file or a finished run, with a category each: a class, uncertain, unparsed, error."""
    path, cells = split_choice(run)
    place, facts = Path(path), None
    if (place / MANIFEST).is_file():
        facts = run_facts(require_complete(place))
        table = place / (facts.rows or TABLE)  # a run of `hitmiss llm` keeps its rows next to its table
    else:
        table = place
    texts = read_rows(table)
    positive = wish.positive or (facts and facts.positive) or "fake"
    negative = wish.negative or (facts and facts.negative) or "real"
    frame = _chosen_rows(texts.frame, cells, run)
    rows = frame.to_dicts()
    said = pl.DataFrame({"item": ids_of(rows, texts.name), "said": _categories(frame, wish, positive, negative)})
    name = place.name if facts else texts.name
    return Answered(said, rows, name, texts.sha256, place.parent, positive, negative)


def _chosen_rows(frame: pl.DataFrame, cells: Mapping[str, str], text: str) -> pl.DataFrame:
    """Return the rows that `results.jsonl[model=m,tools=yes]` selects, with `tools` as documented for triage."""
    for name, value in cells.items():
        column, wanted = name, value
        if name == "tools" and "use_tools" in frame.columns:
            column, wanted = "use_tools", {"tools": "true", "no-tools": "false"}.get(value, value)
        if column not in frame.columns:
            raise UnknownName(f"column in {text!r}", name, frame.columns)
        frame = frame.filter(pl.col(column) == wanted)
    if not frame.height:
        raise DataError.of("no-rows", text=text, cells=", ".join((f"{k}={v}" for k, v in cells.items())))
    if "target" in frame.columns and frame["target"].n_unique() > 1:
        several = ", ".join(sorted(frame["target"].unique())[:5])
        raise UsageError.of("several-questions", text=text, several=several, several_2=several.split(",")[0])
    return frame


def ids_of(rows: Sequence[Mapping[str, str]], name: str) -> list[str]:
    found = [item_id(row) for row in rows]
    if not all(found):
        raise DataError.of("no-id", name=name, IDS=tuple(IDS))
    return found


def item_id(row: Mapping[str, str]) -> str:
    """Return the id of a row: its own, the stem of its picture, or its file.

    >>> item_id({"image": "a/b.jpg"}), item_id({"file": "a/b.wav"}), item_id({"id": "7", "image": "x.png"})
    ('b', 'a/b.wav', '7')
    """
    own = next((row[name] for name in IDS if row.get(name)), "")
    picture = next((row[name] for name in PICTURES if row.get(name)), "")
    other = next((row[name] for name in FILES if row.get(name)), "")
    return own or (PurePosixPath(picture.replace("\\", "/")).stem if picture else other)


def _categories(frame: pl.DataFrame, wish: Wish, positive: str, negative: str) -> list[str]:
    """Return the system's answer for each row; empty where there is no answer and none is needed."""
    if wish.thresholds is not None:
        named = Header(positive, negative)
        return _by_scores(
            frame, Bands(*wish.thresholds), named, wish.higher is not None and is_reversed(named, wish.higher)
        )
    if any(name in frame.columns for name in SAID):
        flat = flatten(frame, ReadSpec()).frame
        errors, said, unparsed = flat["error"], flat["decision"], flat["unparsed"]
        return [
            ERROR if e else UNPARSED if u else _class(d, positive, negative)
            for e, d, u in zip(errors, said, unparsed, strict=True)
        ]
    if "decision" in frame.columns:
        return [_class(text, positive, negative) for text in frame["decision"]]
    if wish.items or ALL in wish.verdicts:
        return [""] * frame.height
    raise DataError.of("no-verdicts/review")


def _class(text: str, positive: str, negative: str) -> str:
    words = {"1": positive, "0": negative, "-1": UNCERTAIN, "": ERROR}
    if text in words:
        return words[text]
    said = read_verdict(text) or text
    return next((name for name in (positive, negative, UNCERTAIN) if said == name or same_class(said, name)), UNPARSED)


def _by_scores(frame: pl.DataFrame, bands: Bands, named: Header, is_negated: bool) -> list[str]:
    if "score" not in frame.columns:
        raise UsageError.of("missing-column/score")
    scores = frame["score"].cast(pl.Float64, strict=False)
    lacking = scores.fill_null(float("nan")).is_nan()
    if lacking.any():
        raise DataError.of("not-a-number/score", n_lacking=len(lacking.arg_true()))
    if is_negated:  # a higher score means the negative class: the same rule, seen from the other side
        return [named.positive if s <= bands.low else named.negative if s > bands.high else UNCERTAIN for s in scores]
    return [named.negative if s < bands.low else named.positive if s >= bands.high else UNCERTAIN for s in scores]
