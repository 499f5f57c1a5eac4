"""The headline of a verdict, and its questions with their answers, in the words of the catalogue."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from hitmiss.core.finding import FAILED, Finding, Subject
from hitmiss.core.verdict import Check, Verdict
from hitmiss.findings.catalogue import entry_of
from hitmiss.findings.render import TERMINAL, Surface, filled

MOST: Final = 3
"""Lines of one kind for which a card has room; the others are counted."""
MOST_NAMED: Final = 2
"""Slices that a headline names for one failure; the others are counted."""


def headline(v: Verdict, surface: Surface = TERMINAL) -> str:
    """Return one sentence: the claim, where its subject fails, where others fail, and which checks failed."""
    text = filled(entry_of(v.claim.code).short, v.claim, surface)
    own, others = _failures(v, surface)
    if own:
        text = f"{text}, but {', '.join(own)}"
    for other in others:
        text = f"{text}; {other}"
    if v.failed_checks:
        text = f"{text}; failed checks: {surface.escape(', '.join(v.failed_checks))}"
    return f"{text}.{_requirements(v, surface)}"


def _requirements(v: Verdict, surface: Surface) -> str:
    """Return what a headline ends in: PASS, or the first requirement that is broken or not shown, with the others counted."""
    if v.outcome is None:
        return ""
    first = next(f for f in v.requirements if f.values["outcome"] == v.outcome)
    alike = sum(f.values["outcome"] == v.outcome for f in v.requirements) - 1
    more = f" (and {alike} more)" if alike else ""
    return f" {filled(entry_of(first.code).short, first, surface)}{more}."


NAMES_ITS_RUN: Final = ("better-than-other", "best-of-all", "best-shared", "best-not-shown", "ranking-not-tested")
"""Claims whose words begin with the run, so that its failures need not repeat the name."""


def _failures(v: Verdict, surface: Surface) -> tuple[list[str], list[str]]:
    """Return the failures of the verdict's own run, and those of other runs, in the words of a headline."""
    alone = len({f.subject.run for f in (*v.answers, *v.fails)} - {""}) < 2
    of_two = "first" in v.claim.values and v.claim.code not in NAMES_ITS_RUN
    about_claim = v.claim.code in NAMES_ITS_RUN or (alone and not of_two)
    mine = [f for f in v.fails if about_claim and (alone or f.subject.run == v.subject.run)]
    worse = [f for f in v.answers[1:] if f.state == FAILED and entry_of(f.code).about and not alone]
    hopeless = {f.subject.run for f in worse}  # what fails as a whole needs no list of its slices in a headline
    rest = [f for f in v.fails if f not in mine and (f.subject.run not in hopeless or not f.subject.run)]
    if v.claim.state == FAILED and alone:
        mine = []  # the whole fails: its slices stand below
    own, others = _grouped(mine, own=True, surface=surface), _grouped([*worse, *rest], own=False, surface=surface)
    if of_two and not worse and others:
        own, others = others[:1], others[1:]
    left = len(others) - MOST
    return own, [*others[:MOST], *([f"{left} more failures of runs"] if left > 0 else [])]


def _grouped(findings: Sequence[Finding], *, own: bool, surface: Surface) -> list[str]:
    """Return the failures of a headline, those of one kind and one run together, those of many runs counted."""
    groups: dict[tuple[str, str, str], list[Finding]] = {}
    for f in findings:
        if not entry_of(f.code).short:  # it stands below the headline alone
            continue
        run = "" if own else f.subject.run
        by = f.subject.metric if "{title}" in entry_of(f.code).short or "{Title}" in entry_of(f.code).short else ""
        groups.setdefault((f.code, run, by), []).append(f)
    made: dict[tuple[str, str], list[str]] = {}
    for (code, run, by), group in groups.items():
        first = group[0]
        template = (entry_of(first.code).short if own else entry_of(first.code).about) or entry_of(first.code).short
        where = _places([f.subject for f in group])
        if own or not run:
            made.setdefault((filled(template, first, surface, where), ""), []).append("")
        else:
            made.setdefault((code + by, where), []).append(filled(template, first, surface, where))
    lines = []
    for (text, _), said_ in made.items():
        if said_ == [""]:
            lines.append(text)
        elif len(said_) <= MOST_NAMED:
            lines += said_
        else:
            lines.append(f"{said_[0]}, and so are {len(said_) - 1} more runs")
    return lines


def _places(subjects: Iterable[Subject]) -> str:
    """Name the first slices; count the others. Slices of one column share its name."""
    found = list(dict.fromkeys(s.where for s in subjects))
    more = len(found) - MOST_NAMED
    return ", ".join(found[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


NOUNS: Final = {
    "weak-slice": ("slice is worse than the others", "slices are worse than the others"),
    "worse-in-slice": ("slice is worse", "slices are worse"),
    "drifts": ("error rate grows", "error rates grow"),
    "attack-beyond-noise": ("attack does more than noise", "attacks do more than noise"),
}
GOOD: Final = "Is it good?"
"""The first question; the headline stands above it."""


def sections(v: Verdict) -> tuple[tuple[str, tuple[Finding | Check, ...]], ...]:
    """Return the three questions with their answers; of many failures of one kind the first, and how many there are."""
    fails: list[Finding | Check] = []
    for code in dict.fromkeys(f.code for f in v.fails):
        own = [f for f in v.fails if f.code == code]
        fails += own[:MOST]
        if len(own) > MOST:
            one, many = NOUNS.get(code, ("failure of this kind", "failures of this kind"))
            left = len(own) - MOST
            fails.append(Finding("more", values={"n": left, "what": one if left == 1 else many}))
    answers: list[Finding | Check] = [f for f in v.answers if f.state != FAILED]
    bad = [f for f in v.answers if f.state == FAILED]
    answers = [
        *v.answers[:1],
        *(f for f in answers if f not in v.answers[:1]),
        *(f for f in bad[:MOST] if f not in v.answers[:1]),
    ]
    if len(bad) > MOST:
        answers.append(Finding("more", values={"n": len(bad) - MOST, "what": "failures of runs"}))
    found = (
        (GOOD, tuple(answers)),
        ("Does it meet the requirements?", v.requirements),
        ("Where does it fail?", (*fails, *v.looked)),
        ("Can I trust it?", tuple(v.checks)),
    )
    return tuple((title, lines) for title, lines in found if lines)
