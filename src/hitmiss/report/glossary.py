"""What each metric means, for people who did not grow up with it: from the docstrings, so that there is one source."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from hitmiss.errors import UsageError
from hitmiss.registry import find_metric
from hitmiss.report import attack_words
from hitmiss.spec import parse

SHARES: Final = frozenset(
    (
        "eer", "accuracy", "balanced_accuracy", "recall", "precision", "specificity", "fpr", "fnr", "tpr_at_fpr",
        "fpr_at_tpr", "accuracy_answered", "accuracy_at_coverage", "coverage", "coverage_fake", "coverage_real",
        "coverage_at_accuracy", "abstain_rate", "error_rate", "unparsed_rate", "fake_catch_rate", "fake_slip_rate",
        "real_pass_rate", "real_false_flag_rate", "recall_fake", "recall_real", "precision_fake", "precision_real",
        "probe_accuracy", "probe_balanced_accuracy", "flip_rate", "hard_flip_rate",
    )
)  # fmt: skip
"""Metrics that are shares of trials: these alone are shown in per cent in a headline."""


@dataclass(frozen=True)
class Entry:
    """A metric explained: its name in tables, its title, one sentence, the rest, which way is better."""

    name: str
    title: str
    gist: str
    text: str = ""
    best: str = ""


def explain(metric: str) -> Entry:
    """The explanation of a metric as tables name it; one that is not known here is its own title.

    >>> explain("eer(ties=grouped)").title, explain("no_such_metric").title
    ('Equal error rate', 'no_such_metric')
    """
    try:
        entry = find_metric(parse(metric).name)
    except UsageError:
        words = attack_words.WORDS.get(metric, attack_words.Words(metric, ""))
        return Entry(metric, words.title, words.gist, words.text)
    first, _, rest = (inspect.getdoc(entry.function) or entry.name).replace("**", "").partition("\n")
    title, colon, gist = first.partition(": ")
    body = "\n".join(" ".join(part.split()) for part in rest.split(">>>")[0].strip().split("\n\n"))
    if not colon:
        name = entry.name.replace("_", " ")
        return Entry(metric, name[:1].upper() + name[1:], first.strip(), body, entry.best)
    return Entry(metric, title.strip(), gist.strip(), body, entry.best)


def is_share(metric: str) -> bool:
    """Whether a metric is a share of trials."""
    try:
        return parse(metric).name in SHARES | attack_words.SHARES
    except UsageError:
        return False


def glossary(metrics: Iterable[str]) -> list[Entry]:
    """The metrics that were shown, each once, by title."""
    found = {explain(m).title: explain(m) for m in dict.fromkeys(metrics)}
    return sorted(found.values(), key=lambda entry: entry.title.lower())
