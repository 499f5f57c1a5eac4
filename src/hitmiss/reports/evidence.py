"""The worst errors of a run with the files behind them: sounds, pictures, signals, within a budget."""

from __future__ import annotations

import base64
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from itertools import pairwise, zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

import numpy as np
import polars as pl
from numpy.typing import ArrayLike

from hitmiss.attacks.codecs import Condition, find_codec, usable
from hitmiss.attacks.conditions import CodedRows, ManipulatedRows
from hitmiss.core.columns import user_name
from hitmiss.core.convert import fit
from hitmiss.core.errors import DataError, EnvironmentFault, HitmissError, UsageError
from hitmiss.core.kinds import ABSTAIN, FAILED
from hitmiss.core.sorting import Array, Floats
from hitmiss.core.trials import Trials
from hitmiss.io.manifest import inside, read_manifest
from hitmiss.io.reader import files_of, media_folder, read_rows, run_behind
from hitmiss.io.runs import as_manifest, load_manifest, run_facts
from hitmiss.media.image import load_image
from hitmiss.protocols.toxicity import load_run
from hitmiss.reports.displays import thin

if TYPE_CHECKING:
    from PIL.Image import Image

    from hitmiss.attacks.campaign import Recordings

# ----------------------------------------------------------------------
# Sounds, images and signals small enough to be embedded in a report: decoded, reduced, and encoded again.
#
# Nothing is copied as it is: an image is read as PNG, JPEG or WebP only, shrunk and written as JPEG; a sound is
# decoded and written as MP3; a signal becomes a line. So other content of a file never reaches the report.

Changed = Callable[[Array], Array | None]
"""The change made to a clip before a detector received it; None if it cannot be repeated."""
SECONDS: Final = 6.0
"""Number of seconds of a sound that are kept."""
RATE: Final = 16000
LONGEST: Final = 600.0
"""A sound longer than this many seconds is not opened at all."""
SIDE: Final = 224
"""Pixels of the longer side of a thumbnail."""
MOST_PIXELS: Final = 50_000_000
MOST_BYTES: Final = 64_000_000
IMAGES: Final = ("PNG", "JPEG", "WEBP")
TRACE_WIDTH, TRACE_HEIGHT = 480, 56
"""Height of a drawn signal per lead, in units."""
TRACE_GRAIN, TRACE_TOLERANCE = 4, 0.8
SPECTROGRAM: Final = (240, 72)
"""Size of a spectrogram in pixels."""
MOST_LEADS: Final = 3
SHOWN_LEADS: Final = {"II": 1, "V1": 6, "V5": 10}
"""The leads of the standard twelve that a small picture shows."""


@dataclass(frozen=True)
class Media:
    """A sound or an image as a data URL, or a signal as paths of an SVG; `about` describes it."""

    kind: str
    address: str = ""
    about: str = ""
    size: tuple[int, int] = (0, 0)
    traces: tuple[tuple[str, str], ...] = ()
    ticks: tuple[float, ...] = ()
    change: tuple[str, str] | None = None
    """The change of the first lead, on its own scale: in words, and as a path."""

    is_changed: bool = False
    """Whether a sound or an image is what the detector received, where the file holds something else."""

    before: str = ""
    """An image as its file holds it, where a run changed it."""

    spectrogram: str = ""
    """A sound as a picture of time and frequency."""

    over: tuple[str, ...] = ()
    """The traces again, after an attack."""

    paper: str = ""
    """The lines of the paper behind the traces."""

    @property
    def n_bytes(self) -> int:
        """Number of bytes that it adds to the page."""
        return (
            len(self.address)
            + len(self.before)
            + len(self.spectrogram)
            + len(self.about)
            + len(self.paper)
            + sum(map(len, self.over))
            + sum(len(name) + len(path) + 60 for name, path in (*self.traces, *((self.change,) if self.change else ())))
        )


@dataclass(frozen=True)
class Refusal:
    """The reason why a file is not shown."""

    name: str
    reason: str


def open_media(
    path: Path, changed: Changed | None = None, rate: int = RATE, *, lossless: bool = False
) -> Media | Refusal:
    """Recognise a file by its first bytes and make it small, or say why not. `lossless`: sounds as FLAC, not MP3.

    `changed` repeats the change of a sound or an image; if it returns None, the item is shown as it is in the file.
    """
    try:
        if path.stat().st_size > MOST_BYTES:
            return Refusal(path.name, f"it is larger than {MOST_BYTES // 1_000_000} MB")
        with path.open("rb") as file:
            kind = kind_of(file.read(16))
        if kind == "image":
            return image_of(path, changed)
        if kind == "sound":
            return sound_of(path, changed, rate, lossless=lossless)
    except (DataError, EnvironmentFault, OSError) as error:
        return Refusal(path.name, getattr(error, "strerror", None) or _without_name(str(error), path.name))
    return Refusal(path.name, "it is neither a PNG, JPEG or WebP image nor a known kind of sound")


def _without_name(text: str, name: str) -> str:
    return text.replace(f"{name}: ", "").replace(f" in {name}", "")


