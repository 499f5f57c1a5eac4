"""`hitmiss score`: compute figures from score files, in memory, streamed, on a cluster or from counts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Literal

from hitmiss.cli import common
from hitmiss.cli.options import arg
from hitmiss.cli.shared import CALIBRATE_KEY, JSON, KEY, MEMORY, RESULTS
from hitmiss.core.columns import user_name
from hitmiss.core.design import Design
from hitmiss.core.protocol import Protocol
from hitmiss.core.read_spec import ReadSpec
from hitmiss.core.spec import CERTAINTY, MEASURING, READING, WRITING, opt

if TYPE_CHECKING:
    from hitmiss.core.results import Results
    from hitmiss.core.trials import Trials
    from hitmiss.core.verdict import Verdict
    from hitmiss.io.addresses import TableAddress
    from hitmiss.outofcore.executors import Executor
    from hitmiss.reports.pictures import Picture


# ----------------------------------------------------------------------
# `hitmiss score --stream`, `--cluster` and `--counts`: files larger than memory, and counts made by another program.

UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9}


@dataclass(frozen=True)
class How:
    """How files larger than memory are counted: whether they hold counts, where the work runs, with how much memory."""

    key: str | None = None
    counts: bool = False
    cluster: str | None = None
    memory: str = "1GB"
    scratch: str | None = None
    engine: str | None = None


def flag(counts: bool, cluster: str | None) -> str:
    """Return the option that asked for counting."""
    return "--counts" if counts else "--cluster" if cluster else "--stream"


def is_asked(files: list[str]) -> bool:
    """Say whether the input is always counted, never read as trials: a table inside a database engine."""
    return _table(files) is not None


def _table(files: list[str], engine: str | None = None) -> TableAddress | None:
    """Return the engine's table that was given instead of files; Spark also takes Parquet files as a table."""
    from hitmiss.core.errors import UsageError
    from hitmiss.io.addresses import TableAddress, table_of

    found = [address for address in map(table_of, files) if address is not None]
    if engine == "spark" and not found:
        found = [TableAddress("spark", "", file) for file in files]
    if found and len(files) > 1:
        raise UsageError("one table is counted at a time; give it alone", code="several-tables")
    return found[0] if found else None


def _key_of(key: str, engine: str | None) -> TableAddress:
    """Return the table that is the key of a table."""
    from hitmiss.core.errors import UsageError

    found = _table([key], engine)
    if found is None:
        raise UsageError(
            f"the key of a table is a table of the same database, which the engine joins: load {key} there "
            f"(CREATE TABLE key AS SELECT * FROM '{key}'), and give --key duckdb:FILE#key or spark:key",
            code="key-not-a-table",
        )
    return found


def evaluated(files: list[str], reading: ReadSpec, asked: Design, how: How) -> tuple[Results, Trials]:
    """Measure shards or counts; return the figures and the object that takes the place of their trials."""
    from hitmiss.core.errors import UnknownName, UsageError

    if how.engine not in (None, *ENGINES):
        raise UnknownName("engine", how.engine, ENGINES)
    if how.engine == "ray":  # a cluster on the cores of this machine; its tasks count with polars
        how = replace(how, engine=None, cluster=how.cluster or "auto")
    table = _table(files, how.engine)
    if table is not None:
        from hitmiss.outofcore.warehouse import evaluate_table

        key = None if how.key is None else _key_of(how.key, how.engine)
        refuse_together(files[0], {"--counts": how.counts, "--cluster": how.cluster})
        if how.engine is not None and how.engine != table.engine:
            raise UsageError(
                f"{files[0]} is counted by {table.engine}; leave --engine {how.engine} out", code="other-engine"
            )
        counted = evaluate_table(table, key=key, reading=reading, design=asked, memory=size(how.memory))
        return counted.results, counted.trials
    if how.counts:
        refuse_key("a file of counts", how.key)
        refuse_together("--counts", {"--cluster": how.cluster})
        if how.engine is not None:
            raise UsageError("counts are counted already; leave --engine out", code="counted-already")
    from hitmiss.outofcore.stream import evaluate_streamed

    with _executor(how.cluster) as run:
        found = evaluate_streamed(
            files,
            run=run,
            engine=how.engine or "polars",
            memory=size(how.memory),
            scratch=how.scratch,
            key=how.key,
            are_counts=how.counts,
            reading=reading,
            design=asked,
        )
    return found.results, found.trials


