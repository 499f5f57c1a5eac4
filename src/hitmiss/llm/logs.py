"""Logs for `inspect view`: one per model and mode, each answer with its question, its turns and its score.

Right and wrong can be sorted there. A picture is in the log as it was sent; a larger one is named. A log is written as
inspect_ai writes it (a zip file with a JSON file for each answer), one answer after the other, without inspect_ai.
"""

from __future__ import annotations

import base64
import hashlib
import json
import shutil
import tempfile
import zipfile
from collections.abc import Iterable, Mapping
from itertools import groupby
from pathlib import Path
from typing import Final

from hitmiss.core.errors import DataError
from hitmiss.llm.items import Item
from hitmiss.llm.openai_forms import objects_in
from hitmiss.llm.plan import CallPlan
from hitmiss.llm.prompts import as_data
from hitmiss.llm.transcript import as_events, as_messages

LOGS: Final = "logs"
LARGEST, MOST = 1 << 20, 1 << 28
"""Bytes of the largest picture that is put into a log, and of all of them."""
GRADES: Final = {True: "C", False: "I"}
VERSION: Final = 2
"""The version of inspect_ai's format."""
Object = dict[str, object]


def write_logs(plan: CallPlan, rows: Iterable[Mapping[str, object]], folder: Path) -> None:
    """Write the rows of language models as logs of inspect_ai into the run folder; older ones are replaced."""
    items = {item.id: item for item in plan.items}
    asked = (row for row in rows if row["model"] not in plan.detectors)
    for number, ((model, use_tools), own) in enumerate(
        groupby(asked, lambda r: (str(r["model"]), bool(r["use_tools"])))
    ):
        mode = "tools" if use_tools else "no-tools"
        (folder / LOGS).mkdir(exist_ok=True)
        path = folder / LOGS / f"{number:03d}-{mode}.eval"
        beside = path.with_suffix(".part")
        _write_log(beside, plan, model, mode, own, items)
        beside.replace(path)


def _write_log(
    path: Path, plan: CallPlan, model: str, mode: str, rows: Iterable[Mapping[str, object]], items: Mapping[str, Item]
) -> None:
    made, room, packing = Samples(plan), MOST, zipfile.ZIP_DEFLATED
    with tempfile.TemporaryFile() as summaries, zipfile.ZipFile(path, "w", packing, compresslevel=1) as log:
        for n, row in enumerate(rows):
            sample, short, size = made.of(row, items[str(row["id"])], room)
            room -= size
            log.writestr(f"samples/{sample['id']}_epoch_{sample['epoch']}.json", json.dumps(sample))
            summaries.write(b"," * bool(n) + json.dumps(short).encode())
        head = made.head(model, mode)
        log.writestr("_journal/start.json", json.dumps({name: head[name] for name in ("version", "eval", "plan")}))
        log.writestr("header.json", json.dumps(head))
        summaries.seek(0)
        with log.open("summaries.json", "w") as target:
            target.write(b"[")
            shutil.copyfileobj(summaries, target)
            target.write(b"]")


class Samples:
    """Makes the samples of one log, and counts right answers for its head."""

    def __init__(self, plan: CallPlan) -> None:
        self.plan = plan
        self.n = self.n_right = 0
        self.began = ""

    def of(self, row: Mapping[str, object], item: Item, room: int) -> tuple[Object, Object, int]:
        """Return a sample, its summary, and the bytes of its picture."""
        name, answer, label = str(row["model"]), str(row["prediction"] or ""), str(row.get("label") or "")
        how = self.plan.variant(name)
        shown, attached = _shown(item, room)
        question: list[Object] = [
            {"role": "system", "content": how.prompts.rules(item)},
            {"role": "user", "content": [{"type": "text", "text": how.prompts.user[item.kind]}, shown]},
        ]
        said = str(row["raw_analysis"] or "")
        turns = objects_in(row, "turns") or ([{"role": "assistant", "text": said}] if said else [])
        messages = [{**message, "id": f"m{at}"} for at, message in enumerate([*question, *as_messages(turns)])]
        why = str(row.get("error") or row["problem"] or row["rationale"])
        facts = {name: row[name] for name in ("confidence", "problem", "outcome", "tool_usage", "error") if name in row}
        both: Object = {
            "id": item.id,
            "epoch": int(str(row["trial"])) + 1,
            "target": label,
            "metadata": facts,
            "scores": {"verdict": {"value": GRADES[answer == label], "answer": answer, "explanation": why}},
            "total_time": row["latency_seconds"],
        }
        self.n, self.n_right, self.began = (
            self.n + 1,
            self.n_right + (answer == label),
            self.began or str(row["timestamp"]),
        )
        output = {"model": name, "completion": said, "choices": _choices(said, name)}
        sample = {
            **both,
            "input": messages[: len(question)],
            "messages": messages,
            "output": output,
            "events": as_events(turns, len(question), name, str(row["timestamp"])),
            "events_data": {"messages": messages, "calls": []},
            "attachments": attached,
        }
        told = item.text or f"[{item.kind}: {item.file}]"
        return sample, {**both, "input": told[:200], "completed": True}, sum(map(len, attached.values()))

    def head(self, model: str, mode: str) -> Object:
        """Return what the log says about all samples."""
        about = {
            "created": self.began,
            "task": f"items-{mode}",
            "model": model,
            "dataset": {"samples": len(self.plan.items)},
            "config": {"epochs": self.plan.trials},
            "metadata": self.plan.config,
        }
        accuracy = {"name": "accuracy", "value": self.n_right / max(self.n, 1)}
        score = {"name": "verdict", "scorer": "verdict", "metrics": {"accuracy": accuracy}}
        results = {"total_samples": self.n, "completed_samples": self.n, "scores": [score]}
        return {"version": VERSION, "status": "success", "eval": about, "plan": {}, "results": results, "stats": {}}


def _choices(said: str, name: str) -> list[Object]:
    message = {"role": "assistant", "content": said, "source": "generate", "model": name}
    return [{"message": message, "stop_reason": "stop"}]


def _shown(item: Item, room: int) -> tuple[Object, dict[str, str]]:
    """Return an item as a log shows it (a text, a picture that is not too large, or the name of the file), and the picture."""
    if item.kind == "text":
        return {"type": "text", "text": as_data(item.text or "")}, {}
    try:
        data = item.load() if item.kind == "image" else b""
    except DataError:  # it was asked about, and has changed or gone since
        data = b""
    if not data or len(data) > min(LARGEST, room):
        return {"type": "text", "text": f"[{item.kind}: {item.file}]"}, {}
    url = f"data:{item.media_type};base64,{base64.b64encode(data).decode()}"
    name = hashlib.sha256(data).hexdigest()[:32]
    return {"type": "image", "image": f"attachment://{name}", "detail": "auto"}, {name: url}
