"""Sounds, images and signals small enough to travel inside a report: decoded, cut down, and written anew.

Nothing is passed through: an image is read as PNG, JPEG or WebP and nothing else, shrunk and written as JPEG; a sound is
decoded and written as MP3; a signal becomes a line. So whatever a file holds beside pixels, samples or numbers stays out.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import numpy as np

from hitmiss.core.errors import DataError, EnvironmentFault
from hitmiss.report.thinning import thin

Changed = Callable[[Any], Any]
"""What was done to a clip before a detector heard it; None where that cannot be done again."""
SECONDS: Final = 6.0
"""Seconds of a sound that are kept."""
RATE: Final = 16000
LONGEST: Final = 600.0
"""Seconds beyond which a sound is not opened at all."""
SIDE: Final = 224
"""Pixels of the longer side of a thumbnail."""
MOST_PIXELS: Final = 50_000_000
MOST_BYTES: Final = 64_000_000
IMAGES: Final = ("PNG", "JPEG", "WEBP")
TRACE_WIDTH, TRACE_HEIGHT = 480, 56
"""Units of a drawn signal, a lead."""
TRACE_GRAIN, TRACE_TOLERANCE = 4, 0.8
SPECTROGRAM: Final = (240, 72)
"""Pixels of a spectrogram."""
MOST_LEADS: Final = 3
SHOWN_LEADS: Final = {"II": 1, "V1": 6, "V5": 10}
"""The leads of the standard twelve that a small picture shows."""


@dataclass(frozen=True)
class Media:
    """A sound or an image as a data address, or a signal as paths of an SVG; `about` says what it is."""

    kind: str
    address: str = ""
    about: str = ""
    size: tuple[int, int] = (0, 0)
    traces: tuple[tuple[str, str], ...] = ()
    ticks: tuple[float, ...] = ()
    change: tuple[str, str] | None = None
    """What was done to the first of them, on a scale of its own: in words, and its path."""

    is_changed: bool = False
    """Whether a sound is what the detector heard, where that is not what the file holds."""

    spectrogram: str = ""
    """A sound as a picture of time and frequency."""

    over: tuple[str, ...] = ()
    """The traces once more, as an attack left them."""

    paper: str = ""
    """The lines of the paper behind traces."""

    @property
    def n_bytes(self) -> int:
        """What it adds to the page."""
        return (
            len(self.address)
            + len(self.spectrogram)
            + len(self.about)
            + len(self.paper)
            + sum(map(len, self.over))
            + sum(len(name) + len(path) + 60 for name, path in (*self.traces, *((self.change,) if self.change else ())))
        )


@dataclass(frozen=True)
class Refusal:
    """Why a file is not shown."""

    name: str
    reason: str


def open_media(
    path: Path, changed: Changed | None = None, rate: int = RATE, *, lossless: bool = False
) -> Media | Refusal:
    """What a file is by its first bytes, made small; or why it is not shown. `lossless`: sounds as FLAC, not as MP3.

    `changed` is what was done to sounds at a sample rate; where it gives nothing, a sound is shown as it is in the file.
    """
    try:
        if path.stat().st_size > MOST_BYTES:
            return Refusal(path.name, f"it is larger than {MOST_BYTES // 1_000_000} MB")
        with path.open("rb") as file:
            kind = kind_of(file.read(16))
        if kind == "image":
            return image_of(path)
        if kind == "sound":
            return sound_of(path, changed, rate, lossless=lossless)
    except (DataError, EnvironmentFault, OSError) as error:
        return Refusal(path.name, getattr(error, "strerror", None) or _without_name(str(error), path.name))
    return Refusal(path.name, "it is no PNG, JPEG or WebP image and no sound that is known here")


def _without_name(text: str, name: str) -> str:
    return text.replace(f"{name}: ", "").replace(f" in {name}", "")


def kind_of(start: bytes) -> str:
    """`image`, `sound` or nothing, by how a file begins; its name says nothing.

    >>> kind_of(b"<svg xmlns='ht"), kind_of(b"\\x89PNG\\r\\n\\x1a\\n"), kind_of(b"RIFF....WAVEfmt ")
    ('', 'image', 'sound')
    """
    if start.startswith((b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff")) or (start[:4] == b"RIFF" and start[8:12] == b"WEBP"):
        return "image"
    sounds = (b"fLaC", b"OggS", b"ID3", b"#!AMR", b"FORM", b".snd", b"\x1aE\xdf\xa3")
    if start.startswith(sounds) or (start[:4] == b"RIFF" and start[8:12] == b"WAVE") or start[4:8] == b"ftyp":
        return "sound"
    return "sound" if len(start) > 1 and start[0] == 0xFF and start[1] & 0xE0 == 0xE0 else ""


def image_of(path: Path) -> Media | Refusal:
    """A thumbnail."""
    from PIL import Image, ImageOps

    try:
        with Image.open(path, formats=IMAGES) as opened:
            width, height = opened.size
            if width * height > MOST_PIXELS:
                return Refusal(path.name, f"it has {width} × {height} pixels")
            opened.draft("RGB", (2 * SIDE, 2 * SIDE))
            small = ImageOps.exif_transpose(opened)
            small.thumbnail((SIDE, SIDE))
            flat = Image.new("RGB", small.size, (255, 255, 255))
            shown = small.convert("RGBA")
            flat.paste(shown, mask=shown.getchannel("A"))
    except (OSError, ValueError, SyntaxError, EOFError, Image.DecompressionBombError, Image.DecompressionBombWarning):
        return Refusal(path.name, "it is a broken image")
    packed = io.BytesIO()
    flat.save(packed, "JPEG", quality=74, optimize=True)
    return Media("image", _address("image/jpeg", packed.getvalue()), f"{width} × {height} pixels", flat.size)


def sound_of(
    path: Path, changed: Changed | None = None, rate: int = RATE, *, lossless: bool = False
) -> Media | Refusal:
    """The first seconds of a sound with its spectrogram; of one that was changed as it was then, which `is_changed` says."""
    from hitmiss.media.audio import load_audio, need

    clip = load_audio(path, rate, max_seconds=LONGEST)
    after = changed(clip) if changed is not None else None
    seconds = len(clip) / rate
    kept = (clip if after is None else np.asarray(after))[: int(SECONDS * rate)]
    peak = float(np.abs(kept).max(initial=0.0))
    packed = io.BytesIO()
    form: dict[str, Any] = {"format": "MP3", "subtype": "MPEG_LAYER_III", "compression_level": 0.6}
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


def spectrogram_of(clip: Any, rate: int) -> str:
    """The magnitudes of a clip over time and frequency as a small grey picture: dark is loud, over 70 dB.

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


