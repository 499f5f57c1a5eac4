"""SIMULATED 12-lead ECGs with five diagnostic patterns: a heart dipole that rotates once per beat."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from hitmiss.attacks.leads import LEADS, expansion
from hitmiss.stats.random import noise_generator

Floats = NDArray[np.float64]
CLASSES: Final = ("CD", "HYP", "MI", "NORM", "STTC")
FS: Final = 100.0
SECONDS: Final = 10.0
DOWER: Final = np.array(
    [
        [0.632, -0.235, 0.059], [0.235, 1.066, -0.132],
        [-0.515, 0.157, -0.917], [0.044, 0.164, -1.387], [0.882, 0.098, -1.277],
        [1.213, 0.127, -0.601], [1.125, 0.127, -0.086], [0.831, 0.076, 0.230],
    ]
)  # fmt: skip
"""I, II and V1 to V6 from the dipole's x (left), y (down) and z (back)."""
WAVES: Final = {
    "P": (-1.25, 0.22, (0.07, 0.10, -0.02)),
    "Q": (-0.14, 0.07, (-0.10, -0.06, -0.12)),
    "R": (0.0, 0.09, (0.85, 0.70, 0.25)),
    "S": (0.15, 0.08, (-0.18, -0.12, 0.45)),
    "ST": (0.65, 0.35, (0.0, 0.0, 0.0)),
    "T": (1.45, 0.38, (0.22, 0.18, -0.12)),
}
"""For each wave its phase and width (both in radians of the beat) and the size of its movement in x, y and z (mV)."""
README: Final = """SIMULATED ECGs, made by hitmiss itself (hitmiss demo): no patient ever had this heart.

train.npz, test.npz   x (record × sample × lead, mV, 100 Hz), y (record × class), classes, leads, record, patient, sex, fs
detector.*            a small classifier trained on train.npz, without torch

Five patterns: CD a wide, notched QRS; HYP tall R; MI deep Q, lifted ST; STTC lowered ST, inverted T; NORM none of these.
Numbers on this data show that the software works. They say nothing about real patients.
"""


@dataclass(frozen=True, eq=False)
class Ecgs:
    """Simulated records with their diagnoses and patients."""

    x: Floats
    y: NDArray[np.int8]
    record: list[str]
    patient: list[str]
    sex: list[str]

    def save(self, path: str | Path) -> None:
        """Write them as `.npz`, in the format of `hitmiss attack --data`."""
        with Path(path).open("wb") as file:
            np.savez_compressed(
                file, x=self.x.astype(np.float32), y=self.y, classes=np.array(CLASSES), leads=np.array(LEADS),
                record=np.array(self.record), patient=np.array(self.patient), sex=np.array(self.sex), fs=FS,
            )  # fmt: skip


def simulate(n: int, seed: int = 0, split: str = "test") -> Ecgs:
    """Simulate `n` records of about as many patients (one in five has two); same name and seed, same records.

    >>> some = simulate(3)
    >>> some.x.shape, some.y.shape
    ((3, 1000, 12), (3, 5))
    """
    patients = [f"{split}-p{i - i // 6:05d}" for i in range(n)]
    x, y, sex = [], [], []
    for i, patient in enumerate(patients):
        bits, waves, female = _patient(noise_generator(seed, "patient", patient))
        x.append(_record(waves, noise_generator(seed, "record", split, i)))
        y.append(bits)
        sex.append("female" if female else "male")
    return Ecgs(np.stack(x), np.stack(y), [f"{split}-{i:05d}" for i in range(n)], patients, sex)


Waves = dict[str, tuple[float, float, Floats]]


def _patient(rng: Generator) -> tuple[NDArray[np.int8], Waves, bool]:
    """Return diagnoses, the waves of this heart, and the sex."""
    female = bool(rng.random() < 0.5)
    size = rng.normal(0.9 if female else 1.05, 0.12)
    turn = _rotation(rng.normal(0, 0.25), rng.normal(0, 0.25))
    waves: Waves = {}
    for name, (phase, width, push) in WAVES.items():
        varied = np.array(push) * rng.normal(1.0, 0.15, 3) * size
        waves[name] = (phase + rng.normal(0, 0.03), width * rng.normal(1.0, 0.08), turn @ varied)
    bits = _diagnoses(rng)
    for at in np.flatnonzero(bits):
        PATTERNS[CLASSES[at]](waves, float(rng.uniform(0.35, 1.0)), size)
    return bits, waves, female


