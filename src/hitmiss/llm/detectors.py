"""Functions and classic detectors as models, asked about the same items as language models.

A function takes an `Item` (`load()` returns its bytes, `kind` is its kind) and returns a verdict: a mapping with
`verdict` and `confidence`, only the word, or the probability of fake. A classic detector (ONNX, torch, transformers,
scikit-learn, a program) gets the decoded item (a picture as 1 × 3 × height × width from 0 to 1, a sound as mono
samples, a text unchanged); its probability of fake becomes a verdict by two thresholds.
"""

from __future__ import annotations

import importlib.util
import math
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np

from hitmiss.core.errors import DataError, EnvironmentFault, UsageError
from hitmiss.core.sorting import Array, Floats
from hitmiss.detection.contract import Contract, Origin, Term, detector_contract
from hitmiss.detection.detector import Batch, CallableDetector, Detector, EstimatorDetector
from hitmiss.detection.opening import open_detector, opener_of
from hitmiss.detection.outputs import Extraction, pick_output, settled_kind, to_probability
from hitmiss.llm.answers import Answer, answer_of
from hitmiss.llm.failures import failure, now
from hitmiss.llm.items import Item
from hitmiss.llm.question import USUAL, Question

DOTTED: Final = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")
SAMPLE_RATE: Final = 16000
PROBED: Final = 32
"""Items whose outputs decide whether a detector gives logits or probabilities."""


class Model:
    """A model that answers about one item; `identity` pins it in the configuration of a run."""

    def __init__(
        self,
        detector: Detector,
        thresholds: tuple[float, float] = (0.5, 0.5),
        extraction: Extraction | None = None,
        image_size: int | None = None,
        question: Question = USUAL,
    ) -> None:
        self.detector, self.thresholds, self.image_size = detector, thresholds, image_size
        self.question = question
        self.extraction = extraction or Extraction()
        self.contract: Contract | None = None
        """What it is taken for; None before its first answer."""
        self._kept: dict[str, Array] = {}
        if self.extraction.kind == "raw":
            raise UsageError.of("raw-outputs/verdict")
        if not thresholds[0] <= thresholds[1]:
            raise UsageError.of("bad-thresholds", low=thresholds[0], high=thresholds[1])

    @property
    def identity(self) -> dict[str, object]:
        """What pins it."""
        how = {"outputs": self.extraction.kind, "positive_index": self.extraction.positive_index}
        return {**getattr(self.detector, "identity", {}), **how, "image_size": self.image_size}

    def settle(self, items: Sequence[Item]) -> None:
        """Decide once the kind of a detector's outputs, from those of the first items; a single item is not enough.

        These outputs are kept for the answers about the same items: nothing is computed or paid for twice.
        """
        if isinstance(self.detector, CallableDetector) or self.extraction.kind != "auto":
            return
        if getattr(self.detector, "output_kind", "auto") != "auto":
            return  # the detector declares it
        seen = [found for item in items[:PROBED] if (found := self._tried(item)) is not None]
        if not seen:
            return  # every item fails, and its row says so
        try:
            kind = settled_kind(np.concatenate(seen))
        except DataError as error:
            raise UsageError.of("model-refused/detector", detector_name=self.detector.name, error=error) from None
        self.extraction = replace(self.extraction, kind=kind)

    def answer(self, item: Item) -> Answer:
        """Return the verdict about an item."""
        if isinstance(self.detector, CallableDetector):
            said = self.detector.function(item)
            found = self._understood(said)
            self.contract = self.contract or _contract_of_answers(said)
            return found
        outputs = self._kept.pop(item.id, None)
        outputs = self._outputs(item) if outputs is None else outputs
        columns = np.asarray(pick_output(outputs), dtype=np.float64).reshape(1, -1)
        rule = self.extraction.settled(self.detector, "fake", columns.shape[1])
        found = self._from_probability(float(to_probability(rule.log_odds(outputs))[0]))
        self.contract = self.contract or self._taken_for(rule, columns)
        return found

    def _taken_for(self, rule: Extraction, columns: Floats) -> Contract:
        """Return what a detector is taken for."""
        own = getattr(self.detector, "output_kind", "auto")
        origin: Origin = getattr(self.detector, "kind_from", "the model") if rule.kind == own else "its values"
        given = (self.extraction.positive_index is not None, getattr(self.detector, "sides", None) is not None)
        labels, rate = getattr(self.detector, "labels", None), self.detector.sample_rate
        return detector_contract(
            rule, origin, columns, ("fake", "real"), labels, given, (rate, "the model" if rate else ""), None
        )

    def _outputs(self, item: Item) -> Array:
        batch = self._batch(item)
        prepare = getattr(self.detector, "prepare", None)  # a user's own detector may have none
        return self.detector.outputs(prepare(batch) if prepare is not None else batch)

    def _tried(self, item: Item) -> Floats | None:
        try:
            self._kept[item.id] = np.asarray(pick_output(self._outputs(item)), dtype=np.float64).reshape(1, -1)
            return self._kept[item.id]
        except (UsageError, EnvironmentFault):
            raise
        except Exception:  # it will fail again when it is asked, and then become a row
            return None

    def _understood(self, said: object) -> Answer:
        if isinstance(said, str):
            said = {"verdict": said}
        if isinstance(said, Mapping):
            return answer_of(said, self.question.read)
        if isinstance(said, bool) or not isinstance(said, int | float | np.number):
            raise DataError.of("not-a-verdict", name=type(said).__name__)
        return self._from_probability(float(said))

    def _from_probability(self, p: float) -> Answer:
        if math.isnan(p) or not 0.0 <= p <= 1.0:
            raise DataError.of("out-of-range", name="a probability of fake", low=0, high=1, found=p)
        low, high = self.thresholds
        verdict = "fake" if p >= high else "real" if p < low else "uncertain"
        sureness = {"fake": p, "real": 1.0 - p, "uncertain": max(p, 1.0 - p)}
        return Answer(verdict, sureness[verdict], f"probability of fake {p:.6g}")

    def _batch(self, item: Item) -> Batch:
        if item.kind == "text":
            return [item.text or ""]
        if item.kind == "audio":
            from hitmiss.media.audio import load_audio

            assert item.path is not None
            return load_audio(item.path, self.detector.sample_rate or SAMPLE_RATE)[None]
        from hitmiss.llm.picture import decode, resized

        pixels = decode(item.load())
        if self.image_size is not None:
            pixels = resized(pixels, self.image_size)
        if self.detector.name.startswith("hf-image"):
            return [pixels]
        scaled = (pixels.transpose(2, 0, 1)[None] / 255.0).astype(np.float32)
        return scaled.reshape(1, -1) if isinstance(self.detector, EstimatorDetector) else scaled


