"""From the records of a run to its table: scores are made from raw outputs, all at once and by one rule."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from hitmiss.core.errors import DataError
from hitmiss.detection.detect_spec import Pooling
from hitmiss.detection.embeddings import Record
from hitmiss.detection.length import pool
from hitmiss.detection.outputs import Extraction, to_probability
from hitmiss.io.manifest import Manifest

Floats = NDArray[np.float64]
WINDOWS: Final = "windows.parquet"
FAILURES: Final = "failures.tsv"
NUMBERS: Final = ("probability", "seconds")


@dataclass
class Answers:
    """The records of a run: outputs of the successful items, and the reasons of those that failed."""

    at: list[int] = field(default_factory=list)
    outputs: list[list[float]] = field(default_factory=list)
    parts: list[int] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    failed: dict[int, str] = field(default_factory=dict)
    rows: dict[int, Record] = field(default_factory=dict)

    @classmethod
    def of(cls, records: Iterable[tuple[int, Record]]) -> Answers:
        """Read all records, one per item."""
        answers = cls()
        for at, record in records:
            if "error" in record:
                answers.failed[at] = str(record["error"])
                continue
            answers.at.append(at)
            answers.outputs.extend(record["outputs"])
            answers.parts.append(len(record["outputs"]))
            answers.seconds.append(record.get("seconds", float("nan")))
            if "row" in record:
                answers.rows[at] = record
        return answers

    def window_scores(self, extraction: Extraction) -> Floats:
        """Return the log-odds of every window (of every clip if there are no windows)."""
        widths = {len(row) for row in self.outputs}
        if len(widths) > 1:
            raise DataError.of("output-widths", widths=str(sorted(widths)))
        return extraction.log_odds(np.asarray(self.outputs, dtype=np.float64))

    def scores(self, extraction: Extraction, pooling: Pooling) -> Floats:
        """Return one log-odds per item, with its windows pooled."""
        found = self.window_scores(extraction)
        if all(n == 1 for n in self.parts):
            return found
        ends = np.cumsum(self.parts)
        return np.array([pool(found[e - n : e], pooling) for e, n in zip(ends, self.parts, strict=True)])


def make_table(manifest: Manifest, answers: Answers, extraction: Extraction, pooling: Pooling) -> pl.DataFrame:
    """Return the scored trials in the order of the manifest: its columns, then score, probability and seconds.

    Raw scores have no probability.
    """
    score = answers.scores(extraction, pooling)
    probability = {} if extraction.kind == "raw" else {"probability": to_probability(score)}
    found = pl.DataFrame(
        {
            "_at": pl.Series(answers.at, dtype=pl.Int64),
            "score": score,
            **probability,
            "seconds": pl.Series(answers.seconds, dtype=pl.Float64),
        }
    ).sort("_at")
    known = found.drop(["_at"] if found["seconds"].is_not_nan().any() else ["_at", "seconds"])
    return pl.concat([manifest.frame[found["_at"]].drop("file"), known], how="horizontal")


def window_table(manifest: Manifest, answers: Answers, extraction: Extraction) -> pl.DataFrame | None:
    """Return item, number and log-odds of each window, in manifest order; None if no clip has more than one."""
    if all(n == 1 for n in answers.parts):
        return None
    found = pl.DataFrame(
        {
            "_at": [at for at, n in zip(answers.at, answers.parts, strict=True) for _ in range(n)],
            "window": [i for n in answers.parts for i in range(n)],
            "score": answers.window_scores(extraction),
        }
    ).sort("_at", "window")
    return found.select(manifest.frame["item"][found["_at"]], "window", "score")


def failures_text(manifest: Manifest, failed: Mapping[int, str]) -> str:
    """Return the failed items with their reasons, as a TSV for people."""
    rows = [manifest.row(at) for at in sorted(failed)]
    lines = [
        "\t".join(" ".join(text.split()) for text in (row["item"], row["file"], failed[at]))
        for at, row in zip(sorted(failed), rows, strict=True)
    ]
    return "\n".join(["item\tfile\treason", *lines]) + "\n"
