"""Channels: several changes of a sound one after the other, and the conditions of published studies.

    codec(mp3:1) > noise(rooms/noise, snr=10) > rir(rooms/responses) > codec(amr-nb)

A link is a codec with its quality, `codec(mp3:1)`; a perturbation, `gain(db=-6)`, with the folder first if it has
one; a user's object, `mine.py:transform` (a callable, or a transform of audiomentations); or a user's codec, an
encoder–decoder in one ONNX model or a function, with its rate: `codec(encodec.onnx, rate=24000)`. Each link has its
own random generator.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Final

from numpy.random import Generator

from hitmiss.attacks.audio import seeded, transform
from hitmiss.attacks.codecs import code, find_codec, own_codec
from hitmiss.attacks.family import perturbation
from hitmiss.core.errors import UsageError
from hitmiss.detection.opening import find_object
from hitmiss.media.audio import Clip

LINK: Final = ">"
FOLDERS: Final = ("noise", "rir")
"""Perturbations whose first setting is a folder, given without a name."""
ESC50: Final = {
    "wind": 16,
    "footsteps": 25,
    "breathing": 23,
    "coughing": 24,
    "rain": 10,
    "clock_tick": 38,
    "sneezing": 21,
}
"""Classes of ESC-50 from which the CLAD study takes its environmental noise: the last number of a file's name."""
ASVSPOOF5: Final = ("opus_wb", "amr_wb", "speex_wb", "mp3_wb", "m4a_wb", "opus_nb", "amr_nb", "speex_nb")


def is_chain(text: str) -> bool:
    """Return whether a text is a chain, or a link that is only valid in chains.

    >>> is_chain("gain(db=-6) > codec(mp3:1)"), is_chain("mine.py:change"), is_chain("gain(db=-6)")
    (True, True, False)
    """
    plain = text.strip()
    has_folder = re.match(rf"({'|'.join(FOLDERS)})\(\s*[^=,()]+\s*[,)]", plain) is not None
    return LINK in plain or plain.startswith("codec(") or ".py:" in plain or plain.endswith(".onnx") or has_folder


class Chain:
    """The links of a channel; a class, so that it can be sent to worker processes."""

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
        raise UsageError.of("empty-link")
    if text.startswith("codec("):
        return Coding(text)
    if text.endswith(".onnx"):
        return Coding(f"codec({text})")
    if ".py:" in text:
        found = find_object(text)
        return transform(found() if isinstance(found, type) else found)
    folder = re.match(rf"({'|'.join(FOLDERS)})\(\s*([^=,()]+?)\s*(?:,(.*))?\)$", text)
    if folder is not None:
        name, place, rest = folder.groups()
        text = f"{name}(folder={place!r}{', ' + rest.strip() if rest else ''})"
    return transform(perturbation(text))


class Coding:
    """A codec as a link: `codec(mp3:1)`; without a quality, the lowest is used.

    A user's own is an ONNX model or an object: `codec(encodec.onnx, rate=24000)`, `codec(mine.py:name)`. Without a
    rate it gets the clip at its own.
    """

    def __init__(self, text: str) -> None:
        inner = text.removeprefix("codec(").removesuffix(")").strip()
        own = re.match(r"(.+\.onnx|.+\.py:[\w.]+)\s*(?:,\s*rate\s*=\s*(\d+))?$", inner)
        self.place: str | None = None
        if own is not None:
            self.place, self.rate = own.group(1), int(own.group(2) or 0)
            if not Path(self.place.rpartition(":")[0] if ".py:" in self.place else self.place).is_file():
                raise UsageError.of("missing-file", what="codec", file=self.place)
            return
        name, _, quality = inner.partition(":")
        self.codec = find_codec(name.strip())
        if quality and not quality.strip().isdigit():
            raise UsageError.of("bad-quality", text=text)
        self.quality = int(quality) if quality else 1
        self.codec.rate_of(self.quality)

    def __call__(self, clip: Clip, sample_rate: int, rng: Generator) -> Clip:
        if self.place is None:
            return code(clip, self.codec, self.quality, sample_rate=sample_rate).clip
        with seeded(rng):
            return code(clip, own_codec(self.place, self.rate or sample_rate), sample_rate=sample_rate).clip


def preset(text: str) -> tuple[str, ...] | None:
    """Return the conditions of a published study by its name, or None if a text names none.

    `asvspoof5`: the codecs of ASVspoof 5 at all qualities (without Encodec and the devices, which are not in our codec
    bank); `asvspoof5(encodec.onnx, rate=24000)`: also its C04 and C07, Encodec alone and after MP3, with a codec of
    yours; `asvspoof2021-la`: its codecs (without the public telephone network); `clad`, `clad(ESC-50 folder)`: the 33
    conditions of the CLAD study; the seven with environmental noise need the folder.

    >>> len(preset("asvspoof5")), len(preset("clad(esc50/audio)")), preset("gain")
    (40, 33, None)
    >>> preset("asvspoof5(encodec.onnx, rate=24000)")[40:42]
    ('codec(encodec.onnx, rate=24000)', 'codec(mp3:1) > codec(encodec.onnx, rate=24000)')
    """
    whole = re.match(r"asvspoof5(?:\((.+)\))?$", text.strip())
    if whole is not None:
        codecs = tuple(f"codec({name}:{q})" for name in ASVSPOOF5 for q in find_codec(name).qualities)
        encodec = f"codec({whole.group(1)})"
        after = (f"codec(mp3:{q}) > {encodec}" for q in find_codec("mp3").qualities)
        return codecs if whole.group(1) is None else (*codecs, encodec, *after)
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
