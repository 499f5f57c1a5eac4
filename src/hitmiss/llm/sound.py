"""Sounds from bytes, with limits; and their conversion for language models, which accept only WAV and MP3."""

from __future__ import annotations

import hashlib
import io
from dataclasses import dataclass
from typing import Final

import numpy as np

from hitmiss.core.errors import DataError
from hitmiss.llm.picture import Floats
from hitmiss.media.audio import need

AS_THEY_ARE: Final = {"audio/wav": "wav", "audio/mp3": "mp3"}
"""What is sent unchanged, and its name in the protocol."""
MOST_BYTES: Final = 32 * 1024 * 1024
WIDER: Final = ("PCM_24", "PCM_32", "FLOAT", "DOUBLE")


@dataclass(frozen=True, eq=False)
class Sound:
    """Samples (one row per sample time, one column per channel), the sample rate, and how they were stored."""

    samples: Floats
    rate: int
    form: str
    coding: str

    @property
    def mono(self) -> Floats:
        """The mean of the channels."""
        return np.asarray(self.samples.mean(axis=1))


def read_sound(data: bytes, most: int) -> Sound:
    """Read the first `most` samples of all channels together, plus one sample time if there are more.

    A broken or an empty sound raises `DataError`.
    """
    soundfile = need("soundfile")
    try:
        with soundfile.SoundFile(io.BytesIO(data)) as file:
            samples = file.read(most // file.channels + 1, dtype="float64", always_2d=True)
            found = Sound(samples, int(file.samplerate), str(file.format), str(file.subtype))
    except (soundfile.LibsndfileError, ValueError) as error:
        why = str(getattr(error, "error_string", error)).rstrip(".")
        raise DataError.of("undecodable", what="the sound", why=why) from None
    if not len(found.samples):
        raise DataError.of("empty-sound")
    if not np.isfinite(found.samples).all():
        raise DataError.of("not-finite", name="the sound")
    return found


def to_send(data: bytes, media_type: str) -> tuple[bytes, str, dict[str, object] | None]:
    """Return the bytes to send, the protocol's word for their type, and what was done to them (None: nothing)."""
    if media_type in AS_THEY_ARE:
        return data, AS_THEY_ARE[media_type], None
    wav, told = as_wav(data)
    return wav, "wav", {"from": media_type, "to": "audio/wav", **told}


def as_wav(data: bytes) -> tuple[bytes, dict[str, object]]:
    """Return a sound as WAV: its own sample rate and channels, 24 bits if the source has more than 16, else 16."""
    sound = read_sound(data, MOST_BYTES // 2)
    width = 3 if sound.coding in WIDER else 2
    if sound.samples.size * width > MOST_BYTES:
        raise DataError.of("sound-too-large", MOST_BYTES=MOST_BYTES >> 20)
    packed = io.BytesIO()
    need("soundfile").write(packed, sound.samples, sound.rate, subtype=f"PCM_{8 * width}", format="WAV")
    sent = packed.getvalue()
    form = {"sample_rate": sound.rate, "channels": int(sound.samples.shape[1]), "bits": 8 * width}
    return sent, {**form, "sha256": hashlib.sha256(sent).hexdigest()}
