"""Texts about items that trials do not hold: the texts of prediction files, and the rationales of a model's answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from hitmiss.io.text_rows import read_rows
from hitmiss.protocols.toxicity import load_run

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
class Rationales:
    """The reasons that a model gives: the rationale of each answer in the rows of a triage."""

    texts: Mapping[tuple[str, str, str, str], str]

    def of(self, row: Mapping[str, object]) -> str:
        """Return the rationale of the answer in a row of trials; empty if it is unknown."""
        model, tools, trial = (str(row.get(name) or "") for name in ("model", "tools", "trial"))
        return self.texts.get((str(row["item"]), model, tools, trial), "")


def rationales_beside(source: str | Path) -> Rationales | None:
    """Read the rationales in a file of answers (JSON lines of the triage evaluation document); None without any."""
    path = Path(source)
    if path.suffix.lower() != ".jsonl" or not path.is_file():
        return None
    with path.open("rb") as file:
        if b'"rationale"' not in file.readline(1 << 20):
            return None
    found: dict[tuple[str, str, str, str], str] = {}
    for row in read_rows(path).frame.to_dicts():
        tools = {"true": "tools", "false": "no-tools"}.get(str(row.get("use_tools") or "").lower(), "")
        key = (str(row.get("id") or ""), str(row.get("model") or ""), tools, str(row.get("trial") or ""))
        found[key] = str(row.get("rationale") or "")
    return Rationales(found)
