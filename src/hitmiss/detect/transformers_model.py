"""Models of the transformers library as detectors of sound, text or images.

Their label names say which column is positive, and `problem_type` whether labels exclude each other (softmax) or each
stands alone (sigmoid), as the library's own pipelines read it. Names that say nothing (LABEL_0) are asked about.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from hitmiss.detect.detector import Base, Batch, file_digest, need
from hitmiss.detect.extract import OutputKind
from hitmiss.detect.torch_model import TorchDetector, parameters_digest, pick_device, pick_precision
from hitmiss.errors import DataError, UnknownName

KINDS: Final[Mapping[str, tuple[str, str]]] = {
    "audio": ("AutoModelForAudioClassification", "AutoFeatureExtractor"),
    "text": ("AutoModelForSequenceClassification", "AutoTokenizer"),
    "image": ("AutoModelForImageClassification", "AutoImageProcessor"),
}
TEXT_ITEMS: Final = 32


class TransformersDetector(Base):
    """A classification model and its processor, from a folder (or a name that the library has in its cache).

    Texts of several lengths share a batch: the attention mask keeps them apart. Clips do not, as many audio models
    normalise over padding whatever their mask says.
    """

    def __init__(self, place: str, kind: str = "audio", *, device: str = "auto", precision: str = "auto") -> None:
        if kind not in KINDS:
            raise UnknownName("kind of transformers model", kind, KINDS)
        library = need("transformers", "transformers")
        self.torch = need("torch", "torch")
        model_class, processor_class = (getattr(library, name) for name in KINDS[kind])
        try:
            model = model_class.from_pretrained(place, trust_remote_code=False, use_safetensors=True)
            self._processor = processor_class.from_pretrained(place, trust_remote_code=False)
        except (OSError, ValueError) as error:
            raise DataError(f"{place} is no {kind} model of transformers: {str(error).splitlines()[0]}") from None
        self.kind, self.name = kind, f"hf-{kind}:{Path(place).name}"
        self.device = pick_device(device)
        self.precision = pick_precision(precision, self.device)
        self.model = model.to(self.device).eval()
        self.ragged = kind == "text"
        self.max_batch = TEXT_ITEMS if kind == "text" else None
        self.sample_rate = int(getattr(self._processor, "sampling_rate", 0)) or None
        self.labels = tuple(str(model.config.id2label[i]) for i in range(len(model.config.id2label)))
        self.output_kind = _output_kind(model.config)
        self._digest = self._weights_digest(Path(place))

    @property
    def identity(self) -> Mapping[str, Any]:
        """Its name and the digest of its weights."""
        return {"name": self.name, "weights": self._digest, "precision": self.precision}

    def outputs(self, batch: Batch) -> NDArray[Any]:
        """The logits, one row an item."""
        inputs = self._inputs(batch)
        moved = {name: value.to(self.device) for name, value in inputs.items()}
        with self.torch.inference_mode(), TorchDetector.autocast(self):  # type: ignore[arg-type]
            logits = self.model(**moved).logits
        return np.asarray(logits.float().cpu().numpy())

    def is_out_of_memory(self, error: BaseException) -> bool:
        """Whether the GPU or the machine had too little memory."""
        return TorchDetector.is_out_of_memory(self, error)  # type: ignore[arg-type]

    def _inputs(self, batch: Batch) -> Mapping[str, Any]:
        if self.kind == "text":
            return self._processor(list(batch), padding=True, truncation=True, return_tensors="pt")  # type: ignore[no-any-return]
        clips = [np.asarray(clip) for clip in batch]
        if self.kind == "image":
            return self._processor(clips, return_tensors="pt")  # type: ignore[no-any-return]
        return self._processor(clips, sampling_rate=self.sample_rate, padding=True, return_tensors="pt")  # type: ignore[no-any-return]

    def _weights_digest(self, folder: Path) -> str:
        files = sorted(folder.glob("*.safetensors")) if folder.is_dir() else []
        return "+".join(map(file_digest, files)) or parameters_digest(self.model)


def _output_kind(config: Any) -> OutputKind:
    """What the model's outputs are; those of a regression are on a scale of their own, which the caller must name."""
    kind = getattr(config, "problem_type", None)
    if kind == "regression":
        return "auto"
    return "multilabel" if kind == "multi_label_classification" else "logit"
