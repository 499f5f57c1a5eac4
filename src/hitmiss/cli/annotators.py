"""`hitmiss annotators`: how far annotators agree, labels made of their votes, and numbers with the range they leave open."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from hitmiss.cli import printing
from hitmiss.cli.options import arg, fields
from hitmiss.cli.shared import JSON
from hitmiss.core.design import Design
from hitmiss.core.read_spec import ReadSpec
from hitmiss.core.spec import READING, WRITING, opt
from hitmiss.metrics.usual import AREA

if TYPE_CHECKING:
    from hitmiss.evaluation.annotators import Annotation

VOTES = "Votes: one row per text and annotator, or one column per annotator (--votes)."


def annotators(
    file: Annotated[str, arg(VOTES, "FILE")],
    votes: Annotated[
        str | None,
        opt("Columns of the annotators, `ann,bob,eve`, in a file with one row per text.", READING, common=True),
    ] = None,
    yes: Annotated[str | None, opt("Word that means yes; every other means no.", READING, common=True)] = None,
    scores: Annotated[
        str | None, opt("Scores of a classifier, to see what disagreement does to its numbers.", READING, common=True)
    ] = None,
    output: Annotated[
        str | None,
        opt(
            "Write a key (CSV) here: id, label of the majority, share of yes, votes.",
            WRITING,
            "--output",
            "-o",
            common=True,
        ),
    ] = None,
    *,
    asked: Annotated[Design, fields("metrics", "threshold", "bootstrap", "seed", "level", bootstrap=1000)],
    reading: ReadSpec,
    json: Annotated[bool, JSON] = False,
) -> None:
    """Say how far annotators agree, make labels of their votes, and show which range of numbers they leave open.

    $ hitmiss annotators votes.csv --scores preds.csv -m roc_auc -m f1 --threshold 0.5 -o key.csv
    """
    from hitmiss.evaluation.annotators import read_votes, study_votes

    named = {role: name for role, name in reading.columns.items() if role in ("item", "annotator", "label")}
    found = read_votes(file, votes.split(",") if votes else (), named, yes)
    spec = reading.changed(columns={k: v for k, v in reading.columns.items() if k not in ("annotator", "label")})
    study = study_votes(found, scores, spec, asked, asked.metrics or (AREA,))
    if output:
        from hitmiss.io.write import write_csv

        write_csv(found.key(), output)
        printing.note(f"wrote {output}")
    if json:
        printing.out_json({"schema": 1, **printing.plain(study), **printing.taken()})  # type: ignore[dict-item]
        return
    _print(study, asked.level)


def _print(study: Annotation, level: float) -> None:
    from hitmiss.reports import terminal
    from hitmiss.reports.annotator_tables import annotator_tables, headline

    printing.out(headline(study, level))
    terminal.write_tables(annotator_tables(study, level))
