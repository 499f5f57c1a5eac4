"""Models of the transformers library as detectors of sound, text or images.

Their label names show which column is positive, and `problem_type` whether labels exclude each other (softmax) or are
independent (sigmoid), as in the library's own pipelines. If the names carry no meaning (LABEL_0), the caller must
declare it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from hitmiss.core.errors import DataError, UnknownName
from hitmiss.detection.checkpoints import parameters_digest
from hitmiss.detection.detect_spec import OutputKind
from hitmiss.detection.detector import Batch, Detector, need
from hitmiss.detection.eight_bits import largest_weight
from hitmiss.detection.layers import declared_axes, find_layers, run_with_layers
from hitmiss.detection.on_device import TorchOnDevice
from hitmiss.detection.outputs import Outputs
from hitmiss.detection.pinning import digest_of_files, file_digest, pinned_precision
from hitmiss.detection.torch import in_precision

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Module

KINDS: Final[Mapping[str, tuple[str, str]]] = {
    "audio": ("AutoModelForAudioClassification", "AutoFeatureExtractor"),
    "text": ("AutoModelForSequenceClassification", "AutoTokenizer"),
    "image": ("AutoModelForImageClassification", "AutoImageProcessor"),
}
TEXT_ITEMS: Final = 32


class TransformersDetector(TorchOnDevice):
    """A classification model and its processor, from a folder (or a name that the library has in its cache).

    Texts of several lengths share a batch: the attention mask separates them. Clips do not, because many audio models
    normalise over padding despite their mask.
    """

    def __init__(
        self,
        place: str,
        kind: str = "audio",
        *,
        device: str = "auto",
        precision: str = "auto",
        layers: tuple[str, ...] = (),
    ) -> None:
        if kind not in KINDS:
            raise UnknownName("kind of transformers model", kind, KINDS)
        library = need("transformers", "transformers")
        super().__init__(device, precision)
        model_class, processor_class = (getattr(library, name) for name in KINDS[kind])
        try:
            model = model_class.from_pretrained(place, trust_remote_code=False, use_safetensors=True)
            self._processor = processor_class.from_pretrained(place, trust_remote_code=False)
        except (OSError, ValueError) as error:
            raise DataError.of("not-transformers", place=place, kind=kind, error=str(error).splitlines()[0]) from None
        self.kind, self.name, self._place = kind, f"hf-{kind}:{Path(place).name}", place
        self._digest = self._weights_digest(Path(place), model)
        self._about = self._files_digest(Path(place))
        self.model = in_precision(self.torch, model.to(self.device).eval(), self.precision)
        self.layers, self._axes = declared_axes(layers, lambda names: find_layers(self.model, names))
        self.is_async = False  # the processor makes its inputs, one batch at a time
        self.ragged = kind == "text"
        self.max_batch = TEXT_ITEMS if kind == "text" else None
        self.sample_rate = int(getattr(self._processor, "sampling_rate", 0)) or None
        self.labels = tuple(str(model.config.id2label[i]) for i in range(len(model.config.id2label)))
        self.output_kind = _output_kind(model.config)

    @property
    def identity(self) -> Mapping[str, object]:
        """Its name, the digest of its weights, and that of its settings and vocabulary."""
        precision = pinned_precision(self.precision, largest_weight())
        about = {"name": self.name, "weights": self._digest, "files": self._about, **precision}
        return {**about, "layers": list(self.layers)} if self.layers else about

    def in_float32(self) -> Detector | None:
        """Return the model as its folder holds it."""
        if self.precision == "float32":
            return None
        return TransformersDetector(self._place, self.kind, device=self.device, layers=self.layers)

    def outputs(self, batch: Batch) -> Outputs:
        """Return the logits, one row per item."""
        inputs = self._inputs(batch)
        moved = {name: value.to(self.device) for name, value in inputs.items()}
        with self.arithmetic():
            logits = self.model(**moved).logits
        return np.asarray(logits.float().cpu().numpy())

    def with_layers(self, batch: Batch) -> tuple[Outputs, dict[str, Outputs]]:
        """Return the logits, and each layer averaged over time (over tokens, or both axes of a picture)."""
        usual = None if self.kind == "audio" else 1
        return run_with_layers(
            self.model, self.layers, lambda: self.outputs(batch), self._axes, lambda: self._run_longer(batch), usual
        )

    def _run_longer(self, batch: Batch) -> None:
        """Run the model on clips of twice the length, to see which axis of a layer is its time."""
        if self.kind == "audio":
            self.outputs([np.concatenate([clip, clip]) for clip in map(np.asarray, batch)])

    def _inputs(self, batch: Batch) -> Mapping[str, Tensor]:
        if self.kind == "text":
            return self._processor(list(batch), padding=True, truncation=True, return_tensors="pt")  # type: ignore[no-any-return]
        clips = [np.asarray(clip) for clip in batch]
        if self.kind == "image":
            return self._processor(clips, return_tensors="pt")  # type: ignore[no-any-return]
        return self._processor(clips, sampling_rate=self.sample_rate, padding=True, return_tensors="pt")  # type: ignore[no-any-return]

    @staticmethod
    def _files_digest(folder: Path) -> str | None:
        """Return the digest of the files beside the weights: settings, vocabulary, tokenizer rules."""
        found = sorted(p for p in folder.glob("*") if p.suffix in (".json", ".txt", ".model", ".jinja"))
        return digest_of_files(found) if found else None

    def _weights_digest(self, folder: Path, model: Module) -> str:
        files = sorted(folder.glob("*.safetensors")) if folder.is_dir() else []
        return "+".join(map(file_digest, files)) or parameters_digest(model)


def _output_kind(config: object) -> OutputKind:
    """Return the kind of the model's outputs; a regression has its own scale, which the caller must declare."""
    kind = getattr(config, "problem_type", None)
    if kind == "regression":
        return "auto"
    return "multilabel" if kind == "multi_label_classification" else "logit"
