"""BEATs by name: an official-format checkpoint (`cfg`, `model`, `label_dict`) run by our own code, as a detector.

The architecture (Chen et al. 2022, "BEATs: Audio Pre-Training with Acoustic Tokenizers"): 128-bin Kaldi filterbanks,
normalised; patches of 16 × 16; a transformer with a positional convolution, relative positions gated by the query, and
deep norm; the classification head's logits averaged over the patches of each clip. Weights are used under their
official names. Clips of several lengths share a batch: each has its own patches and its own mask, so they do not affect
each other.

Real weights are not part of any package: they are the `.pt` files that the BEATs folder of the microsoft/unilm repository
lists. A checkpoint that was only pre-trained has no head; `--weights head.safetensors` (predictor.weight, predictor.bias)
adds one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypedDict

from hitmiss.core.errors import DataError, UnknownName, UsageError
from hitmiss.detection.beats_encoder import Arrangement, Encoder, product_type
from hitmiss.detection.beats_packed import PACK, Packed, reason_against, seconds_of
from hitmiss.detection.checkpoints import load_checkpoint
from hitmiss.detection.detect_spec import OutputKind
from hitmiss.detection.detector import Batch, Detector, arrays_of, need
from hitmiss.detection.eight_bits import largest_weight
from hitmiss.detection.filterbank import BINS, DEVIATION, FRAME, MEAN, SAMPLE_RATE, SHIFT, fbank, n_frames
from hitmiss.detection.on_device import Launched, Staged, TorchOnDevice
from hitmiss.detection.outputs import Outputs, pick_output
from hitmiss.detection.pinning import file_digest, pinned_precision

if TYPE_CHECKING:
    from torch import Tensor

HEAD: Final = "predictor.weight"
SHORTEST: Final = 15 * SHIFT + FRAME
"""Samples of one row of patches."""
SLOWER: Final = "the network runs on padded clips, which is slower"
OFFICIAL: Final = {
    "deep_norm": False,
    "relative_position_embedding": False,
    "max_distance": 1280,
    "gru_rel_pos": False,
}
"""The official code's defaults for keys absent from `cfg`, where the published checkpoints have other values."""


@dataclass(frozen=True)
class BeatsConfig:
    """The settings of a checkpoint's `cfg` that matter for inference; the defaults are those of the published ones."""

    input_patch_size: int = 16
    embed_dim: int = 512
    conv_bias: bool = False
    encoder_layers: int = 12
    encoder_embed_dim: int = 768
    encoder_ffn_embed_dim: int = 3072
    encoder_attention_heads: int = 12
    activation_fn: str = "gelu"
    layer_norm_first: bool = False
    deep_norm: bool = True
    conv_pos: int = 128
    conv_pos_groups: int = 16
    relative_position_embedding: bool = True
    num_buckets: int = 320
    max_distance: int = 800
    gru_rel_pos: bool = True

    @classmethod
    def of(cls, cfg: Mapping[str, object]) -> BeatsConfig:
        """Make it from a checkpoint's `cfg`, without training settings. An absent key has the official default."""
        known: dict[str, Any] = {f.name: cfg.get(f.name, OFFICIAL.get(f.name, f.default)) for f in fields(cls)}
        config = cls(**known)
        if config.activation_fn != "gelu" or config.layer_norm_first:
            raise DataError.of("not-beats/variant")
        return config

    @property
    def alpha(self) -> float:
        """The weight of the residual in deep norm."""
        return (2.0 * self.encoder_layers) ** 0.25 if self.deep_norm else 1.0


class Checkpoint(TypedDict):
    """A checkpoint in the official format."""

    cfg: dict[str, object]
    model: dict[str, Tensor]
    label_dict: dict[int, str]


