"""The codec bank: send clips through lossy codecs at chosen qualities, and plans of them."""

from __future__ import annotations

import csv
import io
import os
import shutil
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from hitmiss.core import registry
from hitmiss.core.errors import DataError, EnvironmentFault, Fault, UnknownName, UsageError
from hitmiss.detection.detector import find_object
from hitmiss.detection.detector import need as need_package
from hitmiss.media.audio import Clip, frame_samples, need, resample

if TYPE_CHECKING:
    from av import Packet
    from onnxruntime import InferenceSession

# ----------------------------------------------------------------------
# Through a lossy codec and back, in memory: samples in, decoded samples and the coded size out.
#
# PyAV has most codecs; soundfile has GSM; an `ffmpeg` program (on the path, in HITMISS_FFMPEG, or of the package
# imageio-ffmpeg) has those that neither provides: AMR-WB and Speex.

Pcm = NDArray[np.int16]
FULL_SCALE: Final = 32768.0
LONGEST_WAIT: Final = 120.0


@dataclass(frozen=True)
class Engine:
    """An encoder and its decoder, and what provides them: `av`, `soundfile`, `program` or `own`.

    `form` is the sample format for PyAV, the container for the others; `has_rate` says whether the bit rate can be
    chosen. `own` is a user's: `encoder` names an ONNX model or an object (`mine.py:name`), a sound in and a sound out.
    """

    by: str
    encoder: str
    decoder: str
    form: str = "s16"
    has_rate: bool = True

    def lacks(self) -> str | None:
        """Return what this machine lacks to run it, or None."""
        if self.by == "program":
            return _program_lacks(self.encoder)
        if self.by == "own":
            return None
        try:
            package = need(self.by)
        except EnvironmentFault as error:
            return str(error)
        return _av_lacks(package, self.encoder) if self.by == "av" else None

    def round_trip(self, clip: Clip, rate: int, kbps: float) -> tuple[Clip, int, float]:
        """Return the decoded samples, their rate and the number of coded bytes; the caller handles delay and length.

        A user's codec does not say how many bytes it made: NaN.
        """
        if self.by == "own":
            return _sound(_own(self.encoder)(clip), self.encoder), rate, float("nan")
        lacking = self.lacks()
        if lacking is not None:
            raise EnvironmentFault(lacking)
        pcm = to_pcm(clip)
        bits = round(kbps * 1000) if self.has_rate else None
        trip = {"av": _by_av, "soundfile": _by_soundfile, "program": _by_program}[self.by]
        return trip(self, pcm, rate, bits)


def to_pcm(clip: Clip) -> Pcm:
    """Convert samples in -1..1 to 16-bit integers; louder samples are clipped.

    >>> to_pcm(np.array([0.0, 0.5, 2.0], dtype=np.float32)).tolist()
    [0, 16384, 32767]
    """
    return np.clip(np.round(clip * FULL_SCALE), -FULL_SCALE, FULL_SCALE - 1).astype(np.int16)


def _av_lacks(av: ModuleType, encoder: str) -> str | None:
    try:
        av.Codec(encoder, "w")
    except ValueError:  # PyAV's error for an unknown codec
        return f"this build of PyAV has no encoder {encoder!r}"
    return None


def _by_av(engine: Engine, pcm: Pcm, rate: int, bits: int | None) -> tuple[Clip, int, int]:
    av = need("av")
    packets, extradata = _encode(av, engine, pcm, rate, bits)
    decoder = av.CodecContext.create(engine.decoder, "r")
    decoder.sample_rate, decoder.layout = rate, "mono"
    if extradata:
        decoder.extradata = extradata
    size = sum(packet.size for packet in packets)
    frames = [frame for packet in [*packets, None] for frame in decoder.decode(packet)]
    if not frames:
        raise DataError(f"{engine.decoder} gave no samples back")
    return np.concatenate([frame_samples(f)[0] for f in frames]), int(frames[0].sample_rate), size


