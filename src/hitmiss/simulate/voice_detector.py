"""A small detector for the simulated voices: trained in seconds."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from hitmiss.media.audio import load_audio
from hitmiss.simulate.saved_detectors import save_detector
from hitmiss.simulate.spectral_baseline import SpectralBaseline


def train(folder: str | Path) -> str:
    """Train on `train.tsv` of the corpus and return the text for `--detector`."""
    folder = Path(folder)
    rows = pl.read_csv(folder / "train.tsv", separator="\t", infer_schema_length=0)
    clips = [load_audio(folder / file) for file in rows["file"]]
    model = SpectralBaseline.fit(clips, (rows["label"] == "real").to_numpy())
    return save_detector(folder, model, data="train.tsv", verb="detect")
