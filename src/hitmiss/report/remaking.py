"""Clips as a detector heard them: what a run did to each on its way, done again.

`hitmiss detect --codecs` and `--manipulate` write down which codecs at which rates, or which manipulations, of which
class, under which seed; what is done to a clip follows from that and its row alone. What cannot be done again (a codec
that this machine lacks, a function that was given in Python) is left as it was.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from hitmiss.attack.codecs import Condition, find_codec, usable
from hitmiss.attack.conditions import CodedRows, ManipulatedRows
from hitmiss.core.errors import HitmissError
from hitmiss.io.runs import load_manifest

Row = Mapping[str, Any]
RATES: Final = (8000, 11025, 12000, 16000, 22050, 24000, 32000, 44100, 48000)
"""Sample rates that MP3 knows."""


@dataclass(frozen=True, eq=False)
class Remaking:
    """What a run did to its clips, at their sample rate; `classes` are the names of positive and negative."""

    done: CodedRows | ManipulatedRows
    rate: int
    classes: tuple[str, str]

    def __call__(self, clip: Any, row: Row) -> Any:
        """The clip of a row as it came to the detector; None where it cannot be made again."""
        named = {**row, "label": self.classes[0] if row.get("label") == 1 else self.classes[1]}
        try:
            return self.done(clip, named)
        except (HitmissError, KeyError):
            return None


def remaking_of(run: Path) -> Remaking | None:
    """What a run of `hitmiss detect` over sounds did to them; None where it did nothing, or nothing that can be done again."""
    manifest = load_manifest(run)
    config, facts = manifest.get("config", {}), manifest.get("facts", {})
    pinned, rate = config.get("codecs"), config.get("sample_rate") or 16000
    if config.get("input") != "audio" or not isinstance(pinned, dict) or not pinned or rate not in RATES:
        return None
    try:
        done = _manipulated(pinned, rate) if "manipulations" in pinned else _coded(pinned, rate)
    except (HitmissError, KeyError, TypeError, ValueError):
        return None
    return Remaking(done, rate, (str(facts.get("positive")), str(facts.get("negative"))))


def _manipulated(pinned: Mapping[str, Any], rate: int) -> ManipulatedRows:
    return ManipulatedRows(pinned["manipulations"], sample_rate=rate, only=pinned["only"], seed=pinned["seed"])


def _coded(pinned: Mapping[str, Any], rate: int) -> CodedRows:
    """The conditions from their names, `C01-q2`, and what is pinned of them: the codec, its sample rate and bit rate."""
    found = []
    for text, (name, sample_rate, kbps) in pinned.items():
        label, _, quality = text.rpartition("-q")
        at = int(quality)
        codec = replace(find_codec(name), label=label, sample_rate=int(sample_rate), kbps=(float(kbps),) * at)
        found.append(Condition(codec, at))
    return CodedRows(usable(found)[0], rate)
