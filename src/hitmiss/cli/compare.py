"""`hitmiss compare`: compare two or more runs on the same trials."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Literal, TypeVar

from hitmiss.cli import printing
from hitmiss.cli.options import arg, fields
from hitmiss.cli.shared import FULL, JSON
from hitmiss.core.design import ComparisonRules, Design, Languages
from hitmiss.core.read_spec import ReadSpec
from hitmiss.core.spec import CERTAINTY, MEASURING, READING, WRITING, opt

if TYPE_CHECKING:
    from hitmiss.core.trials import Trials
    from hitmiss.engine.comparison import Comparison
    from hitmiss.engine.ranking import Ranking

T = TypeVar("T")
RUNS = (
    "Runs: score files, `file[column=value]` for one of several runs in a file, `folder:run_tag` for toxicity. "
    "One file that holds several runs compares those."
)
EACH = "once for all runs, or once per run in their order"


@dataclass(frozen=True)
class Each:
    """Options that are given once for all runs, or once per run."""

    key: list[str]
    score_column: list[str]
    higher: list[str]
    threshold: list[float]


def compare(
    runs: Annotated[list[str], arg(RUNS, "A B…")],
    key: Annotated[
        list[str] | None, opt(f"Key or protocol file with the labels; {EACH}.", READING, common=True)
    ] = None,
    test: Annotated[
        Literal["auto", "mcnemar", "delong", "bootstrap", "permutation"],
        opt("Test of differences.", CERTAINTY, common=True),
    ] = "auto",
    correction: Annotated[
        Literal["auto", "holm", "bh", "none", "max-t"],
        opt("Correction over slices, or over pairs of many runs.", CERTAINTY),
    ] = "auto",
    threshold: Annotated[list[float] | None, opt(f"Decide positive if score >= this; {EACH}.", MEASURING)] = None,
    score_column: Annotated[list[str] | None, opt(f"The score column; {EACH}, or of one file.", READING)] = None,
    higher: Annotated[list[str] | None, opt(f"The class that a higher score means; {EACH}.", READING)] = None,
    *,
    asked: Annotated[Design, fields(without=("matrix", "interval", "stratify", "threshold"), bootstrap=1000)],
    reading: ReadSpec,
    languages: Annotated[
        list[str] | None, opt("Languages of toxicity runs; may be repeated.", MEASURING, takes_words=True)
    ] = None,
    force: Annotated[
        bool, opt("Compare runs that are not comparable, with a warning.", CERTAINTY, common=True)
    ] = False,
    output: Annotated[
        str | None, opt("Write the comparison (JSON) here too.", WRITING, "--output", "-o", common=True)
    ] = None,
    full: Annotated[bool, FULL] = False,
    json: Annotated[bool, JSON] = False,
) -> None:
    """Compare runs pair by pair: difference, paired interval, test and verdict; per slice with adjusted p values.

    $ hitmiss compare ours.tsv baseline.tsv --key key.tsv -m eer --by codec
    """
    from hitmiss.evaluation.protocol import compare_trials

    each = Each(key or [], score_column or [], higher or [], threshold or [])
    opened = _open(runs, asked, each, languages or [], reading)
    contest = ComparisonRules(test=test, correction=correction, allow_missing=reading.allow_missing, force=force)
    named = Languages(names=tuple(languages)) if languages else None
    made = compare_trials(opened, replace(asked, contest=contest, languages=named))
    if (output or json) and made.design is not None:
        from hitmiss.engine.compare import with_contents

        made = replace(made, design=with_contents(made.design, opened))
    _emit(made, opened, output, json, full)
    printing.refuse_unmet(made.verdict)


def _open(
    texts: list[str],
    asked: Design,
    each: Each,
    languages: list[str],
    reading: ReadSpec,
) -> dict[str, Trials]:
    from hitmiss.claims.open import name_runs, open_run, runs_inside
    from hitmiss.core.errors import UsageError
    from hitmiss.evaluation.protocol import decided

    columns = each.score_column
    words = texts * len(columns) if len(texts) == 1 and len(columns) > 1 else texts
    keys, scored = _spread("--key", each.key, len(words)), _spread("--score-column", columns, len(words))
    highs, limits = _spread("--higher", each.higher, len(words)), _spread("--threshold", each.threshold, len(words))
    names = list(columns) if len(words) > len(texts) else name_runs(words)
    opened: dict[str, Trials] = {}
    for name, word, key, column, high, limit in zip(names, words, keys, scored, highs, limits, strict=True):
        scored_by = {"score": column} if column else {}
        own = reading.changed(higher=high or reading.higher, columns={**reading.columns, **scored_by})
        trials = open_run(word, key, asked.protocol, own, languages=languages)
        opened[name] = decided(trials, asked if limit is None else replace(asked, threshold=limit))
    if len(opened) == 1:
        opened = runs_inside(next(iter(opened.values())))
    if len(opened) < 2:
        raise UsageError.of("one-run/give")
    return opened


def _spread(option: str, values: Sequence[T], n: int) -> list[T | None]:
    """Repeat an option that was given once for all runs; an option given once per run is kept as it is."""
    from hitmiss.core.errors import UsageError

    if not values:
        return [None] * n
    if len(values) not in (1, n):
        raise UsageError.of("option-count", option=option, n=len(values), total=n)
    return list(values) if len(values) == n else [values[0]] * n


def _emit(made: Comparison | Ranking, opened: dict[str, Trials], output: str | None, json: bool, full: bool) -> None:
    from hitmiss.core import artifacts

    if output:
        artifacts.write(output, made.to_json() + "\n")
    if json:
        printing.out_with_verdict(made.to_dict(), made.verdict)
    else:
        _show(made, opened, output, full)


def _show(made: Comparison | Ranking, opened: dict[str, Trials], output: str | None, full: bool) -> None:
    from hitmiss.engine.comparison import Comparison
    from hitmiss.reports import comparison_tables, ranking_tables, terminal

    head = next(iter(opened.values())).header
    if isinstance(made, Comparison):
        row = made.differences[0]
        size = f"{row.n_pairs:,} pairs: {row.n_positive:,} {head.positive}, {row.n_pairs - row.n_positive:,} {head.negative}"
        if head.graded_by:
            size = f"{row.n_pairs:,} pairs of answers, graded by {head.graded_by}"
        if "attack" in head.runs:  # a pair is a record, which may have several labels
            size = f"{row.n_pairs:,} pairs (records) with {row.n_positive:,} {head.positive} labels"
        printing.out(f"A = {made.names[0]}\nB = {made.names[1]}\n{size}")
        tables = comparison_tables.tables(made, head.positive, full=full)
        terminal.write_tables(tables)
        if full:
            printing.out(f"\n{comparison_tables.LEGEND}")
    else:
        printing.out(f"{len(made.names)} runs, every pair compared; runs that share a letter were not shown to differ")
        tables = ranking_tables.ranking_tables(made)
        terminal.write_tables(tables)
    room = None if full else terminal.room_under(tables, 3)
    terminal.write_verdict(made.verdict, made.warnings, brief=printing.is_quiet(), room=room)
    printing.out_signature(made.signature, output)
