"""The rows of a comparison: differences between two runs, the pairs on which their decisions differ, and warnings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar, Final

from hitmiss.core.design import Design
from hitmiss.core.errors import UsageError
from hitmiss.core.metric import Best
from hitmiss.core.rates import DIGITS, END_DIGITS, round_number
from hitmiss.core.results import SCHEMA, finite, warning_fields
from hitmiss.core.rows import Named, one_named
from hitmiss.engine.judged_rows import JudgedRows

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


A_BETTER, B_BETTER, NO_DIFFERENCE, IDENTICAL = "A better", "B better", "no difference shown", "identical"
ALL, WRONG, BOTH = "all answered", "abstention = wrong", "both answered"
"""How abstentions are counted in McNemar's test; the first is used if there are no abstentions."""
NOT_TESTED, UNDEFINED = "not tested", "undefined"


@dataclass(frozen=True)
class Difference(Named):
    """One metric in one slice: the numbers of both runs, B − A with interval and test, and how often each is better.

    `wins`, `ties` and `losses` count the pairs that B answers better, as well and worse (for an average: the slices).
    `mdd` is the minimum detectable difference: the least true difference that this many pairs would show (80 % power).
    A field is None if it is undefined; `note` then says why.
    """

    _USUAL: ClassVar[Mapping[str, str]] = {"p": "p_value", "difference": "delta", "ci": "low and high"}

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
    best: Best = "low"

    def __post_init__(self) -> None:
        for end in ("low", "high"):
            object.__setattr__(self, end, round_number(getattr(self, end), END_DIGITS))


DIGITS_OF: Final[Mapping[str, int]] = {
    **dict.fromkeys(("a", "b", "delta", "value"), DIGITS),
    **dict.fromkeys(("mdd", "p_value", "p_adjusted", "p_exact", "p_mid"), END_DIGITS),
}
"""Fields of a row whose last digits differ between processors, and how many digits are kept."""


def row_as_dict(row: DataclassInstance) -> dict[str, object]:
    """Return a row as JSON can hold it, with only the digits that are the same on every processor."""
    return {k: finite(round_number(v, DIGITS_OF[k]) if k in DIGITS_OF else v) for k, v in asdict(row).items()}


def judged(row: Difference, level: float) -> Difference:
    """Return the row with the verdict that follows from its adjusted p value."""
    if row.delta is None:
        return row
    is_alike = row.delta == 0.0 and not row.wins and not row.losses
    if row.p_adjusted is None:  # no test is needed to see that the answers are equal, if the pairs were compared
        return replace(row, verdict=IDENTICAL if is_alike and row.ties else NOT_TESTED)
    if is_alike:
        return replace(row, verdict=IDENTICAL)
    if row.p_adjusted >= 1.0 - level or row.delta == 0.0:
        return replace(row, verdict=NO_DIFFERENCE)
    return replace(row, verdict=B_BETTER if (row.delta > 0.0) == (row.best == "high") else A_BETTER)


@dataclass(frozen=True)
class Discordance:
    """McNemar's table of one slice under one way to count abstentions.

    `abstention = wrong` uses every pair, and a question without an answer counts as wrong (`all answered` if there are
    no abstentions). `both answered` uses only pairs with two answers. `p_exact` is two-sided, `p_mid` is the mid-p
    value; both are None if trials are not independent.
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
class Comparison(JudgedRows[Difference]):
    """A comparison of two runs on the same questions: immutable rows, with a signature that records how they were made.

    Parameters
    ----------
    names
        The names of run A and run B.
    differences
        One `Difference` per metric and slice.
    discordances
        McNemar's tables.
    signature
        One line that records every choice behind the comparison.
    warnings
        What a reader of the comparison should know.
    level
        The level of the intervals.
    correction
        How p values were adjusted for multiple tests.
    protocol
        The name of the protocol, if one was used.
    design
        What was asked, and how each run was read.
    """

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

    @property
    def _rows(self) -> tuple[Difference, ...]:
        return self.differences

    def __getitem__(self, key: int | str | tuple[object, ...]) -> Difference:
        """Return a difference by its place or its name: `comparison["eer"]`, `comparison["eer", "codec=C01"]`."""
        return self.differences[key] if isinstance(key, int) else one_named(self.differences, key)

    def one(self, metric: str, *, average: str | None = None, **cell: str) -> Difference:
        """Return the single difference of a metric in a slice; an error if there is none or more than one."""
        found = [d for d in self if d.metric == metric and d.average == average and dict(d.slice) == cell]
        if len(found) != 1:
            known = sorted({d.metric for d in self})
            raise UsageError.of(
                "not-one-row", n=len(found), what="differences", metric=metric, average=average, cell=cell, known=known
            )
        return found[0]

    def to_dict(self) -> dict[str, object]:
        """Return the JSON form.

        It is `{"schema": 1, "kind": "comparison", "a": …, "b": …, "differences": [{…}], "mcnemar": [{…}]}`.
        """
        return {
            "schema": SCHEMA,
            "kind": "comparison",
            "signature": self.signature,
            "protocol": self.protocol,
            "a": self.names[0],
            "b": self.names[1],
            "level": self.level,
            "correction": self.correction,
            **warning_fields(self.warnings),
            "design": self.design.to_plain() if self.design is not None else None,
            "differences": [row_as_dict(d) for d in self],
            "mcnemar": [row_as_dict(d) for d in self.discordances],
        }

    def __str__(self) -> str:
        lines = [f"{_named(d)} {_number(d.delta)} {_interval(d)} {d.verdict}" for d in self]
        return "\n".join([*lines, *(f"warning: {w}" for w in self.warnings), self.signature]).strip()

    def __repr__(self) -> str:
        metrics = ", ".join(dict.fromkeys(d.metric for d in self))
        return f"<Comparison: {self.names[1]} against {self.names[0]}, {len(self):,} differences of {metrics or 'nothing'}>"


def _named(d: Difference) -> str:
    where = ", ".join(f"{k}={v}" for k, v in d.slice.items())
    return " ".join(filter(None, (d.average, d.metric, f"[{where}]" if where else "")))


def _number(value: float | None) -> str:
    return "undefined" if value is None else f"{value:.4f}"


def _interval(d: Difference) -> str:
    return f"[{d.low:.4f}, {d.high:.4f}]" if d.low is not None and d.high is not None else ""
