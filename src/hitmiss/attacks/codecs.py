"""The codec bank: a clip through a lossy codec at a chosen quality, aligned with its source sample by sample.

Every codec here is deterministic. Its delay is measured once (with a probe sound and the peak of the
cross-correlation) and removed, so a coded clip and its source can be compared sample by sample, and their scores form
a pair. The names C01 … are those of ASVspoof 5 for matching codecs; X01 … are not in ASVspoof.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final

import numpy as np

from hitmiss.attacks.codec_engines import Engine
from hitmiss.core import registry
from hitmiss.core.errors import DataError, UnknownName, UsageError
from hitmiss.media.audio import Clip, resample

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
            raise UsageError.of("bad-quality/range", name=self.name, n=len(self.kbps), found=quality)
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
        raise DataError.of("wrong-shape", name="a clip", form="one channel of samples", shape=str(clip.shape))
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