def _diagnoses(rng: Generator) -> NDArray[np.int8]:
    """Draw diagnoses: normal in two of five; else one diagnosis, and in a quarter of those a second."""
    bits = np.zeros(5, dtype=np.int8)
    if rng.random() < 0.4:
        bits[CLASSES.index("NORM")] = 1
        return bits
    sick = [CLASSES.index(c) for c in ("CD", "HYP", "MI", "STTC")]
    bits[rng.choice(sick, size=2 if rng.random() < 0.25 else 1, replace=False)] = 1
    return bits


def _conduction(waves: Waves, how: float, size: float) -> None:
    """Add a wide QRS with a late movement to the right and forward."""
    for name in ("Q", "R", "S"):
        phase, width, push = waves[name]
        waves[name] = (phase, width * (1 + 0.7 * how), push * (1 - 0.15 * how))
    waves["late"] = (0.42, 0.13, how * size * np.array([-0.45, -0.05, -0.40]))


def _hypertrophy(waves: Waves, how: float, size: float) -> None:
    """Add a tall R to the left and back, and a little strain."""
    _scale(waves, "R", 1 + 0.9 * how)
    waves["strain"] = (0.9, 0.4, -0.10 * how * size * np.array([1.0, 0.6, 0.2]))


def _infarction(waves: Waves, how: float, size: float) -> None:
    """Add a deep, broad Q, less R, and a raised ST, anterior and inferior."""
    phase, width, push = waves["Q"]
    waves["Q"] = (phase - 0.05, width * (1 + 0.8 * how), push + how * size * np.array([-0.15, -0.35, 0.30]))
    _scale(waves, "R", 1 - 0.25 * how)
    waves["ST"] = (0.6, 0.35, how * size * np.array([0.06, 0.14, -0.14]))


def _repolarisation(waves: Waves, how: float, size: float) -> None:
    """Add a lowered ST and a T that flattens and inverts."""
    _scale(waves, "T", 1 - 1.5 * how)
    waves["ST"] = (0.7, 0.35, how * size * np.array([-0.10, -0.08, 0.06]))


def _scale(waves: Waves, name: str, factor: float) -> None:
    phase, width, push = waves[name]
    waves[name] = (phase, width, push * factor)


PATTERNS: Final = {
    "CD": _conduction,
    "HYP": _hypertrophy,
    "MI": _infarction,
    "NORM": lambda waves, how, size: None,
    "STTC": _repolarisation,
}


def _rotation(about_z: float, about_y: float) -> Floats:
    """Return the orientation of this heart in the chest."""
    c, s = np.cos(about_z), np.sin(about_z)
    d, e = np.cos(about_y), np.sin(about_y)
    return np.asarray(np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]]) @ np.array([[d, 0, e], [0, 1, 0], [-e, 0, d]]))


def _record(waves: Waves, rng: Generator) -> Floats:
    """Return ten seconds of this heart, with breathing, wander, and the noise of muscles and electrodes."""
    phase = _phase(rng)
    dipole = np.zeros((len(phase), 3))
    for at, width, push in waves.values():
        away = (phase - at + np.pi) % (2 * np.pi) - np.pi
        dipole += np.exp(-0.5 * (away / width) ** 2)[:, None] * push
    t = np.arange(len(phase)) / FS
    breath = 1.0 + 0.04 * np.sin(2 * np.pi * rng.uniform(0.15, 0.35) * t + rng.uniform(0, 6.3))
    eight = (dipole * breath[:, None]) @ DOWER.T
    wander = rng.uniform(0.0, 0.08) * np.sin(2 * np.pi * rng.uniform(0.05, 0.4) * t[:, None] + rng.uniform(0, 6.3, 8))
    noise = rng.uniform(0.005, 0.02) * rng.standard_normal(eight.shape)
    return np.asarray((eight + wander + noise) @ expansion().T)


def _phase(rng: Generator) -> Floats:
    """Return the phase of the beat at each sample, −π to π, R at 0: its rate varies with breathing and chance."""
    n = int(SECONDS * FS)
    t = np.arange(n) / FS
    rate = np.clip(rng.normal(1.2, 0.2), 0.75, 2.0)
    sway = 0.04 * np.sin(2 * np.pi * 0.25 * t + rng.uniform(0, 6.3)) + 0.03 * np.sin(
        2 * np.pi * 0.1 * t + rng.uniform(0, 6.3)
    )
    turns = np.cumsum(rate * (1 + sway)) / FS + rng.random()
    return np.asarray((turns % 1.0) * 2 * np.pi - np.pi)


def write(folder: str | Path, *, share: float = 1.0, seed: int = 0) -> Path:
    """Write a training and a test set with a README; `share` of the full size, but enough to train on."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    simulate(max(round(1200 * share), 300), seed, "train").save(folder / "train.npz")
    simulate(max(round(300 * share), 60), seed, "test").save(folder / "test.npz")
    (folder / "README.txt").write_text(README, encoding="utf-8")
    return folder
