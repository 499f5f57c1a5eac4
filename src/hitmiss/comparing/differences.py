"""The rows of a comparison: differences between two runs, the pairs on which their decisions differ, and what to worry about."""

from __future__ import annotations

import html
import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from hitmiss import artifacts
from hitmiss.design import Design
from hitmiss.errors import UsageError
from hitmiss.results import SCHEMA, finite
from hitmiss.values import DIGITS, END_DIGITS, steady

if TYPE_CHECKING:
    import pandas as pd

A_BETTER, B_BETTER, NO_DIFFERENCE, IDENTICAL = "A better", "B better", "no difference shown", "identical"
ALL, WRONG, BOTH = "all answered", "abstention = wrong", "both answered"
"""Readings of abstentions in McNemar's test; the first where there are none."""
NOT_TESTED, UNDEFINED = "not tested", "undefined"


@dataclass(frozen=True)
class Difference:
    """One metric in one slice: the figures of both runs, B − A, its interval and test, and who does better how often.

    `wins`, `ties` and `losses` count the pairs that B answers better, as well and worse (for an average: the slices).
    `mdd` is the least true difference that so many pairs would show (80 % power). None where something is undefined;
    `note` then says why.
    """

    metric: str
    a: float | None
    b: float | None
    delta: float | None
    low: float | None = None
    high: float | None = None
    p_value: float | None = None
    p_adjusted: float | None = None
    test: str | None = None
    n_pairs: int = 0
    n_positive: int = 0
    wins: int = 0
    ties: int = 0
    losses: int = 0
    mdd: float | None = None
    verdict: str = UNDEFINED
    slice: Mapping[str, str] = field(default_factory=dict)
    average: str | None = None
    note: str | None = None
    best: str = "low"

    def __post_init__(self) -> None:
        for end in ("low", "high"):
            object.__setattr__(self, end, steady(getattr(self, end), END_DIGITS))


DIGITS_OF: Final[Mapping[str, int]] = {
    **dict.fromkeys(("a", "b", "delta", "value"), DIGITS),
    **dict.fromkeys(("mdd", "p_value", "p_adjusted", "p_exact", "p_mid"), END_DIGITS),
}
"""Fields of a row whose last digits differ between processors, and how many are kept."""


def told(row: Any) -> dict[str, Any]:
    """A row as JSON can hold it, with the digits that are the same on every processor."""
    return {k: finite(steady(v, DIGITS_OF[k]) if k in DIGITS_OF else v) for k, v in asdict(row).items()}


def judged(row: Difference, level: float) -> Difference:
    """The row with the verdict that its adjusted p value allows."""
    if row.delta is None:
        return row
    is_alike = row.delta == 0.0 and not row.wins and not row.losses
    if row.p_adjusted is None:  # alike answers are so without a test, where the pairs were looked at
        return replace(row, verdict=IDENTICAL if is_alike and row.ties else NOT_TESTED)
    if is_alike:
        return replace(row, verdict=IDENTICAL)
    if row.p_adjusted >= 1.0 - level or row.delta == 0.0:
        return replace(row, verdict=NO_DIFFERENCE)
    return replace(row, verdict=B_BETTER if (row.delta > 0.0) == (row.best == "high") else A_BETTER)


