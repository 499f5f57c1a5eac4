"""How common a class is among items that only a detector has judged, with the detector's own error carried along."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Final

from hitmiss.core import artifacts
from hitmiss.core.errors import DataError, UsageError
from hitmiss.core.results import Results, load_results
from hitmiss.engine.interval import share_interval
from hitmiss.stats.prevalence import (
    Prevalence,
    corrected_prevalence,
    effective_size,
    labelled_prevalence,
)

__all__ = ["CountedGroup", "DetectorRates", "GroupPrevalence", "measure_prevalence", "read_counts", "read_rates"]

FLAGGED: Final = ("flagged", "alerts", "positives", "hits")
TOTAL: Final = ("n", "total", "items", "judged")
LABELLED: Final = ("flagged_positive", "flagged_labelled", "passed_positive", "passed_labelled")
RATES: Final = (("sensitivity", "recall", "fnr"), ("specificity", "specificity", "fpr"))
"""Each rate of a detector, with the metric that states it, and the metric that states one minus it."""


@dataclass(frozen=True)
class KnownRate:
    """A rate of a detector with its interval, and how many independent items would give that interval."""

    value: float
    n: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class DetectorRates:
    """Sensitivity and specificity of a detector, as others can load them."""

    sensitivity: KnownRate
    specificity: KnownRate
    source: str = ""

    def to_json(self, name: str | None = None) -> str:
        """Return the sealed JSON form; under a detector's `name` garak reads its rates in it, too.

        garak takes the file `detectors_eval/detector_metrics_summary.json` in its data folder: `results`, by detector.
        """
        document = {"schema": 1, "kind": "detector rates", **asdict(self)}
        if name is not None:
            document["results"] = {
                name: {
                    "metrics": {
                        **_metrics(self.sensitivity, "hit_sensitivity"),
                        **_metrics(self.specificity, "hit_specificity"),
                    }
                }
            }
        return json.dumps(artifacts.sealed(document), indent=1, allow_nan=False)


def _metrics(rate: KnownRate, name: str) -> dict[str, float | None]:
    return {name: rate.value, f"{name}_low": rate.low, f"{name}_high": rate.high, f"{name}_n": rate.n}


@dataclass(frozen=True)
class CountedGroup:
    """Items of one group that a detector judged: how many it flagged, of how many, and what labels say, if some are."""

    flagged: int
    n: int
    group: Mapping[str, str] = field(default_factory=dict)
    labelled: Mapping[str, int] | None = None


@dataclass(frozen=True)
class GroupPrevalence:
    """The prevalence of a group: corrected by the detector's rates, and from labels where there are some."""

    group: Mapping[str, str]
    n: int
    flagged: int
    corrected: Prevalence | None
    labelled: Prevalence | None

    def to_dict(self) -> dict[str, object]:
        """Return the JSON form."""
        made = {"corrected": self.corrected, "labelled": self.labelled}
        return {
            "group": dict(self.group),
            "n": self.n,
            "flagged": self.flagged,
            **{name: None if one is None else asdict(one) for name, one in made.items()},
        }


def measure_prevalence(
    groups: list[CountedGroup], rates: DetectorRates | None, level: float = 0.95
) -> list[GroupPrevalence]:
    """Estimate the prevalence of each group.

    Raises
    ------
    UsageError
        If there are neither rates of the detector nor labels.
    """
    found = []
    for one in groups:
        corrected = labelled = None
        if rates is not None:
            corrected = corrected_prevalence(
                one.flagged,
                one.n,
                sensitivity=rates.sensitivity.value,
                positives=rates.sensitivity.n,
                specificity=rates.specificity.value,
                negatives=rates.specificity.n,
                level=level,
            )
        if one.labelled is not None:
            labelled = labelled_prevalence(one.flagged, one.n, level=level, **one.labelled)
        if corrected is None and labelled is None:
            raise UsageError.of("no-rates/given")
        found.append(GroupPrevalence(one.group, one.n, one.flagged, corrected, labelled))
    return found


