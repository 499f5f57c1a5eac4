"""Channels: several changes of a sound one after the other, and the conditions of published studies.

    codec(mp3:1) > noise(rooms/noise, snr=10) > rir(rooms/responses) > codec(amr-nb)

A link is a codec with its quality, `codec(mp3:1)`; a perturbation, `gain(db=-6)`, with a folder first where it has one; an
object of the user's, `mine.py:transform` (a callable, or a transform of audiomentations); or an encoder–decoder in one ONNX
model, `encodec.onnx`, whose output is a sound. Each link draws from a generator of its own.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.random import Generator

from hitmiss.attack import audio
from hitmiss.attack.codec import code, find_codec, lag
from hitmiss.attack.family import perturbation
from hitmiss.detect.detector import find_object, need
from hitmiss.errors import DataError, UsageError
from hitmiss.io.media import Clip

LINK: Final = ">"
FOLDERS: Final = ("noise", "rir")
"""Perturbations that take a folder as their first setting, without a name."""
ESC50: Final = {
    "wind": 16,
    "footsteps": 25,
    "breathing": 23,
    "coughing": 24,
    "rain": 10,
    "clock_tick": 38,
    "sneezing": 21,
}
"""Classes of ESC-50 that the CLAD study takes its environmental noise from: the last number of a file's name."""
ASVSPOOF5: Final = ("opus_wb", "amr_wb", "speex_wb", "mp3_wb", "m4a_wb", "opus_nb", "amr_nb", "speex_nb")


def is_chain(text: str) -> bool:
    """Whether a text is a chain, or a link that only chains know.

    >>> is_chain("gain(db=-6) > codec(mp3:1)"), is_chain("mine.py:change"), is_chain("gain(db=-6)")
    (True, True, False)
    """
    plain = text.strip()
    has_folder = re.match(rf"({'|'.join(FOLDERS)})\(\s*[^=,()]+\s*[,)]", plain) is not None
    return LINK in plain or plain.startswith("codec(") or ".py:" in plain or plain.endswith(".onnx") or has_folder


class Chain:
    """The links of a channel; a class, so that worker processes can be sent it."""

    def __init__(self, text: str) -> None:
        self.text = " > ".join(part.strip() for part in text.split(LINK))
        self.links = [_link(part.strip()) for part in text.split(LINK)]

    def __call__(self, clip: Clip, sample_rate: int, rng: Generator) -> Clip:
        for link, own in zip(self.links, rng.spawn(len(self.links)), strict=True):
            clip = link(clip, sample_rate, own)
        return clip

    def __str__(self) -> str:
        return self.text


def _link(text: str) -> Callable[[Clip, int, Generator], Clip]:
    if not text:
        raise UsageError("a chain has something on both sides of >", code="empty-link")
    if text.startswith("codec("):
        return Coding(text)
    if text.endswith(".onnx"):
        return OnnxCodec(text)
    if ".py:" in text:
        found = find_object(text)
        return audio.transform(found() if isinstance(found, type) else found)
    folder = re.match(rf"({'|'.join(FOLDERS)})\(\s*([^=,()]+?)\s*(?:,(.*))?\)$", text)
    if folder is not None:
        name, place, rest = folder.groups()
        text = f"{name}(folder={place!r}{', ' + rest.strip() if rest else ''})"
    return audio.transform(perturbation(text))


class Coding:
    """A codec as a link: `codec(mp3:1)`; without a quality the lowest."""

    def __init__(self, text: str) -> None:
        inner = text.removeprefix("codec(").removesuffix(")").strip()
        name, _, quality = inner.partition(":")
        self.codec = find_codec(name.strip())
        if quality and not quality.strip().isdigit():
            raise UsageError(f"{text}: a quality is a number, as codec(mp3:1)", code="bad-quality")
        self.quality = int(quality) if quality else 1
        self.codec.rate_of(self.quality)

    def __call__(self, clip: Clip, sample_rate: int, rng: Generator) -> Clip:  # noqa: ARG002  (a codec draws nothing)
        return code(clip, self.codec, self.quality, sample_rate=sample_rate).clip


class OnnxCodec:
    """An encoder and decoder in one ONNX model: a sound in, the same sound as the codec leaves it out."""

    def __init__(self, path: str) -> None:
        if not Path(path).is_file():
            raise UsageError(f"there is no model {path}", code="missing-file")
        self.path, self._session = path, None

    def __getstate__(self) -> dict[str, Any]:
        return {"path": self.path, "_session": None}  # a session stays where it was made

    def __call__(self, clip: Clip, sample_rate: int, rng: Generator) -> Clip:  # noqa: ARG002
        session: Any = self._session or need("onnxruntime", "onnx").InferenceSession(self.path)
        self._session = session
        given = session.get_inputs()[0]
        sound = np.ascontiguousarray(clip, dtype=np.float32).reshape(*(1 for _ in given.shape[:-1]), -1)
        found = np.asarray(session.run(None, {given.name: sound})[0], dtype=np.float32).reshape(-1)
        if not len(found):
            raise DataError(f"{Path(self.path).name} gave no samples back", code="empty-codec")
        late = lag(clip, found)
        found = found[late:] if late > 0 else np.pad(found, (-late, 0))
        return np.asarray(np.pad(found, (0, max(len(clip) - len(found), 0)))[: len(clip)], dtype=np.float32)


def preset(text: str) -> tuple[str, ...] | None:
    """The conditions of a published study by its name, or None where a text names none.

    `asvspoof5`: the codecs of ASVspoof 5 at all qualities (without Encodec and the devices, which are no codecs of ours);
    `asvspoof2021-la`: its codecs (without the public telephone network); `clad`, `clad(ESC-50 folder)`: the 33 conditions of
    the CLAD study, the seven of environmental noise only with the folder.

    >>> len(preset("asvspoof5")), len(preset("clad(esc50/audio)")), preset("gain")
    (40, 33, None)
    """
    if text == "asvspoof5":
        return tuple(f"codec({name}:{q})" for name in ASVSPOOF5 for q in find_codec(name).qualities)
    if text == "asvspoof2021-la":
        return tuple(f"codec({name})" for name in ("alaw", "ulaw", "g722", "gsm", "opus"))
    found = re.match(r"clad(?:\((.+)\))?$", text.strip())
    return None if found is None else _clad(found.group(1))


def _clad(folder: str | None) -> tuple[str, ...]:
    noise = [f"noise({folder}, files='*-{number}.wav', snr=20)" for number in ESC50.values()] if folder else []
    fades = [f"fade(share={share}, shape=linear)" for share in (0.5, 0.3, 0.1)]
    shapes = ("soft_exponential", "quarter_sine", "half_sine", "logarithmic")
    return (
        "gain(db=-6.0206)", "gain(db=-20)", *(f"noise(snr={snr})" for snr in (15, 20, 25)), *noise,
        *(f"tempo(factor={factor})" for factor in (1.1, 1.05, 0.95, 0.9)),
        "echo(delay=0.0625, level=0.2)", "echo(delay=0.0625, level=0.5)", "echo(delay=0.125, level=0.5)",
        *(f"shift(seconds={seconds})" for seconds in (0.1, 1, 2)), *fades,
        *(f"fade(share=0.5, shape={shape})" for shape in shapes),
        *(f"speed(rate={rate})" for rate in (15000, 15500, 16500, 17000)),
    )  # fmt: skip
