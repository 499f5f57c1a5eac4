"""`hitmiss fuse`: one likelihood ratio from the scores of several systems."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from hitmiss.cli.options import arg, fields
from hitmiss.cli.score_models import FitSpec, fit_and_map
from hitmiss.cli.shared import FITTED_KEY, JSON
from hitmiss.core.design import Design
from hitmiss.core.read_spec import ReadSpec
from hitmiss.core.spec import READING, opt


def fuse(
    scores: Annotated[
        list[str], arg("Development scores, one file per system; with --model, the scores to fuse.", "A B…")
    ],
    key: Annotated[str | None, FITTED_KEY] = None,
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
    *,
    fitting: FitSpec,
    asked: Annotated[Design, fields(without=("matrix", "gap", "stratify", "threshold", "require"), bootstrap=1000)],
    reading: ReadSpec,
    json: Annotated[bool, JSON] = False,
) -> None:
    """Fuse several systems by logistic regression on development data, show before and after, and fuse other scores.

    The fused score is a log-likelihood ratio. Probabilities are mapped to log-odds first.

    $ hitmiss fuse dev/a.tsv dev/b.tsv --key dev_key.tsv --apply eval/a.tsv eval/b.tsv --to fused.tsv
    """
    from hitmiss.derive.score_model import FUSION, fit_fused

    files = dict(zip(_names(scores), scores, strict=True))
    fit_and_map(
        files,
        key,
        apply or [],
        FUSION,
        lambda systems, prior: fit_fused(systems, prior=prior),
        fitting,
        asked,
        reading,
        json,
    )


def _names(files: list[str]) -> list[str]:
    """Return a name for each system: that of its file, or with its folder where files are named alike."""
    short = [Path(file).name.split(".")[0] for file in files]
    return short if len({*short}) == len(short) else [str(Path(file).with_suffix("")) for file in files]
