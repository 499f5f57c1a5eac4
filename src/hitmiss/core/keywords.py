"""Keywords of functions that take the fields of a spec. Written by `python docs/keywords.py`; do not edit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
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
    """In-domain value(s), `codec=NONE` or `codec=in:out`; `group=ref:*` each against ref; `group=*` greatest − least and their ratio; `… within column`; or none; may be repeated."""
    identity: str | Sequence[str] | None
    """Column(s) that say which texts mention an identity: subgroup, BPSN and BNSP AUC, power means, final number."""
    unit: str | Sequence[str] | None
    """Column(s) whose values are resampled as a whole, `speaker` or `speaker,attack`; none: single trials. Without it, the natural units of the protocol."""
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


class DetectKeywords(TypedDict, total=False):
    """The fields of `DetectSpec`, each of which may be left out."""

    weights: str | PathLike[str] | None
    """Checkpoint for a torch module (.safetensors, .pt)."""
    root: str | PathLike[str] | None
    """Folder of the files (default: that of the table which names them)."""
    suffix: str
    """Added to each file name, such as .flac."""
    file_column: str | None
    """Column with the paths, if it is not the id."""
    input: Literal["audio", "image", "text", "path"]
    """What an item is; text: of a column."""
    picture: str | None
    """How a network takes pictures: resize=256, crop=224, scale=imagenet|half|unit|raw, order=rgb|bgr (default: its own)."""
    text_column: str
    """Column with the texts."""
    sample_rate: int | None
    """Sample rate that the detector needs (default: its own)."""
    cut_length: int | None
    """Repeat or cut each clip to this number of samples."""
    length_rule: Literal["tile", "mirror", "zero", "truncate"]
    """What is done with short clips."""
    window: float | None
    """Score windows of this many seconds."""
    hop: float | None
    """Seconds between windows (default: half a window)."""
    pooling: Literal["mean", "median", "min", "max"]
    """One score from windows."""
    codecs: str | Sequence[str]
    """Codec plan (TSV) or a list, `opus,mp3:1`; may be repeated."""
    manipulate: str | Sequence[str]
    """`suite`, `clad`, `asvspoof5`, or `noise(snr=15); codec(mp3:1) > gain(db=-6)`; may be repeated."""
    only: str | None
    """With --manipulate: change this class only, `fake`."""
    positive_index: int | None
    """Output column of the positive class."""
    outputs: Literal["auto", "logit", "multilabel", "probability", "raw"]
    """What the model gives; multilabel: a sigmoid per label."""
    embed: str | Sequence[str]
    """Keep this layer's embeddings; may be repeated."""
    batch_seconds: float | None
    """Seconds of sound in a batch."""
    batch_items: int | None
    """Most items in a batch."""
    pad: bool
    """Pad clips of different lengths into one batch."""
    workers: int
    """Number of processes that load items; 0: none."""
    device: str
    """auto, cpu, cuda, or several: cuda:0,cuda:1 (one process each)."""
    precision: Literal["auto", "float32", "tf32", "bfloat16", "float16", "int8"]
    """Numbers of the network; auto is float32, int8 is for the CPU."""
    compiled: bool
    """Compile a torch module; worth it for long runs of clips of one length."""
    check: int
    """Number of clips scored again one by one, as a check."""


class AttackKeywords(TypedDict, total=False):
    """The fields of `AttackSpec`, each of which may be left out."""

    families: str | Sequence[str]
    """A family such as band_noise, or with settings, band_noise(beta=0.5); may be repeated."""
    strengths: float | Sequence[float]
    """One or more strengths from 0 to 1."""
    minimal: str | Sequence[str]
    """Search for the least strength of a family that changes each record; may be repeated."""
    targets: str | Sequence[str]
    """Aim at a class, `MI` or `MI:suppress`; may be repeated."""
    window: float | None
    """Seconds of the window (default: the whole record)."""
    centers: float | Sequence[float]
    """Centre(s) of the window in seconds."""
    attack_from: Literal["y_true", "prediction"]
    """What is climbed away from: the true labels, or the clean prediction."""
    early_stop: bool
    """Stop with a record once its prediction has changed."""
    lead_consistent: bool
    """Change eight leads, derive the other four."""
    control: bool
    """Run noise of the same norm beside each attack."""
    threshold: float | Sequence[float]
    """Decide at this probability; several: one per class."""
    weights: str | PathLike[str] | None
    """Checkpoint for a torch module (.safetensors, .pt)."""
    layout: Literal["sample_lead", "lead_sample"]
    """What the model takes."""
    data_layout: Literal["sample_lead", "lead_sample"]
    """Order of the axes in the data."""
    labels: str | PathLike[str] | None
    """For WFDB records: a table with the record and a column of 0 and 1 per class (default: the headers' #Dx)."""
    fs: float | None
    """Samples per second, if the data does not say."""
    leads: str | Sequence[str]
    """The leads that the model takes, in its order: I,II,III,aVR,… or `standard` (default: as it says, or the data's)."""
    outputs: Literal["auto", "logit", "probability"]
    """What the model gives."""
    single_label: bool | None
    """Whether exactly one class is true (default: if the outputs sum to 1; asked for if not clear)."""
    device: str
    """cpu, cuda or auto."""
    batch: int
    """Records in a batch of a gradient attack."""
    seed: int
    """Seed of all random numbers."""