@dataclass(frozen=True)
class Discordance:
    """McNemar's table of one slice under one reading of abstentions.

    `abstention = wrong`: every pair, and what was not answered is not right (`all answered` where that is no question). `both answered`: only pairs with two answers.
    `p_exact` is two-sided, `p_mid` the mid-p beside it; both None where trials are not independent.
    """

    reading: str
    n_pairs: int
    both_right: int
    only_a: int
    only_b: int
    both_wrong: int
    p_exact: float | None = None
    p_mid: float | None = None
    p_adjusted: float | None = None
    slice: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Comparison:
    """Two runs on the same questions, as frozen rows with the signature that pins how they were made."""

    names: tuple[str, str]
    differences: tuple[Difference, ...]
    discordances: tuple[Discordance, ...] = ()
    signature: str = ""
    warnings: tuple[str, ...] = ()
    level: float = 0.95
    correction: str = "holm"
    protocol: str | None = None
    design: Design | None = field(default=None, repr=False)
    """What was asked, and how each run was read."""

    def __iter__(self) -> Iterator[Difference]:
        return iter(self.differences)

    def __len__(self) -> int:
        return len(self.differences)

    def one(self, metric: str, *, average: str | None = None, **cell: str) -> Difference:
        """The one difference of a metric in a slice; an error where there is none."""
        found = [d for d in self if d.metric == metric and d.average == average and dict(d.slice) == cell]
        if len(found) != 1:
            known = sorted({d.metric for d in self})
            raise UsageError(
                f"{len(found)} differences of {metric!r} for average={average!r}, {cell}; metrics: {known}"
            )
        return found[0]

    def to_dict(self) -> dict[str, Any]:
        """The JSON form: `{"schema": 1, "kind": "comparison", "a": …, "b": …, "differences": [{…}], "mcnemar": [{…}]}`."""
        return {
            "schema": SCHEMA,
            "kind": "comparison",
            "signature": self.signature,
            "protocol": self.protocol,
            "a": self.names[0],
            "b": self.names[1],
            "level": self.level,
            "correction": self.correction,
            "warnings": list(self.warnings),
            "design": self.design.to_plain() if self.design is not None else None,
            "differences": [told(d) for d in self],
            "mcnemar": [told(d) for d in self.discordances],
        }

    def to_json(self, indent: int | None = 1) -> str:
        """The JSON form as text."""
        return json.dumps(artifacts.sealed(self.to_dict()), indent=indent, ensure_ascii=False, allow_nan=False)

    def save(self, path: str | Path) -> None:
        """Write the JSON form."""
        artifacts.write(path, self.to_json() + "\n")

    def to_polars(self) -> pl.DataFrame:
        """One row a difference; slices as columns of their own."""
        names = sorted({k for d in self for k in d.slice})
        rows = [{**asdict(d), **{k: d.slice.get(k) for k in names}} for d in self]
        for row in rows:
            del row["slice"]
        return pl.DataFrame(rows, infer_schema_length=None)

    def to_pandas(self) -> pd.DataFrame:
        """One row a difference, as a pandas frame (needs pandas)."""
        import pandas as pd

        return pd.DataFrame(self.to_polars().to_dicts())

    def __str__(self) -> str:
        lines = [f"{_named(d)} {_number(d.delta)} {_interval(d)} {d.verdict}" for d in self]
        return "\n".join([*lines, *(f"warning: {w}" for w in self.warnings), self.signature]).strip()

    def _repr_html_(self) -> str:
        header = ("metric", "slice", *self.names, "B − A", "interval", "p", "adjusted p", "test", "pairs", "verdict")
        rows = "".join(_html_row([_cell(t) for t in _texts(d)], "td") for d in self)
        warnings = "".join(f"<p>⚠ {html.escape(w)}</p>" for w in self.warnings)
        head = _html_row([_cell(t) for t in header], "th")
        signature = f"<p><code>{html.escape(self.signature)}</code></p>"
        return f"{warnings}<table><thead>{head}</thead><tbody>{rows}</tbody></table>{signature}"


def _texts(d: Difference) -> tuple[str, ...]:
    where = ", ".join(f"{k}={v}" for k, v in d.slice.items()) or (d.average or "all")
    figures = (_number(d.a), _number(d.b), _number(d.delta), _interval(d), p_text(d.p_value), p_text(d.p_adjusted))
    return (d.metric, where, *figures, d.test or "", str(d.n_pairs), d.verdict)


def _cell(text: str) -> str:
    return html.escape(text)


def _html_row(cells: list[str], tag: str) -> str:
    return f"<tr>{''.join(f'<{tag}>{c}</{tag}>' for c in cells)}</tr>"


def _named(d: Difference) -> str:
    where = ", ".join(f"{k}={v}" for k, v in d.slice.items())
    return " ".join(filter(None, (d.average, d.metric, f"[{where}]" if where else "")))


def _number(value: float | None) -> str:
    return "undefined" if value is None else f"{value:.4f}"


def _interval(d: Difference) -> str:
    return f"[{d.low:.4f}, {d.high:.4f}]" if d.low is not None and d.high is not None else ""


def p_text(p: float | None) -> str:
    """A p value as tables show it.

    >>> p_text(0.0369), p_text(7.476e-59), p_text(0.0), p_text(1.0), p_text(None)
    ('0.0369', '7.5e-59', '<1e-300', '1', '–')
    """
    if p is None:
        return "–"
    if p < 1e-300:
        return "<1e-300"
    return "1" if p == 1.0 else f"{p:.4f}" if p >= 0.0001 else f"{p:.1e}"