def trace_of(x: Any, rate: float, after: Any = None, how: str = "") -> Media:
    """A signal (sample × lead) as thin lines, of the standard twelve leads three.

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

    def drawn(values: Any) -> tuple[str, ...]:
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
    """The lines of ECG paper: upright every 0.2 s, across every 0.5 mV from the middle of each lead."""
    step, mv = TRACE_WIDTH * 0.2 / seconds, 0.5 * scale
    if step < 1.5 or mv < 1.5:
        return ""
    upright = "".join(f"M{x:.1f} 0V{TRACE_HEIGHT * leads}" for x in np.arange(step, TRACE_WIDTH, step))
    half = int(TRACE_HEIGHT / 2 / mv)
    middles = [TRACE_HEIGHT * (i + 0.5) for i in range(leads)]
    across = "".join(f"M0 {m + k * mv:.1f}H{TRACE_WIDTH}" for m in middles for k in range(-half, half + 1))
    return upright + across


def _change(across: Any, delta: Any, lead: str, how: str) -> tuple[str, str]:
    """A change in words, with its greatest size in µV, and its path."""
    most = float(np.abs(delta).max(initial=0.0))
    middle, half = TRACE_HEIGHT - 20, 17  # room above for the words
    path = _path(across, middle - half / max(most, 1e-9) * delta)
    return f"{lead} {how}: changed by up to {1000 * most:.3g} µV".strip(), path


def _numbered(n: int) -> list[tuple[str, int]]:
    return [(f"lead {i + 1}" if n > 1 else "", i) for i in range(min(n, MOST_LEADS))]


def _path(x: Any, y: Any) -> str:
    """An SVG path through the points that the eye can tell, as steps from each to the next, in quarters of a unit."""
    at = thin(x, y, TRACE_TOLERANCE)
    points: Sequence[tuple[int, int]] = [
        (round(TRACE_GRAIN * a), round(TRACE_GRAIN * b)) for a, b in zip(x[at], y[at], strict=True)
    ]
    steps = [f"{b[0] - a[0]} {b[1] - a[1]}" for a, b in pairwise(points)]
    return f"M{points[0][0]} {points[0][1]}l{' '.join(steps).replace(' -', '-')}" if points else ""


def _address(kind: str, content: bytes) -> str:
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"
