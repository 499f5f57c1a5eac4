"""Read sound files as mono float32 samples at the rate of a detector, or report in one sentence what is wrong.

soundfile decodes wav, flac, ogg, opus and mp3; PyAV the rest (m4a, amr, the sound of films); soxr resamples. Files are
not trusted: only listed formats are opened, and decoding stops at a maximum number of seconds.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from hitmiss.core.errors import DataError, Fault
from hitmiss.core.finding import Finding
from hitmiss.core.packages import need_package

if TYPE_CHECKING:
    from av import AudioFrame, AudioStream
    from av.container import InputContainer

Clip = NDArray[np.float32]

MOST_SECONDS: Final = 3600.0
MOST_CHANNELS: Final = 64
RATES: Final = (1_000, 768_000)
FORMATS: Final = "aac,aiff,amr,amrnb,amrwb,asf,au,caf,flac,g722,gsm,matroska,mov,mp3,ogg,wav,w64"
"""The formats that PyAV may open. Playlists are excluded: they would make it read the files that they name."""
SPARE_SECONDS: Final = 0.5
FRAME_SECONDS: Final = 0.15
"""How many more seconds a container may declare than are decoded: a few frames."""
UNKNOWN_LENGTH: Final = 1 << 60
"""The length in a header that was written before the length was known."""
PADDED_FORMATS: Final = {".mp3": 2304, ".ogg": 2304, ".opus": 2304}
"""Samples by which headers of frame-based formats may be off in complete files."""
CANCELLED: Final = 1e-4
"""Channels whose mean has less than this share of their power cancel each other."""
LOUDEST: Final = 16.0
"""Samples go from −1 to 1, and a little beyond; above this they are on another scale."""


class _BadAudio(Exception):
    """Why one decoder cannot read a file."""


def load_audio(
    path: str | Path,
    sample_rate: int = 16000,
    *,
    max_seconds: float = MOST_SECONDS,
    first_seconds: float | None = None,
) -> Clip:
    """Read the samples of a sound file: mono (the mean of the channels), float32, at `sample_rate`.

    A file that is missing, broken, empty, longer than `max_seconds`, shorter than its header says or holds NaN raises
    `DataError` with the file's name and the reason, so that a run can list it and continue. With `first_seconds` only
    that much (and a little more, for resampling) is decoded.
    """
    path = Path(path)
    if not path.is_file():
        raise _refusal(path, "missing-file", "there is no such file")
    try:
        samples, rate = _decode(path, max_seconds, first_seconds)
        return resample(_checked(samples), rate, sample_rate)
    except _BadAudio as error:
        raise _refusal(path, "bad-audio", str(error)) from None


def length_of(path: str | Path, sample_rate: int) -> int | None:
    """Return how many samples a file holds at a rate, from its header; None if soundfile cannot read it."""
    soundfile = need("soundfile")
    try:
        about = soundfile.info(str(path))
    except soundfile.LibsndfileError:
        return None
    return round(int(about.frames) * sample_rate / int(about.samplerate))


def resample(clip: Clip, rate: int, wanted: int) -> Clip:
    """Resample a clip to another rate (soxr, high quality, linear phase: no delay)."""
    if rate == wanted:
        return clip
    soxr = need("soxr")
    return np.ascontiguousarray(soxr.resample(clip, rate, wanted), dtype=np.float32)


def save_audio(path: str | Path, clip: Clip, sample_rate: int = 16000) -> None:
    """Write a clip as 16-bit samples; the suffix (.flac, .wav) decides the format."""
    need("soundfile").write(str(path), clip, sample_rate, subtype="PCM_16")


def need(package: str) -> ModuleType:
    """Import a package of the extra `audio`, or raise an error that says how to install it."""
    return need_package(package, "sound", "hitmiss[audio]")


def _decode(path: Path, max_seconds: float, first_seconds: float | None) -> tuple[Clip, int]:
    try:
        return _by_soundfile(path, max_seconds, first_seconds)
    except _NotForSoundfile as first:
        try:
            return _by_av(path, max_seconds, first_seconds)
        except _NotForAv as second:
            raise _BadAudio(f"it cannot be decoded: soundfile says {first}; PyAV says {second}") from None


class _NotForSoundfile(Exception):
    """soundfile does not know the format; another decoder may."""


class _NotForAv(Exception):
    """PyAV does not know the format either."""


def _by_soundfile(path: Path, max_seconds: float, first_seconds: float | None) -> tuple[Clip, int]:
    soundfile = need("soundfile")
    try:
        file = soundfile.SoundFile(str(path))
    except soundfile.LibsndfileError as error:
        raise _NotForSoundfile(str(error.error_string).rstrip(".")) from None
    with file:
        _check_form(file.samplerate, file.channels)
        limit, wanted = int(max_seconds * file.samplerate), _enough(first_seconds, file.samplerate)
        blocks, n, mono = [], 0, _Mono()
        try:
            while n < wanted and len(block := file.read(min(1 << 20, wanted - n), dtype="float32", always_2d=True)):
                blocks.append(mono.mean(block, 1))
                n += len(block)
                if n > limit:
                    raise _too_long(max_seconds)
        except soundfile.LibsndfileError as error:
            words = str(error.error_string).rstrip(".")
            raise _BadAudio(f"it is damaged after {n / file.samplerate:.3f} seconds: {words}") from None
        if n < wanted:
            _check_whole(path, n, int(file.frames), int(file.samplerate))
        mono.refuse_cancelled()
        return _joined(blocks), int(file.samplerate)


def _by_av(path: Path, max_seconds: float, first_seconds: float | None) -> tuple[Clip, int]:
    av = need("av")
    options = {"format_whitelist": FORMATS, "protocol_whitelist": "file"}
    try:
        with path.open("rb") as file, av.open(file, options=options) as container:
            if not container.streams.audio:
                raise _BadAudio("it holds no sound")
            stream = container.streams.audio[0]
            _check_form(stream.rate, stream.channels)
            blocks, n, wanted = [], 0, _enough(first_seconds, stream.rate)
            for block in _av_blocks(container, stream, max_seconds):
                blocks.append(block)
                n += len(block)
                if n >= wanted:
                    break
            declared = int(stream.duration * stream.time_base * stream.rate) if stream.duration else 0
            if n < min(wanted, declared - int(FRAME_SECONDS * stream.rate)):
                raise _BadAudio(
                    f"it is damaged: {n / stream.rate:.3f} of {declared / stream.rate:.3f} seconds can be decoded"
                )
            return _joined(blocks), int(stream.rate)
    except (av.error.FFmpegError, ValueError) as error:
        raise _NotForAv(getattr(error, "strerror", None) or str(error)) from None


def _av_blocks(container: InputContainer, stream: AudioStream, max_seconds: float) -> Iterator[Clip]:
    limit, n, mono = int(max_seconds * stream.rate), 0, _Mono()
    for frame in container.decode(stream):
        block = mono.mean(frame_samples(frame), 0)
        n += len(block)
        if n > limit:
            raise _too_long(max_seconds)
        yield block
    mono.refuse_cancelled()


class _Mono:
    """Takes the mean of the channels, and finds channels that cancel each other: their mean is silence."""

    def __init__(self) -> None:
        self._power, self._left = 0.0, 0.0

    def mean(self, block: Clip, axis: int) -> Clip:
        """Return the mean over the axis of the channels."""
        if block.shape[axis] == 1:
            return np.asarray(block[:, 0] if axis else block[0])
        found = np.asarray(block.mean(axis=axis))
        self._power += float(np.square(block, dtype=np.float64).sum()) / block.shape[axis]
        self._left += float(np.square(found, dtype=np.float64).sum())
        return found

    def refuse_cancelled(self) -> None:
        """Refuse a file whose channels are in anti-phase."""
        if self._left < CANCELLED * self._power:
            raise _BadAudio(
                "its channels cancel each other (anti-phase), so that their mean is silence; turn one round or keep one"
            )


def frame_samples(frame: AudioFrame) -> Clip:
    """Return a decoded PyAV frame as float32, channels × samples, for any sample format."""
    raw = frame.to_ndarray()
    if raw.shape[0] != len(frame.layout.channels):  # packed: the channels are interleaved
        raw = raw.reshape(-1, len(frame.layout.channels)).T
    if raw.dtype.kind == "f":
        return np.asarray(raw, dtype=np.float32)
    if raw.dtype == np.uint8:
        return np.asarray(raw / 128.0 - 1.0, dtype=np.float32)
    return np.asarray(raw / -float(np.iinfo(raw.dtype).min), dtype=np.float32)


def _enough(first_seconds: float | None, rate: int) -> int:
    """Return how many samples to decode: all, or the first seconds plus a margin for the end of the resampler."""
    return sys.maxsize if first_seconds is None else int((first_seconds + SPARE_SECONDS) * rate)


def _check_whole(path: Path, found: int, declared: int, rate: int) -> None:
    """Refuse fewer samples than the header declares: the file is damaged, and its score would be misleading."""
    slack = PADDED_FORMATS.get(path.suffix.lower(), 0)
    whole = max(declared, _declared_by_wave(path))
    if 0 < found < whole - slack and whole < UNKNOWN_LENGTH:
        raise _BadAudio(
            f"it is damaged: {found / rate:.3f} of {whole / rate:.3f} seconds can be decoded ({whole - found:,} samples are missing)"
        )


def _declared_by_wave(path: Path) -> int:
    """Return the samples that a WAV header declares; libsndfile silently reduces this to what is there."""
    with path.open("rb") as file:
        head = file.read(12)
        if head[:4] != b"RIFF" or head[8:] != b"WAVE":
            return 0
        size_of_frame = 0
        while len(chunk := file.read(8)) == 8:
            size = int.from_bytes(chunk[4:], "little")
            if chunk[:4] == b"fmt ":
                size_of_frame = int.from_bytes(file.read(16)[12:14], "little")
                file.seek(size + size % 2 - 16, 1)
            elif chunk[:4] == b"data":
                return size // size_of_frame if size_of_frame and size < 0xFFFFFF00 else 0
            else:
                file.seek(size + size % 2, 1)
    return 0


def _check_form(rate: int, channels: int) -> None:
    if not RATES[0] <= rate <= RATES[1]:
        raise _BadAudio(f"its sample rate is {rate}; between {RATES[0]} and {RATES[1]} is expected")
    if not 1 <= channels <= MOST_CHANNELS:
        raise _BadAudio(f"it has {channels} channels; 1 to {MOST_CHANNELS} are expected")


def _joined(blocks: list[Clip]) -> Clip:
    if not sum(map(len, blocks)):
        raise _BadAudio("it holds no samples")
    return np.concatenate(blocks)


def _checked(samples: Clip) -> Clip:
    wrong = ~np.isfinite(samples)
    if wrong.any():
        raise _BadAudio(f"{int(wrong.sum())} samples are NaN or infinite, the first at {int(np.argmax(wrong))}")
    highest = float(max(samples.max(initial=0.0), -samples.min(initial=0.0)))
    if highest > LOUDEST:
        raise _BadAudio(
            f"its samples reach {highest:,.0f}, and those of a file of floating-point numbers go from -1 to 1; if they are "
            f"whole numbers of 16 bits, divide them by 32,768"
        )
    return np.ascontiguousarray(samples, dtype=np.float32)


def _too_long(max_seconds: float) -> _BadAudio:
    return _BadAudio(f"it is longer than {max_seconds:g} seconds; allow more with max_seconds, or cut it")


def _refusal(path: Path, kind: str, message: str) -> DataError:
    fault = Fault(kind, message, file=path.name)
    return DataError.coded(Finding("unusable-audio", values={"file": path.name, "why": message}), kind).at(fault)
