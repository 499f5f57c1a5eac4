"""A finished run as the door sees it: the table inside, what the run says about its own scores, and where its files lay."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from hitmiss.io.joining import Coverage
from hitmiss.io.runs import FILES, MANIFEST, MEDIA, TABLE, load_manifest, require_complete
from hitmiss.readspec import ReadSpec


@dataclass(frozen=True)
class FinishedRun:
    """The table of a run, how to read it, and how many of its items have an answer."""

    table: Path
    options: ReadSpec
    coverage: Coverage | None
    notes: tuple[str, ...]
    provenance: Mapping[str, Any] = field(default_factory=dict)
    """What the run says about how its answers were made."""

    @property
    def choices(self) -> tuple[str, ...]:
        """What the signature must say: how many items failed."""
        return (f"failed({self.coverage[1] - self.coverage[0]})",) if self.coverage else ()


def open_finished(source: Any, options: ReadSpec) -> FinishedRun | None:
    """A run folder's table; None for anything else. An unfinished or a changed run is refused.

    The run knows the kind of its scores, the names of its classes and which of its columns are numbers; a caller who has
    calibrated them may still declare them LLRs.
    """
    if isinstance(source, list) and len(source) == 1:
        source = source[0]
    if not isinstance(source, str | Path) or not (Path(source) / MANIFEST).is_file():
        return None
    folder = Path(source)
    facts = require_complete(folder)["facts"]
    if "rows" in facts:  # verdicts, in a layout of their own
        known = {name: getattr(options, name) or facts[name] for name in ("layout", "positive", "negative")}
        return FinishedRun(folder / facts["rows"], options.changed(**known), None, ())
    declared: dict[str, Any] = {
        "columns": {"item": "item", "score": "score", **options.columns},
        "numbers": tuple(dict.fromkeys((*options.numbers, *facts.get("numbers", ())))),
        "runs": tuple(dict.fromkeys((*options.runs, *facts.get("runs", ())))),
        "positive": options.positive or facts.get("positive"),
        "negative": options.negative or facts.get("negative"),
    }
    if "target" in pl.read_parquet_schema(folder / TABLE):
        declared["columns"].setdefault("target", "target")
    if facts.get("has_labels"):
        declared["columns"].setdefault("label", "label")
    if options.score_kind != "llr":
        declared["score_kind"] = facts.get("score_kind", "raw")
    coverage = None if not facts.get("n_failed") else (facts["n_scored"], facts["n_scored"] + facts["n_failed"])
    notes, made = tuple(facts.get("notes", ())), facts.get("provenance", {})
    return FinishedRun(folder / TABLE, options.changed(**declared), coverage, notes, made)


def run_behind(source: str | Path) -> Path | None:
    """The run of a source: the folder itself, or for `results.jsonl` the `results.run` beside it that wrote it.

    >>> run_behind(".") is run_behind("no-such.jsonl") is None
    True
    """
    path = Path(source)
    beside = (path.with_suffix(".run"),) if path.is_file() else ()
    return next((p for p in (path, *beside) if (p / MANIFEST).is_file()), None)


def media_folder(run: Path) -> Path | None:
    """Where the files (or the one file of signals) of a run lay, as the run has written it down; None where it has not."""
    told = load_manifest(run).get("facts", {}).get(MEDIA)
    return run / told if isinstance(told, str) else None


def files_of(run: Path) -> dict[str, str]:
    """The file of each item, below the folder of the files."""
    if not (run / FILES).is_file():
        return {}
    table = pl.read_parquet(run / FILES)
    return dict(zip(table["item"].to_list(), table["file"].to_list(), strict=True))
