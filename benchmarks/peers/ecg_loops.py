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


def band_noise(module: Any, x: Any, fs: float, device: str, seed: int = 0) -> float:
    """Band noise on every record, one after the other, with the predictions before and after."""
    changed = []
    for i, record in enumerate(x):
        rng = np.random.default_rng([seed, i])
        noise = np.empty_like(record)
        for lead in range(record.shape[1]):
            spectrum = np.fft.rfft(rng.standard_normal(len(record)))
            hertz = np.fft.rfftfreq(len(record), 1 / fs)
            spectrum[(hertz < 5) | (hertz > 40)] = 0
            wave = np.fft.irfft(spectrum, len(record))
            noise[:, lead] = wave / wave.std() * 0.1 * record[:, lead].std()
        changed.append((bits(module, record, device) != bits(module, record + noise, device)).any())
    return float(np.mean(changed))
