"""Results of promptfoo (`promptfoo eval -o results.json`): one row per test, prompt and provider."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from hitmiss.core.errors import DataError
from hitmiss.io.logs.log import Log, Row, grade_of, inner, object_of, objects

PASSED, SCORE = "pass", "score"
ERROR = 2
"""The reason of a failure that is not the answer's: the call failed."""


def is_log(head: bytes) -> bool:
    """Return whether a file is a result of promptfoo."""
    return head.startswith(b"{") and (b'"evalId"' in head or (b'"results"' in head and b'"prompts"' in head))


def read_log(path: Path) -> Log:
    """Read the results; `pass` (yes or no) is the grade unless the caller names `score` or a named score."""
    data = object_of(path.read_bytes(), path)
    found = inner(data, "results")
    results = objects(found, "results")
    if not results:
        raise DataError.of("log-empty", path_name=path.name)
    times: Counter[tuple[object, ...]] = Counter()
    rows = [row for result in results for row in _rows(result, times)]
    stats = inner(found, "stats")
    summary = {name: float(str(stats[name])) for name in ("successes", "failures", "errors") if name in stats}
    config = inner(data, "config")
    facts = {
        "tool": "promptfoo",
        "version": inner(data, "metadata").get("promptfooVersion"),
        "created": found.get("timestamp"),
        "description": config.get("description"),
        "eval": data.get("evalId"),
        "prompts": {
            str(p.get("label") or p.get("raw")): hashlib.sha256(str(p.get("raw")).encode()).hexdigest()
            for p in objects(found, "prompts")
        },
    }
    scorers = list(dict.fromkeys(str(row["scorer"]) for row in rows))
    return Log("promptfoo", rows, ("model", "prompt", "trial"), facts, scorers, summary, (path,))


def _rows(result: Mapping[str, object], times: Counter[tuple[object, ...]]) -> list[Row]:
    provider, prompt = inner(result, "provider"), inner(result, "prompt")
    case = inner(result, "testCase")
    model = str(provider.get("label") or provider.get("id") or result.get("provider") or "")
    variables = result.get("vars") or case.get("vars") or {}
    known = str(inner(case, "metadata").get("id") or "")
    item = known or hashlib.sha256(json.dumps(variables, sort_keys=True).encode()).hexdigest()[:12]
    about: Row = {
        "item": item,
        "model": model,
        "prompt": str(prompt.get("label") or prompt.get("raw") or result.get("promptIdx")),
        "test": str(result.get("testIdx", "")),
        "description": case.get("description") or result.get("description") or "",
        "seconds": float(str(result["latencyMs"])) / 1000 if result.get("latencyMs") is not None else None,
        "cost": result.get("cost"),
        "answer": inner(result, "response").get("output") or "",
    }
    key = (item, about["model"], about["prompt"])
    about["trial"] = str(times[key])
    times[key] += 1
    has_failed = result.get("failureReason") == ERROR
    error = str(result.get("error") or "the call failed")[:200] if has_failed else ""
    grades = {PASSED: result.get("success"), SCORE: result.get("score"), **inner(result, "namedScores")}
    return [
        {**about, "scorer": name, "grade": None if has_failed else grade_of(value), "error": error}
        for name, value in grades.items()
    ]
