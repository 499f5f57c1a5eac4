"""Tools for pictures: error levels, metadata, quantisation, residual, spectrum."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from hitmiss.llm.picture import Floats, blocks, decode, luminance, open_picture, rounded

if TYPE_CHECKING:
    from PIL.Image import Image

# ----------------------------------------------------------------------
# Error-level analysis: how much a picture changes when it is saved as JPEG once more.
#
# A region that has been through JPEG fewer times than the rest, such as a pasted one, changes more (N. Krawetz, "A
# Picture's Worth", Black Hat 2007). Smooth regions change little in any case, so the numbers are hints, not proofs.


def error_levels(data: bytes, *, quality: int = 90, grid: int = 8) -> dict[str, object]:
    """Measure absolute differences after saving at `quality`, taking the largest of the three channels per pixel.

    Return mean, 95th percentile and maximum; means of a grid of blocks; and the highest block's mean over the median
    block's.
    """
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


# ----------------------------------------------------------------------
# Metadata: format, size, EXIF and text in a file about itself. It is easily forged, and easily removed.

LONGEST: Final = 200
POINTERS: Final = {0x8769: "Exif", 0x8825: "GPS"}
CONTAINERS: Final = ("exif", "Raw profile type exif", "xmp", "XML:com.adobe.xmp", "icc_profile", "photoshop")


def metadata(data: bytes) -> dict[str, object]:
    """Return format, size and mode; EXIF tags by name; text chunks and comments, cut at 200 characters; other parts."""
    image = open_picture(data)
    info = image.info
    texts = {str(k): _short(v) for k, v in info.items() if isinstance(v, str | bytes) and k not in CONTAINERS}
    return {
        "format": image.format,
        "width": image.width,
        "height": image.height,
        "mode": image.mode,
        "exif": exif_tags(image),
        "texts": texts,
        "has_colour_profile": "icc_profile" in info,
        "has_xmp": any(name in info for name in ("xmp", "XML:com.adobe.xmp")),
    }


def exif_tags(image: Image) -> dict[str, str]:
    """Return the EXIF tags by name, with the group before those of the camera (Exif) and the location (GPS)."""
    from PIL import ExifTags

    try:
        main = image.getexif()
        found = {ExifTags.TAGS.get(t, str(t)): _short(v) for t, v in main.items() if t not in POINTERS}
        for pointer, group in POINTERS.items():
            names = ExifTags.GPSTAGS if group == "GPS" else ExifTags.TAGS
            inner = main.get_ifd(pointer) if pointer in main else {}
            found |= {f"{group}.{names.get(t, t)}": _short(v) for t, v in inner.items()}
    except Exception as error:  # broken EXIF is a finding, not a failure
        return {"broken": _short(str(error) or type(error).__name__)}
    return found


def _short(value: object) -> str:
    text = value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else str(value)
    text = text.rstrip("\x00")
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}… ({len(text):,} characters)"


# ----------------------------------------------------------------------
# JPEG quantisation: the tables that a file was saved with, and the quality of the common library that uses them.
#
# Cameras and programs have their own tables; a photograph with the tables of a program has been saved by it (H. Farid,
# "Digital Image Ballistics from JPEG Quantization", 2006).

LUMINANCE: Final = (
    *(16, 11, 10, 16, 24, 40, 51, 61, 12, 12, 14, 19, 26, 58, 60, 55),
    *(14, 13, 16, 24, 40, 57, 69, 56, 14, 17, 22, 29, 51, 87, 80, 62),
    *(18, 22, 37, 56, 68, 109, 103, 77, 24, 35, 55, 64, 81, 104, 113, 92),
    *(49, 64, 78, 87, 103, 121, 120, 101, 72, 92, 95, 98, 112, 100, 103, 99),
)
"""Table K.1 of ITU-T T.81, row by row."""
SUBSAMPLINGS: Final = {0: "4:4:4", 1: "4:2:2", 2: "4:2:0"}


def quantisation(data: bytes) -> dict[str, object]:
    """Return the tables, the libjpeg quality nearest to the first, the mean distance from it, and the subsampling."""
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
    """Return the libjpeg quality with the nearest luminance table (mean absolute difference), the highest of equals.

    >>> nearest_quality(list(LUMINANCE))
    (50, 0.0)
    """
    distances = {q: sum(abs(a - b) for a, b in zip(table, standard(q), strict=True)) / 64 for q in range(100, 0, -1)}
    best = min(distances, key=lambda q: distances[q])
    return best, distances[best]


def standard(quality: int) -> list[int]:
    """Return libjpeg's luminance table at a quality: K.1 scaled by 5000 / q below 50, by 200 − 2 q from there on.

    >>> standard(100)[:3], standard(25)[:3]
    ([1, 1, 1], [32, 22, 20])
    """
    scale = 5000 // quality if quality < 50 else 200 - 2 * quality
    return [min(255, max(1, (value * scale + 50) // 100)) for value in LUMINANCE]


# ----------------------------------------------------------------------
# Noise residual: what is left of a picture after a 3 × 3 median has removed the scene.
#
# A sensor leaves noise everywhere, equal in all directions; a generator often leaves less, and a pasted region another
# amount than its surroundings (J. Fridrich and J. Kodovsky, IEEE TIFS 2012, use such residuals).


def noise_residual(data: bytes, *, grid: int = 8) -> dict[str, object]:
    """Return standard deviation and excess kurtosis of the residual, and its correlation with neighbouring pixels.

    The neighbours are those to the right and below. Also return the deviation in each block of a grid, and the highest
    block's over the lowest's.
    """
    noise = residual(luminance(decode(data)))
    deviations = [[float(b.std()) for b in row] for row in blocks(noise, grid)]
    lowest = float(np.min(deviations))
    return {
        "deviation": rounded(float(noise.std())),
        "excess_kurtosis": _kurtosis(noise),
        "correlation_right": _correlation(noise[:, :-1], noise[:, 1:]),
        "correlation_below": _correlation(noise[:-1], noise[1:]),
        "highest_block_over_lowest": rounded(float(np.max(deviations)) / lowest) if lowest else None,
        "block_deviations": [[round(d, 3) for d in row] for row in deviations],
    }


def residual(values: Floats) -> Floats:
    """Return the picture minus its 3 × 3 median; the border is extended by reflection."""
    from scipy.ndimage import median_filter

    return np.asarray(values - median_filter(values, size=3, mode="reflect"))


def _kurtosis(noise: Floats) -> float | None:
    centred = noise - noise.mean()
    variance = float((centred**2).mean())
    return rounded(float((centred**4).mean()) / variance**2 - 3.0) if variance else None


def _correlation(one: Floats, other: Floats) -> float | None:
    a, b = one - one.mean() if one.size else one, other - other.mean() if other.size else other
    scale = float(np.sqrt((a**2).sum() * (b**2).sum()))
    return rounded(float((a * b).sum()) / scale) if scale else None


# ----------------------------------------------------------------------
# Frequency spectrum: how the power of a picture is distributed over spatial frequencies, and whether a period stands
# out.
#
# The power of photographs falls about as 1 / f² (D. J. Field, JOSA A 1987); generators that upsample leave too little
# power at high frequencies, or peaks at the period of their grid (R. Durall et al., CVPR 2020).


def spectrum(data: bytes, *, bins: int = 16) -> dict[str, object]:
    """Return the radial power profile (log10, mean per bin of frequency from 0 to 0.5 cycles per pixel).

    Also return the share of power above 0.25, the slope of log power over log frequency, and the strongest frequency
    over the median of its own bin.
    """
    frequency, power = power_spectrum(luminance(decode(data)))
    edges = np.linspace(0.0, 0.5, bins + 1)
    which = np.digitize(frequency, edges[1:-1])
    inside = (frequency > 0) & (frequency <= 0.5)
    profile = [_mean(power[inside & (which == b)]) for b in range(bins)]
    total = float(power[inside].sum())
    return {
        "log10_power_by_frequency": [None if p is None or p <= 0 else round(float(np.log10(p)), 3) for p in profile],
        "share_above_quarter": rounded(float(power[inside & (frequency > 0.25)].sum()) / total) if total else None,
        "slope": _slope((edges[:-1] + edges[1:]) / 2, profile),
        "peak_over_median": _peak(power, which, inside & (which > 0), bins),
    }


def power_spectrum(values: Floats) -> tuple[Floats, Floats]:
    """Return frequency (cycles per pixel, from zero) and power of each term, mean removed and Hann-windowed."""
    height, width = values.shape
    window = np.outer(np.hanning(height + 2)[1:-1], np.hanning(width + 2)[1:-1])
    centred = (values - values.mean()) * window
    power = np.abs(np.fft.fft2(centred)) ** 2 / values.size
    frequency = np.hypot(np.fft.fftfreq(height)[:, None], np.fft.fftfreq(width)[None, :])
    return frequency, power


def _mean(values: Floats) -> float | None:
    return float(values.mean()) if values.size else None


def _slope(centres: Floats, profile: list[float | None]) -> float | None:
    """Return the least-squares slope through the bins that have power; a photograph has about −2."""
    known = [(np.log10(f), np.log10(p)) for f, p in zip(centres, profile, strict=True) if p]
    if len(known) < 3:
        return None
    x, y = np.array(known).T
    x = x - x.mean()
    return rounded(float((x * (y - y.mean())).sum() / (x * x).sum()))


def _peak(power: Floats, which: NDArray[np.intp], usable: NDArray[np.bool_], bins: int) -> float | None:
    ratios = []
    for b in range(1, bins):
        own = power[usable & (which == b)]
        middle = float(np.median(own)) if own.size else 0.0
        ratios += [float(own.max()) / middle] if middle else []
    return rounded(max(ratios)) if ratios else None
