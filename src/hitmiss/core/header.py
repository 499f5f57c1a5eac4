"""The header of trials: what their columns mean, and where they come from."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, Protocol

from hitmiss.core.errors import UnknownName
from hitmiss.core.kinds import SCORE_KINDS, ScoreKind
from hitmiss.core.metric_spec import Setting
from hitmiss.core.read_spec import ReadSpec
from hitmiss.core.scale import ScoreScale

GRADES: Final = "grades"
"""The name, in the provenance of trials, of what answers were graded by."""


@dataclass(frozen=True)
class Source:
    """A file that trials were read from: its name (never its folder) and the SHA-256 of its bytes."""

    name: str
    sha256: str


@dataclass(frozen=True)
class Threshold:
    """A decision threshold, on the scale of the file, and its origin: `given`, `column <name>` or `this data`, …"""

    value: float
    origin: str


class BroughtSettings(Protocol):
    """Settings of metrics that trials bring with them, as the error rates of a speaker verifier in each slice."""

    def settings(
        self, slice: Mapping[str, str], negative_only: Collection[str], positive_only: Collection[str], asv: Setting
    ) -> Mapping[str, Setting]:
        """Return the settings of a slice; columns of one class restrict only that class. `asv` is the metric's setting."""


@dataclass(frozen=True)
class Header:
    """What the columns of trials mean. The header is kept with the table and is part of the signature.

    Parameters
    ----------
    positive, negative
        The names of the two classes.
    settled
        How the positive class was found if the caller did not name it; empty if it was declared.
    score_kind
        `llr`, `logit`, `probability` or `raw`.
    runs, slices, numbers
        The columns that name the run (model, seed, …), describe the item (codec, language, …), or hold numbers to
        summarise (seconds, …).
    threshold
        The threshold that decisions were made at, on the scale of the file, with its origin.
    sources
        The files that the trials were read from.
    coverage
        How many ids were scored, and of how many.
    choices
        Choices that the signature records.
    notes
        Notes for the reader.
    provenance
        Further facts about how the trials were made.
    reading
        How the files were read.
    scale
        How the scores of the file became those of the table, where a higher one means the positive class.
    decided
        What the threshold or thresholds of the decisions mean for scores of the file; empty if there are none.
    weight
        The column of sampling weights.
    repeated_by
        The column of frequency weights, by which the rows were repeated; nothing uses them again.
    brought
        Settings of metrics that the trials bring with them.
    is_unlabelled
        Whether the classes are stand-ins, because none are known: scores can be written, and nothing can be measured.

    Raises
    ------
    UsageError
        For an unknown score kind.
    """

    positive: str = "positive"
    negative: str = "negative"
    score_kind: ScoreKind = "raw"
    runs: tuple[str, ...] = ()
    slices: tuple[str, ...] = ()
    numbers: tuple[str, ...] = ()
    threshold: Threshold | None = None
    sources: tuple[Source, ...] = ()
    coverage: tuple[int, int] | None = None
    choices: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    provenance: Mapping[str, object] = field(default_factory=dict)
    reading: ReadSpec | None = None
    """The read options of the caller, before anything was recognised from the files."""
    scale: ScoreScale = field(default_factory=ScoreScale)
    """How the scores of the file became those of the table, where a higher one means the positive class."""
    decided: str = ""
    """What the threshold or thresholds of the decisions mean for scores of the file; empty if there are none."""
    weight: str | None = None
    repeated_by: str | None = None
    is_unlabelled: bool = False
    settled: str = ""
    brought: BroughtSettings | None = field(default=None, compare=False, repr=False)

    @property
    def graded_by(self) -> str:
        """What answers were graded by, if the trials are graded answers from the log of another tool; else empty."""
        return str(self.provenance.get(GRADES, ""))

    def __post_init__(self) -> None:
        if self.score_kind not in SCORE_KINDS:
            raise UnknownName("score kind", self.score_kind, SCORE_KINDS)

    @property
    def files(self) -> list[Mapping[str, object]]:
        """What the provenance says about each file: its name, hash, role, layout and columns."""
        files = self.provenance.get("files")
        return [file for file in files if isinstance(file, Mapping)] if isinstance(files, list | tuple) else []

    @property
    def decided_from(self) -> float | None:
        """The least score of the table that was decided positive by the threshold; None if there is no threshold."""
        return None if self.threshold is None else self.scale.to_inside(self.threshold.value)

    @property
    def unnamed(self) -> str | None:
        """The first file whose rows have no ids, so that they were numbered; None if all have."""
        for file in self.files:
            columns = file.get("columns")
            if file.get("role") != "key" and isinstance(columns, Collection) and "item" not in columns:
                return str(file.get("name", "its file"))
        return None

    def facts(self, name: str) -> Mapping[str, object]:
        """Return a part of the provenance that is a table of names; empty if it is not known."""
        found = self.provenance.get(name)
        return found if isinstance(found, Mapping) else {}

    def renamed(self, names: Mapping[str, str]) -> Header:
        """Return the same header with other names for some columns."""
        runs, slices, numbers = (tuple(names.get(n, n) for n in own) for own in (self.runs, self.slices, self.numbers))
        weight, repeated = (None if n is None else names.get(n, n) for n in (self.weight, self.repeated_by))
        return replace(self, runs=runs, slices=slices, numbers=numbers, weight=weight, repeated_by=repeated)
