"""From results to the items to judge: those of which the system was not sure, or those that were asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import polars as pl

from hitmiss.claims.open import split_choice
from hitmiss.core.classes import same_class
from hitmiss.core.errors import DataError, Fault, UnknownName, UsageError, message_of
from hitmiss.core.finding import Finding
from hitmiss.io.finished import files_of, run_behind
from hitmiss.io.text_rows import read_rows
from hitmiss.io.verdicts import UNCERTAIN
from hitmiss.review.answered import ALL, ERROR, FILES, SAID, UNPARSED, Answered, Wish, ids_of, read_answered
from hitmiss.review.library import ECG, TEXT, Library
from hitmiss.review.store import Entry
from hitmiss.runs.manifest import items_digest
from hitmiss.stats.random import generator

TEXTS: Final = ("text", "comment_text", "comment")
LABELS: Final = ("label", "ground_truth")
LONGEST_TEXT: Final = 200_000


@dataclass(frozen=True, eq=False)
class Chosen:
    """The entries in the order of asking, the settings that identify them, and what cannot be shown."""

    entries: list[Entry]
    pinned: dict[str, object]
    left_out: list[Fault] = field(default_factory=list)


def choose(run: str, wish: Wish, library: Library, dataset: str | None = None) -> Chosen:
    """Choose the items of a run to be judged. Media are looked up in the dataset's rows, then in the run's own."""
    answered = read_answered(run, wish)
    ids = _wanted(answered, wish)
    rows = _media_rows(answered, run, dataset)
    entries, faults = _entries(ids, rows, wish, library)
    if faults and not wish.allow_missing:
        found = Finding("items-not-shown", values={"n": len(faults), "total": len(ids)})
        raise DataError.coded(found, faults[0].kind).with_faults(faults)
    if not entries:
        raise DataError.of("nothing-to-review/shown")
    order = generator(wish.seed, "review").permutation(len(entries)).tolist()
    entries = [entries[i] for i in order]
    pinned = {
        "run": answered.name,
        "sha256": answered.sha256[:16],
        "items": items_digest([e.item for e in entries]),
        "n_items": len(entries),
        "positive": answered.positive,
        "negative": answered.negative,
        "blind": wish.blind,
    }
    return Chosen(entries, pinned, faults)


def _wanted(answered: Answered, wish: Wish) -> list[str]:
    """Return the ids to be judged, each once, in the order of the file."""
    every = answered.frame["item"].unique(maintain_order=True).to_list()
    if wish.items:
        strange = [i for i in wish.items if i not in set(every)]
        if strange:
            faults = [Fault("unknown-item", "the results have no such item", value=i) for i in strange]
            raise DataError.of("unknown-item", n=len(strange), file=answered.name).with_faults(faults)
        ids = list(dict.fromkeys(wish.items))
    elif ALL in wish.verdicts:
        ids = every
    else:
        kinds = [_kind(word, answered) for word in wish.verdicts]
        ids = answered.frame.filter(pl.col("said").is_in(kinds))["item"].unique(maintain_order=True).to_list()
        if not ids:
            raise DataError.of("nothing-to-review/called", answered_name=answered.name, kinds=" or ".join(kinds))
    if wish.sample is not None:
        if not 1 <= wish.sample <= len(ids):
            raise UsageError.of("too-few-items", sample=wish.sample, n_ids=len(ids))
        drawn = generator(wish.seed, "review-sample").choice(len(ids), size=wish.sample, replace=False)
        ids = [ids[i] for i in sorted(drawn.tolist())]
    return ids


def _kind(word: str, answered: Answered) -> str:
    known = (UNCERTAIN, UNPARSED, ERROR, answered.positive, answered.negative)
    found = next((k for k in known if word == k or same_class(word, k)), None)
    if found is None:
        raise UnknownName("verdict to review", word, (*known, ALL))
    return found


def _media_rows(answered: Answered, run: str, dataset: str | None) -> dict[str, list[dict[str, str]]]:
    """Return the rows that may name an item's content: of the dataset, of the results, and of the run's files."""
    found: dict[str, list[dict[str, str]]] = {}
    if dataset is not None:
        texts = read_rows(dataset)
        rows = texts.frame.to_dicts()
        for item, row in zip(ids_of(rows, texts.name), rows, strict=True):
            found.setdefault(item, []).append(row)
    for item, row in zip(answered.frame["item"], answered.rows, strict=True):
        found.setdefault(item, []).append(row)
    behind = run_behind(split_choice(run)[0])
    files = files_of(behind) if behind is not None and dataset is None else {}
    for item in found.keys() & files.keys():
        found[item].append({"file": files[item]})
    return found


def _entries(
    ids: Sequence[str], rows: Mapping[str, list[dict[str, str]]], wish: Wish, library: Library
) -> tuple[list[Entry], list[Fault]]:
    entries, faults = [], []
    for item in ids:
        try:
            kind, source = _source(item, rows[item], wish, library)
            entries.append(Entry(item, kind, source, {} if wish.blind else _told(rows[item])))
        except DataError as error:
            faults.append(Fault("cannot-be-shown", message_of(error), value=item))
    return entries, faults


def _source(item: str, rows: Sequence[Mapping[str, str]], wish: Wish, library: Library) -> tuple[str, str]:
    """Return what an item is and where: a record of the recordings, a file, or a text."""
    if library.recordings is not None:
        library.ecg(item)
        return ECG, item
    for row in rows:
        file = next((row[n] for n in ((wish.media,) if wish.media else FILES) if row.get(n)), None)
        if file is not None and wish.media not in TEXTS:
            source = file + wish.suffix
            kind = library.kind_of(source)
            return kind, library.text(source) if kind == TEXT else source
    text = next((row[n] for row in rows for n in ((wish.media,) if wish.media else TEXTS) if row.get(n)), None)
    if text is None:
        raise DataError.of("no-media")
    if len(text) > LONGEST_TEXT:
        raise DataError.of("text-too-long", n_text=len(text), LONGEST_TEXT=LONGEST_TEXT)
    return TEXT, text


def _told(rows: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """Return the answer of each run and the label, for a review that is not blind."""
    found = {}
    for row in rows:
        run = " · ".join(row[name] for name in ("model", "use_tools", "trial") if row.get(name))
        said = next((row[name] for name in (*SAID, "decision") if row.get(name)), "")
        if said:
            sure = row.get("confidence")
            found[run or "system"] = f"{said}, confidence {sure}" if sure else said
    label = next((row[n] for row in rows for n in LABELS if row.get(n)), None)
    return {**found, **({"label": label} if label else {})}
