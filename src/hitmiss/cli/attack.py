"""`hitmiss attack`: perturb and attack a classifier of signals, and write a run folder that `hitmiss score` reads."""

from __future__ import annotations

import json as json_text
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hitmiss.cli import common

if TYPE_CHECKING:
    from hitmiss.attacks.campaign import Campaigner, Plan, Recordings
    from hitmiss.attacks.config import PerturbationConfig
    from hitmiss.attacks.model import Classifier
    from hitmiss.core.trials import Trials

DETECTOR = "model.onnx, module:name or file.py:name (a torch module, an estimator, a function to probabilities)."
DATA = "An .npz with x (record × sample × lead, mV), y, classes, fs, and perhaps record, patient …; or a folder of WFDB records."
LABELS = "For WFDB records: a table with the record and a column of 0 and 1 per class (default: the headers' #Dx)."
FAMILY = "A family, as band_noise, or with settings, band_noise(beta=0.5); may be repeated."
DRAWN = 500
"""Number of bootstrap replicates for the intervals in figures."""
STRENGTHS = "Strengths from 0 to 1, several after one another."


def attack(
    detector: Annotated[str, typer.Option(help=DETECTOR)],
    data: Annotated[str, typer.Option(metavar="FILE", help=DATA)],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FOLDER", help="The run folder.")],
    family: Annotated[list[str] | None, typer.Option(help=FAMILY)] = None,
    strengths: Annotated[list[float] | None, typer.Option(help=STRENGTHS)] = None,
    minimal: Annotated[
        list[str] | None, typer.Option(help="Search a family's least strength per record; may be repeated.")
    ] = None,
    target: Annotated[
        list[str] | None, typer.Option(help="Aim at a class, `MI` or `MI:suppress`; may be repeated.")
    ] = None,
    window: Annotated[float | None, typer.Option(help="Seconds of the window (default: the whole record).")] = None,
    center: Annotated[list[float] | None, typer.Option(help="Centre(s) of the window in seconds.")] = None,
    attack_from: Annotated[str, typer.Option(help="Climb away from y_true or from the clean prediction.")] = "y_true",
    criterion: Annotated[
        str | None, typer.Option(help="When it has succeeded: any_bit, target_on, target_off, or file.py:function.")
    ] = None,
    early_stop: Annotated[bool, typer.Option(help="Stop with a record once it has flipped.")] = True,
    lead_consistent: Annotated[
        bool, typer.Option("--lead-consistent", help="Change eight leads, derive the other four.")
    ] = False,
    control: Annotated[bool, typer.Option(help="Noise of the same norm beside each attack.")] = True,
    threshold: Annotated[list[float] | None, typer.Option(help="Decide at this probability, or one a class.")] = None,
    weights: Annotated[Path | None, typer.Option(help="Checkpoint for a torch module.")] = None,
    layout: Annotated[str, typer.Option(help="What the model takes: sample_lead or lead_sample.")] = "sample_lead",
    data_layout: Annotated[
        str, typer.Option(help="How records lie in the data: sample_lead or lead_sample.")
    ] = "sample_lead",
    labels: Annotated[Path | None, typer.Option(metavar="FILE", help=LABELS)] = None,
    fs: Annotated[float | None, typer.Option(help="Samples a second, where the data does not say.")] = None,
    outputs: Annotated[str, typer.Option(help="What the model gives: auto, logit or probability.")] = "auto",
    single_label: Annotated[
        bool | None,
        typer.Option(
            "--single-label/--multi-label",
            help="Whether one class alone is true (default: where the last step is a softmax).",
        ),
    ] = None,
    device: Annotated[str, typer.Option(help="cpu, cuda or auto.")] = "cpu",
    batch: Annotated[int, typer.Option(help="Records in a batch of a gradient attack.")] = 32,
    limit: Annotated[int | None, typer.Option(help="Only the first records.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of everything that is drawn.")] = 0,
    save_signals: Annotated[
        bool, typer.Option("--save-signals", help="Keep the attacked signals in the run folder (float32).")
    ] = False,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the run in the folder.")] = False,
    figures: Annotated[Path | None, typer.Option(metavar="FOLDER", help="Draw every figure into this folder.")] = None,
    json: Annotated[bool, typer.Option("--json", help="JSON on stdout.")] = False,
) -> None:
    """Perturb and attack a classifier of signals: batched, resumable, each attack next to noise of the same norm."""
    from hitmiss.attacks.campaign import LEFT_OUT, Campaigner, read_recordings, run_campaign
    from hitmiss.cli.common import Progress
    from hitmiss.core.errors import UsageError

    recordings = read_recordings(data, layout=data_layout, fs=fs, labels=labels)
    for name, value, least in (("limit", limit, 1), ("batch", batch, 1), ("seed", seed, 0)):
        if value is not None and value < least:
            raise UsageError(f"--{name} is at least {least}; found {value}")
    recordings = recordings if limit is None else recordings.first(limit)
    steering: dict[str, object] = {
        "attack_from": attack_from,
        "early_stop": early_stop,
        "lead_consistent": lead_consistent,
    }
    if criterion is not None:
        steering["criterion"] = _criterion(criterion)
    plan = _plan(
        family or [], strengths or [], minimal or [], target or [], window, center or [], steering, control, seed
    )
    _check_aims(target or [], plan, recordings.classes)
    model = _model(detector, weights, device, outputs, layout, recordings, single_label)
    cut: float | list[float] = 0.5 if not threshold else threshold[0] if len(threshold) == 1 else threshold
    campaigner = Campaigner(recordings, model, plan, cut, batch=batch)
    trials = run_campaign(campaigner, output, resume=resume, report=Progress().count, save_signals=save_signals)
    for note in trials.header.notes:
        if LEFT_OUT in note:
            common.note(f"! {note}")
    if figures is not None:
        _draw(figures, campaigner, trials, output if save_signals else None)
    _emit(output, len(recordings.ids), plan, model.n_forward, json)


