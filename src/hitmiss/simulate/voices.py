"""SIMULATED voices: a small corpus for deepfake detection, made here from pulses, noise and resonances."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.random import Generator

from hitmiss.media.audio import Clip, save_audio
from hitmiss.simulate.spoofs import SPOOFS, Floats
from hitmiss.stats.random import noise_generator

RATE: Final = 16000
STEP: Final = 160
"""Samples between changes of the vocal tract: 10 ms."""
VOWELS: Final = (
    (730, 1090, 2440), (270, 2290, 3010), (300, 870, 2240), (530, 1840, 2480), (570, 840, 2410), (490, 1350, 1690),
)  # fmt: skip
"""Formants in Hz (Peterson & Barney 1952, men): hod, heed, who'd, head, hawed, heard."""
WIDTHS: Final = (70.0, 100.0, 140.0, 220.0)
SPLITS: Final = {"train": ("V01", "V02", "V03"), "eval": ("V01", "V02", "V03", "V04")}
"""Kinds of spoof in each split: one of the evaluation kinds is new to a detector trained here."""
README: Final = """SIMULATED VOICES, made by hitmiss itself (hitmiss demo): no person ever spoke this.

flac/        16 kHz mono clips
train.tsv    to train a detector on: file, label, speaker, gender, attack
eval.tsv     to evaluate it on: other speakers, and a kind of spoof (V04) that is not in train.tsv
codecs.tsv   which codecs the evaluation is put through
detector.*   a small detector trained on train.tsv

{spoofs}
Numbers on this data show that the software works. They say nothing about real voices.
"""
CODECS: Final = (
    "codec\tname\tsample_rate\tq1\tunit\n"
    "C01\topus_wb\t16000\t12\tkbps\n"
    "C05\tmp3_wb\t16000\t24\tkbps\n"
    "C09\tamr_nb\t8000\t7.4\tkbps\n"
    "X01\tg711_ulaw\t8000\t64\tkbps\n"
)


@dataclass(frozen=True)
class Speaker:
    """The properties of a simulated voice."""

    name: str
    gender: str
    pitch: float
    tract: float
    jitter: float
    shimmer: float
    breath: float
    noise: float
    level: float
    room: tuple[float, ...]


def make_speaker(name: str, seed: int) -> Speaker:
    """Return a speaker, always the same for the same name and seed."""
    rng = noise_generator(seed, "speaker", name)
    female = bool(rng.random() < 0.5)
    return Speaker(
        name=name,
        gender="f" if female else "m",
        pitch=float(rng.normal(205, 18) if female else rng.normal(115, 12)),
        tract=float(rng.normal(1.16 if female else 1.0, 0.04)),
        jitter=float(rng.uniform(0.006, 0.016)),
        shimmer=float(rng.uniform(0.04, 0.12)),
        breath=float(rng.uniform(0.02, 0.08)),
        noise=float(10 ** (rng.uniform(-62, -48) / 20)),
        level=float(10 ** (rng.uniform(-28, -20) / 20)),
        room=tuple(float(v) for v in rng.normal(0, 0.06, 400) * np.exp(-np.arange(400) / 90.0)),
    )


def utter(speaker: Speaker, rng: Generator, *, is_flat: bool = False) -> Clip:
    """Return one utterance of two to four seconds; `is_flat` leaves out natural irregularities and the room."""
    formants, voiced, hiss = _articulation(speaker, rng)
    n = len(voiced) * STEP
    pitch = _prosody(speaker, len(voiced), rng, is_flat)
    source = _glottis(speaker, np.repeat(pitch, STEP), rng, is_flat) * _smooth(np.repeat(voiced, STEP))
    fricative = np.diff(rng.standard_normal(n + 1)) * _smooth(np.repeat(hiss, STEP))
    voice = _tract(source, formants * speaker.tract) + 0.15 * fricative
    return _loud(voice, speaker.level) if is_flat else _record(speaker, voice, rng)


def _articulation(speaker: Speaker, rng: Generator) -> tuple[Floats, Floats, Floats]:
    """Return, per step, formants, the amount of voicing, and the amount of noise."""
    rows: list[tuple[tuple[float, ...], float, float]] = [(VOWELS[5], 0.0, 0.0)] * int(rng.integers(10, 30))
    for _ in range(int(rng.integers(7, 12))):
        vowel = VOWELS[int(rng.integers(len(VOWELS)))]
        rows += [(vowel, 0.1 * rng.random(), float(rng.random()))] * int(rng.integers(4, 9))
        rows += [(vowel, 1.0, 0.0)] * int(rng.integers(10, 23))
        if rng.random() < 0.2:
            rows += [(vowel, 0.0, 0.0)] * int(rng.integers(8, 20))
    rows += [(VOWELS[5], 0.0, 0.0)] * int(rng.integers(10, 30))
    formants = np.array([(*f, 3500.0) for f, _, _ in rows])
    blur = np.hanning(7) / np.hanning(7).sum()
    moved = np.stack([np.convolve(np.pad(f, 3, mode="edge"), blur, mode="valid") for f in formants.T], axis=1)
    loudness = 1.0 + 0.2 * rng.standard_normal() * (speaker.gender == "f")
    return moved, np.array([v for _, v, _ in rows]) * loudness, np.array([h for _, _, h in rows])


