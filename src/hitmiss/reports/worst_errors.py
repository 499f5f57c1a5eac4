"""The wrongly answered trials, the most confident first, with the answer of every run for each of them.

A budget of bytes limits what is shown: first all words (ids, truths, answers, texts, rationales), then as many sounds
and pictures as fit. Everything from outside is treated as text; the page escapes it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from typing import Final

import polars as pl

from hitmiss.core.columns import user_name
from hitmiss.core.kinds import ABSTAIN, FAILED
from hitmiss.core.report_spec import ReportSpec
from hitmiss.core.trials import Trials
from hitmiss.reports.embedded_media import Media, Refusal
from hitmiss.reports.item_texts import Rationales, Reason, Texts
from hitmiss.reports.media_finder import COLUMNS, MediaFinder, change_of
from hitmiss.reports.remaking import Row

LONGEST_TEXT: Final = 600
"""Characters of a text that are shown; a longer text is cut and marked."""
LONGEST_TRANSCRIPT: Final = 6000
"""Characters of what was said before an answer."""
TEXTS: Final = ("text", "comment_text", "comment", "sentence", "transcript")
SHOWN_SLICES: Final = 4
MOST_REFUSALS: Final = 5
"""Number of files that are not shown but named one by one."""
RIGHT, WRONG, SILENT = "right", "wrong", "no answer"


@dataclass(frozen=True)
class Answer:
    """The answer of one run for an item: right, wrong or none, with its score or confidence, and the reason."""

    run: str
    outcome: str
    score: float | None = None
    confidence: float | None = None
    said: str = ""
    rationale: str = ""
    transcript: str = ""
    """What was said before the answer: the turns of the model, and the calls of tools."""


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
    """How the answer was made: from a cache, after retries, under which attack or codec."""
    people: str = ""

    @property
    def runs(self) -> tuple[tuple[str, str], ...]:
        """Return which run was right, wrong or without an answer."""
        return tuple((a.run, a.outcome) for a in self.answers)

    @property
    def size(self) -> int:
        """Number of bytes of what is shown in words."""
        answers = [text for a in self.answers for text in (a.run, a.said, a.rationale, a.transcript)]
        pairs = [v for pair in (*self.slices, *self.state) for v in pair]
        parts = (self.item, self.truth, self.text, self.people, *answers, *pairs)
        return sum(len(p.encode("utf-8", "backslashreplace")) for p in parts)


@dataclass(frozen=True)
class WorstErrors:
    """Wrongly answered trials, the most confident first, under a title for each kind."""

    run: str
    rule: str
    titles: tuple[str, str]
    false_alarms: tuple[Sample, ...]
    misses: tuple[Sample, ...]
    left_out: int = 0
    notes: tuple[str, ...] = ()
    unanswered: tuple[Sample, ...] = ()
    """Trials about which a model was asked and gave no answer that counts: the call failed, or it was not understood."""

    @property
    def samples(self) -> tuple[Sample, ...]:
        """All samples."""
        return (*self.false_alarms, *self.misses, *self.unanswered)

    @property
    def n_bytes(self) -> int:
        """Number of bytes that they take of the budget."""
        return sum(s.size + (s.media.n_bytes if s.media else 0) for s in self.samples)


@dataclass(frozen=True, eq=False)
class RunEvidence:
    """One run whose errors are shown: its trials, the threshold for scores without decisions, where its files are, the
    reasons for its answers, and the verdicts of people on its items."""

    run: str
    trials: Trials
    threshold: float | None = None
    finder: MediaFinder | None = None
    rationales: Rationales | None = None
    people: Mapping[str, str] = field(default_factory=dict)
    texts: Texts | None = None


Kinds = tuple[list[tuple[Sample, Row]], ...]


def worst_errors(
    sources: Sequence[RunEvidence],
    *,
    most: int = ReportSpec.samples,
    texts: bool = True,
    budget: int = ReportSpec.budget,
) -> WorstErrors:
    """Return the worst errors of several runs on the same items, each item once, with the answer of every run.

    With decisions, an error is a wrong decision; errors are ordered by confidence, else by score. Without decisions these
    are the negatives with the highest and the positives with the lowest scores among those that the threshold makes wrong.

    Parameters
    ----------
    sources
        The runs.
    most
        How many of each kind every run gives.
    texts
        Whether texts, rationales, sounds, images and signals may be shown.
    budget
        Bytes that all of it may take.
    """
    head = sources[0].trials.header
    titles = f"{head.negative} taken for {head.positive}", f"{head.positive} taken for {head.negative}"
    decided = any("decision" in w.trials.frame.columns for w in sources)
    rule = "Wrong decisions, the most confident first"
    if not decided:
        rule = "No decision was made, so these are the most misleading scores"
        if any(w.threshold is not None for w in sources):
            rule += " of the trials that are wrong at the threshold of each run's equal error rate"
    ranked, silent = [_ranked(w) for w in sources], [_unanswered(w) for w in sources]
    if all(frame is None for frame in ranked) and all(frame is None for frame in silent):
        return WorstErrors(sources[0].run, "There is no score to order them by", titles, (), ())
    kinds: Kinds = ([], [], [])
    found_by_kind = [
        *([_worst(f, label, most) if f is not None else [] for f in ranked] for label in (0, 1)),
        [
            f.unique("item", keep="first", maintain_order=True).head(most).to_dicts() if f is not None else []
            for f in silent
        ],
    ]
    for kind, own in enumerate(found_by_kind):
        chosen = dict.fromkeys(str(row["item"]) for turn in zip_longest(*own) for row in turn if row is not None)
        pairs = sorted(zip(sources, own, strict=True), key=lambda pair: pair[0].finder is not None)
        rows = {str(row["item"]): (w, row) for w, found in pairs for row in found}  # prefer a run that has files
        said = _said_of(sources, list(chosen), texts) if len(sources) > 1 or decided else {}
        for item in chosen:
            source, row = rows[item]
            kinds[kind].append((_sample(source, row, texts, said.get(item, ())), {**row, ":run": source.run}))
    finders = {w.run: w.finder for w in sources if w.finder is not None} if texts else {}
    found = within(
        WorstErrors(sources[0].run, rule, titles, (), ()), kinds, budget, _FinderByRun(finders) if finders else None
    )
    if not any(kinds[:2]):
        found = replace(found, rule="No trial is answered wrongly")
    return replace(found, run="") if len(sources) > 1 else found


def _ranked(source: RunEvidence) -> pl.DataFrame | None:
    """Return the rows that are or may be errors, with how misleading each is; None if nothing orders them."""
    frame = source.trials.frame
    if "decision" in frame.columns:
        frame = frame.filter(pl.col("decision").is_in([0, 1]), pl.col("decision") != pl.col("label"))
    elif "score" in frame.columns and source.threshold is not None:
        frame = frame.filter((pl.col("score") >= source.threshold) != (pl.col("label") == 1))
    order = next((c for c in ("confidence", "score") if c in frame.columns), None)
    if order is None:
        return None
    towards = (
        pl.col(order) if order == "confidence" else pl.when(pl.col("label") == 0).then(order).otherwise(-pl.col(order))
    )
    return frame.with_columns(towards.alias(":misled")).drop_nulls(":misled")


def _unanswered(source: RunEvidence) -> pl.DataFrame | None:
    """Return the rows in which a model gave no answer that counts; None if it does not say why it answers as it does."""
    frame = source.trials.frame
    if source.rationales is None or "decision" not in frame.columns:
        return None
    is_silent = pl.col("decision").is_null()
    return frame.filter(is_silent | (pl.col("unparsed") == 1) if "unparsed" in frame.columns else is_silent)


def _worst(frame: pl.DataFrame, label: int, most: int) -> list[dict[str, object]]:
    own = frame.filter(pl.col("label") == label).sort(":misled", "item", descending=[True, False])
    own = own.unique("item", keep="first", maintain_order=True).head(most)  # of repeated trials, the worst one
    return own.drop(":misled").to_dicts()


def _said_of(sources: Sequence[RunEvidence], items: Sequence[str], texts: bool) -> dict[str, tuple[Answer, ...]]:
    """Return the answer of every run for the items; of repeated trials a wrong one if any, and how often it came."""
    found: dict[str, list[Answer]] = {}
    for source in sources:
        own = source.trials.frame.filter(pl.col("item").is_in(list(items)))
        for rows in own.partition_by("item", maintain_order=True):
            every = [(_answer(source, row, texts), row) for row in rows.iter_rows(named=True)]
            answer = next((a for a, _ in every if a.outcome == WRONG), every[0][0])
            alike = sum(a.said == answer.said for a, _ in every)
            often = f"{answer.said} in {alike} of {len(every)} trials" if len(every) > 1 else answer.said
            found.setdefault(str(every[0][1]["item"]), []).append(replace(answer, said=often))
    return {item: tuple(answers) for item, answers in found.items()}


def _answer(source: RunEvidence, row: Row, texts: bool) -> Answer:
    head, decision = source.trials.header, row.get("decision")
    score, confidence = _numbers(row)
    if "decision" not in row and source.threshold is not None and score is not None:
        decision = int(score >= source.threshold)
    outcome = (RIGHT if decision == row["label"] else WRONG) if decision in (0, 1) else SILENT
    said = {1: head.positive, 0: head.negative, ABSTAIN: "uncertain"}.get(
        decision if isinstance(decision, int) else FAILED, ""
    )
    why = source.rationales.of(row) if source.rationales is not None and texts else Reason()
    own = None if score is None else head.scale.turned(score)
    return Answer(
        source.run, outcome, own, confidence, said, _cut(why.rationale), _cut(why.transcript, LONGEST_TRANSCRIPT)
    )


def _numbers(row: Row) -> tuple[float | None, float | None]:
    found = [row.get(name) for name in ("score", "confidence")]
    score, confidence = (float(v) if isinstance(v, int | float) else None for v in found)
    return score, confidence


def _cut(text: str, most: int = LONGEST_TEXT) -> str:
    return f"{text[:most]}… ({len(text):,} characters)" if len(text) > most else text


def _sample(source: RunEvidence, row: Row, texts: bool, answers: tuple[Answer, ...]) -> Sample:
    head = source.trials.header
    column = next((c for c in TEXTS if c in row), None)
    text = str(row[column] or "") if column and texts else ""
    if not text and texts and source.texts is not None:
        text = source.texts().get(str(row["item"]), "")
    slices = [(user_name(c), str(row[c])[:80]) for c in head.slices if c not in (*TEXTS, *COLUMNS, "source")][
        :SHOWN_SLICES
    ]
    truth = head.positive if row["label"] == 1 else head.negative
    score, confidence = _numbers(row)
    answers = answers or ((_answer(source, row, texts),) if source.rationales is not None else ())
    item = str(row["item"])
    people = source.people.get(item, "") if texts else ""
    state = tuple(pair for pair in _state(row) if pair not in slices)
    own = None if score is None else source.trials.header.scale.turned(score)
    return Sample(item[:200], truth, own, confidence, tuple(slices), _cut(text), None, answers, state, people)


def _state(row: Row) -> tuple[tuple[str, str], ...]:
    """Describe how an answer was made, as far as its row records it."""
    said = [("cache", str(row["cache"]))] if row.get("cache") not in (None, "", "unknown") else []
    said += [("retries", f"{row['retries']:g}")] if row.get("retries") else []
    said += [("changed by", how[:80])] if (how := change_of(row)) else []
    said += [(name, str(row[name])[:80]) for name in ("attack", "strength") if row.get(name) not in (None, "")]
    return tuple(said)


@dataclass(frozen=True)
class _FinderByRun:
    """The finder of the run to which a row belongs."""

    by_run: Mapping[str, MediaFinder]

    def find(self, row: Row) -> Media | Refusal | None:
        """See `MediaFinder`."""
        finder = self.by_run.get(str(row[":run"]))
        return finder.find(row) if finder is not None else None


def within(bare: WorstErrors, kinds: Kinds, budget: int, finder: MediaFinder | None) -> WorstErrors:
    """Return samples of both kinds in turn until the budget is spent: first all words, then sounds and pictures."""
    kept: Kinds = tuple([] for _ in kinds)
    left = budget
    for i, sample, row in _in_turn(kinds):
        if sample.size <= left:
            left -= sample.size
            kept[i].append((sample, row))
    left_out = sum(map(len, kinds)) - sum(map(len, kept))
    shown, notes = _with_media(kept, left, finder) if finder is not None else (kept, ())
    alarms, misses, *silent = (tuple(sample for sample, _ in own) for own in shown)
    unanswered = silent[0] if silent else ()
    return replace(bare, false_alarms=alarms, misses=misses, unanswered=unanswered, left_out=left_out, notes=notes)


def _in_turn(kinds: Kinds) -> Iterable[tuple[int, Sample, Mapping[str, object]]]:
    """Return the worst of each kind, then the second of each, and so on."""
    for pair in zip_longest(*kinds):
        yield from ((i, *found) for i, found in enumerate(pair) if found is not None)


def _with_media(kinds: Kinds, left: int, finder: MediaFinder) -> tuple[Kinds, tuple[str, ...]]:
    shown: Kinds = tuple([] for _ in kinds)
    refused: list[Refusal] = []
    beyond = 0
    for i, sample, row in _in_turn(kinds):
        found = finder.find(row) if left > 0 else None
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
    """Say what is not shown, and why."""
    said = [f"{r.name} is not shown: {r.reason}." for r in refused[:MOST_REFUSALS]]
    rest = len(refused) - MOST_REFUSALS
    said += [f"{rest} more files are not shown."] if rest > 0 else []
    return said + ([f"{beyond} files did not fit into the budget of bytes; raise --samples-budget."] if beyond else [])
