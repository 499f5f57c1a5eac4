"""People's verdicts on items, from the file that `hitmiss review --export` writes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import polars as pl

from hitmiss.core.classes import same_class
from hitmiss.core.errors import DataError, Fault
from hitmiss.core.finding import Finding
from hitmiss.core.header import Source
from hitmiss.core.kinds import ABSTAIN
from hitmiss.io.cells import amount_in
from hitmiss.io.text_rows import TextRows, read_rows
from hitmiss.io.verdicts import UNCERTAIN, read_verdict

HUMAN: Final = "human"
ADJUDICATION: Final = "adjudication"
NEEDED: Final = ("id", "model", "trial", "prediction")


@dataclass(frozen=True, eq=False)
class PeoplesVerdicts:
    """People's verdicts: item, reviewer, decision (1, 0, or -1 for "cannot tell"), seconds, adjudicated.

    `per_item` is the number of verdicts that each item should have; an item with fewer is not finished.
    """

    frame: pl.DataFrame
    per_item: int
    source: Source | None = None

    @property
    def reviews(self) -> pl.DataFrame:
        """The verdicts of reviewers."""
        return self.frame.filter(~pl.col("adjudicated"))

    @property
    def adjudications(self) -> pl.DataFrame:
        """The decisions of adjudicators."""
        return self.frame.filter(pl.col("adjudicated"))


def read_verdicts(source: object, positive: str = "fake", negative: str = "real") -> PeoplesVerdicts:
    """Read the verdicts in a file; refuse an unknown word, or a second verdict of one person on an item."""
    rows = read_rows(source)
    missing = [name for name in NEEDED if name not in rows.frame.columns]
    if missing:
        raise DataError.of("missing-column/review", rows_name=rows.name, missing=missing[0])
    texts = rows.frame
    _refuse(
        rows, ~texts["model"].is_in([HUMAN, ADJUDICATION]), "model", f"the model is neither {HUMAN} nor {ADJUDICATION}"
    )
    codes = [_code(text, positive, negative) for text in texts["prediction"]]
    wrong = pl.Series([code is None for code in codes], dtype=pl.Boolean)
    _refuse(rows, wrong, "prediction", f"the verdict is none of {negative}, {positive}, {UNCERTAIN}")
    frame = pl.DataFrame(
        {
            "item": texts["id"],
            "reviewer": texts["trial"],
            "decision": pl.Series(codes, dtype=pl.Int8),
            "seconds": _seconds(rows, "latency_seconds"),
            "adjudicated": texts["model"] == ADJUDICATION,
        }
    )
    twice = frame.select(again=pl.struct("item", "reviewer", "adjudicated").is_duplicated())["again"]
    _refuse(rows, twice, "id", "one person has two verdicts on the item")
    over = frame.select(again=pl.col("adjudicated") & pl.struct("item", "adjudicated").is_duplicated())["again"]
    _refuse(rows, over, "id", "two adjudicators have decided on the item")
    per_item = _per_item(rows)
    many = frame.select(n=(~pl.col("adjudicated")).sum().over("item"))["n"] > per_item
    _refuse(rows, many, "id", f"the item has more verdicts than the {per_item} that were asked for")
    return PeoplesVerdicts(frame, per_item, Source(rows.name, rows.sha256) if rows.sha256 else None)


def _code(text: str, positive: str, negative: str) -> int | None:
    plain = " ".join(text.split())
    if plain == positive or same_class(plain.lower(), positive):
        return 1
    if plain == negative or same_class(plain.lower(), negative):
        return 0
    said = read_verdict(text)
    if said == UNCERTAIN:
        return ABSTAIN
    return next((c for c, name in ((1, positive), (0, negative)) if said is not None and same_class(said, name)), None)


def _seconds(rows: TextRows, name: str) -> pl.Series:
    """Return durations, null if absent; what is no duration is refused."""
    texts = rows.frame
    if name not in texts.columns:
        return pl.Series(name, [None] * texts.height, dtype=pl.Float64)
    found = [amount_in(cell, is_seconds=True) for cell in texts[name]]
    wrong = pl.Series([why != "" for _, why in found], dtype=pl.Boolean)
    _refuse(rows, wrong, name, "it is not a number of seconds from 0", "bad-number")
    return pl.Series(name, [seconds for seconds, _ in found], dtype=pl.Float64)


def _per_item(rows: TextRows) -> int:
    """Return how many verdicts an item should have; if the file does not say, the largest number that any item has."""
    if "per_item" not in rows.frame.columns:
        people = rows.frame.filter(pl.col("model") == HUMAN)
        return int(people.group_by("id").len()["len"].max() or 1)  # type: ignore[arg-type]
    said = rows.frame["per_item"].unique().to_list()
    if len(said) != 1 or not said[0].isdecimal() or int(said[0]) < 1:
        raise DataError.of("mixed-reviews", rows_name=rows.name, said=tuple(sorted(said)))
    return int(said[0])


def _refuse(rows: TextRows, wrong: pl.Series, column: str, message: str, kind: str = "bad-verdict") -> None:
    """Refuse the rows for which `wrong` holds, each with its line."""
    at: Sequence[int] = wrong.arg_true().to_list()
    if at:
        cells = rows.frame[column]
        faults = [Fault(kind, message, rows.name, rows.line(i), column, cells[i]) for i in at]
        found = Finding("unusable-verdicts", values={"n": len(at), "file": rows.name, "why": message})
        raise DataError.coded(found, kind).with_faults(faults)
