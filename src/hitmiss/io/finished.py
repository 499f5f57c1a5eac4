"""A finished run as a source: the table inside it, what the run says about its scores, and where its files were."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl

from hitmiss.core import progress
from hitmiss.core.classes import about_spoofing
from hitmiss.core.errors import UsageError
from hitmiss.core.read_spec import ReadSpec
from hitmiss.io.addresses import is_remote
from hitmiss.io.fetch import expand
from hitmiss.io.join import Coverage


@dataclass(frozen=True)
class FinishedRun:
    """The tables of one or more runs, how to read them, and how many of their items have an answer."""

    tables: tuple[str, ...]
    options: ReadSpec
    coverage: Coverage | None
    notes: tuple[str, ...]
    provenance: Mapping[str, object] = field(default_factory=dict)
    """What the run records about how its answers were made."""

    @property
    def choices(self) -> tuple[str, ...]:
        """What the signature must state: how many items failed."""
        return (f"failed({self.coverage[1] - self.coverage[0]})",) if self.coverage else ()

    def parts(self, kept: pl.DataFrame, is_clean: pl.Expr) -> Iterator[tuple[pl.DataFrame, ReadSpec]]:
        """Yield the rows of the attacks (or the conditions) one by one, each with the rows without a change.

        `kept` has the values of the columns that tell them apart, of those that are wanted. The second part of each pair
        says how to read the rows.
        """
        names, renamed = kept.columns, self.options.rename
        table = pl.scan_parquet(list(self.tables)).with_columns(
            pl.col(name).replace(dict(renamed[name])) for name in names if name in renamed
        )
        there = table.select(names).unique(maintain_order=True).collect()
        asked = there.join(kept, on=names, how="semi", maintain_order="left")
        options = self.options.changed(where={k: v for k, v in self.options.where.items() if k not in names})
        changed = asked.filter(~is_clean)
        for own in progress.each((changed if changed.height else asked).rows(named=True), "conditions"):
            is_own = pl.all_horizontal(pl.col(name) == value for name, value in own.items())
            yield table.filter(is_own | is_clean).collect(), options


def open_finished(source: object, options: ReadSpec) -> FinishedRun | None:
    """Open the tables of run folders; return None for any other source. Unfinished or changed runs are refused.

    The run records the kind of its scores, the names of its classes and its numeric columns; a caller who has
    calibrated the scores may still declare them to be LLRs. Several runs are parts of one evaluation: what they record
    must be the same.
    """
    given = source if isinstance(source, list | tuple) else [source]
    is_local = all(isinstance(one, str | Path) and not is_remote(one) for one in given)
    sources = expand(list(given)) if is_local and given else []
    if not any(Path(str(one)).is_dir() for one in sources):
        return None
    from hitmiss.runs.manifest import MANIFEST

    are_runs = [(Path(str(one)) / MANIFEST).is_file() for one in sources]
    if not any(are_runs):
        return None
    if not all(are_runs):
        other = sources[are_runs.index(False)]
        raise UsageError.of("mixed-sources", other=other)
    first, *others = (_open_run(Path(str(folder)), options) for folder in sources)
    for folder, run in zip(sources[1:], others, strict=True):
        if run.options != first.options:
            raise UsageError.of("runs-differ", folder=folder, sources=sources[0])
    runs = [first, *others]
    told = {name: fact for name, fact in first.provenance.items() if all(r.provenance.get(name) == fact for r in runs)}
    scored, items = (sum(run.coverage[at] for run in runs if run.coverage) for at in (0, 1))
    notes = tuple(dict.fromkeys(note for run in runs for note in run.notes))
    coverage = (scored, items) if scored < items else None
    return FinishedRun(tuple(run.tables[0] for run in runs), first.options, coverage, notes, told)


def _open_run(folder: Path, options: ReadSpec) -> FinishedRun:
    from hitmiss.runs.manifest import TABLE, require_complete, run_facts

    facts = run_facts(require_complete(folder))
    options = options.changed(positive=options.positive or facts.positive, negative=options.negative or facts.negative)
    if facts.rows is not None:  # verdicts, which have their own layout, and the words of the question
        is_usual = facts.positive is None or about_spoofing(facts.positive)
        words = {} if is_usual else {"positive": facts.positive, "negative": facts.negative}
        own = options.changed(layout=options.layout or facts.layout, **words)
        return FinishedRun((str(folder / facts.rows),), own, None, ())
    columns = {"item": "item", "score": "score", **options.columns}
    if "target" in pl.read_parquet_schema(folder / TABLE):
        columns.setdefault("target", "target")
    if facts.has_labels:
        columns.setdefault("label", "label")
    options = options.changed(
        columns=columns,
        numbers=tuple(dict.fromkeys((*options.numbers, *facts.numbers))),
        runs=tuple(dict.fromkeys((*options.runs, *facts.runs))),
        score_kind="llr" if options.score_kind == "llr" else facts.score_kind,
    )
    coverage = (facts.n_scored, facts.n_scored + facts.n_failed)
    return FinishedRun((str(folder / TABLE),), options, coverage, facts.notes, facts.provenance)


def run_behind(source: str | Path) -> Path | None:
    """Return the run of a source: the folder itself, or for `results.jsonl` the `results.run` beside it that wrote it.

    >>> run_behind(".") is run_behind("no-such.jsonl") is None
    True
    """
    from hitmiss.runs.manifest import MANIFEST

    path = Path(source)
    beside = (path.with_suffix(".run"),) if path.is_file() else ()
    return next((p for p in (path, *beside) if (p / MANIFEST).is_file()), None)


def media_folder(run: Path) -> Path | None:
    """Return the folder (or the single signal file) that the run recorded for its inputs; None if not recorded."""
    from hitmiss.runs.manifest import load_manifest, run_facts

    told = run_facts(load_manifest(run)).media
    return None if told is None else run / told


def files_of(run: Path) -> dict[str, str]:
    """Return the file of each item, relative to the folder of the files."""
    from hitmiss.runs.manifest import FILES

    if not (run / FILES).is_file():
        return {}
    table = pl.read_parquet(run / FILES)
    return dict(zip(table["item"].to_list(), table["file"].to_list(), strict=True))