def _encode(av: ModuleType, engine: Engine, pcm: Pcm, rate: int, bits: int | None) -> tuple[list[Packet], bytes | None]:
    coder = av.CodecContext.create(engine.encoder, "w")
    coder.sample_rate, coder.layout, coder.format = rate, "mono", engine.form
    coder.time_base = Fraction(1, rate)
    if bits is not None:
        coder.bit_rate = bits
    coder.open()
    samples = pcm if engine.form.startswith("s16") else (pcm / FULL_SCALE).astype(np.float32)
    whole = av.AudioFrame.from_ndarray(samples[None], format=engine.form, layout="mono")
    whole.sample_rate, whole.pts, whole.time_base = rate, 0, Fraction(1, rate)
    fifo = av.AudioFifo()
    fifo.write(whole)
    frames = [*fifo.read_many(coder.frame_size or 1024), fifo.read(0, partial=True), None]
    packets = [packet for i, f in enumerate(frames) if f or i == len(frames) - 1 for packet in coder.encode(f)]
    return packets, coder.extradata


def _by_soundfile(engine: Engine, pcm: Pcm, rate: int, bits: int | None) -> tuple[Clip, int, int]:
    assert bits is None  # these formats have one rate each
    soundfile = need("soundfile")
    memory = io.BytesIO()
    soundfile.write(memory, pcm, rate, format=engine.form, subtype=engine.encoder)
    memory.seek(0)
    samples, decoded_rate = soundfile.read(memory, dtype="float32")
    return samples, int(decoded_rate), len(memory.getbuffer())


def _by_program(engine: Engine, pcm: Pcm, rate: int, bits: int | None) -> tuple[Clip, int, int]:
    raw = ["-f", "s16le", "-ar", str(rate), "-ac", "1"]
    chosen = ["-b:a", str(bits)] if bits is not None else []
    coded = _run_ffmpeg(
        [*raw, "-i", "pipe:0", "-c:a", engine.encoder, *chosen, "-f", engine.form, "pipe:1"], pcm.tobytes()
    )
    decoded = _run_ffmpeg(["-c:a", engine.decoder, "-f", engine.form, "-i", "pipe:0", *raw, "pipe:1"], coded)
    samples = np.frombuffer(decoded, dtype="<i2").astype(np.float32) / np.float32(FULL_SCALE)
    return samples, rate, len(coded)


def _run_ffmpeg(words: list[str], given: bytes) -> bytes:
    program = ffmpeg_program()
    assert program is not None  # `Engine.lacks` has checked this
    quiet = [program, "-hide_banner", "-nostdin", "-loglevel", "error", "-bitexact"]
    done = subprocess.run([*quiet, *words], input=given, capture_output=True, timeout=LONGEST_WAIT, check=False)
    if done.returncode != 0:
        raise DataError(f"ffmpeg failed: {done.stderr.decode(errors='replace').strip()[-300:]}")
    return done.stdout


@lru_cache(maxsize=16)
def _own(place: str) -> Callable[[Clip], object]:
    """Return a user's codec, opened once in each process."""
    if not place.endswith(".onnx"):
        found = find_object(place)
        codec: Callable[[Clip], object] = found() if isinstance(found, type) else found
        return codec
    session: InferenceSession = need_package("onnxruntime", "onnx").InferenceSession(place)
    given = session.get_inputs()[0]

    def coded(clip: Clip) -> object:
        sound = np.ascontiguousarray(clip, dtype=np.float32).reshape(*(1 for _ in given.shape[:-1]), -1)
        return session.run(None, {given.name: sound})[0]

    return coded


