"""Clips and pictures as a detector received them: the changes that a run made to each are repeated.

`hitmiss detect --codecs` and `--manipulate` record which codecs at which rates, or which manipulations, of which class,
with which seed; the change of a clip follows from that and its row alone. What cannot be repeated (a codec that this
machine lacks, a function given in Python) is left as it was.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np

from hitmiss.attacks.codec_plan import Condition, usable
from hitmiss.attacks.codecs import find_codec
from hitmiss.attacks.conditions import CodedRows, ManipulatedRows
from hitmiss.core.convert import fit
from hitmiss.core.errors import HitmissError
from hitmiss.core.sorting import Array
from hitmiss.runs.manifest import as_manifest, load_manifest, run_facts

Row = Mapping[str, object]
RATES: Final = (8000, 11025, 12000, 16000, 22050, 24000, 32000, 44100, 48000)
"""Sample rates that MP3 supports."""


@dataclass(frozen=True, eq=False)
class Remaking:
    """The changes that a run made to its items, at their sample rate; `classes` names positive and negative."""

    done: CodedRows | ManipulatedRows
    rate: int
    classes: tuple[str, str]

    def __call__(self, clip: Array, row: Row) -> Array | None:
        """Return the clip of a row as the detector received it; None if it cannot be recreated."""
        named = {name: str(value) for name, value in row.items()}
        named["label"] = self.classes[0] if row.get("label") == 1 else self.classes[1]
        try:
            changed = self.done(clip, named)
            return changed if isinstance(changed, np.ndarray) else None
        except (HitmissError, KeyError):
            return None


def remaking_of(run: Path) -> Remaking | None:
    """Return the changes of a `hitmiss detect` run over sounds or pictures; None if none were made or can be repeated."""
    manifest = load_manifest(run)
    config, facts = as_manifest(manifest).config, run_facts(manifest)
    pinned, rate, medium = config.get("codecs"), config.get("sample_rate") or 16000, config.get("input")
    if not isinstance(pinned, dict) or not pinned or not isinstance(rate, int) or rate not in RATES:
        return None
    if not isinstance(medium, str) or medium not in ("audio", "image"):
        return None
    try:
        done = _manipulated(pinned, rate, medium) if "manipulations" in pinned else _coded(pinned, rate)
    except (HitmissError, KeyError, TypeError, ValueError):
        return None
    return Remaking(done, rate, (str(facts.positive), str(facts.negative)))


def _manipulated(pinned: Mapping[str, object], rate: int, medium: str) -> ManipulatedRows:
    only = None if pinned["only"] is None else fit(str, pinned["only"])
    given, seed = fit(list[str], pinned["manipulations"]), fit(int, pinned["seed"])
    return ManipulatedRows(given, medium=medium, sample_rate=rate, only=only, seed=seed)


def _coded(pinned: Mapping[str, object], rate: int) -> CodedRows:
    """Return the conditions from their names, `C01-q2`, and their fixed settings: codec, sample rate and bit rate."""
    found = []
    for text, settings in pinned.items():
        name, sample_rate, kbps = fit(list[object], settings)
        label, _, quality = text.rpartition("-q")
        at = int(quality)
        codec = find_codec(fit(str, name))
        codec = replace(codec, label=label, sample_rate=fit(int, sample_rate), kbps=(fit(float, kbps),) * at)
        found.append(Condition(codec, at))
    return CodedRows(usable(found)[0], rate)