@contextmanager
def _executor(cluster: str | None) -> Iterator[Executor]:
    from hitmiss.outofcore.executors import sequential

    if cluster is None:
        yield sequential
        return
    from hitmiss.cluster.ray import joined
    from hitmiss.cluster.tasks import RayTasks

    with joined(cluster) as found:
        common.note(f"cluster: {found}")
        yield RayTasks(found)


def refuse_key(what: str, key: str | None) -> None:
    """Refuse `--key` where labels can no longer be joined, because trials were already counted."""
    from hitmiss.core.errors import UsageError

    if key is not None:
        raise UsageError(
            f"{what} has no ids to join a --key with: its labels are those that it was counted by; leave --key out",
            code="key-of-counts",
        )


def refuse_together(flag: str, others: Mapping[str, object]) -> None:
    """Refuse an option that needs all trials at once."""
    from hitmiss.core.errors import UsageError

    given = [name for name, value in others.items() if value]
    if given:
        raise UsageError(f"{given[0]} needs every trial at once; leave it or {flag} out", code="needs-every-trial")


def size(text: str) -> int:
    """Convert a text such as `2GB` to a number of bytes.

    >>> size("2GB"), size("500 MB"), size("1e9")
    (2000000000, 500000000, 1000000000)
    """
    from hitmiss.core.errors import UsageError

    found = re.fullmatch(r"\s*([0-9.]+(?:e[0-9]+)?)\s*([kmg]?)b?\s*", text.lower())
    try:
        n = int(float(found[1]) * UNITS[found[2]]) if found else 0
    except ValueError:
        n = 0
    if n < 10**7:
        raise UsageError(f"--memory {text!r}: write a size of at least 10MB, as 500MB or 2GB", code="bad-memory")
    return n


# ----------------------------------------------------------------------
# `hitmiss score`: figures with intervals from score files.

FILES = (
    "Score file(s): shards of one run, or one file per run with --seeds. `-` is stdin; globs and .gz are understood."
)

ENGINES = ("polars", "duckdb", "spark", "ray")
ENGINE = "Engine that counts files larger than memory (implies --stream); the figures are the same."
CLUSTER = "Count the files on a Ray cluster: auto (this machine's cores), HOST:PORT or ray://HOST:PORT."


def score(
    scores: Annotated[list[str], arg(FILES)],
    key: Annotated[str | None, KEY] = None,
    *,
    asked: Design,
    seeds: Annotated[bool, opt("Each file is one seed: mean, sd, min, max.", MEASURING)] = False,
    reading: ReadSpec,
    calibrate_on: Annotated[str | None, opt("Development scores to fit a calibration on.", MEASURING)] = None,
    calibrate_key: Annotated[str | None, CALIBRATE_KEY] = None,
    calibration: Annotated[
        Literal["affine", "pav"], opt("How scores are calibrated on the development scores.", MEASURING)
    ] = "affine",
    stream: Annotated[bool, opt("Count the files piece by piece: they need not fit into memory.", READING)] = False,
    counts: Annotated[
        bool, opt("The files hold counts by score, as the SQL of `hitmiss sql` makes them.", READING)
    ] = False,
    memory: Annotated[str, MEMORY] = "1GB",
    scratch: Annotated[str | None, opt("Folder for temporary files of --stream.", READING, metavar="FOLDER")] = None,
    engine: Annotated[Literal["polars", "duckdb", "spark", "ray"] | None, opt(ENGINE, READING)] = None,
    cluster: Annotated[str | None, opt(CLUSTER, READING, metavar="auto|ADDRESS")] = None,
    strict: Annotated[bool, opt("Fail if the scores are reversed or constant.", CERTAINTY)] = False,
    output: Annotated[str | None, RESULTS] = None,
    report: Annotated[
        str | None, opt("Write a report (HTML) here too; more in `hitmiss report`.", WRITING, common=True)
    ] = None,
    json: Annotated[bool, JSON] = False,
) -> None:
    """Compute figures from score files, overall and per domain, with intervals, averages, warnings and a signature.

    $ hitmiss score scores.tsv --key key.tsv -m eer --by codec --bootstrap 1000
    """
    asked = asked.changed(seeds=seeds, calibration=calibration if calibrate_on else None)
    development: Trials | None = None
    if stream or counts or cluster or engine or is_asked(scores):
        refuse_together(flag(counts, cluster), {"--seeds": seeds, "--calibrate-on": calibrate_on})
        how = How(key, counts, cluster, memory, scratch, engine)
        results, trials = evaluated(scores, reading, asked, how)
    else:
        from hitmiss.evaluation.protocol import measure_files, read_side

        is_whole = bool(json or output or report or calibrate_on)
        trials = read_side(common.expanded(scores) if seeds else scores, key, reading, asked, is_whole=is_whole)
        if calibrate_on is not None:
            development = read_side([calibrate_on], calibrate_key, reading, replace(asked, seeds=False, threshold=None))
        results = measure_files(trials, development, asked)
    if output or report:
        from hitmiss.reports.pictures import drawn_of

        drawn = drawn_of(trials, results, development, calibration)
        _keep(results, trials, drawn, output, report, asked, scores[0])
    found = _emit(results, trials, json, asked)
    _refuse_alarms(results, strict)
    common.refuse_unmet(found)


