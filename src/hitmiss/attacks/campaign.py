"""Run a plan of attacks on records, into a run folder that survives any interruption."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import cast

import polars as pl

from hitmiss.attacks.batched import batched_families
from hitmiss.attacks.config import MODES, PerturbationConfig, refuse_other_media
from hitmiss.attacks.config import families as known_families
from hitmiss.attacks.criteria import Criterion, SuccessRule, find_criterion
from hitmiss.attacks.leads import LEADS
from hitmiss.attacks.model import Classifier, as_classifier
from hitmiss.attacks.plan import AttackPlan, sweep
from hitmiss.attacks.recordings import Recordings, read_recordings
from hitmiss.attacks.signals import write_index, write_part
from hitmiss.attacks.table import failures_of, header_of, table_of
from hitmiss.attacks.worker import Campaigner, Facts, Keep, StepWorker
from hitmiss.core.errors import DataError, EnvironmentFault, UnknownName, UsageError
from hitmiss.core.finding import Option
from hitmiss.core.metric_spec import parse
from hitmiss.core.run_spec import RunSpec
from hitmiss.core.trials import Trials
from hitmiss.detection.opening import find_object, open_detector
from hitmiss.runs.loop import open_run, run_loop
from hitmiss.runs.manifest import MEDIA
from hitmiss.runs.progress import Report
from hitmiss.runs.store import Run
from hitmiss.runs.worker import InMemory


def run_campaign(
    campaigner: Campaigner,
    output: str | Path | None = None,
    spec: RunSpec | None = None,
    *,
    report: Report = lambda progress: None,
    save_signals: bool = False,
) -> Trials:
    """Run a plan and return its trials.

    With `output` it is a run folder: after an interruption, go on with `RunSpec(resume=True)`. `save_signals`: keep the
    changed signals in the folder (see `read_signals`).
    """
    if output is not None:
        trials = work_on_campaign(campaigner, output, spec or RunSpec(), report=report, save_signals=save_signals)
        if trials is None:
            raise EnvironmentFault.of("other-processes-still-work", output=output)
        return trials
    if save_signals:
        raise UsageError.of("signals-kept-run-folder")
    worker = StepWorker(campaigner)
    kept = InMemory(worker.items)
    run_loop(worker, kept, spec or RunSpec(), report).require_hope("the attack")
    made = cast("dict[int, Facts]", kept.records)
    return Trials.from_frame(table_of(campaigner, made), header_of(campaigner, made))


def work_on_campaign(
    campaigner: Campaigner,
    output: str | Path,
    spec: RunSpec,
    *,
    report: Report = lambda progress: None,
    save_signals: bool = False,
) -> Trials | None:
    """Work on a run folder; return its trials, or None if other processes still work on it."""
    worker = StepWorker(campaigner, save_signals)
    with open_run(worker, output, spec) as run:
        campaigner.keep = _keeper(campaigner, Path(output)) if save_signals else None
        end = run_loop(worker, run, spec, report)
        end.require_hope(output)
        end.require_few_failures(output, int(run.has_error.sum()), spec.fail_rate)
        return _finish(run, campaigner, save_signals) if run.is_done else None


def _finish(run: Run, campaigner: Campaigner, save_signals: bool) -> Trials:
    """Make the table of a run that is done, and mark it complete."""
    made = cast("dict[int, Facts]", dict(run.records()))
    table, header = table_of(campaigner, made), header_of(campaigner, made)
    facts: dict[str, object] = {
        "positive": header.positive,
        "negative": header.negative,
        "score_kind": header.score_kind,
        "provenance": dict(header.provenance),
        "contract": campaigner.contract.stored,
    }
    if campaigner.recordings.path is not None:
        facts[MEDIA] = os.path.relpath(campaigner.recordings.path, run.folder)
    words = [
        pl.col(c).replace_strict({1: header.positive, 0: header.negative}, return_dtype=pl.String)
        for c in ("label", "decision")
    ]
    run.finish(
        table.with_columns(words), _indexed(campaigner, made, run.folder) if save_signals else (), **facts, has_labels=True, runs=list(header.runs), numbers=list(header.numbers),
        n_scored=table.height, n_failed=len(failures_of(campaigner, made)), notes=list(header.notes),
    )  # fmt: skip
    return Trials.from_frame(table, header)


def _keeper(campaigner: Campaigner, folder: Path) -> Keep:
    """Return the function that stores the signals of a part in the run folder, before its answers are recorded."""
    n, step_of = len(campaigner.recordings.ids), {name: at for at, (name, _) in enumerate(campaigner.plan.steps)}
    return lambda name, rows, x: write_part(folder, step_of[name] * n + rows[0], x)


def _indexed(campaigner: Campaigner, made: dict[int, Facts], folder: Path) -> list[str]:
    """Write the index of the signals that the answers name; return the files."""
    ids, rows = campaigner.recordings.ids, []
    for at in sorted(made):
        if "signals" in made[at]:
            name = campaigner.plan.steps[at // len(ids)][0]
            file, row = made[at]["signals"]
            rows.append({"record": ids[at % len(ids)], **campaigner.plan.cells[name], "file": file, "row": row})
    return write_index(folder, rows)


def attack(
    detector: object,
    data: str | Path | Recordings,
    output: str | Path | None = None,
    *,
    families: Sequence[str] = (),
    strengths: Sequence[float] = (),
    minimal: Sequence[str] = (),
    targets: Sequence[str] = (),
    window: float | None = None,
    centers: Sequence[float] = (),
    attack_from: str = "y_true",
    criterion: str | Criterion | SuccessRule | None = None,
    early_stop: bool = True,
    lead_consistent: bool = False,
    control: bool = True,
    threshold: float | Sequence[float] = 0.5,
    weights: str | Path | None = None,
    layout: str = "sample_lead",
    data_layout: str = "sample_lead",
    labels: str | Path | None = None,
    fs: float | None = None,
    leads: str | Sequence[str] | None = None,
    outputs: str = "auto",
    single_label: bool | None = None,
    device: str = "cpu",
    batch: int = 32,
    limit: int | None = None,
    seed: int = 0,
    save_signals: bool = False,
    resume: bool = False,
    retry: bool = False,
) -> Trials:
    """Perturb and attack a classifier of signals and return the trials, as `hitmiss attack` does.

    `hm.evaluate(trials, protocol="ecg-attacks")` measures them. Each attack has noise of the same norm beside it, and
    the changes do not depend on the batch size or the order.

    Parameters
    ----------
    detector
        A function from signals to probabilities, an object with `predict`, a torch module, an ONNX session, an
        estimator; or the text of `--detector`.
    data
        An `.npz` with x (record × sample × lead, mV), y, classes and fs; or a folder of WFDB records.
    output
        A run folder to write, which can be resumed; without it the trials are only returned.
    families, strengths
        Families such as `band_noise` or `band_noise(beta=0.5)`, each at every strength between 0 and 1.
    minimal
        Families whose least successful strength is searched for each record.
    targets
        Classes to aim at, `MI` or `MI:suppress`; for families that can aim.
    window, centers
        The width and the centres of the changed window, in seconds; without them the whole record is changed.
    attack_from, criterion, early_stop, lead_consistent
        How gradient attacks are steered, and when one has succeeded.
    control
        Whether noise of the same norm is run beside each attack.
    threshold
        The probability from which a class is predicted; one for all classes or one per class.
    weights, layout, leads, outputs, single_label, device
        How the model is opened, what it takes (`leads="standard"`, or the names in its order) and what it gives.
    data_layout, labels, fs, limit
        How the records are read, and how many.
    batch, seed
        Records per batch of a gradient attack; the seed of everything that is drawn.
    save_signals, resume, retry
        Keep the changed signals in the run folder; go on with the run in the folder; try failed records again.

    Returns
    -------
    Trials
        One trial per record, class and step: the clean records, every attack, every control.

    Raises
    ------
    UsageError
        For options that contradict each other, or an unknown family or class.
    DataError
        If the records cannot be read, or the classes of model and data differ.

    >>> import tempfile
    >>> import numpy as np
    >>> x, y = np.zeros((4, 200, 2)), np.array([[1], [0], [1], [0]])
    >>> x[::2] = np.sin(np.arange(200) / 5)[:, None]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.savez(f"{folder}/x.npz", x=x, y=y, classes=["MI"], fs=100.0)
    ...     trials = attack(lambda x: x.std(axis=(1, 2))[:, None], f"{folder}/x.npz", families=["band_noise"], strengths=[1.0])
    >>> sorted(set(trials.frame["attack"]))
    ['band_noise', 'clean', 'noise ~ band_noise']
    """
    campaigner = prepare_campaign(
        detector,
        data,
        families=families,
        strengths=strengths,
        minimal=minimal,
        targets=targets,
        window=window,
        centers=centers,
        attack_from=attack_from,
        criterion=criterion,
        early_stop=early_stop,
        lead_consistent=lead_consistent,
        control=control,
        threshold=(threshold,) if isinstance(threshold, int | float) else threshold,
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
    spec = RunSpec(resume=resume, retry=retry)
    return run_campaign(campaigner, output, spec, save_signals=save_signals)


def prepare_campaign(
    detector: object,
    data: str | Path | Recordings,
    *,
    families: Sequence[str],
    strengths: Sequence[float],
    minimal: Sequence[str],
    targets: Sequence[str],
    window: float | None,
    centers: Sequence[float],
    attack_from: str,
    criterion: str | Criterion | SuccessRule | None,
    early_stop: bool,
    lead_consistent: bool,
    control: bool,
    threshold: Sequence[float],
    weights: str | Path | None,
    layout: str,
    data_layout: str,
    labels: str | Path | None,
    fs: float | None,
    leads: str | Sequence[str] | None,
    outputs: str,
    single_label: bool | None,
    device: str,
    batch: int,
    limit: int | None,
    seed: int,
) -> Campaigner:
    """Read the records, open the model and settle the plan; see `attack`."""
    recordings = (
        data if isinstance(data, Recordings) else read_recordings(data, layout=data_layout, fs=fs, labels=labels)
    )
    for name, value, least in (("limit", limit, 1), ("batch", batch, 1), ("seed", seed, 0)):
        if value is not None and value < least:
            raise UsageError.of("least", option=Option(name), least=least, value=value)
    truth = recordings.y
    recordings = recordings if limit is None else recordings.first(limit)
    steering: dict[str, object] = {
        "attack_from": attack_from,
        "early_stop": early_stop,
        "lead_consistent": lead_consistent,
    }
    if criterion is not None:
        steering["criterion"] = _criterion(criterion)
    plan = _plan(families, strengths, minimal, targets, window, centers, steering, control, seed)
    _check_aims(targets, plan, recordings.classes)
    model = _model(detector, weights, device, outputs, layout, recordings, single_label)
    if leads is not None:
        names = leads.split(",") if isinstance(leads, str) else list(leads)
        model.leads = tuple(name.strip() for name in names if name.strip())
    _check_lead_equations(plan, recordings)
    cut: float | Sequence[float] = 0.5 if not threshold else threshold[0] if len(threshold) == 1 else threshold
    return Campaigner(recordings, model, plan, cut, batch=batch, truth=truth)


def _check_lead_equations(plan: AttackPlan, data: Recordings) -> None:
    """Refuse what needs the twelve standard leads on data whose leads are others."""
    needs = [c for c in (*plan.configs, *plan.searches) if c.extra.get("lead_consistent") or c.family == "lead_swap"]
    if needs and data.leads is not None and data.leads != LEADS:
        raise UsageError.of("other-leads", family=needs[0].family, LEADS=tuple(LEADS), leads=tuple(data.leads))


def _check_aims(targets: Sequence[str], plan: AttackPlan, classes: tuple[str, ...]) -> None:
    """Refuse an aim that no family here can have; families that never ask the model cannot be steered."""
    for name, _, mode in (text.partition(":") for text in targets):
        if name not in classes:
            raise UnknownName("class", name, classes)
        if mode and mode not in MODES:
            raise UnknownName("target_mode", mode, MODES)
    if targets and not any(c.target_class for c in (*plan.configs, *plan.searches)):
        raise UsageError.of("none-families-aim-class")


def _criterion(given: str | Criterion | SuccessRule) -> object:
    """Return a criterion by its name, or a function (clean bits, changed bits, target) -> one yes or no per record."""
    if not isinstance(given, str):
        return find_criterion(given)
    return find_criterion(find_object(given)) if ":" in given else find_criterion(given).name


def _model(
    detector: object,
    weights: str | Path | None,
    device: str,
    outputs: str,
    layout: str,
    recordings: Recordings,
    single_label: bool | None,
) -> Classifier:
    """Open the model that is attacked; its classes must be those of the data."""
    opened = open_detector(detector, weights=weights, device=device) if isinstance(detector, str) else detector
    model = as_classifier(opened, outputs=outputs, layout=layout, device=device, single_label=single_label)  # type: ignore[arg-type]
    if model.classes is not None and tuple(model.classes) != tuple(recordings.classes):
        raise DataError.of("model-classes-data", classes=tuple(model.classes), classes_2=tuple(recordings.classes))
    return model


def _plan(
    families: Sequence[str],
    strengths: Sequence[float],
    minimal: Sequence[str],
    targets: Sequence[str],
    window: float | None,
    centers: Sequence[float],
    steering: dict[str, object],
    control: bool,
    seed: int,
) -> AttackPlan:
    if not families and not minimal:
        raise UsageError.of("say")
    if families and not strengths:
        raise UsageError.of("give-strengths-35")
    if window is not None and not centers:
        raise UsageError.of("window-needs-centre")
    aims = [(name, mode or "force") for name, _, mode in (text.partition(":") for text in targets)]
    where: list[tuple[float, float | None]] = [(c, window) for c in centers] if window is not None else [(0.0, None)]
    configs = [c for text in families for c in _configs(text, strengths, where, aims, steering)]
    searches = [c for text in minimal for c in _configs(text, [1.0], where, aims, steering)]
    return AttackPlan(tuple(configs), tuple(searches), control, seed=seed)


def _configs(
    text: str,
    strengths: Sequence[float],
    where: list[tuple[float, float | None]],
    aims: list[tuple[str, str]],
    steering: dict[str, object],
) -> list[PerturbationConfig]:
    """Return the configurations of a family, without steering settings that it ignores, so that its name is short."""
    spec = parse(text)
    name = spec.name.lower()
    batched = batched_families()
    if name not in known_families():
        refuse_other_media(name)
        raise UnknownName("perturbation", spec.name, known_families())
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
