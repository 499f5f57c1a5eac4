"""What can be concluded: the sentences of verdicts, of what fails, and of checks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from hitmiss.core.finding import INFO, NOTE, WARNING, Entry

_CHANCE = "{title} {value}; {by} gives {level}."
_PAIR = "{title} {a} and {b}, difference {delta}, p {p}."
_BESIDE = "{title} {own} against {rival}, difference {delta}, adjusted p {p}."
_PEOPLE = "{gains:items} gained, {losses:,} lost (exact sign test, p {p}); {title} {both} together, {alone} by the system alone."

ENTRIES: Final[Mapping[str, Entry]] = {
    # is it good: against chance or the trivial system
    "better-than-chance": Entry(INFO, f"Better than {{by}}: {_CHANCE}", "Better than {by}", "{who} is better than {by}"),
    "worse-than-chance": Entry(WARNING, f"Worse than {{by}}: {_CHANCE}", "Worse than {by}", "{who} is worse than {by}"),
    "not-better-than-chance": Entry(
        WARNING,
        f"Not shown to be better than {{by}}: {_CHANCE}",
        "Not shown to be better than {by}",
        "{who} is not shown to be better than {by}",
    ),
    "chance-not-tested": Entry(
        NOTE,
        f"Not tested against {{by}}, because there is no interval: {_CHANCE}",
        "Not tested against {by}, because there is no interval",
        "{who} was not tested against {by}",
    ),
    "nothing-answered": Entry(
        NOTE,
        "No trial was answered, so there is nothing to compare with {by}.",
        "No trial was answered",
        "{who} answered no trial",
    ),
    "no-chance-level": Entry(
        NOTE,
        "No number here has a chance level to compare with; compare with a baseline.",
        "No number here has a chance level to compare with",
    ),
    "unit-overturns": Entry(
        WARNING,
        "Not shown to be better than {by} once whole units ({unit}) are drawn: {title} {value} becomes about {wider}; "
        "{by} gives {level}.",
        "Not shown to be better than {by} once whole units ({unit}) are drawn",
        "{who} is not shown to be better than {by} once whole units ({unit}) are drawn",
    ),
    "missing-overturns": Entry(WARNING, "Not shown to be better than {by} ({level}), as {missing:,} of {total:,} trials are missing: {title} {value}, {wider} if all were wrong.", "Not shown to be better than {by}, because trials are missing", "{who} is not shown to be better than {by}, because trials are missing"),
    "runs-better": Entry(
        INFO, "{n:,} of {total:,} runs better than chance or the trivial system.", "{n:,} of {total:,} runs better than chance"
    ),
    "runs-not-tested": Entry(NOTE, "{n:,} of {total:,} runs not tested, because they have no intervals.", "Not tested"),
    "nothing-measured": Entry(NOTE, "Nothing was measured over all trials.", "Nothing was measured over all trials"),
    # is it good: two runs on the same questions
    "better-than-other": Entry(
        INFO, f"{{who}} does better than {{other}}: {_PAIR}", "{who} does better than {other}"
    ),
    "no-difference": Entry(
        NOTE, f"No difference between {{first}} and {{second}} was shown: {_PAIR}{{least:,}}",
        "No difference between {first} and {second} was shown",
    ),
    "identical": Entry(NOTE, "{first} and {second} are identical by {title}.", "{first} and {second} are identical by {title}"),
    "difference-not-tested": Entry(
        NOTE, "{first} and {second} were not tested by {title}: {note}.", "{first} and {second} were not tested by {title}"
    ),
    "difference-unit-overturns": Entry(NOTE, "No difference between {first} and {second} is shown once whole units ({unit}) are drawn: {delta} in {title}, with an interval {factor} times as wide.", "No difference between {first} and {second} is shown once whole units ({unit}) are drawn"),
    "difference-missing-overturns": Entry(
        NOTE,
        "No difference between {first} and {second} is shown, because {missing:,} pairs were left out: difference in {title} "
        "{delta} without them.",
        "No difference between {first} and {second} is shown, because {missing:,} pairs were left out",
    ),
    "other-metrics": Entry(NOTE, "Other metrics: {parts:;}."),
    "better-in-slices": Entry(INFO, "{who} does better in {n:,} of {total:,} slices: {slices}.", "{who} does better in {n:,} of {total:,} slices"),
    "no-difference-anywhere": Entry(
        NOTE,
        "In none of {total:,} slices a difference between {first} and {second} was shown.",
        "In none of {total:,} slices a difference between {first} and {second} was shown",
    ),
    # is it good: many runs
    "best-of-all": Entry(
        INFO,
        "{who} has the best {title}, {value}, and is shown to be better than each of the other {n:,} runs.",
        "{who} has the best {title} and is shown to be better than each of the other {n:,}",
    ),
    "best-shared": Entry(
        INFO,
        "{who} has the best {title}, {value}; not shown to differ from it: {level}. Better than the other {n:,}.",
        "{who} has the best {title}; not shown to differ from it: {level}",
    ),
    "best-not-shown": Entry(
        NOTE, "{who} has the best {title}, {value}, but no run was shown to differ from it.",
        "{who} has the best {title}, but no run was shown to differ from it",
    ),
    "ranking-not-tested": Entry(
        NOTE, "{who} has the best {title}, {value}; nothing was tested.", "{who} has the best {title}; nothing was tested"
    ),
    # is it good: people and machine, gates, attacks, manipulations
    "people-gain": Entry(INFO, f"Better with people: {_PEOPLE}", "Better with people", "{who} is better with people"),
    "people-lose": Entry(WARNING, f"Worse with people: {_PEOPLE}", "Worse with people", "{who} is worse with people"),
    "people-open": Entry(
        NOTE, f"No gain from people was shown: {_PEOPLE}", "No gain from people was shown",
        "no gain from people was shown for {who}",
    ),
    "people-not-tested": Entry(
        NOTE, "What people add was not tested: the file does not hold the pairs of answers.",
        "What people add was not tested",
    ),
    "people-raise": Entry(
        WARNING, f"People raise the {{Title}}: {_PEOPLE}", "people raise the {Title}", "people raise the {Title} of {who}"
    ),
    "rule-kept": Entry(INFO, "{figure}: {reason}; the rule fails where {rule}."),
    "rule-broken": Entry(WARNING, "{figure}: {reason}; the rule fails where {rule}.", "{figure} breaks {rule}"),
    "gate-kept": Entry(INFO, "All {n:,} rules kept.", "All {n:,} rules kept"),
    "gate-broken": Entry(WARNING, "{n:,} of {total:,} rules broken.", "{n:,} of {total:,} rules broken"),
    "gate-not-shown": Entry(
        NOTE, "{n:,} of {total:,} rules not shown to be kept.", "{n:,} of {total:,} rules not shown to be kept"
    ),
    "attack-takes": Entry(
        WARNING, "Attacks take accuracy away: {attack} leaves {value} of the records right; untouched, {clean} are.",
        "Attacks take accuracy away",
    ),
    "attack-takes-nothing": Entry(
        INFO, "No attack was shown to take accuracy away: {attack} leaves {value} of the records right; untouched, {clean} are.",
        "No attack was shown to take accuracy away",
    ),
    "attack-on-nothing": Entry(WARNING, "The model is right about no untouched record: its classes, their order, its outputs, or the leads and units of the data are not what they seem.", "The model is right about no untouched record"),
    "attack-not-tested": Entry(
        NOTE, "Not tested: no robust accuracy with an interval beside the clean one.", "Not tested"
    ),
    "keeps-more": Entry(
        INFO,
        "{who} keeps more under attack than {other}: {n:,} of {total:,} attacks and strengths, most under {attack}: {value} against {rival}.",
        "{who} keeps more under attack than {other}",
    ),
    "keeps-alike": Entry(
        NOTE, "Neither {first} nor {second} was shown to keep more: {total:,} attacks at their strengths, all alike.",
        "Neither {first} nor {second} was shown to keep more",
    ),
    "no-shared-attack": Entry(
        NOTE, "{first} and {second} share no attack at the same strength: nothing was compared.",
        "{first} and {second} share no attack at the same strength",
    ),
    "drift-shown": Entry(
        WARNING, "Errors grow under {n:,} of {total:,} conditions: {total:,} conditions tested, both error rates, corrected together.",
        "Errors grow under {n:,} of {total:,} conditions",
    ),
    "drift-not-shown": Entry(
        INFO, "No condition was shown to raise an error rate: {total:,} conditions tested, both error rates, corrected together.",
        "No condition was shown to raise an error rate",
    ),
    "drift-not-tested": Entry(NOTE, "Drift not tested: no condition has an interval; add {--bootstrap 1000}.", "Drift not tested"),
    # where does it fail
    "weak-slice": Entry(
        WARNING, "{where}: {title} {value}, the others together {others} (adjusted p {p}; n = {n:,}).",
        "weak on {where}", "{who} is weak on {where}",
    ),
    "biased": Entry(
        WARNING, "{where}: {title} {value}, over all texts {others} (adjusted p {p}; n = {n:,}).",
        "biased on {where} by {title}", "{who} is biased on {where} by {title}",
    ),
    "scores-shift": Entry(WARNING, "Scores shift between {column}s: {title} {value} over all, {least:,} to {most} within each (mean {within}; p {p}). One threshold does not fit all.", "scores shift between {column}s", "scores of {who} shift between {column}s"),
    "gap-shown": Entry(
        WARNING, "Worse outside the known domain: {Title} {delta} ({domain}; adjusted p {p}).",
        "worse outside the known domain", "{who} is worse outside the known domain",
    ),
    "spread-shown": Entry(
        WARNING, "Groups differ: {Title} by {delta} between the best and the worst ({domain}; adjusted p {p}).",
        "differs between groups", "{who} differs between groups",
    ),
    "worse-in-slice": Entry(
        WARNING, f"{{who}} is worse than {{other}} on {{where}}: {_BESIDE}",
        "is worse on {where}", "{who} is worse than {other} on {where}",
    ),
    "worse-by-metric": Entry(
        WARNING, f"{{who}} is worse than {{other}} by {{title}}: {_BESIDE}",
        "is worse by {title}", "{who} is worse than {other} by {title}",
    ),
    "drifts": Entry(
        WARNING, "{where}: {rate} moves by {delta} against untouched trials (adjusted p {p}).", "worse under {where}"
    ),
    "attack-beyond-noise": Entry(
        WARNING, "{attack} changes {value} of the answers; noise of the same norm {noise}."),
    # what was looked at
    "slices-not-measured": Entry(NOTE, "Slices not checked: none were measured; add {--by COLUMN}."),
    "slices-not-tested": Entry(NOTE, "Slices not tested: {why}.{left}"),
    "slices-tested": Entry(NOTE, "{n:,} slices of {columns} tested by {title}, corrected together.{left}"),
    "slices-alike": Entry(
        INFO,
        "No slice was shown to be worse than the others: {n:,} slices of {columns} tested by {title}, corrected together.{seen}{left}",
    ),
    "slices-alike-open": Entry(
        NOTE,
        "No slice was shown to be worse than the others: {n:,} slices of {columns} tested by {title}, corrected together.{left}",
    ),
    "slices-alike-failing": Entry(
        NOTE,
        "No slice stands out from the whole, which fails: {n:,} slices of {columns} tested by {title}, corrected together.{left}",
    ),
    "slices-untestable": Entry(NOTE, "In {n:,} of {total:,} slices nothing could be tested."),
    "slices-open": Entry(NOTE, "In {n:,} of {total:,} slices no difference was shown."),
    "attack-like-noise": Entry(NOTE, "Not shown to do more than noise of the same norm: {attacks}."),
    "attack-without-control": Entry(NOTE, "Without a control of noise: {attacks}."),
    "attack-nothing-changed": Entry(NOTE, "Not checked: nothing says how many answers each attack changes."),
    # parts of the sentences above
    "would-have-shown": Entry(INFO, " A true difference of {delta} would have shown."),
    "metrics-better": Entry(INFO, "{who} better by {metrics}"),
    "metrics-say": Entry(INFO, "{verdict} by {metrics}"),
    "slices-left": Entry(INFO, " Not tested: {parts}."),
    "slices-few": Entry(INFO, "{n:,} with fewer than {least:,} trials of a class"),
    "slices-bare": Entry(INFO, "{n:,} without an interval"),
    "slices-one-sided": Entry(INFO, "{n:,} undefined or the same whatever the detector does"),
    "slices-lonely": Entry(INFO, "{n:,} with fewer than two others to compare with"),
    "too-few-slices": Entry(INFO, "there are fewer than three slices of one kind with an interval"),
    "no-slice-intervals": Entry(INFO, "the slices have no intervals"),
    "no-slice-intervals/undrawn": Entry(INFO, "the slices have no intervals; add {--bootstrap 1000}"),
    "worst-looking": Entry(INFO, " The worst-looking, {where} at {value}, is within what chance gives among so many."),
    "more-runs": Entry(INFO, " So do {n:,} more runs."),
    "confidence-error": Entry(INFO, "{value}, by chance at most {limit}"),
    "left-out-by": Entry(INFO, "{choice}"),
    "trials-there": Entry(INFO, "{n:,} of {total:,} are there"),
    "trials-unanswered": Entry(INFO, "{n:,} of {total:,} have no answer"),
    "some-calls-failed": Entry(INFO, "{n:,} calls failed"),
    "flip-share": Entry(INFO, "{value}"),
    "more": Entry(WARNING, "{n:,} more {what}."),
    # can I trust it: warnings that fail a check, in their own words
    "unit-not-needed": Entry(INFO, "Drawing whole units ({unit}) would make intervals at most {factor} times as wide."),
    "direction-shown": Entry(INFO, "Higher scores go with the positive class."),
    "direction-open": Entry(NOTE, "Not shown that higher scores go with the positive class."),
    "scores-informative": Entry(INFO, "Scores separate trials: no ties that change a number."),
    "few-trials": Entry(WARNING, "{n:,} trials of the rarer class: fewer than {least:,} are too few for a reliable number."),
    "enough-trials": Entry(INFO, "The rarer class has {n:,} trials."),
    "few-records": Entry(WARNING, "{n:,} {what}: fewer than {least:,} are too few for a reliable number."),
    "enough-records": Entry(INFO, "{n:,} {what}."),
    "items-repeat": Entry(WARNING, "Items repeat and were not drawn as wholes: intervals would be too narrow."),
    "units-drawn": Entry(INFO, "Intervals draw whole units: {units}."),
    "no-intervals": Entry(WARNING, "No number has an interval; add {--bootstrap 1000}."),
    "independence-assumed": Entry(
        NOTE, "Trials were taken to be independent; name {--unit?} if speakers, sources or items repeat."
    ),
    "pairs-by-unit": Entry(INFO, "Pairs were drawn by {units}."),
    "pairs-assumed-independent": Entry(
        NOTE, "Pairs were taken to be independent; name {--unit?} if speakers or items repeat."
    ),
    "threshold-stated": Entry(INFO, "Decided at {threshold}."),
    "calibration-not-measured": Entry(NOTE, "No measure of calibration was asked for."),
    "calibration-open": Entry(
        NOTE, "Expected calibration error {values}; how much of it chance gives was not measured (`hitmiss triage` does)."
    ),
    "calibrated-costs": Entry(INFO, "Decisions by these scores cost no more than a tenth above the best threshold's."),
    "miscalibrated-costs": Entry(
        WARNING, "Decisions by these scores cost {actual}, those at the best threshold {least:,}; calibrate on a development set.{more}"
    ),
    "confidences-undefined": Entry(NOTE, "The calibration error of confidences is undefined."),
    "confidences-calibrated": Entry(INFO, "Stated confidences are off by no more than chance explains."),
    "confidences-off": Entry(WARNING, "Stated confidences are off: expected calibration error {parts:;}."),
    "trials-missing": Entry(WARNING, "Trials are missing: {parts}."),
    "calls-failed": Entry(WARNING, "{n:,} calls failed; they count as wrong."),
    "completeness-unknown": Entry(NOTE, "No signature says whether trials are missing."),
    "complete": Entry(INFO, "No trial is missing and no call failed."),
    "pairs-left-out": Entry(WARNING, "{missing:,} pairs were left out, because not every run has them."),
    "pairs-complete": Entry(INFO, "Every question was answered by every run."),
    "origin-unknown": Entry(NOTE, "Nothing says whether the data are real or simulated, or how they were collected."),
    "pinned": Entry(INFO, "Data and settings are pinned by the signature; `hitmiss verify` recomputes it."),
    "not-pinned": Entry(NOTE, "These results carry no signature with a digest of their data."),
    "asked-once": Entry(NOTE, "No item was found to be asked again: how far verdicts flip is not known."),
    "asked-again": Entry(INFO, "Items were asked again; another verdict came for {parts:;} of them."),
    "people-agree": Entry(INFO, "Krippendorff's alpha {alpha} over {n:,} items, above {least:,}."),
    "people-disagree": Entry(
        WARNING, "Krippendorff's alpha {alpha} over {n:,} items: below {least:,} answers of people do not support a conclusion."
    ),
    "people-agreement-open": Entry(NOTE, "Krippendorff's alpha {alpha} over {n:,} items; whether it is above {least:,} was not shown."),
    "people-agreement-undefined": Entry(NOTE, "Krippendorff's alpha has no interval: {note}."),
}  # fmt: skip
"""Every code with its state and its words."""
