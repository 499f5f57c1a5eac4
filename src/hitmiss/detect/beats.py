"""BEATs by name: an official-format checkpoint run by our own code, arranged for speed."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass, fields, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hitmiss.core.errors import DataError, UnknownName, UsageError
from hitmiss.detect.beats_packed import PACK, Packed, reason_against, seconds_of
from hitmiss.detect.detector import Batch, need
from hitmiss.detect.outputs import OutputKind
from hitmiss.detect.pinning import file_digest
from hitmiss.detect.torch import Launched, Placed, Staged, load_checkpoint

# ----------------------------------------------------------------------
# Kaldi filterbanks on batches of tensors: what BEATs and its kin hear. Same numbers as Kaldi without dither.

SAMPLE_RATE: Final = 16000
FRAME: Final = 400
SHIFT: Final = 160
FFT: Final = 512
LOWEST_HZ: Final = 20.0
PREEMPHASIS: Final = 0.97
FLOOR: Final = 1.1920928955078125e-07
BINS: Final = 128
MEAN: Final = 15.41663
DEVIATION: Final = 6.55582
"""Of the energies that BEATs was trained on."""


def n_frames(samples: int) -> int:
    """Whole frames of 25 ms every 10 ms in a clip.

    >>> n_frames(400), n_frames(559), n_frames(560), n_frames(100)
    (1, 1, 2, 0)
    """
    return max(0, 1 + (samples - FRAME) // SHIFT)


def fbank(waves: Any, bins: int = BINS) -> Any:
    """Log mel energies (clip × frame × bin) of clips at 16 kHz (clip × sample), on their device, in float32.

    Each frame: mean removed, pre-emphasised (0.97), Povey window, power spectrum of 512 points, triangles on the mel scale
    from 20 Hz to 8 kHz, natural log.
    """
    torch = need("torch", "torch")
    frames = waves.float().unfold(-1, FRAME, SHIFT)
    frames = frames - frames.mean(dim=-1, keepdim=True)
    before = torch.cat([frames[..., :1], frames[..., :-1]], dim=-1)
    window, filters = on_device(str(waves.device), bins)
    spectrum = torch.fft.rfft((frames - PREEMPHASIS * before) * window, n=FFT)
    power = spectrum.real.square() + spectrum.imag.square()
    with torch.autocast(waves.device.type, enabled=False), exact_products(torch):
        return (power @ filters.T).clamp_min(FLOOR).log()


@contextmanager
def exact_products(torch: Any) -> Iterator[None]:
    """Products in float32 as they are, where TF32 was asked for: what the model hears is not rounded."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


@lru_cache
def on_device(device: str, bins: int) -> tuple[Any, Any]:
    """Window and filters where they are used, copied there once: each copy would wait for what the device is doing."""
    torch = need("torch", "torch")
    with torch.inference_mode(False):
        window, filters = (torch.from_numpy(array).to(device) for array in (povey_window(), mel_filters(bins)))
    return window, filters


@lru_cache
def povey_window() -> NDArray[np.float32]:
    """A Hann window to the power 0.85."""
    hann = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(FRAME) / (FRAME - 1))
    return (hann**0.85).astype(np.float32)


