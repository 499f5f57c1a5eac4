"""`hitmiss export`: results to LaTeX, Markdown, CSV, XLSX, JSON or a model card."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from hitmiss.cli import printing
from hitmiss.cli.options import arg
from hitmiss.cli.shared import field_option
from hitmiss.core import artifacts
from hitmiss.core.report_spec import ReportSpec
from hitmiss.core.spec import MEASURING, OTHERS, READING, WRITING, opt

if TYPE_CHECKING:
    from hitmiss.reports.evaluations import RunData

ENDINGS = {".tex": "latex", ".md": "markdown", ".csv": "csv", ".xlsx": "xlsx", ".json": "json", ".yaml": "model-card"}


def export(
    results: Annotated[
        list[str] | None, arg("Results (`hitmiss score -o`), folders of them, or a comparison or gate.")
    ] = None,
    to: Annotated[
        Literal["latex", "markdown", "csv", "xlsx", "json", "model-card"] | None,
        opt("Format of the export.", WRITING, common=True),
    ] = None,
    output: Annotated[
        str | None, opt("File to write; its suffix sets --to.", WRITING, "--output", "-o", common=True)
    ] = None,
    metric: Annotated[
        list[str] | None, opt("Only this metric; may be repeated.", MEASURING, "--metric", "-m", common=True)
    ] = None,
    table: Annotated[
        list[str] | None, opt("Only this table: all, codec, `codec,codec_q`, runs, gap; may be repeated.", common=True)
    ] = None,
    percent: Annotated[list[str] | None, opt("A metric to write in per cent; may be repeated.", WRITING)] = None,
    no_intervals: Annotated[bool, opt("Numbers without their intervals.", WRITING)] = False,
    comparison: Annotated[
        str | None, opt("A comparison (`hitmiss compare -o`) that marks significant numbers.", common=True)
    ] = None,
    raw: Annotated[bool, opt("CSV and XLSX: texts unchanged, formulas not escaped.", WRITING)] = False,
    purpose: Annotated[
        str | None,
        opt("For a paper: write tables.tex and figures into -o FOLDER.", OTHERS, "--for", metavar="paper"),
    ] = None,
    name: Annotated[list[str] | None, field_option(ReportSpec, "name")] = None,
    model: Annotated[str, opt("Model card: the model's name.")] = "model",
    dataset: Annotated[str | None, opt("Model card: the dataset's name.", READING)] = None,
    schema: Annotated[bool, opt("Print the JSON Schema of results and stop.", WRITING)] = False,
    json: Annotated[bool, opt("The same as --to json.", WRITING, common=True)] = False,
) -> None:
    """Export results as tables: digits follow the interval's width, significance is marked, formulas are escaped.

    $ hitmiss export results.json --to latex
    """
    from hitmiss.core.errors import UsageError

    if schema:
        from hitmiss.reports.schema import results_schema

        printing.out_json(results_schema())
        return
    if not results:
        raise UsageError.of("no-results/given")
    from hitmiss.reports.contests import contest_tables, contest_verdict, is_contest, read_contest
    from hitmiss.reports.exports import Export, export_tables
    from hitmiss.reports.exports import export as exported
    from hitmiss.reports.sources import open_results

    if purpose is not None:
        _paper(open_results(results, name or []), purpose, tuple(metric or ()), comparison, output)
        return

    wanted = "json" if json else _format(to, output)
    if len(results) == 1 and is_contest(results[0]):
        found = read_contest(results[0])
        signature = "" if isinstance(found, list) else found.signature
        told = contest_verdict(found)
        _write(export_tables(contest_tables(found), wanted, signature, raw=raw, verdict=told), output)
        return
    how = Export(
        wanted,
        tuple(metric or ()),
        tuple(table or ()),
        tuple(percent or ()),
        not no_intervals,
        comparison,
        raw,
        model,
        dataset,
    )
    _write(exported(open_results(results, name or []), how), output)


def _paper(
    sources: list[RunData], purpose: str, metrics: tuple[str, ...], comparison: str | None, folder: str | None
) -> None:
    """Write the tables and figures for a paper to a folder, or only the tables to stdout."""
    from hitmiss.core import artifacts
    from hitmiss.core.errors import UnknownName
    from hitmiss.engine.ranking import Ranking
    from hitmiss.reports.contests import read_contest
    from hitmiss.reports.evaluations import evaluations
    from hitmiss.reports.paper_kit import CITE, figure_floats, paper_tables, short_signatures, write_figures
    from hitmiss.reports.significance import read_marks

    if purpose != "paper":
        raise UnknownName("purpose", purpose, ("paper",))
    made = []
    for evaluation in evaluations(sources):
        marks = read_marks(comparison, evaluation.results.estimates) if comparison else None
        made.append((evaluation, paper_tables(evaluation, metrics, marks)))
    if folder is None:
        printing.out("\n".join(text for _, text in made).rstrip("\n"))
        return
    for i, (evaluation, text) in enumerate(made):
        target = Path(folder) if len(made) == 1 else Path(folder) / f"{i + 1}"
        target.mkdir(parents=True, exist_ok=True)
        artifacts.write(target / "tables.tex", text)
        contest = read_contest(comparison) if comparison else None
        written = write_figures(evaluation, target, ranked=contest if isinstance(contest, Ranking) else None)
        artifacts.write(target / "figures.tex", figure_floats(written))
        printing.note(
            f"wrote {target / 'tables.tex'}, figures.tex and {len(written)} figures: {', '.join(p.name for p in written)}"
        )
        for line in short_signatures(evaluation.results):
            printing.note(f"signature: {line}")
        printing.note(f"cite: {CITE}")


def _format(to: str | None, output: str | None) -> str:
    from hitmiss.core.errors import UsageError

    known = to or ENDINGS.get(Path(output or "").suffix.lower())
    if known is None:
        raise UsageError.of("no-format")
    return known


def _write(made: str | bytes, output: str | None) -> None:
    from hitmiss.core.errors import UsageError

    if isinstance(made, bytes):
        if output is None:
            raise UsageError.of("workbook-unprinted")
        artifacts.write(output, made)
    elif output is not None:
        artifacts.write(output, made)
    elif sys.stdout.isatty():
        printing.out(made.rstrip("\n"))  # a terminal would obey control characters, so they are made visible
        return
    else:
        printing.out_document(made.rstrip("\n"))
        return
    printing.note(f"wrote {output}")
