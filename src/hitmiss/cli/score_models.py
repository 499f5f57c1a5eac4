"""What `calibrate` and `fuse` share: reading scores with or without a key, writing them, and showing before and after."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hitmiss.cli import printing

if TYPE_CHECKING:
    from hitmiss.core.design import Design
    from hitmiss.core.read_spec import ReadSpec
    from hitmiss.core.results import Results
    from hitmiss.core.trials import Trials
    from hitmiss.derive.score_model import ScoreModel

PRIOR = "Share of positives for which the fit is best; 0.5 minimises Cllr."
COSTS = "Costs of a miss and of a false alarm, as 1,10; they move the prior."
LAYOUT = "Layout of the written scores: filename and score, or a table of all columns."
FOLDS = "Held-out folds of whole units by which the fit is judged; 0 for none."


def read_scores(file: str, key: str | None, reading: ReadSpec, asked: Design, positive: str) -> Trials:
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


def write_mapped(trials: Trials, path: str, layout: str) -> None:
    """Write mapped scores."""
    from hitmiss.io.write import write_scores

    write_scores(trials, path, "official" if layout == "official" else "table")
    printing.note(f"wrote {path}: {len(trials):,} log-likelihood ratios")


def save_model(model: ScoreModel, path: str | None) -> None:
    """Store a model, if asked."""
    if path is not None:
        model.write(path)
        printing.note(f"wrote {path}")


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
