"""Keywords of functions that take the fields of a spec. Written by `python docs/keywords.py`; do not edit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, TypedDict

from hitmiss.core.protocol import Gaps


class ReadKeywords(TypedDict, total=False):
    """The fields of `ReadSpec`, each of which may be left out."""

    columns: Mapping[str, str]
    """Our name = the file's column, `item=utt`."""
    key_columns: Mapping[str, str]
    """The same for the key, if its columns have other names."""
    score_columns: str | Sequence[str]
    """A score column; repeat it for several systems."""
    positive: str | bool | float | None
    """Name of the positive class."""
    negative: str | bool | float | None
    """Name of the other class."""
    positive_value: str | bool | float | None
    """Value of the positive class in the label column, such as 1."""
    higher: str | bool | float | None
    """The class that a higher score means."""
    abstain: str | Sequence[str]
    """A word in the decisions that means no answer."""
    score_kind: Literal["llr", "logit", "probability", "raw"] | None
    """What the scores are."""
    slices: str | Sequence[str] | None
    """Columns to keep as slices; all if none is named."""
    runs: str | Sequence[str]
    """A column that names the run, such as config; may be repeated."""
    numbers: str | Sequence[str]
    """Columns to summarise as numbers."""
    rename: Mapping[str, Mapping[str, str]]
    """Per column, values to replace by others."""
    itself: Mapping[str, str]
    """Per column, the value that means the trial's own id."""
    where: Mapping[str, str | Sequence[str]]
    """Rows to keep, `codec=C01`; repeat it for more values or columns."""
    on_nan: Literal["refuse", "drop", "worst"] | None
    """What to do with scores that are not numbers."""
    dedupe: bool
    """Merge identical rows."""
    allow_missing: bool
    """Score only the ids that both files have."""
    weight: str | None
    """Column with the weight of each row; needs --weight-kind."""
    weight_kind: Literal["frequency", "sampling"] | None
    """frequency: a row stands for so many rows; sampling: 1 / the chance to be sampled."""
    match: Literal["exact", "stem"] | None
    """Match ids exactly, or without folder and suffix (stem)."""
    layout: str | None
    """A layout (see `list readers`) instead of recognising one."""
    separator: str | None
    """Separator of the columns."""
    encoding: str | None
    """Encoding of the files."""
    decimal: str | None
    """Decimal sign, `.` or `,`."""
    asv: str | None
    """Scores of the speaker verifier, for tandem costs."""
    asv_key: str | None
    """Key of the speaker verifier's trials."""
    pairs: Mapping[str, str]
    """In a wide file: a label column = its score column, `toxic=toxic_prob`."""
    label_cut: float | None
    """Labels are shares of annotators: positive from this share on, such as 0.5."""
    missing: Literal["refuse", "drop"] | None
    """What to do with rows without label, score or decision."""
    threshold_rule: Literal["same", "first", "per-row"] | None
    """Prediction files: what to do with different thresholds in one group."""
    identities: str | Sequence[str]
    """Prediction files: columns that say how far a text mentions an identity."""


class DesignKeywords(TypedDict, total=False):
    """The fields of `Design`, each of which may be left out."""

    metrics: str | Sequence[str] | None
    """A metric; may be repeated."""
    by: str | Sequence[str | Sequence[str]] | None
    """Slice column(s), `codec` or `codec,codec_q`."""
    matrix: str | Sequence[str] | None
    """Two slice columns as a matrix, `attack,codec`."""
    gap: Gaps
    """In-domain value(s), `codec=NONE` or `codec=in:out`; or none; may be repeated."""
    unit: str | Sequence[str] | None
    """Column(s) whose values are resampled as a whole, `speaker` or `speaker,attack`."""
    bootstrap: int | None
    """Replicates of the bootstrap; 0 for none."""
    seed: int | None
    """Seed of the resampling."""
    level: float | None
    """Level of the intervals."""
    interval: Literal["auto", "percentile", "bca"] | None
    """Kind of interval."""
    stratify: bool | None
    """Resample units within each class (refused if one holds both)."""
    threshold: float | None
    """Decide at this threshold (score >= t), for accuracy, f1 …"""
    negative_only: str | Sequence[str] | None
    """A column about negatives; each slice is measured with all positives."""
    positive_only: str | Sequence[str] | None
    """A column about positives; each slice is measured with all negatives."""
    require: str | Sequence[str] | None
    """What must be shown, as 'eer.high <= 0.05', 'precision >= 0.9 at prevalence 1%', or requirements.toml; may be repeated."""
