"""Gates: how often is a pull request that changes nothing stopped, and how often one whose loss `plan` calls detectable?

    python benchmarks/gates.py [repeats]

Each repeat is a pull request: 7 languages of 300 texts, scored by a model and by one retrained to the same quality, or to
a lower one in one language. The scores are Gaussian, so the true AUC of both is known. `paired` is the same texts, and
`two samples` other texts of the same population (`--unpaired`). A false stop is a stop although nothing changed: at most
5 % are allowed, whatever the number of checks. The loss is the least that the gate itself says it stops in four of five
cases (`detectable` in its JSON, from the error that `hitmiss plan` plans with).
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.stats import norm

from hitmiss.core.design import Design
from hitmiss.core.gate_spec import GateSpec
from hitmiss.core.trials import Trials
from hitmiss.derive.decisions import at_threshold
from hitmiss.evaluation.gate import GateOutcome, judge_gate
from hitmiss.stats.intervals import wilson

REPEATS = 200
LANGUAGES = ("de", "en", "es", "fr", "it", "pt", "tr")
BROKEN = "tr"
TEXTS = 300
TOXIC = 0.3
APART = 1.2
SHARED = 0.8
"""What both models see alike in a text; the rest of each score is its own."""
THRESHOLD = 0.9
ONE, ALL = ("roc_auc=0",), ("roc_auc[language=*]=0", "f1[language=*]=0")
RATES = ("recall[language=*]=0", "fpr[language=*]=0")
LANGUAGE = ("roc_auc[language=*]=0",)


def pull_request(seed: int, loss: float = 0.0, unpaired: bool = False, whole: bool = False) -> tuple[Trials, Trials]:
    """Return the run and its baseline; the AUC of one language, or of all texts, is lower by `loss`."""
    rng = np.random.default_rng(seed)
    language = np.repeat(LANGUAGES, TEXTS)
    texts = [_texts(rng, len(language)) for _ in range(1 + unpaired)]
    area = norm.cdf(APART / np.sqrt(2.0))
    lower = float(norm.ppf(area - loss) * np.sqrt(2.0))
    apart = np.where((language == BROKEN) | whole, lower, APART)
    sides = []
    for (label, seen), how_far, name in ((texts[-1], apart, "n"), (texts[0], APART, "n" if not unpaired else "o")):
        own = rng.normal(0.0, np.sqrt(1.0 - SHARED**2), len(language))
        ids = [f"{name}{i}" for i in range(len(language))]
        scored = Trials.of(label, how_far * label + SHARED * seen + own, item=ids, language=language)
        sides.append(at_threshold(scored, THRESHOLD))
    return sides[0], sides[1]


def _texts(rng: np.random.Generator, n: int) -> tuple[Any, Any]:
    return (rng.random(n) < TOXIC).astype(np.int64), rng.normal(size=n)


def judged(seed: int, rules: tuple[str, ...], *, unpaired: bool = False, loss: float = 0.0) -> GateOutcome:
    """Put one pull request through the gate."""
    run, before = pull_request(seed, loss, unpaired, whole=rules == ONE)
    return judge_gate(run, before, GateSpec(max_regression=rules, unpaired=unpaired), Design())


def detectable(rules: tuple[str, ...]) -> float:
    """Return the loss that the gate calls detectable, in the median of some pull requests."""
    found = [
        check.detectable
        for seed in range(9)
        for check in judged(9000 + seed, rules).checks
        if rules == ONE or check.slice.get("language") == BROKEN
    ]
    return float(np.median([value for value in found if value is not None]))


def rows(repeats: int = REPEATS) -> Iterator[tuple[str, str, int, float, int]]:
    """Yield what was checked, how, the number of checks, the true loss, and how many were stopped."""
    for unpaired in (False, True):
        for rules in (ONE, LANGUAGE, ALL, RATES):
            made = [judged(seed, rules, unpaired=unpaired) for seed in range(repeats)]
            how = "two samples" if unpaired else "paired"
            yield how, " ".join(rules), len(made[0].checks), 0.0, sum(not one.passed for one in made)
    for rules in (ONE, LANGUAGE):
        loss = detectable(rules)
        made = [judged(5000 + seed, rules, loss=loss) for seed in range(repeats)]
        yield "paired", " ".join(rules), len(made[0].checks), loss, sum(not one.passed for one in made)


def main() -> None:
    """Print the table."""
    repeats = int(sys.argv[1]) if len(sys.argv) > 1 else REPEATS
    print("| | rules | checks | true loss of AUC | stopped | 95 % interval |\n|---|---|---|---|---|---|")
    for how, rules, checks, loss, stopped in rows(repeats):
        low, high = wilson(stopped, repeats, 0.95)
        lost = f"{loss:.4f}" if loss else "none"
        print(
            f"| {how} | `{rules}` | {checks} | {lost} | {stopped} of {repeats} | {low:.3f} to {high:.3f} |", flush=True
        )


if __name__ == "__main__":
    main()
