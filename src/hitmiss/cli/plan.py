"""`hitmiss plan`: how many trials or units an interval of a given width or a given difference needs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from hitmiss.cli import printing
from hitmiss.cli.options import arg, fields
from hitmiss.cli.shared import JSON, KEY
from hitmiss.core.design import ComparisonRules, Design
from hitmiss.core.read_spec import ReadSpec
from hitmiss.core.spec import opt

if TYPE_CHECKING:
    from hitmiss.core.results import Estimate
    from hitmiss.stats.planning import Error

MDD_POWER = 0.8
"""The power for which a comparison states its smallest detectable difference."""
Units = Sequence[str] | None
"""Names of the units that are counted; None: single trials."""
PILOT = "A pilot: a score file, or results (.json); two score files to plan a comparison. None: plan from assumptions."


@dataclass(frozen=True)
class Wish:
    """What a plan is for."""

    width: float | None
    difference: float | None
    power: float
    level: float


@dataclass(frozen=True)
class Assumed:
    """The assumptions that replace a pilot run."""

    value: float | None
    positives: float
    correlation: float
    per_unit: float | None
    alike: float


@dataclass(frozen=True)
class Planned:
    """One line of the plan."""

    metric: str
    wish: str
    count: int
    of: str
    trials: int
    reached: float
    basis: str
    units: tuple[str, ...] = ()


def plan(
    pilot: Annotated[list[str] | None, arg(PILOT)] = None,
    key: Annotated[str | None, KEY] = None,
    width: Annotated[float | None, opt("Width of the interval, end to end, as 0.02.", common=True)] = None,
    difference: Annotated[float | None, opt("Difference of two systems to be shown, as 0.01.", common=True)] = None,
    power: Annotated[float, opt("How often a true difference is to be shown.", common=True)] = 0.8,
    value: Annotated[float | None, opt("Without a pilot: the value that is expected.", common=True)] = None,
    positives: Annotated[float, opt("Without a pilot: share of positive trials.")] = 0.5,
    correlation: Annotated[
        float, opt("Without a pilot: of two systems over the same trials; 0 for other trials.")
    ] = 0.5,
    per_unit: Annotated[float | None, opt("Without a pilot: trials per unit (speaker, patient).")] = None,
    alike: Annotated[float, opt("Without a pilot: correlation of the trials of one unit.")] = 0.1,
    *,
    asked: Annotated[Design, fields(without=("by", "matrix", "gap", "interval", "stratify"), bootstrap=1000)],
    reading: ReadSpec,
    json: Annotated[bool, JSON] = False,
) -> None:
    """Compute how many trials or units are needed for an interval of a given width, or to show a given difference.

    $ hitmiss plan pilot.tsv --key key.tsv -m eer --width 0.01 --unit speaker
    """
    from hitmiss.core.errors import UsageError

    if (width is None) == (difference is None):
        raise UsageError.of("no-plan")
    wish = Wish(width, difference, power, asked.level)
    assumed = Assumed(value, positives, correlation, per_unit, alike)
    found = _from_pilot(pilot, key, asked, reading, wish) if pilot else _from_assumptions(asked, wish, assumed)
    if json:
        printing.out_json(
            {"schema": 1, "plan": printing.plain(wish), "needs": printing.plain(found), **printing.taken()}
        )
        return
    kind = "half width" if difference is None else "shown"
    rows = [[p.metric, f"{p.count:,} {p.of}", f"{p.trials:,}", f"{p.reached:.4f}", p.basis] for p in found]
    goal = (
        f"an interval of width {width:g}" if difference is None else f"a difference of {difference:g}, power {power:g}"
    )
    printing.out(f"needed for {goal} at level {asked.level:g}")
    printing.out_table(["metric", "needed", "trials", kind, "from"], rows)
    for units in dict.fromkeys(p.units for p in found if len(p.units) > 1):
        printing.out(f"{_counted(units)}: the more numerous of them is counted; the other grows in proportion")


def _planned(metric: str, error: Error, wish: Wish, units: Units, per: float, basis: str) -> Planned:
    from hitmiss.stats.planning import needed

    target = wish.difference if wish.width is None else wish.width / 2.0
    assert target is not None
    need = needed(error, target, wish.level, None if wish.difference is None else wish.power)
    what = "width" if wish.difference is None else "difference"
    trials = round(need.count * per)
    return Planned(metric, what, need.count, _counted(units), trials, need.reached, basis, tuple(units or ()))


def _from_assumptions(asked: Design, wish: Wish, assumed: Assumed) -> list[Planned]:
    """Return one line per metric, computed from the expected value."""
    from hitmiss.core.errors import UsageError
    from hitmiss.stats.planning import Error, by_units, deviation, of_difference

    if assumed.value is None or not asked.metrics:
        raise UsageError.of("no-pilot")
    found = []
    for metric in asked.metrics:
        own, basis = deviation(metric, assumed.value, assumed.positives), f"{metric} = {assumed.value:g}"
        if wish.difference is not None:
            theirs = deviation(metric, assumed.value + wish.difference, assumed.positives)
            own, basis = (
                of_difference(own, theirs, assumed.correlation),
                f"{basis}, correlation {assumed.correlation:g}",
            )
        if assumed.per_unit is None:
            found.append(_planned(metric, Error(own, 1.0), wish, None, 1.0, basis))
        else:
            error = by_units(own, assumed.per_unit, assumed.alike)
            basis = f"{basis}, {assumed.per_unit:g} trials per unit alike by {assumed.alike:g}"
            found.append(_planned(metric, error, wish, asked.units, assumed.per_unit, basis))
    return found


def _from_pilot(pilot: list[str], key: str | None, asked: Design, reading: ReadSpec, wish: Wish) -> list[Planned]:
    """Return one line per metric, from the intervals of a pilot run or the errors of the differences of two."""
    from hitmiss.core.errors import DataError, UsageError

    if len(pilot) > 2 or (wish.difference is not None) != (len(pilot) == 2):
        raise UsageError.of("pilot-runs")
    found = (
        _differences(pilot, key, asked, reading, wish)
        if len(pilot) == 2
        else _widths(pilot[0], key, asked, reading, wish)
    )
    if not found:
        raise DataError.of("bare-pilot")
    return found


def _widths(pilot: str, key: str | None, asked: Design, reading: ReadSpec, wish: Wish) -> list[Planned]:
    from hitmiss.core.errors import DataError
    from hitmiss.core.finding import has_code
    from hitmiss.core.results import Results
    from hitmiss.core.weights import refuse_sampling
    from hitmiss.evaluation.protocol import measure_trials, read_trials

    if Path(pilot).suffix == ".json":
        results = Results.load(pilot)
    else:
        trials = read_trials(pilot, key, asked.protocol, reading)
        refuse_sampling(trials, "a plan")
        results = measure_trials(trials, asked)
    whole = [e for e in results if not e.slice and e.average is None]
    wanted = [e for e in whole if not asked.metrics or e.metric in asked.metrics]
    known = [e for e in wanted if e.low is not None]
    why = next((e.note for e in wanted if has_code(e.note, "no-interval")), None)
    if not known and why is not None:
        raise DataError.of("bare-pilot/why", metric=wanted[0].metric, why=why)
    units = results.design.units if results.design is not None else asked.units
    return [_line(e, wish, units, Path(pilot).name) for e in known]


def _counted(units: Units) -> str:
    """Say what a number counts: trials without units; of crossed units the more numerous.

    With r times as many of each and r times the trials, every part of the variance (of either unit, and inside) is 1/r.

    >>> _counted(None), _counted([]), _counted(["speaker"]), _counted(["speaker", "attack"])
    ('trials', 'units', 'speaker', 'speaker or attack')
    """
    return "trials" if units is None else " or ".join(units) or "units"


def _line(e: Estimate, wish: Wish, units: Units, name: str) -> Planned:
    from hitmiss.stats.planning import Error, quantiles

    assert e.low is not None and e.high is not None
    drawn = e.units is not None
    counted = units if drawn else None
    count = float(e.units or e.n)
    spread = quantiles(e.units_effective or count, drawn, wish.level, None)
    error = Error((e.high - e.low) / (2.0 * spread), count, drawn)
    basis = f"{name}: {e.value:.4f} [{e.low:.4f}, {e.high:.4f}], {count:,.0f} {_counted(counted)}"
    return _planned(e.metric, error, wish, counted, e.n / count, basis)


def _differences(pilot: list[str], key: str | None, asked: Design, reading: ReadSpec, wish: Wish) -> list[Planned]:
    from hitmiss.core.weights import refuse_sampling
    from hitmiss.engine.comparison import Comparison
    from hitmiss.evaluation.protocol import compare_trials, read_trials
    from hitmiss.stats.planning import Error, quantiles

    runs = {Path(p).name: read_trials(p, key, asked.protocol, reading) for p in pilot}
    for run in runs.values():
        refuse_sampling(run, "a plan")
    contest = ComparisonRules(test="bootstrap", allow_missing=reading.allow_missing, force=True)
    made = compare_trials(runs, replace(asked, contest=contest))
    assert isinstance(made, Comparison)
    trials = next(iter(runs.values()))
    count = float(len(trials))
    units = made.design.units if made.design is not None else asked.units
    if units:
        count = float(max(trials.frame[trials.own(name)].n_unique() for name in units))
    counted = units or None
    found = []
    for d in made:
        if not d.slice and d.average is None and d.mdd is not None and d.delta is not None:
            error = Error(d.mdd / quantiles(count, False, asked.level, MDD_POWER), count, bool(units))
            basis = f"pilot: difference {d.delta:+.4f}, error {error.error:.4f}, {count:,.0f} {_counted(counted)}"
            found.append(_planned(d.metric, error, wish, counted, len(trials) / count, basis))
    return found
