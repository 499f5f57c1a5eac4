"""`hitmiss calibrate`: fit a mapping of scores to likelihood ratios, judge it, store it, and write mapped scores."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Literal

from hitmiss.cli.options import arg, fields
from hitmiss.cli.score_models import FitSpec, fit_and_map
from hitmiss.cli.shared import FITTED_KEY, JSON
from hitmiss.core.design import Design
from hitmiss.core.read_spec import ReadSpec
from hitmiss.core.spec import MEASURING, READING, opt

if TYPE_CHECKING:
    from hitmiss.core.trials import Trials
    from hitmiss.derive.score_model import ScoreModel


def calibrate(
    scores: Annotated[str, arg("Development scores to fit on; with --model, the scores to map.", "SCORES")],
    key: Annotated[str | None, FITTED_KEY] = None,
    method: Annotated[
        Literal["affine", "pav"], opt("One slope and one offset, or any rising function.", MEASURING)
    ] = "affine",
    apply: Annotated[str | None, opt("Other scores to map by the fit.", READING, metavar="FILE", common=True)] = None,
    *,
    fitting: FitSpec,
    asked: Annotated[Design, fields(without=("matrix", "gap", "stratify", "threshold", "require"), bootstrap=1000)],
    reading: ReadSpec,
    json: Annotated[bool, JSON] = False,
) -> None:
    """Fit scores to log-likelihood ratios on development data, show before and after, and map other scores.

    Probabilities are mapped to log-odds first. Without other scores, "after" is what held-out folds of whole units give.

    $ hitmiss calibrate dev.tsv --key dev_key.tsv --apply eval.tsv --to calibrated.tsv --save model.json
    """
    from hitmiss.derive.score_model import fit_calibration

    def fit(systems: Mapping[str, Trials], prior: float) -> ScoreModel:
        return fit_calibration(systems["before"], method, prior=prior)

    others = [apply] if apply else []
    fit_and_map({"before": scores}, key, others, method, fit, fitting, asked, reading, json)