class Beats:
    """The network: a configuration and weights under their official names. Call it with clips to get logits."""

    def __init__(self, config: BeatsConfig, weights: Mapping[str, Tensor]) -> None:
        self.torch = need("torch", "torch")
        self.config = config
        wanted = weight_shapes(config, int(weights[HEAD].shape[0]) if HEAD in weights else None)
        wrong = [n for n, shape in wanted.items() if n not in weights or tuple(weights[n].shape) != shape]
        if wrong:
            found = tuple(weights[wrong[0]].shape) if wrong[0] in weights else "nothing"
            raise DataError.of(
                "not-beats/weights",
                n_wrong=len(wrong),
                wrong=wrong[0],
                wanted=str(wanted[wrong[0]]),
                found=str(found),
            )
        self.weights = {name: weights[name].float() for name in wanted}
        self.notes: list[str] = []
        self._encoder: Encoder | None = None
        self._packed: Packed | None = None
        self._packs = False
        self._placed: tuple[str, str, Arrangement | None] = ("cpu", "float32", None)

    def to(self, device: str, precision: str = "float32", arrangement: Arrangement | None = None) -> Beats:
        """Move the network to a device, in a precision: packed if possible, else (or with an `arrangement`) padded."""
        product_type(precision)
        self.weights = {name: tensor.to(device) for name, tensor in self.weights.items()}
        self._placed, self._encoder, self._packed = (device, precision, arrangement), None, None
        why = reason_against(self.config, device) if arrangement is None else "an arrangement was given"
        self._packs = why is None
        if device.startswith("cuda") and arrangement is None and why is not None:
            self.notes = [f"{SLOWER}: {why}"]
        return self

    def eval(self) -> Beats:
        """Do nothing: there is no dropout here."""
        return self

    @property
    def encoder(self) -> Encoder:
        """Positions and layers for padded clips, ready to run."""
        if self._encoder is None:
            device, precision, arrangement = self._placed
            made = Encoder(self.config, self.weights, device=device, precision=precision, arrangement=arrangement)
            self._encoder = made
        return self._encoder

    @property
    def packed(self) -> Packed:
        """The network for clips in packs, ready to run."""
        if self._packed is None:
            device, precision, _ = self._placed
            self._packed = Packed(self.config, self.weights, device=device, precision=precision)
        return self._packed

    def __call__(self, waves: Tensor, lengths: Sequence[int] | None = None) -> Tensor:
        """Return the logits (clip × class) of clips at 16 kHz; `lengths` gives the lengths of padded clips."""
        logits, _ = self.forward(waves, lengths)
        return logits

    def forward(
        self, waves: Tensor, lengths: Sequence[int] | None = None, keep: bool = False
    ) -> tuple[Tensor, list[Tensor]]:
        """Return logits, and with `keep` each layer's mean over the patches of each clip (first: before the layers).

        A network without a head does not predict classes: its single column is 0.
        """
        whole = self._lengths(waves, lengths)
        device, precision, _ = self._placed
        if device == "cpu" and precision != "float32" and len(whole) > 1:
            # The size of a batch changes how products round. That is nothing in float32, but much in less.
            each = [self.forward(wave[None, :n], [n], keep) for wave, n in zip(waves, whole, strict=True)]
            layers = zip(*(kept for _, kept in each), strict=True)
            return self.torch.cat([logits for logits, _ in each]), [self.torch.cat(layer) for layer in layers]
        if self._packs:
            try:
                return self.packed(waves, whole, keep)
            except self.torch.cuda.OutOfMemoryError:
                raise
            except Exception as error:  # a compiler or a tool is missing: the padded form gives the same scores
                first = (str(error).strip().splitlines() or [type(error).__name__])[0]
                self._packs, self._packed, self.notes = False, None, [f"{SLOWER}: {first[:300]}"]
        x, counts = self.patches(waves, whole)
        is_padded = min(counts) < x.shape[1]
        # Through pinned memory: a plain copy to a GPU would wait for all pending work there.
        counted = self.torch.tensor(counts)
        ends = (counted.pin_memory() if x.is_cuda else counted).to(x.device, non_blocking=True)
        inside = (self.torch.arange(x.shape[1], device=x.device)[None] < ends[:, None]).float()
        if is_padded:
            x = x * inside[..., None]
        # A sum, not a product with shares: torch adds the halves of a sum first, which rounds less.
        encoded = self.encoder(x, ends, is_padded, keep)
        kept = [(layer * inside[..., None]).sum(dim=1) / ends[:, None] for layer in encoded]
        # The head is linear, so the average over patches may come before it.
        logits = self._linear(kept[-1], "predictor") if HEAD in self.weights else kept[-1][:, :1] * 0.0
        return logits, kept if keep else []

    def patches(self, waves: Tensor, lengths: Sequence[int] | None = None) -> tuple[Tensor, list[int]]:
        """Return embedded patches (clip × patch × width), and how many of them each clip has."""
        size = self.config.input_patch_size
        rows = [n_frames(length) // size for length in self._lengths(waves, lengths)]
        energies = (fbank(waves * 2.0**15, BINS) - MEAN) / (2 * DEVIATION)
        # A convolution whose stride equals its kernel is a product over patches that do not overlap.
        cut = energies[:, : max(rows) * size].unflatten(1, (-1, size)).unflatten(3, (-1, size))
        flat = cut.transpose(2, 3).flatten(3).flatten(1, 2)
        kernel, bias = self.weights["patch_embedding.weight"].flatten(1), self.weights.get("patch_embedding.bias")
        x = self._norm(self.torch.nn.functional.linear(flat, kernel, bias), "layer_norm")
        if "post_extract_proj.weight" in self.weights:
            x = self._linear(x, "post_extract_proj")
        return x, [row * (BINS // size) for row in rows]

    def _lengths(self, waves: Tensor, lengths: Sequence[int] | None) -> list[int]:
        """Return the samples of each clip; refuse a clip that is shorter than a patch."""
        n = [int(waves.shape[-1])] * len(waves) if lengths is None else list(lengths)
        if min(n) < SHORTEST:
            raise DataError.of("short-clip", n=min(n), SHORTEST=SHORTEST)
        return n

    def _linear(self, x: Tensor, name: str) -> Tensor:
        return self.torch.nn.functional.linear(x, self.weights[f"{name}.weight"], self.weights[f"{name}.bias"])

    def _norm(self, x: Tensor, name: str) -> Tensor:
        weight, bias = self.weights[f"{name}.weight"], self.weights[f"{name}.bias"]
        return self.torch.nn.functional.layer_norm(x, weight.shape, weight, bias)


class BeatsDetector(TorchOnDevice):
    """BEATs with a classification head; without one it only gives embeddings (`layers`)."""

    sample_rate: int | None = SAMPLE_RATE
    ragged = True
    output_kind: OutputKind = "logit"

    def __init__(
        self,
        network: Beats,
        *,
        labels: tuple[str, ...] | None = None,
        digest: str = "",
        device: str = "auto",
        precision: str = "auto",
        layers: tuple[str, ...] = (),
        arrangement: Arrangement | None = None,
    ) -> None:
        super().__init__(device, precision)
        if HEAD not in network.weights and not layers:
            raise UsageError.of("no-head")
        self.network = network.to(self.device, self.precision, arrangement)
        if self.is_async:
            self.batch_seconds = seconds_of(
                PACK, BINS // network.config.input_patch_size, network.config.input_patch_size
            )
        self.name, self.labels, self._digest = "beats", labels, digest
        known = [f"layer.{i}" for i in range(network.config.encoder_layers + 1)]
        self.layers = tuple(known) if "layer.*" in layers else layers
        for layer in self.layers:
            if layer not in known:
                raise UnknownName("layer", layer, known)

    @classmethod
    def load(
        cls,
        path: str,
        head: str | Path | None = None,
        *,
        device: str = "auto",
        precision: str = "auto",
        layers: tuple[str, ...] = (),
    ) -> BeatsDetector:
        """Load a checkpoint in the official format, optionally with a head from another file."""
        checkpoint = load_checkpoint(path)
        if not isinstance(checkpoint, dict) or not {"cfg", "model"} <= set(checkpoint):
            raise DataError.of("not-beats", name=Path(path).name)
        extra = load_checkpoint(head) if head is not None else {}
        if not isinstance(extra, dict):
            raise DataError.of("no-weights", file=head, found=type(extra).__name__)
        network = Beats(BeatsConfig.of(checkpoint["cfg"]), {**checkpoint["model"], **extra})
        names = checkpoint.get("label_dict")
        labels = tuple(str(names[i]) for i in range(len(names))) if names and not extra else None
        digest = "+".join(file_digest(p) for p in (path, head) if p is not None)
        return cls(network, labels=labels, digest=digest, device=device, precision=precision, layers=layers)

    @property
    def identity(self) -> Mapping[str, object]:
        """The checkpoint's digest and the precision."""
        pinned = {"weights": self._digest, "config": asdict(self.network.config)}
        precision = pinned_precision(self.precision, largest_weight())
        return {"name": self.name, **precision, "layers": list(self.layers), **pinned}

    @property
    def notes(self) -> list[str]:
        """Notes about how it runs."""
        no_head = "the checkpoint has no head: every score is 0, and only the embeddings mean something"
        return [*self.network.notes, *([] if HEAD in self.network.weights else [no_head])]

    def in_float32(self) -> Detector | None:
        """Return the same network in float32."""
        if self.precision == "float32":
            return None
        network = Beats(self.network.config, self.network.weights)
        return BeatsDetector(network, labels=self.labels, digest=self._digest, device=self.device, layers=self.layers)

    def prepare(self, batch: Batch) -> Staged:
        """Return padded clips being copied to the device, and their lengths."""
        return batch if isinstance(batch, Staged) else self.stage(arrays_of(batch))

    def launch(self, batch: Batch) -> Launched:
        """Start the network on a batch; on CUDA this returns before it is done."""
        staged = self.prepare(batch)
        return self.sent(self._forward(staged)[0].float(), staged)

    def collect(self, launched: Launched) -> Outputs:
        """Return the logits of a batch on the CPU."""
        return pick_output(self.landed(launched))

    def outputs(self, batch: Batch) -> Outputs:
        """Return the logits, not their sigmoid, which saturates."""
        return self.collect(self.launch(batch))

    def with_layers(self, batch: Batch) -> tuple[Outputs, dict[str, Outputs]]:
        """Return the logits, and the average of each layer over the patches of each clip."""
        logits, kept = self._forward(self.prepare(batch), keep=True)
        chosen = {name: kept[int(name.removeprefix("layer."))] for name in self.layers}
        return logits.float().cpu().numpy(), {name: layer.float().cpu().numpy() for name, layer in chosen.items()}

    def _forward(self, staged: Staged, keep: bool = False) -> tuple[Tensor, list[Tensor]]:
        with self.arithmetic():
            return self.network.forward(self.arrived(staged), staged.lengths, keep)

    def autocast(self) -> AbstractContextManager[object]:
        """Do nothing: the network's own weights are in the chosen precision, and what must be float32 is."""
        return nullcontext()


def weight_shapes(config: BeatsConfig, classes: int | None) -> dict[str, tuple[int, ...]]:
    """Return the official name and shape of every weight; `classes` is None for a checkpoint without a head."""
    width, inner, patch = config.encoder_embed_dim, config.encoder_ffn_embed_dim, config.input_patch_size
    group = width // config.conv_pos_groups
    shapes: dict[str, tuple[int, ...]] = {"patch_embedding.weight": (config.embed_dim, 1, patch, patch)}
    shapes |= {"patch_embedding.bias": (config.embed_dim,)} if config.conv_bias else {}
    shapes |= _pair("layer_norm", config.embed_dim)
    shapes |= _pair("post_extract_proj", width, config.embed_dim) if config.embed_dim != width else {}
    shapes |= {"encoder.pos_conv.0.weight_v": (width, group, config.conv_pos), "encoder.pos_conv.0.bias": (width,)}
    shapes |= {"encoder.pos_conv.0.weight_g": (1, 1, config.conv_pos), **_pair("encoder.layer_norm", width)}
    for i in range(config.encoder_layers):
        shapes |= _layer_shapes(config, f"encoder.layers.{i}.", width, inner)
    return shapes | (_pair("predictor", classes, width) if classes is not None else {})


def _layer_shapes(config: BeatsConfig, name: str, width: int, inner: int) -> dict[str, tuple[int, ...]]:
    heads = config.encoder_attention_heads
    shapes = {
        k: v for part in ("q", "k", "v", "out") for k, v in _pair(f"{name}self_attn.{part}_proj", width, width).items()
    }
    if config.relative_position_embedding:
        shapes[f"{name}self_attn.relative_attention_bias.weight"] = (config.num_buckets, heads)
    if config.gru_rel_pos:
        shapes |= {
            **_pair(f"{name}self_attn.grep_linear", 8, width // heads),
            f"{name}self_attn.grep_a": (1, heads, 1, 1),
        }
    norms = {**_pair(f"{name}self_attn_layer_norm", width), **_pair(f"{name}final_layer_norm", width)}
    return {**shapes, **norms, **_pair(f"{name}fc1", inner, width), **_pair(f"{name}fc2", width, inner)}


def _pair(name: str, out: int, inner: int | None = None) -> dict[str, tuple[int, ...]]:
    return {f"{name}.weight": (out,) if inner is None else (out, inner), f"{name}.bias": (out,)}


def random_checkpoint(config: BeatsConfig, classes: Sequence[str] = ("fake", "real"), seed: int = 0) -> Checkpoint:
    """Return a checkpoint in the official format with random weights, for tests and timing."""
    torch = need("torch", "torch")
    rng = torch.Generator().manual_seed(seed)
    model = {}
    for name, shape in weight_shapes(config, len(classes)).items():
        is_norm = "norm.weight" in name or name.endswith(("weight_g", "grep_a"))
        model[name] = torch.ones(shape) if is_norm else torch.randn(shape, generator=rng) * 0.05
    shared = "self_attn.relative_attention_bias.weight"
    for i in range(1, config.encoder_layers if config.relative_position_embedding else 0):
        model[f"encoder.layers.{i}.{shared}"] = model[f"encoder.layers.0.{shared}"]
    cfg = {**asdict(config), "finetuned_model": True, "predictor_class": len(classes), "dropout": 0.1}
    return {"cfg": cfg, "model": model, "label_dict": dict(enumerate(classes))}
