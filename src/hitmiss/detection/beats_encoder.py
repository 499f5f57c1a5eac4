"""The transformer of BEATs on a CPU, or where `beats_packed` cannot run: the published function in fewer, larger steps.

The arrangement, and why it is valid:

- The positional convolution (kernel 128, 16 groups) runs in the frequency domain, in float32, in blocks of one
  length, so that its weights are transformed once for clips of all lengths. Overlapping blocks give exactly the
  convolution, and a block holds the same samples whatever comes after the clip, so padding cannot change it.
- Queries, keys, values and the gates of the relative positions come from one product: a gate is a linear function of
  the query, so its weights are multiplied out beforehand.
- Relative positions depend only on the distance: a table of distances is enough.
- On a CPU the weights of the products are packed for oneDNN, and clips follow each other without padding: products
  take the patches of all clips at once, attention those of one clip, head by head.

The stream between layers, the norms and the average stay in float32 in every precision.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate, product
from types import ModuleType
from typing import TYPE_CHECKING, Final, NamedTuple

from hitmiss.core.errors import UsageError
from hitmiss.detection.detector import need
from hitmiss.detection.eight_bits import eight_bit_product

if TYPE_CHECKING:
    from torch import Tensor, dtype

    from hitmiss.detection.beats import BeatsConfig


BLOCKS_PER_KERNEL: Final = 3
"""Length of an FFT block in kernels: all but one kernel length of each block is new."""
AT_ONCE: Final = 2**18
"""Scores of attention that are computed at once on a processor: 1 MB, which its second cache holds."""


@dataclass(frozen=True)
class Arrangement:
    """Which of the arrangements are used; none of them changes the function."""

    fourier: bool = False
    onednn: bool = False
    unpadded: bool = False

    @classmethod
    def best(cls, device: str) -> Arrangement:
        """Return what was measured as fastest on a device."""
        is_cpu = device == "cpu"
        return cls(fourier=True, onednn=is_cpu and _packs(need("torch", "torch")), unpadded=is_cpu)


Product = Callable[["Tensor"], "Tensor"]
Attention = Callable[["Tensor", "Tensor", "Tensor", "Tensor | None"], "Tensor"]
PLAIN: Final = Arrangement()
"""Products, convolution and attention as in torch: the reference for the others."""


class Layer(NamedTuple):
    """The products and the other weights of one layer."""

    mix: Product
    scale: Tensor | None
    out: Product
    first_norm: Tensor
    first_norm_bias: Tensor
    inner: Product
    outer: Product
    last_norm: Tensor
    last_norm_bias: Tensor


class Encoder:
    """Positions and layers: embedded patches in, encoded patches out, both clip × patch × width in float32."""

    def __init__(
        self,
        config: BeatsConfig,
        weights: Mapping[str, Tensor],
        *,
        device: str = "cpu",
        precision: str = "float32",
        arrangement: Arrangement | None = None,
    ) -> None:
        self.torch = need("torch", "torch")
        self.config = config
        self.arrangement = Arrangement.best(device) if arrangement is None else arrangement
        self.precision, self.dtype = precision, getattr(self.torch, product_type(precision))
        if self.arrangement.onednn and not _packs_type(self.torch, self.dtype):
            self.arrangement = replace(self.arrangement, onednn=False)
        self._float = {name: weights[name].to(device) for name in weights if name.startswith("encoder.")}
        self._table = distance_table(config, self._float)
        self._kernel = positional_kernel(self._float)
        self._spectrum = self._kernel_spectrum() if self.arrangement.fourier else None
        self._layers = [self._layer(f"encoder.layers.{i}.") for i in range(config.encoder_layers)]
        self._norm = tuple(self._float[f"encoder.layer_norm.{part}"] for part in ("weight", "bias"))
        self._float = {}
        self._matrix: tuple[int, Tensor] | None = None

    def __call__(self, x: Tensor, ends: Tensor, is_padded: bool, keep: bool = False) -> list[Tensor]:
        """Return the stream before the first layer and after each (without `keep`, only after the last).

        `ends` holds the number of patches of each clip; `is_padded` says whether any is shorter than the batch.
        """
        x = self._positions(x)
        config, counts = self.config, []
        if self.arrangement.unpadded and self.dtype == self.torch.float32:
            counts = [int(n) for n in ends.tolist()]
            x = self.torch.cat([clip[:n] for clip, n in zip(x, counts, strict=True)])[None]
            near = None if self._table is None else {n: self._by_distance(self._table, n) for n in counts}
            attended = partial(attend_each, counts=counts, near=near)
        else:
            bias = None if self._table is None else self._bias_matrix(self._table, x.shape[1])
            attended = partial(attend, bias=bias, ends=ends if is_padded else None)
        stream = [x] if keep else []
        for weights in self._layers:
            x = layer_step(x, weights, attended, config.encoder_attention_heads, config.alpha)
            if keep:
                stream.append(x)
        found = stream if keep else [x]
        if not counts:
            return found
        together = self.torch.nn.utils.rnn.pad_sequence
        return [together(layer[0].split(counts), batch_first=True) for layer in found]

    def _positions(self, x: Tensor) -> Tensor:
        """Return the stream with positions: x + gelu(convolution), normed."""
        functional = self.torch.nn.functional
        around = self._around_fourier(x) if self._spectrum is not None else self._around(x)
        weight, bias = self._norm
        return functional.layer_norm(x + functional.gelu(around), weight.shape, weight, bias)

    def _around(self, x: Tensor) -> Tensor:
        kernel, bias = self._kernel
        groups, half = self.config.conv_pos_groups, self.config.conv_pos // 2
        found = self.torch.nn.functional.conv1d(x.transpose(1, 2), kernel, bias, padding=half, groups=groups)
        return found[..., : x.shape[1]].transpose(1, 2)  # an even kernel gives one position too many

    def _around_fourier(self, x: Tensor) -> Tensor:
        """Compute the convolution by overlapping blocks (overlap-save)."""
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

    def _kernel_spectrum(self) -> Tensor:
        """Return the kernel's conjugated FFT (torch's convolution is a correlation): group × frequency × in × out."""
        torch, block = self.torch, BLOCKS_PER_KERNEL * self.config.conv_pos
        groups = self._kernel[0].chunk(self.config.conv_pos_groups)  # one by one: all of them in float64 are large
        spectra = (torch.fft.rfft(kernel.double(), n=block).conj().to(torch.complex64) for kernel in groups)
        return torch.stack([spectrum.permute(2, 1, 0) for spectrum in spectra])

    def _bias_matrix(self, table: Tensor, length: int) -> Tensor:
        """Return the bias of each pair of patches (head × patch × patch); that of the last length is cached."""
        if self._matrix is None or self._matrix[0] != length:
            # Row i holds the distances -i to length - 1 - i: a window over all of them, the last one first.
            self._matrix = (length, self._by_distance(table, length).unfold(1, length, 1).flip(1))
        return self._matrix[1]

    def _by_distance(self, table: Tensor, length: int) -> Tensor:
        """Return the bias of the distances 1 - length to length - 1 (head × distance)."""
        far = self.config.max_distance
        return table[:, self.torch.arange(1 - length, length, device=table.device).clamp(-far, far) + far]

    def _layer(self, name: str) -> Layer:
        torch, w, config = self.torch, self._float, self.config
        heads, width = config.encoder_attention_heads, config.encoder_embed_dim
        weights = [w[f"{name}self_attn.{part}_proj.weight"] for part in "qkv"]
        biases = [w[f"{name}self_attn.{part}_proj.bias"] for part in "qkv"]
        scale = None
        if config.gru_rel_pos and config.relative_position_embedding:
            # Two gates per head, each the sum of four linear functions of the query: one linear function of the stream.
            gate = w[f"{name}self_attn.grep_linear.weight"].double().view(2, 4, -1).sum(dim=1)
            offset = w[f"{name}self_attn.grep_linear.bias"].double().view(2, 4).sum(dim=1)
            query = weights[0].double().view(heads, width // heads, width)
            query_bias = biases[0].double().view(heads, width // heads)
            weights.append(torch.einsum("gd,hdw->ghw", gate, query).reshape(2 * heads, width).float())
            biases.append((torch.einsum("gd,hd->gh", gate, query_bias) + offset[:, None]).reshape(-1).float())
            scale = w[f"{name}self_attn.grep_a"].view(1, heads, 1)
        names = ("self_attn.out_proj", "self_attn_layer_norm", "fc1", "fc2", "final_layer_norm")
        out, first, inner, outer, last = ((w[f"{name}{part}.weight"], w[f"{name}{part}.bias"]) for part in names)
        mix = self._product(torch.cat(weights), torch.cat(biases))
        inside = self._product(inner[0], inner[1], gelu=True)
        return Layer(mix, scale, self._product(*out), *first, inside, self._product(*outer), *last)

    def _product(self, weight: Tensor, bias: Tensor, gelu: bool = False) -> Product:
        """Return a product in the precision, optionally followed by gelu."""
        torch, kind = self.torch, self.dtype
        activation = torch.nn.functional.gelu
        if self.precision == "int8":
            small = eight_bit_product(weight, bias)
            return (lambda x: activation(small(x))) if gelu else small
        weight, bias = weight.to(kind).contiguous(), bias.to(kind)
        if self.arrangement.onednn:
            packed, multiply = torch.ops.mkldnn._reorder_linear_weight(weight, None), torch.ops.mkldnn._linear_pointwise
            then, form = ("gelu", "none") if gelu else ("none", "")
            return lambda x: multiply(x.to(kind), packed, bias, then, [], form)
        linear = torch.nn.functional.linear
        if gelu:
            return lambda x: activation(linear(x.to(kind), weight, bias))
        return lambda x: linear(x.to(kind), weight, bias)


def layer_step(x: Tensor, w: Layer, attended: Attention, heads: int, alpha: float) -> Tensor:
    """Compute one layer: attention and two products, each added to the stream and normed."""
    import torch

    functional = torch.nn.functional
    n, length, width = x.shape
    mixed = w.mix(x)
    q, k, v = mixed[..., : 3 * width].view(n, length, 3, heads, width // heads).permute(2, 0, 3, 1, 4).unbind(0)
    gate = None
    if w.scale is not None:
        gates = torch.sigmoid(mixed[..., 3 * width :].float()).view(n, length, 2, heads).permute(2, 0, 3, 1)
        gate = (gates[0] * (gates[1] * w.scale - 1.0) + 2.0).contiguous()  # clip × head × patch
    out = w.out(attended(q, k, v, gate).transpose(1, 2).reshape(n, length, width))
    x = functional.layer_norm(torch.add(out, x, alpha=alpha), (width,), w.first_norm, w.first_norm_bias)
    out = w.outer(w.inner(x))
    return functional.layer_norm(torch.add(out, x, alpha=alpha), (width,), w.last_norm, w.last_norm_bias)


def attend_each(
    q: Tensor, k: Tensor, v: Tensor, gate: Tensor | None, counts: Sequence[int], near: Mapping[int, Tensor] | None
) -> Tensor:
    """Compute attention of clips that follow each other without padding: each patch with those of its own clip.

    `near` holds the bias of each distance for each length of a clip. It goes head by head and, for long clips, some
    queries at a time, the last query first: then the biases of each query are those of the one before, moved by one, so
    a window over the distances is their matrix. So nothing is as large as patch × patch, the scores stay in the cache,
    and their memory is used again by the next head.
    """
    import torch

    found = torch.empty_like(q.transpose(1, 2), memory_format=torch.contiguous_format).transpose(1, 2)
    for end, n in zip(accumulate(counts), counts, strict=True):
        clip, rows = slice(end - n, end), max(1, AT_ONCE // n)
        queries, scores = q[0, :, clip].flip(1), q.new_empty((min(n, rows), n))
        weights = None if gate is None else gate[0, :, clip].flip(1)
        averages = torch.empty_like(queries)
        for head, first in product(range(q.shape[1]), range(0, n, rows)):
            some = slice(first, min(n, first + rows))
            part = scores[: some.stop - first]
            if near is not None:
                by = 1.0 if weights is None else weights[head, some, None]
                torch.mul(near[n][head, first : some.stop + n - 1].unfold(0, n, 1), by, out=part)
            old = 0.0 if near is None else 1.0
            torch.addmm(part, queries[head, some], k[0, head, clip].T, beta=old, alpha=q.shape[-1] ** -0.5, out=part)
            torch.softmax(part, -1, out=part)
            torch.mm(part, v[0, head, clip], out=averages[head, some])
        found[0, :, clip] = averages.flip(1)
    return found


def attend(q: Tensor, k: Tensor, v: Tensor, gate: Tensor | None, bias: Tensor | None, ends: Tensor | None) -> Tensor:
    """Compute attention with the bias of every pair of patches as a matrix for each clip and head.

    `ends` holds the number of patches of each clip if some are padded.
    """
    import torch

    mask = None
    if bias is not None:
        mask = bias[None] if gate is None else gate[..., None] * bias
    if ends is not None:
        beyond = torch.arange(k.shape[-2], device=k.device)[None, :] >= ends[:, None]
        fill = torch.zeros(beyond.shape, device=k.device).masked_fill(beyond, -math.inf)[:, None, None, :]
        mask = fill if mask is None else mask + fill
    mask = mask if mask is None else mask.to(q.dtype)
    return torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)


def positional_kernel(weights: Mapping[str, Tensor]) -> tuple[Tensor, Tensor]:
    """Return the kernel of the positional convolution, and its bias."""
    direction = weights["encoder.pos_conv.0.weight_v"]
    size = direction.norm(dim=(0, 1), keepdim=True)
    return weights["encoder.pos_conv.0.weight_g"] * direction / size, weights["encoder.pos_conv.0.bias"]


def distance_table(config: BeatsConfig, weights: Mapping[str, Tensor]) -> Tensor | None:
    """Return the bias of each distance between patches (head × distance); larger distances share the last bucket."""
    if not config.relative_position_embedding:
        return None
    table = weights["encoder.layers.0.self_attn.relative_attention_bias.weight"]
    far = config.max_distance
    distance = need("torch", "torch").arange(-far, far + 1, device=table.device)
    return table[relative_buckets(distance, config.num_buckets, far)].T.contiguous()


def relative_buckets(distance: Tensor, n: int, most: int) -> Tensor:
    """Return the bucket of each distance: half of the buckets per direction, exact when near, logarithmic when far."""
    torch = need("torch", "torch")
    half, exact = n // 2, n // 4
    far = distance.abs()
    scaled = torch.log(far.clamp_min(1).float() / exact) / math.log(most / exact) * (half - exact)
    coarse = (exact + scaled.long()).clamp_max(half - 1)
    return torch.where(far < exact, far, coarse) + (distance > 0).long() * half


def product_type(precision: str) -> str:
    """Return the type of what goes into products, and out of them, in a precision (int8: products round it themselves).

    >>> product_type("tf32"), product_type("bfloat16")
    ('float32', 'bfloat16')
    """
    kinds = {"float32": "float32", "tf32": "float32", "int8": "float32", "bfloat16": "bfloat16", "float16": "float16"}
    if precision not in kinds:
        raise UsageError.of("bad-precision", kinds=tuple(kinds), precision=precision)
    return kinds[precision]


def _packs(torch: ModuleType) -> bool:
    """Return whether this torch packs weights for oneDNN."""
    has = hasattr(torch.ops.mkldnn, "_reorder_linear_weight") and hasattr(torch.ops.mkldnn, "_linear_pointwise")
    return bool(has and torch.backends.mkldnn.is_available())


def _packs_type(torch: ModuleType, dtype: dtype) -> bool:
    """Return whether oneDNN multiplies numbers of a type on this processor."""
    return dtype == torch.float32 or (dtype == torch.bfloat16 and bool(torch.ops.mkldnn._is_mkldnn_bf16_supported()))
