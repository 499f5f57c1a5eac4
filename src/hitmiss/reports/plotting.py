"""`results.plot` and `trials.plot`: the figures of a measurement, one call each, all runs in the same axes.

results = hm.measure(trials, ["eer", "roc_auc"])
ax = results.plot.det()
results.plot.save("figures")                # every figure that there is, as SVG
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from hitmiss.core.errors import DataError, UsageError
from hitmiss.core.results import Results
from hitmiss.core.trials import Trials
from hitmiss.reports.displays.kinds import KINDS
from hitmiss.reports.displays.robustness import RobustnessDisplay
from hitmiss.reports.matplots import FORMATS, save, together
from hitmiss.reports.notebook import Drawn
from hitmiss.reports.pictures import Picture, pictures, read_pictures

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class Plots:
    """The figures of results or trials; each method draws into `ax`, or into new axes of a paper's column width.

    Without `ax` a figure comes back that a notebook shows as the last line of a cell; its axes are `.ax`.
    """

    def __init__(self, of: Results | Trials) -> None:
        self._of = of

    @cached_property
    def _pictures(self) -> list[Picture]:
        if isinstance(self._of, Trials):
            return pictures(self._of)
        behind = self._of.behind
        if isinstance(behind, Trials):
            return pictures(behind, self._of)
        if isinstance(behind, Sequence):
            return read_pictures(behind)
        raise UsageError.of("no-trials-behind")

    def __call__(self, kind: str | None = None, ax: Axes | None = None) -> Axes | Drawn:
        """Draw one kind of figure; None: the first that is available."""
        available = self.kinds
        if not available or (kind is not None and kind not in available):
            raise UsageError.of("no-figure", kind=kind or "figure", known=", ".join(available) or "none")
        return self._drawn(kind or available[0], ax)

    @property
    def kinds(self) -> list[str]:
        """Return the kinds of figures that are available."""
        return [kind for kind in KINDS if any(p.of(kind) is not None for p in self._pictures)]

    def det(self, ax: Axes | None = None) -> Axes | Drawn:
        """Draw the detection error trade-off on normal-deviate axes."""
        return self._drawn("det", ax)

    def roc(self, ax: Axes | None = None) -> Axes | Drawn:
        """Draw hits against false alarms."""
        return self._drawn("roc", ax)

    def pr(self, ax: Axes | None = None) -> Axes | Drawn:
        """Draw precision against recall."""
        return self._drawn("pr", ax)

    def histogram(self, ax: Axes | None = None) -> Axes | Drawn:
        """Draw the scores by class."""
        return self._drawn("histogram", ax)

    def reliability(self, ax: Axes | None = None) -> Axes | Drawn:
        """Draw stated probabilities or confidences against what happened."""
        return self._drawn("reliability", ax)

    def bayes_error(self, ax: Axes | None = None) -> Axes | Drawn:
        """Draw the error rates of Bayes decisions over priors (APE)."""
        return self._drawn("bayes_error", ax)

    def tippett(self, ax: Axes | None = None) -> Axes | Drawn:
        """Draw the cumulative likelihood ratios of both classes."""
        return self._drawn("tippett", ax)

    def risk_coverage(self, ax: Axes | None = None) -> Axes | Drawn:
        """Draw the share of wrong verdicts among the most confident answers."""
        return self._drawn("risk_coverage", ax)

    def robustness(self, metric: str = "robust_accuracy", ax: Axes | None = None) -> Axes | Drawn:
        """Draw a figure of an attack run over strength."""
        if isinstance(self._of, Trials):
            raise UsageError.of("no-figure/strength")
        drawn = RobustnessDisplay.from_results(self._of, metric).plot(ax=ax)
        return drawn if ax is not None else Drawn(drawn)

    def save(self, folder: str | Path, ending: str = ".svg") -> list[Path]:
        """Write every available figure into a folder as .svg, .pdf or .png."""
        if ending not in FORMATS:
            raise UsageError.of("figure-format", name=ending, formats=tuple(FORMATS))
        target = Path(folder)
        target.mkdir(parents=True, exist_ok=True)
        paths = [target / f"{kind}{ending}" for kind in self.kinds]
        for path in paths:
            made = self._drawn(path.stem, None)
            save(made.ax if isinstance(made, Drawn) else made, path)
        return paths

    def _drawn(self, kind: str, ax: Axes | None) -> Axes | Drawn:
        """Draw all runs into the same axes, each under its name if there are several."""
        found = [(", ".join(p.run.values()), display) for p in self._pictures if (display := p.of(kind)) is not None]
        if not found:
            raise DataError.of("no-figure", kind=kind, known=", ".join(self.kinds) or "none")
        drawn = together(kind, found, ax)
        return drawn if ax is not None else Drawn(drawn)
