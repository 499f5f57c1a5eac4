"""Tallies made during scoring: a process that scores also counts its scores, and the tallies merge into figures.

        run/tallies/000000000.tally      one per part of the run (`hitmiss detect --cluster … --tally codec`)

A tally is small, however many trials it counts, and merges with those of other runs and other clusters. When the run
ends the tallies are checked: if a crash has left one out or made one twice, the run's table is counted instead. Then
they are sealed: from then on, an incomplete set of tallies is refused.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import polars as pl

from hitmiss.core import artifacts
from hitmiss.core.errors import DataError, UnknownName, UsageError
from hitmiss.core.question import Design, Protocol, ReadSpec
from hitmiss.core.tally import Keys
from hitmiss.detection.cluster import TALLIES
from hitmiss.detection.loader import Pooling
from hitmiss.detection.loop import Answers, make_table
from hitmiss.detection.outputs import Extraction
from hitmiss.detection.scoring import Record, Settings
from hitmiss.evaluation.protocol import find_protocol, measure_trials
from hitmiss.io.manifest import Manifest
from hitmiss.io.parse import Ledger, expand
from hitmiss.io.runs import TABLE, load_manifest, replace_file, run_facts
from hitmiss.outofcore.cells import HIGHEST, Binned, merge_binned
from hitmiss.outofcore.count import first_pass
from hitmiss.outofcore.plan import Shard, ShardPlan, ShardTally, merge_tallies, refuse_missing, sealed
from hitmiss.outofcore.stream import Streamed, asked_design, assemble, refuse_what_needs_trials

SUFFIX: Final = ".tally"
FAILED: Final = "failed"


@dataclass(frozen=True)
class Tallying:
    """How the scores of a part become a tally; it is sent to the processes that score."""

    plan: ShardPlan
    pooling: Pooling
    protocol: str | None

    @classmethod
    def of(cls, manifest: Manifest, settings: Settings, by: Sequence[str], protocol: str | None = None) -> Tallying:
        """Decide how a run is counted: by these columns, with labels and classes read as a protocol says."""
        if not manifest.has_labels:
            raise UsageError(
                "the manifest has no labels, and a tally counts the trials of each class; leave --tally out",
                code="no-labels",
            )
        if settings.extraction.kind == "auto":
            raise UsageError(
                "a part does not show what the outputs of the whole run are; give --outputs logit or probability",
                code="outputs-unsaid",
            )
        for name in by:
            if name not in manifest.slices:
                raise UnknownName("column for --tally", name, manifest.slices)
        return cls(_plan(protocol, manifest.positive, manifest.negative, tuple(by)), settings.pooling, protocol)

    def __call__(self, rows: pl.DataFrame, records: Sequence[Record], rule: Extraction) -> bytes:
        """Return the tally of scored rows; empty if all of them failed. `rule` has the model's own columns."""
        answers = Answers.of(enumerate(records))
        if not answers.at:
            return b""
        options = self.plan.options
        about = Manifest(rows, str(options.positive), str(options.negative))
        return self.counted(make_table(about, answers, rule, self.pooling), len(answers.failed)).to_bytes()

    def counted(self, table: pl.DataFrame, n_failed: int = 0) -> ShardTally:
        """Return the tally of a table of trials, as if read from a file; failed items are noted as in a run."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "part.parquet"
            table.select("item", "label", "score", *self.plan.keep).write_parquet(path)
            tally = first_pass(Shard(str(path)), self.plan)
        if tally.findings:
            raise Ledger(list(tally.findings)).error()
        options = self.plan.options
        known = {"positive": options.positive, "negative": options.negative, "protocol": self.protocol}
        items = hashlib.sha256("\x1f".join(table["item"]).encode("utf-8", "surrogatepass")).hexdigest()
        noted = {**tally.noted, **({FAILED: n_failed} if n_failed else {})}
        tally = replace(tally, ids=merge_binned([Binned(hashes(table["item"]), is_sorted=False)]), noted=noted)
        facts = {**tally.shards[0].facts, **known}
        # The content names the shard, so that the digest of the data and the seal of the run cover what was counted.
        return replace(tally, shards=(replace(tally.shards[0], name=items[:12], sha256=tally.content, facts=facts),))


def hashes(items: Iterable[str]) -> Keys:
    """Return a hash of each id, equal for every version and machine, so that an item in two tallies is found.

    >>> hashes(["a", "b"]).tolist()[0] == hashes(["a"]).tolist()[0]
    True
    """
    digests = (hashlib.blake2b(item.encode("utf-8", "surrogatepass"), digest_size=8).digest() for item in items)
    return np.frombuffer(b"".join(digests), dtype="<u8").astype(np.uint64)


def settle(folder: Path, tallying: Tallying) -> int:
    """Check the tallies of a finished run, and count its table if they are incomplete; return how many there are."""
    table, n_failed = pl.read_parquet(folder / TABLE), run_facts(load_manifest(folder)).n_failed
    paths = sorted((folder / TALLIES).glob(f"*{SUFFIX}"))
    try:
        tallies = [_tally(path) for path in paths]
        merged = merge_tallies(tallies)
        if merged.n == table.height and merged.noted.get(FAILED, 0) == n_failed and not _repeats(merged):
            return _write(dict(zip(paths, tallies, strict=True)))
    except DataError:
        pass  # damaged, or made with another --tally: count again
    (folder / TALLIES).mkdir(exist_ok=True)
    for path in paths:
        path.unlink()
    return _write({folder / TALLIES / f"all{SUFFIX}": tallying.counted(table, n_failed)})


def _write(tallies: Mapping[Path, ShardTally]) -> int:
    for path, tally in zip(tallies, sealed(list(tallies.values())), strict=True):
        replace_file(path, tally.to_bytes())
    return len(tallies)


def evaluate_tallies(
    files: Any,
    protocol: str | Path | Protocol | None = None,
    *,
    design: Design | None = None,
    **asked: object,
) -> Streamed:
    """Evaluate like `evaluate`, from tallies: those of one run, or of several that are parts of one evaluation."""
    design = design or asked_design(protocol, asked)
    wanted = list(design.metrics) or list(design.protocol.metrics if design.protocol else ())
    tally = merge_tallies(_tally(str(path)) for path in expand(files))
    refuse_missing(tally)
    if _repeats(tally):
        raise DataError(
            f"{_repeats(tally):,} items are in more than one of the tallies; remove the duplicates",
            code="repeated-items",
        )
    facts = tally.shards[0].facts
    plan = _plan(facts.get("protocol"), facts["positive"], facts["negative"], tally.names[1:])
    if plan.fingerprint != tally.plan:
        raise DataError(
            "the tallies were made by another version of hitmiss or of the protocol; count the runs again",
            code="other-version",
        )
    refuse_what_needs_trials(design, wanted, list(design.columns), plan.options)
    trials = assemble(replace(tally, ids=None), plan, "tallies").retitle(reading=plan.options)
    return Streamed(measure_trials(trials, design), trials)


def _tally(path: str | Path) -> ShardTally:
    """Read a tally of a run from its file, and check that its content is what it says it counted."""
    file = Path(path)
    artifacts.note_input(file)
    tally = ShardTally.from_bytes(file.read_bytes(), file.name)
    if len(tally.shards) != 1 or tally.shards[0].sha256 != tally.content or tally.n != tally.shards[0].rows:
        raise DataError(
            f"{file.name} holds other counts than its run made: it was edited or damaged; give the run's own tallies",
            code="edited-artifact",
        )
    return tally


def _plan(protocol: str | None, positive: str, negative: str, by: tuple[str, ...]) -> ShardPlan:
    options = find_protocol(protocol).read if protocol else ReadSpec()
    return ShardPlan(options.changed(positive=positive, negative=negative, score_kind="logit"), by, ids=False)


def _repeats(tally: ShardTally) -> int:
    """Return how many ids occur more than once, by their hashes."""
    return 0 if tally.ids is None else int(np.count_nonzero(tally.ids.between(np.uint64(0), HIGHEST).each > 1))
