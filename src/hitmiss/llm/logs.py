"""Logs for `inspect view`: one per model and mode, each answer with its score, so that right and wrong can be sorted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from hitmiss.detection.detector import need
from hitmiss.llm.items import Item
from hitmiss.llm.plan import CallPlan

LOGS: Final = "logs"
GRADES: Final = {True: "C", False: "I"}


def write_logs(plan: CallPlan, rows: Sequence[Mapping[str, object]], folder: Path) -> None:
    """Write the rows of language models as logs of inspect_ai into the run folder; older ones are replaced."""
    items = {item.id: item for item in plan.items}
    parts: dict[tuple[str, bool], list[Mapping[str, object]]] = {}
    for row in rows:
        if row["model"] not in plan.detectors:
            parts.setdefault((str(row["model"]), bool(row["use_tools"])), []).append(row)
    if not parts:
        return
    log = need("inspect_ai.log", "llm")
    (folder / LOGS).mkdir(exist_ok=True)
    for number, ((model, use_tools), own) in enumerate(parts.items()):
        mode = "tools" if use_tools else "no-tools"
        spec = log.EvalSpec(
            created=str(own[0]["timestamp"]),
            task=f"items-{mode}",
            model=model,
            dataset=log.EvalDataset(samples=len(plan.items)),
            config=log.EvalConfig(epochs=plan.trials),
            metadata=plan.config,
        )
        samples = [_sample(row, items[str(row["id"])], plan.prompts.system) for row in own]
        made = log.EvalLog(status="success", eval=spec, samples=samples)
        log.write_eval_log(made, str(folder / LOGS / f"{number:03d}-{mode}.eval"))


def _sample(row: Mapping[str, object], item: Item, system: str) -> object:
    log, model, scorer = (need(f"inspect_ai.{part}", "llm") for part in ("log", "model", "scorer"))
    shown = item.text if item.kind == "text" and item.text is not None else f"[{item.kind}: {item.file}]"
    answer, label = str(row["prediction"] or ""), str(row["label"])
    score = scorer.Score(value=GRADES[answer == label], answer=answer, explanation=str(row["rationale"]))
    said = str(row["raw_analysis"] or row.get("error") or "")
    return log.EvalSample(
        id=item.id,
        epoch=int(str(row["trial"])) + 1,
        input=shown,
        target=label,
        messages=[
            model.ChatMessageSystem(content=system),
            model.ChatMessageUser(content=shown),
            model.ChatMessageAssistant(content=said),
        ],
        output=model.ModelOutput.from_content(str(row["model"]), said),
        scores={"verdict": score},
        metadata={name: row[name] for name in ("confidence", "problem", "outcome", "tool_usage") if name in row},
    )
