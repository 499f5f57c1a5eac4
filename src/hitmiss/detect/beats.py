"""BEATs by name: an official-format checkpoint (`cfg`, `model`, `label_dict`) run by our own code, as a detector.

The architecture (Chen et al. 2022, "BEATs: Audio Pre-Training with Acoustic Tokenizers"): 128-bin Kaldi filterbanks,
normalised; patches of 16 × 16; a transformer with a convolution for positions, relative positions gated by the query, and
deep norm; the classification head's logits averaged over the patches of each clip. Weights are used under their official
names. Clips of several lengths share a batch: each has its own patches and its own mask, so none changes another.

Real weights are not part of any package: they are the `.pt` files that the BEATs folder of the microsoft/unilm repository
lists. A checkpoint that was only pre-trained has no head; `--weights head.safetensors` (predictor.weight, predictor.bias)
adds one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from hitmiss.detect.detector import Base, Batch, file_digest, need
from hitmiss.detect.fbank import SAMPLE_RATE, fbank, n_frames
from hitmiss.detect.torch_model import (
    CPU_SECONDS,
    GPU_SECONDS,
    TorchDetector,
    load_checkpoint,
    pick_device,
    pick_precision,
)
from hitmiss.errors import DataError, UnknownName, UsageError

Array = NDArray[Any]
MEAN: Final = 15.41663
DEVIATION: Final = 6.55582
BINS: Final = 128
HEAD: Final = "predictor.weight"


@dataclass(frozen=True)
class BeatsConfig:
    """The settings of a checkpoint's `cfg` that matter for inference."""

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
    def of(cls, cfg: Mapping[str, Any]) -> BeatsConfig:
        """From a checkpoint's `cfg`; what only training needs is left out."""
        config = cls(**{f.name: cfg[f.name] for f in fields(cls) if f.name in cfg})
        if config.activation_fn != "gelu" or config.layer_norm_first:
            raise DataError(
                "only BEATs with gelu and layer norms after each part are supported, as the published ones are"
            )
        return config

    @property
    def alpha(self) -> float:
        """How much deep norm weighs the residual."""
        return (2.0 * self.encoder_layers) ** 0.25 if self.deep_norm else 1.0


