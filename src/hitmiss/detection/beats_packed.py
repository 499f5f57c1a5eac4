"""BEATs on a GPU: the patches of all clips of a batch are concatenated without padding and processed together.

The arrangement, and why it is valid:

- A *pack* is a whole number of chunks of `CHUNK` patches; the patches after the last clip are computed and discarded.
  Every product is computed chunk by chunk, so it always has one shape and uses one algorithm. Everything else works on
  one row or within one clip (`beats_kernels`). So the score of a clip does not depend, to the last bit, on the other
  clips in its batch, and nothing is compiled or tuned per length. Packs come in few sizes, each of which is recorded as
  a CUDA graph.
- Relative positions depend only on the distance: the attention kernel reads a table of distances and multiplies by the
  gate of its query. No patch × patch matrix is formed.
- The positional convolution (kernel 128, 16 groups) runs in the frequency domain, in float32, in blocks of one length,
  so that its weights are transformed once. Overlapping blocks give exactly the convolution.
- In float32 a product is three products of 16-bit halves on the tensor cores: a number is a float16 plus 1/2,048 of
  another, which keeps 22 of its 24 bits; sums are in float32. (Ootomo and Yokota 2022 describe it.)

The stream between layers, the norms, the average and everything before the first layer stay in float32 in all
precisions.
"""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from types import ModuleType
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hitmiss.detection.beats_encoder import distance_table, positional_kernel, product_type
from hitmiss.detection.detector import need
from hitmiss.detection.filterbank import (
    BINS,
    DEVIATION,
    FFT,
    FLOOR,
    FRAME,
    MEAN,
    PREEMPHASIS,
    SAMPLE_RATE,
    SHIFT,
    exact_products,
    n_frames,
    on_device,
)

if TYPE_CHECKING:
    from torch import Tensor
    from torch.cuda import CUDAGraph

    from hitmiss.detection.beats import BeatsConfig

Ints = NDArray[np.int32]
CHUNK: Final = 8192
"""Patches in one product: enough to fill a large GPU, few enough that a single clip does not take long."""
PACK: Final = 4 * CHUNK
"""Patches in one pack, unless a single clip has more: 655 s of sound."""
AT_ONCE: Final = 64
"""Blocks that are transformed at once; numbers of blocks and clips are rounded up to a multiple of this."""
MOST_GRAPHS: Final = 24
"""Maximum number of pack sizes that are recorded as CUDA graphs."""
HALVES: Final = 2048.0
"""The factor for the second half of a number, so that it is not subnormal."""
SECTION: Final = 384
"""Terms of a sum that the tensor cores add before proper rounding: they truncate what does not fit."""
QUERIES: Final = 128
HEAD_SIZES: Final = (16, 32, 64, 128)


class Product(NamedTuple):
    """The weights of a product in the form that the precision uses."""

    weight: Tensor
    second: Tensor | None
    bias: Tensor


class Layer(NamedTuple):
    """The weights of one layer."""

    mix: Product
    gates: Tensor | None
    offsets: Tensor | None
    scales: Tensor | None
    out: Product
    first_norm: tuple[Tensor, Tensor]
    inner: Product
    outer: Product
    last_norm: tuple[Tensor, Tensor]


class Sizes(NamedTuple):
    """The size of a pack; each number is rounded up, so that there are few distinct sizes."""

    patches: int
    queries: int
    blocks: int
    clips: int


class Plan(NamedTuple):
    """Where the clips of a pack are: patch numbers, on the device."""

    sizes: Sizes
    starts: Tensor
    """Where in the sound each row of patches begins; -1 after the last clip."""
    clips: Tensor
    """First and last + 1 patch of each clip."""
    queries: Tensor
    """For each block of queries: first and last + 1 patch of its clip, first of the block."""
    blocks: Tensor
    """The same for blocks of the convolution."""


class Recorded(NamedTuple):
    """The work on packs of one size as a CUDA graph: its inputs and outputs."""

    graph: CUDAGraph
    numbers: Tensor
    averages: Tensor


