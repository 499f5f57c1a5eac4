"""`hitmiss fuse`: one likelihood ratio from the scores of several systems."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from hitmiss.cli.options import arg, fields
from hitmiss.cli.score_models import COSTS, FOLDS, LAYOUT, PRIOR
from hitmiss.cli.shared import APPLY_KEY, FITTED_KEY, JSON, SAVE
from hitmiss.core.design import Design
from hitmiss.core.read_spec import ReadSpec
from hitmiss.core.spec import CERTAINTY, MEASURING, READING, WRITING, opt


def fuse(
    scores: Annotated[
        list[str], arg("Development scores, one file per system; with --model, the scores to fuse.", "A B…")
    ],
    key: Annotated[str | None, FITTED_KEY] = None,
    prior: Annotated[float, opt(PRIOR, MEASURING)] = 0.5,
    costs: Annotated[str | None, opt(COSTS, MEASURING, metavar="MISS,FALSE_ALARM")] = None,
    apply: Annotated[
        list[str] | None,
        opt(
            "Other scores to fuse by the fit, in the same order.",
            READING,
            metavar="FILE…",
            takes_words=True,
            common=True,
        ),
    ] = None,
    apply_key: Annotated[str | None, APPLY_KEY] = None,
    model: Annotated[str | None, opt("Fuse by a stored fit instead of fitting.", READING, metavar="FILE")] = None,
    folds: Annotated[int, opt(FOLDS, CERTAINTY)] = 5,
    *,
    asked: Annotated[Design, fields(without=("matrix", "gap", "stratify", "threshold", "require"), bootstrap=1000)],
    reading: ReadSpec,
    to: Annotated[str | None, opt("Write the fused scores here.", WRITING, metavar="FILE", common=True)] = None,
    form: Annotated[Literal["official", "table"], opt(LAYOUT, WRITING)] = "official",
    save: Annotated[str | None, SAVE] = None,
    json: Annotated[bool, JSON] = False,
) -> None:
    """Fuse several systems by logistic regression on development data, show before and after, and fuse other scores.

    The fused score is a log-likelihood ratio. Probabilities are mapped to log-odds first.

    $ hitmiss fuse dev/a.tsv dev/b.tsv --key dev_key.tsv --apply eval/a.tsv eval/b.tsv --to fused.tsv
    """
    from hitmiss.cli import score_models as shared
    from hitmiss.core.errors import UsageError
    from hitmiss.derive.score_model import fit_fused, read_model
    from hitmiss.evaluation.protocol import read_side
    from hitmiss.evaluation.score_models import judge_applied, judge_held_out, operating_prior

    others = apply or []
    if model is not None:
        if save is not None or others:
            raise UsageError.of("fitted-already")
        fitted, development, others, other_key = read_model(model), None, scores, key
    else:
        names = _names(scores)
        development = {name: read_side([file], key, reading, asked) for name, file in zip(names, scores, strict=True)}
        chosen = operating_prior(prior, costs)
        fitted, other_key = fit_fused(development, prior=chosen), apply_key
        shared.save_model(fitted, save)
    if others:
        if len(others) != len(fitted.systems):
            raise UsageError.of("other-systems/fit", n_systems=len(fitted.systems), n_others=len(others))
        read = [shared.read_scores(file, other_key, reading, asked, fitted.positive) for file in others]
        given = {system.name: trials for system, trials in zip(fitted.systems, read, strict=True)}
        mapped = fitted.apply(given, None if development is None else next(iter(development.values())))
        if to:
            shared.write_mapped(mapped, to, form)
        if any(trials.header.is_unlabelled for trials in read):
            shared.show_model(fitted, json)
        else:
            shared.show(judge_applied(fitted, given, mapped, asked), fitted, json)
        return
    assert development is not None
    if to:
        shared.write_mapped(fitted.apply(development, next(iter(development.values()))), to, form)
    if not folds:
        shared.show_model(fitted, json)
        return
    found = judge_held_out(development, lambda s: fit_fused(s, prior=chosen), "fusion", asked, folds)
    shared.show(found, fitted, json)


def _names(files: list[str]) -> list[str]:
    """Return a name for each system: that of its file, or with its folder where files are named alike."""
    short = [Path(file).name.split(".")[0] for file in files]
    return short if len({*short}) == len(short) else [str(Path(file).with_suffix("")) for file in files]
