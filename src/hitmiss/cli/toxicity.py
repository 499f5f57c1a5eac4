"""`hitmiss toxicity`: score the prediction files of a run, one per language, into the documented metrics file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from hitmiss.cli import printing
from hitmiss.cli.options import arg, fields
from hitmiss.cli.shared import FULL, GROUP, JSON, UNDEFINED
from hitmiss.core.design import Design
from hitmiss.core.read_spec import ReadSpec
from hitmiss.core.spec import MEASURING, READING, WRITING, opt
from hitmiss.metrics.usual import AREA, OBJECTIVE

if TYPE_CHECKING:
    import polars as pl

    from hitmiss.io.config import ToxicityConfig
    from hitmiss.protocols.toxicity import Board, Run

KEY = "File with the labels, by id; columns of the same names as in FILES are types of toxicity, each scored."
FILES = "Instead of --pred_dir: file(s) that name the language in a column or in the file name (CSV, Parquet …); FOLDER:RUN_TAG."


@dataclass(frozen=True)
class Where:
    """Where the predictions are (folder and tag of the run, or the column of the groups), and which languages."""

    pred_dir: str | None
    run_tag: str | None
    group: str | None
    languages: list[str] | None
    skip_missing: bool
    key: str | None = None
    label_cut: float | None = None


def toxicity(
    files: Annotated[list[str] | None, arg(FILES)] = None,
    config: Annotated[str | None, opt("YAML file (optional); options override it.", READING)] = None,
    pred_dir: Annotated[str | None, opt("Folder with {run_tag}_{language}.csv.", READING, common=True)] = None,
    run_tag: Annotated[str | None, opt("Beginning of the names of the files.", READING, common=True)] = None,
    languages: Annotated[
        list[str] | None, opt("Languages, in the order of the table.", MEASURING, takes_words=True, common=True)
    ] = None,
    output: Annotated[
        str | None, opt("The metrics file (CSV) to write.", WRITING, "--output", "-o", common=True)
    ] = None,
    results: Annotated[str | None, opt("Write the results (JSON) with their curves, for reports.", WRITING)] = None,
    dump_errors: Annotated[bool, opt("Write the mistakes of each language.", WRITING, common=True)] = False,
    errors_dir: Annotated[str | None, opt("Folder for them (default: the folder of the predictions).", WRITING)] = None,
    max_errors: Annotated[int | None, opt("At most this many of each kind (FP, FN).", WRITING)] = None,
    texts: Annotated[
        list[str] | None, opt("File(s) with id, text and perhaps language.", READING, takes_words=True)
    ] = None,
    spreadsheet_safe: Annotated[bool, opt("Escape cells that a spreadsheet would run as formulas.", WRITING)] = False,
    group: Annotated[str | None, GROUP] = None,
    key: Annotated[str | None, opt(KEY, READING)] = None,
    threshold: Annotated[
        float | None, opt("Decide at this threshold, not at those in the files.", MEASURING, common=True)
    ] = None,
    threshold_rule: Annotated[
        Literal["same", "first", "per-row"],
        opt("If a file has several thresholds: refuse, take the first, or that of each row.", MEASURING),
    ] = "same",
    missing_language: Annotated[Literal["refuse", "skip"], opt("A language without a file.", READING)] = "refuse",
    scores: Annotated[
        Literal["probability", "any"], opt("What scores may be; with any, a threshold must be given.", READING)
    ] = "probability",
    undefined: Annotated[Literal["zero", "null"], UNDEFINED] = "zero",
    *,
    reading: ReadSpec,
    asked: Annotated[Design, fields("identity", "bootstrap", "unit", "seed", "level", bootstrap=1000)],
    documented: Annotated[
        bool, opt("Print the documented table (8 columns, 4 places) and no more.", WRITING, common=True)
    ] = False,
    full: Annotated[bool, FULL] = False,
    json: Annotated[bool, JSON] = False,
) -> None:
    """Score a toxicity classifier per language: ROC-AUC, F1 and more, with intervals and macro, micro and worst rows.

    Options may be written with dashes or underscores: --pred_dir is --pred-dir.

    $ hitmiss toxicity --pred-dir predictions --run-tag baseline
    """
    from hitmiss.io.predictions import any_scores

    spec = reading.changed(
        threshold_rule=None if threshold_rule == "same" else threshold_rule,
        score_kind="raw" if scores == "any" and not any_scores(reading) else reading.score_kind,
        identities=asked.identity,
        slices=asked.units or reading.slices,
    )
    settings = _config(config)
    _refuse_other_files(files, pred_dir, run_tag)
    where = Where(pred_dir, run_tag, group, languages, missing_language == "skip", key, reading.label_cut)
    run = _load(files, where, settings, spec, threshold, dump_errors)
    _honour(settings, run)
    _refuse_overwriting(run, output, results)
    _evaluate(run, output, results, documented, json, asked, undefined, full)
    if dump_errors:
        folder = errors_dir or pred_dir or settings.evaluation.output_dir or str(Path((files or ["."])[0]).parent)
        _dump(run, folder, max_errors, spreadsheet_safe, texts)


def _refuse_other_files(files: list[str] | None, pred_dir: str | None, run_tag: str | None) -> None:
    from hitmiss.core.errors import UsageError

    if files and (pred_dir or run_tag):
        words = ", ".join(map(repr, files))
        raise UsageError.of("files-and-folder", words=words)


def _refuse_overwriting(run: Run, *outputs: str | None) -> None:
    """Refuse an --output that would overwrite prediction files, so that a typing mistake cannot destroy them."""
    from hitmiss.core.errors import UsageError

    read = {path.resolve() for path in run.files}
    for output in outputs:
        if output and Path(output).resolve() in read:
            raise UsageError.of("overwrites-input", output=output)


def _config(path: str | None) -> ToxicityConfig:
    from hitmiss.io.config import ToxicityConfig, read_config

    return read_config(path) if path else ToxicityConfig()


def _honour(settings: ToxicityConfig, run: Run) -> None:
    """Apply the configuration: refuse settings that scoring cannot follow, and print a note about the others."""
    from hitmiss.core.errors import UnknownName, UsageError
    from hitmiss.core.registry import known_name, resolve
    from hitmiss.evaluation.protocol import find_protocol

    asked, known = settings.evaluation, find_protocol("toxicity").metrics
    for name in asked.metrics or []:
        if known_name(name) not in known:
            raise UnknownName("metric in evaluation.metrics of the configuration", name, known)
    if asked.threshold_metric and "decision" not in resolve(asked.threshold_metric.lower())[1].columns:
        raise UsageError.of("threshold-metric", threshold_metric=asked.threshold_metric)
    is_asked = asked.threshold_metric is not None if asked.optimize_threshold is None else asked.optimize_threshold
    if is_asked and not all(rule.by_file for rule in run.rules.values()):
        best = asked.threshold_metric or OBJECTIVE
        printing.note(
            "! the configuration asks for thresholds that were chosen, and the files bring none: nothing is chosen on the data "
            f"that is scored. Choose on development data: hitmiss threshold DEV_FILES --maximize {best}"
        )


def _load(
    files: list[str] | None,
    where: Where,
    settings: ToxicityConfig,
    spec: ReadSpec,
    threshold: float | None,
    whole: bool,
) -> Run:
    from hitmiss.core.errors import UsageError
    from hitmiss.derive.decisions import Deciding
    from hitmiss.protocols.toxicity import load_any, load_run

    default = settings.evaluation.default_threshold
    deciding = Deciding(threshold) if default is None else Deciding(threshold, default, "config")
    if files:
        if where.skip_missing:
            raise UsageError.of("group-of-files/about")
        return load_any(
            printing.expanded(files),
            where.group,
            languages=where.languages,
            key=where.key,
            label_cut=where.label_cut,
            spec=spec,
            deciding=deciding,
            whole=whole,
        )
    if where.key is not None or where.label_cut is not None:
        raise UsageError.of("key-of-run")
    folder = where.pred_dir or settings.evaluation.output_dir
    if not folder or not where.run_tag:
        raise UsageError.of("no-predictions/say")
    if where.group:
        raise UsageError.of("group-of-files")
    languages = where.languages or settings.data.languages
    return load_run(
        folder,
        where.run_tag,
        languages,
        spec=spec,
        deciding=deciding,
        whole=whole,
        skip_missing=where.skip_missing,
    )


def _evaluate(
    run: Run,
    output: str | None,
    results: str | None,
    documented: bool,
    json: bool,
    asked: Design,
    undefined: str,
    full: bool,
) -> None:
    from hitmiss.protocols.toxicity import evaluate_run

    board = evaluate_run(
        run,
        bootstrap=0 if documented else asked.bootstrap,
        unit=asked.unit,
        seed=asked.seed,
        level=asked.level,
        undefined=undefined,
    )
    if output:
        from hitmiss.core import artifacts
        from hitmiss.reports.toxicity_tables import csv_text

        artifacts.write(output, csv_text(board))
        printing.note(f"wrote {output}")
    if results:
        from hitmiss.reports.pictures import save

        save(board.results, run.trials, results)
        printing.note(f"wrote {results}")
    _print(board, documented, json, results, full)


def _print(board: Board, documented: bool, json: bool, results: str | None, full: bool) -> None:
    from hitmiss.conclude.verdict import conclude
    from hitmiss.core.text import escape_invisible
    from hitmiss.reports import toxicity_tables

    if json:
        document = {**board.results.to_dict(), "table": toxicity_tables.records(board)}
        printing.out_with_verdict(document, conclude(board.results, AREA))
        return
    if documented:
        printing.out(toxicity_tables.documented_text(board).rstrip("\n"))
        for warning in board.results.warnings:
            printing.note(f"! {escape_invisible(warning)}")
        return
    from hitmiss.reports import terminal

    run = board.run
    printing.out(f"{run.tag}: {_sizes(run)}")
    if not run.measured.completeness.is_full:
        printing.out(f"covers {run.measured.completeness} texts of the key")
    tables, remarks = toxicity_tables.tables(board, full), toxicity_tables.remarks(board)
    terminal.write_tables(tables)
    printing.out()
    for line in remarks:
        printing.out(line)
    concluded = conclude(board.results, AREA)
    room = None if full else terminal.room_under(tables, 2 + len(remarks))
    terminal.write_verdict(concluded, board.results.warnings, brief=printing.is_quiet(), room=room)
    if full:
        printing.sampled(board.results)
    printing.out_signature(board.results.signature, results)


def _sizes(run: Run) -> str:
    """Count the texts and the toxic ones; if a text has several labels, also the decisions."""
    from hitmiss.core.stacked import stacked

    n, toxic, groups = len(run.measured), run.measured.n_positive, f"{len(run.groups)} × {run.group}"
    if not run.measured.has_targets:
        return f"{n:,} texts, {toxic:,} toxic, {groups}"
    texts = stacked(run.measured.frame) or run.measured.frame["item"].n_unique()
    return f"{texts:,} texts, {groups}: {n:,} decisions, {toxic:,} toxic; intervals over texts"


def _dump(run: Run, folder: str, most: int | None, safe: bool, texts: list[str] | None) -> None:
    from hitmiss.reports.error_dumps import dump_errors

    written = dump_errors(run, folder, most=most, safe=safe, texts=_texts(texts))
    for path, (false_alarms, misses) in written.items():
        printing.note(f"wrote {path}: {false_alarms:,} FP, {misses:,} FN")


def _texts(paths: list[str] | None) -> pl.DataFrame | None:
    if not paths:
        return None
    from hitmiss.io.texts import read_texts

    return read_texts(printing.expanded(paths))
