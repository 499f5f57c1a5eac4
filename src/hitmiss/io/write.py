"""Write files: score files in the official formats, and files for people."""

from __future__ import annotations

from pathlib import Path
from typing import Final, Literal, get_args

import numpy as np
import polars as pl

from hitmiss.core import artifacts
from hitmiss.core.classes import same_class
from hitmiss.core.errors import DataError, UnknownName, UsageError
from hitmiss.core.text import quoted
from hitmiss.core.trials import Trials

FORMULA: Final = r"^[=+\-@\t\r]"
"""The first character of a cell that a spreadsheet would compute instead of show."""
NUMBER: Final = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"


def write_csv(frame: pl.DataFrame, path: str | Path, *, replaces_input: bool = False) -> None:
    """Write a frame as CSV (see `csv_of`); `replaces_input`: the caller asks for the file that was read to be changed."""
    artifacts.write(path, csv_of(frame), is_state=replaces_input)


def csv_of(frame: pl.DataFrame) -> str:
    """Return a frame as CSV; numbers in their shortest exact form, texts unchanged, null as an empty cell."""
    exact = [
        pl.Series(c.name, ["" if v is None else repr(v) for v in c.to_list()], dtype=pl.String)
        if c.dtype.is_float()
        else c
        for c in frame.get_columns()
    ]
    return pl.DataFrame(exact).write_csv(line_terminator="\n", quote_style="necessary")


def spreadsheet_safe(frame: pl.DataFrame) -> pl.DataFrame:
    """Put a `'` before texts that begin like a formula; numbers and a lone `-` stay unchanged.

    >>> spreadsheet_safe(pl.DataFrame({"text": ["=1+1", "-0.5", "-", "@a", "fine"]}))["text"].to_list()
    ["'=1+1", '-0.5', '-', "'@a", 'fine']
    """
    texts = [name for name, kind in frame.schema.items() if kind == pl.String]

    def quoted(name: str) -> pl.Expr:
        cell = pl.col(name)
        is_plain = cell.str.contains(NUMBER) | (cell == "-")
        return pl.when(cell.str.contains(FORMULA) & ~is_plain).then("'" + cell).otherwise(cell).alias(name)

    return frame.with_columns(quoted(name) for name in texts)


ScoreForm = Literal["table", "official", "unpaired"]
SCORE_FORMS: Final = get_args(ScoreForm)


def write_scores(
    trials: Trials, path: str | Path, form: ScoreForm = "table", *, probability: bool | None = None
) -> None:
    """Write trials as a score file; reading it back gives exactly the same scores.

    `probability` (unpaired only): write probabilities instead of log-odds, as the BEATs evaluation document does (default: if the
    trials have log-odds).
    """
    if form not in SCORE_FORMS:
        raise UnknownName("form of a score file", form, SCORE_FORMS)
    if form == "official":
        write_official_scores(trials, path)
    elif form == "unpaired":
        _write_unpaired(trials, Path(path), probability)
    else:
        _write_table(trials, Path(path))


def _write_table(trials: Trials, path: Path) -> None:
    head, frame = trials.header, trials.frame
    named = pl.when(pl.col("label") == 1).then(pl.lit(head.positive)).otherwise(pl.lit(head.negative))
    columns = [c for c in ("item", "label", "score", *head.runs, *head.slices, *head.numbers) if c in frame.columns]
    # the probability is a function of it, and two columns could each be taken for the score
    if head.score_kind == "logit":
        columns = [c for c in columns if c != "probability"]
    table = frame.with_columns(label=named).select(columns)
    if head.score_kind == "logit" and "logit" not in columns:
        table = table.rename({"score": "logit"})
        columns = table.columns
    texts = [c for c in columns if table[c].dtype == pl.String]
    _refuse_broken(table, texts)
    artifacts.write(path, table.write_csv(separator="\t", quote_style="never", null_value=""))


def _refuse_broken(table: pl.DataFrame, texts: list[str]) -> None:
    for name in texts:
        broken = table[name].str.contains(r'[\t\n\r"]').fill_null(False)
        if broken.any():
            value = table[name].filter(broken)[0]
            raise DataError.of("unwritable-value", broken=int(broken.sum()), name=name, value=value)


def _write_unpaired(trials: Trials, path: Path, probability: bool | None) -> None:
    """Write the lines of the BEATs evaluation document. Only its two words are written: real and fake."""
    is_odds = trials.header.score_kind == "logit"
    if probability and trials.header.score_kind not in ("logit", "probability"):
        raise UsageError.of("not-probabilities/kind", score_kind=trials.header.score_kind)
    score = trials.score
    if probability is not False and is_odds:
        small = np.exp(-np.abs(score))
        score = np.where(score >= 0, 1.0, small) / (1.0 + small)
    words = np.where(trials.label == 1, "real", "fake")
    lines = [f"- - {word} {value!r}\n" for word, value in zip(words.tolist(), score.tolist(), strict=True)]
    artifacts.write(path, "".join(lines))


def write_official_scores(trials: Trials, path: str | Path) -> None:
    """Write the score file of the ASVspoof 5 package: tab-separated, header `filename cm-score`, exact scores.

    The package expects a higher score to mean bonafide, and each id once; other trials are refused.
    """
    positive = trials.header.positive
    if any(same_class(positive, word) for word in ("spoof", "nontarget")):
        raise UsageError.of("official-file/direction", positive=positive)
    items, scores = trials.items, trials.score.tolist()
    if len(set(items)) != len(items):
        raise UsageError.of("official-file/systems")
    broken = [item for item in items if any(c in item for c in '\t\n\r"')]
    if broken:
        raise DataError.of("unwritable-id", first=quoted(broken[0]), n=len(broken))
    rows = [f"{item}\t{score!r}\n" for item, score in zip(items, scores, strict=True)]
    artifacts.write(path, "".join(["filename\tcm-score\n", *rows]))
