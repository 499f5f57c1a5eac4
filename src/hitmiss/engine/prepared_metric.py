"""A metric with its settings, prepared for samples."""

from __future__ import annotations

from dataclasses import dataclass

from hitmiss.core.metric import Metric
from hitmiss.core.metric_spec import MetricSpec, Setting
from hitmiss.engine.columns import Sample
from hitmiss.stats.forms.base import Functional


@dataclass(frozen=True, eq=False)
class PreparedMetric:
    """A metric with its settings, prepared for samples."""

    text: str
    metric: Metric
    settings: dict[str, Setting]
    form: Functional
    brings: bool = False
    """Whether the trials bring some of its settings, each slice its own (see `prepare.prepared_for`)."""

    @property
    def labelled(self) -> bool:
        """Whether the number uses the true class; times and shares of changed records do not."""
        return "label" in self.metric.columns

    @property
    def stream(self) -> str:
        """The metric with all its settings, for random streams; `text` leaves out those that are usual."""
        return str(MetricSpec.of(self.metric.name, **self.settings))

    def value(self, sample: Sample) -> float:
        """Return the number of a sample, which is computed once."""
        if self.form not in sample.numbers:
            sample.numbers[self.form] = self.form.measure(sample)
        return sample.numbers[self.form]
