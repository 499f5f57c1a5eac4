"""Through a lossy codec and back, in memory: samples in, decoded samples and the coded size out.

PyAV has most codecs; soundfile has GSM; an `ffmpeg` program (on the path, in HITMISS_FFMPEG, or of the package
imageio-ffmpeg) has those that neither provides: AMR-WB and Speex.
"""

from __future__ import annotations

import io
import os
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from hitmiss.core.errors import DataError, EnvironmentFault, message_of
from hitmiss.detection.detector import need as need_package
from hitmiss.detection.opening import find_object
from hitmiss.media.audio import Clip, frame_samples, need

if TYPE_CHECKING:
    from av import Packet
    from onnxruntime import InferenceSession


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
            return message_of(error)
        return _av_lacks(package, self.encoder) if self.by == "av" else None

    def round_trip(self, clip: Clip, rate: int, kbps: float) -> tuple[Clip, int, float]:
        """Return the decoded samples, their rate and the number of coded bytes; the caller handles delay and length.

        A user's codec does not say how many bytes it made: NaN.
        """
        if self.by == "own":
            return _sound(_own(self.encoder)(clip), self.encoder), rate, float("nan")
        lacking = self.lacks()
        if lacking is not None:
            raise EnvironmentFault.of("codec-not-here", why=lacking)
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
        raise DataError.of("codec-empty", decoder=engine.decoder)
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
        raise DataError.of("ffmpeg-failed", stderr=done.stderr.decode(errors="replace").strip()[-300:])
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
        raise DataError.of(
            "wrong-shape", name=f"what {Path(place).name} gives", form="one channel of samples", shape=str(sound.shape)
        )
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
