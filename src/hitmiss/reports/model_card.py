"""Results as the metadata of a model card: the `model-index` block that model hubs read."""

from __future__ import annotations

import io
from typing import Final

from hitmiss.core.results import Estimate, Results
from hitmiss.core.text import escape_invisible
from hitmiss.reports.evaluations import signature_part

TASKS: Final = {
    "asvspoof5": "audio-classification",
    "deepfake-audio": "audio-classification",
    "toxicity": "text-classification",
    "triage": "image-classification",
    "ecg-attacks": "time-series-classification",
}


def model_card(results: Results, model: str, dataset: str | None = None, verdict: str = "") -> str:
    """Return the YAML block between `---` lines: pooled numbers with their intervals, then those of single slices."""
    from ruamel.yaml import YAML

    protocol = results.protocol or "custom"
    data = signature_part(results.signature, "data") or "unknown"
    shown = [e for e in results if e.average in (None, "macro") and e.value is not None]
    groups: dict[tuple[tuple[str, str], ...], list[Estimate]] = {}
    for e in shown:
        groups.setdefault((*e.run.items(), *e.slice.items()), []).append(e)
    task = {"type": TASKS.get(protocol, "other"), "name": protocol}
    entries = []
    for cell, own in groups.items():
        where = ", ".join(f"{k}={v}" for k, v in cell)
        named: dict[str, object] = {"name": dataset or protocol, "type": protocol, "revision": data}
        if where:
            named["split"] = where
        entries.append({"task": task, "dataset": named, "metrics": [_metric(e) for e in own]})
    block = {"model-index": [{"name": model, "results": entries}]}
    text = io.StringIO()
    yaml = YAML(typ="safe", pure=True)
    yaml.default_flow_style = False
    yaml.sort_base_mapping_type_on_output = False  # type: ignore[assignment]
    yaml.width = 10_000
    yaml.representer.ignore_aliases = lambda _: True
    yaml.dump(block, text)
    lines = [*([escape_invisible(verdict)] if verdict else []), *results.signature.splitlines()]
    comment = "".join(f"# {line}\n" for line in lines)
    return f"---\n{text.getvalue()}{comment}---\n"


def _metric(e: Estimate) -> dict[str, object]:
    made: dict[str, object] = {
        "type": e.metric.split("(")[0],
        "name": e.metric if e.average is None else f"{e.metric} ({e.average})",
    }
    made["value"] = float(e.value) if e.value is not None else None
    if e.low is not None and e.high is not None:
        made["interval"] = [float(e.low), float(e.high)]
    made["n"] = e.n
    return made
