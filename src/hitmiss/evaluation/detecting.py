"""Run a detector over the items of a manifest, as `hitmiss detect` does, and return the trials.

`Job` holds everything between the options of a caller and `run_detector`: the items (each under every codec or
manipulation), how one is loaded, changed and fitted, and the settings that identify the run.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from hitmiss.core.errors import UnknownName, UsageError
from hitmiss.core.finding import Remark
from hitmiss.core.keywords import DetectKeywords, ReadKeywords
from hitmiss.core.protocol import Protocol
from hitmiss.core.read_spec import ReadSpec
from hitmiss.core.spec import options_of
from hitmiss.core.trials import Trials
from hitmiss.detection.detect_spec import DetectSpec
from hitmiss.io.manifest import OF_MANIFESTS, Manifest, read_manifest
from hitmiss.io.reader import refuse_unread

if TYPE_CHECKING:
    from hitmiss.detection.detector import Detector
    from hitmiss.detection.outputs import Extraction
    from hitmiss.detection.preparation import Fit, Load, Transform
    from hitmiss.detection.settings import Settings
    from hitmiss.media.image import PictureInput


class DetectOptions(DetectKeywords, ReadKeywords, total=False):
    """The fields of `DetectSpec`, and of `ReadSpec` for the table of the items."""


RATE = 16000
"""Samples per second of sound, if neither the detector nor the caller says otherwise."""


def detect(
    detector: object,
    data: object,
    output: str | Path,
    *,
    protocol: str | Path | Protocol | None = None,
    load: Load | None = None,
    transform: Transform | None = None,
    limit: int | None = None,
    resume: bool = False,
    retry: bool = False,
    **options: Unpack[DetectOptions],
) -> Trials:
    """Run a detector over files and return its trials, as `hitmiss detect` does.

    The run folder `output` holds everything. It survives an interruption (`resume=True` goes on), and neither the batch
    size nor the number of workers changes a score.

    Parameters
    ----------
    detector
        A function from a batch to outputs, a torch module, an estimator, an ONNX session, or the text of `--detector`
        (`model.onnx`, `file.py:name`, `beats:checkpoint.pt`, `hf-audio:FOLDER`, …).
    data
        The items: a table (path or frame) with the file, the label and further columns; or a folder with one subfolder
        per class.
    output
        The run folder to write.
    protocol
        Read labels by the rules of a protocol.
    input
        What an item is: `audio`, `image`, `text` (of `text_column`) or `path`.
    load
        A function from a row of the table to an item, in place of `input`.
    transform
        A function of an item and its row that changes the item; in place of `codecs` and `manipulate`.
    root, suffix, file_column, text_column, limit
        The folder of the files, an ending added to each name, the columns with paths and texts, and how many rows to
        take.
    codecs, manipulate, only
        Score every item under each codec (`"opus,mp3:1"`) or manipulation (`"suite"`, `"noise(snr=15)"`), and change
        one class only.
    picture
        How a network takes pictures, `"resize=256, crop=224, scale=imagenet"`.
    sample_rate, cut_length, length_rule
        Samples per second of sound; the number of samples to which each clip is cut or extended, and how.
    window, hop, pooling
        Score windows of so many seconds, so many apart, and how they become one score.
    outputs, positive_index, higher
        What the detector gives (`auto`, `logit`, `multilabel`, `probability`, `raw`), the column of the positive class, and
        the class that a higher single output means.
    weights, device, precision, compiled, embed
        For a detector given as text: its checkpoint, where and how it computes, and layers whose values are kept.
    batch_seconds, batch_items, pad, workers
        How items are batched and loaded.
    resume, retry, check
        Go on with the run in the folder, try failed items again, and how many items are scored a second time alone.
    **options
        The fields of `DetectSpec`, as above, and read options for the table, fields of `ReadSpec` (`positive="fake"`,
        `columns={"label": "key"}`, …).

    Returns
    -------
    Trials
        The scored items, with log-odds as scores.

    Raises
    ------
    UsageError
        For options that contradict each other, or a table without labels.
    DataError
        If the table cannot be read, or every item fails.

    >>> import tempfile
    >>> import numpy as np, polars as pl
    >>> table = pl.DataFrame({"file": ["a", "b", "c", "d"], "label": ["real", "fake", "real", "fake"]})
    >>> louder = {"real": 2.0, "fake": 0.5}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     trials = detect(lambda batch: np.log(batch.std(axis=1)), table, f"{folder}/run",
    ...                     load=lambda row: np.tile([1.0, -1.0], 8000) * louder[row["label"]], positive="real")
    >>> trials.frame.select("item", "label", "score").rows()[:2]
    [('a', 1, 0.6931471805599453), ('b', 0, -0.6931471805599453)]
    """
    from hitmiss.detection.detector import as_detector
    from hitmiss.detection.loop import detect as make_run

    stated: dict[str, Any] = {name: value for name, value in options.items() if value is not None}
    spec = DetectSpec().changed(**{name: stated.pop(name) for name in options_of(DetectSpec) if name in stated})
    reading = ReadSpec().changed(**stated)
    manifest = find_manifest(data, protocol, reading, spec, limit)
    model = opened(detector, spec) if isinstance(detector, str) else as_detector(detector)
    job = Job.of(model, manifest, spec, reading.higher, load)
    if transform is not None and job.transform is not None:
        raise UsageError.of("two-transforms")
    return make_run(
        model,
        job.manifest,
        job.settings,
        resume=resume,
        retry=retry,
        output=output,
        load=job.load,
        transform=transform or job.transform,
        fit=job.fit,
    )


def opened(text: str, spec: DetectSpec) -> Detector:
    """Open the detector that a text names, as a spec says."""
    from hitmiss.detection.opening import open_detector

    return open_detector(
        text,
        weights=spec.weights,
        device=spec.device,
        precision=spec.precision,
        sample_rate=spec.sample_rate,
        layers=spec.embed,
        compiled=spec.compiled,
    )


@dataclass(frozen=True, eq=False)
class Job:
    """What `run_detector` takes: the items, how one is loaded, changed and fitted, and the settings."""

    manifest: Manifest
    settings: Settings
    load: Load
    transform: Transform | None = None
    fit: Fit | None = None
    notes: tuple[str, ...] = ()
    """What a caller should know: codecs that this machine lacks, parts of a suite that need further data."""

    @classmethod
    def of(
        cls, model: Detector, manifest: Manifest, spec: DetectSpec, higher: str | None = None, load: Load | None = None
    ) -> Job:
        """Settle the options of a run; see `detect`. `higher`: the class that a higher single output means."""
        from hitmiss.detection.length import fit_length
        from hitmiss.detection.loader import make_loader
        from hitmiss.detection.settings import Settings
        from hitmiss.findings.options import option as option_of

        has_window, has_cut, is_sound = spec.window is not None, spec.cut_length is not None, spec.input == "audio"
        needs = (
            ("only", spec.only is not None, "manipulate", bool(spec.manipulate)),
            ("hop", spec.hop is not None, "window", has_window),
            ("pooling", spec.pooling != "mean", "window", has_window),
            ("length-rule", spec.length_rule != "tile", "cut-length", has_cut),
            ("cut-length", has_cut, "input audio", is_sound),
            ("window", has_window, "input audio", is_sound),
        )
        for option, is_given, other, is_there in needs:
            if is_given and not is_there:
                raise UsageError.of("option-unused", option=option_of(f"--{option}"), other=option_of(f"--{other}"))
        is_own = spec.sample_rate is None and bool(model.sample_rate)
        rate = _agree_on_rate(model, spec.sample_rate, spec.input)
        notes: list[str] = []
        transform, manifest, coding = _coded(spec, manifest, rate, notes)
        if spec.manipulate:
            transform, manifest, coding = _manipulated(spec, manifest, rate, notes)
        shown = _picture(spec.picture, model, spec.input)
        fitting = {"cut_length": spec.cut_length, "rule": spec.length_rule} if has_cut else None
        pinned: dict[str, object] = {"input": spec.input, "sample_rate": rate, "length": fitting, "codecs": coding}
        pinned |= {} if shown is None else {"picture": asdict(shown)}
        pinned |= {"text_column": spec.text_column} if spec.input == "text" else {}
        settings = Settings(
            extraction=_extraction(spec, higher, manifest),
            window=_samples(spec.window, rate),
            hop=_samples(spec.hop, rate),
            pooling=spec.pooling,
            pad=spec.pad,
            pinned=pinned,
            rate_from=("the model" if is_own else "declared" if spec.sample_rate else "assumed") if is_sound else "",
            are_pictures=spec.input == "image",
            number_bytes=1 if shown is None else 4,
            batch_seconds=spec.batch_seconds,
            batch_items=spec.batch_items,
            workers=spec.workers,
            check=spec.check,
        )
        first = None if transform or spec.window else spec.cut_length  # no more of a file is read than is used
        fit: Fit | None = shown
        if shown is None and spec.cut_length is not None:
            fit = partial(fit_length, cut_length=spec.cut_length, rule=spec.length_rule)
        made = load or make_loader(spec.input, manifest, rate, spec.text_column, first)
        return cls(manifest, settings, made, transform, fit, tuple(notes))


def find_manifest(
    data: object,
    protocol: str | Path | Protocol | None,
    reading: ReadSpec,
    spec: DetectSpec,
    limit: int | None = None,
) -> Manifest:
    """Read the items of a run; a manifest is taken as it is."""
    if isinstance(data, Manifest):
        return data if limit is None else data.first(limit)
    refuse_unread(reading, (*OF_MANIFESTS, "higher"), "is about scores, and a manifest has none")
    options = replace(reading, higher=None)
    if protocol is not None:
        from hitmiss.evaluation.protocol import find_protocol

        options = options.over(find_protocol(protocol).read)
    manifest = read_manifest(data, root=spec.root, suffix=spec.suffix, file_column=spec.file_column, options=options)
    return manifest if limit is None else manifest.first(limit)


def _agree_on_rate(model: Detector, asked: int | None, kind: str) -> int | None:
    if kind != "audio":
        return model.sample_rate
    own = model.sample_rate
    if own and asked and own != asked:
        raise UsageError.of("other-rate/asked", model_name=model.name, own=own, asked=asked)
    model.sample_rate = own or asked or RATE
    return model.sample_rate


def _coded(
    spec: DetectSpec, manifest: Manifest, rate: int | None, notes: list[str]
) -> tuple[Transform | None, Manifest, object]:
    """Return the codecs as a transform, every item under each codec, and the settings that identify them."""
    if not spec.codecs:
        return None, manifest, None
    from hitmiss.attacks.codec_plan import parse_conditions, read_codec_plan, usable
    from hitmiss.attacks.conditions import CodedRows

    codecs = ",".join(spec.codecs)
    planned = read_codec_plan(codecs) if Path(codecs).is_file() else parse_conditions(codecs)
    conditions, missing = usable(planned)
    notes += [Remark.of("codec-left-out", name=name, why=why) for name, why in missing.items()]
    coded = CodedRows(conditions, rate or RATE)
    return coded, manifest.crossed(coded.columns), coded.pinned


def _manipulated(
    spec: DetectSpec, manifest: Manifest, rate: int | None, notes: list[str]
) -> tuple[Transform | None, Manifest, object]:
    """Return the manipulations as a transform, every item under each one, and the settings that identify them."""
    from hitmiss.attacks.channels import preset
    from hitmiss.attacks.conditions import ManipulatedRows
    from hitmiss.attacks.manipulation import MEDIA, SUITES
    from hitmiss.core.classes import same_class

    if spec.codecs:
        raise UsageError.of("two-manipulations")
    if spec.input not in MEDIA:
        raise UsageError.of("manipulation-unused", input=spec.input)
    classes = (manifest.positive, manifest.negative)
    named = next((c for c in classes if spec.only is not None and same_class(spec.only, c)), None)
    if spec.only is not None and named is None:
        raise UnknownName("class for --only", spec.only, classes)
    asked = [part.strip() for text in spec.manipulate for part in text.split(";") if part.strip()]
    if not asked:
        raise UsageError.of("no-manipulation", manipulate="; ".join(spec.manipulate))
    given = [one for text in asked for one in (SUITES[spec.input] if text == "suite" else preset(text) or (text,))]
    if "clad" in asked:
        notes.append(Remark.of("clad-without-noise"))
    changed = ManipulatedRows(given, medium=spec.input, sample_rate=rate or RATE, only=named)
    return changed, manifest.crossed(changed.columns), changed.pinned


def _extraction(spec: DetectSpec, higher: str | None, manifest: Manifest) -> Extraction:
    """Return how a score is made from the outputs of the detector."""
    from hitmiss.core.classes import same_class
    from hitmiss.detection.outputs import Extraction

    is_reversed = higher is not None and same_class(higher, manifest.negative)
    if higher is not None and not is_reversed and not same_class(higher, manifest.positive):
        raise UnknownName("class for a higher output", higher, (manifest.positive, manifest.negative))
    return Extraction(spec.positive_index, spec.outputs, is_reversed, higher is not None)


def _samples(seconds: float | None, rate: int | None) -> int | None:
    return None if seconds is None else round(seconds * (rate or RATE))


def _picture(text: str | None, model: Detector, input_: str) -> PictureInput | None:
    """Return how pictures are prepared for the network, as asked or as the model declares; None: left as they are."""
    from hitmiss.media.image import PictureInput

    if text is not None and input_ != "image":
        raise UsageError.of("option-unused/picture")
    if text is not None or input_ != "image":
        return None if text is None else PictureInput.of(text)
    module = getattr(model, "module", None)
    found = None if module is None else PictureInput.of_model(module)
    if module is not None and found is None:
        raise UsageError.of("picture-unknown", model_name=model.name)
    return found
