"""Files in which leaderboards exchange results: `result.yaml` of the Speech Anti-Spoofing Arena, and Hugging Face's
`.eval_results/*.yaml`. Both are written from a board and read back as plain entries.

The layouts are those of the speech-spoof-bench project (its `result.schema.json`, version 1) and of
`eval_results.yaml` in huggingface/hub-docs. Neither has a field for an interval: Hugging Face's has `notes`, which
carries it; the Arena's refuses unknown fields.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from hitmiss.boards.board import Board, BoardRow
from hitmiss.boards.numbers import BoardNumber
from hitmiss.boards.plan import Dataset
from hitmiss.core import artifacts
from hitmiss.core.errors import DataError, UsageError

__all__ = ["PublishedResult", "read_published", "write_arena", "write_hub"]

PER_CENT: Final = "_percent"
ARENA_FIELDS: Final = frozenset({"schema_version", "system", "dataset", "scores", "arena", "artifact"})
COUNTS: Final = ("n_trials", "n_skipped")


@dataclass(frozen=True)
class PublishedResult:
    """A result as another leaderboard states it: a value without an interval."""

    dataset: str
    metric: str
    value: float
    system: str = ""
    n_trials: int | None = None
    n_skipped: int | None = None
    revision: str = ""
    notes: str = ""


def write_arena(board: Board, folder: str | Path, *, arena_url: str, scores_url: str) -> list[Path]:
    """Write `SLUG/.eval_results/ORG/NAME/result.yaml` for every system and every data set that has a number.

    Parameters
    ----------
    board
        The board; its data sets need an `id` and a `revision` (in `board.toml`).
    folder
        Where to write.
    arena_url, scores_url
        Addresses that the files state: of the arena, and of the score files (`{slug}` and `{dataset}` are filled in).
    """
    written = []
    for row, dataset, number in _cells(board):
        slug = slug_of(row.system)
        document = {
            "schema_version": 1,
            "system": {"name": row.system, "slug": slug, "paper": {"arxiv_id": ""}},
            "dataset": {"id": dataset.id, "revision": dataset.revision, "split": dataset.split},
            "scores": {
                "n_trials": number.n,
                "n_skipped": 0,
                f"{board.metric}{PER_CENT}": round(100 * _value(number), 6),
            },
            "arena": {"url": arena_url, "system_url": f"{arena_url}?system={slug}"},
            "artifact": {"scores_url": scores_url.format(slug=slug, dataset=dataset.id)},
        }
        path = Path(folder, slug, ".eval_results", *dataset.id.split("/"), "result.yaml")
        path.parent.mkdir(parents=True, exist_ok=True)
        artifacts.write(path, _yaml(document))
        written.append(path)
    return written


def write_hub(board: Board, folder: str | Path, *, source_url: str = "", date: str = "") -> list[Path]:
    """Write `SLUG/.eval_results/DATASET.yaml` for every system, as Hugging Face's model pages read them."""
    written = []
    for row, dataset, number in _cells(board):
        entry: dict[str, object] = {
            "dataset": {
                "id": dataset.id,
                "task_id": board.metric,
                "split": dataset.split,
                **({"revision": dataset.revision} if dataset.revision else {}),
            },
            "value": _value(number),
            **({"date": date} if date else {}),
            **({"source": {"url": source_url, "name": "hitmiss board"}} if source_url else {}),
            "notes": _notes(board, number),
        }
        path = Path(folder, slug_of(row.system), ".eval_results", f"{slug_of(dataset.id)}.yaml")
        path.parent.mkdir(parents=True, exist_ok=True)
        artifacts.write(path, _yaml([entry]))
        written.append(path)
    return written


def read_published(path: str | Path) -> list[PublishedResult]:
    """Read a `result.yaml` of the Arena or a file of Hugging Face's `.eval_results`.

    Values whose name ends in `_percent` are read as shares.

    Raises
    ------
    DataError
        If the file is of neither kind, or a field is missing.
    """
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    file = Path(path)
    artifacts.note_input(file)
    try:
        data = YAML(typ="safe").load(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, YAMLError) as error:
        raise DataError.of("not-a-file", file=file.name, what="YAML", error=error) from None
    try:
        if isinstance(data, Mapping) and data.get("schema_version") == 1:
            return _of_arena(data)
        if isinstance(data, list):
            return [_of_hub(entry) for entry in data]
    except (KeyError, TypeError, ValueError) as error:
        raise DataError.of("not-published/lacks", file_name=file.name, error=error) from None
    raise DataError.of("not-published", file_name=file.name)


def slug_of(name: str) -> str:
    """Return a name in small letters, digits and hyphens, as addresses and file names need it.

    >>> slug_of("AASIST3 (large)"), slug_of("…")
    ('aasist3-large', 'system')
    """
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "system"


def _cells(board: Board) -> Iterator[tuple[BoardRow, Dataset, BoardNumber]]:
    named = [d for d in board.datasets if d.id]
    if not named:
        raise UsageError.of("unpublished-data-set")
    slugs = [slug_of(row.system) for row in board.rows]
    if twice := next((s for s in slugs if slugs.count(s) > 1), None):
        raise UsageError.of("same-name/systems", twice=twice)
    for row in board.rows:
        for dataset in named:
            if row.cells[dataset.name].value is not None:
                yield row, dataset, row.cells[dataset.name]


def _value(number: BoardNumber) -> float:
    assert number.value is not None
    return number.value


def _notes(board: Board, number: BoardNumber) -> str:
    ends = "" if number.low is None else f", {board.level:.0%} interval [{number.low:.6g}, {number.high:.6g}]"
    return f"{board.metric}{ends}, {number.n} trials, {board.draws} draws, hitmiss"


def _of_arena(data: Mapping[str, object]) -> list[PublishedResult]:
    if unknown := {*map(str, data)} - ARENA_FIELDS:
        raise ValueError(f"unknown field {sorted(unknown)[0]!r}")
    system, dataset, scores = data["system"], data["dataset"], data["scores"]
    assert isinstance(system, Mapping) and isinstance(dataset, Mapping) and isinstance(scores, Mapping)
    counts = {name: int(scores[name]) for name in COUNTS}
    return [
        PublishedResult(
            str(dataset["id"]),
            str(name).removesuffix(PER_CENT),
            float(value) / 100 if str(name).endswith(PER_CENT) else float(value),
            str(system["name"]),
            counts["n_trials"],
            counts["n_skipped"],
            str(dataset["revision"]),
        )
        for name, value in scores.items()
        if name not in COUNTS
    ]


def _of_hub(entry: object) -> PublishedResult:
    if not isinstance(entry, Mapping) or not isinstance(entry["dataset"], Mapping):
        raise TypeError("an entry must have a data set and a value")
    dataset = entry["dataset"]
    metric, revision = str(dataset.get("task_id", "")), str(dataset.get("revision", ""))
    notes = str(entry.get("notes", ""))
    return PublishedResult(str(dataset["id"]), metric, float(entry["value"]), revision=revision, notes=notes)


def _yaml(document: object) -> str:
    from ruamel.yaml import YAML

    writer = YAML(typ="safe")
    writer.default_flow_style = False
    writer.sort_base_mapping_type_on_output = False  # type: ignore[assignment]
    text = io.StringIO()
    writer.dump(document, text)
    return text.getvalue()
