"""`hitmiss calibrate`: fit a mapping of scores to likelihood ratios, judge it, store it, and write mapped scores."""

from __future__ import annotations

from typing import Annotated, Literal

from hitmiss.cli.options import arg, fields
from hitmiss.cli.score_models import COSTS, FOLDS, LAYOUT, PRIOR
from hitmiss.cli.shared import APPLY_KEY, FITTED_KEY, JSON, SAVE
from hitmiss.core.design import Design
from hitmiss.core.read_spec import ReadSpec
from hitmiss.core.spec import CERTAINTY, MEASURING, READING, WRITING, opt


def calibrate(
    scores: Annotated[str, arg("Development scores to fit on; with --model, the scores to map.", "SCORES")],
    key: Annotated[str | None, FITTED_KEY] = None,
    method: Annotated[
        Literal["affine", "pav"], opt("One slope and one offset, or any rising function.", MEASURING)
    ] = "affine",
    prior: Annotated[float, opt(PRIOR, MEASURING)] = 0.5,
    costs: Annotated[str | None, opt(COSTS, MEASURING, metavar="MISS,FALSE_ALARM")] = None,
    apply: Annotated[str | None, opt("Other scores to map by the fit.", READING, metavar="FILE", common=True)] = None,
    apply_key: Annotated[str | None, APPLY_KEY] = None,
    model: Annotated[str | None, opt("Map by a stored fit instead of fitting.", READING, metavar="FILE")] = None,
    folds: Annotated[int, opt(FOLDS, CERTAINTY)] = 5,
    *,
    asked: Annotated[Design, fields(without=("matrix", "gap", "stratify", "threshold", "require"), bootstrap=1000)],
    reading: ReadSpec,
    to: Annotated[str | None, opt("Write the mapped scores here.", WRITING, metavar="FILE", common=True)] = None,
    form: Annotated[Literal["official", "table"], opt(LAYOUT, WRITING)] = "official",
    save: Annotated[str | None, SAVE] = None,
    json: Annotated[bool, JSON] = False,
) -> None:
    """Fit scores to log-likelihood ratios on development data, show before and after, and map other scores.

    Probabilities are mapped to log-odds first. Without other scores, "after" is what held-out folds of whole units give.

    $ hitmiss calibrate dev.tsv --key dev_key.tsv --apply eval.tsv --to calibrated.tsv --save model.json
    """
    from hitmiss.cli import score_models as shared
    from hitmiss.core.errors import UsageError
    from hitmiss.derive.score_model import fit_calibration, read_model
    from hitmiss.evaluation.protocol import read_side
    from hitmiss.evaluation.score_models import judge_applied, judge_held_out, operating_prior

    if model is not None:
        if save is not None or apply is not None:
            raise UsageError.of("fitted-already/maps")
        fitted, development, other, other_key = read_model(model), None, scores, key
    else:
        development = read_side([scores], key, reading, asked)
        chosen = operating_prior(prior, costs)
        fitted = fit_calibration(development, method, prior=chosen)
        other, other_key = apply or "", apply_key
        shared.save_model(fitted, save)
    if other:
        given = shared.read_scores(other, other_key, reading, asked, fitted.positive)
        mapped = fitted.apply(given, development)
        if to:
            shared.write_mapped(mapped, to, form)
        if given.header.is_unlabelled:
            shared.show_model(fitted, json)
        else:
            shared.show(judge_applied(fitted, {"before": given}, mapped, asked), fitted, json)
        return
    assert development is not None
    if to:
        shared.write_mapped(fitted.apply(development, development), to, form)
    if not folds:
        shared.show_model(fitted, json)
        return
    alone = {"before": development}
    found = judge_held_out(alone, lambda s: fit_calibration(s["before"], method, prior=chosen), method, asked, folds)
    shared.show(found, fitted, json)
