"""Results: frozen rows, one number each, always the same shape whatever was asked."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any
from warnings import warn

import polars as pl

from hitmiss.core import artifacts
from hitmiss.core.errors import DataError, UsageError
from hitmiss.core.question import Design, ReadSpec
from hitmiss.core.shared import END_DIGITS, steady
from hitmiss.core.trials import Trials

if TYPE_CHECKING:
    import pandas as pd


SCHEMA = 1
"""Version of the JSON form; a reader of another version refuses."""
NUMBERS = ("value", "low", "high", "settings")
"""Fields in which the texts `inf` and `-inf` are numbers."""


@dataclass(frozen=True)
class Estimate:
    """One number: what, how sure, on how many trials, for which run and slice.

    `value` is None where it is undefined; `note` then says why. `of` is how many trials the figure is over, where it says
    (the denominator of a share). `title` is what a protocol calls the metric. `units` is how many units were drawn from,
    `units_effective` how many of equal size would say as much. `average` is None, `pooled`, `macro`, `worst` or `gap`.
    The ends keep 10 significant digits, and in JSON the value 13: what comes after differs between processors.
    """

    metric: str
    value: float | None
    low: float | None = None
    high: float | None = None
    n: int = 0
    n_positive: int = 0
    n_failed: int = 0
    run: Mapping[str, str] = field(default_factory=dict)
    slice: Mapping[str, str] = field(default_factory=dict)
    average: str | None = None
    method: str | None = None
    note: str | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    best: str = "low"
    of: float | None = None
    title: str | None = None
    units: int | None = None
    units_effective: float | None = None

    @property
    def shown(self) -> str:
        """What the metric is called in tables: the name that a protocol gives it, else its own."""
        return self.title or self.metric

    def __post_init__(self) -> None:
        for end in ("low", "high"):
            object.__setattr__(self, end, steady(getattr(self, end), END_DIGITS))

    @property
    def is_defined(self) -> bool:
        """Whether there is a number."""
        return self.value is not None

    def __str__(self) -> str:
        where = ", ".join(f"{k}={v}" for k, v in {**self.run, **self.slice}.items())
        return f"{self.metric}{f' [{where}]' if where else ''} = {number(self.value)}{interval(self)}"


UNUSED = "unit-not-used"
"""Code of the warning that data have a unit which was not drawn."""


class Remark(str):
    """A warning with a stable code; everywhere else a text like any other.

    >>> Remark("speakers were not drawn", "unit-not-used").code
    'unit-not-used'
    """

    code: str

    def __new__(cls, text: str, code: str) -> Remark:
        made = super().__new__(cls, text)
        made.code = code
        return made

    def __getnewargs__(self) -> tuple[str, str]:  # type: ignore[override]
        return str(self), self.code


def code_of(warning: str) -> str | None:
    """The code of a warning; None where it has none."""
    return warning.code if isinstance(warning, Remark) else None


def _coded(texts: Sequence[str], codes: Sequence[str | None]) -> tuple[str, ...]:
    """Warnings with the codes that a file has beside them."""
    known = [*codes, *[None] * (len(texts) - len(codes))]
    return tuple(text if code is None else Remark(text, code) for text, code in zip(texts, known, strict=False))


@dataclass(frozen=True)
class Results:
    """An immutable sequence of estimates with the signature that pins how they were made.

    >>> r = Results((Estimate("eer", 0.1, n=20, n_positive=8), Estimate("eer", None, slice={"codec": "C01"}, note="one class")))
    >>> r.one("eer").value
    0.1
    >>> r.one("eer", codec="C01").note
    'one class'
    """

    estimates: tuple[Estimate, ...]
    signature: str = ""
    warnings: tuple[str, ...] = ()
    protocol: str | None = None
    behind: Any = field(default=None, repr=False, compare=False)
    """What the figures were measured on, for `plot`: the trials, or the curves that a file keeps of them."""
    reading: ReadSpec | None = field(default=None, repr=False)
    """How the files were read; None where the trials came from none."""
    design: Design | None = field(default=None, repr=False)
    """What was asked; None in files of older versions."""
    content: str = field(default="", repr=False, compare=False)
    """Hash of the rows that were measured, in whatever order they stand; empty where it is not known."""
    questions: str = field(default="", repr=False, compare=False)
    """Hash of the items and their true classes (see `Trials.questions`); empty where it is not known."""
    facts: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)
    """What is known of how the answers were made: models, prompts, temperature, cache … (see `validity`)."""

    def __iter__(self) -> Iterator[Estimate]:
        return iter(self.estimates)

    def __len__(self) -> int:
        return len(self.estimates)

    def __add__(self, other: Results) -> Results:
        signature = "\n".join(s for s in merged((self.signature,), (other.signature,)) if s)
        rows, warnings = self.estimates + other.estimates, merged(self.warnings, other.warnings)
        return replace(self, estimates=rows, signature=signature, warnings=warnings, behind=None)

    def where(self, keep: Callable[[Estimate], bool]) -> Results:
        """The estimates for which `keep` holds."""
        return replace(self, estimates=tuple(e for e in self.estimates if keep(e)))

    def find(self, metric: str | None = None, *, average: str | None = None, **cell: str) -> Results:
        """The estimates of a metric in exactly this cell (runs and slices by name)."""

        def matches(e: Estimate) -> bool:
            inside = {**e.run, **e.slice} if not e.run or set(e.run) & set(cell) else dict(e.slice)
            return (metric is None or e.metric == metric) and e.average == average and inside == cell

        return self.where(matches)

    def one(self, metric: str, *, average: str | None = None, **cell: str) -> Estimate:
        """The one estimate of a metric in a cell; an error where there is none or more than one."""
        found = self.find(metric, average=average, **cell).estimates
        if len(found) != 1:
            raise UsageError(
                f"{len(found)} estimates of {metric!r} for average={average!r}, {cell}; metrics: {sorted({e.metric for e in self})}"
            )
        return found[0]

    @property
    def short_signature(self) -> str:
        """The signature in at most 60 characters, for a paper."""
        return str(import_module("hitmiss.engine.measure").short(self.signature))

    @property
    def plot(self) -> Any:
        """The figures: `results.plot.det()`, `.roc()`, `.pr()`, `.reliability()`, … (matplotlib)."""
        return import_module("hitmiss.report.plotting").Plots(self)  # a door upwards, for notebooks

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "behind": None}  # to another process go figures, not all their trials

    def to_dict(self) -> dict[str, Any]:
        """The JSON form: `{"schema": 1, "signature": …, "warnings": […], "estimates": [{…}]}`."""
        rows = [
            {**{k: finite(v) for k, v in asdict(e).items()}, "value": finite(steady(e.value))} for e in self.estimates
        ]
        return {
            "schema": SCHEMA,
            "signature": self.signature,
            "protocol": self.protocol,
            "warnings": list(map(str, self.warnings)),
            "warning_codes": list(map(code_of, self.warnings)),
            "reading": self.reading.to_plain() if self.reading is not None else None,
            "design": self.design.to_plain() if self.design is not None else None,
            "content": self._content(),
            "questions": self.asked,
            "facts": dict(self.made_with),
            "estimates": rows,
        }

    def _content(self) -> str:
        """The hash of the rows behind the figures, made when it is written down: no table needs it."""
        return self.content or (self.behind.content if isinstance(self.behind, Trials) else "")

    @property
    def asked(self) -> str:
        """The hash of the items and their true classes, from the trials where they are at hand."""
        return self.questions or (self.behind.questions if isinstance(self.behind, Trials) else "")

    @property
    def made_with(self) -> Mapping[str, str]:
        """What is known of how the answers were made, from the trials where they are at hand."""
        if self.facts or not isinstance(self.behind, Trials):
            return self.facts
        found: Mapping[str, str] = import_module("hitmiss.engine.pairing").decisive(
            self.behind
        )  # upwards, as for `plot`
        return found

    def to_json(self, indent: int | None = 1) -> str:
        """The JSON form as text, with the digest over all of it (see `artifacts`)."""
        return json.dumps(artifacts.sealed(self.to_dict()), indent=indent, ensure_ascii=False, allow_nan=False)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Results:
        """Results from their JSON form, every field checked; another schema version is refused.

        Raises
        ------
        DataError
            `results-schema`: another version; `malformed-results`: a field is missing, unknown or of another type;
            `edited-artifact`: the digest is not that of the content.
        """
        schema = data.get("schema") if isinstance(data, Mapping) else None
        if type(schema) is not int or schema != SCHEMA:
            raise DataError(
                f"these results have schema {schema!r}; this version of hitmiss reads schema {SCHEMA}",
                code="results-schema",
            )
        artifacts.check_seal(data, "these results")
        stored = artifacts.check(_Stored, {k: data[k] for k in _STORED if k in data}, "results")
        rows = [
            {k: infinite(v) if k in NUMBERS else v for k, v in row.items()} if isinstance(row, Mapping) else row
            for row in stored.estimates
        ]
        estimates = [artifacts.check(Estimate, row, "results", ("estimates", str(i))) for i, row in enumerate(rows)]
        return cls(
            tuple(estimates),
            stored.signature,
            _coded(stored.warnings, stored.warning_codes),
            stored.protocol,
            data.get("pictures"),
            stored.reading,
            stored.design,
            stored.content,
            stored.questions,
            stored.facts,
        )

    def save(self, path: str | Path) -> None:
        """Write the JSON form."""
        artifacts.write(path, self.to_json() + "\n")

    @classmethod
    def load(cls, path: str | Path) -> Results:
        """Read what `save` wrote; a file without a digest, as older versions wrote them, is read with a warning."""
        return cls.from_dict(load_results(path))

    def to_polars(self) -> pl.DataFrame:
        """One row an estimate; runs and slices as columns of their own (one called `method` becomes `method_`)."""
        names = sorted({k for e in self for k in (*e.run, *e.slice)})
        plain = ("metric", "value", "low", "high", "n", "n_positive", "n_failed", "average", "method", "note")
        column = {k: f"{k}_" if k in plain else k for k in names}
        cells = [{column[k]: {**e.run, **e.slice}.get(k) for k in names} for e in self]
        rows = [{**{k: getattr(e, k) for k in plain}, **cell} for e, cell in zip(self, cells, strict=True)]
        return pl.DataFrame(rows, infer_schema_length=None)

    def to_pandas(self) -> pd.DataFrame:
        """One row an estimate, as a pandas frame (needs pandas)."""
        import pandas as pd

        return pd.DataFrame(self.to_polars().to_dicts())

    def __str__(self) -> str:
        return "\n".join([*map(str, self.estimates), *(f"warning: {w}" for w in self.warnings), self.signature]).strip()

    def __repr__(self) -> str:
        metrics = ", ".join(dict.fromkeys(e.metric for e in self.estimates))
        return f"<Results: {len(self.estimates):,} estimates of {metrics or 'nothing'}>"

    def _repr_html_(self) -> str:
        shown: str = import_module("hitmiss.report.notebook").html_of(self)  # upwards, as for `plot`
        return shown


@dataclass(frozen=True)
class _Stored:
    """The fields of the JSON form that results are made of."""

    schema: int
    signature: str
    warnings: tuple[str, ...]
    estimates: tuple[Any, ...]
    protocol: str | None = None
    reading: ReadSpec | None = None
    design: Design | None = None
    content: str = ""
    warning_codes: tuple[str | None, ...] = ()
    questions: str = ""
    facts: Mapping[str, str] = field(default_factory=dict)


_STORED = tuple(field.name for field in fields(_Stored))


def rows_of(estimates: Any, signature: str = "") -> Results:
    """Results from a list of estimates in their JSON form, as artifacts keep them beside the results proper."""
    return Results.from_dict({"schema": SCHEMA, "signature": signature, "warnings": [], "estimates": estimates})


def load_results(path: str | Path) -> dict[str, Any]:
    """The JSON form of results from a file, its digest checked; without one there is a warning."""
    data = artifacts.load(path, "results")
    if artifacts.DIGEST not in data:
        warn(artifacts.unsealed(Path(path).name), stacklevel=3)
    return data


def number(value: float | None, digits: int = 4) -> str:
    """A number as tables show it.

    >>> number(0.123456), number(None), number(float("inf"))
    ('0.1235', 'undefined', 'inf')
    """
    return "undefined" if value is None else f"{value:.{digits}f}"


def interval(e: Estimate, digits: int = 4) -> str:
    """` [low, high]`, or nothing where there is no interval."""
    return f" [{e.low:.{digits}f}, {e.high:.{digits}f}]" if e.low is not None and e.high is not None else ""


def merged(first: tuple[str, ...], second: tuple[str, ...]) -> tuple[str, ...]:
    """Both lists, each text once, order kept."""
    return tuple(dict.fromkeys((*first, *second)))


def finite(value: Any) -> Any:
    """JSON has no infinities: they travel as text, NaN as null."""
    if isinstance(value, float):
        if math.isnan(value):
            return None
        if math.isinf(value):
            return "inf" if value > 0 else "-inf"
        return float(value)
    return {k: finite(v) for k, v in value.items()} if isinstance(value, dict) else value


def infinite(value: Any) -> Any:
    """The inverse of `finite`, for the fields that hold numbers."""
    if isinstance(value, dict):
        return {k: infinite(v) for k, v in value.items()}
    return float(value) if isinstance(value, str) and value in ("inf", "-inf") else value
