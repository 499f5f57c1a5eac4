"""`hitmiss audit`: precision and recall of decisions from labels of a stratified sample, and how many items to label."""

from __future__ import annotations

from typing import Annotated

from hitmiss.cli import printing
from hitmiss.cli.options import arg
from hitmiss.cli.shared import JSON, field_option
from hitmiss.core.design import Design
from hitmiss.core.spec import CERTAINTY, READING, WRITING, opt

SAMPLE = "Labelled items: the columns that name strata, flagged, label. None: plan how many to label."
POPULATION = "File with one row per stratum: n items, flagged (yes or no), and columns such as language or score band."


def audit(
    sample: Annotated[str | None, arg(SAMPLE, "SAMPLE")] = None,
    population: Annotated[str | None, opt(POPULATION, READING, metavar="FILE", common=True)] = None,
    by: Annotated[list[str] | None, field_option(Design, "by")] = None,
    label: Annotated[str | None, opt("Column of the label, if it has another name.", READING)] = None,
    labels: Annotated[int | None, opt("Plan: share out so many labels.", CERTAINTY, common=True)] = None,
    width: Annotated[
        float | None,
        opt("Plan: the width of the intervals of recall and precision of each group.", CERTAINTY, common=True),
    ] = None,
    level: Annotated[float, field_option(Design, "level")] = 0.95,
    output: Annotated[
        str | None, opt("Write the table (CSV) here too.", WRITING, "--output", "-o", common=True)
    ] = None,
    json: Annotated[bool, JSON] = False,
) -> None:
    """Estimate precision, recall and prevalence per language from a stratified audit sample, or plan its size.

    The columns of the population other than n, flagged and expected name strata, and a sample is random in each of them.

    $ hitmiss audit sample.csv --population strata.csv --by language
    $ hitmiss audit --population strata.csv --by language --width 0.1
    """
    from hitmiss.core.errors import UsageError
    from hitmiss.evaluation import auditing
    from hitmiss.reports.audit_tables import audit_table, plan_table, records
    from hitmiss.reports.terminal import write_tables

    if population is None:
        raise UsageError.of("no-population")
    if not 0 < level < 1:
        raise UsageError.of("bad-level", level=level)
    names = [name.strip() for text in by or [] for name in text.split(",")]
    strata = auditing.read_strata(population, sample, label)
    if sample is None:
        plan = auditing.plan_audit(strata, names, labels=labels, width=width, level=level)
        rows, table = records(plan), plan_table(plan)
    else:
        found = auditing.audit(strata, names, level)
        rows, table = records(found), audit_table(found, level)
    if output:
        import polars as pl

        from hitmiss.io.write import write_csv

        write_csv(pl.DataFrame(rows), output)
        printing.note(f"wrote {output}")
    if json:
        printing.out_json({"schema": 1, "level": level, "rows": rows})
        return
    write_tables([table])
