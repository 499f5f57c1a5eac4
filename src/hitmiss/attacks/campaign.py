"""Run a plan of attacks on records, into a run folder that survives any interruption."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Unpack, cast

import polars as pl

from hitmiss.attacks.attack_spec import AttackSpec
from hitmiss.attacks.batched import batched_families
from hitmiss.attacks.config import MODES, PerturbationConfig, refuse_other_media
from hitmiss.attacks.config import families as known_families
from hitmiss.attacks.leads import LEADS
from hitmiss.attacks.model import Classifier, as_classifier
from hitmiss.attacks.plan import AttackPlan, sweep
from hitmiss.attacks.recordings import Recordings, read_recordings
from hitmiss.attacks.signals import write_index, write_part
from hitmiss.attacks.table import failures_of, header_of, table_of
from hitmiss.attacks.worker import Facts, Keep, PlannedAttacks, StepWorker
from hitmiss.core.errors import DataError, EnvironmentFault, UnknownName, UsageError
from hitmiss.core.finding import Option
from hitmiss.core.keywords import AttackKeywords
from hitmiss.core.metric_spec import parse
from hitmiss.core.run_spec import RunSpec
from hitmiss.core.trials import Trials
from hitmiss.detection.opening import open_detector
from hitmiss.runs.loop import open_run, run_loop
from hitmiss.runs.manifest import MEDIA
from hitmiss.runs.progress import Report
from hitmiss.runs.store import Run
from hitmiss.runs.worker import InMemory


def run_campaign(
    planned: PlannedAttacks,
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
        trials = work_on_campaign(planned, output, spec or RunSpec(), report=report, save_signals=save_signals)
        if trials is None:
            raise EnvironmentFault.of("run-busy/others", output=output)
        return trials
    if save_signals:
        raise UsageError.of("no-output")
    worker = StepWorker(planned)
    kept = InMemory(worker.items)
    run_loop(worker, kept, spec or RunSpec(), report).require_hope("the attack")
    made = cast("dict[int, Facts]", kept.records)
    return Trials.from_frame(table_of(planned, made), header_of(planned, made))


def work_on_campaign(
    planned: PlannedAttacks,
    output: str | Path,
    spec: RunSpec,
    *,
    report: Report = lambda progress: None,
    save_signals: bool = False,
) -> Trials | None:
    """Work on a run folder; return its trials, or None if other processes still work on it."""
    worker = StepWorker(planned, save_signals)
    with open_run(worker, output, spec) as run:
        planned.keep = _keeper(planned, Path(output)) if save_signals else None
        end = run_loop(worker, run, spec, report)
        end.require_hope(output)
        end.require_few_failures(output, int(run.has_error.sum()), spec.fail_rate)
        return _finish(run, planned, save_signals) if run.is_done else None


def _finish(run: Run, planned: PlannedAttacks, save_signals: bool) -> Trials:
    """Make the table of a run that is done, and mark it complete."""
    made = cast("dict[int, Facts]", dict(run.records()))
    table, header = table_of(planned, made), header_of(planned, made)
    facts: dict[str, object] = {
        "positive": header.positive,
        "negative": header.negative,
        "score_kind": header.score_kind,
        "provenance": dict(header.provenance),
        "contract": planned.contract.stored,
    }
    if planned.recordings.path is not None:
        facts[MEDIA] = os.path.relpath(planned.recordings.path, run.folder)
    words = [
        pl.col(c).replace_strict({1: header.positive, 0: header.negative}, return_dtype=pl.String)
        for c in ("label", "decision")
    ]
    run.finish(
        table.with_columns(words), _indexed(planned, made, run.folder) if save_signals else (), **facts, has_labels=True, runs=list(header.runs), numbers=list(header.numbers),
        n_scored=table.height, n_failed=len(failures_of(planned, made)), notes=list(header.notes),
    )  # fmt: skip
    return Trials.from_frame(table, header)


def _keeper(planned: PlannedAttacks, folder: Path) -> Keep:
    """Return the function that stores the signals of a part in the run folder, before its answers are recorded."""
    n, step_of = len(planned.recordings.ids), {name: at for at, (name, _) in enumerate(planned.plan.steps)}
    return lambda name, rows, x: write_part(folder, step_of[name] * n + rows[0], x)


def _indexed(planned: PlannedAttacks, made: dict[int, Facts], folder: Path) -> list[str]:
    """Write the index of the signals that the answers name; return the files."""
    ids, rows = planned.recordings.ids, []
    for at in sorted(made):
        if "signals" in made[at]:
            name = planned.plan.steps[at // len(ids)][0]
            file, row = made[at]["signals"]
            rows.append({"record": ids[at % len(ids)], **planned.plan.cells[name], "file": file, "row": row})
    return write_index(folder, rows)


def attack(
    detector: object,
    data: str | Path | Recordings,
    output: str | Path | None = None,
    *,
    limit: int | None = None,
    save_signals: bool = False,
    resume: bool = False,
    retry: bool = False,
    **options: Unpack[AttackKeywords],
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
    attack_from, early_stop, lead_consistent
        How gradient attacks are steered.
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
    stated = {name: value for name, value in options.items() if value is not None}
    planned = prepare_campaign(detector, data, AttackSpec().changed(**stated), limit)
    spec = RunSpec(resume=resume, retry=retry)
    return run_campaign(planned, output, spec, save_signals=save_signals)


def prepare_campaign(
    detector: object, data: str | Path | Recordings, spec: AttackSpec, limit: int | None = None
) -> PlannedAttacks:
    """Read the records, open the model and settle the plan; see `attack`."""
    recordings = (
        data
        if isinstance(data, Recordings)
        else read_recordings(data, layout=spec.data_layout, fs=spec.fs, labels=spec.labels)
    )
    if limit is not None and limit < 1:
        raise UsageError.of("out-of-range/least", name=Option("limit"), least=1, found=limit)
    truth = recordings.y
    recordings = recordings if limit is None else recordings.first(limit)
    plan = _plan(spec)
    _check_aims(spec.targets, plan, recordings.classes)
    model = _model(detector, spec, recordings)
    model.leads = spec.leads or model.leads
    _check_lead_equations(plan, recordings)
    cut = spec.threshold or (0.5,)
    return PlannedAttacks(recordings, model, plan, cut[0] if len(cut) == 1 else cut, batch=spec.batch, truth=truth)


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
        raise UsageError.of("target-unused")


def _model(detector: object, spec: AttackSpec, recordings: Recordings) -> Classifier:
    """Open the model that is attacked; its classes must be those of the data."""
    opened = (
        open_detector(detector, weights=spec.weights, device=spec.device) if isinstance(detector, str) else detector
    )
    model = as_classifier(
        opened, outputs=spec.outputs, layout=spec.layout, device=spec.device, single_label=spec.single_label
    )
    if model.classes is not None and tuple(model.classes) != tuple(recordings.classes):
        raise DataError.of("other-classes/model", classes=tuple(model.classes), classes_2=tuple(recordings.classes))
    return model


def _plan(spec: AttackSpec) -> AttackPlan:
    if not spec.families and not spec.minimal:
        raise UsageError.of("no-family")
    if spec.families and not spec.strengths:
        raise UsageError.of("no-strengths")
    if spec.window is not None and not spec.centers:
        raise UsageError.of("window-without-center")
    aims = [(name, mode or "force") for name, _, mode in (text.partition(":") for text in spec.targets)]
    where: list[tuple[float, float | None]] = [(0.0, None)]
    if spec.window is not None:
        where = [(center, spec.window) for center in spec.centers]
    steering = {name: getattr(spec, name) for name in ("attack_from", "early_stop", "lead_consistent")}
    configs = [c for text in spec.families for c in _configs(text, spec.strengths, where, aims, steering)]
    searches = [c for text in spec.minimal for c in _configs(text, [1.0], where, aims, steering)]
    return AttackPlan(tuple(configs), tuple(searches), spec.control, seed=spec.seed)


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
    own = {k: v for k, v in steering.items() if k == "lead_consistent" or name not in batched}
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
