"""An accumulator like those of torchmetrics: update batch by batch, merge over processes, compute at the end.

    seen = Accumulator(["eer", "min_dcf"])
    for batch in loader:
        seen.update(labels, scores)         # numpy, lists or torch tensors
    seen.compute()                          # {"eer": 0.08, "min_dcf": 0.21}

It holds tallies, so its numbers are exactly those of all trials together, in any order and division into shards.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from hitmiss.bridges.arrays import array, asked_metrics
from hitmiss.core.errors import DataError, UsageError
from hitmiss.core.metric_spec import MetricSpec
from hitmiss.core.tally import Tally, merge
from hitmiss.engine.prepare import form_of
from hitmiss.metrics.usual import BY_COLUMN
from hitmiss.stats.forms.base import Form

MOST_PARTS: Final = 64
"""Number of batches that are kept separate before they are merged."""


class Accumulator:
    """Metrics of scores over batches; exact, mergeable, without torch.

    Parameters
    ----------
    metrics
        One metric of scores or several, by name or with settings; by default `eer` and `roc_auc`.

    Raises
    ------
    UsageError
        For a metric that needs more than labels and scores.

    >>> a, b = Accumulator(["roc_auc"]), Accumulator(["roc_auc"])
    >>> a.update([1, 0], [0.9, 0.6])
    >>> b.update([1, 0], [0.4, 0.1])
    >>> a.merge(b).compute()
    {'roc_auc': 0.75}
    """

    def __init__(self, metrics: str | MetricSpec | Sequence[str | MetricSpec] = BY_COLUMN["score"]) -> None:
        self._forms: dict[str, Form] = {}
        for text, entry, settings in asked_metrics(metrics):
            form = form_of(entry, settings)
            if not isinstance(form, Form):
                raise UsageError.of("not-accumulated", text=text)
            self._forms[text] = form
        self._parts: list[Tally] = []

    def update(self, label: object, score: object) -> None:
        """Count a batch; label 1 = positive, higher score = positive."""
        self._parts.append(Tally.of(array(label).reshape(-1), array(score).reshape(-1)))
        if len(self._parts) > MOST_PARTS:
            self._parts = [merge(self._parts)]

    def merge(self, *others: Accumulator) -> Accumulator:
        """Return this accumulator with the trials of others added; they must have the same metrics."""
        for other in others:
            if [*other._forms] != [*self._forms]:
                raise UsageError.of("unlike-accumulators")
            self._parts = [merge([*self._parts, *other._parts])]
        return self

    def compute(self) -> dict[str, float]:
        """Compute every metric over all counted trials; NaN where it is undefined."""
        tally = self.tally
        if not len(tally.score):
            raise DataError.of("nothing-counted")
        return {text: float(form.value(tally)) for text, form in self._forms.items()}

    @property
    def tally(self) -> Tally:
        """Return the tally of everything counted."""
        self._parts = [merge(self._parts)]
        return self._parts[0]

    def reset(self) -> None:
        """Discard all counts."""
        self._parts = []

    def state(self) -> dict[str, object]:
        """Return arrays to send to another process or store in a file; `Accumulator.add_state` reads them."""
        tally = self.tally
        return {"score": tally.score, "positive": tally.positive_counts, "negative": tally.negative_counts}

    def add_state(self, state: dict[str, object]) -> None:
        """Add the counts in the `state` of another accumulator."""
        counts = [np.asarray(state[name]) for name in ("score", "positive", "negative")]
        self._parts.append(Tally.of_counts(*counts))

    def __len__(self) -> int:
        tally = self.tally
        return int(tally.n_positive + tally.n_negative)
