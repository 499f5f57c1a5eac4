"""What a model is taken for: settled before the first item, said in one line, stored with the run.

A model's outputs mean nothing by themselves: probabilities or logits, classes that exclude each other or not, which
column is the positive class, at which sample rate, in which order of leads. Each of these is declared by the caller or
by the model, or found by a probe: one item is scored twice and in a batch, and the values of the first outputs are
looked at. Where two readings remain, the caller is asked; nothing is chosen silently.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from numpy.typing import ArrayLike

from hitmiss.core.errors import UsageError
from hitmiss.detection.outputs import Extraction, Floats, are_distributions

Origin = Literal["", "declared", "as documented", "the model", "its last step", "its values", "the data", "assumed"]
"""Where a term comes from; empty for what was measured."""
TOLERANCE: Final = 1e-3
"""A change of the outputs, relative to the largest of them, that rounding in float32 does not make."""
ROUNDED: Final = 0.05
"""The same for lower precisions."""
TOGETHER: Final = 4
"""Items in the batch of the probe."""
KIND_WORDS: Final = {
    "auto": "outputs of a kind that their values decide",
    "logit": "logits",
    "multilabel": "logits",
    "probability": "probabilities",
    "raw": "raw scores",
}


@dataclass(frozen=True)
class Term:
    """One thing that a model is taken for: its name and value in the stored form, and in words."""

    name: str
    value: object
    words: str
    origin: Origin = ""

    def __str__(self) -> str:
        return f"{self.words} ({self.origin})" if self.origin else self.words


@dataclass(frozen=True)
class Contract:
    """Everything that a model is taken for.

    >>> print(Contract((Term("outputs", "probability", "probabilities", "declared"), Term("rate", 16000, "16 kHz", "assumed"))))
    taken for: probabilities (declared), 16 kHz (assumed)
    """

    terms: tuple[Term, ...]

    def __str__(self) -> str:
        return f"taken for: {', '.join(map(str, self.terms))}"

    @property
    def stored(self) -> dict[str, object]:
        """The form that a run keeps: the line, and each term with where it comes from."""
        return {
            "line": str(self),
            "terms": {term.name: {"value": term.value, "origin": term.origin or "measured"} for term in self.terms},
        }


@dataclass(frozen=True)
class Probe:
    """One item scored twice, and alone and in a batch: the largest change relative to the largest output."""

    item: str
    again: float
    batch: float | None = None
    n: int = 1
    """Items in the batch."""
    tolerance: float = TOLERANCE

    @property
    def is_random(self) -> bool:
        """Whether the model answers one item differently each time."""
        return self.again > self.tolerance

    @property
    def depends_on_batch(self) -> bool:
        """Whether the answer about an item depends on the other items in its batch."""
        return self.batch is not None and not self.is_random and self.batch > self.tolerance

    def terms(self) -> list[Term]:
        """Return what was found."""
        words = "randomised: each score is one draw" if self.is_random else "the same twice"
        found = [Term("repeat", self.again, words)]
        if self.batch is not None and not self.is_random:
            alike = "not the same" if self.depends_on_batch else "the same"
            found.append(Term("batch", self.batch, f"{alike} alone and in a batch of {self.n}"))
        return found

    def refuse_batch(self, name: str, instead: str) -> None:
        """Stop if scores depend on the batch: they would change with its size and the order of the items."""
        if self.depends_on_batch:
            raise UsageError.of(
                "batch-dependent", name=name, item=self.item, n=self.n, batch=self.batch, instead=instead
            )

    def random_words(self, name: str) -> str:
        """Describe a model that answers differently each time."""
        return (
            f"{name} is randomised: {self.item!r} scored twice gives outputs that differ by {self.again:.2g} of their "
            f"size (dropout or noise that is left on?), so every score is one draw and would be another next time"
        )


def distance(one: ArrayLike, other: ArrayLike) -> float:
    """Return the largest difference of two arrays of outputs, relative to the largest of them.

    >>> distance([1.0, 2.0], [1.0, 1.0]), distance([0.0], [0.0])
    (0.5, 0.0)
    """
    a, b = np.asarray(one, dtype=np.float64).ravel(), np.asarray(other, dtype=np.float64).ravel()
    if a.shape != b.shape:
        return float("inf")
    apart = float(np.abs(a - b).max(initial=0.0))
    size = float(max(np.abs(a).max(initial=0.0), np.abs(b).max(initial=0.0)))
    return apart / size if size > 0 else 0.0


def probe(
    score: Callable[[Sequence[int]], ArrayLike],
    items: Sequence[str],
    *,
    batch: int = TOGETHER,
    precision: str = "float32",
    known: ArrayLike | None = None,
) -> Probe:
    """Score the first item twice, and together with others; `score` takes positions and returns a row for each.

    A single item makes a batch with itself: even then a softmax over the batch gives something else. `known` are the
    outputs of all items in one batch, if there are any yet.
    """
    alone, again = np.asarray(score([0])), np.asarray(score([0]))
    tolerance = TOLERANCE if precision in ("auto", "float32") else ROUNDED
    if batch < 2:
        return Probe(items[0], distance(alone, again), tolerance=tolerance)
    group = list(range(min(len(items), batch, TOGETHER))) if len(items) > 1 else [0, 0]
    if known is not None and len(items) > 1:
        return Probe(
            items[0], distance(alone, again), distance(alone[:1], np.asarray(known)[:1]), len(items), tolerance
        )
    together = np.asarray(score(group))
    apart = distance(alone[:1], together[:1]) if len(together) == len(group) else float("inf")
    return Probe(items[0], distance(alone, again), apart, len(group), tolerance)


def detector_contract(
    rule: Extraction,
    kind_from: Origin,
    outputs: Floats,
    classes: tuple[str, str],
    named: Sequence[str] | None,
    declares: tuple[bool, bool],
    rate: tuple[int | None, Origin],
    found: Probe | None,
) -> Contract:
    """Return what a detector is taken for.

    `classes` are the positive and the negative one, `named` the model's own names of its columns, `declares` whether the
    caller gave the column and the direction, `rate` the samples per second with its origin.
    """
    width = outputs.shape[1]
    terms = [Term("outputs", rule.kind, KIND_WORDS.get(rule.kind, str(rule.kind)), kind_from)]
    if width > 1:
        is_one = rule.kind == "logit" or (rule.kind == "probability" and are_distributions(outputs))
        what = "exclusive classes" if is_one else "independent columns"
        terms.append(Term("columns", width, f"{width} {what}"))
        column = 1 if rule.positive_index is None else rule.positive_index % width
        origin: Origin = "declared" if declares[0] else "the model" if named is not None else "assumed"
        terms.append(Term("positive_column", column, f"{column} = {classes[0]}", origin))
    else:
        meant = classes[1] if rule.is_reversed else classes[0]
        terms.append(Term("higher", meant, f"higher = {meant}", "declared" if declares[1] else "assumed"))
    if rate[0] is not None:
        terms.append(Term("sample_rate", rate[0], f"{rate[0] / 1000:g} kHz", rate[1]))
    return Contract((*terms, *(found.terms() if found is not None else ())))
