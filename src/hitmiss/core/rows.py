"""What results, comparisons and rankings share for those who use them in Python: rows by name, a frame, a report."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeVar

from hitmiss.core import artifacts
from hitmiss.core.errors import UsageError, nearest
from hitmiss.core.finding import Finding, findings_of
from hitmiss.core.registry import all_metrics, known_text

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

    from hitmiss.core.verdict import Verdict

HOW = "results['eer'], results['eer', 'codec=C01'] or results['eer', 'worst']"


class Row(Protocol):
    """A row of results, of a comparison or of a ranking."""

    @property
    def metric(self) -> str: ...
    @property
    def slice(self) -> Mapping[str, str]: ...
    @property
    def average(self) -> str | None: ...


R = TypeVar("R", bound=Row)


class Named:
    """What says, of an attribute that it does not have, which one was probably meant."""

    _USUAL: ClassVar[Mapping[str, str]] = {}
    """Attributes as people look for them, with what to write."""

    if not TYPE_CHECKING:  # a checker knows the attributes

        def __getattr__(self, name: str) -> object:
            near = "" if name.startswith("_") else self._near(name)
            hint = f"; did you mean {near}?" if near else ""
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}{hint}", name=name, obj=self)

    def _near(self, name: str) -> str:
        """Return what was probably meant; empty if nothing is near."""
        own = {*dir(type(self)), *getattr(type(self), "__dataclass_fields__", ())}
        return self._USUAL.get(name) or nearest(name, (one for one in own if not one.startswith("_"))) or ""


class Presented(Named):
    """What is made of rows for people: a frame, a page, findings, and what a notebook shows.

    Sentences, pages and conclusions are made in higher layers, which are imported by name.
    """

    _USUAL: ClassVar[Mapping[str, str]] = {
        "to_csv": "to_frame().write_csv('x.csv')",
        "to_html": "report('x.html')",
        "summary": "verdict, or print(…)",
        "keys": "to_frame()['metric']",
        "metrics": "to_frame()['metric']",
        "value": "results['eer'].value",
        "p_value": "comparison['eer'].p_value",
        "conclusion": "verdict",
    }

    if TYPE_CHECKING:

        @property
        def warnings(self) -> tuple[str, ...]:
            """What a reader should know."""
            ...

        @property
        def verdict(self) -> Verdict:
            """What the rows allow to conclude."""
            ...

        def to_dict(self) -> dict[str, object]:
            """Return the JSON form."""
            ...

        def to_polars(self) -> pl.DataFrame:
            """Return a polars frame with one row per row."""
            ...

    def _near(self, name: str) -> str:
        return f"results[{name!r}]" if known_text(name) in all_metrics() else super()._near(name)

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Everything that was found, as data: what the verdict concludes and checks, and the warnings behind it."""
        warned = (f for warning in self.warnings for f in findings_of(warning))
        return (*self.verdict.findings, *warned)

    def to_json(self, indent: int | None = 1) -> str:
        """Return the JSON form as text, with a digest over its whole content (see `core.artifacts`)."""
        return json.dumps(artifacts.sealed(self.to_dict()), indent=indent, ensure_ascii=False, allow_nan=False)

    def save(self, path: str | Path) -> None:
        """Write the JSON form to a file."""
        artifacts.write(path, self.to_json() + "\n")

    def to_frame(self) -> pl.DataFrame:
        """Return a polars frame, as `to_polars` does; `to_pandas` returns one of pandas."""
        return self.to_polars()

    def to_pandas(self) -> pd.DataFrame:
        """Return a pandas frame with one row for each (needs pandas)."""
        import pandas as pd

        return pd.DataFrame(self.to_polars().to_dicts())

    def report(self, output: str | Path = "report.html", **options: Any) -> Path:
        """Write a page about this as one HTML file; the options are those of `hm.report`."""
        written: Path = import_module("hitmiss.reports.html").report(self, output, **options)
        return written

    def _repr_html_(self) -> str:
        shown: str = import_module("hitmiss.reports.notebook").html_of(self)
        return shown


def rows_named(rows: Iterable[R], key: object, runs: Mapping[int, Mapping[str, str]] | None = None) -> tuple[R, ...]:
    """Return the rows that a key names: a metric, and perhaps a slice, a run or an average.

    Parameters
    ----------
    rows
        The rows.
    key
        `"eer"`, `("eer", "codec=C01")`, `("eer", {"codec": "C01"})` or `("eer", "worst")`.
    runs
        The run of each row, by its place; None where rows have none.
    """
    listed = list(rows)
    parts = key if isinstance(key, tuple) else (key,)
    if not parts or not isinstance(parts[0], str):
        raise UsageError.of("bad-place", HOW=HOW, key=key)
    metric = _metric(parts[0], [row.metric for row in listed])
    average, cell = _where(parts[1:], key)
    found = []
    for place, row in enumerate(listed):
        run = (runs or {}).get(place, {})
        inside = {**run, **row.slice} if set(run) & set(cell) else dict(row.slice)
        fits = inside == cell or (average is not None and not cell)
        if row.metric == metric and row.average == average and fits:
            found.append(row)
    if not found:
        cells = dict.fromkeys(_cell(row) for row in listed if row.metric == metric)
        raise UsageError.of(
            "unknown-row/slice",
            metric=metric,
            parts=", ".join(map(str, parts[1:])) or "all trials",
            cells=", ".join(repr(c) for c in cells),
        )
    return tuple(found)


def one_named(rows: Iterable[R], key: object, runs: Mapping[int, Mapping[str, str]] | None = None) -> R:
    """Return the row that a key names; if it names several, the error says how to name one."""
    listed = list(rows)
    found = rows_named(listed, key, runs)
    if len(found) > 1:
        places = {id(row): place for place, row in enumerate(listed)}
        told = [{**(runs or {}).get(places[id(row)], {}), **row.slice} for row in found]
        cells = list(dict.fromkeys(", ".join(f"{k}={v}" for k, v in cell.items()) for cell in told))
        raise UsageError.of(
            "several-rows", key=key, n_found=len(found), cells=tuple(cells[:6]), part=" …" if len(cells) > 6 else ""
        )
    return found[0]


def _metric(name: str, known: list[str]) -> str:
    """Return the metric that a name means: its own text, another usual name, or its name without settings."""
    if name in known:
        return name
    usual = known_text(name)
    short = [m for m in dict.fromkeys(known) if m.partition("(")[0] == usual]
    if usual in known or len(short) == 1:
        return usual if usual in known else short[0]
    raise UsageError.of("unknown-row", name=name, dict=tuple(dict.fromkeys(known)))


def _where(parts: tuple[object, ...], key: object) -> tuple[str | None, dict[str, str]]:
    """Return the average and the cell that the parts of a key name."""
    average: str | None = None
    cell: dict[str, str] = {}
    for part in parts:
        if isinstance(part, Mapping):
            cell |= {str(k): str(v) for k, v in part.items()}
        elif isinstance(part, str) and "=" in part:
            cell |= dict(pair.strip().split("=", 1) for pair in part.split(",") if "=" in pair)
        elif isinstance(part, str):
            average = part
        else:
            raise UsageError.of("bad-place", HOW=HOW, key=key)
    return average, cell


def _cell(row: Row) -> str:
    where = ",".join(f"{k}={v}" for k, v in row.slice.items())
    return row.average or where or "all trials"
