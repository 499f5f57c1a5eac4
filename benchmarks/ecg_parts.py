"""What the benchmarks of attacks share: recordings, a residual network, and its training."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from hitmiss.attacks.recordings import Recordings, read_recordings
from hitmiss.metrics.ranking import roc_auc
from hitmiss.simulate.ecg import CLASSES, simulate

SHARED = Path(__file__).resolve().parents[1].parent / "shared" / "data" / "ecg" / "ptbxl_demo.npz"
INSIDE = Path(__file__).resolve().parents[1] / "shared" / "data" / "ecg" / "ptbxl_demo.npz"


def recordings(n: int | None = None) -> tuple[Recordings, Recordings, Recordings, str]:
    """Training, validation and test records, and where they are from: PTB-XL where the sample is here, else simulated."""
    path = next((p for p in (SHARED, INSIDE) if p.is_file()), None)
    if path is not None:
        whole = read_recordings(path)
        fold = np.array([int(f) for f in whole.columns["fold"]])
        parts = [whole.where(fold <= 8), whole.where(fold == 9), whole.where(fold == 10)]
        source = "PTB-XL sample, folds 1-8, 9 and 10"
    else:
        made = [simulate(size, 0, split) for size, split in ((1200, "train"), (200, "val"), (224, "test"))]
        parts = [Recordings(m.x, m.y, 100.0, CLASSES, m.record, {"patient": m.patient}) for m in made]
        source = "simulated ECGs"
    train, val, test = parts
    return train, val, test if n is None else test.first(n), source


def network() -> Any:
    """A residual network of about 100,000 weights: record × lead × sample to five logits."""
    import torch
    from torch import nn

    class Block(nn.Module):  # type: ignore[misc,name-defined]
        def __init__(self, a: int, b: int) -> None:
            super().__init__()
            self.body = nn.Sequential(
                nn.Conv1d(a, b, 7, 2, 3, bias=False),
                nn.BatchNorm1d(b),
                nn.ReLU(),
                nn.Conv1d(b, b, 7, 1, 3, bias=False),
                nn.BatchNorm1d(b),
            )
            self.short = nn.Conv1d(a, b, 1, 2, bias=False)

        def forward(self, x: Any) -> Any:
            return torch.relu(self.body(x) + self.short(x))

    class Network(nn.Module):  # type: ignore[misc,name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.stem = nn.Sequential(nn.Conv1d(12, 32, 9, 2, 4, bias=False), nn.BatchNorm1d(32), nn.ReLU())
            self.blocks = nn.Sequential(Block(32, 32), Block(32, 48), Block(48, 64))
            self.head = nn.Linear(128, 5)

        def forward(self, x: Any) -> Any:
            h = self.blocks(self.stem(x))
            return self.head(torch.cat([h.mean(dim=2), h.amax(dim=2)], dim=1))

    return Network()


def train(data: Recordings, *, epochs: int = 10, device: str = "cpu", seed: int = 0) -> Any:
    """Train the network on records; a single rate that falls, shifts in time as the only augmentation."""
    import torch

    torch.manual_seed(seed)
    module = network().to(device)
    x = torch.from_numpy(np.ascontiguousarray(data.x.transpose(0, 2, 1), dtype=np.float32))
    y = torch.from_numpy(data.y.astype(np.float32))
    steps = epochs * (len(x) // 64)
    optimiser = torch.optim.AdamW(module.parameters(), lr=3e-3, weight_decay=0.05)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, 3e-3, total_steps=steps)
    rng = np.random.default_rng(seed)
    for _ in range(epochs):
        order = rng.permutation(len(x))[: len(x) // 64 * 64].reshape(-1, 64)
        for rows in order:
            batch = torch.roll(x[rows], int(rng.integers(-100, 100)), dims=2).to(device)
            loss = torch.nn.functional.binary_cross_entropy_with_logits(module(batch), y[rows].to(device))
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            schedule.step()
    return module.eval()


def macro_auc(y: Any, score: Any) -> float:
    """The mean area over the classes."""
    return float(np.mean([roc_auc(y[:, k], score[:, k]) for k in range(y.shape[1])]))


def printed(rows: list[dict[str, object]]) -> None:
    """The rows as a Markdown table."""
    names = list(rows[0])
    print("| " + " | ".join(names) + " |")
    print("|" + "---|" * len(names))
    for row in rows:
        print("| " + " | ".join(f"{row[k]:.3g}" if isinstance(row[k], float) else str(row[k]) for k in names) + " |")
