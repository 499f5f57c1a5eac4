"""Functions and classic detectors as models, asked about the same items as language models.

A function takes an `Item` (`load()` gives its bytes, `kind` says what it is) and gives a verdict: a mapping with
`verdict` and `confidence`, the word alone, or the probability of fake. A classic detector (ONNX, torch, transformers,
scikit-learn, a program) gets the decoded item (a picture as 1 × 3 × height × width from 0 to 1, a sound as mono samples, a
text as it is); its probability of fake becomes a verdict by two thresholds.
"""

from __future__ import annotations

import importlib.util
import math
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from hitmiss.detect.detector import Base, CallableDetector, EstimatorDetector, open_detector, opener_of
from hitmiss.detect.extract import Extraction, pick_output, settled_kind, to_probability
from hitmiss.errors import DataError, EnvironmentFault, UsageError
from hitmiss.llm.answers import Answer, answer_of
from hitmiss.llm.items import Item
from hitmiss.llm.recorder import Recorder, failure, now

DOTTED: Final = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")
SAMPLE_RATE: Final = 16000
PROBED: Final = 32
"""Items by whose outputs it is settled whether a detector gives logits or probabilities."""


class Model:
    """A model that answers about one item; `identity` pins it in the configuration of a run."""

    def __init__(
        self,
        detector: Base,
        thresholds: tuple[float, float] = (0.5, 0.5),
        extraction: Extraction | None = None,
        image_size: int | None = None,
    ) -> None:
        self.detector, self.thresholds, self.image_size = detector, thresholds, image_size
        self.extraction = extraction or Extraction()
        if not thresholds[0] <= thresholds[1]:
            raise UsageError(f"--thresholds takes the lower number first; found {thresholds[0]:g} {thresholds[1]:g}")

    @property
    def identity(self) -> dict[str, Any]:
        """What pins it."""
        how = {"outputs": self.extraction.kind, "positive_index": self.extraction.positive_index}
        return {**dict(self.detector.identity), **how, "image_size": self.image_size}

    def settle(self, items: Sequence[Item]) -> None:
        """Settle once for all what a detector's outputs are, by those of the first items; one alone cannot tell."""
        known = {"predict_log_proba": "logit", "decision_function": "logit", "predict_proba": "probability"}
        if isinstance(self.detector, CallableDetector) or self.extraction.kind != "auto":
            return
        if getattr(self.detector, "output_kind", "auto") != "auto":
            return  # it says so itself
        if isinstance(self.detector, EstimatorDetector):
            kind = known[str(self.detector.method)]
        else:
            seen = [found for item in items[:PROBED] if (found := self._tried(item)) is not None]
            if not seen:
                return  # every one fails, and says so in its row
            try:
                kind = settled_kind(np.concatenate(seen))
            except DataError as error:
                raise UsageError(f"{self.detector.name}: {error}") from None
        self.extraction = replace(self.extraction, kind=kind)  # type: ignore[arg-type]

    def answer(self, item: Item) -> Answer:
        """The verdict about an item."""
        if isinstance(self.detector, CallableDetector):
            return self._understood(self.detector.function(item))
        return self._from_probability(float(to_probability(self._settled().log_odds(self._outputs(item)))[0]))

    def _outputs(self, item: Item) -> Any:
        batch = self._batch(item)
        prepare = getattr(self.detector, "prepare", None)  # a detector of the user's own may have none
        return self.detector.outputs(prepare(batch) if prepare is not None else batch)

    def _tried(self, item: Item) -> Any:
        try:
            return np.asarray(pick_output(self._outputs(item)), dtype=np.float64).reshape(1, -1)
        except (UsageError, EnvironmentFault):
            raise
        except Exception:  # it will fail again when it is asked, and be a row then
            return None

    def _understood(self, said: Any) -> Answer:
        if isinstance(said, str):
            said = {"verdict": said}
        if isinstance(said, Mapping):
            found = answer_of({"confidence": 0.0, "rationale": "", **said})
            return found if said.get("confidence") is not None else replace(found, confidence=None)
        if isinstance(said, bool) or not isinstance(said, int | float | np.number):
            raise DataError(
                f"the function gave a {type(said).__name__}; a verdict, a mapping or a probability is expected"
            )
        return self._from_probability(float(said))

    def _from_probability(self, p: float) -> Answer:
        if math.isnan(p) or not 0.0 <= p <= 1.0:
            raise DataError(f"{p:g} is no probability of fake")
        low, high = self.thresholds
        verdict = "fake" if p >= high else "real" if p < low else "uncertain"
        sureness = {"fake": p, "real": 1.0 - p, "uncertain": max(p, 1.0 - p)}
        return Answer(verdict, sureness[verdict], f"probability of fake {p:.6g}")

    def _settled(self) -> Extraction:
        """With the column of the class that means fake, where the detector names its classes."""
        return self.extraction.settled(self.detector, "fake")

    def _batch(self, item: Item) -> Any:
        if item.kind == "text":
            return [item.text]
        if item.kind == "audio":
            from hitmiss.io.media import load_audio

            assert item.path is not None
            return load_audio(item.path, self.detector.sample_rate or SAMPLE_RATE)[None]
        from hitmiss.llm.pixels import decode, resized

        pixels = decode(item.load())
        if self.image_size is not None:
            pixels = resized(pixels, self.image_size)
        if self.detector.name.startswith("hf-image"):
            return [pixels]
        scaled = (pixels.transpose(2, 0, 1)[None] / 255.0).astype(np.float32)
        return scaled.reshape(1, -1) if isinstance(self.detector, EstimatorDetector) else scaled


