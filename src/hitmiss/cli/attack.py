"""`hitmiss attack`: perturb and attack a classifier of signals, and write a run folder that `hitmiss score` reads."""

from __future__ import annotations

import json as json_text
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from hitmiss.attacks.attack_spec import AttackSpec
from hitmiss.cli import printing
from hitmiss.cli.options import fields
from hitmiss.cli.shared import JSON, RUN_FOLDER
from hitmiss.core.run_spec import RunSpec
from hitmiss.core.spec import opt

if TYPE_CHECKING:
    from hitmiss.attacks.worker import PlannedAttacks

DETECTOR = "model.onnx, module:name or file.py:name (a torch module, an estimator, a function to probabilities)."
DATA = "An .npz with x (record × sample × lead, mV), y, classes, fs, and perhaps record, patient …; or a folder of WFDB records."


def attack(
    detector: Annotated[str, opt(DETECTOR, common=True)],
    data: Annotated[str, opt(DATA, metavar="FILE", common=True)],
    output: Annotated[Path, RUN_FOLDER],
    *,
    spec: AttackSpec,
    save_signals: Annotated[bool, opt("Keep the attacked signals in the run folder (float32).")] = False,
    running: Annotated[RunSpec, fields("limit", "resume", "retry", "join", "max_time", "fail_rate")],
    json: Annotated[bool, JSON] = False,
) -> None:
    """Perturb and attack a classifier of signals: batched, resumable, each attack next to noise of the same norm.

    $ hitmiss attack --detector model.onnx --data test.npz --family pgd --strengths 0.1 0.5 --output run
    """
    from hitmiss.attacks.campaign import prepare_campaign, work_on_campaign
    from hitmiss.cli.progress_bar import Progress
    from hitmiss.core.finding import has_code

    planned = prepare_campaign(detector, data, spec, running.limit)
    printing.note(str(planned.contract))
    trials = work_on_campaign(planned, output, running, report=Progress(), save_signals=save_signals)
    if trials is None:
        printing.out("other processes are still working on it; the last one finishes the run")
        return
    for note in trials.header.notes:
        if has_code(note, "records-left-out"):
            printing.note(f"! {note}")
    _emit(output, planned, json)


def _emit(folder: Path, planned: PlannedAttacks, json: bool) -> None:
    plan, n, n_forward = planned.plan, len(planned.recordings.ids), planned.model.n_forward
    attacks = [name for name, _ in plan.steps]
    if json:
        about = {"records": n, "attacks": attacks, "forward_passes": n_forward, "control": plan.control}
        printing.out(json_text.dumps({"schema": 1, "run": str(folder), **about}, indent=1))
        return
    printing.out(f"{n:,} records × {len(attacks)} conditions, {n_forward:,} records through the model: {folder}")
    printing.out(f"score them: hitmiss score {folder} -p ecg-attacks")
