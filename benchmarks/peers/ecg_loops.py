"""The document's way: one record at a time, plain torch and numpy, the clean prediction asked for at every attempt."""

from __future__ import annotations

from typing import Any

import numpy as np


def bits(module: Any, x: Any, device: str) -> Any:
    """The bits of one record (sample × lead)."""
    import torch

    with torch.no_grad():
        tensor = torch.from_numpy(np.ascontiguousarray(x.T[None], dtype=np.float32)).to(device)
        return (torch.sigmoid(module(tensor)) >= 0.5).int().cpu().numpy()[0]


def pgd(module: Any, x: Any, y: Any, eps: float, steps: int, device: str) -> Any:
    """PGD on one record."""
    import torch

    clean = torch.from_numpy(np.ascontiguousarray(x.T[None], dtype=np.float32)).to(device)
    aim = torch.from_numpy(np.asarray(y, dtype=np.float32)[None]).to(device)
    delta = torch.zeros_like(clean)
    size = 2.5 * eps / steps
    for _ in range(steps):
        delta.requires_grad_(True)
        loss = torch.nn.functional.binary_cross_entropy_with_logits(module(clean + delta), aim)
        (gradient,) = torch.autograd.grad(loss, delta)
        delta = (delta.detach() + size * gradient.sign()).clamp(-eps, eps)
    return x + delta.cpu().numpy()[0].T


def attack_all(module: Any, x: Any, y: Any, eps: float, steps: int, device: str) -> float:
    """Every record, one after the other: the share whose bits change."""
    changed = [
        (bits(module, r, device) != bits(module, pgd(module, r, t, eps, steps, device), device)).any()
        for r, t in zip(x, y, strict=True)
    ]
    return float(np.mean(changed))


def least(module: Any, x: Any, y: Any, eps: float, steps: int, rounds: int, device: str) -> float:
    """The least share of the budget at which one record flips, by bisection."""
    before, low, high = bits(module, x, device), 0.0, np.inf
    if (bits(module, pgd(module, x, y, eps, steps, device), device) != before).any():
        high = 1.0
    for _ in range(rounds if np.isfinite(high) else 0):
        middle = (low + high) / 2
        hit = (bits(module, pgd(module, x, y, middle * eps, steps, device), device) != before).any()
        low, high = (low, middle) if hit else (middle, high)
    return float(high)


def corrupt(
    module: Any, x: Any, fs: float, device: str, family: str, peaks: Any, strength: float, seed: int = 0
) -> float:
    """One family of noise or morphology on every record, one after the other, with the predictions before and after."""
    changed = []
    for i, record in enumerate(x):
        delta = MADE[family](record, fs, np.random.default_rng([seed, i]), peaks[i], strength)
        changed.append((bits(module, record, device) != bits(module, record + delta, device)).any())
    return float(np.mean(changed))


def band_noise(record: Any, fs: float, rng: Any, peaks: Any, strength: float) -> Any:  # noqa: ARG001  (all are called alike)
    """White noise filtered by a Fourier transform, lead by lead."""
    noise = np.empty_like(record)
    for lead in range(record.shape[1]):
        spectrum = np.fft.rfft(rng.standard_normal(len(record)))
        hertz = np.fft.rfftfreq(len(record), 1 / fs)
        spectrum[(hertz < 5) | (hertz > 40)] = 0
        wave = np.fft.irfft(spectrum, len(record))
        noise[:, lead] = wave / wave.std() * strength * 0.1 * record[:, lead].std()
    return noise


def baseline_wander(record: Any, fs: float, rng: Any, peaks: Any, strength: float) -> Any:  # noqa: ARG001
    """A sine a lead."""
    t, drift = np.arange(len(record)) / fs, np.empty_like(record)
    for lead in range(record.shape[1]):
        wave = np.sin(2 * np.pi * rng.uniform(0.05, 0.5) * t + rng.uniform(0, 2 * np.pi))
        drift[:, lead] = strength * 0.1 * record[:, lead].std() * wave
    return drift


def morph_amp(record: Any, fs: float, rng: Any, peaks: Any, strength: float) -> Any:
    """A gain a beat under a Gaussian bump."""
    t, gain = np.arange(len(record)), np.zeros(len(record))
    for beat in peaks:
        gain += strength * 0.15 * rng.uniform(-1, 1) * np.exp(-0.5 * ((t - beat) / (0.08 * fs)) ** 2)
    return gain[:, None] * record


def morph_time(record: Any, fs: float, rng: Any, peaks: Any, strength: float) -> Any:
    """A stretch a beat, tapered to nothing at both ends."""
    out = record.copy()
    for beat in peaks:
        low, high = max(beat - int(0.06 * fs), 0), min(beat + int(0.08 * fs) + 1, len(record))
        at = np.arange(low, high) - beat
        taper = 0.5 * (1 + np.cos(np.pi * np.where(at < 0, -at / (0.06 * fs), at / (0.08 * fs))))
        read = beat + at + taper * (at / (1 + strength * 0.1 * rng.uniform(-1, 1)) - at)
        for lead in range(record.shape[1]):
            out[low:high, lead] = np.interp(read, np.arange(len(record)), record[:, lead])
    return out - record


MADE = {"band_noise": band_noise, "baseline_wander": baseline_wander, "morph_amp": morph_amp, "morph_time": morph_time}
"""The document's families that need no model; R peaks are given, as the document gives them."""