def _check_aims(targets: list[str], plan: Plan, classes: tuple[str, ...]) -> None:
    """Refuse an aim that no family here can have; families that never ask the model cannot be steered."""
    from hitmiss.attacks.config import MODES
    from hitmiss.core.errors import UnknownName, UsageError

    for name, _, mode in (text.partition(":") for text in targets):
        if name not in classes:
            raise UnknownName("class", name, classes)
        if mode and mode not in MODES:
            raise UnknownName("target_mode", mode, MODES)
    if targets and not any(c.target_class for c in (*plan.configs, *plan.searches)):
        raise UsageError(
            "none of these families can aim at a class: --target is for gradient families and random_search"
        )


def _criterion(text: str) -> object:
    """Return a criterion by its name, or a function (clean bits, changed bits, target) -> one yes or no per record."""
    from hitmiss.attacks.methods import find_criterion
    from hitmiss.detection.detector import find_object

    return find_criterion(find_object(text)) if ":" in text else find_criterion(text).name


def _draw(folder: Path, campaigner: Campaigner, trials: Trials, kept: Path | None) -> None:
    """Draw every figure of the run; intervals resample patients where records share one."""
    from hitmiss.reports.attack_figures import save_figures
    from hitmiss.robustness.attacks import measure_attacks

    drawn = save_figures(folder, trials, measure_attacks(trials, bootstrap=DRAWN), campaigner.examples(trials, kept))
    common.note(f"drew {len(drawn)} figures into {folder}")


def _model(
    detector: str,
    weights: Path | None,
    device: str,
    outputs: str,
    layout: str,
    recordings: Recordings,
    single_label: bool | None,
) -> Classifier:
    from hitmiss.attacks.model import as_classifier
    from hitmiss.detection.detector import open_detector

    opened = open_detector(detector, weights=weights, device=device)
    model = as_classifier(opened, outputs=outputs, layout=layout, device=device, single_label=single_label)  # type: ignore[arg-type]
    if model.classes is not None and tuple(model.classes) != tuple(recordings.classes):
        from hitmiss.core.errors import DataError

        raise DataError(
            f"the model's classes are {', '.join(model.classes)} and the data's {', '.join(recordings.classes)}"
        )
    return model


def _plan(
    families: list[str],
    strengths: list[float],
    minimal: list[str],
    targets: list[str],
    window: float | None,
    centers: list[float],
    steering: dict[str, object],
    control: bool,
    seed: int,
) -> Plan:
    from hitmiss.attacks.campaign import Plan
    from hitmiss.core.errors import UsageError

    if not families and not minimal:
        raise UsageError("say what to do: --family band_noise, or --minimal pgd")
    if families and not strengths:
        raise UsageError("say how strongly: --strengths 0.1 0.2 0.35 0.5")
    if window is not None and not centers:
        raise UsageError("a window needs a centre: --center 5")
    aims = [(name, mode or "force") for name, _, mode in (text.partition(":") for text in targets)]
    where: list[tuple[float, float | None]] = [(c, window) for c in centers] if window is not None else [(0.0, None)]
    configs = [c for text in families for c in _configs(text, strengths, where, aims, steering)]
    searches = [c for text in minimal for c in _configs(text, [1.0], where, aims, steering)]
    return Plan(tuple(configs), tuple(searches), control, seed=seed)


def _configs(
    text: str,
    strengths: list[float],
    where: list[tuple[float, float | None]],
    aims: list[tuple[str, str]],
    steering: dict[str, object],
) -> list[PerturbationConfig]:
    """Return the configurations of a family, without steering settings that it ignores, so that its name is short."""
    from hitmiss.attacks.campaign import sweep
    from hitmiss.attacks.config import families, refuse_other_media
    from hitmiss.attacks.family import batched_families
    from hitmiss.core.errors import UnknownName
    from hitmiss.core.registry import parse

    spec = parse(text)
    name = spec.name.lower()
    batched = batched_families()
    if name not in families():
        refuse_other_media(name)
        raise UnknownName("perturbation", spec.name, families())
    own = {k: v for k, v in steering.items() if k in ("lead_consistent", "criterion") or name not in batched}
    own = {k: v for k, v in own.items() if v not in (False, "y_true")}
    extra = {name: {**own, **dict(spec.settings)}}
    found: list[PerturbationConfig] = []
    for center, seconds in where:
        found += sweep(
            [name],
            strengths,
            center_time=center,
            window_seconds=seconds,
            aims=aims if name not in batched else (),
            extra=extra,
        )
    return found


def _emit(folder: Path, n: int, plan: Plan, n_forward: int, json: bool) -> None:
    attacks = [name for name, _ in plan.steps]
    if json:
        about = {"records": n, "attacks": attacks, "forward_passes": n_forward, "control": plan.control}
        common.out(json_text.dumps({"schema": 1, "run": str(folder), **about}, indent=1))
        return
    common.out(f"{n:,} records × {len(attacks)} conditions, {n_forward:,} records through the model: {folder}")
    common.out(f"score them: hitmiss score {folder} -p ecg-attacks")
