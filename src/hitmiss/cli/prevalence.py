"""`hitmiss prevalence`: how common a class is among items that a detector judged, corrected for its errors."""

from __future__ import annotations

from typing import Annotated

from hitmiss.cli import printing
from hitmiss.cli.options import arg
from hitmiss.cli.shared import JSON, field_option
from hitmiss.core.design import Design
from hitmiss.core.spec import MEASURING, READING, WRITING, opt


def prevalence(
    counts: Annotated[
        str, arg("Items flagged of items judged, as 120/1000, or a file with the columns flagged and n.", "COUNTS")
    ],
    detector: Annotated[
        str | None,
        opt("Results (JSON) that state the detector's recall and specificity.", READING, metavar="FILE", common=True),
    ] = None,
    where: Annotated[
        list[str] | None, opt("Slice of these results to use, `language=en`.", READING, metavar="COLUMN=VALUE")
    ] = None,
    sensitivity: Annotated[
        str | None, opt("Instead: positives that it flagged, as 180/200.", MEASURING, metavar="HITS/N", common=True)
    ] = None,
    specificity: Annotated[
        str | None, opt("Instead: negatives that it passed, as 380/400.", MEASURING, metavar="PASSES/N", common=True)
    ] = None,
    level: Annotated[float, field_option(Design, "level")] = 0.95,
    rates: Annotated[
        str | None, opt("Write the detector's rates with their intervals (JSON) here.", WRITING, metavar="FILE")
    ] = None,
    name: Annotated[
        str | None, opt("With --rates: the detector's name in garak, as dan.DAN.", WRITING, metavar="DETECTOR")
    ] = None,
    json: Annotated[bool, JSON] = False,
) -> None:
    """Correct the share of flagged items for the detector's own errors, with an interval that carries all uncertainty.

    A file may also say what labels of a random part show: the columns flagged_positive, flagged_labelled,
    passed_positive and passed_labelled. Those need no rates of the detector.

    $ hitmiss prevalence 120/1000 --sensitivity 180/200 --specificity 380/400
    """
    from hitmiss.core import artifacts
    from hitmiss.core.errors import UsageError
    from hitmiss.evaluation.prevalence import DetectorRates, measure_prevalence, read_counts, read_rates, stated_rate

    if (sensitivity is None) != (specificity is None):
        raise UsageError.of("one-rate")
    known = None
    if detector is not None:
        if sensitivity is not None:
            raise UsageError.of("rates-twice")
        cells = dict(text.partition("=")[::2] for text in where or [])
        if (bad := next((name for name, value in cells.items() if not name or not value), None)) is not None:
            raise UsageError.of("bad-where", bad=bad)
        known = read_rates(detector, cells)
    elif sensitivity is not None and specificity is not None:
        known = DetectorRates(stated_rate(sensitivity, "--sensitivity"), stated_rate(specificity, "--specificity"))
    if not 0 < level < 1:
        raise UsageError.of("bad-level", level=level)
    found = measure_prevalence(read_counts(counts), known, level)
    if name is not None and rates is None:
        raise UsageError.of("name-unused")
    if rates is not None:
        if known is None:
            raise UsageError.of("no-rates/option")
        artifacts.write(rates, known.to_json(name) + "\n")
        printing.note(f"wrote {rates}")
    if json:
        printing.out_json({"level": level, "rows": [one.to_dict() for one in found]})
        return
    from hitmiss.reports.prevalence_table import prevalence_table
    from hitmiss.reports.terminal import write_tables

    write_tables([prevalence_table(found, known, level)])
