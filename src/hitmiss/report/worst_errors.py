"""Evidence: the trials that were answered wrongly, the most confident first, with what every run said of each of them.

What is shown is bounded by a budget of bytes: first all words (ids, truths, answers, texts, rationales), then as much to
hear and see as fits. Whatever comes from outside is text here; the page escapes it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from typing import Any, Final

import polars as pl

from hitmiss.core.question import shown
from hitmiss.core.trials import Trials
from hitmiss.core.values import ABSTAIN
from hitmiss.report.media import Media, Refusal
from hitmiss.report.shelves import COLUMNS, Remarks, Shelf, Texts, change_of

MOST: Final = 30
"""Errors of each kind and run that are shown."""
BUDGET: Final = 300_000
"""Bytes that all samples of a report may take together."""
LONGEST: Final = 600
"""Characters of a text that are shown; a longer one is cut, and says so."""
TEXTS: Final = ("text", "comment_text", "comment", "sentence", "transcript")
SHOWN_SLICES: Final = 4
MOST_REFUSALS: Final = 5
"""Files that are not shown, named one by one."""
RIGHT, WRONG, SILENT = "right", "wrong", "no answer"


@dataclass(frozen=True)
class Answer:
    """What one run made of an item: right, wrong or no answer, with its score or confidence, and why it says so."""

    run: str
    outcome: str
    score: float | None = None
    confidence: float | None = None
    said: str = ""
    rationale: str = ""


@dataclass(frozen=True)
class Sample:
    """One wrongly answered trial."""

    item: str
    truth: str
    score: float | None
    confidence: float | None
    slices: tuple[tuple[str, str], ...]
    text: str = ""
    media: Media | None = None
    answers: tuple[Answer, ...] = ()
    state: tuple[tuple[str, str], ...] = ()
    """How the answer came about: from a cache, after retries, under which attack or codec."""
    people: str = ""

    @property
    def runs(self) -> tuple[tuple[str, str], ...]:
        """Which run was right, wrong or silent about it."""
        return tuple((a.run, a.outcome) for a in self.answers)

    @property
    def size(self) -> int:
        """Bytes of what is shown in words."""
        answers = [text for a in self.answers for text in (a.run, a.said, a.rationale)]
        pairs = [v for pair in (*self.slices, *self.state) for v in pair]
        parts = (self.item, self.truth, self.text, self.people, *answers, *pairs)
        return sum(len(p.encode("utf-8", "backslashreplace")) for p in parts)


@dataclass(frozen=True)
class Errors:
    """Wrongly answered trials, the most confident first, under a title for each kind."""

    run: str
    rule: str
    titles: tuple[str, str]
    false_alarms: tuple[Sample, ...]
    misses: tuple[Sample, ...]
    left_out: int = 0
    notes: tuple[str, ...] = ()

    @property
    def samples(self) -> tuple[Sample, ...]:
        """All of them."""
        return (*self.false_alarms, *self.misses)

    @property
    def n_bytes(self) -> int:
        """What they take of the budget."""
        return sum(s.size + (s.media.n_bytes if s.media else 0) for s in self.samples)


@dataclass(frozen=True, eq=False)
class Witness:
    """One run to be asked for its errors: its trials, the threshold to judge scores by where no decision was made, where
    its files lie, why its answers were given, and what people said of its items."""

    run: str
    trials: Trials
    threshold: float | None = None
    shelf: Shelf | None = None
    remarks: Remarks | None = None
    people: Mapping[str, str] = field(default_factory=dict)
    texts: Texts | None = None


Row = Mapping[str, Any]
Kinds = tuple[list[tuple[Sample, Row]], ...]


def worst_errors(
    trials: Trials,
    run: str,
    *,
    most: int = MOST,
    texts: bool = True,
    budget: int = BUDGET,
    shelf: Shelf | None = None,
) -> Errors:
    """The worst errors of one run; what does not fit into the budget is counted and left out.

    >>> t = Trials.of([1, 1, 0, 0], [0.9, -0.4, 0.6, 0.1], item=["a", "b", "c", "d"])
    >>> found = worst_errors(t, "x", most=1)
    >>> [s.item for s in found.false_alarms], [s.item for s in found.misses]
    (['c'], ['b'])
    """
    return evidence([Witness(run, trials, shelf=shelf)], most=most, texts=texts, budget=budget)


def evidence(witnesses: Sequence[Witness], *, most: int = MOST, texts: bool = True, budget: int = BUDGET) -> Errors:
    """The worst errors of some runs on the same items, each item once, with what every run said of it.

    Where there are decisions, an error is a wrong one, by confidence, else by score. Without decisions: the negatives with
    the highest and the positives with the lowest scores; whether a run is right about them, its threshold says.

    Parameters
    ----------
    witnesses
        The runs.
    most
        How many of each kind every run gives.
    texts
        Whether texts, rationales, sounds, images and signals may be shown.
    budget
        Bytes that all of it may take.
    """
    head = witnesses[0].trials.header
    titles = f"{head.negative} taken for {head.positive}", f"{head.positive} taken for {head.negative}"
    decided = any("decision" in w.trials.frame.columns for w in witnesses)
    rule = "Wrong decisions, the most confident first"
    if not decided:
        rule = "No decision was made, so these are the most misleading scores"
        judged = any(w.threshold is not None for w in witnesses)
        rule += "; right and wrong are at the threshold of each run's equal error rate" if judged else ""
    ranked = [_ranked(w) for w in witnesses]
    if all(frame is None for frame in ranked):
        return Errors(witnesses[0].run, "There is no score to order them by", titles, (), ())
    kinds: Kinds = ([], [])
    for label in (0, 1):
        own = [_worst(frame, label, most) if frame is not None else [] for frame in ranked]
        chosen = dict.fromkeys(str(row["item"]) for turn in zip_longest(*own) for row in turn if row is not None)
        pairs = sorted(zip(witnesses, own, strict=True), key=lambda pair: pair[0].shelf is not None)
        rows = {
            str(row["item"]): (w, row) for w, found in pairs for row in found
        }  # of a run with files where one has some
        said = _said_of(witnesses, list(chosen), texts) if len(witnesses) > 1 or decided else {}
        for item in chosen:
            witness, row = rows[item]
            kinds[label].append((_sample(witness, row, texts, said.get(item, ())), {**row, ":witness": witness.run}))
    shelves = {w.run: w.shelf for w in witnesses if w.shelf is not None} if texts else {}
    found = within(
        Errors(witnesses[0].run, rule, titles, (), ()), kinds, budget, _Shelves(shelves) if shelves else None
    )
    return replace(found, run="") if len(witnesses) > 1 else found


def _ranked(witness: Witness) -> pl.DataFrame | None:
    """The rows that are errors or may be, with how misleading each is; None where nothing orders them."""
    frame = witness.trials.frame
    if "decision" in frame.columns:
        frame = frame.filter(pl.col("decision").is_in([0, 1]), pl.col("decision") != pl.col("label"))
    order = next((c for c in ("confidence", "score") if c in frame.columns), None)
    if order is None:
        return None
    towards = (
        pl.col(order) if order == "confidence" else pl.when(pl.col("label") == 0).then(order).otherwise(-pl.col(order))
    )
    return frame.with_columns(towards.alias(":misled")).drop_nulls(":misled")


def _worst(frame: pl.DataFrame, label: int, most: int) -> list[dict[str, Any]]:
    own = frame.filter(pl.col("label") == label).sort(":misled", "item", descending=[True, False])
    own = own.unique("item", keep="first", maintain_order=True).head(most)  # of repeated trials the worst
    return own.drop(":misled").to_dicts()


def _said_of(witnesses: Sequence[Witness], items: Sequence[str], texts: bool) -> dict[str, tuple[Answer, ...]]:
    """What every run said of the items; of repeated trials a wrong one where there is one, and in how many it came."""
    found: dict[str, list[Answer]] = {}
    for witness in witnesses:
        own = witness.trials.frame.filter(pl.col("item").is_in(list(items)))
        for rows in own.partition_by("item", maintain_order=True):
            every = [(_answer(witness, row, texts), row) for row in rows.iter_rows(named=True)]
            answer = next((a for a, _ in every if a.outcome == WRONG), every[0][0])
            alike = sum(a.said == answer.said for a, _ in every)
            often = f"{answer.said} in {alike} of {len(every)} trials" if len(every) > 1 else answer.said
            found.setdefault(str(every[0][1]["item"]), []).append(replace(answer, said=often))
    return {item: tuple(answers) for item, answers in found.items()}


def _answer(witness: Witness, row: Row, texts: bool) -> Answer:
    head, decision = witness.trials.header, row.get("decision")
    score, confidence = _numbers(row)
    if "decision" not in row and witness.threshold is not None and score is not None:
        decision = int(score >= witness.threshold)
    outcome = (RIGHT if decision == row["label"] else WRONG) if decision in (0, 1) else SILENT
    said = {1: head.positive, 0: head.negative, ABSTAIN: "uncertain"}.get(decision, "")  # type: ignore[arg-type]
    why = witness.remarks.of(row) if witness.remarks is not None and texts else ""
    return Answer(witness.run, outcome, score, confidence, said, _cut(why))


def _numbers(row: Row) -> tuple[float | None, float | None]:
    found = [row.get(name) for name in ("score", "confidence")]
    score, confidence = (float(v) if isinstance(v, int | float) else None for v in found)
    return score, confidence


def _cut(text: str) -> str:
    return f"{text[:LONGEST]}… ({len(text):,} characters)" if len(text) > LONGEST else text


def _sample(witness: Witness, row: Row, texts: bool, answers: tuple[Answer, ...]) -> Sample:
    head = witness.trials.header
    column = next((c for c in TEXTS if c in row), None)
    text = str(row[column] or "") if column and texts else ""
    if not text and texts and witness.texts is not None:
        text = witness.texts().get(str(row["item"]), "")
    slices = [(shown(c), str(row[c])[:80]) for c in head.slices if c not in (*TEXTS, *COLUMNS, "source")][:SHOWN_SLICES]
    truth = head.positive if row["label"] == 1 else head.negative
    score, confidence = _numbers(row)
    answers = answers or ((_answer(witness, row, texts),) if witness.remarks is not None else ())
    item = str(row["item"])
    people = witness.people.get(item, "") if texts else ""
    state = tuple(pair for pair in _state(row) if pair not in slices)
    return Sample(item[:200], truth, score, confidence, tuple(slices), _cut(text), None, answers, state, people)


def _state(row: Row) -> tuple[tuple[str, str], ...]:
    """How an answer came about, as far as its row says."""
    said = [("cache", str(row["cache"]))] if row.get("cache") not in (None, "", "unknown") else []
    said += [("retries", f"{row['retries']:g}")] if row.get("retries") else []
    said += [("changed by", how[:80])] if (how := change_of(row)) else []
    said += [(name, str(row[name])[:80]) for name in ("attack", "strength") if row.get(name) not in (None, "")]
    return tuple(said)


@dataclass(frozen=True)
class _Shelves:
    """The shelf of the run that a row is of."""

    by_run: Mapping[str, Shelf]

    def find(self, row: Row) -> Media | Refusal | None:
        """See `Shelf`."""
        shelf = self.by_run.get(row[":witness"])
        return shelf.find(row) if shelf is not None else None


def within(bare: Errors, kinds: Kinds, budget: int, shelf: Shelf | None) -> Errors:
    """Samples of both kinds in turn until the budget is spent: first all words, then as much to hear and see as fits."""
    kept: Kinds = ([], [])
    left = budget
    for i, sample, row in _in_turn(kinds):
        if sample.size <= left:
            left -= sample.size
            kept[i].append((sample, row))
    left_out = sum(map(len, kinds)) - sum(map(len, kept))
    shown, notes = _with_media(kept, left, shelf) if shelf is not None else (kept, ())
    alarms, misses = (tuple(sample for sample, _ in own) for own in shown)
    return replace(bare, false_alarms=alarms, misses=misses, left_out=left_out, notes=notes)


def _in_turn(kinds: Kinds) -> Iterable[tuple[int, Sample, Mapping[str, Any]]]:
    """The worst of each kind, then the second of each, and so on."""
    for pair in zip_longest(*kinds):
        yield from ((i, *found) for i, found in enumerate(pair) if found is not None)


def _with_media(kinds: Kinds, left: int, shelf: Shelf) -> tuple[Kinds, tuple[str, ...]]:
    shown: Kinds = ([], [])
    refused: list[Refusal] = []
    beyond = 0
    for i, sample, row in _in_turn(kinds):
        found = shelf.find(row) if left > 0 else None
        fits = isinstance(found, Media) and found.n_bytes <= left
        if isinstance(found, Refusal):
            refused.append(found)
        elif not fits and (found is not None or left <= 0):
            beyond += 1
        if isinstance(found, Media) and fits:
            left -= found.n_bytes
            sample = replace(sample, media=found)
        shown[i].append((sample, row))
    return shown, tuple(_notes(refused, beyond))


def _notes(refused: list[Refusal], beyond: int) -> list[str]:
    """What is not shown, and why."""
    said = [f"{r.name} is not shown: {r.reason}." for r in refused[:MOST_REFUSALS]]
    rest = len(refused) - MOST_REFUSALS
    said += [f"{rest} more files are not shown."] if rest > 0 else []
    return said + ([f"{beyond} files did not fit into the budget of bytes; raise --samples-budget."] if beyond else [])
