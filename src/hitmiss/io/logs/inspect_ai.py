"""Logs of inspect_ai: `.eval` (a zip of JSON files) and `.json`.

Every sample and epoch is a row. Of a `.eval` file the summaries of samples are enough. A sample that failed has no grade.
"""

from __future__ import annotations

import json
import zipfile
import zlib
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from hitmiss.core.errors import DataError, EnvironmentFault
from hitmiss.io.logs.log import Log, Row, grade_of, inner, object_of, objects

HEADER, SUMMARIES = "header.json", "summaries.json"
SETTINGS: Final = ("temperature", "seed", "max_tokens", "top_p", "reasoning_effort")


def is_log(head: bytes) -> bool:
    """Return whether a file is a log of inspect_ai: a zip (of a `.eval` file), or an object with its fields."""
    return head.startswith(b"PK") or (head.startswith(b"{") and b'"eval"' in head and b'"run_id"' in head)


def read_log(path: Path) -> Log:
    """Read a log; one that was not finished is refused."""
    data = _unpacked(path) if zipfile.is_zipfile(path) else object_of(path.read_bytes(), path)
    if data.get("status") != "success":
        raise DataError.of("log-not-finished", path_name=path.name, state=data.get("status"))
    spec = inner(data, "eval")
    rows = [row for sample in objects(data, "samples") for row in _rows(sample, str(spec.get("model", "")))]
    scorers = list(dict.fromkeys(str(row["scorer"]) for row in rows if row["scorer"]))
    summary = {
        f"{score.get('name')}/{name}": float(str(inner(inner(score, "metrics"), name).get("value")))
        for score in objects(inner(data, "results"), "scores")
        for name in inner(score, "metrics")
    }
    config = inner(spec, "model_generate_config")
    facts = {
        "tool": "inspect_ai",
        "version": inner(spec, "packages").get("inspect_ai"),
        "task": spec.get("task"),
        "created": spec.get("created"),
        "revision": inner(spec, "revision").get("commit"),
        **{name: config[name] for name in SETTINGS if config.get(name) is not None},
    }
    # a sample that failed was graded by no scorer: it counts for each of them
    rows = [{**row, "scorer": name} for row in rows for name in ([row["scorer"]] if row["scorer"] else scorers or [""])]
    return Log("inspect_ai", rows, ("model", "trial"), facts, scorers, summary, (path,))


def _rows(sample: Mapping[str, object], model: str) -> list[Row]:
    target = sample.get("target")
    about: Row = {
        "item": str(sample.get("id")),
        "model": model,
        "trial": str(sample.get("epoch", 1)),
        "target": target if isinstance(target, str) else json.dumps(target),
        "seconds": sample.get("working_time"),
        **{f"meta_{name}": v for name, v in inner(sample, "metadata").items() if isinstance(v, str | int | float)},
    }
    scores = inner(sample, "scores")
    if sample.get("error") or not scores:
        return [{**about, "scorer": "", "grade": None, "answer": "", "error": _why(sample.get("error"))}]
    found: list[Row] = []
    for name, score in scores.items():
        said = score if isinstance(score, Mapping) else {"value": score}
        value, answer = said.get("value"), said.get("answer") or ""
        if isinstance(value, Mapping):  # a scorer that gives several grades
            found += [
                {**about, "scorer": f"{name}/{key}", "grade": grade_of(one), "answer": answer, "error": ""}
                for key, one in value.items()
            ]
        else:
            found.append({**about, "scorer": name, "grade": grade_of(value), "answer": answer, "error": ""})
    return found


def _why(error: object) -> str:
    said = error.get("message") if isinstance(error, Mapping) else error
    return str(said or "the sample has no score")[:200]


def _unpacked(path: Path) -> dict[str, object]:
    with suppress(ImportError):
        import zipfile_zstd  # noqa: F401  # lets zipfile read what inspect_ai packs
    try:
        with zipfile.ZipFile(path) as packed:
            names = packed.namelist()
            if HEADER not in names:
                raise DataError.of("log-not-finished", path_name=path.name, state="started")
            header = object_of(packed.read(HEADER), path)
            if SUMMARIES in names:
                samples = json.loads(packed.read(SUMMARIES))
            else:
                samples = [json.loads(packed.read(name)) for name in names if name.startswith("samples/")]
    except NotImplementedError:
        raise EnvironmentFault.of("log-packed", path_name=path.name) from None
    except _damages() as error:
        raise DataError.of("broken-log", path_name=path.name, line=f": {error}") from None
    return {**header, "samples": samples}


def _damages() -> tuple[type[Exception], ...]:
    """Return what a damaged archive raises when it is read."""
    known = (zipfile.BadZipFile, zlib.error, EOFError, ValueError)
    with suppress(ImportError):
        from zstandard import ZstdError

        return (*known, ZstdError)
    return known
