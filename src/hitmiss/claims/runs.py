"""The folder of a run as a claim: its table and its counts are made again from its own records.

What a model answered cannot be recomputed without it: the answer says so. A signature of the manifest shows who states it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np
import polars as pl

from hitmiss.core.errors import DataError, GateFailed
from hitmiss.runs.manifest import TABLE, as_manifest, chosen, items_digest, require_complete

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hitmiss.detection.embeddings import Record


def run_differences(folder: str | Path) -> tuple[int, list[str], list[str]]:
    """Check a finished run against its records; return the number of items, the differences, and what is only stated.

    Raises
    ------
    GateFailed
        If a file was changed after the run was finished.
    """
    place = Path(folder)
    try:
        manifest = require_complete(place)
    except DataError as error:
        raise GateFailed.like(error) from None
    known = as_manifest(manifest)
    records = dict(chosen(place, None, known.n_items))
    failed = [at for at, record in records.items() if "error" in record]
    names = [str(records[at].get("item")) for at in sorted(records)]
    texts = []
    if len(records) != known.n_items:
        texts.append(f"items: claimed {known.n_items}, found {len(records)}")
    elif items_digest(names) != known.items_digest:
        texts.append("items: not those that were claimed")
    for name, found in (("n_failed", len(failed)), ("n_scored", len(records) - len(failed))):
        if known.facts.get(name) is not None and known.facts[name] != found:
            texts.append(f"{name}: claimed {known.facts[name]}, found {found}")
    left = ["the answers of the model, which the run states", "settings and times, which the run states"]
    if known.kind == "detect":
        texts += _score_differences(place, known.facts, records)
    else:
        left.append("the table, which is made from the answers")
    return known.n_items, texts, left


def _score_differences(
    folder: Path, facts: Mapping[str, object], records: Mapping[int, Mapping[str, object]]
) -> list[str]:
    """Make the scores of a detector again from its outputs, by the rule that the run names."""
    from hitmiss.detection.outputs import Extraction
    from hitmiss.detection.table import Answers

    rule = facts.get("extraction")
    if not isinstance(rule, Mapping):
        return ["the rule for scores: not stated"]
    answers = Answers.of(cast("Iterator[tuple[int, Record]]", iter(sorted(records.items()))))
    own = Extraction(rule.get("positive_index"), rule.get("kind"), bool(rule.get("reversed")))  # type: ignore[arg-type]
    scores = answers.scores(own, str(facts.get("pooling")))  # type: ignore[arg-type]
    table = pl.read_parquet(folder / TABLE)
    items = [str(records[at].get("item")) for at in answers.at]
    if table["item"].to_list() != items:
        return [f"{TABLE}: other items than the records"]
    same = np.isclose(table["score"].to_numpy(), scores, rtol=1e-9, atol=1e-12, equal_nan=True)
    return [
        f"{items[i]}: claimed score {table['score'][int(i)]}, found {scores[i]}" for i in np.flatnonzero(~same)[:20]
    ]
