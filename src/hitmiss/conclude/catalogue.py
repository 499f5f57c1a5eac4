"""The catalogue of findings: what each code means, and the only place where findings become sentences."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from hitmiss.conclude.wording import PER_CENT, explain, figure, interval, is_share, places
from hitmiss.core.results import (
    ATTACK_SUSPECT,
    COARSE,
    CONSTANT,
    FORCED,
    MIXED,
    REVERSED,
    SAME_DATA,
    SATURATED,
    SIMULATED,
    TIED,
    UNDIRECTED,
    UNUSED,
    Estimate,
)
from hitmiss.core.verdict import (
    FAILED,
    OPEN,
    PASSED,
    Amount,
    Check,
    Finding,
    PValue,
    State,
    Subject,
    Value,
    Verdict,
)
from hitmiss.stats.p_value import p_text

MOST: Final = 3
"""Lines of one kind for which a card has room; the others are counted."""
MOST_NAMED: Final = 2
"""Slices that a headline names for one failure; the others are counted."""


@dataclass(frozen=True)
class Entry:
    """What a code means: its state, its sentence, and its words in a headline.

    `short` speaks of the verdict's own subject, `about` names another run. `text` and both are templates: `{who}`,
    `{where}` and `{title}` come from the subject, the other names from the values.
    """

    state: State
    text: str
    short: str = ""
    about: str = ""


_CHANCE = "{title} {value}; {by} gives {level}."
_PAIR = "{title} {a} and {b}, difference {delta}, p {p}."
_BESIDE = "{title} {own} against {rival}, difference {delta}, adjusted p {p}."
_PEOPLE = "{gains:items} gained, {losses} lost (exact sign test, p {p}); {title} {both} together, {alone} by the system alone."

ENTRIES: Final[Mapping[str, Entry]] = {
    # is it good: against chance or the trivial system
    "better-than-chance": Entry(PASSED, f"Better than {{by}}: {_CHANCE}", "Better than {by}", "{who} is better than {by}"),
    "worse-than-chance": Entry(FAILED, f"Worse than {{by}}: {_CHANCE}", "Worse than {by}", "{who} is worse than {by}"),
    "not-better-than-chance": Entry(
        FAILED,
        f"Not shown to be better than {{by}}: {_CHANCE}",
        "Not shown to be better than {by}",
        "{who} is not shown to be better than {by}",
    ),
    "chance-not-tested": Entry(
        OPEN,
        f"Not tested against {{by}}, because there is no interval: {_CHANCE}",
        "Not tested against {by}, because there is no interval",
        "{who} was not tested against {by}",
    ),
    "no-chance-level": Entry(
        OPEN,
        "No number here has a chance level to compare with; compare with a baseline.",
        "No number here has a chance level to compare with",
    ),
    "unit-overturns": Entry(
        FAILED,
        "Not shown to be better than {by} once whole units ({unit}) are drawn: {title} {value} becomes about {wider}; "
        "{by} gives {level}.",
        "Not shown to be better than {by} once whole units ({unit}) are drawn",
        "{who} is not shown to be better than {by} once whole units ({unit}) are drawn",
    ),
    "missing-overturns": Entry(
        FAILED,
        "Not shown to be better than {by}, because {missing} of {total} trials are missing: {title} {value} without "
        "them, up to {wider} if all of them were wrong; {by} gives {level}.",
        "Not shown to be better than {by}, because trials are missing",
        "{who} is not shown to be better than {by}, because trials are missing",
    ),
    "runs-better": Entry(
        PASSED, "{n} of {total} runs better than chance or the trivial system.", "{n} of {total} runs better than chance"
    ),
    "runs-not-tested": Entry(OPEN, "{n} of {total} runs not tested, because they have no intervals.", "Not tested"),
    "nothing-measured": Entry(OPEN, "Nothing was measured over all trials.", "Nothing was measured over all trials"),
    # is it good: two runs on the same questions
    "better-than-other": Entry(
        PASSED, f"{{who}} does better than {{other}}: {_PAIR}", "{who} does better than {other}"
    ),
    "no-difference": Entry(
        OPEN, f"No difference between {{first}} and {{second}} was shown: {_PAIR}{{least}}",
        "No difference between {first} and {second} was shown",
    ),
    "identical": Entry(OPEN, "{first} and {second} are identical by {title}.", "{first} and {second} are identical by {title}"),
    "difference-not-tested": Entry(
        OPEN, "{first} and {second} were not tested by {title}: {note}.", "{first} and {second} were not tested by {title}"
    ),
    "difference-unit-overturns": Entry(
        OPEN,
        "No difference between {first} and {second} is shown once whole units ({unit}) are drawn: difference in {title} {delta}, "
        "with an interval about {factor} times as wide.",
        "No difference between {first} and {second} is shown once whole units ({unit}) are drawn",
    ),
    "difference-missing-overturns": Entry(
        OPEN,
        "No difference between {first} and {second} is shown, because {missing} pairs were left out: difference in {title} "
        "{delta} without them.",
        "No difference between {first} and {second} is shown, because {missing} pairs were left out",
    ),
    "other-metrics": Entry(OPEN, "Other metrics: {said}."),
    "better-in-slices": Entry(PASSED, "{who} does better in {n} of {total} slices: {slices}.", "{who} does better in {n} of {total} slices"),
    "no-difference-anywhere": Entry(
        OPEN,
        "In none of {total} slices a difference between {first} and {second} was shown.",
        "In none of {total} slices a difference between {first} and {second} was shown",
    ),
    # is it good: many runs
    "best-of-all": Entry(
        PASSED,
        "{who} has the best {title}, {value}, and is shown to be better than each of the other {n} runs.",
        "{who} has the best {title} and is shown to be better than each of the other {n}",
    ),
    "best-shared": Entry(
        PASSED,
        "{who} has the best {title}, {value}; not shown to differ from it: {level}. Better than the other {n}.",
        "{who} has the best {title}; not shown to differ from it: {level}",
    ),
    "best-not-shown": Entry(
        OPEN, "{who} has the best {title}, {value}, but no run was shown to differ from it.",
        "{who} has the best {title}, but no run was shown to differ from it",
    ),
    "ranking-not-tested": Entry(
        OPEN, "{who} has the best {title}, {value}; nothing was tested.", "{who} has the best {title}; nothing was tested"
    ),
    # is it good: people and machine, gates, attacks, manipulations
    "people-gain": Entry(PASSED, f"Better with people: {_PEOPLE}", "Better with people", "{who} is better with people"),
    "people-lose": Entry(FAILED, f"Worse with people: {_PEOPLE}", "Worse with people", "{who} is worse with people"),
    "people-open": Entry(
        OPEN, f"No gain from people was shown: {_PEOPLE}", "No gain from people was shown",
        "no gain from people was shown for {who}",
    ),
    "people-not-tested": Entry(
        OPEN, "What people add was not tested: the file does not hold the pairs of answers.",
        "What people add was not tested",
    ),
    "people-raise": Entry(
        FAILED, f"People raise the {{Title}}: {_PEOPLE}", "people raise the {Title}", "people raise the {Title} of {who}"
    ),
    "rule-kept": Entry(PASSED, "{figure}: {reason}; the rule fails where {rule}."),
    "rule-broken": Entry(FAILED, "{figure}: {reason}; the rule fails where {rule}.", "{figure} breaks {rule}"),
    "gate-kept": Entry(PASSED, "All {n} rules kept.", "All {n} rules kept"),
    "gate-broken": Entry(FAILED, "{n} of {total} rules broken.", "{n} of {total} rules broken"),
    "attack-takes": Entry(
        FAILED, "Attacks take accuracy away: {attack} leaves {value} of the records right; untouched, {clean} are.",
        "Attacks take accuracy away",
    ),
    "attack-takes-nothing": Entry(
        PASSED, "No attack was shown to take accuracy away: {attack} leaves {value} of the records right; untouched, {clean} are.",
        "No attack was shown to take accuracy away",
    ),
    "attack-on-nothing": Entry(
        FAILED, "The model is right about no untouched record: attacks have nothing to take away. Its classes, their order, its "
        "outputs, or the leads and units of the data are not what they were taken for.",
        "The model is right about no untouched record",
    ),
    "attack-not-tested": Entry(
        OPEN, "Not tested: no robust accuracy with an interval beside the clean one.", "Not tested"
    ),
    "keeps-more": Entry(
        PASSED,
        "{who} keeps more under attack than {other}: {n} of {total} attacks and strengths, most under {attack}: {value} against {rival}.",
        "{who} keeps more under attack than {other}",
    ),
    "keeps-alike": Entry(
        OPEN, "Neither {first} nor {second} was shown to keep more: {total} attacks at their strengths, all alike.",
        "Neither {first} nor {second} was shown to keep more",
    ),
    "no-shared-attack": Entry(
        OPEN, "{first} and {second} share no attack at the same strength: nothing was compared.",
        "{first} and {second} share no attack at the same strength",
    ),
    "drift-shown": Entry(
        FAILED, "Errors grow under {n} of {total} conditions: {total} conditions tested, both error rates, corrected together.",
        "Errors grow under {n} of {total} conditions",
    ),
    "drift-not-shown": Entry(
        PASSED, "No condition was shown to raise an error rate: {total} conditions tested, both error rates, corrected together.",
        "No condition was shown to raise an error rate",
    ),
    "drift-not-tested": Entry(OPEN, "Drift not tested: no condition has an interval; add --bootstrap 1000.", "Drift not tested"),
    # where does it fail
    "weak-slice": Entry(
        FAILED, "{where}: {title} {value}, the others together {others} (adjusted p {p}; n = {n}).",
        "weak on {where}", "{who} is weak on {where}",
    ),
    "biased": Entry(
        FAILED, "{where}: {title} {value}, over all texts {others} (adjusted p {p}; n = {n}).",
        "biased on {where} by {title}", "{who} is biased on {where} by {title}",
    ),
    "scores-shift": Entry(
        FAILED,
        "Scores shift between {column}s: {title} over all trials is {value}, within each {column} {least} to {most} "
        "(mean {within}; p {p}). One threshold does not fit all of them.",
        "scores shift between {column}s", "scores of {who} shift between {column}s",
    ),
    "gap-shown": Entry(
        FAILED, "Worse outside the known domain: {Title} {delta} ({domain}; adjusted p {p}).",
        "worse outside the known domain", "{who} is worse outside the known domain",
    ),
    "worse-in-slice": Entry(
        FAILED, f"{{who}} is worse than {{other}} on {{where}}: {_BESIDE}",
        "is worse on {where}", "{who} is worse than {other} on {where}",
    ),
    "worse-by-metric": Entry(
        FAILED, f"{{who}} is worse than {{other}} by {{title}}: {_BESIDE}",
        "is worse by {title}", "{who} is worse than {other} by {title}",
    ),
    "drifts": Entry(
        FAILED, "{where}: {rate} moves by {delta} against untouched trials (adjusted p {p}).", "worse under {where}"
    ),
    "attack-beyond-noise": Entry(
        FAILED, "{attack} changes {value} of the answers; noise of the same norm {noise}."),
    # what was looked at
    "slices-not-measured": Entry(OPEN, "Slices not checked: none were measured; add --by COLUMN."),
    "slices-not-tested": Entry(OPEN, "Slices not tested: {why}.{left}"),
    "slices-tested": Entry(OPEN, "{n} slices of {columns} tested by {title}, corrected together.{left}"),
    "slices-alike": Entry(
        PASSED,
        "No slice was shown to be worse than the others: {n} slices of {columns} tested by {title}, corrected together.{seen}{left}",
    ),
    "slices-alike-open": Entry(
        OPEN,
        "No slice was shown to be worse than the others: {n} slices of {columns} tested by {title}, corrected together.{left}",
    ),
    "slices-alike-failing": Entry(
        OPEN,
        "No slice stands out from the whole, which fails: {n} slices of {columns} tested by {title}, corrected together.{left}",
    ),
    "slices-untestable": Entry(OPEN, "In {n} of {total} slices nothing could be tested."),
    "slices-open": Entry(OPEN, "In {n} of {total} slices no difference was shown."),
    "attack-like-noise": Entry(OPEN, "Not shown to do more than noise of the same norm: {attacks}."),
    "attack-without-control": Entry(OPEN, "Without a control of noise: {attacks}."),
    "attack-nothing-changed": Entry(OPEN, "Not checked: nothing says how many answers each attack changes."),
    "more": Entry(FAILED, "{n} more {what}."),
    # can I trust it: warnings that fail a check, in their own words
    **{code: Entry(FAILED, "{text}") for code in (REVERSED, CONSTANT, COARSE, TIED, SATURATED, SAME_DATA, SIMULATED, FORCED, ATTACK_SUSPECT)},
    UNDIRECTED: Entry(OPEN, "{text}"),
    UNUSED: Entry(FAILED, "{text}"),
    MIXED: Entry(FAILED, "{text}"),
    "unit-not-needed": Entry(PASSED, "Drawing whole units ({unit}) would make intervals at most {factor} times as wide."),
    "direction-shown": Entry(PASSED, "Higher scores go with the positive class."),
    "direction-open": Entry(OPEN, "Not shown that higher scores go with the positive class."),
    "scores-informative": Entry(PASSED, "Scores separate trials: no ties that change a number."),
    "few-trials": Entry(FAILED, "{n} trials of the rarer class: fewer than {least} are too few for a reliable number."),
    "enough-trials": Entry(PASSED, "The rarer class has {n} trials."),
    "few-records": Entry(FAILED, "{n} {what}: fewer than {least} are too few for a reliable number."),
    "enough-records": Entry(PASSED, "{n} {what}."),
    "items-repeat": Entry(FAILED, "Items repeat and were not drawn as wholes: intervals would be too narrow."),
    "units-drawn": Entry(PASSED, "Intervals draw whole units: {units}."),
    "no-intervals": Entry(FAILED, "No number has an interval; add --bootstrap 1000."),
    "independence-assumed": Entry(
        OPEN, "Trials were taken to be independent; name --unit if speakers, sources or items repeat."
    ),
    "pairs-by-unit": Entry(PASSED, "Pairs were drawn by {units}."),
    "pairs-assumed-independent": Entry(
        OPEN, "Pairs were taken to be independent; name --unit if speakers or items repeat."
    ),
    "threshold-stated": Entry(PASSED, "Decided at {threshold}."),
    "calibration-not-measured": Entry(OPEN, "No measure of calibration was asked for."),
    "calibrated-costs": Entry(PASSED, "Decisions by these scores cost no more than a tenth above the best threshold's."),
    "miscalibrated-costs": Entry(
        FAILED, "Decisions by these scores cost {actual}, those at the best threshold {least}; calibrate on a development set.{more}"
    ),
    "confidences-undefined": Entry(OPEN, "The calibration error of confidences is undefined."),
    "confidences-calibrated": Entry(PASSED, "Stated confidences are off by no more than chance explains."),
    "confidences-off": Entry(FAILED, "Stated confidences are off: expected calibration error {said}."),
    "trials-missing": Entry(FAILED, "Trials are missing: {said}."),
    "calls-failed": Entry(FAILED, "{n} calls failed; they count as wrong."),
    "completeness-unknown": Entry(OPEN, "No signature says whether trials are missing."),
    "complete": Entry(PASSED, "No trial is missing and no call failed."),
    "pairs-left-out": Entry(FAILED, "{missing} pairs were left out, because not every run has them."),
    "pairs-complete": Entry(PASSED, "Every question was answered by every run."),
    "origin-unknown": Entry(OPEN, "Nothing says whether the data are real or simulated, or how they were collected."),
    "pinned": Entry(PASSED, "Data and settings are pinned by the signature; `hitmiss verify` recomputes it."),
    "not-pinned": Entry(OPEN, "These results carry no signature with a digest of their data."),
    "asked-once": Entry(OPEN, "No item was found to be asked again: how far verdicts flip is not known."),
    "asked-again": Entry(PASSED, "Items were asked again; another verdict came for {said} of them."),
    "people-agree": Entry(PASSED, "Krippendorff's alpha {alpha} over {n} items, above {least}."),
    "people-disagree": Entry(
        FAILED, "Krippendorff's alpha {alpha} over {n} items: below {least} answers of people do not support a conclusion."
    ),
    "people-agreement-open": Entry(OPEN, "Krippendorff's alpha {alpha} over {n} items; whether it is above {least} was not shown."),
    "people-agreement-undefined": Entry(OPEN, "Krippendorff's alpha has no interval: {note}."),
}  # fmt: skip
"""Every code with its state and its words."""


# --- values as text ---------------------------------------------------------------------------------------------------


def sentence(f: Finding) -> str:
    """Return the sentence of a finding; one that is about one of several runs begins with its name."""
    text = _filled(ENTRIES[f.code].text, f)
    named = f.values.get("who")
    return f"{named}: {text}" if named and "{who}" not in ENTRIES[f.code].text else text


def _filled(template: str, f: Finding, where: str | None = None) -> str:
    title = explain(f.subject.metric).title if f.subject.metric else ""
    about = {
        "who": f.subject.run,
        "where": where if where is not None else f.subject.where,
        "title": title,
        "Title": title.lower(),
    }
    return template.format_map({k: _Text(v) for k, v in {**about, **f.values}.items()})


class _Text:
    """A value inside a template; `{n:items}` adds the noun in its number."""

    def __init__(self, value: Value) -> None:
        self.value = value

    def __format__(self, noun: str) -> str:
        text = said(self.value)
        return f"{text} {noun.removesuffix('s') if self.value == 1 else noun}" if noun else text


def said(value: Value) -> str:
    """Format a value for a sentence.

    >>> said(1234), said(("a", "b")), said(PValue(1e-9, 499)), said(PValue(0.03))
    ('1,234', 'a, b', '< 0.002 (499 draws)', '0.0300')
    """
    if isinstance(value, PValue):
        return p_text(value.p, value.draws)
    if isinstance(value, Amount):
        return _amount(value)
    if isinstance(value, tuple):
        return ", ".join(value)
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.2g}" if isinstance(value, float) else value


def _amount(a: Amount) -> str:
    """Format a number with its interval; differences of shares in percentage points, because per cent is ambiguous."""
    scale = 100.0 if is_share(a.metric) else 1.0
    if a.plain:
        return f"{scale * a.value:.3g}{PER_CENT if scale != 1.0 else ''}"
    own = Estimate(a.metric, a.value, a.low, a.high)
    digits = places([own if a.like is None else Estimate(a.metric, a.value, *a.like)], scale)
    number, ends = figure(a.value, digits, scale), interval(own, digits, scale)
    if not a.signed:
        return f"{number}{PER_CENT if scale != 1.0 else ''} {ends}".strip()
    unit = " percentage points" if scale != 1.0 else ""
    return f"{'+' if a.value > 0 else ''}{number}{unit} {ends}".strip()


# --- headline and sections --------------------------------------------------------------------------------------------


def headline(v: Verdict) -> str:
    """Return one sentence: the claim, where its subject fails, where others fail, and which checks failed."""
    text = _filled(ENTRIES[v.claim.code].short, v.claim)
    own, others = _failures(v)
    if own:
        text = f"{text}, but {', '.join(own)}"
    for other in others:
        text = f"{text}; {other}"
    if v.failed_checks:
        text = f"{text}; failed checks: {', '.join(v.failed_checks)}"
    return f"{text}."


NAMES_ITS_RUN: Final = ("better-than-other", "best-of-all", "best-shared", "best-not-shown", "ranking-not-tested")
"""Claims whose words begin with the run, so that its failures need not repeat the name."""


def _failures(v: Verdict) -> tuple[list[str], list[str]]:
    """Return the failures of the verdict's own run, and those of other runs, in the words of a headline."""
    alone = len({f.subject.run for f in (*v.answers, *v.fails)} - {""}) < 2
    of_two = "first" in v.claim.values and v.claim.code not in NAMES_ITS_RUN
    about_claim = v.claim.code in NAMES_ITS_RUN or (alone and not of_two)
    mine = [f for f in v.fails if about_claim and (alone or f.subject.run == v.subject.run)]
    worse = [f for f in v.answers[1:] if f.state == FAILED and ENTRIES[f.code].about and not alone]
    hopeless = {f.subject.run for f in worse}  # what fails as a whole needs no list of its slices in a headline
    rest = [f for f in v.fails if f not in mine and (f.subject.run not in hopeless or not f.subject.run)]
    if v.claim.state == FAILED and alone:
        mine = []  # the whole fails: its slices stand below
    own, others = _grouped(mine, own=True), _grouped([*worse, *rest], own=False)
    if of_two and not worse and others:
        own, others = others[:1], others[1:]
    left = len(others) - MOST
    return own, [*others[:MOST], *([f"{left} more failures of runs"] if left > 0 else [])]


def _grouped(findings: Sequence[Finding], *, own: bool) -> list[str]:
    """Return the failures of a headline, those of one kind and one run together, those of many runs counted."""
    groups: dict[tuple[str, str, str], list[Finding]] = {}
    for f in findings:
        if not ENTRIES[f.code].short:  # it stands below the headline alone
            continue
        run = "" if own else f.subject.run
        by = f.subject.metric if "{title}" in ENTRIES[f.code].short or "{Title}" in ENTRIES[f.code].short else ""
        groups.setdefault((f.code, run, by), []).append(f)
    made: dict[tuple[str, str], list[str]] = {}
    for (code, run, by), group in groups.items():
        first = group[0]
        template = (ENTRIES[first.code].short if own else ENTRIES[first.code].about) or ENTRIES[first.code].short
        where = _places([f.subject for f in group])
        if own or not run:
            made.setdefault((_filled(template, first, where), ""), []).append("")
        else:
            made.setdefault((code + by, where), []).append(_filled(template, first, where))
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
        ("Is it good?", tuple(answers)),
        ("Where does it fail?", (*fails, *v.looked)),
        ("Can I trust it?", tuple(v.checks)),
    )
    return tuple((title, lines) for title, lines in found if lines)
