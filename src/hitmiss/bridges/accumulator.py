"""An accumulator in the manner of torchmetrics: update batch by batch, merge over processes, compute at the end.

    seen = Accumulator(["eer", "min_dcf"])
    for batch in loader:
        seen.update(labels, scores)         # numpy, lists or torch tensors
    seen.compute()                          # {"eer": 0.08, "min_dcf": 0.21}

It holds tallies, so what it computes is exactly what all trials together give, in whatever order and shards they came.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from hitmiss.bridges.asking import array, asked
from hitmiss.errors import DataError, UsageError
from hitmiss.spec import Spec
from hitmiss.stats.forms import Form
from hitmiss.tally import Tally, merge

MOST_PARTS: Final = 64
"""Batches that are held apart before they are merged."""


class Accumulator:
    """Metrics of scores over batches; exact, mergeable, without torch.

    >>> a, b = Accumulator(["roc_auc"]), Accumulator(["roc_auc"])
    >>> a.update([1, 0], [0.9, 0.6])
    >>> b.update([1, 0], [0.4, 0.1])
    >>> a.merge(b).compute()
    {'roc_auc': 0.75}
    """

    def __init__(self, metrics: Sequence[str | Spec]) -> None:
        self._asked = asked(metrics)
        for text, entry, settings in self._asked:
            form = entry.form(**settings) if entry.form is not None else None
            if not isinstance(form, Form):
                raise UsageError(f"{text} is no metric of scores that can be accumulated; measure it with hm.measure")
        self._parts: list[Tally] = []

    def update(self, label: Any, score: Any) -> None:
        """Count a batch; label 1 = positive, higher score = positive."""
        self._parts.append(Tally.of(array(label).reshape(-1), array(score).reshape(-1)))
        if len(self._parts) > MOST_PARTS:
            self._parts = [merge(self._parts)]

    def merge(self, *others: Accumulator) -> Accumulator:
        """This one with the trials of others added; they must ask the same."""
        for other in others:
            if [q[0] for q in other._asked] != [q[0] for q in self._asked]:
                raise UsageError("accumulators of other metrics cannot be merged")
            self._parts = [merge([*self._parts, *other._parts])]
        return self

    def compute(self) -> dict[str, float]:
        """Every metric over all that was counted; NaN where it is undefined."""
        tally = self.tally
        if not len(tally.score):
            raise DataError("nothing was counted yet: call update first")
        return {text: float(entry.form(**settings).value(tally)) for text, entry, settings in self._asked if entry.form}

    @property
    def tally(self) -> Tally:
        """Everything that was counted."""
        self._parts = [merge(self._parts)]
        return self._parts[0]

    def reset(self) -> None:
        """Forget what was counted."""
        self._parts = []

    def state(self) -> dict[str, Any]:
        """Arrays to send to another process or to a file; `Accumulator.add_state` takes them."""
        tally = self.tally
        return {"score": tally.score, "positive": tally.positive_counts, "negative": tally.negative_counts}

    def add_state(self, state: dict[str, Any]) -> None:
        """Count what another accumulator's `state` holds."""
        counts = [np.asarray(state[name]) for name in ("score", "positive", "negative")]
        self._parts.append(Tally.of_counts(*counts))

    def __len__(self) -> int:
        tally = self.tally
        return int(tally.n_positive + tally.n_negative)
