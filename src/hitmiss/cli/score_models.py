"""What `calibrate` and `fuse` share: a fit of scores that is judged, stored and applied to other scores."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

from hitmiss.cli import printing
from hitmiss.core.spec import CERTAINTY, MEASURING, READING, WRITING, Spec, opt

if TYPE_CHECKING:
    from hitmiss.core.design import Design
    from hitmiss.core.read_spec import ReadSpec
    from hitmiss.core.results import Results
    from hitmiss.core.trials import Trials
    from hitmiss.derive.score_model import ScoreModel


@dataclass(frozen=True)
class FitSpec(Spec):
    """A fit of scores: for which prior, how it is judged, what is mapped by it, and what is written."""

    prior: Annotated[float, opt("Share of positives for which the fit is best; 0.5 minimises Cllr.", MEASURING)] = 0.5
    costs: Annotated[
        str | None,
        opt(
            "Costs of a miss and of a false alarm, as 1,10; they move the prior.", MEASURING, metavar="MISS,FALSE_ALARM"
        ),
    ] = None
    apply_key: Annotated[str | None, opt("Key of the other scores, to measure them too.", READING)] = None
    model: Annotated[str | None, opt("Use a stored fit instead of fitting.", READING, metavar="FILE")] = None
    folds: Annotated[int, opt("Held-out folds of whole units by which the fit is judged; 0 for none.", CERTAINTY)] = 5
    to: Annotated[str | None, opt("Write the mapped scores here.", WRITING, metavar="FILE", common=True)] = None
    form: Annotated[
        Literal["official", "table"],
        opt("Layout of the written scores: filename and score, or a table of all columns.", WRITING),
    ] = "official"
    save: Annotated[
        str | None, opt("Store the fit (sealed JSON), for --model.", WRITING, metavar="FILE", common=True)
    ] = None


def fit_and_map(
    files: Mapping[str, str],
    key: str | None,
    others: Sequence[str],
    method: str,
    fit: Callable[[Mapping[str, Trials], float], ScoreModel],
    fitting: FitSpec,
    asked: Design,
    reading: ReadSpec,
    json: bool,
) -> None:
    """Fit the scores of files, or take a stored fit; map other scores by it; show the numbers before and after."""
    from hitmiss.core.errors import UsageError
    from hitmiss.derive.score_model import read_model
    from hitmiss.evaluation.protocol import read_side
    from hitmiss.evaluation.score_models import judge_applied, judge_held_out, operating_prior

    development: dict[str, Trials] = {}
    prior = operating_prior(fitting.prior, fitting.costs)
    if fitting.model is not None:
        if fitting.save is not None or others:
            raise UsageError.of("fitted-already")
        fitted, others, other_key = read_model(fitting.model), [*files.values()], key
    else:
        development = {name: read_side([file], key, reading, asked) for name, file in files.items()}
        fitted, other_key = fit(development, prior), fitting.apply_key
        if fitting.save is not None:
            fitted.write(fitting.save)
            printing.note(f"wrote {fitting.save}")
    first = next(iter(development.values()), None)
    if others:
        if len(others) != len(fitted.systems):
            raise UsageError.of("other-systems/fit", n_systems=len(fitted.systems), n_others=len(others))
        read = [_read_scores(file, other_key, reading, asked, fitted.positive) for file in others]
        given = {system.name: trials for system, trials in zip(fitted.systems, read, strict=True)}
    else:
        given = development
    if others or fitting.to:
        mapped = fitted.apply(given, first)
        _write_mapped(mapped, fitting)
    if any(trials.header.is_unlabelled for trials in given.values()) or not (others or fitting.folds):
        show_model(fitted, json)
    elif others:
        show(judge_applied(fitted, given, mapped, asked), fitted, json)
    else:
        held = judge_held_out(given, lambda systems: fit(systems, prior), method, asked, fitting.folds)
        show(held, fitted, json)


def _read_scores(file: str, key: str | None, reading: ReadSpec, asked: Design, positive: str) -> Trials:
    """Read scores; without a key and without labels of their own, for writing only."""
    from hitmiss.core.errors import DataError
    from hitmiss.evaluation.protocol import read_side
    from hitmiss.io.unlabelled import read_unlabelled

    if key is not None:
        return read_side([file], key, reading, asked)
    settled = reading.over(asked.protocol.read) if asked.protocol else reading
    try:
        return read_side([file], None, reading, asked)
    except DataError as error:
        if error.code != "missing-column":
            raise
    return read_unlabelled(file, settled, positive)


def _write_mapped(trials: Trials, fitting: FitSpec) -> None:
    from hitmiss.io.write import write_scores

    if fitting.to is not None:
        write_scores(trials, fitting.to, fitting.form)
        printing.note(f"wrote {fitting.to}: {len(trials):,} log-likelihood ratios")


def show(results: Results, model: ScoreModel, json: bool) -> None:
    """Show the numbers before and after, and what was fitted."""
    if json:
        printing.out_json({"model": model.to_dict(), "results": results.to_dict()})
        return
    from hitmiss.reports import result_tables, terminal

    printing.out(model.choice)
    terminal.write_tables(result_tables.tables(results, model.positive))
    for warning in results.warnings:
        printing.note(str(warning))
    printing.sampled(results)
    printing.out(f"\n{results.signature}")


def show_model(model: ScoreModel, json: bool) -> None:
    """Show what was fitted, where there is nothing to measure."""
    if json:
        printing.out_json({"model": model.to_dict()})
    else:
        printing.out(model.choice)
