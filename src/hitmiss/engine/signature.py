"""The signature: one line that pins every choice behind a table of figures, and the figures themselves.

`hitmiss:0.1.0|protocol:asvspoof5|metrics:eer(ties=official)+…|pos:bonafide|kind:llr|by:codec|boot:1000,…|n:5/3|data:…|out:…`
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence

import numpy as np

from hitmiss._version import __version__
from hitmiss.core.artifacts import SHORT
from hitmiss.core.errors import UsageError
from hitmiss.core.question import Grouping, Plan, ReadSpec
from hitmiss.core.results import Estimate, Results
from hitmiss.core.schema import Spec
from hitmiss.core.trials import Trials
from hitmiss.engine.resample import Question

ELSEWHERE = ("score_kind", "on_nan", "dedupe", "allow_missing")
"""What of the reading other parts of a signature say."""
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
    drift: str = "none",
) -> str:
    """A signature from what was asked and how intervals were drawn; what is "none" is left out."""
    head = trials.header
    parts = {
        "hitmiss": __version__,
        "protocol": results.protocol or "none",
        "drift": drift,
        "metrics": metrics,
        "pos": head.positive,
        "kind": head.score_kind,
        "read": _read_text(results),
        "by": by,
        "gap": gap,
        "boot": boot,
        "units": _units(results.estimates) if "unit=" in boot else "none",
        "level": level,
        "threshold": f"{head.threshold.value!r} ({head.threshold.origin})" if head.threshold else "none",
        "choices": "+".join(head.choices) or "none",
        "n": f"{len(trials)}/{trials.n_positive}",
        "data": trials.digest,
        "numpy": np.__version__,
        "out": digest_of(results.estimates),
    }
    return render(parts)


def _units(estimates: Sequence[Estimate]) -> str:
    """The most units that a figure was drawn from: those of all trials."""
    held = [e.units for e in estimates if e.units is not None]
    return str(max(held)) if held else "none"


def render(parts: Mapping[str, str]) -> str:
    """A signature from its parts; what is "none" is left out, and a `|` inside a part is escaped.

    >>> render({"hitmiss": "0.1.0", "pos": "fa|ke", "gap": "none", "n": "5/3"})
    'hitmiss:0.1.0|pos:fa\\\\|ke|n:5/3'
    """
    return "|".join(f"{name}:{_escaped(text)}" for name, text in parts.items() if text != "none")


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("|", "\\|").replace("\n", "\\n").replace("\r", "\\r")


def _plain(text: str) -> str:
    return re.sub(r"\\([|nr\\])", lambda found: {"n": "\n", "r": "\r"}.get(found[1], found[1]), text)


def short(signature: str) -> str:
    """A signature in at most 60 characters, for a paper: version, protocol, and hashes of all choices and of the figures.

    >>> len(short("hitmiss:0.1.0|protocol:deepfake-audio|n:5/3|data:2c26b46b68ff|out:fcde2b2edba5")) <= 60
    True
    """
    parts = read_signature(signature.splitlines()[0])
    digest = hashlib.sha256(signature.encode()).hexdigest()[:12]
    ends = f"|sig:{digest}|out:{parts.get('out', '-')[:12]}"
    begin = f"hitmiss:{parts['hitmiss']}|{parts.get('protocol') or parts.get('metrics', '')}"
    return begin[: 60 - len(ends)].rstrip("|") + ends


def _read_text(results: Results) -> str:
    """What was said about the files beyond what the protocol and other parts of the signature say, as compact JSON."""
    spec = results.reading
    if spec is None:
        return "none"
    rules = results.design.protocol.read if results.design is not None and results.design.protocol else ReadSpec()
    own = [f for f in spec.said if f not in ELSEWHERE and getattr(spec, f) != getattr(rules, f)]
    told = spec.to_plain()
    return json.dumps({f: told[f] for f in own}, separators=(",", ":"), ensure_ascii=False) if own else "none"


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
    return hashlib.sha256("\n".join(rows).encode()).hexdigest()[:SHORT]


def _rounded(value: float | None) -> str:
    return "-" if value is None else f"{value:.9e}"


def read_signature(text: str) -> dict[str, str]:
    """The parts of a signature by name.

    >>> read_signature("hitmiss:0.1.0|protocol:asvspoof5|n:5/3")["protocol"]
    'asvspoof5'
    """
    pieces = re.split(r"(?<!\\)((?:\\\\)*)\|", text.strip())
    whole = [piece + slashes for piece, slashes in zip(pieces[::2], [*pieces[1::2], ""], strict=True)]
    parts = {name: _plain(value) for name, colon, value in (p.partition(":") for p in whole) if colon}
    if "hitmiss" not in parts or "n" not in parts:
        raise UsageError(f"{text[:60]!r} is not a hitmiss signature", code="not-a-signature")
    return parts
