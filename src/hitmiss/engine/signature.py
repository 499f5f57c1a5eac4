"""The signature: one line that records every choice behind a table of estimates, and a hash of the estimates.

`hitmiss:0.2.0|protocol:asvspoof5|metrics:eer(ties=official)+…|pos:bonafide|kind:llr|by:codec|boot:1000,…|n:5/3|data:…|out:…`
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from hitmiss._version import __version__
from hitmiss.core.artifacts import SHORT
from hitmiss.core.design import Grouping
from hitmiss.core.errors import UsageError
from hitmiss.core.metric_spec import MetricSpec
from hitmiss.core.protocol import Gap
from hitmiss.core.read_spec import ReadSpec
from hitmiss.core.results import (
    Estimate,
    Results,
)
from hitmiss.core.sampling import SamplingPlan
from hitmiss.core.trials import Trials
from hitmiss.engine.prepared_metric import PreparedMetric

ELSEWHERE = ("score_kind", "on_nan", "dedupe", "allow_missing")
"""Read options that other parts of the signature record."""
USUAL_LEVEL = 0.95
"""The default level of intervals; a signature leaves it out if nothing is resampled."""
GAPS_JOIN: Final = " & "
"""Between the gaps of a signature."""


def sign(
    results: Results,
    trials: Trials,
    questions: Sequence[PreparedMetric],
    plan: SamplingPlan,
    groupings: Sequence[Grouping],
    gaps: Sequence[Gap],
    slices: str = "none",
) -> str:
    """Return the signature of a measurement; `slices` is "all" if metrics beyond the protocol's choice are sliced."""
    asked = "+".join(str(MetricSpec.of(q.metric.name, **q.settings)).replace(" ", "") for q in questions)
    by = ",".join("*".join(g) for g in groupings)
    level = "none" if plan.bootstrap or plan.level == USUAL_LEVEL else f"{plan.level:g}"
    gap = GAPS_JOIN.join(map(str, gaps)) or "none"
    told = "+".join(results.design.identity if results.design else ()) or "none"
    return signed(
        results,
        trials,
        metrics=asked,
        by=by or "none",
        slices=slices,
        gap=gap,
        identities=told,
        boot=str(plan),
        level=level,
    )


def signed(
    results: Results,
    trials: Trials,
    *,
    metrics: str = "none",
    by: str = "none",
    slices: str = "none",
    gap: str = "none",
    identities: str = "none",
    boot: str = "none",
    level: str = "none",
    drift: str = "none",
) -> str:
    """Return a signature from what was asked and how intervals were made; parts that are "none" are left out."""
    head, there = trials.header, trials.completeness
    parts = {
        "hitmiss": __version__,
        "protocol": results.protocol or "none",
        "drift": drift,
        "metrics": metrics,
        "pos": head.positive,
        "kind": head.score_kind,
        "read": _read_text(results),
        "by": by,
        "slices": slices,
        "gap": gap,
        "identities": identities,
        "boot": boot,
        "units": _units(results.estimates) if "unit=" in boot else "none",
        "level": level,
        "threshold": f"{head.threshold.value!r} ({head.threshold.origin})" if head.threshold else "none",
        "choices": "+".join(head.choices) or "none",
        "complete": "none" if there.is_full else f"{there.n}/{there.of}",
        "n": f"{len(trials)}/{trials.n_positive}",
        "data": trials.digest,
        "numpy": np.__version__,
        "out": digest_of(results.estimates),
    }
    return render(parts)


def _units(estimates: Sequence[Estimate]) -> str:
    """Return the largest number of units behind an estimate, which is that of all trials."""
    held = [e.units for e in estimates if e.units is not None]
    return str(max(held)) if held else "none"


def render(parts: Mapping[str, str]) -> str:
    """Build a signature from its parts. Parts that are "none" are left out, and a `|` inside a part is escaped.

    >>> render({"hitmiss": "0.2.0", "pos": "fa|ke", "gap": "none", "n": "5/3"})
    'hitmiss:0.2.0|pos:fa\\\\|ke|n:5/3'
    """
    escapes = str.maketrans({"\\": "\\\\", "|": "\\|", "\n": "\\n", "\r": "\\r"})
    return "|".join(f"{name}:{text.translate(escapes)}" for name, text in parts.items() if text != "none")


def _plain(text: str) -> str:
    return re.sub(r"\\([|nr\\])", lambda found: {"n": "\n", "r": "\r"}.get(found[1], found[1]), text)


def short(signature: str) -> str:
    """Shorten a signature to at most 60 characters, for a paper: version, protocol, and two hashes.

    The hashes are those of all choices and of the numbers.

    >>> len(short("hitmiss:0.2.0|protocol:deepfake-audio|n:5/3|data:2c26b46b68ff|out:fcde2b2edba5")) <= 60
    True
    """
    parts = read_signature(signature.splitlines()[0])
    digest = hashlib.sha256(signature.encode()).hexdigest()[:12]
    ends = f"|sig:{digest}|out:{parts.get('out', '-')[:12]}"
    begin = f"hitmiss:{parts['hitmiss']}|{parts.get('protocol') or parts.get('metrics', '')}"
    return begin[: 60 - len(ends)].rstrip("|") + ends


def _read_text(results: Results) -> str:
    """Return the read options that neither the protocol nor another part of the signature states, as compact JSON."""
    spec = results.reading
    if spec is None:
        return "none"
    rules = results.design.protocol.read if results.design is not None and results.design.protocol else ReadSpec()
    own = [f for f in spec.stated if f not in ELSEWHERE and getattr(spec, f) != getattr(rules, f)]
    told = spec.to_plain()
    return json.dumps({f: told[f] for f in own}, separators=(",", ":"), ensure_ascii=False) if own else "none"


def digest_of(estimates: Sequence[Estimate]) -> str:
    """Return a short hash of the numbers to ten significant digits; their order does not matter."""
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
    return hashlib.sha256("\n".join(rows).encode()).hexdigest()[:SHORT]


def _rounded(value: float | None) -> str:
    return "-" if value is None else f"{value:.9e}"


def read_signature(text: str) -> dict[str, str]:
    """Split a signature into its parts by name.

    >>> read_signature("hitmiss:0.2.0|protocol:asvspoof5|n:5/3")["protocol"]
    'asvspoof5'
    """
    pieces = re.split(r"(?<!\\)((?:\\\\)*)\|", text.strip())
    whole = [piece + slashes for piece, slashes in zip(pieces[::2], [*pieces[1::2], ""], strict=True)]
    parts = {name: _plain(value) for name, colon, value in (p.partition(":") for p in whole) if colon}
    if "hitmiss" not in parts or "n" not in parts:
        raise UsageError.of("not-a-signature", text=text[:60])
    return parts