def _sound(found: object, place: str) -> Clip:
    """Return what a user's codec gave as one channel: an array or a tensor, with or without axes of length 1."""
    detached = found.detach().cpu() if hasattr(found, "detach") else found
    sound = np.asarray(detached, dtype=np.float32)
    if not sound.size or sound.size != max(sound.shape, default=0):
        raise DataError(f"{Path(place).name} gave the shape {sound.shape} back, not one channel", code="codec-output")
    return sound.reshape(-1)


@lru_cache(maxsize=1)
def ffmpeg_program() -> str | None:
    """Return the ffmpeg program: HITMISS_FFMPEG, on the path, or from imageio-ffmpeg; None if there is none."""
    named = os.environ.get("HITMISS_FFMPEG") or shutil.which("ffmpeg")
    if named:
        return named
    try:
        return str(import_module("imageio_ffmpeg").get_ffmpeg_exe())
    except (ImportError, RuntimeError):  # not installed, or installed without its program
        return None


@lru_cache(maxsize=1)
def _program_encoders() -> frozenset[str]:
    program = ffmpeg_program()
    if program is None:
        return frozenset()
    try:
        done = subprocess.run([program, "-hide_banner", "-encoders"], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return frozenset()
    return frozenset(words[1] for line in done.stdout.splitlines() if len(words := line.split()) > 1)


def _program_lacks(encoder: str) -> str | None:
    if encoder in _program_encoders():
        return None
    found = "the ffmpeg program here does not have it" if ffmpeg_program() else "there is no ffmpeg program here"
    return (
        f"{encoder} needs an ffmpeg with that encoder, and {found}: pip install imageio-ffmpeg, or set HITMISS_FFMPEG"
    )


# ----------------------------------------------------------------------
# The codec bank: a clip through a lossy codec at a chosen quality, aligned with its source sample by sample.
#
# Every codec here is deterministic. Its delay is measured once (with a probe sound and the peak of the
# cross-correlation) and removed, so a coded clip and its source can be compared sample by sample, and their scores form
# a pair. The names C01 … are those of ASVspoof 5 for matching codecs; X01 … are not in ASVspoof.

ALIKE: Final = 0.3
"""Least correlation between a sound and what a user's codec makes of it for a delay to be measured."""
TAIL_SECONDS: Final = 0.25
"""Silence sent after each clip, so that its end leaves the codec before the codec stops."""


@dataclass(frozen=True)
class Codec:
    """A codec with its sample rate and bit rates (kbit/s), quality 1 the lowest."""

    label: str
    name: str
    sample_rate: int
    kbps: tuple[float, ...]
    engine: Engine

    @property
    def qualities(self) -> range:
        """The qualities, from 1 to the number of bit rates."""
        return range(1, len(self.kbps) + 1)

    def rate_of(self, quality: int) -> float:
        """Return the bit rate of a quality, in kbit/s."""
        if quality not in self.qualities:
            raise UsageError(f"{self.name} has the qualities 1 to {len(self.kbps)}; found {quality}")
        return self.kbps[quality - 1]


@dataclass(frozen=True, eq=False)
class Coded:
    """A decoded clip, and the bit rate that the codec reached (kbit/s; NaN for a user's codec)."""

    clip: Clip
    kbps: float


def _bank() -> tuple[Codec, ...]:
    opus = Engine("av", "libopus", "opus")
    speex = Engine("program", "libspeex", "libspeex", "ogg")
    return (
        Codec("C01", "opus_wb", 16000, (6, 12, 18, 24, 30), opus),
        Codec("C02", "amr_wb", 16000, (6.6, 8.85, 12.65, 15.85, 23.05), Engine("program", "libvo_amrwbenc", "amrwb", "amr")),
        Codec("C03", "speex_wb", 16000, (5.75, 9.8, 16.8, 23.8, 34.2), speex),
        Codec("C05", "mp3_wb", 16000, (16, 24, 32, 48, 64), Engine("av", "libmp3lame", "mp3float", "s16p")),
        Codec("C06", "m4a_wb", 16000, (12, 16, 24, 32, 48), Engine("av", "aac", "aac", "fltp")),
        Codec("C08", "opus_nb", 8000, (6, 8, 10, 14, 20), opus),
        Codec("C09", "amr_nb", 8000, (4.75, 5.9, 7.4, 10.2, 12.2), Engine("av", "libopencore_amrnb", "amrnb")),
        Codec("C10", "speex_nb", 8000, (3.95, 5.95, 8, 11, 18.2), speex),
        Codec("X01", "g711_ulaw", 8000, (64,), Engine("av", "pcm_mulaw", "pcm_mulaw", has_rate=False)),
        Codec("X02", "gsm_fr", 8000, (13.2,), Engine("soundfile", "GSM610", "GSM610", "WAV", has_rate=False)),
        Codec("X03", "g722", 16000, (64,), Engine("av", "g722", "g722", has_rate=False)),
        Codec("X04", "g711_alaw", 8000, (64,), Engine("av", "pcm_alaw", "pcm_alaw", has_rate=False)),
        Codec("X05", "vorbis", 16000, (48,), Engine("soundfile", "VORBIS", "VORBIS", "OGG", has_rate=False)),
    )  # fmt: skip


for _codec in _bank():
    registry.add("codec", _codec.name, _codec, origin=__name__)
ALIASES: Final = {
    "opus": "opus_wb", "mp3": "mp3_wb", "aac": "m4a_wb", "m4a": "m4a_wb", "amr-nb": "amr_nb", "amr-wb": "amr_wb",
    "speex": "speex_wb", "ulaw": "g711_ulaw", "µ-law": "g711_ulaw", "gsm": "gsm_fr", "alaw": "g711_alaw",
    "ogg": "vorbis",
}  # fmt: skip
"""Everyday names."""


def all_codecs() -> dict[str, Codec]:
    """Return every known codec by name, including those of plug-ins."""
    return registry.all_of("codec")


def find_codec(name: str) -> Codec:
    """Return a codec by its name, an everyday name or its label.

    >>> find_codec("C01").name, find_codec("mp3").kbps
    ('opus_wb', (16, 24, 32, 48, 64))
    """
    known = all_codecs()
    labels = {codec.label: codec.name for codec in known.values()}
    wanted = labels.get(name, ALIASES.get(name, name))
    if wanted not in known:
        raise UnknownName("codec", name, (*known, *ALIASES, *labels))
    return known[wanted]


def code(clip: Clip, codec: str | Codec, quality: int = 1, *, sample_rate: int = 16000) -> Coded:
    """Send a clip through a codec; the result has the same length and no delay.

    The same clip gives the same samples every time. If the machine lacks the codec, the error says what to install.
    """
    chosen = find_codec(codec) if isinstance(codec, str) else codec
    kbps = chosen.rate_of(quality)
    if clip.ndim != 1 or not len(clip):
        raise DataError(f"a codec takes one channel with samples in it; found the shape {clip.shape}")
    decoded, reached = _through(clip, chosen, kbps, sample_rate)
    return Coded(_aligned(decoded, len(clip), delay(chosen, kbps, sample_rate)), reached)


def _through(clip: Clip, codec: Codec, kbps: float, sample_rate: int) -> tuple[Clip, float]:
    """Return the decoded clip at its own rate, with the codec's delay, and the bit rate reached."""
    tail = np.zeros(int(TAIL_SECONDS * sample_rate), dtype=np.float32)
    given = resample(np.concatenate([clip.astype(np.float32), tail]), sample_rate, codec.sample_rate)
    decoded, rate, size = codec.engine.round_trip(given, codec.sample_rate, kbps)
    return resample(decoded, rate, sample_rate), size * 8 / 1000 * codec.sample_rate / len(given)


@lru_cache(maxsize=256)
def delay(codec: Codec, kbps: float, sample_rate: int) -> int:
    """Return the delay of a codec in samples at the clip's rate, measured with a probe sound.

    A user's codec may return something quite unlike the sound: then nothing is moved.
    """
    sound = probe_sound(sample_rate)
    decoded, _ = _through(sound, codec, kbps, sample_rate)
    late = lag(sound, decoded)
    if codec.engine.by == "own":
        both = np.stack([sound, _aligned(decoded, len(sound), late)]).astype(np.float64)
        product, size = float(both[0] @ both[1]), float(np.linalg.norm(both, axis=1).prod())
        return late if product > ALIKE * size else 0
    return late


def own_codec(place: str, sample_rate: int) -> Codec:
    """Return a user's codec that works at a sample rate: an ONNX model, or an object `mine.py:name`."""
    return Codec(Path(place).name, place, sample_rate, (float("nan"),), Engine("own", place, place))


def lag(source: Clip, other: Clip) -> int:
    """Return by how many samples the other sound is later: the peak of the cross-correlation.

    >>> x = np.random.default_rng(0).standard_normal(500).astype(np.float32)
    >>> lag(x, np.concatenate([np.zeros(7, dtype=np.float32), x]))
    7
    """
    size = 1 << (len(source) + len(other) - 1).bit_length()
    spectrum = np.fft.rfft(other, size) * np.conj(np.fft.rfft(source, size))
    peak = int(np.argmax(np.fft.irfft(spectrum, size)))
    return peak - size if peak > size // 2 else peak


def probe_sound(sample_rate: int) -> Clip:
    """Return one second of a voice-like sound that is unlike any shift of itself: gliding pulses, two resonances."""
    n = sample_rate
    t = np.arange(n) / sample_rate
    phase = np.cumsum(110.0 + 90.0 * t + 12.0 * np.sin(2 * np.pi * 3.1 * t)) / sample_rate
    pulses = np.diff(np.floor(phase), prepend=0.0)
    sound = np.zeros(n)
    for hertz, width in ((600.0, 80.0), (1700.0, 120.0)):
        tone = np.exp(-np.pi * width * t[: n // 8]) * np.sin(2 * np.pi * hertz * t[: n // 8])
        sound += np.convolve(pulses, tone)[:n]
    envelope = np.sin(np.pi * t) * (0.6 + 0.4 * np.sin(2 * np.pi * 5 * t))
    return np.asarray(0.5 * sound * envelope / np.max(np.abs(sound)), dtype=np.float32)


def _aligned(decoded: Clip, n: int, late: int) -> Clip:
    """Return `n` samples from where the clip begins in the decoded sound, padded with silence."""
    start = np.zeros(max(-late, 0), dtype=np.float32)
    shifted = np.concatenate([start, decoded[max(late, 0) :]])[:n]
    return np.pad(shifted, (0, n - len(shifted))).astype(np.float32, copy=False)


# ----------------------------------------------------------------------
# Codec plans: which codecs at which qualities a corpus is sent through, from a table or from a text.
#
# A plan's table has a header and, separated by tabs, the columns `codec` (the label in tables, C01), `name` (the codec,
# opus_wb), `sample_rate` and the bit rates `q1` … in kbit/s; other columns are ignored. Each clip also stays uncoded
# (`NONE`), so one uncoded corpus gives domains that are paired clip by clip (`Manifest.crossed` makes the rows).

NONE: Final = "NONE"
MOST_QUALITIES: Final = 9


@dataclass(frozen=True)
class Condition:
    """One cell of a plan: a codec at a quality, or no codec. Called with a clip, it returns the coded clip."""

    codec: Codec | None = None
    quality: int = 0

    @property
    def columns(self) -> dict[str, str]:
        """The values of the slices `codec` and `codec_q`."""
        if self.codec is None:
            return {"codec": NONE, "codec_q": NONE}
        return {"codec": self.codec.label, "codec_q": str(self.quality)}

    def __str__(self) -> str:
        return f"{self.codec.label}-q{self.quality}" if self.codec else NONE

    def __call__(self, clip: Clip, sample_rate: int = 16000) -> Clip:
        if self.codec is None:
            return clip
        return code(clip, self.codec, self.quality, sample_rate=sample_rate).clip


UNCODED: Final = Condition()


def parse_conditions(text: str) -> tuple[Condition, ...]:
    """Return conditions from a text: `opus`, `mp3:1`, `C09:1+3`, separated by commas; by default all qualities.

    >>> [str(c) for c in parse_conditions("mp3:1+5,gsm")]
    ['C05-q1', 'C05-q5', 'X02-q1']
    """
    found: list[Condition] = []
    for word in filter(None, (part.strip() for part in text.split(","))):
        name, colon, wanted = word.partition(":")
        codec = find_codec(name)
        found += _conditions(codec, wanted.split("+") if colon else codec.qualities)
    if not found:
        raise UsageError(f"no codec is named in {text!r}; write for instance opus,mp3:1,amr-nb:1+5")
    return tuple(dict.fromkeys(found))


def read_codec_plan(path: str | Path, qualities: Sequence[int] = ()) -> tuple[Condition, ...]:
    """Read the conditions of a plan's table, in its order; `qualities` takes only these of each codec.

    A codec that this machine lacks is still in the plan: see `usable`.
    """
    path = Path(path)
    if not path.is_file():
        raise UsageError(f"no codec plan {path.name}")
    with path.open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    if not rows or not {"codec", "name"} <= set(rows[0]):
        raise DataError(
            f"{path.name} is not a codec plan: a table with the columns codec, name, sample_rate, q1 … is expected"
        )
    codecs = [_codec_of(row, number, path.name) for number, row in enumerate(rows, 2)]
    twice = [c.label for c in codecs if [d.label for d in codecs].count(c.label) > 1]
    if twice:
        raise DataError(f"{path.name}: the codec {twice[0]!r} is there twice")
    chosen = [
        c
        for codec in codecs
        for c in _conditions(codec, [q for q in qualities or codec.qualities if q in codec.qualities])
    ]
    return tuple(chosen)  # fmt: skip


def usable(conditions: Iterable[Condition]) -> tuple[tuple[Condition, ...], dict[str, str]]:
    """Return the conditions that this machine can make, and what is lacking for the other codecs."""
    given = list(conditions)
    codecs = {c.codec.name: c.codec for c in given if c.codec is not None}
    missing = {name: why for name, codec in codecs.items() if (why := codec.engine.lacks()) is not None}
    return tuple(c for c in given if c.codec is None or c.codec.name not in missing), missing


def _conditions(codec: Codec, qualities: Iterable[int | str]) -> list[Condition]:
    chosen = [_whole(q, codec) for q in qualities]
    for quality in chosen:
        codec.rate_of(quality)
    return [Condition(codec, quality) for quality in chosen]


def _whole(text: int | str, codec: Codec) -> int:
    try:
        return int(text)
    except ValueError:
        raise UsageError(f"the qualities of {codec.name} are 1 to {len(codec.kbps)}; found {text!r}") from None


def _codec_of(row: Mapping[str, str | None], number: int, file: str) -> Codec:
    name = row["name"] or ""
    known = all_codecs()
    if name not in known:
        raise UnknownName(f"codec in {file}, row {number},", name, known)
    rates = [cell for q in range(1, MOST_QUALITIES + 1) if (cell := (row.get(f"q{q}") or "").strip())]
    try:
        kbps = tuple(float(cell) for cell in rates) or known[name].kbps
        sample_rate = int(row.get("sample_rate") or known[name].sample_rate)
    except ValueError as error:
        fault = Fault("bad-plan", f"a rate is not a number: {error}", file=file, row=number)
        raise DataError(str(fault), [fault]) from None
    return replace(known[name], label=row["codec"] or name, kbps=kbps, sample_rate=sample_rate)
