"""Changes to scores that the caller asks for, and notes about trials that are valid but unusual."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import polars as pl

from hitmiss.core.classes import Reading, same_class
from hitmiss.core.columns import user_name
from hitmiss.core.errors import UnknownName, UsageError
from hitmiss.core.finding import Remark
from hitmiss.core.header import Header
from hitmiss.core.kinds import ScoreKind
from hitmiss.core.read_spec import OnNan, ReadSpec
from hitmiss.core.scale import ScoreScale
from hitmiss.core.text import quoted
from hitmiss.io.aliases import (
    class_of_score,
)
from hitmiss.io.diagnostics import Diagnostics

SATURATED: Final = 0.01
"""Share of scores at exactly 0 or 1 above which a note is added."""


def apply_nan_rule(
    frame: pl.DataFrame, rule: OnNan, kind: ScoreKind, ledger: Diagnostics, *, is_turned: bool = False
) -> pl.DataFrame:
    """Drop trials without a score, or give each the worst score for its own class, as the caller has chosen.

    `is_turned`: here a higher score means the negative class; the scores are reversed later.
    """
    if not frame["score"].is_nan().any():
        return frame
    nan = pl.col("score").is_nan()
    ledger.choices.append(f"on-nan:{rule}({frame.select(nan.sum()).item()})")
    if rule == "drop":
        return frame.filter(~nan)
    low, high = worst_scores(kind)
    low, high = (high, low) if is_turned else (low, high)
    worst = pl.when(pl.col("label") == 1).then(low).otherwise(high)
    return frame.with_columns(score=pl.when(nan).then(worst).otherwise(pl.col("score")))


def drop_missing(frame: pl.DataFrame, options: ReadSpec, ledger: Diagnostics) -> pl.DataFrame:
    """Leave out the rows without a label or a score, and count them."""
    has_score = (
        pl.col("score").is_not_nan() if "score" in frame.columns and options.nan_rule != "worst" else pl.lit(True)
    )
    kept = frame.filter(pl.col("label").is_not_null() & has_score)
    if not kept.height:
        raise UsageError.of("no-rows/lacking")
    if kept.height < frame.height:
        dropped = frame.height - kept.height
        ledger.notes.append(Remark.of("rows-dropped", n=dropped))
        ledger.choices.append(f"missing:drop({dropped})")
    return kept


def worst_scores(kind: ScoreKind | None) -> tuple[float, float]:
    """Return the lowest and the highest possible score of a kind."""
    return (0.0, 1.0) if kind == "probability" else (-float("inf"), float("inf"))


def reversed_note(header: Header) -> str:
    """Return the note that a higher score meant the negative class."""
    how = "1 - p" if header.score_kind == "probability" else "their sign changed"
    return f"a higher score meant {header.negative} in the file: the scores were reversed ({how})"


def negate_scores(frame: pl.DataFrame, header: Header, ledger: Diagnostics) -> tuple[pl.DataFrame, ScoreScale]:
    """Make a higher score mean positive (change the sign, or replace p by 1 - p), add a note, and return the scale."""
    scale = ScoreScale(is_reversed=True, is_probability=header.score_kind == "probability")
    score = frame["score"]
    turned = scale.turned(score)
    note = reversed_note(header)
    lost = score.n_unique() - turned.n_unique()
    if lost > 0:
        note += f"; {lost:,} distinct scores became equal to others by rounding, so give log-odds if there are any"
    ledger.notes.append(note)
    ledger.choices.append(f"higher:{header.negative}")
    return frame.with_columns(turned.alias("score")), scale


_S: Final = pl.col("score")
FACTS: Final = (
    _S.min().alias(":low"),
    _S.max().alias(":high"),
    _S.is_infinite().sum().alias(":inf"),
    ((_S == 0) | (_S == 1)).mean().alias(":ends"),
    pl.len().alias(":n"),
)
"""What notes about scores quote."""


def note_oddities(
    frame: pl.DataFrame, header: Header, ledger: Diagnostics, facts: Sequence[pl.Expr] = FACTS, n: pl.Expr | None = None
) -> None:
    """Note a single class, infinite scores, a constant score, and probabilities that cluster at 0 or 1.

    `n` is how many trials each row counts for, and `facts` what is read from the rows then.
    """
    label = pl.col("label").cast(pl.Int64)
    total, positive = frame.select(
        pl.len() if n is None else n.sum(), label.sum() if n is None else (label * n).sum()
    ).row(0)
    if total and positive in (0, total) and not header.graded_by:
        name = header.positive if positive else header.negative
        ledger.notes.append(Remark.of("one-class-only", n=total, name=name))
    if "score" not in frame.columns or not total:
        return
    runs = list(header.runs)
    table = frame.group_by(runs, maintain_order=True).agg(*facts) if runs else frame.select(*facts)
    for row in table.iter_rows(named=True):
        who = "".join(f"{user_name(name)} {row[name]}: " for name in runs)
        ledger.notes += [who + note for note in _score_notes(row, header)]


def _score_notes(row: Mapping[str, float], header: Header) -> list[str]:
    found = []
    if row[":low"] == row[":high"] and row[":n"] > 1:
        found.append(f"all {row[':n']:,} scores are {row[':low']!r}: they do not separate the classes")
    if row[":inf"]:
        found.append(
            f"{row[':inf']:,} scores are infinite: metrics of the order are defined, those of the value are not"
        )
    if header.score_kind == "probability" and row[":ends"] > SATURATED:
        found.append(
            f"{row[':ends']:.1%} of the probabilities are exactly 0 or 1, so their order is lost; give log-odds if there are any"
        )
    return found


def refuse_other_direction(column: str, reading: Reading) -> None:
    """Refuse scores whose column is named after the negative class, where nobody says what a higher score means."""
    named = class_of_score(column)
    if named is None or reading.choices or not same_class(named, reading.negative):
        return
    if same_class(named, reading.positive):
        return
    raise UsageError.of("score-direction", column=quoted(column), named=named, positive=reading.positive).settled_by(
        ({"higher": named}, {"positive": named})
    )


def is_reversed(header: Header | Reading, higher: str) -> bool:
    """Return whether a higher score means the negative class."""
    if same_class(higher, header.positive):
        return False
    if same_class(higher, header.negative):
        return True
    raise UnknownName("class for a higher score", higher, (header.positive, header.negative))
