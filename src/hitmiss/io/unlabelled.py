"""Read scores whose classes are not known, to map or to convert them."""

from __future__ import annotations

import polars as pl

from hitmiss.core.read_spec import ReadSpec
from hitmiss.core.trials import Trials
from hitmiss.io.diagnostics import Diagnostics, Stop
from hitmiss.io.fetch import expand
from hitmiss.io.reader import read
from hitmiss.io.sides import look, open_side

__all__ = ["read_unlabelled"]


def read_unlabelled(scores: object, options: ReadSpec, positive: str) -> Trials:
    """Read the scores of a file without a key, with every check that scores have.

    The trials have stand-ins for their classes, so nothing may be measured on them: they are for writing scores.

    Parameters
    ----------
    scores
        The score file or files.
    options
        Read options.
    positive
        The class that a higher score means, unless the options say otherwise.
    """
    ledger = Diagnostics()
    try:
        shapes = [look(source, "scores", options, ledger) for source in expand(scores)]
        items = open_side(shapes, "scores", options, ledger).stack.frame["item"].unique().sort()
    except Stop:
        raise ledger.error() from None
    other = f"not {positive}"
    words = [positive if i % 2 else other for i in range(len(items))]
    key = pl.DataFrame({"item": items, "label": words})
    return read(scores, key, options.changed(positive=positive, negative=other)).retitle(is_unlabelled=True)
