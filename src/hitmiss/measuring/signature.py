"""The signature: one line that pins every choice behind a table of figures, and the figures themselves.

`hitmiss:0.1.0|protocol:asvspoof5|metrics:eer(ties=official)+…|pos:bonafide|kind:llr|by:codec|boot:1000,…|n:5/3|data:…|out:…`
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np

from hitmiss._version import __version__
from hitmiss.errors import UsageError
from hitmiss.measuring.grouping import Grouping
from hitmiss.measuring.uncertainty import Plan, Question
from hitmiss.results import Estimate, Results
from hitmiss.spec import Spec
from hitmiss.trials import Trials

USUAL_LEVEL = 0.95
"""The level of intervals that a signature need not tell where nothing is resampled."""


def sign(
    results: Results,
    trials: Trials,
    questions: Sequence[Question],
    plan: Plan,
    groupings: Sequence[Grouping],
    gap: str | None,
) -> str:
    """The signature of a measurement."""
    asked = "+".join(str(Spec.of(q.metric.name, **q.settings)).replace(" ", "") for q in questions)
    by = ",".join("*".join(g) for g in groupings)
    level = "none" if plan.bootstrap or plan.level == USUAL_LEVEL else f"{plan.level:g}"
    return signed(results, trials, metrics=asked, by=by or "none", gap=gap or "none", boot=str(plan), level=level)


def signed(
    results: Results,
    trials: Trials,
    *,
    metrics: str = "none",
    by: str = "none",
    gap: str = "none",
    boot: str = "none",
    level: str = "none",
) -> str:
    """A signature from what was asked and how intervals were drawn; what is "none" is left out."""
    head = trials.header
    parts = {
        "hitmiss": __version__,
        "protocol": results.protocol or "none",
        "metrics": metrics,
        "pos": head.positive,
        "kind": head.score_kind,
        "by": by,
        "gap": gap,
        "boot": boot,
        "level": level,
        "threshold": f"{head.threshold.value!r} ({head.threshold.origin})" if head.threshold else "none",
        "choices": "+".join(head.choices) or "none",
        "n": f"{len(trials)}/{trials.n_positive}",
        "data": trials.digest,
        "numpy": np.__version__,
        "out": digest_of(results.estimates),
    }
    return "|".join(f"{k}:{v}" for k, v in parts.items() if v != "none")


def digest_of(estimates: Sequence[Estimate]) -> str:
    """Short hash of the figures to ten significant digits, in whatever order they stand."""
    rows = sorted(
        repr(
            (
                e.metric,
                sorted(e.run.items()),
                sorted(e.slice.items()),
                e.average,
                *map(_rounded, (e.value, e.low, e.high)),
                e.n,
            )
        )
        for e in estimates
    )
    return hashlib.sha256("\n".join(rows).encode()).hexdigest()[:12]


def _rounded(value: float | None) -> str:
    return "-" if value is None else f"{value:.9e}"


def read_signature(text: str) -> dict[str, str]:
    """The parts of a signature by name.

    >>> read_signature("hitmiss:0.1.0|protocol:asvspoof5|n:5/3")["protocol"]
    'asvspoof5'
    """
    parts = dict(p.split(":", 1) for p in text.strip().split("|") if ":" in p)
    if "hitmiss" not in parts or "n" not in parts:
        raise UsageError(f"{text[:60]!r} is not a hitmiss signature")
    return parts