def _keep(
    results: Results,
    trials: Trials,
    drawn: list[Picture],
    output: str | None,
    report: str | None,
    asked: Design,
    source: str,
) -> None:
    """Write the results with their curves, and a report if one was asked for."""
    from pathlib import Path

    from hitmiss.core import artifacts
    from hitmiss.reports.pictures import to_json

    if output:
        artifacts.write(output, to_json(results, drawn) + "\n")
    if report:
        from hitmiss.engine.counted import TalliedTrials
        from hitmiss.reports.evaluations import RunData
        from hitmiss.reports.html import write_report
        from hitmiss.reports.media_finder import finder_beside
        from hitmiss.reports.page import Options

        name = Path(trials.header.sources[0].name).stem if trials.header.sources else "scores"
        finder = None if isinstance(trials, TalliedTrials) else finder_beside(source, trials)
        run = RunData(name, results, tuple(drawn), trials, finder)
        size = write_report([run], report, Options(compare=asked))
        common.note(f"wrote {report}: {size / 1e6:.2f} MB")


def _emit(results: Results, trials: Trials, json: bool, asked: Design) -> Verdict:
    from hitmiss.conclude.verdict import conclude

    found = conclude(results, asked.protocol.primary if asked.protocol else "")
    if json:
        common.out_with_verdict(results.to_dict(), found)
        return found
    from hitmiss.reports import grids, result_tables, terminal

    head = trials.header
    common.out(_title(trials, asked.protocol))
    shown = result_tables.tables(results, head.positive)
    if asked.matrix:
        names = asked.matrix
        metrics = dict.fromkeys(e.metric for e in results if tuple(e.slice) == names)
        shown = [t for t in shown if t.name != ",".join(names)]
        shown += [
            result_tables.matrix(results, names[0], names[1], m, run) for run in grids.runs(results) for m in metrics
        ]
    terminal.write_tables(shown)
    terminal.write_verdict(found, results.warnings, brief=common.is_quiet())
    common.sampled(results)
    common.out(f"\n{results.signature}")
    return found


def _title(trials: Trials, protocol: Protocol | None) -> str:
    head = trials.header
    there = trials.completeness
    n_runs = trials.frame.select(head.runs).n_unique() if head.runs else 1
    named = ", ".join(map(user_name, head.runs))
    is_even = not there.short and head.unnamed is None
    n, positives = (n // n_runs if is_even else n for n in (len(trials), trials.n_positive))
    size = f"{n:,} trials" if is_even or head.unnamed else f"{there.questions:,} items"
    size += f" × {n_runs} runs ({named})" if is_even or not head.unnamed else f" of {n_runs} runs ({named})"
    size = size if n_runs > 1 else f"{n:,} trials"
    counts = f"{positives:,} {head.positive}, {n - positives:,} {head.negative}"
    parts = [
        protocol.title if protocol else "",
        f"{size}: {counts}",
        f"{head.score_kind} scores, higher = {head.negative if head.scale.is_reversed else head.positive}",
        head.settled,
        f"decisions: {head.decided}" if head.decided else "",
    ]
    coverage = [] if there.is_full else [f"covers {there} trials"]
    return "\n".join(filter(None, [*parts, *coverage]))


def _refuse_alarms(results: Results, strict: bool) -> None:
    from hitmiss.core.errors import DataError
    from hitmiss.core.results import CONSTANT, REVERSED, code_of

    bad = [w for w in results.warnings if code_of(w) in (REVERSED, CONSTANT)]
    if strict and bad:
        raise DataError(bad[0], code="alarm")
