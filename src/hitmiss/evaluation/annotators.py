"""Votes of several annotators: how far they agree, labels made of them, and numbers with the range that they leave open.

A text on which annotators differ has no certain label. Three numbers say what that does to a metric: against the majority;
against soft labels, where a text counts as positive by the share of its votes (the expected number of one vote per text,
for a metric that is a mean of texts); and the range in which the number lies if each text gets the label of one of its
annotators at random. `people` is what the same metric gives a random annotator against the majority of the others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from hitmiss.core.design import Design
from hitmiss.core.errors import DataError, UsageError
from hitmiss.core.metric import Metric
from hitmiss.core.metric_spec import Setting
from hitmiss.core.read_spec import ReadSpec
from hitmiss.core.registry import resolve
from hitmiss.core.results import Estimate
from hitmiss.core.trials import Trials
from hitmiss.derive.decisions import at_threshold
from hitmiss.engine.measure import measure_design
from hitmiss.io.text_rows import read_rows
from hitmiss.io.unlabelled import read_unlabelled
from hitmiss.io.words import flag, is_absent
from hitmiss.metrics.usual import AREA
from hitmiss.verdicts.agreement import Agreement, agreement

IDS: Final = ("id", "item", "item_id", "comment_id", "text_id")
PEOPLE: Final = ("annotator", "annotator_id", "rater", "rater_id", "worker", "worker_id", "coder")
ANSWERS: Final = ("vote", "label", "answer", "y_true", "toxic")
DRAWS: Final = 500
"""How often each text gets the label of one of its annotators at random."""
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Votes:
    """The votes of each text: who said yes (True) or no."""

    said: Mapping[str, Mapping[str, bool]]

    @property
    def people(self) -> list[str]:
        """The annotators, in the order in which they appear."""
        return list(dict.fromkeys(who for votes in self.said.values() for who in votes))

    @property
    def counts(self) -> Floats:
        """How many said no and yes, text × answer."""
        return np.array([[sum(not v for v in own.values()), sum(own.values())] for own in self.said.values()], float)

    def key(self) -> pl.DataFrame:
        """Return the label of the majority (blank for a tie), the share of yes and the number of votes of each text."""
        no, yes = self.counts.T
        label = [1 if y > n else 0 if n > y else None for n, y in zip(no, yes, strict=True)]
        frame = pl.DataFrame({"id": list(self.said), "label": pl.Series(label, dtype=pl.Int8)})
        return frame.with_columns(share=pl.Series(yes / (yes + no)), votes=pl.Series(yes + no).cast(pl.Int64))


@dataclass(frozen=True)
class Person:
    """One annotator: how many texts, and how often the majority of the others says the same (of those without a tie)."""

    name: str
    n: int
    share_positive: float
    agrees: float | None


@dataclass(frozen=True)
class NoisyNumber:
    """A metric and what the labels leave open: majority with its interval, soft labels, single votes, people."""

    metric: str
    majority: float | None
    low: float | None
    high: float | None
    soft: float | None
    votes_low: float | None
    votes_high: float | None
    people: float | None


@dataclass(frozen=True)
class Annotation:
    """What votes show."""

    n: int
    n_votes: int
    n_disputed: int
    n_ties: int
    agreement: Agreement
    people: tuple[Person, ...]
    numbers: tuple[NoisyNumber, ...] = ()


def read_votes(
    path: str, columns: Sequence[str] = (), named: Mapping[str, str] | None = None, yes: str | None = None
) -> Votes:
    """Read votes: one column per annotator (`columns`), or one row per text and annotator.

    Parameters
    ----------
    path
        A table.
    columns
        The columns of the annotators; empty: the table has one row per vote.
    named
        The names of the columns `item`, `annotator` and `label`, where they are not usual ones.
    yes
        The word that means yes; every other word then means no. None: yes and no, true and false, 1 and 0.
    """
    rows = read_rows(path).frame
    called = dict(named or {})
    item = _column(rows, called.get("item"), IDS, "item", path)
    said: dict[str, dict[str, bool]] = {}
    if columns:
        picked = [(who, _column(rows, who, (), who, path)) for who in columns]
        cells = [(row, who, row[own]) for row in rows.iter_rows(named=True) for who, own in picked]
    else:
        who, own = (
            _column(rows, called.get(role), usual, role, path)
            for role, usual in (("annotator", PEOPLE), ("label", ANSWERS))
        )
        cells = [(row, row[who], row[own]) for row in rows.iter_rows(named=True)]
    for at, (row, person, cell) in enumerate(cells):
        line = 2 + (at // len(columns) if columns else at)
        if is_absent(row[item]) or is_absent(person):
            raise DataError.of("vote-of-nobody", name=Path(path).name, row=line)
        votes = said.setdefault(str(row[item]), {})
        if is_absent(cell):
            continue
        vote = flag(cell) if yes is None else str(cell).strip() == yes
        if vote is None:
            raise DataError.of("bad-vote", name=Path(path).name, row=line, value=str(cell))
        if votes.setdefault(str(person), vote) != vote or (columns and list(votes).count(str(person)) > 1):
            raise DataError.of("two-votes", name=Path(path).name, row=line, person=str(person), item=str(row[item]))
    kept = {text: votes for text, votes in said.items() if votes}
    if not kept:
        raise DataError.of("no-votes", name=Path(path).name)
    return Votes(kept)


def _column(rows: pl.DataFrame, said: str | None, usual: Sequence[str], role: str, path: str) -> str:
    names = [said] if said else [name for name in rows.columns if name.strip().lower() in usual]
    if len(names) != 1 or names[0] not in rows.columns:
        raise UsageError.of("votes-column", role=role, name=Path(path).name, columns=tuple(rows.columns))
    return names[0]


def study_votes(
    votes: Votes,
    scores: str | None = None,
    spec: ReadSpec | None = None,
    design: Design | None = None,
    metrics: Sequence[str] = (AREA,),
) -> Annotation:
    """Return how far annotators agree and, with the scores of a classifier, its numbers by what they leave open."""
    asked = design or Design()
    counts = votes.counts
    disputed, ties = (counts > 0).all(axis=1), counts[:, 0] == counts[:, 1]
    plan = asked.plan
    alike = agreement(counts, bootstrap=plan.bootstrap or 1000, seed=plan.seed, level=plan.level)
    people = tuple(_person(votes, name) for name in votes.people)
    made = Annotation(len(counts), int(counts.sum()), int(disputed.sum()), int(ties.sum()), alike, people)
    if scores is None:
        return made
    return replace(made, numbers=tuple(_numbers(votes, scores, spec or ReadSpec(), asked, metrics)))


def _person(votes: Votes, name: str) -> Person:
    own = [(said[name], [v for who, v in said.items() if who != name]) for said in votes.said.values() if name in said]
    judged = [vote == (2 * sum(rest) > len(rest)) for vote, rest in own if rest and 2 * sum(rest) != len(rest)]
    return Person(name, len(own), float(np.mean([v for v, _ in own])), float(np.mean(judged)) if judged else None)


def _numbers(votes: Votes, scores: str, spec: ReadSpec, design: Design, metrics: Sequence[str]) -> list[NoisyNumber]:
    """Return every metric of the texts that have both votes and scores."""
    trials = read_unlabelled(scores, spec, spec.positive or "positive")
    lacking = [one for one in (set(trials.items) - set(votes.said), set(votes.said) - set(trials.items)) if one]
    if lacking and not spec.allow_missing:
        raise DataError.of("votes-and-scores", n=sum(map(len, lacking)), first=min(lacking[0]))
    trials = trials.keep(pl.col("item").is_in(list(votes.said)))
    if not len(trials):
        raise DataError.of("no-votes", name=Path(scores).name)
    if design.threshold is not None:
        trials = at_threshold(trials, design.threshold)
    key = votes.key()
    share = trials.frame["item"].replace_strict(key["id"], key["share"], return_dtype=pl.Float64).to_numpy()
    sure = trials.put(label=pl.Series((share > 0.5).astype(np.int8)), _sure=pl.Series(share != 0.5))
    sure = sure.retitle(is_unlabelled=False)
    found = measure_design(sure.keep(pl.col("_sure")), design.changed(metrics=list(metrics), gap="none"))
    drawn = _one_vote_each(share, design.seed)
    return [_noisy(found.one(metric), metric, trials, share, drawn, votes, design.level) for metric in metrics]


def _one_vote_each(share: Floats, seed: int) -> NDArray[np.bool_]:
    """Return labels of texts, draw × text, each that of one of its annotators."""
    return np.asarray(np.random.default_rng([seed, 34]).random((DRAWS, len(share))) < share)


def _noisy(
    found: Estimate, metric: str, trials: Trials, share: Floats, drawn: NDArray[np.bool_], votes: Votes, level: float
) -> NoisyNumber:
    _, entry, settings = resolve(metric)
    needs = [name for name in entry.columns if name != "label"]
    if entry.columns[:1] != ("label",) or not {*needs} <= {*trials.frame.columns}:
        raise UsageError.of("votes-metric", metric=metric)
    held = [trials.frame[name].to_numpy() for name in needs]

    def value(
        label: NDArray[np.generic], columns: Sequence[NDArray[np.generic]], weight: Floats | None = None
    ) -> float:
        return float(entry.function(label.astype(np.int64), *columns, weight=weight, **settings))

    n = len(share)
    soft = value(np.repeat([1, 0], n), [np.tile(own, 2) for own in held], np.concatenate([share, 1.0 - share]))
    numbers = np.array([value(label, held) for label in drawn])
    known = numbers[~np.isnan(numbers)]
    ends = np.quantile(known, [(1.0 - level) / 2.0, (1.0 + level) / 2.0]) if len(known) else (None, None)
    people = _of_people(votes, entry, settings) if needs == ["decision"] else None
    plain = [None if v is None or np.isnan(v) else float(v) for v in (soft, *ends)]
    return NoisyNumber(metric, found.value, found.low, found.high, plain[0], plain[1], plain[2], people)


def _of_people(votes: Votes, entry: Metric, settings: Mapping[str, Setting]) -> float | None:
    """Return the same number of each annotator as a classifier, against the majority of the others: the mean."""
    found = []
    for name in votes.people:
        own = [(said[name], [v for w, v in said.items() if w != name]) for said in votes.said.values() if name in said]
        judged = [(2 * sum(rest) > len(rest), vote) for vote, rest in own if rest and 2 * sum(rest) != len(rest)]
        if judged:
            found.append(float(entry.function(*np.array(judged, dtype=np.int64).T, **settings)))
    known = [v for v in found if not np.isnan(v)]
    return float(np.mean(known)) if known else None
