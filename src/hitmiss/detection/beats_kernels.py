"""Triton kernels of BEATs on a GPU, called by `beats_packed`. Only this module imports triton.

Each kernel works on one row, or on one block of one clip, in an order that depends only on the clip: the other clips in
the pack change no bit.
"""

# mypy: ignore-errors
# Triton compiles this text itself and accepts only its own type hints.

import triton
import triton.language as tl

LOG2E = tl.constexpr(1.4426950408889634)


@triton.jit
def cut_frames(waves, starts, window, out, shift, scale, PER_ROW: tl.constexpr,
               FRAME: tl.constexpr, FFT: tl.constexpr, PRE: tl.constexpr):  # fmt: skip
    """Cut a frame of sound: mean removed, pre-emphasised, windowed, zero-padded to the length of the transform."""
    frame = tl.program_id(0)
    start = tl.load(starts + frame // PER_ROW)
    at = tl.arange(0, FFT)
    inside = (at < FRAME) & (start >= 0)
    base = waves + start + (frame % PER_ROW) * shift
    here = tl.load(base + at, mask=inside, other=0.0).to(tl.float32) * scale
    before = tl.load(base + tl.maximum(at - 1, 0), mask=inside, other=0.0).to(tl.float32) * scale
    mean = tl.sum(here, axis=0) / FRAME
    found = ((here - mean) - PRE * (before - mean)) * tl.load(window + at, mask=at < FRAME, other=0.0)
    tl.store(out + frame.to(tl.int64) * FFT + at, tl.where(inside, found, 0.0))


@triton.jit
def cut_blocks(x, blocks, out, before, WIDTH: tl.constexpr, SIZE: tl.constexpr, ROWS: tl.constexpr,
               COLS: tl.constexpr):  # fmt: skip
    """Cut a block of one clip's patches, with zeros beyond the clip, as block × channel × patch."""
    block = tl.program_id(0)
    first, last, at = tl.load(blocks + 3 * block), tl.load(blocks + 3 * block + 1), tl.load(blocks + 3 * block + 2)
    time = tl.program_id(1) * ROWS + tl.arange(0, ROWS)
    channel = tl.program_id(2) * COLS + tl.arange(0, COLS)
    row = at - before + time
    inside = ((row >= first) & (row < last))[:, None] & (channel < WIDTH)[None, :]
    found = tl.load(x + row[:, None].to(tl.int64) * WIDTH + channel[None, :], mask=inside, other=0.0)
    base = out + block.to(tl.int64) * WIDTH * SIZE
    tl.store(base + channel[:, None] * SIZE + time[None, :], tl.trans(found), mask=(channel < WIDTH)[:, None])


@triton.jit
def put_blocks(found, blocks, out, new, WIDTH: tl.constexpr, SIZE: tl.constexpr, ROWS: tl.constexpr,
               COLS: tl.constexpr):  # fmt: skip
    """Write the first `new` positions of a block (block × channel × patch) back in place, as patch × channel."""
    block = tl.program_id(0)
    last, at = tl.load(blocks + 3 * block + 1), tl.load(blocks + 3 * block + 2)
    time = tl.program_id(1) * ROWS + tl.arange(0, ROWS)
    channel = tl.program_id(2) * COLS + tl.arange(0, COLS)
    base = found + block.to(tl.int64) * WIDTH * SIZE
    values = tl.load(base + channel[:, None] * SIZE + time[None, :], mask=(channel < WIDTH)[:, None], other=0.0)
    row = at + time
    inside = ((time < new) & (row < last))[:, None] & (channel < WIDTH)[None, :]
    tl.store(out + row[:, None].to(tl.int64) * WIDTH + channel[None, :], tl.trans(values), mask=inside)


@triton.jit
def _gelu(x):
    return 0.5 * x * (1.0 + tl.erf(x * 0.7071067811865476))


@triton.jit
def _store_ready(out, row, at, mask, value, WIDTH: tl.constexpr, SPLIT: tl.constexpr):
    """Store a row as input of the products: rounded, or as two halves that add up to it (the second times 2,048)."""
    if SPLIT:
        high = value.to(tl.float16)
        base = out + row.to(tl.int64) * (2 * WIDTH)
        tl.store(base + at, high, mask=mask)
        tl.store(base + WIDTH + at, ((value - high.to(tl.float32)) * 2048.0).to(tl.float16), mask=mask)
    else:
        tl.store(out + row.to(tl.int64) * WIDTH + at, value.to(out.dtype.element_ty), mask=mask)


@triton.jit
def add_and_norm(x, more, bias, weight, offset, stream, ready, alpha, WIDTH: tl.constexpr, BLOCK: tl.constexpr,
                 GELU: tl.constexpr, READY: tl.constexpr, SPLIT: tl.constexpr):  # fmt: skip
    """Norm more + bias (optionally through gelu) + alpha · x: store the stream, and the next product's input."""
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    mask = at < WIDTH
    base = row.to(tl.int64) * WIDTH + at
    added = tl.load(more + base, mask=mask, other=0.0).to(tl.float32) + tl.load(bias + at, mask=mask, other=0.0)
    if GELU:
        added = _gelu(added)
    value = added + alpha * tl.load(x + base, mask=mask, other=0.0)
    mean = tl.sum(value, axis=0) / WIDTH
    centred = tl.where(mask, value - mean, 0.0)
    spread = tl.sum(centred * centred, axis=0) / WIDTH
    scale = tl.load(weight + at, mask=mask, other=0.0)
    value = centred * (1.0 / tl.sqrt(spread + 1e-5)) * scale + tl.load(offset + at, mask=mask, other=0.0)
    tl.store(stream + base, value, mask=mask)
    if READY:
        _store_ready(ready, row, at, mask, value, WIDTH, SPLIT)


@triton.jit
def make_ready(x, bias, ready, WIDTH: tl.constexpr, BLOCK: tl.constexpr, GELU: tl.constexpr, SPLIT: tl.constexpr):
    """Store a row, or gelu(row + bias), as input of the next product."""
    row = tl.program_id(0)
    at = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = at < WIDTH
    value = tl.load(x + row.to(tl.int64) * WIDTH + at, mask=mask, other=0.0).to(tl.float32)
    if GELU:
        value = _gelu(value + tl.load(bias + at, mask=mask, other=0.0))
    _store_ready(ready, row, at, mask, value, WIDTH, SPLIT)


@triton.jit
def attend(mixed, bias, blocks, table, gates, offsets, scales, out, far, scale,
           WIDTH: tl.constexpr, D: tl.constexpr, M: tl.constexpr, N: tl.constexpr, HAS_TABLE: tl.constexpr,
           HAS_GATE: tl.constexpr, SPLIT: tl.constexpr, PRECISION: tl.constexpr):  # fmt: skip
    """Attend from M queries of one clip and head to all keys of the clip, biased by distance times the query's gate.

    The bias of the keys adds the same to all scores of a query and so changes nothing; that of the values is added last.
    """
    block, head = tl.program_id(0), tl.program_id(1)
    first, last, at = tl.load(blocks + 3 * block), tl.load(blocks + 3 * block + 1), tl.load(blocks + 3 * block + 2)
    rows = at + tl.arange(0, M)
    depth = tl.arange(0, D)
    stride = 3 * WIDTH
    mixed += head * D
    q = tl.load(mixed + rows[:, None].to(tl.int64) * stride + depth[None, :], mask=(rows < last)[:, None], other=0.0)
    q = (q.to(tl.float32) + tl.load(bias + head * D + depth)[None, :]).to(q.dtype)
    gate = tl.full((M,), LOG2E, tl.float32)
    if HAS_GATE:
        plain = q.to(tl.float32)
        one = tl.sum(plain * tl.load(gates + depth)[None, :], axis=1) + tl.load(offsets)
        two = tl.sum(plain * tl.load(gates + D + depth)[None, :], axis=1) + tl.load(offsets + 1)
        gate *= tl.sigmoid(one) * (tl.sigmoid(two) * tl.load(scales + head) - 1.0) + 2.0
    table += head * (2 * far + 1) + far
    most = tl.full((M,), float("-inf"), tl.float32)
    total = tl.zeros((M,), tl.float32)
    found = tl.zeros((M, D), tl.float32)
    scale *= LOG2E
    for start in range(first, last, N):
        cols = start + tl.arange(0, N)
        base = mixed + cols.to(tl.int64) * stride
        k = tl.load(base[None, :] + WIDTH + depth[:, None], mask=(cols < last)[None, :], other=0.0)
        score = tl.dot(q, k, input_precision=PRECISION) * scale
        if HAS_TABLE:
            distance = tl.minimum(tl.maximum(cols[None, :] - rows[:, None], -far), far)
            score += gate[:, None] * tl.load(table + distance).to(tl.float32)
        score = tl.where((cols < last)[None, :], score, float("-inf"))
        highest = tl.maximum(most, tl.max(score, axis=1))
        shares = tl.math.exp2(score - highest[:, None])
        shrink = tl.math.exp2(most - highest)
        total = total * shrink + tl.sum(shares, axis=1)
        v = tl.load(base[:, None] + 2 * WIDTH + depth[None, :], mask=(cols < last)[:, None], other=0.0)
        found = found * shrink[:, None]
        found = tl.dot(shares.to(v.dtype), v, found, input_precision=PRECISION)
        most = highest
    found = found / total[:, None] + tl.load(bias + 2 * WIDTH + head * D + depth)[None, :]
    if SPLIT:
        high = found.to(tl.float16)
        place = out + rows[:, None].to(tl.int64) * (2 * WIDTH) + head * D + depth[None, :]
        tl.store(place, high, mask=(rows < last)[:, None])
        tl.store(place + WIDTH, ((found - high.to(tl.float32)) * 2048.0).to(tl.float16), mask=(rows < last)[:, None])
    else:
        place = out + rows[:, None].to(tl.int64) * WIDTH + head * D + depth[None, :]
        tl.store(place, found.to(out.dtype.element_ty), mask=(rows < last)[:, None])


@triton.jit
def average(x, clips, out, WIDTH: tl.constexpr, ROWS: tl.constexpr, COLS: tl.constexpr):
    """Compute the mean over the patches of a clip."""
    clip = tl.program_id(0)
    first, last = tl.load(clips + 2 * clip), tl.load(clips + 2 * clip + 1)
    channel = tl.program_id(1) * COLS + tl.arange(0, COLS)
    total = tl.zeros((COLS,), tl.float32)
    for start in range(first, last, ROWS):
        row = start + tl.arange(0, ROWS)
        inside = (row < last)[:, None] & (channel < WIDTH)[None, :]
        total += tl.sum(
            tl.load(x + row[:, None].to(tl.int64) * WIDTH + channel[None, :], mask=inside, other=0.0), axis=0
        )
    tl.store(out + clip * WIDTH + channel, total / (last - first), mask=channel < WIDTH)
