"""Error dumps: the wrongly decided rows of prediction files with all their columns, the most confident mistakes first."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import polars as pl

from hitmiss.core.errors import DataError, UsageError
from hitmiss.core.finding import Option
from hitmiss.io.write import spreadsheet_safe, write_csv
from hitmiss.protocols.toxicity import Run

ADDED: Final = ("error_type", "threshold", "margin")
MIDDLE: Final = 0.5


def errors_of(run: Run, group: str, texts: pl.DataFrame | None = None) -> pl.DataFrame:
    """Return the mistakes of one group: every column of the file as text, then error_type (FP, FN), threshold, margin.

    margin = how far the score lies on the wrong side of the threshold; blank where no threshold is known.
    `texts` (id, text and perhaps the group) adds the text to files that have none.
    """
    if not run.predictions.raw:
        raise UsageError.of("run-not-whole")
    wrong = _wrong(run, group)
    raw = _rows_of(run, wrong)
    clash = [c for c in ("error_type", "margin") if c in raw.columns]
    if clash:
        raise DataError.of("column-taken", clash=clash[0])
    if texts is not None and "text" not in raw.columns:
        raw = raw.insert_column(0, _texts(wrong["item"], texts, group))
    whole = raw.with_columns(wrong[name] for name in ADDED)
    return whole[wrong["order"].arg_sort(descending=True)]


def _rows_of(run: Run, wrong: pl.DataFrame) -> pl.DataFrame:
    """Return all columns of the wrongly decided rows, as text."""
    parts = [run.predictions.raw[file[0]][rows["row"]] for file, rows in wrong.group_by("file", maintain_order=True)]
    return pl.concat(parts, how="diagonal") if parts else run.predictions.raw[0].clear()


def _wrong(run: Run, group: str) -> pl.DataFrame:
    frame = run.predictions.frame.select("item", "group", "label", "score", "file", "row")
    bound = run.bounds if len(run.bounds) == frame.height else pl.lit(run.bounds[0], dtype=pl.Float64)
    frame = frame.with_columns(decision=run.measured.frame["decision"], bound=bound)
    is_wrong = (pl.col("decision") != pl.col("label")) & (pl.col("decision") >= 0)  # a withheld answer is not a mistake
    frame = frame.filter(pl.col("group") == group, is_wrong).sort("file", "row")
    said = pl.col("decision") == 1
    beyond = pl.col("score") - run.measured.header.scale.turned(pl.col("bound").fill_null(MIDDLE))
    order = pl.when(said).then(beyond).otherwise(-beyond)
    known = pl.col("bound").is_not_null()
    return frame.with_columns(
        error_type=pl.when(said).then(pl.lit("FP")).otherwise(pl.lit("FN")),
        order=order,
        threshold=pl.when(known).then(pl.col("bound")),
        margin=pl.when(known).then(order),
    )


def _texts(items: pl.Series, texts: pl.DataFrame, group: str) -> pl.Series:
    """Return the text of each item; a missing text is an error, and so is a repeated one."""
    own = texts.filter(pl.col("group").is_in([group, ""]))
    if own["item"].is_duplicated().any():
        twice = own.filter(own["item"].is_duplicated())["item"][0]
        raise DataError.of("duplicate-id/texts", group=group, twice=twice)
    found = pl.DataFrame({"item": items}).join(own, on="item", how="left", maintain_order="left")["text"]
    if found.null_count():
        lacking = items.filter(found.is_null())
        raise DataError.of("errors-without-text", group=group, n_lacking=len(lacking), lacking=lacking[0])
    return found


def dump_errors(
    run: Run,
    folder: str | Path,
    *,
    most: int | None = None,
    safe: bool = False,
    texts: pl.DataFrame | None = None,
) -> dict[Path, tuple[int, int]]:
    """Write `{run_tag}_errors_{group}.csv` for each group, at most `most` of each kind; return the counts of FP and FN.

    A group without mistakes gets a file with only a header, so that a dump of an earlier run is not taken for its own.
    """
    if most is not None and most < 0:
        raise UsageError.of("out-of-range/least", name=Option("max_errors"), least=0, found=most)
    directory = Path(folder)
    if directory.exists() and not directory.is_dir():
        raise UsageError.of("is-file", folder=folder)
    directory.mkdir(parents=True, exist_ok=True)
    written: dict[Path, tuple[int, int]] = {}
    for group in run.groups:
        rows = errors_of(run, group, texts)
        if most is not None:
            rows = rows.filter(pl.int_range(pl.len()).over("error_type") < most)
        path = directory / f"{run.tag}_errors_{group}.csv"
        write_csv(spreadsheet_safe(rows) if safe else rows, path)
        kinds = rows["error_type"]
        written[path] = int((kinds == "FP").sum()), int((kinds == "FN").sum())
    return written
