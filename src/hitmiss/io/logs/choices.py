"""Exports of Label Studio (JSON) and Argilla (JSON): what people and models chose, and which choice is the truth.

Every person and every model is a run. The truth is an annotation that is marked as ground truth (Label Studio), a field
`label` of the data, or the key that the caller gives.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from hitmiss.core.errors import DataError
from hitmiss.io.logs.log import Log, Row, inner, objects

TRUTHS: Final = ("label", "ground_truth", "truth")
KINDS: Final = ("choices", "labels", "rating")


def is_label_studio(head: bytes) -> bool:
    """Return whether a file is an export of Label Studio."""
    return head.lstrip().startswith(b"[") and b'"annotations"' in head and b'"data"' in head


def is_argilla(head: bytes) -> bool:
    """Return whether a file is an export of Argilla."""
    return head.lstrip().startswith(b"[") and b'"fields"' in head and b'"responses"' in head


def read_label_studio(path: Path) -> Log:
    """Read the choices of annotators and of models; a task that was skipped is an abstention."""
    rows: list[Row] = []
    questions: dict[str, None] = {}
    for task in _tasks(path):
        data = inner(task, "data")
        item = str(data.get("id") or task.get("id"))
        told = [(a, dict(_chosen(a))) for a in objects(task, "annotations")]
        questions |= dict.fromkeys(name for _, chosen in told for name in chosen)
        truths = [chosen for annotation, chosen in told if annotation.get("ground_truth")]
        about = {"item": item, **_slices(data)}
        for annotation, chosen in told:
            if not annotation.get("ground_truth"):
                who = annotation.get("completed_by")
                name = who.get("email") or who.get("id") if isinstance(who, Mapping) else who
                seconds = annotation.get("lead_time")
                rows += _rows(about, f"annotator {name}", chosen, truths, data, questions, seconds=seconds)
        for prediction in objects(task, "predictions"):
            name, score = str(prediction.get("model_version") or "model"), prediction.get("score")
            rows += _rows(about, name, dict(_chosen(prediction)), truths, data, questions, confidence=score)
    return _log("label-studio", path, rows, list(questions))


def read_argilla(path: Path) -> Log:
    """Read the responses of people and the suggestions of models."""
    rows: list[Row] = []
    questions: dict[str, None] = {}
    for record in _tasks(path):
        fields, meta = inner(record, "fields"), inner(record, "metadata")
        about = {"item": str(record.get("id")), **_slices(meta)}
        responses, suggestions = inner(record, "responses"), inner(record, "suggestions")
        questions |= dict.fromkeys([*responses, *suggestions])
        truth = {**fields, **meta}
        for question, given in responses.items():
            for response in given if isinstance(given, list) else []:
                chosen = {question: str(response.get("value"))} if isinstance(response, Mapping) else {}
                rows += _rows(about, f"annotator {response.get('user_id')}", chosen, [], truth, questions)
        for question, said in suggestions.items():
            one = said if isinstance(said, Mapping) else {"value": said}
            name, score = str(one.get("agent") or "model"), one.get("score")
            rows += _rows(about, name, {question: str(one.get("value"))}, [], truth, questions, confidence=score)
    return _log("argilla", path, rows, list(questions))


def _log(tool: str, path: Path, rows: list[Row], questions: list[str]) -> Log:
    if not rows:
        raise DataError.of("log-empty", path_name=path.name)
    has_truth = any(row["label"] for row in rows)
    rows = rows if has_truth else [{k: v for k, v in row.items() if k != "label"} for row in rows]
    return Log(tool, rows, ("model",), {"tool": tool}, questions, {}, (path,))


def _tasks(path: Path) -> list[Mapping[str, object]]:
    try:
        found = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise DataError.of("broken-log", path_name=path.name, line=f": {error}") from None
    return [one for one in found if isinstance(one, Mapping)] if isinstance(found, list) else []


def _chosen(answer: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    """Yield what an annotation or a prediction says, by the name of its question."""
    for result in objects(answer, "result"):
        value = inner(result, "value")
        for kind in KINDS:
            said = value.get(kind)
            if said is not None:
                yield str(result.get("from_name")), str(said[0] if isinstance(said, list) and len(said) == 1 else said)


def _rows(
    about: Mapping[str, object],
    model: str,
    chosen: Mapping[str, str],
    truths: list[dict[str, str]],
    data: Mapping[str, object],
    questions: Mapping[str, None],
    **numbers: object,
) -> list[Row]:
    """Return a row for each question; one that was left open is an abstention."""
    told = next((str(data[name]) for name in TRUTHS if data.get(name)), "")
    return [
        {
            **about,
            "model": model,
            "scorer": question,
            "choice": chosen.get(question, "uncertain"),
            "label": next((truth[question] for truth in truths if question in truth), told),
            **{name: value for name, value in numbers.items() if value is not None},
        }
        for question in (chosen or questions)
    ]


def _slices(data: Mapping[str, object]) -> dict[str, object]:
    return {f"meta_{k}": v for k, v in data.items() if isinstance(v, str | int | float) and k not in (*TRUTHS, "id")}
