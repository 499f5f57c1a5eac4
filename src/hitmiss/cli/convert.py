"""`hitmiss convert`: read scores of any layout, and write them in another."""

from __future__ import annotations

from typing import Annotated, Literal

from hitmiss.cli import printing
from hitmiss.cli.options import arg
from hitmiss.core.read_spec import ReadSpec
from hitmiss.core.spec import MEASURING, READING, WRITING, opt


def convert(
    scores: Annotated[str, arg("Score file of any layout.", "SCORES")],
    to: Annotated[str, arg("File to write.", "TO")],
    key: Annotated[str | None, opt("Key, if the labels are wanted in the file.", READING, common=True)] = None,
    *,
    form: Annotated[
        Literal["official", "table"], opt("filename and score, or a table of all columns.", WRITING, common=True)
    ] = "official",
    scale: Annotated[
        Literal["same", "log-odds", "probability"],
        opt(
            "Scale of the written scores: as they are, or probabilities and log-odds into each other.",
            MEASURING,
            common=True,
        ),
    ] = "same",
    positive_score: Annotated[
        str | None,
        opt("The class that a higher written score means; scores of the other direction are negated.", MEASURING),
    ] = None,
    reading: ReadSpec,
) -> None:
    """Write scores in the official layout or as a table; the order of the scores stays as it is.

    $ hitmiss convert softmax.csv scores.tsv --score-kind probability --scale log-odds
    """
    from hitmiss.evaluation.converting import converted, read_any

    trials = read_any(scores, key, reading)
    made = converted(trials, scale, positive_score)
    from hitmiss.io.write import write_scores

    write_scores(made, to, "official" if form == "official" else "table")
    printing.note(f"wrote {to}: {len(made):,} scores, higher means {made.header.positive}")
