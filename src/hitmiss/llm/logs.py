"""Logs for `inspect view`: one per model and mode, each answer with its question, its turns and its score.

Right and wrong can be sorted there. A picture is in the log as it was sent; a larger one is named.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from hitmiss.core.errors import DataError
from hitmiss.detection.detector import need
from hitmiss.llm.items import Item
from hitmiss.llm.openai_forms import objects_in
from hitmiss.llm.plan import CallPlan
from hitmiss.llm.prompts import as_data
from hitmiss.llm.transcript import as_events, as_messages

if TYPE_CHECKING:
    from inspect_ai.log import EvalSample
    from inspect_ai.model import Content

LOGS: Final = "logs"
LARGEST: Final = 1 << 20
"""Bytes of the largest picture that is put into a log."""
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
        samples = [_sample(row, items[str(row["id"])], plan) for row in own]
        right = sum(row["prediction"] == row.get("label") for row in own) / len(own)
        score = log.EvalScore(
            name="verdict", scorer="verdict", metrics={"accuracy": log.EvalMetric(name="accuracy", value=right)}
        )
        results = log.EvalResults(total_samples=len(own), completed_samples=len(own), scores=[score])
        made = log.EvalLog(status="success", eval=spec, results=results, samples=samples)
        log.write_eval_log(made, str(folder / LOGS / f"{number:03d}-{mode}.eval"))


def _sample(row: Mapping[str, object], item: Item, plan: CallPlan) -> EvalSample:
    log, model, scorer = (need(f"inspect_ai.{part}", "llm") for part in ("log", "model", "scorer"))
    name, answer, label = str(row["model"]), str(row["prediction"] or ""), str(row.get("label") or "")
    how = plan.variant(name)
    question = [
        model.ChatMessageSystem(content=how.prompts.rules(item)),
        model.ChatMessageUser(content=[model.ContentText(text=how.prompts.user[item.kind]), _shown(item)]),
    ]
    said = str(row["raw_analysis"] or "")
    turns = objects_in(row, "turns") or ([{"role": "assistant", "text": said}] if said else [])
    why = str(row.get("error") or row["problem"] or row["rationale"])
    score = scorer.Score(value=GRADES[answer == label], answer=answer, explanation=why)
    facts = {name: row[name] for name in ("confidence", "problem", "outcome", "tool_usage", "error") if name in row}
    return log.EvalSample(
        id=item.id,
        epoch=int(str(row["trial"])) + 1,
        input=question,
        target=label,
        messages=[*question, *as_messages(turns)],
        output=model.ModelOutput.from_content(name, said),
        scores={"verdict": score},
        events=as_events(turns, question, name),
        metadata=facts,
        total_time=row["latency_seconds"],
    )


def _shown(item: Item) -> Content:
    """Return an item as a log shows it: a text, a picture that is not too large, or the name of the file."""
    model = need("inspect_ai.model", "llm")
    if item.kind == "text":
        return model.ContentText(text=as_data(item.text or ""))
    try:
        data = item.load() if item.kind == "image" else b""
    except DataError:  # it was asked about, and has changed or gone since
        data = b""
    if not data or len(data) > LARGEST:
        return model.ContentText(text=f"[{item.kind}: {item.file}]")
    return model.ContentImage(image=f"data:{item.media_type};base64,{base64.b64encode(data).decode()}")