def _prosody(speaker: Speaker, steps: int, rng: Generator, is_flat: bool) -> Floats:
    """Return the pitch in Hz per step: falling over the utterance, with accents; or in steps if it is flat."""
    t = np.linspace(0.0, 1.0, steps)
    accents = sum(rng.uniform(-0.15, 0.25) * np.exp(-(((t - rng.random()) / 0.06) ** 2)) for _ in range(6))
    curve = 1.1 - 0.25 * t + accents
    if is_flat:
        curve = np.round(curve / 0.08) * 0.08
    return np.asarray(speaker.pitch * curve)


def _glottis(speaker: Speaker, pitch: Floats, rng: Generator, is_flat: bool) -> Floats:
    """Return the derivative of the air flow through the glottis: opening, sudden closing, breath while it is open."""
    if not is_flat:
        drift = np.repeat(rng.standard_normal(len(pitch) // 160 + 1), 160)[: len(pitch)]
        pitch = pitch * (1 + speaker.jitter * drift)
    phase = np.cumsum(pitch) / RATE
    cycle, inside = phase.astype(np.intp), phase % 1.0
    pulse = np.where(inside < 0.6, np.sin(np.pi * inside / 0.6), 0.0) - np.where(
        (inside >= 0.55) & (inside < 0.65), 3.0 * (1 - np.abs(inside - 0.6) / 0.05), 0.0
    )
    if is_flat:
        return pulse
    strength = 1 + speaker.shimmer * rng.standard_normal(int(cycle.max()) + 1)
    breath = speaker.breath * rng.standard_normal(len(pitch)) * (inside < 0.6)
    return pulse * strength[cycle] + breath


def _tract(source: Floats, formants: Floats) -> Floats:
    """Filter the source through four resonances that change every 10 ms."""
    from scipy.signal import sosfilt

    out, state = np.empty_like(source), np.zeros((4, 2))
    for i, row in enumerate(formants):
        piece = slice(i * STEP, (i + 1) * STEP)
        out[piece], state = sosfilt(_resonances(row), source[piece], zi=state)
    return out


def _resonances(formants: Floats) -> Floats:
    radius = np.exp(-np.pi * np.array(WIDTHS) / RATE)
    a1 = -2 * radius * np.cos(2 * np.pi * np.minimum(formants, 7600.0) / RATE)
    a2 = radius**2
    zeros, ones = np.zeros(4), np.ones(4)
    return np.stack([1 + a1 + a2, zeros, zeros, ones, a1, a2], axis=1)


def _smooth(gate: Floats) -> Floats:
    window = np.hanning(321)
    return np.convolve(gate, window / window.sum(), mode="same")


def _record(speaker: Speaker, voice: Floats, rng: Generator) -> Clip:
    """Add the speaker's room and level, and the noise of the microphone."""
    from scipy.signal import oaconvolve

    response = np.array([1.0, *speaker.room])
    heard = _loud(oaconvolve(voice, response)[: len(voice)], speaker.level)
    noise = speaker.noise * rng.standard_normal(len(heard))
    return np.asarray(np.clip(heard + noise, -1, 1), dtype=np.float32)


def _loud(sound: Floats, level: float) -> Clip:
    return np.asarray(sound * level / max(float(np.sqrt(np.mean(sound**2))), 1e-9), dtype=np.float32)


def corpus(split: str, speakers: int, utterances: int, seed: int = 0) -> Iterator[tuple[dict[str, str], Clip]]:
    """Yield the clips of a split with their manifest rows: real ones, and each spoofed in one way."""
    for s in range(speakers):
        speaker = make_speaker(f"{split}{s:03d}", seed)
        for u in range(utterances):
            name = f"{split.upper()[:2]}_{s:03d}_{u:02d}"
            rng = noise_generator(seed, "utterance", name)
            real = utter(speaker, rng)
            who = {"speaker": speaker.name, "gender": speaker.gender}
            yield {"file": f"flac/{name}.flac", "label": "real", **who, "attack": "-"}, real
            kind = SPLITS[split][(s + u) % len(SPLITS[split])]
            clip = utter(speaker, rng, is_flat=True) if kind == "V03" else SPOOFS[kind].make(real, rng)
            yield {"file": f"flac/{name}_{kind}.flac", "label": "fake", **who, "attack": kind}, clip


def write(folder: str | Path, *, share: float = 1.0, seed: int = 0) -> Path:
    """Write the corpus: clips, manifests, a codec plan and a README; `share` of the full size, with enough to train."""
    folder = Path(folder)
    (folder / "flac").mkdir(parents=True, exist_ok=True)
    sizes = {"train": (max(round(10 * share), 6), 4), "eval": (max(round(12 * share), 4), 4)}
    for split, (speakers, utterances) in sizes.items():
        rows = []
        for row, clip in corpus(split, speakers, utterances, seed):
            save_audio(folder / row["file"], clip, RATE)
            rows.append(row)
        lines = ["\t".join(rows[0]), *("\t".join(row.values()) for row in rows)]
        (folder / f"{split}.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (folder / "codecs.tsv").write_text(CODECS, encoding="utf-8")
    about = "".join(f"{name}: {spoof.about}\n" for name, spoof in SPOOFS.items())
    (folder / "README.txt").write_text(README.format(spoofs=about), encoding="utf-8")
    return folder
