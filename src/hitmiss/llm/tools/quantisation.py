"""JPEG quantisation: the tables that a file was saved with, and the quality of the common library that has them.

Cameras and programs have tables of their own; a photograph whose tables are those of a program has been saved by one
(H. Farid, "Digital Image Ballistics from JPEG Quantization", 2006).
"""

from __future__ import annotations

from typing import Any, Final

from hitmiss.llm.pixels import open_picture

LUMINANCE: Final = (
    *(16, 11, 10, 16, 24, 40, 51, 61, 12, 12, 14, 19, 26, 58, 60, 55),
    *(14, 13, 16, 24, 40, 57, 69, 56, 14, 17, 22, 29, 51, 87, 80, 62),
    *(18, 22, 37, 56, 68, 109, 103, 77, 24, 35, 55, 64, 81, 104, 113, 92),
    *(49, 64, 78, 87, 103, 121, 120, 101, 72, 92, 95, 98, 112, 100, 103, 99),
)
"""Table K.1 of ITU-T T.81, row by row."""
SUBSAMPLINGS: Final = {0: "4:4:4", 1: "4:2:2", 2: "4:2:0"}


def quantisation(data: bytes) -> dict[str, Any]:
    """The tables row by row, the libjpeg quality nearest to the first, the mean distance from it, and the subsampling."""
    image = open_picture(data)
    if image.format != "JPEG":
        return {"applies": False, "reason": f"the file is {image.format}; only JPEG has quantisation tables"}
    from PIL import JpegImagePlugin

    tables = [list(map(int, table)) for _, table in sorted(image.quantization.items())]
    quality, distance = nearest_quality(tables[0])
    return {
        "applies": True,
        "tables": tables,
        "nearest_libjpeg_quality": quality,
        "mean_distance": round(distance, 3),
        "is_standard": distance == 0,
        "subsampling": SUBSAMPLINGS.get(JpegImagePlugin.get_sampling(image), "unknown"),
    }


def nearest_quality(table: list[int]) -> tuple[int, float]:
    """The libjpeg quality whose luminance table is nearest (mean absolute difference), the highest of equals.

    >>> nearest_quality(list(LUMINANCE))
    (50, 0.0)
    """
    distances = {q: sum(abs(a - b) for a, b in zip(table, standard(q), strict=True)) / 64 for q in range(100, 0, -1)}
    best = min(distances, key=lambda q: distances[q])
    return best, distances[best]


def standard(quality: int) -> list[int]:
    """libjpeg's luminance table at a quality: K.1 scaled by 5000 / q below 50, by 200 − 2 q from there on.

    >>> standard(100)[:3], standard(25)[:3]
    ([1, 1, 1], [32, 22, 20])
    """
    scale = 5000 // quality if quality < 50 else 200 - 2 * quality
    return [min(255, max(1, (value * scale + 50) // 100)) for value in LUMINANCE]
