"""`hitmiss attack`: perturb and attack a classifier of signals, and write a run folder that `hitmiss score` reads."""

from __future__ import annotations

import json as json_text
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hitmiss.cli import common

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
    detector: Annotated[str, typer.Option(help=DETECTOR)],
    data: Annotated[str, typer.Option(metavar="FILE", help=DATA)],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FOLDER", help="The run folder.")],
    family: Annotated[list[str] | None, typer.Option(help=FAMILY)] = None,
    strengths: Annotated[list[float] | None, typer.Option(help=STRENGTHS)] = None,
    minimal: Annotated[
        list[str] | None,
        typer.Option(help="Search for the least strength of a family that changes each record; may be repeated."),
    ] = None,
    target: Annotated[
        list[str] | None, typer.Option(help="Aim at a class, `MI` or `MI:suppress`; may be repeated.")
    ] = None,
    window: Annotated[float | None, typer.Option(help="Seconds of the window (default: the whole record).")] = None,
    center: Annotated[list[float] | None, typer.Option(help="Centre(s) of the window in seconds.")] = None,
    attack_from: Annotated[str, typer.Option(help="Climb away from y_true or from the clean prediction.")] = "y_true",
    criterion: Annotated[
        str | None, typer.Option(help="What counts as success: any_bit, target_on, target_off, or file.py:function.")
    ] = None,
    early_stop: Annotated[bool, typer.Option(help="Stop with a record once its prediction has changed.")] = True,
    lead_consistent: Annotated[
        bool, typer.Option("--lead-consistent", help="Change eight leads, derive the other four.")
    ] = False,
    control: Annotated[bool, typer.Option(help="Run noise of the same norm beside each attack.")] = True,
    threshold: Annotated[
        list[float] | None, typer.Option(help="Decide at this probability; several: one per class.")
    ] = None,
    weights: Annotated[Path | None, typer.Option(help="Checkpoint for a torch module.")] = None,
    layout: Annotated[str, typer.Option(help="What the model takes: sample_lead or lead_sample.")] = "sample_lead",
    data_layout: Annotated[
        str, typer.Option(help="Order of the axes in the data: sample_lead or lead_sample.")
    ] = "sample_lead",
    labels: Annotated[Path | None, typer.Option(metavar="FILE", help=LABELS)] = None,
    fs: Annotated[float | None, typer.Option(help="Samples per second, if the data does not say.")] = None,
    leads: Annotated[str | None, typer.Option(metavar="NAMES", help=LEADS)] = None,
    outputs: Annotated[str, typer.Option(help="What the model gives: auto, logit or probability.")] = "auto",
    single_label: Annotated[
        bool | None,
        typer.Option(
            "--single-label/--multi-label",
            help="Whether exactly one class is true (default: if the outputs sum to 1; asked for if not clear).",
        ),
    ] = None,
    device: Annotated[str, typer.Option(help="cpu, cuda or auto.")] = "cpu",
    batch: Annotated[int, typer.Option(help="Records in a batch of a gradient attack.")] = 32,
    limit: Annotated[int | None, typer.Option(help="Only the first records.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of all random numbers.")] = 0,
    save_signals: Annotated[
        bool, typer.Option("--save-signals", help="Keep the attacked signals in the run folder (float32).")
    ] = False,
    resume: Annotated[bool, typer.Option("--resume", help="Continue the run in the folder.")] = False,
    retry: Annotated[bool, typer.Option("--retry", help="With --resume: try failed records again.")] = False,
    join: Annotated[bool, typer.Option("--join", help="Help the process that started the run.")] = False,
    max_time: Annotated[
        float | None, typer.Option(metavar="SECONDS", help="Stop after so many seconds; --resume continues.")
    ] = None,
    figures: Annotated[Path | None, typer.Option(metavar="FOLDER", help="Draw every figure into this folder.")] = None,
    json: Annotated[bool, typer.Option("--json", help="JSON on stdout.")] = False,
) -> None:
    """Perturb and attack a classifier of signals: batched, resumable, each attack next to noise of the same norm."""
    from hitmiss.attacks.campaign import prepare_campaign, work_on_campaign
    from hitmiss.attacks.table import LEFT_OUT
    from hitmiss.cli.common import Progress
    from hitmiss.core.run_spec import RunSpec

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
        limit=limit,
        seed=seed,
    )
    common.note(str(campaigner.contract))
    spec = RunSpec(resume=resume, retry=retry, join=join, max_time=max_time)
    trials = work_on_campaign(campaigner, output, spec, report=Progress(), save_signals=save_signals)
    if trials is None:
        common.out("other processes are still working on it; the last one finishes the run")
        return
    for note in trials.header.notes:
        if LEFT_OUT in note:
            common.note(f"! {note}")
    if figures is not None:
        _draw(figures, campaigner, trials, output if save_signals else None)
    _emit(output, campaigner, json)


def _draw(folder: Path, campaigner: Campaigner, trials: Trials, kept: Path | None) -> None:
    """Draw every figure of the run; intervals resample patients where records share one."""
    from hitmiss.reports.attack_figures import save_figures
    from hitmiss.robustness.attacks import measure_attacks

    drawn = save_figures(folder, trials, measure_attacks(trials, bootstrap=DRAWN), campaigner.examples(trials, kept))
    common.note(f"drew {len(drawn)} figures into {folder}")


def _emit(folder: Path, campaigner: Campaigner, json: bool) -> None:
    plan, n, n_forward = campaigner.plan, len(campaigner.recordings.ids), campaigner.model.n_forward
    attacks = [name for name, _ in plan.steps]
    if json:
        about = {"records": n, "attacks": attacks, "forward_passes": n_forward, "control": plan.control}
        common.out(json_text.dumps({"schema": 1, "run": str(folder), **about}, indent=1))
        return
    common.out(f"{n:,} records × {len(attacks)} conditions, {n_forward:,} records through the model: {folder}")
    common.out(f"score them: hitmiss score {folder} -p ecg-attacks")
