"""Send results to experiment trackers: MLflow, Weights & Biases or TensorBoard, as the user has set them up.

    log(results, "mlflow", report="report.html")     # into the active run
    log(results, "wandb", step=3)
    log(results, writer, step=3)                     # a TensorBoard SummaryWriter

Every defined estimate becomes a number under a name such as `eer`, `eer_low`, `codec=C04/eer` or `codec/eer_macro` (no
name is the folder of another, because file stores refuse that); MLflow and W&B also get the table and the report as
artifacts.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Final, Protocol

from hitmiss.core.errors import UsageError
from hitmiss.core.packages import need_package
from hitmiss.core.results import Estimate, Results

ALLOWED: Final = re.compile(r"[^\w\-. /=+]")
LONGEST_NAME: Final = 200


def figures_of(results: Results, *, prefix: str = "", slices: bool = True) -> dict[str, float]:
    """Return numbers by name; undefined ones are left out, names that would collide are numbered.

    >>> figures_of(Results((Estimate("eer", 0.1, low=0.05, high=0.2), Estimate("eer", None, slice={"codec": "C01"}))))
    {'eer': 0.1, 'eer_low': 0.05, 'eer_high': 0.2}
    """
    found: dict[str, float] = {}
    for e in results:
        if e.value is None or (not slices and e.slice):
            continue
        name = _free(_name(e, prefix), found)
        found[name] = float(e.value)
        if e.low is not None and e.high is not None:
            found |= {f"{name}_low": float(e.low), f"{name}_high": float(e.high)}
    return found


def _name(e: Estimate, prefix: str) -> str:
    parts = [prefix, *(f"{k}={v}" for k, v in e.run.items())]
    parts += [k if v == "*" else f"{k}={v}" for k, v in e.slice.items()]
    parts.append(f"{e.metric}_{e.average}" if e.average else e.metric)
    return ALLOWED.sub("_", "/".join(p.replace("/", "_") for p in parts if p))[:LONGEST_NAME]


def _free(name: str, taken: dict[str, float]) -> str:
    if name not in taken:
        return name
    return next(f"{name}.{i}" for i in range(2, len(taken) + 3) if f"{name}.{i}" not in taken)


class Writer(Protocol):
    """A TensorBoard writer."""

    def add_scalar(self, tag: str, scalar_value: float, global_step: int | None = None) -> None: ...
    def add_text(self, tag: str, text_string: str, global_step: int | None = None) -> None: ...


def log(
    results: Results,
    to: str | Writer,
    *,
    step: int | None = None,
    prefix: str = "",
    slices: bool = True,
    report: str | Path | None = None,
) -> None:
    """Log results to `"mlflow"`, `"wandb"` or a TensorBoard writer (anything with `add_scalar`).

    Parameters
    ----------
    results
        What to log: one number per estimate.
    to
        `"mlflow"` or `"wandb"`, which log into their active run, or a writer.
    step
        The training step.
    prefix
        Put before every name.
    slices
        Whether the numbers of slices are logged too.
    report
        A report to attach, where the tracker has artifacts.

    Raises
    ------
    UsageError
        For another tracker.
    EnvironmentFault
        If the package of the tracker is not installed.

    >>> from hitmiss import Trials, measure
    >>> class Writer:
    ...     def add_scalar(self, name, value, step): print(name, value, step)
    ...     def add_text(self, name, text, step): pass
    >>> log(measure(Trials.of([1, 0], [2.0, 1.0]), ["roc_auc"]), Writer(), step=3)
    roc_auc 1.0 3
    """
    named = figures_of(results, prefix=prefix, slices=slices)
    if not isinstance(to, str) and hasattr(to, "add_scalar"):
        for name, value in named.items():
            to.add_scalar(name, value, step)
        to.add_text("/".join(filter(None, (prefix, "signature"))), f"`{results.signature}`", step)
        return
    known: dict[str, Callable[..., None]] = {"mlflow": _mlflow, "wandb": _wandb}
    if not isinstance(to, str) or to not in known:
        raise UsageError.of("unknown-tracker", to=to)
    known[to](results, named, step, prefix, Path(report) if report is not None else None)


def _mlflow(results: Results, named: dict[str, float], step: int | None, prefix: str, report: Path | None) -> None:
    mlflow = need_package("mlflow", "logging to mlflow", "mlflow")
    mlflow.log_metrics({name.replace("=", ":").replace("+", "_"): v for name, v in named.items()}, step=step)
    mlflow.set_tag("/".join(filter(None, (prefix, "hitmiss.signature"))), results.signature[:5000])
    with tempfile.TemporaryDirectory() as folder:
        saved = Path(folder) / "results.json"
        results.save(saved)
        mlflow.log_artifact(str(saved), prefix or None)
    if report is not None:
        mlflow.log_artifact(str(report), prefix or None)


def _wandb(results: Results, named: dict[str, float], step: int | None, prefix: str, report: Path | None) -> None:
    wandb = need_package("wandb", "logging to wandb", "wandb")
    if wandb.run is None:
        raise UsageError.of("no-wandb-run")
    frame = results.to_polars()
    table = wandb.Table(columns=frame.columns, data=[list(row) for row in frame.iter_rows()])
    shown: dict[str, object] = {**named, "/".join(filter(None, (prefix, "results"))): table}
    if report is not None:
        shown["/".join(filter(None, (prefix, "report")))] = wandb.Html(str(report))
    wandb.log(shown, step=step, commit=True)  # with a step given it would wait for the next one
    wandb.run.summary["hitmiss.signature"] = results.signature
