"""`hitmiss attack`: perturb and attack a classifier of signals, and write a run folder that `hitmiss score` reads."""

from __future__ import annotations

import json as json_text
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from hitmiss.cli import printing
from hitmiss.cli.options import fields
from hitmiss.cli.shared import JSON, RUN_FOLDER, WEIGHTS
from hitmiss.core.run_spec import RunSpec
from hitmiss.core.spec import CERTAINTY, MEASURING, OTHERS, READING, RUNNING, opt

if TYPE_CHECKING:
    from hitmiss.attacks.worker import Campaigner
    from hitmiss.core.trials import Trials

DETECTOR = "model.onnx, module:name or file.py:name (a torch module, an estimator, a function to probabilities)."
DATA = "An .npz with x (record × sample × lead, mV), y, classes, fs, and perhaps record, patient …; or a folder of WFDB records."
LABELS = "For WFDB records: a table with the record and a column of 0 and 1 per class (default: the headers' #Dx)."
FAMILY = "A family such as band_noise, or with settings, band_noise(beta=0.5); may be repeated."
DRAWN = 500
"""Number of bootstrap replicates for the intervals in figures."""
LEADS = (
    "The leads that the model takes, in its order: I,II,III,aVR,… or `standard` (default: as it says, or the data's)."
)
STRENGTHS = "One or more strengths from 0 to 1."


def attack(
    detector: Annotated[str, opt(DETECTOR, common=True)],
    data: Annotated[str, opt(DATA, metavar="FILE", common=True)],
    output: Annotated[Path, RUN_FOLDER],
    family: Annotated[list[str] | None, opt(FAMILY, common=True)] = None,
    strengths: Annotated[list[float] | None, opt(STRENGTHS, takes_words=True, common=True)] = None,
    minimal: Annotated[
        list[str] | None,
        opt("Search for the least strength of a family that changes each record; may be repeated."),
    ] = None,
    target: Annotated[
        list[str] | None, opt("Aim at a class, `MI` or `MI:suppress`; may be repeated.", common=True)
    ] = None,
    window: Annotated[float | None, opt("Seconds of the window (default: the whole record).")] = None,
    center: Annotated[list[float] | None, opt("Centre(s) of the window in seconds.", takes_words=True)] = None,
    attack_from: Annotated[
        Literal["y_true", "prediction"], opt("What is climbed away from: the true labels, or the clean prediction.")
    ] = "y_true",
    criterion: Annotated[
        str | None, opt("What counts as success: any_bit, target_on, target_off, or file.py:function.")
    ] = None,
    early_stop: Annotated[bool, opt("Stop with a record once its prediction has changed.")] = True,
    lead_consistent: Annotated[bool, opt("Change eight leads, derive the other four.")] = False,
    control: Annotated[bool, opt("Run noise of the same norm beside each attack.")] = True,
    threshold: Annotated[
        list[float] | None, opt("Decide at this probability; several: one per class.", MEASURING, takes_words=True)
    ] = None,
    weights: Annotated[Path | None, WEIGHTS] = None,
    layout: Annotated[Literal["sample_lead", "lead_sample"], opt("What the model takes.", READING)] = "sample_lead",
    data_layout: Annotated[
        Literal["sample_lead", "lead_sample"], opt("Order of the axes in the data.")
    ] = "sample_lead",
    labels: Annotated[Path | None, opt(LABELS, READING, metavar="FILE")] = None,
    fs: Annotated[float | None, opt("Samples per second, if the data does not say.")] = None,
    leads: Annotated[str | None, opt(LEADS, metavar="NAMES")] = None,
    outputs: Annotated[Literal["auto", "logit", "probability"], opt("What the model gives.")] = "auto",
    single_label: Annotated[
        bool | None,
        opt(
            "Whether exactly one class is true (default: if the outputs sum to 1; asked for if not clear).",
            OTHERS,
            "--single-label/--multi-label",
        ),
    ] = None,
    *,
    device: Annotated[str, opt("cpu, cuda or auto.", RUNNING)] = "cpu",
    batch: Annotated[int, opt("Records in a batch of a gradient attack.")] = 32,
    seed: Annotated[int, opt("Seed of all random numbers.", CERTAINTY)] = 0,
    save_signals: Annotated[bool, opt("Keep the attacked signals in the run folder (float32).")] = False,
    figures: Annotated[Path | None, opt("Draw every figure into this folder.", metavar="FOLDER")] = None,
    running: Annotated[RunSpec, fields("limit", "resume", "retry", "join", "max_time", "fail_rate")],
    json: Annotated[bool, JSON] = False,
) -> None:
    """Perturb and attack a classifier of signals: batched, resumable, each attack next to noise of the same norm.

    $ hitmiss attack --detector model.onnx --data test.npz --family pgd --strengths 0.1 0.5 --output run
    """
    from hitmiss.attacks.campaign import prepare_campaign, work_on_campaign
    from hitmiss.attacks.table import LEFT_OUT
    from hitmiss.cli.progress_bar import Progress

    campaigner = prepare_campaign(
        detector,
        data,
        families=family or (),
        strengths=strengths or (),
        minimal=minimal or (),
        targets=target or (),
        window=window,
        centers=center or (),
        attack_from=attack_from,
        criterion=criterion,
        early_stop=early_stop,
        lead_consistent=lead_consistent,
        control=control,
        threshold=threshold or (),
        weights=weights,
        layout=layout,
        data_layout=data_layout,
        labels=labels,
        fs=fs,
        leads=leads,
        outputs=outputs,
        single_label=single_label,
        device=device,
        batch=batch,
        limit=running.limit,
        seed=seed,
    )
    printing.note(str(campaigner.contract))
    trials = work_on_campaign(campaigner, output, running, report=Progress(), save_signals=save_signals)
    if trials is None:
        printing.out("other processes are still working on it; the last one finishes the run")
        return
    for note in trials.header.notes:
        if LEFT_OUT in note:
            printing.note(f"! {note}")
    if figures is not None:
        _draw(figures, campaigner, trials, output if save_signals else None)
    _emit(output, campaigner, json)


def _draw(folder: Path, campaigner: Campaigner, trials: Trials, kept: Path | None) -> None:
    """Draw every figure of the run; intervals resample patients where records share one."""
    from hitmiss.reports.attack_figures import save_figures
    from hitmiss.robustness.attacks import measure_attacks

    drawn = save_figures(folder, trials, measure_attacks(trials, bootstrap=DRAWN), campaigner.examples(trials, kept))
    printing.note(f"drew {len(drawn)} figures into {folder}")


def _emit(folder: Path, campaigner: Campaigner, json: bool) -> None:
    plan, n, n_forward = campaigner.plan, len(campaigner.recordings.ids), campaigner.model.n_forward
    attacks = [name for name, _ in plan.steps]
    if json:
        about = {"records": n, "attacks": attacks, "forward_passes": n_forward, "control": plan.control}
        printing.out(json_text.dumps({"schema": 1, "run": str(folder), **about}, indent=1))
        return
    printing.out(f"{n:,} records × {len(attacks)} conditions, {n_forward:,} records through the model: {folder}")
    printing.out(f"score them: hitmiss score {folder} -p ecg-attacks")