def _contract_of_answers(said: object) -> Contract:
    """Return what a function is taken for, by its first answer: that answer is a result, and is not asked for again."""
    if isinstance(said, str | Mapping):
        return Contract((Term("answers", "verdict", "verdicts", "its values"),))
    return Contract((Term("answers", "probability", "probabilities of fake", "assumed"),))


def is_detector(text: str) -> bool:
    """Return whether a model's name refers to a function or a classic detector rather than to a language model.

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


def open_models(
    names: Sequence[str],
    weights: str | Path | None = None,
    *,
    thresholds: tuple[float, float] = (0.5, 0.5),
    extraction: Extraction | None = None,
    image_size: int | None = None,
    question: Question = USUAL,
) -> dict[str, Model]:
    """Open the models among these names that are functions or classic detectors."""
    return {
        name: Model(open_detector(name, weights=weights), thresholds, extraction, image_size, question)
        for name in filter(is_detector, names)
    }


def call_record(answer: Callable[[Item], Answer], item: Item) -> dict[str, object]:
    began, at = time.perf_counter(), now()
    try:
        found = answer(item)
    except (UsageError, EnvironmentFault):
        raise
    except Exception as error:  # the user's own code: an item that it cannot handle is one failed call
        found = failure(error)  # type: ignore[assignment]
    seconds = round(time.perf_counter() - began, 6)
    times = {"timings": {"total_seconds": seconds}, "latency_seconds": seconds, "timestamp": at}
    if isinstance(found, dict):
        return {**found, **times}
    told = {"prediction": found.verdict, "confidence": found.confidence, "rationale": found.rationale}
    return {**told, **({"problem": found.problem} if found.problem else {}), **times}
