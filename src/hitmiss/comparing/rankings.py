"""More than two runs: every pair compared, p values adjusted over all pairs, and groups that do not differ."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import combinations
from typing import Any

from hitmiss import artifacts
from hitmiss.comparing.comparison import compare
from hitmiss.comparing.differences import Comparison, Difference, judged
from hitmiss.errors import UsageError
from hitmiss.measuring.grouping import Grouping, parse_by
from hitmiss.measuring.signature import read_signature
from hitmiss.progress import each
from hitmiss.results import SCHEMA, finite
from hitmiss.spec import Spec
from hitmiss.stats.letters import letters
from hitmiss.stats.multiple import adjusted
from hitmiss.trials import Trials


@dataclass(frozen=True)
class Standing:
    """A run's figure in a slice and its letters there: runs that share a letter were not shown to differ."""

    metric: str
    run: str
    value: float | None
    letters: str
    best: str
    slice: Mapping[str, str] = field(default_factory=dict)
    average: str | None = None
    n_pairs: int = 0


@dataclass(frozen=True)
class Duel:
    """The difference of one metric between two named runs, its p value adjusted over all pairs."""

    a: str
    b: str
    difference: Difference


@dataclass(frozen=True)
class Ranking:
    """The standings of all runs and the duels behind them."""

    names: tuple[str, ...]
    standings: tuple[Standing, ...]
    duels: tuple[Duel, ...]
    signature: str = ""
    warnings: tuple[str, ...] = ()
    level: float = 0.95
    correction: str = "holm"
    groupings: tuple[Grouping, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """The JSON form: `{"schema": 1, "kind": "ranking", "runs": […], "standings": [{…}], "pairs": [{…}]}`."""
        pairs = [{"run_a": d.a, "run_b": d.b, **asdict(d.difference)} for d in self.duels]
        return {
            "schema": SCHEMA,
            "kind": "ranking",
            "runs": list(self.names),
            "level": self.level,
            "correction": self.correction,
            "warnings": list(self.warnings),
            "signature": self.signature,
            "standings": [{k: finite(v) for k, v in asdict(s).items()} for s in self.standings],
            "pairs": [{k: finite(v) for k, v in row.items()} for row in pairs],
        }

    def to_json(self, indent: int | None = 1) -> str:
        """The JSON form as text."""
        return json.dumps(artifacts.sealed(self.to_dict()), indent=indent, ensure_ascii=False, allow_nan=False)


def compare_all(
    runs: Mapping[str, Trials], metrics: Sequence[str | Spec], *, correction: str = "holm", **options: Any
) -> Ranking:
    """Compare every pair of runs; options as for `compare`.

    P values are adjusted over all pairs; in tables by slice over all pairs and slices of a metric and grouping.

    >>> label, right, wrong = [1] * 6 + [0] * 6, [*range(6, 12), *range(6)], [*range(12)]
    >>> runs = {"x": right, "y": right, "z": wrong}
    >>> found = compare_all({n: Trials.of(label, s) for n, s in runs.items()}, ["roc_auc"], test="bootstrap", force=True)
    >>> [(s.run, s.value, s.letters) for s in found.standings]
    [('x', 1.0, 'a'), ('y', 1.0, 'a'), ('z', 0.0, 'b')]
    """
    if len(runs) < 2:
        raise UsageError(f"a comparison needs two runs or more; found {len(runs)}")
    made = {
        (a, b): compare(runs[a], runs[b], metrics, names=(a, b), correction="none", **options)
        for a, b in each(list(combinations(runs, 2)), "pairs of runs")
    }
    first = next(iter(made.values()))
    duels = _adjusted_over_pairs(made, correction, parse_by(options.get("by", ())), first.level)
    warnings = dict.fromkeys(w for c in made.values() for w in c.warnings)
    return Ranking(
        tuple(runs),
        tuple(_standings(tuple(runs), duels, 1.0 - first.level)),
        tuple(duels),
        _sign(tuple(made.values()), correction),
        tuple(warnings),
        first.level,
        correction,
        tuple(parse_by(options.get("by", ()))),
    )


def _adjusted_over_pairs(
    made: Mapping[tuple[str, str], Comparison], correction: str, groupings: Sequence[Grouping], level: float
) -> list[Duel]:
    duels = [Duel(a, b, d) for (a, b), c in made.items() for d in c]
    families: dict[tuple[object, ...], list[Duel]] = {}
    for duel in duels:
        families.setdefault(_family(duel.difference, groupings), []).append(duel)
    return [
        replace(duel, difference=judged(replace(duel.difference, p_adjusted=p), level))
        for own in families.values()
        for duel, p in zip(own, adjusted([d.difference.p_value for d in own], correction), strict=True)
    ]


def _family(d: Difference, groupings: Sequence[Grouping]) -> tuple[object, ...]:
    """What is adjusted together: all pairs, and in a table by slice all slices of it."""
    columns = tuple(d.slice)
    rest = {k: v for k, v in d.slice.items() if not is_sliced(d.slice, groupings)}
    return d.metric, d.average, columns, tuple(rest.items())


def is_sliced(where: Mapping[str, str], groupings: Sequence[Grouping]) -> bool:
    """Whether a figure stands in a table by slice."""
    return any({*grouping} <= {*where} for grouping in groupings)


def _standings(names: tuple[str, ...], duels: Sequence[Duel], alpha: float) -> list[Standing]:
    """Per metric and slice the runs from best to worst with their letters."""
    found: list[Standing] = []
    cells: dict[tuple[object, ...], list[Duel]] = {}
    for duel in duels:
        d = duel.difference
        cells.setdefault((d.metric, d.average, tuple(d.slice.items())), []).append(duel)
    for own in cells.values():
        values = {d.a: d.difference.a for d in own} | {d.b: d.difference.b for d in own}
        one = own[0].difference
        order = sorted(names, key=lambda n: _place(values.get(n), one.best))
        told = [(d.a, d.b) for d in own if d.difference.p_adjusted is not None and d.difference.p_adjusted < alpha]
        signs = letters(order, told)
        where: dict[str, Any] = {"slice": dict(one.slice), "average": one.average, "n_pairs": one.n_pairs}
        found += [
            Standing(title_of(one), n, values.get(n), signs[n] if values.get(n) is not None else "", one.best, **where)
            for n in order
        ]
    return found


def _sign(made: tuple[Comparison, ...], correction: str) -> str:
    """The signature of the first pair, with the content of all runs and a hash of all figures."""
    parts = [read_signature(c.signature) for c in made]
    runs = dict.fromkeys(p[side] for p in parts for side in ("a", "b"))
    out = hashlib.sha256("".join(p["out"] for p in parts).encode()).hexdigest()[:12]
    common = {k: v for k, v in parts[0].items() if k not in ("a", "b", "out")}
    common |= {"compare": "all-pairs", "correction": correction, "runs": "+".join(runs), "out": out}
    return "|".join(f"{k}:{v}" for k, v in common.items())


def title_of(d: Difference) -> str:
    """A metric with the slice and the average that a figure is of."""
    where = ", ".join(f"{k}={v}" for k, v in d.slice.items())
    return f"{f'{d.average} ' if d.average else ''}{d.metric}{f' [{where}]' if where else ''}"


def _place(value: float | None, best: str) -> tuple[bool, float]:
    if value is None:
        return True, 0.0
    return False, value if best == "low" else -value
