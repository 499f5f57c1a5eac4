"""Generators depend on the seed and on what is drawn, and on nothing else."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from hitmiss.stats.seeds import generator

DRAW = "from hitmiss.stats.seeds import generator; print(generator(7, 'eer', 'C01').integers(2**62, size=4).tolist())"


def numbers(seed: int, *names: object) -> list[int]:
    return generator(seed, *names).integers(2**62, size=4).tolist()


def test_same_seed_and_names_give_the_same_digits() -> None:
    assert numbers(0, "eer", "C01") == numbers(0, "eer", "C01")


@pytest.mark.parametrize("other", [(1, "eer", "C01"), (0, "eer", "C02"), (0, "eer"), (0, "C01", "eer"), (0, "eerC01")])
def test_another_seed_or_name_gives_other_digits(other: tuple[int, ...]) -> None:
    assert numbers(*other) != numbers(0, "eer", "C01")


def test_what_was_drawn_before_does_not_matter() -> None:
    alone = numbers(3, "b")
    generator(3, "a").random(1000)
    np.random.default_rng(0).random(10)
    assert numbers(3, "b") == alone


def test_another_process_draws_the_same() -> None:
    """Python's own `hash` of text differs from process to process; the generator must not lean on it."""
    runs = [
        subprocess.run(
            [sys.executable, "-c", DRAW], capture_output=True, text=True, check=True, env={"PYTHONHASHSEED": h}
        )
        for h in ("1", "2")
    ]
    assert runs[0].stdout == runs[1].stdout == f"{numbers(7, 'eer', 'C01')}\n"


def test_named_streams_are_uncorrelated() -> None:
    streams = np.array([generator(0, "codec", k).standard_normal(2000) for k in range(20)])
    correlation = np.corrcoef(streams)[np.triu_indices(20, 1)]
    assert np.abs(correlation).max() < 4.5 / np.sqrt(2000)
