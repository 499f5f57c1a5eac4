"""`hitmiss threshold`: choose the best threshold of each language on validation data, and check it on test data."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hitmiss.cli import common
from hitmiss.cli.common import drawing, grouped
from hitmiss.core.design import Design
from hitmiss.core.read_spec import ReadSpec

if TYPE_CHECKING:
    from hitmiss.protocols.tuning import Tuning

VALIDATION = "Validation predictions: FOLDER:RUN_TAG, files named after languages, or files with a language column."


@grouped(reading=common.reading, asked=partial(drawing, bootstrap=1000))
def threshold(
    validation: Annotated[list[str], typer.Argument(help=VALIDATION)],
    maximize: Annotated[str, typer.Option(help="A figure of decisions: f1, accuracy, mcc, balanced_accuracy …")] = "f1",
    search: Annotated[str, typer.Option(help="exact (over observed scores) or grid (0.10, 0.11 … 0.90).")] = "exact",
    test: Annotated[
        list[str] | None, typer.Option(help="Test predictions of the same languages, given in the same way.")
    ] = None,
    write: Annotated[bool, typer.Option("--write", help="Put best_threshold into the test files.")] = False,
    output_dir: Annotated[
        str | None, typer.Option(help="Write copies here and leave the test files unchanged.")
    ] = None,
    group: Annotated[str | None, typer.Option(help="Column that defines the groups, if not language.")] = None,
    missing: Annotated[str, typer.Option(help="refuse, or drop rows without label or score.")] = "refuse",
    *,
    reading: ReadSpec,
    asked: Design,
    json: Annotated[bool, typer.Option("--json", help="JSON to stdout instead of a table.")] = False,
) -> None:
    """Choose thresholds on validation data, and show how much of the gain remains on test data."""
    from hitmiss.core.errors import UsageError
    from hitmiss.protocols.tuning import tune_files, write_thresholds

    if (write or output_dir) and not test:
        raise UsageError("say which files get the thresholds: --test FILE …")
    tuning = tune_files(
        common.expanded(validation),
        common.expanded(test or []),
        maximize=maximize,
        search=search,
        group=group,
        spec=reading.changed(missing=None if missing == "refuse" else missing),
        plan=asked.plan,
    )
    written = write_thresholds(tuning, Path(output_dir) if output_dir else None) if write or output_dir else {}
    _print(tuning, json)
    for path, note in written.items():
        common.note(f"wrote {path}{note}")


def _print(tuning: Tuning, json: bool) -> None:
    from hitmiss.reports import terminal
    from hitmiss.reports.threshold_table import records, table

    if json:
        facts: dict[str, object] = {"schema": 1, "maximize": tuning.maximize, "search": tuning.search}
        facts["drawn"] = str(tuning.plan) if tuning.plan is not None else "none"
        common.out_json({**facts, "warnings": list(tuning.warnings), "thresholds": records(tuning), **common.taken()})
        return
    terminal.write_tables([table(tuning)])
    if tuning.plan is not None and tuning.plan.bootstrap and tuning.test is not None:
        drawn = " × ".join(tuning.plan.unit) or "texts"
        common.out(f"\nintervals on test: {tuning.plan.bootstrap:,} draws of {drawn}, level {tuning.plan.level:g}")
    for warning in tuning.warnings:
        common.out(f"\n! {warning}")
