"""Trials on disk for the tests of streaming: simulated, in every format, cut into shards."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

CODECS = ("-", "C01", "C02", "C03")


def simulated(n: int, seed: int = 0, kind: str = "normal") -> pl.DataFrame:
    """Trials with ids, codecs, attacks and labels; `kind` of scores: normal, tied, narrow, saturated or zeros."""
    rng = np.random.default_rng(seed)
    positive = rng.random(n) < 0.3
    latent = rng.normal(size=n) + np.where(positive, 1.0, -1.0) - 0.3
    score = {
        "normal": latent,
        "tied": np.round(latent, 1),
        "narrow": 1e6 + latent / 1e4,
        "saturated": 1 / (1 + np.exp(-6.0 * latent)),
        "zeros": np.where(rng.random(n) < 0.1, -0.0, np.where(rng.random(n) < 0.1, 0.0, latent)),
        "infinite": np.where(rng.random(n) < 0.01, np.inf, np.where(rng.random(n) < 0.01, -np.inf, latent)),
    }[kind]
    return pl.DataFrame(
        {
            "item": [f"E_{i:07d}" for i in range(n)],
            "codec": rng.choice(CODECS, n),
            "attack": np.where(positive, "-", rng.choice(("A01", "A02"), n)),
            "label": np.where(positive, "bonafide", "spoof"),
            "score": score,
        }
    )


def write(frame: pl.DataFrame, path: Path) -> None:
    """A frame as a file of the format that its name says."""
    if path.suffix == ".parquet":
        frame.write_parquet(path)
    elif path.suffix == ".jsonl":
        frame.write_ndjson(path)
    elif path.suffix == ".gz":
        path.write_bytes(gzip.compress(frame.write_csv(None, separator="\t").encode()))
    else:
        frame.write_csv(path, separator="," if path.suffix == ".csv" else "\t")


def write_shards(frame: pl.DataFrame, folder: Path, suffix: str, shards: int, seed: int = 0) -> list[Path]:
    """The rows in any order, in several files of any size."""
    rng = np.random.default_rng(seed)
    which = rng.integers(0, shards, frame.height)
    which[:shards] = np.arange(shards)  # none is empty
    folder.mkdir(exist_ok=True)
    paths = []
    for k in range(shards):
        part = frame.filter(pl.Series(which == k))
        part = part[rng.permutation(part.height).tolist()]
        paths.append(folder / f"s{k}{suffix}")
        write(part, paths[-1])
    return paths


def processes(function: Callable[..., Any], arguments: Sequence[tuple[Any, ...]]) -> Iterator[Any]:
    """An executor with two processes of its own."""
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        yield from pool.map(function, *zip(*arguments, strict=True))


@pytest.fixture
def few_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every measurement counts as one of very many trials: tallies are condensed, in memory and in the stream."""
    from hitmiss.outofcore import coarse_cells, stream
    from hitmiss.stats import sketch

    monkeypatch.setattr(sketch, "LARGE", 4)
    monkeypatch.setattr(stream, "KEY_BYTES", 10**9)
    monkeypatch.setattr(coarse_cells, "STRETCH_BYTES", 10**4)