def kind_of(start: bytes) -> str:
    """Return `image`, `sound` or an empty text, by how a file begins; its name is ignored.

    >>> kind_of(b"<svg xmlns='ht"), kind_of(b"\\x89PNG\\r\\n\\x1a\\n"), kind_of(b"RIFF....WAVEfmt ")
    ('', 'image', 'sound')
    """
    if start.startswith((b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff")) or (start[:4] == b"RIFF" and start[8:12] == b"WEBP"):
        return "image"
    sounds = (b"fLaC", b"OggS", b"ID3", b"#!AMR", b"FORM", b".snd", b"\x1aE\xdf\xa3")
    if start.startswith(sounds) or (start[:4] == b"RIFF" and start[8:12] == b"WAVE") or start[4:8] == b"ftyp":
        return "sound"
    return "sound" if len(start) > 1 and start[0] == 0xFF and start[1] & 0xE0 == 0xE0 else ""


def image_of(path: Path, changed: Changed | None = None) -> Media | Refusal:
    """Return a thumbnail; of a picture that a run changed, one before and one after the change."""
    from PIL import Image, ImageOps

    try:
        with Image.open(path, formats=IMAGES) as opened:
            width, height = opened.size
            if width * height > MOST_PIXELS:
                return Refusal(path.name, f"it has {width} × {height} pixels")
            if changed is None:
                opened.draft("RGB", (2 * SIDE, 2 * SIDE))
            upright = ImageOps.exif_transpose(opened)
            user_name = upright.convert("RGBA")
        flat = Image.new("RGB", user_name.size, (255, 255, 255))
        flat.paste(user_name, mask=user_name.getchannel("A"))
    except (OSError, ValueError, SyntaxError, EOFError, Image.DecompressionBombError, Image.DecompressionBombWarning):
        return Refusal(path.name, "it is a broken image")
    before, size = _thumbnail(flat)
    shown_at = f"shown at {size[0]} × {size[1]} and coded anew as JPEG, so fine artefacts differ"
    about = f"{width} × {height} pixels, {shown_at}"
    after = changed(load_image(path)) if changed is not None else None
    if after is None:
        return Media("image", before, about, size)
    received, size = _thumbnail(Image.fromarray(np.clip(np.asarray(after), 0, 255).astype(np.uint8)).convert("RGB"))
    return Media("image", received, about, size, is_changed=True, before=before)


def _thumbnail(picture: Image) -> tuple[str, tuple[int, int]]:
    """Return a picture made small, as a data URL, and its size."""
    picture.thumbnail((SIDE, SIDE))
    packed = io.BytesIO()
    picture.save(packed, "JPEG", quality=74, optimize=True)
    return _address("image/jpeg", packed.getvalue()), picture.size


def sound_of(
    path: Path, changed: Changed | None = None, rate: int = RATE, *, lossless: bool = False
) -> Media | Refusal:
    """Return the first seconds of a sound with its spectrogram; `is_changed` says whether a change was repeated."""
    from hitmiss.media.audio import load_audio, need

    clip = load_audio(path, rate, max_seconds=LONGEST)
    after = changed(clip) if changed is not None else None
    seconds = len(clip) / rate
    kept = (clip if after is None else np.asarray(after))[: int(SECONDS * rate)]
    peak = float(np.abs(kept).max(initial=0.0))
    packed = io.BytesIO()
    form: dict[str, object] = {"format": "MP3", "subtype": "MPEG_LAYER_III", "compression_level": 0.6}
    if lossless:
        form = {"format": "FLAC", "subtype": "PCM_16"}
    try:
        need("soundfile").write(packed, kept / max(peak, 1.0), rate, **form)
    except (TypeError, ValueError, RuntimeError):
        return Refusal(path.name, f"this soundfile cannot write {form['format']}")
    about = f"first {SECONDS:g} of {seconds:.1f} s" if seconds > SECONDS else f"{seconds:.1f} s"
    kind, how = (
        ("audio/flac", "lossless") if lossless else ("audio/mpeg", "coded anew as MP3, so fine artefacts differ")
    )
    return Media(
        "sound",
        _address(kind, packed.getvalue()),
        f"{about} at {rate / 1000:g} kHz, {how}",
        is_changed=after is not None,
        spectrogram=spectrogram_of(kept, rate),
    )


def spectrogram_of(clip: ArrayLike, rate: int) -> str:
    """Draw the magnitudes of a clip over time and frequency as a small grey picture: dark is loud, over 70 dB.

    >>> spectrogram_of(np.sin(np.arange(16000) / 3), 16000)[:22]
    'data:image/jpeg;base64'
    """
    from PIL import Image

    window = 512 if rate >= 8000 else 256
    signal = np.asarray(clip, dtype=np.float64)
    signal = np.pad(signal, (0, max(0, 2 * window - len(signal))))
    hop = max(len(signal) // SPECTROGRAM[0], 1)
    starts = np.arange(0, len(signal) - window, hop)[: SPECTROGRAM[0]]
    frames = signal[starts[:, None] + np.arange(window)] * np.hanning(window)
    power = 20 * np.log10(np.abs(np.fft.rfft(frames, axis=1)) + 1e-9).T[::-1]
    level = np.clip((power - power.max()) / 70.0 + 1.0, 0.0, 1.0)
    picture = Image.fromarray((255 - 235 * level).astype(np.uint8)).resize(SPECTROGRAM, Image.Resampling.BILINEAR)
    packed = io.BytesIO()
    picture.save(packed, "JPEG", quality=55, optimize=True)
    return _address("image/jpeg", packed.getvalue())


def trace_of(x: ArrayLike, rate: float, after: ArrayLike | None = None, how: str = "") -> Media:
    """Draw a signal (sample × lead) as thin lines; of the standard twelve leads, three.

    `after`: the same as `how` says it was changed; the change of the first lead is drawn below, on a scale of its own (it is
    often too small to be seen on that of the signal), in the unit of the signal, which is mV.

    >>> drawn = trace_of(np.sin(np.arange(500) / 20)[:, None], 100.0)
    >>> drawn.kind, len(drawn.traces), drawn.ticks[:2]
    ('trace', 1, (96.0, 192.0))
    """
    signal = np.asarray(x, dtype=np.float64)
    chosen = list(SHOWN_LEADS.items()) if signal.shape[1] == 12 else _numbered(signal.shape[1])
    kept = signal[:, [at for _, at in chosen]]
    kept = kept - np.median(kept, axis=0)
    scale = (TRACE_HEIGHT / 2 - 2) / max(float(np.abs(kept).max(initial=0.0)), 1e-9)
    across = np.linspace(0.0, TRACE_WIDTH, len(kept))

    def drawn(values: Floats) -> tuple[str, ...]:
        return tuple(_path(across, TRACE_HEIGHT / 2 - scale * values[:, i]) for i in range(len(chosen)))

    traces = tuple(zip((name for name, _ in chosen), drawn(kept), strict=True))
    change: tuple[str, str] | None = None
    over: tuple[str, ...] = ()
    if after is not None:
        changed = np.asarray(after, dtype=np.float64)
        change = _change(across, (changed - signal)[:, chosen[0][1]], chosen[0][0], how)
        at = [i for _, i in chosen]
        over = drawn(changed[:, at] - np.median(signal[:, at], axis=0))
    seconds = len(kept) / rate
    ticks = tuple(round(TRACE_WIDTH * s / seconds, 1) for s in range(1, int(np.ceil(seconds))))
    size = (TRACE_WIDTH, TRACE_HEIGHT * (len(traces) + (change is not None)))
    about = f"{seconds:.3g} s; a square is 0.2 s × 0.5 mV" + (", attacked over clean" if over else "")
    paper = _paper(seconds, scale, len(traces))
    return Media("trace", about=about, size=size, traces=traces, ticks=ticks, change=change, over=over, paper=paper)


def _paper(seconds: float, scale: float, leads: int) -> str:
    """Return the lines of ECG paper: vertical every 0.2 s, horizontal every 0.5 mV from the middle of each lead."""
    step, mv = TRACE_WIDTH * 0.2 / seconds, 0.5 * scale
    if step < 1.5 or mv < 1.5:
        return ""
    upright = "".join(f"M{x:.1f} 0V{TRACE_HEIGHT * leads}" for x in np.arange(step, TRACE_WIDTH, step))
    half = int(TRACE_HEIGHT / 2 / mv)
    middles = [TRACE_HEIGHT * (i + 0.5) for i in range(leads)]
    across = "".join(f"M0 {m + k * mv:.1f}H{TRACE_WIDTH}" for m in middles for k in range(-half, half + 1))
    return upright + across


def _change(across: Floats, delta: Floats, lead: str, how: str) -> tuple[str, str]:
    """Describe a change in words, with its greatest size in µV, and return its path."""
    most = float(np.abs(delta).max(initial=0.0))
    middle, half = TRACE_HEIGHT - 20, 17  # space above for the words
    path = _path(across, middle - half / max(most, 1e-9) * delta)
    return f"{lead} {how}: changed by up to {1000 * most:.3g} µV".strip(), path


def _numbered(n: int) -> list[tuple[str, int]]:
    return [(f"lead {i + 1}" if n > 1 else "", i) for i in range(min(n, MOST_LEADS))]


def _path(x: Floats, y: Floats) -> str:
    """Return an SVG path through the visible points, as steps from each to the next, in quarters of a unit."""
    at = thin(x, y, TRACE_TOLERANCE)
    points: Sequence[tuple[int, int]] = [
        (round(TRACE_GRAIN * a), round(TRACE_GRAIN * b)) for a, b in zip(x[at], y[at], strict=True)
    ]
    steps = [f"{b[0] - a[0]} {b[1] - a[1]}" for a, b in pairwise(points)]
    return f"M{points[0][0]} {points[0][1]}l{' '.join(steps).replace(' -', '-')}" if points else ""


def _address(kind: str, content: bytes) -> str:
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"


# ----------------------------------------------------------------------
# Clips and pictures as a detector received them: the changes that a run made to each are repeated.
#
# `hitmiss detect --codecs` and `--manipulate` record which codecs at which rates, or which manipulations, of which
# class, with which seed; the change of a clip follows from that and its row alone. What cannot be repeated (a codec
# that this machine lacks, a function given in Python) is left as it was.

Row = Mapping[str, object]
RATES: Final = (8000, 11025, 12000, 16000, 22050, 24000, 32000, 44100, 48000)
"""Sample rates that MP3 supports."""


@dataclass(frozen=True, eq=False)
class Remaking:
    """The changes that a run made to its items, at their sample rate; `classes` names positive and negative."""

    done: CodedRows | ManipulatedRows
    rate: int
    classes: tuple[str, str]

    def __call__(self, clip: Array, row: Row) -> Array | None:
        """Return the clip of a row as the detector received it; None if it cannot be recreated."""
        named = {name: str(value) for name, value in row.items()}
        named["label"] = self.classes[0] if row.get("label") == 1 else self.classes[1]
        try:
            changed = self.done(clip, named)
            return changed if isinstance(changed, np.ndarray) else None
        except (HitmissError, KeyError):
            return None


def remaking_of(run: Path) -> Remaking | None:
    """Return the changes of a `hitmiss detect` run over sounds or pictures; None if none were made or can be repeated."""
    manifest = load_manifest(run)
    config, facts = as_manifest(manifest).config, run_facts(manifest)
    pinned, rate, medium = config.get("codecs"), config.get("sample_rate") or 16000, config.get("input")
    if not isinstance(pinned, dict) or not pinned or not isinstance(rate, int) or rate not in RATES:
        return None
    if not isinstance(medium, str) or medium not in ("audio", "image"):
        return None
    try:
        done = _manipulated(pinned, rate, medium) if "manipulations" in pinned else _coded(pinned, rate)
    except (HitmissError, KeyError, TypeError, ValueError):
        return None
    return Remaking(done, rate, (str(facts.positive), str(facts.negative)))


def _manipulated(pinned: Mapping[str, object], rate: int, medium: str) -> ManipulatedRows:
    only = None if pinned["only"] is None else fit(str, pinned["only"])
    given, seed = fit(list[str], pinned["manipulations"]), fit(int, pinned["seed"])
    return ManipulatedRows(given, medium=medium, sample_rate=rate, only=only, seed=seed)


def _coded(pinned: Mapping[str, object], rate: int) -> CodedRows:
    """Return the conditions from their names, `C01-q2`, and their fixed settings: codec, sample rate and bit rate."""
    found = []
    for text, settings in pinned.items():
        name, sample_rate, kbps = fit(list[object], settings)
        label, _, quality = text.rpartition("-q")
        at = int(quality)
        codec = find_codec(fit(str, name))
        codec = replace(codec, label=label, sample_rate=fit(int, sample_rate), kbps=(fit(float, kbps),) * at)
        found.append(Condition(codec, at))
    return CodedRows(usable(found)[0], rate)


# ----------------------------------------------------------------------
# Where the files of trials are: next to a score file that names them, in the folder of a run's manifest, in an `.npz`.
#
# A file is looked up by the id of a trial, and shown only if it is inside the folder after following every link.

COLUMNS: Final = ("file", "path", "filename", "audio", "image", "media")
NAMED: Final = ("image", "image_path", "audio", "audio_path")
ENDINGS: Final = ("", ".flac", ".wav", ".mp3", ".ogg", ".m4a", ".png", ".jpg", ".jpeg", ".webp")
"""Extensions that an id may omit."""
TABLES: Final = (".tsv", ".csv", ".txt", ".jsonl", ".parquet")
TRIED: Final = 20


class Shelf(Protocol):
    """Finds the content that belongs to a row of trials."""

    def find(self, row: Mapping[str, object]) -> Media | Refusal | None:
        """Return the sound, image or signal of a row, or a refusal with its reason; None without anything to show."""


@dataclass(frozen=True, eq=False)
class FileShelf:
    """Files in a folder, named by a table, by a column of the trials, or by the ids themselves."""

    root: Path
    files: Mapping[str, str] = field(default_factory=dict)
    column: str | None = None
    remaking: Remaking | None = None
    lossless: bool = False

    def find(self, row: Mapping[str, object]) -> Media | Refusal | None:
        """See `Shelf`."""
        name = self._name(row)
        if name is None:
            return None
        user_name = Path(name).name[:120]
        try:
            path = next((p for p in (inside(self.root, name + e) for e in ENDINGS) if p.is_file()), None)
        except (DataError, OSError, ValueError):
            return Refusal(user_name, "its path leads out of the folder of the files")
        if path is None:
            return Refusal(user_name, "there is no such file")
        how, again = change_of(row), self.remaking
        made_again = (lambda clip: again(clip, row)) if how and again is not None else None
        rate = again.rate if again is not None else RATE
        found = open_media(path, made_again, rate, lossless=self.lossless)
        return _said(found, how) if isinstance(found, Media) else Refusal(user_name, found.reason)

    def _name(self, row: Mapping[str, object]) -> str | None:
        item = str(row["item"])
        named = self.files.get(item) or (row.get(self.column) if self.column else None)
        if named or self.files:
            return str(named) if named else None
        return str(row.get("source") or item)

    def holds_any(self, trials: Trials) -> bool:
        """Say whether some of the first files exist."""
        rows = trials.frame.head(TRIED).iter_rows(named=True)
        return any(self._is_there(name) for row in rows if (name := self._name(row)) is not None)

    def _is_there(self, name: str) -> bool:
        try:
            return any(inside(self.root, name + ending).is_file() for ending in ENDINGS)
        except (DataError, OSError, ValueError):
            return False


def change_of(row: Mapping[str, object]) -> str:
    """Describe the change of a clip, as its id records it; empty if it was not changed."""
    source, item = str(row.get("source") or ""), str(row["item"])
    if not source or item == source or not item.startswith(f"{source}@"):
        return ""
    how = item.removeprefix(f"{source}@")
    return "" if how in ("clean", "NONE", "NONE-NONE", "NONE--") else how


def _said(found: Media, how: str) -> Media:
    """Say for a changed clip whether it is shown as the detector received it (made again) or as it was before."""
    told = "" if not how else f", made again: {how[:60]}" if found.is_changed else f", before {how[:60]}"
    return replace(found, about=found.about + told)


@dataclass(frozen=True, eq=False)
class SignalShelf:
    """Recordings in one `.npz`, by their ids; also after an attack, if the run stored its signals."""

    path: Path
    run: Path | None = None

    @cached_property
    def _recordings(self) -> Recordings:
        from hitmiss.attacks.campaign import read_recordings

        return read_recordings(self.path)

    @cached_property
    def _places(self) -> dict[str, int]:
        return {item: i for i, item in enumerate(self._recordings.ids)}

    def find(self, row: Mapping[str, object]) -> Media | Refusal | None:
        """See `Shelf`."""
        at = self._places.get(str(row["item"]))
        if at is None:
            return Refusal(str(row["item"])[:120], f"{self.path.name} has no such record")
        after, how = self._attacked(row)
        return trace_of(self._recordings.x[at], self._recordings.fs, after, how)

    def _attacked(self, row: Mapping[str, object]) -> tuple[Array | None, str]:
        """Return the record of a row after the attack that the row names, and that attack in words."""
        from hitmiss.attacks.campaign import has_signals, read_signals

        if self.run is None or "attack" not in row or not has_signals(self.run):
            return None, ""
        said = {name: str(row[name]) for name in ("attack", "strength", "aim", "place") if name in row}
        return read_signals(self.run, **said, records=[str(row["item"])])[1][
            0
        ], f"under {said['attack']} {said['strength']}"


@dataclass(frozen=True, eq=False)
class Shelves:
    """Several shelves, searched in turn; if none has the content, the answer of the last one counts."""

    shelves: tuple[Shelf, ...]

    def find(self, row: Mapping[str, object]) -> Media | Refusal | None:
        """See `Shelf`."""
        found: Media | Refusal | None = None
        for shelf in self.shelves:
            found = shelf.find(row) or found
            if isinstance(found, Media):
                return found
        return found


@dataclass(frozen=True)
class OutsideShelf:
    """Files outside the folder of their run. The author of a run could have named any place on this machine."""

    def find(self, row: Mapping[str, object]) -> Media | Refusal | None:
        """See `Shelf`."""
        reason = "it lies outside the run's folder; name the folder of the files with --media to show it"
        return Refusal(str(row["item"])[:120], reason)


Texts = Callable[[], Mapping[str, str]]
"""Reads the text of each item if the trials were read without texts: once, when the first is needed."""


def texts_of_predictions(folder: str, tag: str) -> Texts:
    """Return the texts in prediction files of a run tag, by the ids of the trials."""

    @cache
    def read() -> Mapping[str, str]:
        run = load_run(folder, tag, whole=True)
        raw, frame = run.predictions.raw, run.predictions.frame
        texts = [f["text"].to_list() if "text" in f.columns else None for f in raw]
        places = zip(run.trials.items, frame["file"], frame["row"], strict=True)
        return {item: own[row] for item, file, row in places if (own := texts[file]) is not None}

    return read


@dataclass(frozen=True)
class Remarks:
    """The reasons that a model gives: the rationale of each answer in the rows of a triage."""

    texts: Mapping[tuple[str, str, str, str], str]

    def of(self, row: Mapping[str, object]) -> str:
        """Return the rationale of the answer in a row of trials; empty if it is unknown."""
        model, tools, trial = (str(row.get(name) or "") for name in ("model", "tools", "trial"))
        return self.texts.get((str(row["item"]), model, tools, trial), "")


def remarks_beside(source: str | Path) -> Remarks | None:
    """Read the rationales in a file of answers (JSON lines of the triage evaluation document); None without any."""
    path = Path(source)
    if path.suffix.lower() != ".jsonl" or not path.is_file():
        return None
    with path.open("rb") as file:
        if b'"rationale"' not in file.readline(1 << 20):
            return None
    found: dict[tuple[str, str, str, str], str] = {}
    for row in read_rows(path).frame.to_dicts():
        tools = {"true": "tools", "false": "no-tools"}.get(str(row.get("use_tools") or "").lower(), "")
        key = (str(row.get("id") or ""), str(row.get("model") or ""), tools, str(row.get("trial") or ""))
        found[key] = str(row.get("rationale") or "")
    return Remarks(found)


def open_shelf(place: str | Path) -> Shelf:
    """Open what `--media` names: a folder of files, a manifest that lists the file of each item, or an `.npz`."""
    path = Path(place)
    if path.is_dir():
        return FileShelf(path)
    if not path.is_file():
        raise UsageError(f"there is no {path.name} to take sounds, images or signals from")
    if path.suffix == ".npz":
        return SignalShelf(path)
    if path.suffix.lower() not in TABLES:
        raise UsageError(f"--media {path.name}: give a folder, a manifest ({', '.join(TABLES)}) or an .npz of signals")
    manifest = read_manifest(str(path), are_labels_read=False)
    return FileShelf(path.parent, dict(zip(manifest.items, manifest.frame["file"].to_list(), strict=True)))


def lossless(shelf: Shelf | None) -> Shelf | None:
    """Return the shelf with its sounds as FLAC, sample for sample, instead of MP3."""
    if isinstance(shelf, FileShelf):
        return replace(shelf, lossless=True)
    if isinstance(shelf, Shelves):
        return Shelves(tuple(s for s in map(lossless, shelf.shelves) if s is not None))
    return shelf


def shelf_of(source: str | Path, trials: Trials, places: Sequence[str] = ()) -> Shelf | None:
    """Return the files of trials: as the user says (`--media`), else as a run or a score file records them."""
    run = run_behind(source)
    own = _of_run(run, places) if run is not None else None
    if own is None and run is None:
        own = shelf_beside(source, trials)
    if not places or (run is not None and own is not None and not isinstance(own, OutsideShelf)):
        return own
    named = [open_shelf(place) for place in places]
    if len(named) > 1:  # each of several places may belong to another run
        named = [shelf for shelf in named if not isinstance(shelf, FileShelf) or shelf.holds_any(trials)]
    if isinstance(own, FileShelf) and own.files:
        named = [own, *named]  # the rows name their files, which are next to them
    return Shelves(tuple(named)) if named else own


def shelf_beside(source: str | Path, trials: Trials) -> Shelf | None:
    """Return the files that a run or a score file records; None if it records none, or they no longer exist.

    Files of a run are shown only if they are inside its folder, because a run may come from an unknown source.
    """
    path = Path(source)
    run = run_behind(path)
    if run is not None:
        return _of_run(run)
    if not path.is_file():
        return None
    column = next((c for c in COLUMNS if c in trials.header.slices), None)
    files = _named_in(path) if column is None else {}
    shelf = FileShelf(path.parent, files, column)
    return shelf if (files or column) and shelf.holds_any(trials) else None


def _named_in(path: Path) -> dict[str, str]:
    """Return the file of each item if results of a triage name it; such a column is not a property to split by."""
    with path.open("rb") as file:
        first = file.readline(1 << 20)
    if path.suffix.lower() != ".jsonl" or not any(b'"%s"' % name.encode() in first for name in NAMED):
        return {}
    rows = read_rows(path).frame.to_dicts()
    named = [(row.get("id"), next((row[n] for n in NAMED if row.get(n)), None)) for row in rows]
    return {item: file for item, file in named if item and file}


def _of_run(folder: Path, named: Sequence[str] = ()) -> Shelf | None:
    """Return the files of a run: inside its folder, or inside a place that the user has named."""
    place = media_folder(folder)
    if place is None or not place.exists():
        return None
    roots = [folder, *map(Path, named)]
    if not any(place.resolve().is_relative_to(root.resolve()) for root in roots):
        return OutsideShelf()
    if place.suffix == ".npz":
        return SignalShelf(place, folder) if place.is_file() else None
    files = files_of(folder)
    return FileShelf(place, files, remaking=remaking_of(folder)) if files and place.is_dir() else None


# ----------------------------------------------------------------------
# Evidence: the wrongly answered trials, the most confident first, with the answer of every run for each of them.
#
# A budget of bytes limits what is shown: first all words (ids, truths, answers, texts, rationales), then as many
# sounds and pictures as fit. Everything from outside is treated as text; the page escapes it.

MOST: Final = 30
"""Number of errors of each kind and run that are shown."""
BUDGET: Final = 300_000
"""Bytes that all samples of a report may take together."""
LONGEST_TEXT: Final = 600
"""Characters of a text that are shown; a longer text is cut and marked."""
TEXTS: Final = ("text", "comment_text", "comment", "sentence", "transcript")
SHOWN_SLICES: Final = 4
MOST_REFUSALS: Final = 5
"""Number of files that are not shown but named one by one."""
RIGHT, WRONG, SILENT = "right", "wrong", "no answer"


@dataclass(frozen=True)
class Answer:
    """The answer of one run for an item: right, wrong or none, with its score or confidence, and the reason."""

    run: str
    outcome: str
    score: float | None = None
    confidence: float | None = None
    said: str = ""
    rationale: str = ""


@dataclass(frozen=True)
class Sample:
    """One wrongly answered trial."""

    item: str
    truth: str
    score: float | None
    confidence: float | None
    slices: tuple[tuple[str, str], ...]
    text: str = ""
    media: Media | None = None
    answers: tuple[Answer, ...] = ()
    state: tuple[tuple[str, str], ...] = ()
    """How the answer was made: from a cache, after retries, under which attack or codec."""
    people: str = ""

    @property
    def runs(self) -> tuple[tuple[str, str], ...]:
        """Return which run was right, wrong or without an answer."""
        return tuple((a.run, a.outcome) for a in self.answers)

    @property
    def size(self) -> int:
        """Number of bytes of what is shown in words."""
        answers = [text for a in self.answers for text in (a.run, a.said, a.rationale)]
        pairs = [v for pair in (*self.slices, *self.state) for v in pair]
        parts = (self.item, self.truth, self.text, self.people, *answers, *pairs)
        return sum(len(p.encode("utf-8", "backslashreplace")) for p in parts)


@dataclass(frozen=True)
class Errors:
    """Wrongly answered trials, the most confident first, under a title for each kind."""

    run: str
    rule: str
    titles: tuple[str, str]
    false_alarms: tuple[Sample, ...]
    misses: tuple[Sample, ...]
    left_out: int = 0
    notes: tuple[str, ...] = ()

    @property
    def samples(self) -> tuple[Sample, ...]:
        """All samples."""
        return (*self.false_alarms, *self.misses)

    @property
    def n_bytes(self) -> int:
        """Number of bytes that they take of the budget."""
        return sum(s.size + (s.media.n_bytes if s.media else 0) for s in self.samples)


@dataclass(frozen=True, eq=False)
class Witness:
    """One run whose errors are shown: its trials, the threshold for scores without decisions, where its files are, the
    reasons for its answers, and the verdicts of people on its items."""

    run: str
    trials: Trials
    threshold: float | None = None
    shelf: Shelf | None = None
    remarks: Remarks | None = None
    people: Mapping[str, str] = field(default_factory=dict)
    texts: Texts | None = None


Kinds = tuple[list[tuple[Sample, Row]], ...]


def evidence(witnesses: Sequence[Witness], *, most: int = MOST, texts: bool = True, budget: int = BUDGET) -> Errors:
    """Return the worst errors of several runs on the same items, each item once, with the answer of every run.

    With decisions, an error is a wrong decision; errors are ordered by confidence, else by score. Without decisions these
    are the negatives with the highest and the positives with the lowest scores among those that the threshold makes wrong.

    Parameters
    ----------
    witnesses
        The runs.
    most
        How many of each kind every run gives.
    texts
        Whether texts, rationales, sounds, images and signals may be shown.
    budget
        Bytes that all of it may take.
    """
    head = witnesses[0].trials.header
    titles = f"{head.negative} taken for {head.positive}", f"{head.positive} taken for {head.negative}"
    decided = any("decision" in w.trials.frame.columns for w in witnesses)
    rule = "Wrong decisions, the most confident first"
    if not decided:
        rule = "No decision was made, so these are the most misleading scores"
        if any(w.threshold is not None for w in witnesses):
            rule += " of the trials that are wrong at the threshold of each run's equal error rate"
    ranked = [_ranked(w) for w in witnesses]
    if all(frame is None for frame in ranked):
        return Errors(witnesses[0].run, "There is no score to order them by", titles, (), ())
    kinds: Kinds = ([], [])
    for label in (0, 1):
        own = [_worst(frame, label, most) if frame is not None else [] for frame in ranked]
        chosen = dict.fromkeys(str(row["item"]) for turn in zip_longest(*own) for row in turn if row is not None)
        pairs = sorted(zip(witnesses, own, strict=True), key=lambda pair: pair[0].shelf is not None)
        rows = {str(row["item"]): (w, row) for w, found in pairs for row in found}  # prefer a run that has files
        said = _said_of(witnesses, list(chosen), texts) if len(witnesses) > 1 or decided else {}
        for item in chosen:
            witness, row = rows[item]
            kinds[label].append((_sample(witness, row, texts, said.get(item, ())), {**row, ":witness": witness.run}))
    shelves = {w.run: w.shelf for w in witnesses if w.shelf is not None} if texts else {}
    found = within(
        Errors(witnesses[0].run, rule, titles, (), ()), kinds, budget, _Shelves(shelves) if shelves else None
    )
    if not any(kinds):
        found = replace(found, rule="No trial is answered wrongly")
    return replace(found, run="") if len(witnesses) > 1 else found


def _ranked(witness: Witness) -> pl.DataFrame | None:
    """Return the rows that are or may be errors, with how misleading each is; None if nothing orders them."""
    frame = witness.trials.frame
    if "decision" in frame.columns:
        frame = frame.filter(pl.col("decision").is_in([0, 1]), pl.col("decision") != pl.col("label"))
    elif "score" in frame.columns and witness.threshold is not None:
        frame = frame.filter((pl.col("score") >= witness.threshold) != (pl.col("label") == 1))
    order = next((c for c in ("confidence", "score") if c in frame.columns), None)
    if order is None:
        return None
    towards = (
        pl.col(order) if order == "confidence" else pl.when(pl.col("label") == 0).then(order).otherwise(-pl.col(order))
    )
    return frame.with_columns(towards.alias(":misled")).drop_nulls(":misled")


def _worst(frame: pl.DataFrame, label: int, most: int) -> list[dict[str, object]]:
    own = frame.filter(pl.col("label") == label).sort(":misled", "item", descending=[True, False])
    own = own.unique("item", keep="first", maintain_order=True).head(most)  # of repeated trials, the worst one
    return own.drop(":misled").to_dicts()


def _said_of(witnesses: Sequence[Witness], items: Sequence[str], texts: bool) -> dict[str, tuple[Answer, ...]]:
    """Return the answer of every run for the items; of repeated trials a wrong one if any, and how often it came."""
    found: dict[str, list[Answer]] = {}
    for witness in witnesses:
        own = witness.trials.frame.filter(pl.col("item").is_in(list(items)))
        for rows in own.partition_by("item", maintain_order=True):
            every = [(_answer(witness, row, texts), row) for row in rows.iter_rows(named=True)]
            answer = next((a for a, _ in every if a.outcome == WRONG), every[0][0])
            alike = sum(a.said == answer.said for a, _ in every)
            often = f"{answer.said} in {alike} of {len(every)} trials" if len(every) > 1 else answer.said
            found.setdefault(str(every[0][1]["item"]), []).append(replace(answer, said=often))
    return {item: tuple(answers) for item, answers in found.items()}


def _answer(witness: Witness, row: Row, texts: bool) -> Answer:
    head, decision = witness.trials.header, row.get("decision")
    score, confidence = _numbers(row)
    if "decision" not in row and witness.threshold is not None and score is not None:
        decision = int(score >= witness.threshold)
    outcome = (RIGHT if decision == row["label"] else WRONG) if decision in (0, 1) else SILENT
    said = {1: head.positive, 0: head.negative, ABSTAIN: "uncertain"}.get(
        decision if isinstance(decision, int) else FAILED, ""
    )
    why = witness.remarks.of(row) if witness.remarks is not None and texts else ""
    own = None if score is None else head.scale.turned(score)
    return Answer(witness.run, outcome, own, confidence, said, _cut(why))


def _numbers(row: Row) -> tuple[float | None, float | None]:
    found = [row.get(name) for name in ("score", "confidence")]
    score, confidence = (float(v) if isinstance(v, int | float) else None for v in found)
    return score, confidence


def _cut(text: str) -> str:
    return f"{text[:LONGEST_TEXT]}… ({len(text):,} characters)" if len(text) > LONGEST_TEXT else text


def _sample(witness: Witness, row: Row, texts: bool, answers: tuple[Answer, ...]) -> Sample:
    head = witness.trials.header
    column = next((c for c in TEXTS if c in row), None)
    text = str(row[column] or "") if column and texts else ""
    if not text and texts and witness.texts is not None:
        text = witness.texts().get(str(row["item"]), "")
    slices = [(user_name(c), str(row[c])[:80]) for c in head.slices if c not in (*TEXTS, *COLUMNS, "source")][
        :SHOWN_SLICES
    ]
    truth = head.positive if row["label"] == 1 else head.negative
    score, confidence = _numbers(row)
    answers = answers or ((_answer(witness, row, texts),) if witness.remarks is not None else ())
    item = str(row["item"])
    people = witness.people.get(item, "") if texts else ""
    state = tuple(pair for pair in _state(row) if pair not in slices)
    own = None if score is None else witness.trials.header.scale.turned(score)
    return Sample(item[:200], truth, own, confidence, tuple(slices), _cut(text), None, answers, state, people)


def _state(row: Row) -> tuple[tuple[str, str], ...]:
    """Describe how an answer was made, as far as its row records it."""
    said = [("cache", str(row["cache"]))] if row.get("cache") not in (None, "", "unknown") else []
    said += [("retries", f"{row['retries']:g}")] if row.get("retries") else []
    said += [("changed by", how[:80])] if (how := change_of(row)) else []
    said += [(name, str(row[name])[:80]) for name in ("attack", "strength") if row.get(name) not in (None, "")]
    return tuple(said)


@dataclass(frozen=True)
class _Shelves:
    """The shelf of the run to which a row belongs."""

    by_run: Mapping[str, Shelf]

    def find(self, row: Row) -> Media | Refusal | None:
        """See `Shelf`."""
        shelf = self.by_run.get(str(row[":witness"]))
        return shelf.find(row) if shelf is not None else None


def within(bare: Errors, kinds: Kinds, budget: int, shelf: Shelf | None) -> Errors:
    """Return samples of both kinds in turn until the budget is spent: first all words, then sounds and pictures."""
    kept: Kinds = ([], [])
    left = budget
    for i, sample, row in _in_turn(kinds):
        if sample.size <= left:
            left -= sample.size
            kept[i].append((sample, row))
    left_out = sum(map(len, kinds)) - sum(map(len, kept))
    user_name, notes = _with_media(kept, left, shelf) if shelf is not None else (kept, ())
    alarms, misses = (tuple(sample for sample, _ in own) for own in user_name)
    return replace(bare, false_alarms=alarms, misses=misses, left_out=left_out, notes=notes)


def _in_turn(kinds: Kinds) -> Iterable[tuple[int, Sample, Mapping[str, object]]]:
    """Return the worst of each kind, then the second of each, and so on."""
    for pair in zip_longest(*kinds):
        yield from ((i, *found) for i, found in enumerate(pair) if found is not None)


def _with_media(kinds: Kinds, left: int, shelf: Shelf) -> tuple[Kinds, tuple[str, ...]]:
    user_name: Kinds = ([], [])
    refused: list[Refusal] = []
    beyond = 0
    for i, sample, row in _in_turn(kinds):
        found = shelf.find(row) if left > 0 else None
        fits = isinstance(found, Media) and found.n_bytes <= left
        if isinstance(found, Refusal):
            refused.append(found)
        elif not fits and (found is not None or left <= 0):
            beyond += 1
        if isinstance(found, Media) and fits:
            left -= found.n_bytes
            sample = replace(sample, media=found)
        user_name[i].append((sample, row))
    return user_name, tuple(_notes(refused, beyond))


def _notes(refused: list[Refusal], beyond: int) -> list[str]:
    """Say what is not shown, and why."""
    said = [f"{r.name} is not shown: {r.reason}." for r in refused[:MOST_REFUSALS]]
    rest = len(refused) - MOST_REFUSALS
    said += [f"{rest} more files are not shown."] if rest > 0 else []
    return said + ([f"{beyond} files did not fit into the budget of bytes; raise --samples-budget."] if beyond else [])
