"""Error-level analysis: how much a picture changes when it is saved as JPEG once more.

A region that has been through JPEG fewer times than the rest, as a pasted one, changes more (N. Krawetz, "A Picture's
Worth", Black Hat 2007). Smooth regions change little whatever their history, so the figures are hints, not proofs.
"""

from __future__ import annotations

import io
from typing import Any

import numpy as np

from hitmiss.llm.pixels import blocks, decode, rounded


def error_levels(data: bytes, *, quality: int = 90, grid: int = 8) -> dict[str, Any]:
    """Absolute differences after saving at `quality`, the largest of the three channels a pixel: mean, 95th percentile,
    maximum; means of a grid of blocks; and the highest block's mean over the median block's."""
    from PIL import Image

    pixels = decode(data)
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "JPEG", quality=quality)
    again = np.asarray(Image.open(buffer).convert("RGB"))
    levels = np.abs(pixels.astype(np.float64) - again).max(axis=2)
    means = [[float(b.mean()) for b in row] for row in blocks(levels, grid)]
    middle = float(np.median(means))
    return {
        "quality": quality,
        "mean": rounded(float(levels.mean())),
        "percentile_95": rounded(float(np.percentile(levels, 95))),
        "maximum": float(levels.max()),
        "highest_block_over_median": rounded(float(np.max(means)) / middle) if middle else None,
        "block_means": [[round(m, 2) for m in row] for row in means],
    }
