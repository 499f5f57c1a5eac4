"""Results of lm-evaluation-harness with `--log_samples`: a folder with `samples_TASK_TIME.jsonl` and `results_TIME.json`.

Every sample is a row; its grades are the metrics of the task, under each filter. A folder with several runs of a task is
read by its last one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from hitmiss.core.errors import DataError
from hitmiss.io.logs.log import Log, Row, grade_of, inner, object_of

SAMPLES: Final = re.compile(r"samples_(?P<task>.+)_(?P<time>\d{4}-\d\d-\d\dT[\d.:-]+)\.jsonl")
OWN: Final = ("doc_id", "doc", "target", "arguments", "resps", "filtered_resps", "filter", "metrics")
FIRST: Final = ("acc", "exact_match")
"""The metrics that are taken, in this order, unless the caller names another; then the first of the task."""
UNGRADED: Final = ("bypass",)


def is_log(head: bytes) -> bool:
    """Return whether a file holds samples of lm-eval."""
    return b'"filtered_resps"' in head and b'"doc_id"' in head


def has_logs(folder: Path) -> bool:
    """Return whether a folder holds samples of lm-eval."""
    return any(SAMPLES.fullmatch(file.name) for file in folder.rglob("samples_*.jsonl"))


def read_log(path: Path) -> Log:
    """Read the samples of every task in a folder, or those of one file."""
    files = _files(path)
    results = _results(path if path.is_dir() else path.parent, files)
    config = inner(results, "config")
    model = str(results.get("model_name") or results.get("model_source") or config.get("model") or path.name)
    rows: list[Row] = []
    for task, file in files.items():
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), start=1):
            if line.strip():
                rows += _rows(object_of(line, file, number), task, model, several=len(files) > 1)
    if not rows:
        raise DataError.of("log-empty", path_name=path.name)
    scorers = list(dict.fromkeys(str(row["scorer"]) for row in rows))
    scorers.sort(key=lambda name: next((i for i, first in enumerate(FIRST) if name.split(",")[0] == first), len(FIRST)))
    summary = {
        f"{task}/{name}": float(value)
        for task, own in inner(results, "results").items()
        if isinstance(own, Mapping)
        for name, value in own.items()
        if isinstance(value, int | float) and not isinstance(value, bool) and "_stderr" not in name
    }
    about = ("git_hash", "date", "lm_eval_version", "transformers_version", "chat_template_sha", "start_time")
    facts = {
        "tool": "lm-eval",
        **{name: results[name] for name in about if results.get(name) is not None},
        "settings": {k: v for k, v in config.items() if isinstance(v, str | int | float) and k != "model"},
        "versions": dict(inner(results, "versions")),
        "few_shot": dict(inner(results, "n-shot")),
        "task_hashes": dict(inner(results, "task_hashes")),
    }
    return Log("lm-eval", rows, ("model",), facts, scorers, summary, tuple(files.values()))


def _files(path: Path) -> dict[str, Path]:
    """Return the newest samples of every task."""
    if path.is_file():
        name = SAMPLES.fullmatch(path.name)
        return {name["task"] if name else path.stem: path}
    found: dict[str, tuple[str, Path]] = {}
    for file in sorted(path.rglob("samples_*.jsonl")):
        name = SAMPLES.fullmatch(file.name)
        if name is not None:
            found[name["task"]] = max(found.get(name["task"], ("", file)), (name["time"], file))
    folders = {file.parent for _, file in found.values()}
    if len(folders) > 1:
        raise DataError.of(
            "log-several-models", path_name=path.name, folders=", ".join(sorted(f.name for f in folders))
        )
    return {task: file for task, (_, file) in found.items()}


def _results(folder: Path, files: Mapping[str, Path]) -> dict[str, object]:
    """Return what the run reports: the file of the same time as the samples, or else the last one."""
    times = {name["time"] for file in files.values() if (name := SAMPLES.fullmatch(file.name))}
    known = sorted(folder.rglob("results_*.json"))
    own = [file for file in known if file.stem.removeprefix("results_") in times] or known
    try:
        return object_of(own[-1].read_bytes(), own[-1]) if own else {}
    except OSError:
        return {}


def _rows(sample: Mapping[str, object], task: str, model: str, *, several: bool) -> list[Row]:
    doc = str(sample.get("doc_id"))
    target, answer = sample.get("target"), sample.get("filtered_resps")
    about: Row = {
        "item": f"{task}/{doc}" if several else doc,
        "task": task,
        "model": model,
        "target": target if isinstance(target, str) else json.dumps(target),
        "answer": answer[0] if isinstance(answer, list) and answer and isinstance(answer[0], str) else "",
        "doc_hash": sample.get("doc_hash", ""),
        "error": "",
    }
    under = str(sample.get("filter") or "none")
    listed = sample.get("metrics")
    names = listed if isinstance(listed, list) else [n for n in sample if n not in OWN and not n.endswith("_hash")]
    return [
        {**about, "scorer": f"{name},{under}", "grade": grade}
        for name in map(str, names)
        if name not in UNGRADED and (grade := grade_of(sample.get(name))) is not None
    ]