@lru_cache
def mel_filters(bins: int) -> NDArray[np.float32]:
    """Triangles with equal widths on the mel scale, bin × frequency; the last frequency is not used."""
    low, high = mel(LOWEST_HZ), mel(SAMPLE_RATE / 2)
    edges = low + (high - low) / (bins + 1) * np.arange(bins + 2)
    at = mel(np.arange(FFT // 2) * SAMPLE_RATE / FFT)
    left, centre, right = edges[:-2, None], edges[1:-1, None], edges[2:, None]
    triangles = np.maximum(0.0, np.minimum((at - left) / (centre - left), (right - at) / (right - centre)))
    return np.pad(triangles, ((0, 0), (0, 1))).astype(np.float32)


def mel(hertz: Any) -> Any:
    """Kaldi's mel scale.

    >>> round(float(mel(1000.0)), 2)
    999.99
    """
    return 1127.0 * np.log(1.0 + np.asarray(hertz) / 700.0)


# ----------------------------------------------------------------------
# The transformer of BEATs on a processor, or where `beats_packed` cannot run: the published function in fewer, larger steps.
#
# What is arranged, and what it rests on:
#
# - The convolution for positions (kernel 128, 16 groups) may run in the frequency domain, in float32, in blocks of one length, so
#   that its weights are transformed once for clips of all lengths. Blocks that overlap give the convolution itself, and a
#   block holds the same samples whatever comes after the clip, so padding cannot change it.
# - Queries, keys, values and the gates of the relative positions come from one product: a gate is a linear function of the
#   query, so its weights are multiplied out beforehand.
# - Relative positions depend on the distance alone: a table of distances is enough.
# - On a processor the weights of the products are packed for oneDNN.
#
# The stream between layers, the norms and the average stay in float32 in every precision.

BLOCKS_PER_KERNEL: Final = 4
"""Length of an FFT block in kernels: of each block all but one kernel is new."""


@dataclass(frozen=True)
class Arrangement:
    """Which of the arrangements are used; none of them changes the function."""

    fourier: bool = False
    onednn: bool = False

    @classmethod
    def best(cls, device: str) -> Arrangement:
        """What was fastest on a device when it was measured (benchmarks/detect_gpu.py)."""
        torch = need("torch", "torch")
        return cls(fourier=device.startswith("cuda"), onednn=device == "cpu" and _packs(torch))


PLAIN: Final = Arrangement()
"""Products, convolution and attention as torch has them: what the others are compared with."""


class Layer(NamedTuple):
    """The weights of one layer as it uses them."""

    mix: Any
    mix_bias: Any
    scale: Any
    out: Any
    out_bias: Any
    first_norm: Any
    first_norm_bias: Any
    inner: Any
    inner_bias: Any
    outer: Any
    outer_bias: Any
    last_norm: Any
    last_norm_bias: Any


class Encoder:
    """Positions and layers: embedded patches in, encoded patches out, both clip × patch × width in float32."""

    def __init__(
        self,
        config: BeatsConfig,
        weights: Mapping[str, Any],
        *,
        device: str = "cpu",
        precision: str = "float32",
        arrangement: Arrangement | None = None,
    ) -> None:
        self.torch = need("torch", "torch")
        self.config = config
        self.arrangement = Arrangement.best(device) if arrangement is None else arrangement
        self.dtype = getattr(self.torch, product_type(precision))
        if self.arrangement.onednn and self.dtype != self.torch.float32:
            self.arrangement = replace(self.arrangement, onednn=False)
        self._float = {name: weights[name].to(device) for name in weights if name.startswith("encoder.")}
        self._table = distance_table(config, self._float)
        self._kernel = positional_kernel(self._float)
        self._spectrum = self._kernel_spectrum() if self.arrangement.fourier else None
        self._layers = [self._layer(f"encoder.layers.{i}.") for i in range(config.encoder_layers)]
        self._norm = tuple(self._float[f"encoder.layer_norm.{part}"] for part in ("weight", "bias"))
        self._float = {}
        self._matrix: tuple[int, Any] | None = None

    def __call__(self, x: Any, ends: Any, is_padded: bool, keep: bool = False) -> list[Any]:
        """The stream before the first layer and after each (after the last alone without `keep`).

        `ends` holds the number of patches of each clip; `is_padded` says whether any is shorter than the batch.
        """
        x = self._positions(x)
        stream = [x] if keep else []
        config, bias = self.config, None if self._table is None else self._bias_matrix(x.shape[1])
        about = (bias, ends, is_padded, config.encoder_attention_heads, config.alpha, self.arrangement.onednn)
        for weights in self._layers:
            x = layer_step(x, weights, *about)
            if keep:
                stream.append(x)
        return stream if keep else [x]

    def _positions(self, x: Any) -> Any:
        """The stream with positions: x + gelu(convolution), normed."""
        functional = self.torch.nn.functional
        around = self._around_fourier(x) if self._spectrum is not None else self._around(x)
        weight, bias = self._norm
        return functional.layer_norm(x + functional.gelu(around), weight.shape, weight, bias)

    def _around(self, x: Any) -> Any:
        kernel, bias = self._kernel
        groups, half = self.config.conv_pos_groups, self.config.conv_pos // 2
        found = self.torch.nn.functional.conv1d(x.transpose(1, 2), kernel, bias, padding=half, groups=groups)
        return found[..., : x.shape[1]].transpose(1, 2)  # an even kernel gives one place too many

    def _around_fourier(self, x: Any) -> Any:
        """The convolution by overlapping blocks (overlap-save)."""
        torch, (n, length, width) = self.torch, x.shape
        groups, kernel = self.config.conv_pos_groups, self.config.conv_pos
        block, half, size = BLOCKS_PER_KERNEL * kernel, kernel // 2, width // groups
        new = block - kernel + 1
        count = -(-length // new)
        padded = torch.nn.functional.pad(x.transpose(1, 2), (half, (count - 1) * new + block - half - length))
        blocks = torch.fft.rfft(padded.unfold(-1, block, new))  # clip × width × block × frequency
        grouped = blocks.view(n, groups, size, count, -1).permute(1, 4, 0, 3, 2).reshape(groups, -1, n * count, size)
        mixed = torch.matmul(grouped, self._spectrum)  # group × frequency × (clip, block) × size
        back = mixed.view(groups, -1, n, count, size).permute(2, 3, 0, 4, 1).reshape(n, count, width, -1)
        found = torch.fft.irfft(back, n=block)[..., :new]  # clip × block × width × time
        return found.transpose(2, 3).reshape(n, count * new, width)[:, :length] + self._kernel[1]

    def _kernel_spectrum(self) -> Any:
        """The kernel's transform, conjugated (torch's convolution is a correlation): group × frequency × in × out."""
        kernel, groups = self._kernel[0], self.config.conv_pos_groups
        spectrum = self.torch.fft.rfft(kernel.double(), n=BLOCKS_PER_KERNEL * self.config.conv_pos).conj()
        grouped = spectrum.view(groups, kernel.shape[0] // groups, kernel.shape[1], -1)
        return grouped.permute(0, 3, 2, 1).to(self.torch.complex64).contiguous()

    def _bias_matrix(self, length: int) -> Any:
        """The bias of each pair of patches (head × patch × patch); that of the last length is kept."""
        if self._matrix is None or self._matrix[0] != length:
            far, at = self.config.max_distance, self.torch.arange(length, device=self._table.device)
            distance = (at[None, :] - at[:, None]).clamp(-far, far) + far
            self._matrix = (length, self._table[:, distance])
        return self._matrix[1]

    def _layer(self, name: str) -> Layer:
        torch, w, config = self.torch, self._float, self.config
        heads, width = config.encoder_attention_heads, config.encoder_embed_dim
        weights = [w[f"{name}self_attn.{part}_proj.weight"] for part in "qkv"]
        biases = [w[f"{name}self_attn.{part}_proj.bias"] for part in "qkv"]
        scale = None
        if config.gru_rel_pos and config.relative_position_embedding:
            # Two gates a head, each the sum of four linear functions of the query: one linear function of the stream.
            gate = w[f"{name}self_attn.grep_linear.weight"].double().view(2, 4, -1).sum(dim=1)
            offset = w[f"{name}self_attn.grep_linear.bias"].double().view(2, 4).sum(dim=1)
            query = weights[0].double().view(heads, width // heads, width)
            query_bias = biases[0].double().view(heads, width // heads)
            weights.append(torch.einsum("gd,hdw->ghw", gate, query).reshape(2 * heads, width).float())
            biases.append((torch.einsum("gd,hd->gh", gate, query_bias) + offset[:, None]).reshape(-1).float())
            scale = w[f"{name}self_attn.grep_a"].view(1, heads, 1)
        names = ("self_attn.out_proj", "self_attn_layer_norm", "fc1", "fc2", "final_layer_norm")
        out, first, inner, outer, last = (
            tuple(w[f"{name}{part}.{kind}"] for kind in ("weight", "bias")) for part in names
        )
        mix = (torch.cat(weights), torch.cat(biases))
        (a, b), (c, d), (e, f), (g, h) = (self._product(*pair) for pair in (mix, out, inner, outer))
        return Layer(a, b, scale, c, d, first[0], first[1], e, f, g, h, last[0], last[1])

    def _product(self, weight: Any, bias: Any) -> tuple[Any, Any]:
        if self.arrangement.onednn:
            return self.torch.ops.mkldnn._reorder_linear_weight(weight.contiguous(), None), bias
        return weight.to(self.dtype).contiguous(), bias.to(self.dtype)


def layer_step(x: Any, w: Layer, bias: Any, ends: Any, is_padded: bool, heads: int, alpha: float, packed: bool) -> Any:
    """One layer: attention and two products, each added to the stream and normed."""
    import torch

    functional = torch.nn.functional
    n, length, width = x.shape
    kind = x.dtype if packed else w.mix.dtype
    mixed = linear(x.to(kind), w.mix, w.mix_bias, packed)
    q, k, v = mixed[..., : 3 * width].view(n, length, 3, heads, width // heads).permute(2, 0, 3, 1, 4).unbind(0)
    gate = None
    if w.scale is not None:
        gates = torch.sigmoid(mixed[..., 3 * width :].float()).view(n, length, 2, heads).permute(2, 0, 3, 1)
        gate = (gates[0] * (gates[1] * w.scale - 1.0) + 2.0).contiguous()  # clip × head × patch
    attended = attend(q, k, v, bias, gate, ends, is_padded)
    out = linear(attended.transpose(1, 2).reshape(n, length, width), w.out, w.out_bias, packed)
    x = functional.layer_norm(torch.add(out, x, alpha=alpha), (width,), w.first_norm, w.first_norm_bias)
    inner = linear(x.to(kind), w.inner, w.inner_bias, packed, gelu=True)
    out = linear(inner, w.outer, w.outer_bias, packed)
    return functional.layer_norm(torch.add(out, x, alpha=alpha), (width,), w.last_norm, w.last_norm_bias)


def linear(x: Any, weight: Any, bias: Any, packed: bool, gelu: bool = False) -> Any:
    """A product, perhaps followed by gelu."""
    import torch

    if packed:
        return torch.ops.mkldnn._linear_pointwise(
            x, weight, bias, "gelu" if gelu else "none", [], "none" if gelu else ""
        )
    out = torch.nn.functional.linear(x, weight, bias)
    return torch.nn.functional.gelu(out) if gelu else out


def attend(q: Any, k: Any, v: Any, bias: Any, gate: Any, ends: Any, is_padded: bool) -> Any:
    """Attention with the bias of every pair of patches as a matrix for each clip and head."""
    import torch

    mask = None
    if bias is not None:
        mask = bias[None] if gate is None else gate[..., None] * bias
    if is_padded:
        beyond = torch.arange(k.shape[-2], device=k.device)[None, :] >= ends[:, None]
        fill = torch.zeros(beyond.shape, device=k.device).masked_fill(beyond, -math.inf)[:, None, None, :]
        mask = fill if mask is None else mask + fill
    mask = mask if mask is None else mask.to(q.dtype)
    return torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)


def positional_kernel(weights: Mapping[str, Any]) -> tuple[Any, Any]:
    """The kernel of the convolution for positions, and its bias."""
    direction = weights["encoder.pos_conv.0.weight_v"]
    size = direction.norm(dim=(0, 1), keepdim=True)
    return weights["encoder.pos_conv.0.weight_g"] * direction / size, weights["encoder.pos_conv.0.bias"]


def distance_table(config: BeatsConfig, weights: Mapping[str, Any]) -> Any:
    """The bias of each distance between two patches (head × distance); distances beyond the last share one bucket."""
    if not config.relative_position_embedding:
        return None
    table = weights["encoder.layers.0.self_attn.relative_attention_bias.weight"]
    far = config.max_distance
    distance = need("torch", "torch").arange(-far, far + 1, device=table.device)
    return table[relative_buckets(distance, config.num_buckets, far)].T.contiguous()


def relative_buckets(distance: Any, n: int, most: int) -> Any:
    """The bucket of each distance: one half of the buckets for each direction, exact near by, logarithmic far away."""
    torch = need("torch", "torch")
    half, exact = n // 2, n // 4
    far = distance.abs()
    scaled = torch.log(far.clamp_min(1).float() / exact) / math.log(most / exact) * (half - exact)
    coarse = (exact + scaled.long()).clamp_max(half - 1)
    return torch.where(far < exact, far, coarse) + (distance > 0).long() * half


def product_type(precision: str) -> str:
    """The type of the products in a precision.

    >>> product_type("tf32"), product_type("bfloat16")
    ('float32', 'bfloat16')
    """
    kinds = {"float32": "float32", "tf32": "float32", "bfloat16": "bfloat16", "float16": "float16"}
    if precision not in kinds:
        raise UsageError(f"BEATs runs in {', '.join(kinds)}; {precision} is not among them", code="precision")
    return kinds[precision]


def _packs(torch: Any) -> bool:
    """Whether this torch packs weights for oneDNN."""
    has = hasattr(torch.ops.mkldnn, "_reorder_linear_weight") and hasattr(torch.ops.mkldnn, "_linear_pointwise")
    return bool(has and torch.backends.mkldnn.is_available())


# ----------------------------------------------------------------------
# BEATs by name: an official-format checkpoint (`cfg`, `model`, `label_dict`) run by our own code, as a detector.
#
# The architecture (Chen et al. 2022, "BEATs: Audio Pre-Training with Acoustic Tokenizers"): 128-bin Kaldi filterbanks,
# normalised; patches of 16 × 16; a transformer with a convolution for positions, relative positions gated by the query, and
# deep norm; the classification head's logits averaged over the patches of each clip. Weights are used under their official
# names. Clips of several lengths share a batch: each has its own patches and its own mask, so none changes another.
#
# Real weights are not part of any package: they are the `.pt` files that the BEATs folder of the microsoft/unilm repository
# lists. A checkpoint that was only pre-trained has no head; `--weights head.safetensors` (predictor.weight, predictor.bias)
# adds one.

Array = NDArray[Any]
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
"""What the official code takes for a key that `cfg` leaves out, where the published checkpoints say otherwise."""


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
    def of(cls, cfg: Mapping[str, Any]) -> BeatsConfig:
        """From a checkpoint's `cfg`; what only training needs is left out. A key left out has the official default."""
        config = cls(**{f.name: cfg.get(f.name, OFFICIAL.get(f.name, f.default)) for f in fields(cls)})
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
        self.notes: list[str] = []
        self._encoder: Encoder | None = None
        self._packed: Packed | None = None
        self._packs = False
        self._placed: tuple[str, str, Arrangement | None] = ("cpu", "float32", None)

    def to(self, device: str, precision: str = "float32", arrangement: Arrangement | None = None) -> Beats:
        """The network on a device, in a precision: packed where it can be, else (or where `arrangement` says how) padded."""
        product_type(precision)
        self.weights = {name: tensor.to(device) for name, tensor in self.weights.items()}
        self._placed, self._encoder, self._packed = (device, precision, arrangement), None, None
        why = reason_against(self.config, device) if arrangement is None else "an arrangement was given"
        self._packs = why is None
        if device.startswith("cuda") and arrangement is None and why is not None:
            self.notes = [f"{SLOWER}: {why}"]
        return self

    def eval(self) -> Beats:
        """Nothing: there is no dropout here."""
        return self

    @property
    def encoder(self) -> Encoder:
        """Positions and layers of padded clips, ready to run."""
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

    def __call__(self, waves: Any, lengths: Sequence[int] | None = None) -> Any:
        """The logits (clip × class) of clips at 16 kHz, padded at the end where `lengths` says so."""
        logits, _ = self.forward(waves, lengths)
        return logits

    def forward(self, waves: Any, lengths: Sequence[int] | None = None, keep: bool = False) -> tuple[Any, list[Any]]:
        """Logits, and with `keep` each layer's average over the patches of each clip (the first: before the layers).

        A network without a head says nothing of classes: its one column is 0.
        """
        if self._packs:
            whole = self._lengths(waves, lengths)
            try:
                return self.packed(waves, whole, keep)
            except self.torch.cuda.OutOfMemoryError:
                raise
            except Exception as error:  # a compiler or a tool is missing: the padded form gives the same scores
                first = (str(error).strip().splitlines() or [type(error).__name__])[0]
                self._packs, self._packed, self.notes = False, None, [f"{SLOWER}: {first[:300]}"]
        x, counts = self.patches(waves, lengths)
        is_padded = min(counts) < x.shape[1]
        # Through pinned memory: a plain copy to a GPU would wait until all that is under way there is done.
        counted = self.torch.tensor(counts)
        ends = (counted.pin_memory() if x.is_cuda else counted).to(x.device, non_blocking=True)
        inside = (self.torch.arange(x.shape[1], device=x.device)[None] < ends[:, None]).float()
        if is_padded:
            x = x * inside[..., None]
        share = (inside / ends[:, None])[:, None]
        kept = [self.torch.matmul(share, layer)[:, 0] for layer in self.encoder(x, ends, is_padded, keep)]
        # The head is linear, so the average over patches may come before it.
        logits = self._linear(kept[-1], "predictor") if HEAD in self.weights else kept[-1][:, :1] * 0.0
        return logits, kept if keep else []

    def patches(self, waves: Any, lengths: Sequence[int] | None = None) -> tuple[Any, list[int]]:
        """Embedded patches (clip × patch × width), and how many of them each clip has."""
        size = self.config.input_patch_size
        rows = [n_frames(length) // size for length in self._lengths(waves, lengths)]
        energies = (fbank(waves * 2.0**15, BINS) - MEAN) / (2 * DEVIATION)
        # A convolution whose stride is its kernel is a product over patches that do not overlap.
        cut = energies[:, : max(rows) * size].unflatten(1, (-1, size)).unflatten(3, (-1, size))
        flat = cut.transpose(2, 3).flatten(3).flatten(1, 2)
        kernel, bias = self.weights["patch_embedding.weight"].flatten(1), self.weights.get("patch_embedding.bias")
        x = self._norm(self.torch.nn.functional.linear(flat, kernel, bias), "layer_norm")
        if "post_extract_proj.weight" in self.weights:
            x = self._linear(x, "post_extract_proj")
        return x, [row * (BINS // size) for row in rows]

    def _lengths(self, waves: Any, lengths: Sequence[int] | None) -> list[int]:
        """Samples of each clip; one that is shorter than a patch is refused."""
        n = [int(waves.shape[-1])] * len(waves) if lengths is None else list(lengths)
        if min(n) < SHORTEST:
            raise DataError(
                f"a clip of {min(n)} samples is shorter than one patch of BEATs ({SHORTEST} samples)", code="short-clip"
            )
        return n

    def _linear(self, x: Any, name: str) -> Any:
        return self.torch.nn.functional.linear(x, self.weights[f"{name}.weight"], self.weights[f"{name}.bias"])

    def _norm(self, x: Any, name: str) -> Any:
        weight, bias = self.weights[f"{name}.weight"], self.weights[f"{name}.bias"]
        return self.torch.nn.functional.layer_norm(x, weight.shape, weight, bias)


class BeatsDetector(Placed):
    """BEATs with a classification head; without one it gives embeddings alone (`layers`)."""

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
            raise UsageError(
                "this checkpoint was only pre-trained: it has no classification head; fine-tune it, give a head with "
                "--weights, or take its embeddings (--embed layer.12)",
                code="no-head",
            )
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

    @property
    def notes(self) -> list[str]:
        """What to say about how it runs."""
        no_head = "the checkpoint has no head: every score is 0, and the embeddings alone say something"
        return [*self.network.notes, *([] if HEAD in self.network.weights else [no_head])]

    def prepare(self, batch: Batch) -> Batch:
        """Padded clips on their way to the device, and their lengths."""
        return batch if isinstance(batch, Staged) else self.stage(batch)

    def launch(self, batch: Batch) -> Launched:
        """Start the network on a batch; on CUDA this returns before it is done."""
        staged = self.prepare(batch)
        return self.sent(self._forward(staged)[0].float(), staged)

    def collect(self, launched: Launched) -> Array:
        """The logits of a batch on the CPU."""
        return np.asarray(self.landed(launched).numpy())

    def outputs(self, batch: Batch) -> Array:
        """The logits: not the sigmoid of them, which saturates."""
        return self.collect(self.launch(batch))

    def with_layers(self, batch: Batch) -> tuple[Array, dict[str, Array]]:
        """The logits, and the average of each layer over the patches of each clip."""
        logits, kept = self._forward(self.prepare(batch), keep=True)
        chosen = {name: kept[int(name.removeprefix("layer."))] for name in self.layers}
        return logits.float().cpu().numpy(), {name: layer.float().cpu().numpy() for name, layer in chosen.items()}

    def _forward(self, staged: Staged, keep: bool = False) -> tuple[Any, list[Any]]:
        with self.arithmetic():
            return self.network.forward(self.arrived(staged), staged.lengths, keep)

    def autocast(self) -> Any:
        """None: the network's own weights are in the chosen precision, and what must be float32 is."""
        return nullcontext()


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
