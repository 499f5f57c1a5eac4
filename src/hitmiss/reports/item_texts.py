"""Texts about items that trials do not hold: the texts of prediction files, and the rationales of a model's answers."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from hitmiss.core.convert import InvalidField
from hitmiss.io.text_rows import read_rows
from hitmiss.llm.transcript import as_text
from hitmiss.protocols.toxicity import load_run
from hitmiss.runs.manifest import MANIFEST, load_manifest, run_facts

Texts = Callable[[], Mapping[str, str]]
"""Reads the text of each item if the trials were read without texts: once, when the first is needed."""


def texts_of_predictions(folder: str, tag: str) -> Texts:
    """Return the texts in prediction files of a run tag, by the ids of the trials."""

    @cache
    def read() -> Mapping[str, str]:
        run = load_run(folder, tag, whole=True)
        raw, frame = run.predictions.raw, run.predictions.frame
        texts = [f["text"].to_list() if "text" in f.columns else None for f in raw]
        places = zip(run.trials.items, frame["file"], frame["row"], strict=True)
        return {item: own[row] for item, file, row in places if (own := texts[file]) is not None}

    return read


@dataclass(frozen=True)
class Reason:
    """Why a model answered as it did, or failed; and what was said until then: its turns and the calls of tools."""

    rationale: str = ""
    transcript: str = ""


@dataclass(frozen=True)
class Rationales:
    """The reasons that a model gives: those of each answer in the rows of a triage."""

    reasons: Mapping[tuple[str, str, str, str], Reason]

    def of(self, row: Mapping[str, object]) -> Reason:
        """Return the reason of the answer in a row of trials; empty if it is unknown."""
        model, tools, trial = (str(row.get(name) or "") for name in ("model", "tools", "trial"))
        return self.reasons.get((str(row["item"]), model, tools, trial), Reason())


def rationales_beside(source: str | Path) -> Rationales | None:
    """Read the rationales in a file of answers (JSON lines of the triage evaluation document) or in a run of a model.

    None without any.
    """
    path = _rows_in(Path(source))
    if path is None:
        return None
    with path.open("rb") as file:
        if b'"rationale"' not in file.readline(1 << 20):
            return None
    found: dict[tuple[str, str, str, str], Reason] = {}
    for row in read_rows(path).frame.to_dicts():
        tools = {"true": "tools", "false": "no-tools"}.get(str(row.get("use_tools") or "").lower(), "")
        key = (str(row.get("id") or ""), str(row.get("model") or ""), tools, str(row.get("trial") or ""))
        said = next((str(row[name]) for name in ("rationale", "error", "problem") if row.get(name)), "")
        found[key] = Reason(said, _transcript(str(row.get("turns") or "")))
    return Rationales(found)


def _rows_in(path: Path) -> Path | None:
    """Return the file of answers that a source is, or that a run holds."""
    if (path / MANIFEST).is_file():
        rows = run_facts(load_manifest(path)).rows
        return None if rows is None else path / rows
    return path if path.suffix.lower() == ".jsonl" and path.is_file() else None


def _transcript(turns: str) -> str:
    try:
        return as_text(json.loads(turns)) if turns else ""
    except (ValueError, TypeError, KeyError, InvalidField):  # a column of that name in a file of another tool
        return ""
