"""Tools for sounds: container, levels, spectrum."""

from __future__ import annotations

import io
import re
from typing import Final

import numpy as np

from hitmiss.core.errors import DataError
from hitmiss.llm.picture import Floats, rounded
from hitmiss.llm.sound import read_sound
from hitmiss.media.audio import need

# ----------------------------------------------------------------------
# What a sound file says about itself: format, coding, and the marks that encoders leave in its header.

HEAD: Final = 65_536
LONGEST: Final = 200
MARKS: Final = re.compile(rb"(?:Lavf|Lavc|LAME|Xing|libVorbis|libFLAC|Xiph\.Org|libopus|iTunes|SoX)[ -~]{0,40}")
TAGS: Final = ("title", "artist", "software", "comment", "date", "copyright")
MOST_CHUNKS: Final = 32


def sound_container(data: bytes) -> dict[str, object]:
    """Return format, coding, sample rate, channels, seconds; tags; chunks of a WAV; encoders that left their name."""
    soundfile = need("soundfile")
    try:
        with soundfile.SoundFile(io.BytesIO(data)) as file:
            seconds = round(file.frames / file.samplerate, 3)
            told = {"format": file.format, "coding": file.subtype, "sample_rate": file.samplerate}
            tags = {name: str(text)[:LONGEST] for name, text in file.copy_metadata().items() if name in TAGS}
            told |= {"channels": file.channels, "seconds": seconds, "tags": tags}
    except (soundfile.LibsndfileError, ValueError) as error:
        why = str(getattr(error, "error_string", error)).rstrip(".")
        raise DataError.of("undecodable", what="the sound", why=why) from None
    found = dict.fromkeys(mark.decode("ascii") for mark in MARKS.findall(data[:HEAD]))
    return {**told, "chunks": chunks(data), "encoder_marks": list(found)[:8]}


def chunks(data: bytes) -> list[str]:
    """Return the names of a WAV's chunks, in order; empty for other files.

    >>> chunks(b"RIFF....WAVEfmt " + (2).to_bytes(4, "little") + b"..data" + bytes(4))
    ['fmt ', 'data']
    """
    if data[:4] != b"RIFF" or data[8:12] != b"WAVE":
        return []
    names: list[str] = []
    at = 12
    while at + 8 <= len(data) and len(names) < MOST_CHUNKS:
        names.append(data[at : at + 4].decode("ascii", "backslashreplace"))
        size = int.from_bytes(data[at + 4 : at + 8], "little")
        at += 8 + size + size % 2
    return names


# ----------------------------------------------------------------------
# Levels of a sound: how loud it is, what is silent, and whether samples are clipped.
#
# Recordings have their own noise floor; a run of exact zeros, or silence at both ends as if cut, is suspicious.

MOST: Final = 20_000_000
FRAME_SECONDS: Final = 0.02
CLIPPED: Final = 0.999
DEEPEST: Final = -120.0


def sound_levels(data: bytes, *, silence: float = -60.0) -> dict[str, object]:
    """Return peak and RMS in dB of full scale, offset, and shares of clipped samples and of exact zeros.

    For frames of 20 ms, also return the 5th percentile (the noise floor), and the share, the beginning and the end that
    lie below `silence` dB.
    """
    sound = read_sound(data, MOST)
    values = sound.mono
    frames = frame_levels(values, max(1, round(FRAME_SECONDS * sound.rate)))
    loud = np.flatnonzero(frames >= silence)
    ends = (loud[0], len(frames) - 1 - loud[-1]) if loud.size else (len(frames), len(frames))
    return {
        "seconds": rounded(len(values) / sound.rate),
        "peak_db": decibels(float(np.abs(values).max())),
        "rms_db": decibels(float(np.sqrt(np.mean(values**2)))),
        "offset": rounded(float(values.mean())),
        "clipped_share": rounded(float(np.mean(np.abs(sound.samples) >= CLIPPED))),
        "zero_share": rounded(float(np.mean(values == 0.0))),
        "noise_floor_db": rounded(float(np.percentile(frames, 5))),
        "silent_share": rounded(float(np.mean(frames < silence))),
        "silent_seconds_at_start": rounded(float(ends[0]) * FRAME_SECONDS),
        "silent_seconds_at_end": rounded(float(ends[1]) * FRAME_SECONDS),
    }


def frame_levels(values: Floats, size: int) -> Floats:
    """Return the RMS in dB of each whole frame; a sound shorter than a frame counts as one."""
    whole = values[: len(values) // size * size].reshape(-1, size) if len(values) >= size else values[None]
    power = np.mean(whole**2, axis=1)
    return np.asarray(10 * np.log10(np.maximum(power, 10 ** (DEEPEST / 10))))


def decibels(amplitude: float) -> float:
    """Return dB of full scale; silence is −120.

    >>> decibels(1.0), decibels(0.1), decibels(0.0)
    (0.0, -20.0, -120.0)
    """
    return rounded(20 * float(np.log10(max(amplitude, 10 ** (DEEPEST / 20)))))


# ----------------------------------------------------------------------
# Spectrum of a sound: how its power is distributed over frequencies, and where it ends.
#
# Lossy codecs and vocoders of 16 kHz cut a sound off below half its sample rate; a microphone does not.

SOUND_SPECTRUM_MOST: Final = 20_000_000
FRAME: Final = 1024
FLOOR_DB: Final = -80.0
"""A frequency this far below the strongest one counts as empty."""


def sound_spectrum(data: bytes, *, bands: int = 16) -> dict[str, object]:
    """Return mean power by frequency in dB (equal bands from 0 to half the sample rate), and summary frequencies.

    These are the centroid, the frequencies below which 85 % and 99 % of the power lie, and the highest frequency with
    any power left, by itself and over half the sample rate.
    """
    sound = read_sound(data, SOUND_SPECTRUM_MOST)
    power = mean_power(sound.mono)
    frequency = np.linspace(0.0, sound.rate / 2, len(power))
    total = float(power.sum())
    if total <= 0:
        return {"sample_rate": sound.rate, "reason": "the sound is silent"}
    share = np.cumsum(power) / total
    left = np.flatnonzero(power >= power.max() * 10 ** (FLOOR_DB / 10))
    highest = float(frequency[left[-1]])
    return {
        "sample_rate": sound.rate,
        "db_by_frequency": [_db(float(part.mean())) for part in np.array_split(power, bands)],
        "centroid_hz": rounded(float((frequency * power).sum() / total)),
        "below_85_percent_hz": rounded(float(frequency[np.searchsorted(share, 0.85)])),
        "below_99_percent_hz": rounded(float(frequency[np.searchsorted(share, 0.99)])),
        "highest_hz": rounded(highest),
        "highest_over_half_rate": rounded(2 * highest / sound.rate),
    }


def mean_power(values: Floats) -> Floats:
    """Return the power of each frequency, by Welch's method (1967).

    It is the mean over Hann-windowed frames of 1024 samples that overlap by half.
    """
    padded = np.pad(values, (0, max(0, FRAME - len(values))))
    frames = np.lib.stride_tricks.sliding_window_view(padded, FRAME)[:: FRAME // 2]
    window = np.hanning(FRAME + 1)[:-1]
    total = np.zeros(FRAME // 2 + 1)
    for start in range(0, len(frames), 1024):  # so that a long sound takes little memory
        total += (np.abs(np.fft.rfft(frames[start : start + 1024] * window, axis=1)) ** 2).sum(axis=0)
    return total / len(frames)


def _db(power: float) -> float | None:
    return rounded(10 * float(np.log10(power))) if power > 0 else None
