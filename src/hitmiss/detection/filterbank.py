"""Kaldi filterbanks on batches of tensors: the input of BEATs and similar models. Same numbers as Kaldi without dither."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from types import ModuleType
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hitmiss.detection.detector import need

if TYPE_CHECKING:
    from torch import Tensor


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
    """Return the number of whole frames of 25 ms every 10 ms in a clip.

    >>> n_frames(400), n_frames(559), n_frames(560), n_frames(100)
    (1, 1, 2, 0)
    """
    return max(0, 1 + (samples - FRAME) // SHIFT)


def fbank(waves: Tensor, bins: int = BINS) -> Tensor:
    """Return log mel energies (clip × frame × bin) of clips at 16 kHz (clip × sample), on their device, in float32.

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
def exact_products(torch: ModuleType) -> Iterator[None]:
    """Compute products in full float32 even if TF32 was requested: the input of the model is not rounded."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


@lru_cache
def on_device(device: str, bins: int) -> tuple[Tensor, Tensor]:
    """Return window and filters on their device, copied once: each copy would wait for the device."""
    torch = need("torch", "torch")
    with torch.inference_mode(False):
        window, filters = (torch.from_numpy(array).to(device) for array in (povey_window(), mel_filters(bins)))
    return window, filters


@lru_cache
def povey_window() -> NDArray[np.float32]:
    """Return a Hann window to the power 0.85."""
    hann = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(FRAME) / (FRAME - 1))
    return (hann**0.85).astype(np.float32)


@lru_cache
def mel_filters(bins: int) -> NDArray[np.float32]:
    """Return triangles with equal widths on the mel scale, bin × frequency; the last frequency is not used."""
    low, high = mel(LOWEST_HZ), mel(SAMPLE_RATE / 2)
    edges = low + (high - low) / (bins + 1) * np.arange(bins + 2)
    at = mel(np.arange(FFT // 2) * SAMPLE_RATE / FFT)
    left, centre, right = edges[:-2, None], edges[1:-1, None], edges[2:, None]
    triangles = np.maximum(0.0, np.minimum((at - left) / (centre - left), (right - at) / (right - centre)))
    return np.pad(triangles, ((0, 0), (0, 1))).astype(np.float32)


def mel(hertz: ArrayLike) -> NDArray[np.float64]:
    """Convert hertz to Kaldi's mel scale.

    >>> round(float(mel(1000.0)), 2)
    999.99
    """
    return 1127.0 * np.log(1.0 + np.asarray(hertz) / 700.0)