class Beats:
    """The network: a configuration and weights under their official names. Call it with clips to get logits."""

    def __init__(self, config: BeatsConfig, weights: Mapping[str, Any]) -> None:
        self.torch = need("torch", "torch")
        self.config = config
        wanted = weight_shapes(config, int(weights[HEAD].shape[0]) if HEAD in weights else None)
        wrong = [n for n, shape in wanted.items() if n not in weights or tuple(weights[n].shape) != shape]
        if wrong:
            found = tuple(weights[wrong[0]].shape) if wrong[0] in weights else "nothing"
            raise DataError(
                f"{len(wrong)} weights do not fit BEATs, the first is {wrong[0]}: {wanted[wrong[0]]} expected, {found} found"
            )
        self.weights = {name: weights[name].float() for name in wanted}

    def to(self, device: str) -> Beats:
        """The network on a device."""
        self.weights = {name: tensor.to(device) for name, tensor in self.weights.items()}
        return self

    def eval(self) -> Beats:
        """Nothing: there is no dropout here."""
        return self

    def __call__(self, waves: Any, lengths: Sequence[int] | None = None) -> Any:
        """The logits (clip × class) of clips at 16 kHz, padded at the end where `lengths` says so."""
        logits, _ = self.forward(waves, lengths)
        return logits

    def forward(self, waves: Any, lengths: Sequence[int] | None = None, keep: bool = False) -> tuple[Any, list[Any]]:
        """Logits, and with `keep` each layer's average over the patches of each clip (the first: before the layers)."""
        x, mask = self.patches(waves, lengths)
        share = ((~mask).float() / (~mask).sum(dim=1, keepdim=True))[..., None]
        kept = []
        x = self._positions(x.masked_fill(mask[..., None], 0.0))
        bias = self._relative_bias(x.shape[1], x.device)
        for layer in range(self.config.encoder_layers):
            kept += [(x.float() * share).sum(dim=1)] if keep else []
            x = self._layer(x, f"encoder.layers.{layer}.", bias, mask)
        average = (x.float() * share).sum(dim=1)
        with self.torch.autocast(x.device.type, enabled=False):  # the head is linear: the average may come before it
            return self._linear(average, "predictor"), [*kept, average] if keep else []

    def patches(self, waves: Any, lengths: Sequence[int] | None = None) -> tuple[Any, Any]:
        """Embedded patches (clip × patch × width), and which of them are padding."""
        functional, size = self.torch.nn.functional, self.config.input_patch_size
        n = [int(waves.shape[-1])] * len(waves) if lengths is None else list(lengths)
        rows = [n_frames(length) // size for length in n]
        if min(rows) < 1:
            raise DataError(f"a clip of {min(n)} samples is shorter than one patch of BEATs ({16 * 160 + 240} samples)")
        energies = (fbank(waves * 2.0**15, BINS) - MEAN) / (2 * DEVIATION)
        bias = self.weights.get("patch_embedding.bias")
        x = functional.conv2d(energies[:, None], self.weights["patch_embedding.weight"], bias, stride=size)
        x = self._norm(x.flatten(2).transpose(1, 2), "layer_norm")
        if "post_extract_proj.weight" in self.weights:
            x = self._linear(x, "post_extract_proj")
        per_row = BINS // size
        ends = self.torch.tensor(rows, device=x.device)[:, None] * per_row
        return x, self.torch.arange(x.shape[1], device=x.device)[None] >= ends

    def _positions(self, x: Any) -> Any:
        functional, config = self.torch.nn.functional, self.config
        direction = self.weights["encoder.pos_conv.0.weight_v"]
        size = direction.norm(dim=(0, 1), keepdim=True)
        weight = self.weights["encoder.pos_conv.0.weight_g"] * direction / size
        bias, half = self.weights["encoder.pos_conv.0.bias"], config.conv_pos // 2
        around = functional.conv1d(x.transpose(1, 2), weight, bias, padding=half, groups=config.conv_pos_groups)
        around = around[..., : x.shape[1]]  # an even kernel gives one place too many
        return self._norm(x + functional.gelu(around).transpose(1, 2), "encoder.layer_norm")

    def _layer(self, x: Any, name: str, bias: Any, mask: Any) -> Any:
        alpha = self.config.alpha
        x = self._norm(x * alpha + self._attention(x, f"{name}self_attn.", bias, mask), f"{name}self_attn_layer_norm")
        inner = self.torch.nn.functional.gelu(self._linear(x, f"{name}fc1"))
        return self._norm(x * alpha + self._linear(inner, f"{name}fc2"), f"{name}final_layer_norm")

    def _attention(self, x: Any, name: str, bias: Any, mask: Any) -> Any:
        heads, (n, length, width) = self.config.encoder_attention_heads, x.shape
        q, k, v = (
            self._linear(x, f"{name}{part}_proj").view(n, length, heads, width // heads).transpose(1, 2)
            for part in "qkv"
        )
        weights = q.new_zeros((n, 1, 1, length))
        if bias is not None:
            weights = self._gate(q, name) * bias.to(q.dtype)
        weights = weights.masked_fill(mask[:, None, None, :], -math.inf)
        out = self.torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=weights.to(q.dtype))
        return self._linear(out.transpose(1, 2).reshape(n, length, width), f"{name}out_proj")

    def _gate(self, q: Any, name: str) -> Any:
        """How much each query heeds relative positions (clip × head × patch × 1)."""
        if not self.config.gru_rel_pos:
            return 1.0
        sums = self._linear(q, f"{name}grep_linear").unflatten(-1, (2, 4)).sum(dim=-1)
        first, second = self.torch.sigmoid(sums).split(1, dim=-1)
        return first * (second * self.weights[f"{name}grep_a"].to(q.dtype) - 1.0) + 2.0

    def _relative_bias(self, length: int, device: Any) -> Any:
        if not self.config.relative_position_embedding:
            return None
        at = self.torch.arange(length, device=device)
        buckets = relative_buckets(at[None, :] - at[:, None], self.config.num_buckets, self.config.max_distance)
        table = self.weights["encoder.layers.0.self_attn.relative_attention_bias.weight"]
        return table[buckets].permute(2, 0, 1)[None]

    def _linear(self, x: Any, name: str) -> Any:
        return self.torch.nn.functional.linear(x, self.weights[f"{name}.weight"], self.weights[f"{name}.bias"])

    def _norm(self, x: Any, name: str) -> Any:
        weight, bias = self.weights[f"{name}.weight"], self.weights[f"{name}.bias"]
        return self.torch.nn.functional.layer_norm(x, weight.shape, weight, bias)


class BeatsDetector(Base):
    """BEATs with a classification head."""

    sample_rate: int | None = SAMPLE_RATE
    ragged = True

    def __init__(
        self,
        network: Beats,
        *,
        labels: tuple[str, ...] | None = None,
        digest: str = "",
        device: str = "auto",
        precision: str = "auto",
        layers: tuple[str, ...] = (),
    ) -> None:
        if HEAD not in network.weights:
            raise UsageError(
                "this checkpoint was only pre-trained: it has no classification head; fine-tune it, or give a head with --weights"
            )
        self.torch = network.torch
        self.device = pick_device(device)
        self.precision = pick_precision(precision, self.device)
        self.network = network.to(self.device)
        self.name, self.labels, self._digest = "beats", labels, digest
        self.is_async = self.device.startswith("cuda")
        self.batch_seconds = GPU_SECONDS if self.is_async else CPU_SECONDS
        known = [f"layer.{i}" for i in range(network.config.encoder_layers + 1)]
        self.layers = tuple(known) if "layer.*" in layers else layers
        for layer in self.layers:
            if layer not in known:
                raise UnknownName("layer", layer, known)

    @classmethod
    def load(cls, path: str, head: str | Path | None = None, **placed: Any) -> BeatsDetector:
        """From a checkpoint in the official format, perhaps with a head from another file."""
        checkpoint = load_checkpoint(path)
        if not isinstance(checkpoint, dict) or not {"cfg", "model"} <= set(checkpoint):
            raise DataError(f"{Path(path).name} is no BEATs checkpoint: it must hold 'cfg' and 'model'")
        extra = load_checkpoint(head) if head is not None else {}
        network = Beats(BeatsConfig.of(checkpoint["cfg"]), {**checkpoint["model"], **extra})
        names = checkpoint.get("label_dict")
        labels = tuple(str(names[i]) for i in range(len(names))) if names and not extra else None
        digest = "+".join(file_digest(p) for p in (path, head) if p is not None)
        return cls(network, labels=labels, digest=digest, **placed)

    @property
    def identity(self) -> Mapping[str, Any]:
        """The checkpoint's digest and the precision."""
        pinned = {"weights": self._digest, "config": asdict(self.network.config)}
        return {"name": self.name, "precision": self.precision, "layers": list(self.layers), **pinned}

    def prepare(self, batch: Batch) -> Batch:
        """Padded clips on the device, and their lengths."""
        if isinstance(batch, tuple):
            return batch
        lengths = [len(clip) for clip in batch]
        padded = self.torch.zeros((len(lengths), max(lengths)), pin_memory=self.is_async)
        for row, clip in zip(padded.numpy(), batch, strict=True):
            row[: len(clip)] = clip
        return padded.to(self.device, non_blocking=True), lengths

    def launch(self, batch: Batch) -> Any:
        """Start the network on a batch; on CUDA this returns before it is done."""
        return self._forward(batch)[0]

    def collect(self, launched: Any) -> Array:
        """The logits of a batch on the CPU."""
        return np.asarray(launched.float().cpu().numpy())

    def outputs(self, batch: Batch) -> Array:
        """The logits: not the sigmoid of them, which saturates."""
        return self.collect(self.launch(batch))

    def with_layers(self, batch: Batch) -> tuple[Array, dict[str, Array]]:
        """The logits, and the average of each layer over the patches of each clip."""
        logits, kept = self._forward(batch, keep=True)
        chosen = {name: kept[int(name.removeprefix("layer."))] for name in self.layers}
        return self.collect(logits), {name: self.collect(layer) for name, layer in chosen.items()}

    def is_out_of_memory(self, error: BaseException) -> bool:
        """Whether the GPU had too little memory."""
        return TorchDetector.is_out_of_memory(self, error)  # type: ignore[arg-type]

    def _forward(self, batch: Batch, keep: bool = False) -> tuple[Any, list[Any]]:
        waves, lengths = self.prepare(batch)
        with self.torch.inference_mode(), TorchDetector.autocast(self):  # type: ignore[arg-type]
            return self.network.forward(waves, lengths, keep)


def relative_buckets(distance: Any, n: int, most: int) -> Any:
    """The bucket of each distance: one half of the buckets a direction, exact near by, logarithmic far away."""
    torch = need("torch", "torch")
    half, exact = n // 2, n // 4
    far = distance.abs()
    scaled = torch.log(far.clamp_min(1).float() / exact) / math.log(most / exact) * (half - exact)
    coarse = (exact + scaled.long()).clamp_max(half - 1)
    return torch.where(far < exact, far, coarse) + (distance > 0).long() * half


def weight_shapes(config: BeatsConfig, classes: int | None) -> dict[str, tuple[int, ...]]:
    """The official name and shape of every weight; `classes` None for a checkpoint without a head."""
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


def random_checkpoint(config: BeatsConfig, classes: Sequence[str] = ("fake", "real"), seed: int = 0) -> dict[str, Any]:
    """A checkpoint in the official format with random weights: for tests and for timing."""
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
