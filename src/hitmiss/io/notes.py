"""What the door does to scores when told to, and what it says about trials that are sound but odd."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import polars as pl

from hitmiss.columns import shown
from hitmiss.io.findings import Ledger
from hitmiss.readspec import OnNan
from hitmiss.trials import Header, Trials

SATURATED: Final = 0.01
"""Share of scores at exactly 0 or 1 above which a note is due."""
SHOWN_VALUES: Final = 20


def settle_nan(frame: pl.DataFrame, rule: OnNan, ledger: Ledger) -> pl.DataFrame:
    """Drop trials without a score, or give each the worst score for its own class, as the caller has chosen."""
    if rule == "refuse" or not frame["score"].is_nan().any():
        return frame
    nan = pl.col("score").is_nan()
    ledger.choices.append(f"on-nan:{rule}({frame.select(nan.sum()).item()})")
    if rule == "drop":
        return frame.filter(~nan)
    worst = pl.when(pl.col("label") == 1).then(-float("inf")).otherwise(float("inf"))
    return frame.with_columns(score=pl.when(nan).then(worst).otherwise(pl.col("score")))


def turn_round(frame: pl.DataFrame, header: Header, ledger: Ledger) -> pl.DataFrame:
    """Make higher mean positive: the sign changes, or p becomes 1 - p, and a note says so."""
    is_probability = header.score_kind == "probability"
    score = frame["score"]
    turned = 1 - score if is_probability else -score
    how = "1 - p" if is_probability else "their sign changed"
    note = f"a higher score meant {header.negative} in the file: the scores were turned round ({how})"
    lost = score.n_unique() - turned.n_unique()
    if lost > 0:
        note += f"; {lost:,} distinct scores became equal to others by rounding, so give log-odds if there are any"
    ledger.notes.append(note)
    ledger.choices.append(f"higher:{header.negative}")
    return frame.with_columns(turned.alias("score"))


def note_oddities(frame: pl.DataFrame, header: Header, ledger: Ledger) -> None:
    """One class only, infinite scores, a constant score, probabilities that stick to the ends."""
    positive = int(frame["label"].sum())
    if frame.height and positive in (0, frame.height):
        name = header.positive if positive else header.negative
        ledger.notes.append(f"all {frame.height:,} trials are {name}: nothing that compares the classes is defined")
    if "score" not in frame.columns or not frame.height:
        return
    s = pl.col("score")
    facts = (
        s.min().alias(":low"),
        s.max().alias(":high"),
        s.is_infinite().sum().alias(":inf"),
        ((s == 0) | (s == 1)).mean().alias(":ends"),
        pl.len().alias(":n"),
    )
    runs = list(header.runs)
    table = frame.group_by(runs, maintain_order=True).agg(*facts) if runs else frame.select(*facts)
    for row in table.iter_rows(named=True):
        who = "".join(f"{shown(name)} {row[name]}: " for name in runs)
        ledger.notes += [who + note for note in _score_notes(row, header)]


def _score_notes(row: dict[str, Any], header: Header) -> list[str]:
    found = []
    if row[":low"] == row[":high"] and row[":n"] > 1:
        found.append(f"all {row[':n']:,} scores are {row[':low']!r}: they do not tell the classes apart")
    if row[":inf"]:
        found.append(
            f"{row[':inf']:,} scores are infinite: metrics of the order are defined, those of the value are not"
        )
    if header.score_kind == "probability" and row[":ends"] > SATURATED:
        found.append(
            f"{row[':ends']:.1%} of the probabilities are exactly 0 or 1, so their order is lost; give log-odds if there are any"
        )
    return found


def sealed(header: Header, ledger: Ledger) -> Header:
    """The header with everything that was noted and chosen on the way."""
    return replace(header, notes=tuple(dict.fromkeys(ledger.notes)), choices=tuple(ledger.choices))


def summary(trials: Trials) -> dict[str, Any]:
    """Counts for a person to check: trials, classes, runs, slices with their commonest values."""
    head, frame = trials.header, trials.frame
    counted = {name: frame[name].value_counts(sort=True, name=":n") for name in (*head.runs, *head.slices)}
    values = {name: dict(zip(c[name].to_list(), c[":n"].to_list(), strict=True)) for name, c in counted.items()}
    told = {name: {"values": len(c), "commonest": dict(list(c.items())[:SHOWN_VALUES])} for name, c in values.items()}
    return {
        "trials": len(trials),
        "classes": {head.positive: trials.n_positive, head.negative: len(trials) - trials.n_positive},
        "positive": head.positive,
        "score_kind": head.score_kind,
        "runs": {shown(name): told[name] for name in head.runs},
        "slices": {shown(name): told[name] for name in head.slices},
        "numbers": list(map(shown, head.numbers)),
        "coverage": list(head.coverage) if head.coverage else None,
    }