class Packed:
    """The whole network, from sound to logits."""

    def __init__(
        self,
        config: BeatsConfig,
        weights: Mapping[str, Tensor],
        *,
        device: str,
        precision: str = "float32",
        chunk: int = CHUNK,
    ) -> None:
        from hitmiss.detection import beats_kernels

        self.torch, self.kernels = need("torch", "torch"), beats_kernels
        self.config, self.device, self.chunk = config, device, chunk
        self.pack = PACK // CHUNK * chunk
        self.precision, self.dtype = precision, getattr(self.torch, product_type(precision))
        self.splits = precision == "float32"
        self._float = {name: tensor.to(device) for name, tensor in weights.items()}
        w = self._float
        self._table = distance_table(config, w)
        if self._table is not None and self.dtype != self.torch.float32:
            self._table = self._table.half()  # two-byte numbers are not prefetched, which is faster here
        self._kernel, self._kernel_bias = positional_kernel(w)
        self._block = 2 * config.conv_pos
        self._spectrum = self._kernel_spectrum()
        self._embed = self._product(w["patch_embedding.weight"].flatten(1), w.get("patch_embedding.bias"), exact=True)
        has_projection = "post_extract_proj.weight" in w
        self._project = self._product(*self._pair("post_extract_proj"), exact=True) if has_projection else None
        self._norms = self._pair("layer_norm"), self._pair("encoder.layer_norm")
        self._layers = [self._layer(f"encoder.layers.{i}.") for i in range(config.encoder_layers)]
        self._head = None
        if "predictor.weight" in w:
            self._head = (w["predictor.weight"].double().T.contiguous(), w["predictor.bias"].double())
        self._float = {}
        self._sound_size = int(seconds_of(self.pack, self.per_row, config.input_patch_size) * SAMPLE_RATE) + FRAME
        self._sound: Tensor | None = None
        self._memory: tuple[int, int] | None = None
        self._seen: dict[Sizes, int] = {}
        self._recorded: dict[Sizes, Recorded] = {}

    def __call__(self, waves: Tensor, lengths: Sequence[int], keep: bool = False) -> tuple[Tensor, list[Tensor]]:
        """Return logits (clip × class) of clips (clip × sample); with `keep` also each layer's mean, stream first."""
        rows = [n_frames(length) // self.config.input_patch_size for length in lengths]
        flat, step = waves.reshape(-1), waves.shape[-1]
        found = [self._through(flat, rows[low:high], low * step, step, keep) for low, high in self.packs(rows)]
        layers = [
            found[0][i] if len(found) == 1 else self.torch.cat([f[i] for f in found]) for i in range(len(found[0]))
        ]
        last = layers[-1]
        # In float64: the shape of this product depends on the number of clips, and its rounding must not be visible.
        logits = (
            (last.double() @ self._head[0] + self._head[1]).float() if self._head is not None else last[:, :1] * 0.0
        )
        return logits, layers if keep else []

    def packs(self, rows: Sequence[int]) -> Iterator[tuple[int, int]]:
        """Yield the first and last + 1 clip of each pack."""
        per_row, starts, full = self.per_row, [0], 0
        for at, row in enumerate(rows):
            if full and full + row * per_row > self.pack:
                starts.append(at)
                full = 0
            full += row * per_row
        yield from pairwise([*starts, len(rows)])

    @property
    def per_row(self) -> int:
        """The number of patches at the same time position."""
        return BINS // self.config.input_patch_size

    def plan(self, rows: Sequence[int], first: int, step: int) -> tuple[Sizes, NDArray[np.int64]]:
        """Return, as one array, where the patches of clips lie; sounds begin at `first`, then every `step` samples."""
        size, per_row = self.config.input_patch_size * SHIFT, self.per_row
        counts = np.asarray(rows, dtype=np.int64)
        ends = np.cumsum(counts)
        n_patches = _multiple(int(ends[-1]) * per_row, self.chunk)
        starts = np.full(n_patches // per_row, -1, dtype=np.int64)
        within = np.arange(ends[-1]) - np.repeat(ends - counts, counts)
        starts[: ends[-1]] = first + np.repeat(np.arange(len(counts)), counts) * step + within * size
        clips = np.stack([(ends - counts) * per_row, ends * per_row], axis=1)
        parted = [parts(clips, QUERIES), parts(clips, self._block - self.config.conv_pos + 1), clips]
        parted = [np.pad(a, ((0, -len(a) % AT_ONCE), (0, 0))) for a in parted]
        sizes = Sizes(n_patches, *(len(a) for a in parted))
        return sizes, np.concatenate([a.reshape(-1) for a in (starts, *parted)])

    def _through(self, flat: Tensor, rows: Sequence[int], first: int, step: int, keep: bool) -> list[Tensor]:
        """Return the averages over each clip of a pack; a size is replayed from a CUDA graph from its second use on."""
        sizes, numbers = self.plan(rows, first, step)
        # Through pinned memory: a plain copy would wait for all pending work on the device.
        whole, on_gpu = self.torch.from_numpy(numbers), self.device.startswith("cuda")
        whole = whole.pin_memory() if on_gpu else whole
        fits = on_gpu and not keep and sizes.patches <= self.pack and flat.numel() <= self._sound_size
        if fits and self._sound is not None and sizes in self._recorded:
            graph, held, averages = self._recorded[sizes]
            held.copy_(whole, non_blocking=True)
            self._sound[: flat.numel()].copy_(flat)
            graph.replay()
            return [averages[: len(rows)].clone()]
        plan = self._laid(sizes, whole.to(self.device, non_blocking=True))
        found = [average[: len(rows)] for average in self._run(flat, plan, keep)]
        if fits and len(self._recorded) < MOST_GRAPHS:
            self._seen[sizes] = self._seen.get(sizes, 0) + 1
            if self._seen[sizes] == 2 and (recorded := self._record(sizes, whole)) is not None:
                self._recorded[sizes] = recorded
        return found

    def _record(self, sizes: Sizes, whole: Tensor) -> Recorded | None:
        """Record a graph of the work on packs of one size; None if it fails. Other threads may use the device."""
        torch = self.torch
        if self._sound is None:
            self._sound = torch.zeros(self._sound_size, dtype=torch.float32, device=self.device)
            self._memory = torch.cuda.graph_pool_handle()
        held, graph = whole.to(self.device), torch.cuda.CUDAGraph()
        try:
            with torch.cuda.graph(graph, pool=self._memory, capture_error_mode="thread_local"):
                averages = self._run(self._sound, self._laid(sizes, held), keep=False)[0]
        except RuntimeError:  # too little memory, or a step that cannot be recorded: run step by step
            return None
        return Recorded(graph, held, averages)

    def _laid(self, sizes: Sizes, numbers: Tensor) -> Plan:
        """Split the numbers of a plan into its fields."""
        per = [sizes.patches // self.per_row, 3 * sizes.queries, 3 * sizes.blocks, 2 * sizes.clips]
        starts, queries, blocks, clips = numbers.split(per)
        small = self.torch.int32
        return Plan(sizes, starts, clips.to(small), queries.to(small), blocks.to(small))

    def _run(self, flat: Tensor, plan: Plan, keep: bool) -> list[Tensor]:
        """Return the averages over each clip: of the last layer, or of all."""
        config = self.config
        x = self._patches(flat, plan)
        around = self._around(x, plan)
        x, ready = self._normed(x, around, self._kernel_bias, self._norms[1], 1.0, gelu=True)
        kept = [self._average(x, plan)] if keep else []
        attended = self.torch.zeros_like(ready)
        for layer in self._layers:
            self._attend(self._times(ready, layer.mix), layer, plan, attended)
            out, inner, outer = layer.out, layer.inner, layer.outer
            x, ready = self._normed(x, self._times(attended, out), out.bias, layer.first_norm, config.alpha)
            ready = self._made_ready(self._times(ready, inner), self.splits, inner.bias)
            x, ready = self._normed(x, self._times(ready, outer), outer.bias, layer.last_norm, config.alpha)
            kept += [self._average(x, plan)] if keep else []
        return kept if keep else [self._average(x, plan)]

    def _patches(self, flat: Tensor, plan: Plan) -> Tensor:
        """Return embedded patches (patch × width) in float32, computed chunk by chunk."""
        torch, config, size = self.torch, self.config, self.config.input_patch_size
        functional = torch.nn.functional
        window, filters = on_device(self.device, BINS)
        out = torch.empty((plan.sizes.patches, config.encoder_embed_dim), dtype=torch.float32, device=self.device)
        rows = self.chunk // self.per_row
        cut = torch.empty((rows * size, FFT), dtype=torch.float32, device=self.device)
        for i in range(plan.sizes.patches // self.chunk):
            starts = plan.starts[i * rows : (i + 1) * rows]
            self.kernels.cut_frames[(rows * size,)](
                flat,
                starts,
                window,
                cut,
                SHIFT,
                2.0**15,
                PER_ROW=size,
                FRAME=FRAME,
                FFT=FFT,
                PRE=PREEMPHASIS,
                num_warps=2,
            )
            spectrum = torch.view_as_real(torch.fft.rfft(cut))
            power = spectrum[..., 0].square().addcmul_(spectrum[..., 1], spectrum[..., 1])
            with exact_products(torch):
                energies = power @ filters.T
            energies = energies.clamp_min_(FLOOR).log_().sub_(MEAN).div_(2 * DEVIATION)
            # A convolution whose stride equals its kernel is a product over patches that do not overlap.
            flattened = energies.view(rows, size, self.per_row, size).transpose(1, 2).reshape(self.chunk, size * size)
            x = self._exactly(flattened, self._embed)
            x = functional.layer_norm(x, x.shape[1:], *self._norms[0])
            out[i * self.chunk : (i + 1) * self.chunk] = x if self._project is None else self._exactly(x, self._project)
        return out

    def _around(self, x: Tensor, plan: Plan) -> Tensor:
        """Compute the positional convolution by overlapping blocks (overlap-save), without its bias."""
        torch, width = self.torch, self.config.encoder_embed_dim
        groups, kernel, block = self.config.conv_pos_groups, self.config.conv_pos, self._block
        around = torch.zeros_like(x)
        tiles = {"WIDTH": width, "SIZE": block, "ROWS": min(64, block), "COLS": 64}
        grid = (AT_ONCE, block // tiles["ROWS"], -(-width // 64))
        cut = torch.empty((AT_ONCE, width, block), dtype=torch.float32, device=self.device)
        for at in plan.blocks.split(3 * AT_ONCE):
            self.kernels.cut_blocks[grid](x, at, cut, kernel // 2, **tiles)
            spectrum = torch.fft.rfft(cut).view(AT_ONCE, groups, width // groups, -1).permute(1, 3, 0, 2)
            mixed = torch.matmul(spectrum, self._spectrum)  # group × frequency × block × channel
            back = mixed.permute(2, 0, 3, 1).reshape(AT_ONCE, width, -1)
            found = torch.fft.irfft(back, n=block)
            self.kernels.put_blocks[grid](found, at, around, block - kernel + 1, **tiles)
        return around

    def _attend(self, mixed: Tensor, layer: Layer, plan: Plan, out: Tensor) -> None:
        config = self.config
        heads, width = config.encoder_attention_heads, config.encoder_embed_dim
        size, half = width // heads, self.dtype != self.torch.float32
        table = self._table
        self.kernels.attend[(plan.sizes.queries, heads)](
            mixed, layer.mix.bias, plan.queries, table if table is not None else mixed, layer.gates, layer.offsets,
            layer.scales, out, config.max_distance, 1.0 / math.sqrt(size), WIDTH=width, D=size, M=QUERIES, N=64,
            HAS_TABLE=table is not None, HAS_GATE=layer.gates is not None, SPLIT=self.splits,
            PRECISION="tf32x3" if self.splits else "tf32", num_warps=4 if half else 8, num_stages=2 if half else 1,
        )  # fmt: skip

    def _normed(
        self, x: Tensor, more: Tensor, bias: Tensor, norm: tuple[Tensor, Tensor], alpha: float, gelu: bool = False
    ) -> tuple[Tensor, Tensor]:
        """Return the stream, and the input of the next product."""
        torch, (n, width) = self.torch, x.shape
        is_same = self.dtype == torch.float32 and not self.splits
        stream = torch.empty_like(x)
        ready = stream if is_same else self._ready(n, width, self.splits)
        self.kernels.add_and_norm[(n,)](
            x, more, bias, *norm, stream, ready, alpha, WIDTH=width, BLOCK=_power(width), GELU=gelu,
            READY=not is_same, SPLIT=self.splits, num_warps=4,
        )  # fmt: skip
        return stream, ready

    def _made_ready(self, x: Tensor, splits: bool, bias: Tensor | None = None) -> Tensor:
        """Return the input of the next product: gelu(x + bias) if there is a bias, else x."""
        (n, width), block = x.shape, min(1024, _power(x.shape[1]))
        ready = self._ready(n, width, splits)
        self.kernels.make_ready[(n, -(-width // block))](
            x, bias, ready, WIDTH=width, BLOCK=block, GELU=bias is not None, SPLIT=splits, num_warps=4
        )
        return ready

    def _ready(self, n: int, width: int, splits: bool) -> Tensor:
        kind = self.torch.float16 if splits else self.dtype
        return self.torch.empty((n, width * (2 if splits else 1)), dtype=kind, device=self.device)

    def _average(self, x: Tensor, plan: Plan) -> Tensor:
        n, width = plan.sizes.clips, x.shape[1]
        out = self.torch.empty((n, width), dtype=self.torch.float32, device=self.device)
        self.kernels.average[(n, -(-width // 64))](x, plan.clips, out, WIDTH=width, ROWS=64, COLS=64)
        return out

    def _times(self, ready: Tensor, product: Product) -> Tensor:
        """Compute a product without its bias, chunk by chunk: each has the same shape, and so the same algorithm."""
        kind = self.torch.float32 if product.second is not None else self.dtype
        out = self.torch.empty((len(ready), product.weight.shape[1]), dtype=kind, device=self.device)
        for low in range(0, len(ready), self.chunk):
            part = slice(low, low + self.chunk)
            if product.second is None:
                self.torch.mm(ready[part], product.weight, out=out[part])
            else:
                halves_product(self.torch, ready[part], product, product.second, out[part])
        return out

    def _exactly(self, x: Tensor, product: Product) -> Tensor:
        """Compute a product of a chunk in float32 with its bias, whatever the precision of the layers."""
        return self._times(self._made_ready(x, splits=True), product).add_(product.bias)

    def _pair(self, name: str) -> tuple[Tensor, Tensor]:
        return self._float[f"{name}.weight"], self._float[f"{name}.bias"]

    def _product(self, weight: Tensor, bias: Tensor | None, exact: bool = False) -> Product:
        torch = self.torch
        offset = torch.zeros(len(weight), device=self.device) if bias is None else bias
        turned = weight.T.contiguous()
        if not (exact or self.splits):
            return Product(turned.to(self.dtype), None, offset.float())
        high = turned.half()
        low = ((turned - high.float()) * HALVES).half()
        return Product(high, torch.cat([low, high]), offset.float())

    def _layer(self, name: str) -> Layer:
        torch, w, config = self.torch, self._float, self.config
        weights, biases = ([w[f"{name}self_attn.{p}_proj.{kind}"] for p in "qkv"] for kind in ("weight", "bias"))
        gates = offsets = scales = None
        if config.gru_rel_pos and config.relative_position_embedding:
            # Two gates per head, each the sum of four linear functions of the query.
            gates = w[f"{name}self_attn.grep_linear.weight"].view(2, 4, -1).sum(dim=1).contiguous()
            offsets = w[f"{name}self_attn.grep_linear.bias"].view(2, 4).sum(dim=1).contiguous()
            scales = w[f"{name}self_attn.grep_a"].flatten().contiguous()
        products = [
            self._product(torch.cat(weights), torch.cat(biases)),
            *(self._product(*self._pair(name + part)) for part in ("self_attn.out_proj", "fc1", "fc2")),
        ]
        norms = [self._pair(name + part) for part in ("self_attn_layer_norm", "final_layer_norm")]
        mix, out, inner, outer = products
        return Layer(mix, gates, offsets, scales, out, norms[0], inner, outer, norms[1])

    def _kernel_spectrum(self) -> Tensor:
        """Return the kernel's conjugated FFT (torch's convolution is a correlation): group × frequency × in × out."""
        kernel, groups = self._kernel, self.config.conv_pos_groups
        spectrum = self.torch.fft.rfft(kernel.double(), n=self._block).conj()
        grouped = spectrum.view(groups, kernel.shape[0] // groups, kernel.shape[1], -1)
        return grouped.permute(0, 3, 2, 1).to(self.torch.complex64).contiguous()


def halves_product(torch: ModuleType, ready: Tensor, product: Product, second: Tensor, out: Tensor) -> None:
    """Multiply numbers in halves: first × first plus 1/2,048 of the mixed products; without a GPU in plain float32."""
    first = ready[:, : product.weight.shape[0]]
    if not ready.is_cuda:
        out[...] = first.float() @ product.weight.float() + ready.float() @ second.float() / HALVES
        return
    torch.ops.aten.mm.dtype_out(ready, second, torch.float32, out=out)
    for low in range(0, first.shape[1], SECTION):
        part, beta = slice(low, low + SECTION), 1.0 if low else 1.0 / HALVES
        torch.ops.aten.addmm.dtype_out(out, first[:, part], product.weight[part], torch.float32, beta=beta, out=out)


def parts(clips: NDArray[np.int64], size: int) -> NDArray[np.int64]:
    """Return blocks of `size` patches of each clip: first and last + 1 patch of the clip, first of the block.

    >>> parts(np.array([[0, 5], [5, 7]]), 4).tolist()
    [[0, 5, 0], [0, 5, 4], [5, 7, 5]]
    """
    counts = -(-(clips[:, 1] - clips[:, 0]) // size)
    clip = np.repeat(np.arange(len(clips)), counts)
    within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    return np.column_stack([clips[clip], clips[clip, 0] + within * size])


def reason_against(config: BeatsConfig, device: str) -> str | None:
    """Return why a network cannot run packed here; None if it can."""
    size = config.encoder_embed_dim // config.encoder_attention_heads
    if not device.startswith("cuda"):
        return "packed clips are for a GPU"
    if importlib.util.find_spec("triton") is None:
        return "triton is not installed"
    if not hasattr(need("torch", "torch").ops.aten.mm, "dtype_out"):
        return "this torch cannot multiply 16-bit numbers into 32 bits; 2.8 can"
    if size not in HEAD_SIZES or config.conv_pos & (config.conv_pos - 1) or config.conv_pos < 32:
        return f"heads of {size} or a kernel of {config.conv_pos} are not among those that are supported"
    return None


def _multiple(n: int, of: int) -> int:
    """Return the next multiple of a number."""
    return -(-n // of) * of


def _power(n: int) -> int:
    """Return the next power of two."""
    return 1 << (n - 1).bit_length()


def seconds_of(patches: int, per_row: int, patch: int) -> float:
    """Return the seconds of sound in a number of patches."""
    return patches / per_row * patch * SHIFT / SAMPLE_RATE