def read_counts(given: str) -> list[CountedGroup]:
    """Read counts: `120/1000`, or a file with the columns `flagged` and `n`; other columns of it name groups.

    With the columns flagged_positive, flagged_labelled, passed_positive and passed_labelled, labels are used too.

    >>> read_counts("120/1000")
    [CountedGroup(flagged=120, n=1000, group={}, labelled=None)]
    """
    if found := re.fullmatch(r"\s*(\d+)\s*/\s*(\d+)\s*", given):
        return [CountedGroup(int(found[1]), int(found[2]))]
    from hitmiss.io.text_rows import read_rows

    frame = read_rows(given).frame
    names = {name.strip().lower(): name for name in frame.columns}
    flagged = next((names[name] for name in FLAGGED if name in names), None)
    total = next((names[name] for name in TOTAL if name in names), None)
    if flagged is None or total is None:
        raise DataError.of(
            "missing-column/counts",
            name=Path(given).name,
            FLAGGED=FLAGGED[0],
            TOTAL=TOTAL[0],
            columns=tuple(frame.columns),
        )
    labels = [names[name] for name in LABELLED if name in names]
    if labels and len(labels) < len(LABELLED):
        lacking = next(name for name in LABELLED if name not in names)
        raise DataError.of("missing-column/labels", name=Path(given).name, lacking=lacking)
    groups = [name for name in frame.columns if name not in (flagged, total, *labels)]
    return [
        CountedGroup(
            _whole(row[flagged], given, at, flagged),
            _whole(row[total], given, at, total),
            {name: str(row[name]) for name in groups},
            {own: _whole(row[names[own]], given, at, own) for own in LABELLED} if labels else None,
        )
        for at, row in enumerate(frame.iter_rows(named=True), 2)
    ]


def read_rates(path: str | Path, where: Mapping[str, str] | None = None) -> DetectorRates:
    """Read sensitivity and specificity from results: recall or fnr, and specificity or fpr.

    Where an interval is wider than that of so many independent items (units were drawn whole), the number of items is
    reduced to that which gives the interval.

    Raises
    ------
    DataError
        If the results lack one of the rates, or hold several runs.
    """
    results = Results.from_dict(load_results(path))
    found = {}
    for name, plain, opposite in RATES:
        found[name] = _rate(results, Path(path).name, name, plain, opposite, dict(where or {}))
    return DetectorRates(found["sensitivity"], found["specificity"], Path(path).name)


def stated_rate(text: str, name: str) -> KnownRate:
    """Read a rate that a caller states as counts.

    >>> stated_rate("180/200", "sensitivity").value
    0.9
    """
    counts = re.fullmatch(r"\s*(\d+)\s*/\s*(\d+)\s*", text)
    if counts is None or not int(counts[2]) > 0 or int(counts[1]) > int(counts[2]):
        raise UsageError.of("bad-rate/stated", name=name, text=text)
    hits, of = int(counts[1]), int(counts[2])
    low, high = share_interval(hits, of)
    return KnownRate(hits / of, of, low, high)


def _rate(results: Results, file: str, name: str, plain: str, opposite: str, where: dict[str, str]) -> KnownRate:
    for metric, turned in ((plain, False), (opposite, True)):
        own = [e for e in results if e.metric == metric and dict(e.slice) == where and e.average is None]
        if len(own) > 1:
            raise DataError.of("several-runs", file=file)
        if own and own[0].value is not None:
            e, value = own[0], own[0].value
            low, high = e.low, e.high
            if turned:
                value = 1.0 - value
                low, high = (None, None) if low is None or high is None else (1.0 - high, 1.0 - low)
            n = e.n_positive if name == "sensitivity" else e.n - e.n_positive
            return KnownRate(value, effective_size(value, n, low, high), low, high)
    raise DataError.of("no-rates", file=file, name=name, plain=plain)


def _whole(value: object, file: str, row: int, column: str) -> int:
    try:
        number = float(str(value))
    except ValueError:
        number = -1.0
    if number < 0 or number != int(number):
        raise DataError.of("bad-count", name=Path(file).name, row=row, column=column, value=value)
    return int(number)
