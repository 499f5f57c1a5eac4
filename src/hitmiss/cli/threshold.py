"""`hitmiss threshold`: choose the best threshold of each language on validation data, and check it on test data."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from hitmiss.cli import printing
from hitmiss.cli.options import arg, fields
from hitmiss.cli.shared import GROUP, JSON, KEY, by_group
from hitmiss.core.design import Design
from hitmiss.core.read_spec import ReadSpec
from hitmiss.core.spec import CERTAINTY, MEASURING, READING, opt
from hitmiss.metrics.usual import OBJECTIVE

if TYPE_CHECKING:
    from hitmiss.protocols.tuning import Tuning

OF_GROUPS = "of several groups each, `en=300`"
VALIDATION = "Validation predictions: FOLDER:RUN_TAG, files named after languages, or files with a language column."


def threshold(
    validation: Annotated[list[str], arg(VALIDATION)],
    maximize: Annotated[
        str,
        opt("A metric of decisions: f1, fbeta(beta=2), mcc, decision_cost(c_fp=1,c_fn=5) …", MEASURING, common=True),
    ] = OBJECTIVE,
    search: Annotated[
        Literal["exact", "grid"], opt("exact: over observed scores; grid: 0.10, 0.11 … 0.90.", MEASURING)
    ] = "exact",
    guarantee: Annotated[
        str | None,
        opt(
            "A rate to keep on data not seen yet, as 'fpr <= 0.01' or 'recall >= 0.9', at --level.",
            MEASURING,
            common=True,
        ),
    ] = None,
    keep: Annotated[
        str | None, opt("A limit on validation, as 'recall >= 0.9' with --maximize precision.", MEASURING, common=True)
    ] = None,
    capacity: Annotated[
        list[str] | None, opt(f"Items that people can review in a period; {OF_GROUPS}.", MEASURING, common=True)
    ] = None,
    volume: Annotated[list[str] | None, opt(f"Items of a period in use; {OF_GROUPS}.", MEASURING, common=True)] = None,
    prevalence: Annotated[
        list[str] | None, opt("Share of positives in use, `1.5%`, or `en=1%` for each group.", MEASURING, common=True)
    ] = None,
    test: Annotated[
        list[str] | None,
        opt("Test predictions of the same languages, given in the same way.", CERTAINTY, takes_words=True, common=True),
    ] = None,
    write: Annotated[bool, opt("Put best_threshold into the test files.", common=True)] = False,
    output_dir: Annotated[str | None, opt("Write copies here and leave the test files unchanged.")] = None,
    key: Annotated[str | None, KEY] = None,
    test_key: Annotated[str | None, opt("File with the labels of the test data, by id.", READING)] = None,
    group: Annotated[str | None, GROUP] = None,
    *,
    reading: ReadSpec,
    asked: Annotated[Design, fields("bootstrap", "unit", "seed", "level", bootstrap=1000)],
    json: Annotated[bool, JSON] = False,
) -> None:
    """Choose thresholds on validation data, and show how much of the gain remains on test data.

    $ hitmiss threshold dev_en.csv --test test_en.csv --maximize f1
    $ hitmiss threshold dev.csv --test test.csv --capacity 300 --volume 2000000 --prevalence 1.5%
    """
    from hitmiss.core.errors import UsageError
    from hitmiss.engine.requirement import parse_requirement
    from hitmiss.engine.tuning import Bench, Guarantee
    from hitmiss.protocols.tuning import tune_files, write_thresholds

    if (write or output_dir) and not test:
        raise UsageError.of("no-test-files")
    bench = Bench(
        maximize,
        search,
        Guarantee.parse(guarantee, asked.level) if guarantee else None,
        parse_requirement(keep) if keep else None,
        by_group(prevalence),
        by_group(volume),
        by_group(capacity),
    )
    tuning = tune_files(
        printing.expanded(validation),
        printing.expanded(test or []),
        by=bench,
        group=group,
        spec=reading,
        plan=asked.plan,
        key=key,
        test_key=test_key,
    )
    written = write_thresholds(tuning, Path(output_dir) if output_dir else None) if write or output_dir else {}
    _print(tuning, json)
    for path, note in written.items():
        printing.note(f"wrote {path}{note}")


def _print(tuning: Tuning, json: bool) -> None:
    from hitmiss.reports import terminal
    from hitmiss.reports.threshold_table import load_table, records, table

    if json:
        facts: dict[str, object] = {"schema": 1, "maximize": tuning.by.metric, "search": tuning.by.search}
        facts["drawn"] = str(tuning.plan) if tuning.plan is not None else "none"
        printing.out_json(
            {**facts, "warnings": list(tuning.warnings), "thresholds": records(tuning), **printing.taken()}
        )
        return
    terminal.write_tables([table(tuning), *load_table(tuning)])
    if tuning.plan is not None and tuning.plan.bootstrap and tuning.test is not None:
        drawn = " × ".join(tuning.plan.unit) or "texts"
        printing.out(f"\nintervals on test: {tuning.plan.bootstrap:,} draws of {drawn}, level {tuning.plan.level:g}")
    for warning in tuning.warnings:
        printing.out(f"\n! {warning}")
