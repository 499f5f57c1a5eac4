"""Reports of garak (`garak.….report.jsonl`): one row per attempt, generation and detector.

An output passes if its detector gives less than the threshold of the report. Attempts of two runs of the same probe are
paired by their place in the probe.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from hitmiss.core.errors import DataError
from hitmiss.io.logs.log import Log, Row, inner, object_of

COMPLETE: Final = 2
"""The status of an attempt whose outputs were judged."""
THRESHOLD: Final = 0.5
"""That of garak, if a report does not say."""


def is_log(head: bytes) -> bool:
    """Return whether a file is a report of garak."""
    return b'"entry_type"' in head and (b"start_run setup" in head or b'"attempt"' in head)


def read_log(path: Path) -> Log:
    """Read the attempts that were judged."""
    setup: Mapping[str, object] = {}
    attempts: dict[str, dict[str, object]] = {}
    summary: dict[str, float] = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        entry = object_of(line, path, number) if line.strip() else {}
        kind = entry.get("entry_type")
        if kind == "start_run setup":
            setup = entry
        elif kind == "attempt" and entry.get("status") == COMPLETE:
            attempts[str(entry.get("uuid"))] = entry
        elif kind == "eval":
            name = f"{entry.get('probe')}/{str(entry.get('detector')).removeprefix('detector.')}"
            total = entry.get("total", entry.get("total_evaluated"))
            summary |= {f"{name}/passed": float(str(entry.get("passed"))), f"{name}/total": float(str(total))}
    threshold = float(str(setup.get("run.eval_threshold") or THRESHOLD))
    places: dict[str, int] = defaultdict(int)
    rows: list[Row] = []
    model = str(setup.get("plugins.target_name") or setup.get("plugins.model_name") or setup.get("plugins.target_type")
                or setup.get("plugins.model_type") or path.name)  # fmt: skip
    for attempt in attempts.values():
        probe = str(attempt.get("probe_classname"))
        place = f"{probe}/{places[probe]}"
        places[probe] += 1
        rows += _rows(attempt, probe, place, model, threshold)
    if not rows:
        raise DataError.of("log-empty", path_name=path.name)
    facts = {
        "tool": "garak",
        "version": setup.get("_config.version"),
        "created": setup.get("transient.starttime_iso"),
        "run": setup.get("transient.run_id"),
        "threshold": threshold,
        "generations": setup.get("run.generations"),
        "seed": setup.get("run.seed"),
    }
    return Log("garak", rows, ("model", "trial"), facts, (), summary, (path,))


def _rows(attempt: Mapping[str, object], probe: str, place: str, model: str, threshold: float) -> list[Row]:
    found: list[Row] = []
    for detector, values in inner(attempt, "detector_results").items():
        for trial, value in enumerate(values if isinstance(values, list) else []):
            is_known = isinstance(value, int | float) and not isinstance(value, bool)
            found.append(
                {
                    "item": place,
                    "target": detector,
                    "probe": probe,
                    "detector": detector,
                    "model": model,
                    "trial": str(trial),
                    "grade": float(float(value) < threshold) if is_known else None,
                    "error": "" if is_known else "the detector gave no result",
                }
            )
    return found
