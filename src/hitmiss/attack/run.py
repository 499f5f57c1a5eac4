"""Attacks on many records carried out: into a run folder, which any interruption leaves whole, or into memory."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
import polars as pl

from hitmiss.attack.campaigner import Campaigner, Keep
from hitmiss.attack.signals import write_index, write_part
from hitmiss.attack.table import header_of, table_of
from hitmiss.errors import UsageError
from hitmiss.io.runs import MEDIA, start
from hitmiss.trials import Trials

PART: Final = 64
"""Records that are worked on together; it changes no result."""
Report = Callable[[int, int], None]


def run_campaign(
    campaigner: Campaigner,
    output: str | Path | None = None,
    *,
    resume: bool = False,
    report: Report | None = None,
    save_signals: bool = False,
) -> Trials:
    """Carry out a plan and give its trials. With `output` it is a run folder: interrupted, it goes on with `resume=True`.

    `save_signals`: the changed signals are kept in the folder (see `signals`).
    """
    if save_signals and output is None:
        raise UsageError("signals are kept in a run folder; say output=…")
    n = len(campaigner.recordings.ids)
    steps = campaigner.plan.steps
    made: dict[int, dict[str, Any]] = {}
    if output is None:
        for at, record in _work(campaigner, iter(range(n * len(steps))), report):
            made[at] = record
        return Trials.from_frame(table_of(campaigner, made), header_of(campaigner, made))
    items = [f"{name} / {record}" for name, _ in steps for record in campaigner.recordings.ids]
    pinned = _pinned(campaigner) | ({"signals": "float32"} if save_signals else {})
    with start(output, kind="attack", config=pinned, items=items, resume=resume) as run:
        campaigner.keep = _keeper(campaigner, Path(output)) if save_signals else None
        for at, record in _work(campaigner, run.todo(), report):
            run.add(at, record)
        made = dict(run.records())
        table, header = table_of(campaigner, made), header_of(campaigner, made)
        facts: dict[str, Any] = {
            "positive": header.positive,
            "negative": header.negative,
            "score_kind": header.score_kind,
            "provenance": dict(header.provenance),
        }
        if campaigner.recordings.path is not None:
            facts[MEDIA] = os.path.relpath(campaigner.recordings.path, output)
        words = [
            pl.col(c).replace_strict({1: header.positive, 0: header.negative}, return_dtype=pl.String)
            for c in ("label", "decision")
        ]
        run.finish(
            table.with_columns(words), _indexed(campaigner, made, Path(output)) if save_signals else (), **facts, has_labels=True, runs=list(header.runs), numbers=list(header.numbers),
            n_scored=table.height, n_failed=0, notes=list(header.notes),
        )  # fmt: skip
    return Trials.from_frame(table, header)


def _keeper(campaigner: Campaigner, folder: Path) -> Keep:
    """What keeps the signals of a part in the run folder, before its answers are written down."""
    n, step_of = len(campaigner.recordings.ids), {name: at for at, (name, _) in enumerate(campaigner.plan.steps)}
    return lambda name, rows, x: write_part(folder, step_of[name] * n + rows[0], x)


def _indexed(campaigner: Campaigner, made: dict[int, dict[str, Any]], folder: Path) -> list[str]:
    """The index of the signals that the answers name; the files."""
    ids, rows = campaigner.recordings.ids, []
    for at in sorted(made):
        if "signals" in made[at]:
            name = campaigner.plan.steps[at // len(ids)][0]
            file, row = made[at]["signals"]
            rows.append({"record": ids[at % len(ids)], **campaigner.plan.cells[name], "file": file, "row": row})
    return write_index(folder, rows)


def _work(campaigner: Campaigner, todo: Iterator[int], report: Report | None) -> Iterator[tuple[int, dict[str, Any]]]:
    """Positions (step-major) worked off in batches that belong to one step."""
    n, total = len(campaigner.recordings.ids), len(campaigner.recordings.ids) * len(campaigner.plan.steps)
    waiting: list[int] = []
    done = 0

    def flush() -> Iterator[tuple[int, dict[str, Any]]]:
        nonlocal done
        rows = [at % n for at in waiting]
        yield from zip(list(waiting), campaigner.step(waiting[0] // n, rows), strict=True)
        done += len(rows)
        waiting.clear()
        if report is not None:
            report(done, total)

    for at in todo:
        if waiting and (at // n != waiting[0] // n or len(waiting) >= PART):
            yield from flush()
        waiting.append(at)
    if waiting:
        yield from flush()


def _pinned(campaigner: Campaigner) -> dict[str, Any]:
    data, model = campaigner.recordings, campaigner.model
    threshold = np.asarray(campaigner.threshold, dtype=np.float64).tolist()
    about = {"data": data.digest, "classes": list(data.classes), "fs": data.fs, "layout": model.layout}
    return {
        **campaigner.plan.pinned,
        **about,
        "model": {"name": model.name, **model.identity},
        "outputs": model.outputs,
        "threshold": threshold,
    }
