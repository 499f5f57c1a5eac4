"""`hitmiss calibrate`: fit a mapping of scores to likelihood ratios, judge it, store it, and write mapped scores."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from hitmiss.cli import common
from hitmiss.cli.options import arg, fields
from hitmiss.core.design import Design
from hitmiss.core.read_spec import ReadSpec
from hitmiss.core.spec import CERTAINTY, MEASURING, OTHERS, READING, WRITING, opt

if TYPE_CHECKING:
    from hitmiss.core.trials import Trials
    from hitmiss.derive.score_model import ScoreModel

PRIOR = "Share of positives for which the fit is best; 0.5 minimises Cllr."
COSTS = "Costs of a miss and of a false alarm, as 1,10; they shift the prior."


def calibrate(
    scores: Annotated[str, arg("Development scores to fit on; with --model, the scores to map.", "SCORES")],
    key: Annotated[str | None, opt("Key of these scores.", READING, common=True)] = None,
    method: Annotated[
        Literal["affine", "pav"], opt("One slope and one offset, or any rising function.", OTHERS, common=True)
    ] = "affine",
    prior: Annotated[float, opt(PRIOR, OTHERS, common=True)] = 0.5,
    costs: Annotated[str | None, opt(COSTS, OTHERS, metavar="MISS,FALSE_ALARM")] = None,
    apply: Annotated[
        str | None, opt("Other scores to map by the fit.", OTHERS, metavar="SCORES", common=True)
    ] = None,
    apply_key: Annotated[str | None, opt("Key of the other scores, to measure them too.", READING)] = None,
    to: Annotated[str | None, opt("Write the mapped scores here.", WRITING, common=True)] = None,
    layout: Annotated[
        Literal["official", "table"], opt("Layout of the written scores: filename and score, or all columns.", WRITING)
    ] = "official",
    save: Annotated[str | None, opt("Store the fit (sealed JSON), for --model.", WRITING, common=True)] = None,
    model: Annotated[str | None, opt("Map by a stored fit instead of fitting.", OTHERS, common=True)] = None,
    folds: Annotated[int, opt("Held-out folds by which the fit is judged; 0 for none.", CERTAINTY)] = 5,
    *,
    asked: Annotated[Design, fields(without=("matrix", "gap", "stratify", "threshold", "require"), bootstrap=1000)],
    reading: ReadSpec,
    json: Annotated[bool, opt("JSON to stdout instead of tables.", WRITING, common=True)] = False,
) -> None:
    """Fit scores to log-likelihood ratios on development data, show before and after, and map other scores.

    Probabilities are mapped to log-odds first. Without other scores, "after" is what held-out folds of whole units give.

    $ hitmiss calibrate dev.tsv --key dev_key.tsv --apply eval.tsv --to calibrated.tsv --save model.json
    """
    from hitmiss.core.errors import UsageError
    from hitmiss.derive.score_model import fit_calibration, read_model
    from hitmiss.evaluation.protocol import read_side
    from hitmiss.evaluation.score_models import judge, operating_prior

    if model is not None:
        if save is not None or apply is not None:
            raise UsageError("--model maps by a stored fit; leave --save and --apply out", code="fitted-already")
        known = read_model(model)
        given = _read(scores, key, reading, asked)
        _finish(known, {known.systems[0].name: given}, None, to, layout, asked, key is not None, json)
        return
    dev = read_side([scores], key, reading, asked)
    prior = operating_prior(prior, costs)
    fitted = fit_calibration(dev, method, prior=prior)
    if save:
        fitted.write(save)
        common.note(f"wrote {save}")
    name = fitted.systems[0].name
    if apply is not None:
        other = _read(apply, apply_key, reading, asked)
        _finish(fitted, {name: other}, dev, to, layout, asked, apply_key is not None, json)
        return
    found = judge({name: dev}, lambda s: fit_calibration(s[name], method, prior=prior), fitted, asked, folds)
    _show(found, json)
    if to:
        _write(fitted.apply(dev, dev), to, layout)
