"""`hitmiss replace`: carry the thresholds of a classifier over to another one, and show what changes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from hitmiss.cli import printing
from hitmiss.cli.options import arg, fields
from hitmiss.cli.shared import JSON, RESULTS, by_group
from hitmiss.core.read_spec import ReadSpec
from hitmiss.core.spec import CERTAINTY, MEASURING, READING, WRITING, opt

if TYPE_CHECKING:
    from hitmiss.core.trials import Trials


def replace(
    old: Annotated[str, arg("Scores of the classifier in use.", "OLD")],
    new: Annotated[str, arg("Scores of its replacement on the same texts.", "NEW")],
    threshold: Annotated[
        list[str] | None,
        opt("Threshold in use, 0.8, or one for each group, en=0.8; may be repeated.", MEASURING, common=True),
    ] = None,
    keep: Annotated[
        Literal["flag-rate", "false-alarms", "recall"], opt("What the new thresholds keep.", MEASURING, common=True)
    ] = "flag-rate",
    by: Annotated[
        list[str] | None, opt("Column(s) of the groups with a threshold each, `language`.", MEASURING, common=True)
    ] = None,
    key: Annotated[str | None, opt("Key with the labels, if there are any.", READING, common=True)] = None,
    margin: Annotated[float, opt("By how much the kept rate may change.", CERTAINTY, common=True)] = 0.01,
    share: Annotated[float, opt("Share of texts that choose the thresholds; the others are judged.", CERTAINTY)] = 0.5,
    seed: Annotated[int, opt("Decides which texts choose.", CERTAINTY)] = 0,
    level: Annotated[float, opt("Level of the intervals, for all groups together.", CERTAINTY)] = 0.95,
    *,
    reading: Annotated[ReadSpec, fields(without=("settings",))],
    flips: Annotated[
        str | None, opt("Write the texts whose decision changes (CSV) here.", WRITING, common=True)
    ] = None,
    report: Annotated[str | None, opt("Write one page (HTML) to sign here.", WRITING, common=True)] = None,
    output: Annotated[str | None, RESULTS] = None,
    json: Annotated[bool, JSON] = False,
) -> None:
    """Carry thresholds over to another classifier, per language or group, and judge what changes on other texts.

    $ hitmiss replace perspective.csv ours.csv --threshold 0.8 --by language --flips flips.csv --report page.html
    """
    import json as writer

    from hitmiss.core import artifacts
    from hitmiss.core.errors import UsageError
    from hitmiss.evaluation.replacing import replace_classifier

    if not threshold:
        raise UsageError.of("no-threshold-in-use")
    in_use = by_group(threshold)
    columns = [name for text in by or [] for name in text.split(",")]
    sides = [_read(file, key, reading) for file in (old, new)]
    names = (Path(old).name, Path(new).name)
    found = replace_classifier(
        sides[0],
        sides[1],
        in_use.get("", in_use),
        by=columns,
        keep=keep,
        margin=margin,
        share=share,
        seed=seed,
        level=level,
        names=names if names[0] != names[1] else (old, new),
    )
    document = artifacts.sealed(found.to_dict())
    if output:
        artifacts.write(output, writer.dumps(document, indent=1, allow_nan=False) + "\n")
    if flips:
        from hitmiss.io.write import write_csv

        write_csv(found.flips, flips)
        printing.note(f"wrote {flips}: {found.flips.height:,} texts")
    if report:
        from hitmiss.reports.replacement import write_page

        printing.note(f"wrote {report}: {write_page(found, report) / 1e3:.0f} kB")
    if json:
        printing.out_json(document)
        return
    from hitmiss.reports.replacement import headline, replacement_tables
    from hitmiss.reports.terminal import write_tables

    printing.out(headline(found))
    write_tables(replacement_tables(found))


def _read(file: str, key: str | None, reading: ReadSpec) -> Trials:
    from hitmiss.core.errors import DataError
    from hitmiss.io.reader import read
    from hitmiss.io.unlabelled import read_unlabelled

    try:
        return read(file, key, reading)
    except DataError as error:
        if key is not None or error.code != "missing-column":
            raise
    return read_unlabelled(file, reading, reading.positive or "flagged")
