"""Small challenges: keys and submissions of known arrays in folders."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray


@dataclass
class Challenge:
    """A folder of keys and a folder of submissions, with the arrays behind them."""

    root: Path
    label: dict[str, NDArray[np.bool_]] = field(default_factory=dict)
    score: dict[tuple[str, str], NDArray[np.float64]] = field(default_factory=dict)

    @property
    def keys(self) -> Path:
        """The folder of the keys."""
        return self.root / "keys"

    @property
    def submissions(self) -> Path:
        """The folder of the submissions."""
        return self.root / "submissions"

    def add_dataset(self, name: str, label: NDArray[np.bool_]) -> None:
        """Write the key of a data set."""
        self.label[name] = label
        self.keys.mkdir(parents=True, exist_ok=True)
        rows = "".join(f"{name}-{i}\t{'bonafide' if one else 'spoof'}\n" for i, one in enumerate(label))
        (self.keys / f"{name}.tsv").write_text("item\tlabel\n" + rows)

    def add(self, system: str, dataset: str, score: NDArray[np.float64]) -> Path:
        """Write the scores of a system for a data set."""
        self.score[system, dataset] = score
        rows = "".join(f"{dataset}-{i}\t{one!r}\n" for i, one in enumerate(score.tolist()))
        return self.add_text(system, dataset, "item\tscore\n" + rows)

    def add_text(self, system: str, dataset: str, text: str) -> Path:
        """Write a submission as it is."""
        folder = self.submissions / system
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{dataset}.tsv").write_text(text)
        return folder / f"{dataset}.tsv"


@pytest.fixture
def challenge(tmp_path: Path) -> Challenge:
    """Three systems on two data sets: `good` is far better than `fair`, and `twin` is `fair` with its last bits changed."""
    made = Challenge(tmp_path)
    rng = np.random.default_rng(5)
    for name, n in (("wild", 600), ("studio", 400)):
        label = rng.random(n) < 0.4
        made.add_dataset(name, label)
        latent = rng.normal(size=n)
        fair = label * 1.2 + 0.8 * latent + 0.6 * rng.normal(size=n)
        made.add("good", name, label * 4.0 + 0.8 * latent + 0.6 * rng.normal(size=n))
        made.add("fair", name, fair)
        made.add("twin", name, fair + 1e-3 * rng.normal(size=n))
    return made