def is_detector(text: str) -> bool:
    """Whether a model's name stands for a function or a classic detector rather than for a language model.

    >>> is_detector("json:loads"), is_detector("model.onnx"), is_detector("gpt-5.1"), is_detector("llama3:8b")
    (True, True, False, False)
    """
    if opener_of(text) is not None:
        return True
    place, colon, _ = text.rpartition(":")
    if colon and place.endswith(".py"):
        return True
    if not DOTTED.fullmatch(text):
        return False
    try:
        return importlib.util.find_spec(place) is not None or _is_beside(place)
    except (ImportError, ValueError):
        return _is_beside(place)


def _is_beside(place: str) -> bool:
    return Path(*place.split(".")).with_suffix(".py").is_file()


def open_models(names: Sequence[str], weights: str | Path | None = None, **how: Any) -> dict[str, Model]:
    """The models among these names that are functions or classic detectors; `how` as `Model` takes it."""
    return {name: Model(open_detector(name, weights=weights), **how) for name in filter(is_detector, names)}  # type: ignore[arg-type]


def ask_models(recorder: Recorder, models: Mapping[str, Model]) -> None:
    """Put every open question to its function or detector, one after the other."""
    asked = {call.model for call in recorder.calls}
    for name in filter(asked.__contains__, models):
        models[name].settle(recorder.plan.items)
    for call in recorder.calls:
        if call.model not in models:
            continue
        recorder.add(call.key, _record(models[call.model].answer, call.item))
        recorder.require_hope()


def _record(answer: Callable[[Item], Answer], item: Item) -> dict[str, Any]:
    began, at = time.perf_counter(), now()
    try:
        found = answer(item)
    except (UsageError, EnvironmentFault):
        raise
    except Exception as error:  # it is the user's own code: an item that it cannot do is one failed call
        found = failure(error)  # type: ignore[assignment]
    seconds = round(time.perf_counter() - began, 6)
    times = {"timings": {"total_seconds": seconds}, "latency_seconds": seconds, "timestamp": at}
    if isinstance(found, dict):
        return {**found, **times}
    told = {"prediction": found.verdict, "confidence": found.confidence, "rationale": found.rationale}
    return {**told, **({"problem": found.problem} if found.problem else {}), **times}
