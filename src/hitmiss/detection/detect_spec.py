"""DetectSpec: how a detector is opened, and how every item is loaded, changed, cut, batched and scored."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from hitmiss.core.run_spec import ROOT, SUFFIX, WEIGHTS
from hitmiss.core.spec import READING, RUNNING, Spec, as_names, opt

PICTURE = "How a network takes pictures: resize=256, crop=224, scale=imagenet|half|unit|raw, order=rgb|bgr (default: its own)."
MANIPULATE = "`suite`, `clad`, `asvspoof5`, or `noise(snr=15); codec(mp3:1) > gain(db=-6)`; may be repeated."
Input = Literal["audio", "image", "text", "path"]
LengthRule = Literal["tile", "mirror", "zero", "truncate"]
Pooling = Literal["mean", "median", "min", "max"]
OutputKind = Literal["auto", "logit", "multilabel", "probability", "raw"]


@dataclass(frozen=True)
class DetectSpec(Spec):
    """How a detector is opened, and how every item is loaded, changed, cut, batched and scored.

    Examples
    --------
    >>> DetectSpec().changed(codecs="opus,mp3:1", window=2).codecs
    ('opus,mp3:1',)
    """

    _form, _option = "detection", "option"
    weights: Annotated[str | None, WEIGHTS] = None
    root: Annotated[str | None, ROOT] = None
    suffix: Annotated[str, SUFFIX] = ""
    file_column: Annotated[str | None, opt("Column with the paths, if it is not the id.", READING)] = None
    input: Annotated[Input, opt("What an item is; text: of a column.")] = "audio"
    picture: Annotated[str | None, opt(PICTURE, metavar="SETTINGS")] = None
    text_column: Annotated[str, opt("Column with the texts.", READING)] = "text"
    sample_rate: Annotated[int | None, opt("Sample rate that the detector needs (default: its own).")] = None
    cut_length: Annotated[int | None, opt("Repeat or cut each clip to this number of samples.")] = None
    length_rule: Annotated[LengthRule, opt("What is done with short clips.")] = "tile"
    window: Annotated[float | None, opt("Score windows of this many seconds.")] = None
    hop: Annotated[float | None, opt("Seconds between windows (default: half a window).")] = None
    pooling: Annotated[Pooling, opt("One score from windows.")] = "mean"
    codecs: Annotated[
        tuple[str, ...],
        opt("Codec plan (TSV) or a list, `opus,mp3:1`; may be repeated.", read=as_names, common=True),
    ] = ()
    manipulate: Annotated[tuple[str, ...], opt(MANIPULATE, read=as_names, common=True)] = ()
    only: Annotated[str | None, opt("With --manipulate: change this class only, `fake`.")] = None
    positive_index: Annotated[int | None, opt("Output column of the positive class.")] = None
    outputs: Annotated[OutputKind, opt("What the model gives; multilabel: a sigmoid per label.")] = "auto"
    embed: Annotated[tuple[str, ...], opt("Keep this layer's embeddings; may be repeated.", read=as_names)] = ()
    batch_seconds: Annotated[float | None, opt("Seconds of sound in a batch.", RUNNING)] = None
    batch_items: Annotated[int | None, opt("Most items in a batch.", RUNNING)] = None
    pad: Annotated[bool, opt("Pad clips of different lengths into one batch.", RUNNING)] = False
    workers: Annotated[int, opt("Number of processes that load items; 0: none.", RUNNING)] = 0
    device: Annotated[
        str, opt("auto, cpu, cuda, or several: cuda:0,cuda:1 (one process each).", RUNNING, common=True)
    ] = "auto"
    precision: Annotated[
        Literal["auto", "float32", "tf32", "bfloat16", "float16", "int8"],
        opt("Numbers of the network; auto is float32, int8 is for the CPU.", RUNNING),
    ] = "auto"
    compiled: Annotated[
        bool, opt("Compile a torch module; worth it for long runs of clips of one length.", RUNNING, "--compile")
    ] = False
    check: Annotated[int, opt("Number of clips scored again one by one, as a check.", RUNNING)] = 8

    def __post_init__(self) -> None:
        self._read_fields()
