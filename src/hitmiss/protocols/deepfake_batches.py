"""Run batches through a model as the deepfake audio evaluation document does: augmented, cut to length, no gradients.

torch is used if the caller passes tensors or modules, and is never imported here; arrays and plain functions also work.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, TypeGuard

import numpy as np
from numpy.typing import NDArray

from hitmiss.attacks.audio import transform
from hitmiss.attacks.family import Perturbation
from hitmiss.core.errors import DataError
from hitmiss.core.sorting import Array
from hitmiss.detection.contract import Probe, probe
from hitmiss.detection.detect_spec import OutputKind
from hitmiss.detection.detector import is_torch_module
from hitmiss.detection.length import SILENCE, positions
from hitmiss.detection.outputs import pick_output
from hitmiss.detection.tracing import Settled
from hitmiss.stats.random import noise_generator

if TYPE_CHECKING:
    import torch

Clip: TypeAlias = "Array | torch.Tensor"
Augmentation: TypeAlias = "str | Perturbation | Callable[..., Iterable[Clip]]"
ScoreForm = Literal["probability", "log-odds"]
PADDING: Final = 160
"""This many zeros at the end of some clips of a batch, but not of others, are taken for padding."""


@dataclass
class Batches:
    """How the batches of a loader are prepared and run."""

    device: str = "cuda"
    on_device: Augmentation | None = None
    on_cpu: Augmentation | None = None
    changes_reals: bool = True
    cut_length: int | None = None
    sample_rate: int = 16000
    seed: int = 0
    probe: Probe | None = field(default=None, init=False)
    """How the model answered the first clip again, and in a batch."""
    _has_mentioned: bool = field(default=False, init=False)

    def run(
        self, model: Callable[..., object], loader: Iterable[object], kind: OutputKind = "auto"
    ) -> tuple[NDArray[np.int64], Array, OutputKind]:
        """Return the labels and raw outputs of all clips, in order, and the kind of the outputs; skip empty batches.

        The kind of outputs of a torch module is read from its last layer at the first batch, so that an unclear kind
        is reported at the start and not after hours.
        """
        device = _device(self.device)
        settled = Settled(model) if kind == "auto" and is_torch_module(model) else None
        ask = model if settled is None else settled
        labels: list[NDArray[np.int64]] = []
        outputs: list[Array] = []
        with evaluating(model, device):
            for batch in loader:
                audio, label = split_batch(batch)
                if not len(label):
                    continue
                ready = self.prepare(audio, label, device, sum(map(len, labels)))
                raw = _one_row_a_clip(pick_output(ask(ready)), len(label))
                if self.probe is None and np.isfinite(raw).all():
                    self._look_first(ask, ready, raw)
                outputs.append(raw)
                labels.append(label)
        if not labels:
            raise DataError.of("no-clips")
        return np.concatenate(labels), np.concatenate(outputs), kind if settled is None else settled.kind

    def _look_first(self, ask: Callable[..., object], ready: Clip, raw: Array) -> None:
        """Score the first clip twice and in a batch: a score must not depend on chance or on the other clips."""

        def score(chosen: Sequence[int]) -> Array:
            return _one_row_a_clip(pick_output(ask(ready[list(chosen)])), len(chosen))

        self.probe = probe(score, [f"clip {i}" for i in range(len(ready))], known=raw)
        self.probe.refuse_batch("the model", "use a loader with batch_size=1")
        if self.probe.is_random:
            sys.stderr.write(f"hitmiss: {self.probe.random_words('the model')}\n")

    def prepare(self, audio: Iterable[Clip], label: NDArray[np.int64], device: str | None, first: int) -> Clip:
        """Return a batch as the model gets it: augmented on the CPU, moved, augmented there, brought to length."""
        clips = _rows(audio)
        self._mention_padding(clips)
        clips = self._augmented(self.on_cpu, clips, label, first)
        if device is not None:
            clips = [clip.to(device) if _is_tensor(clip) else clip for clip in clips]
        clips = self._augmented(self.on_device, clips, label, first)
        if self.cut_length is not None:
            clips = [refit(clip, self.cut_length, "tile") for clip in clips]
        return stacked(clips)

    def _mention_padding(self, clips: list[Clip]) -> None:
        """Warn once if clips that will be tiled seem to be padded already, because the silence would be repeated."""
        if self._has_mentioned or self.cut_length is None or clips[0].shape[-1] >= self.cut_length:
            return
        silent = [not bool((clip[-PADDING:] != 0).any()) for clip in clips]
        if any(silent) and not all(silent):
            self._has_mentioned = True
            sys.stderr.write(
                f"hitmiss: {sum(silent)} of {len(clips)} clips of a batch end in zeros, as if padded to one length; tiling repeats "
                "that silence. Give the loader's clips as a list, or fit_length each before it is put into a batch\n"
            )

    def _augmented(
        self, given: Augmentation | None, clips: list[Clip], label: NDArray[np.int64], first: int
    ) -> list[Clip]:
        if given is None:
            return clips
        chosen = [i for i in range(len(clips)) if self.changes_reals or label[i] == 0]
        if not chosen:
            return clips
        if _is_by_clip(given):
            changed = [self._by_clip(given, clips[i], first + i) for i in chosen]
        else:
            batch_wise: Callable[..., Iterable[Clip]] = given  # type: ignore[assignment]  # the other kind
            changed = _rows(batch_wise(stacked([clips[i] for i in chosen])))
        if not self.changes_reals and self.cut_length is None:  # one batch, one length
            changed = [refit(clip, clips[i].shape[-1], "zero") for i, clip in zip(chosen, changed, strict=True)]
        out = list(clips)
        for i, clip in zip(chosen, changed, strict=True):
            out[i] = clip
        return out

    def _by_clip(self, given: Augmentation, clip: Clip, at: int) -> Clip:
        array = np.asarray(clip.detach().cpu() if _is_tensor(clip) else clip, dtype=np.float32)
        changed = transform(given)(array, self.sample_rate, noise_generator(self.seed, "augmentation", at))
        if not _is_tensor(clip):
            return changed
        return sys.modules["torch"].as_tensor(changed, dtype=clip.dtype, device=clip.device)


def split_batch(batch: object) -> tuple[Iterable[Clip], NDArray[np.int64]]:
    """Split `(audio, labels)` or `(audio, speaker, labels)` into audio and checked labels."""
    if not isinstance(batch, tuple | list) or len(batch) not in (2, 3):
        size = len(batch) if isinstance(batch, tuple | list) else type(batch).__name__
        raise DataError.of("bad-batch", size=size)
    audio, labels = batch[0], batch[-1]
    label = np.asarray(labels.detach().cpu() if _is_tensor(labels) else labels).reshape(-1)
    if len(audio) != len(label):
        raise DataError.of("bad-batch/lengths", n_audio=len(audio), n_label=len(label))
    if len(label) and not np.isin(label, (0, 1)).all():
        raise DataError.of("not-real-or-fake", found=label[~np.isin(label, (0, 1))][0])
    return audio, label.astype(np.int64)


def _one_row_a_clip(raw: Array, n: int) -> Array:
    rows = raw.reshape(n, -1) if raw.size and raw.size % n == 0 and (raw.ndim < 2 or raw.shape[0] == n) else raw
    if rows.ndim != 2 or len(rows) != n:
        raise DataError.of("output-shape", name="the model", shape=str(raw.shape), n=n, what="clips")
    return rows


def _rows(audio: Iterable[Clip]) -> list[Clip]:
    """Return a batch as a list of clips; (clip, 1, sample) loses its middle axis."""
    clips = list(audio)
    if clips and getattr(clips[0], "ndim", 1) == 2 and clips[0].shape[0] == 1:
        clips = [clip[0] for clip in clips]
    clips = [clip if hasattr(clip, "shape") else np.asarray(clip, dtype=np.float32) for clip in clips]
    if any(clip.ndim != 1 for clip in clips):
        raise DataError.of(
            "wrong-shape", name="a clip", form="one channel of samples", shape=str(tuple(clips[0].shape))
        )
    return clips


def refit(clip: Clip, n: int, rule: Literal["tile", "zero"]) -> Clip:
    """Return a clip, array or tensor, with exactly `n` samples."""
    if clip.shape[-1] == n:
        return clip
    at = positions(clip.shape[-1], n, rule)
    fitted = clip[np.maximum(at, 0)]
    fitted[at == SILENCE] = 0
    return fitted


def stacked(clips: list[Clip]) -> Clip:
    """Stack clips of equal length to a batch."""
    lengths = sorted({clip.shape[-1] for clip in clips})
    if len(lengths) > 1:
        raise DataError.of("bad-batch/uneven", n_lengths=len(lengths), lengths=lengths[0], lengths_2=lengths[-1])
    if _is_tensor(clips[0]):
        made: Clip = sys.modules["torch"].stack(clips)
        return made
    return np.stack([np.asarray(clip) for clip in clips])


@contextmanager
def evaluating(model: object, device: str | None) -> Iterator[None]:
    """Keep a torch module in evaluation mode, on its device, without gradients; restore its mode afterwards."""
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(model, torch.nn.Module):
        yield
        return
    training = [(module, module.training) for module in model.modules()]
    with ExitStack() as stack:
        stack.enter_context(torch.inference_mode())
        model.eval()
        if device is not None:
            model.to(device)
        try:
            yield
        finally:
            for module, was in training:
                module.training = was


def _device(asked: str) -> str | None:
    """Return the device to use: the one asked for, or the CPU with a message; None without torch."""
    torch = sys.modules.get("torch")
    if torch is None:
        return None
    if asked.startswith("cuda") and not torch.cuda.is_available():
        sys.stderr.write(f"hitmiss: the device {asked!r} was asked for and is not here; using the CPU\n")
        return "cpu"
    return asked


def _is_tensor(value: object) -> TypeGuard[torch.Tensor]:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def _is_by_clip(given: object) -> bool:
    """Say whether an augmentation takes single clips: a text, a perturbation, or a transform of audiomentations."""
    return isinstance(given, str | Perturbation) or type(given).__module__.startswith("audiomentations")
