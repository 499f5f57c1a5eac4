"""A few seconds of the adversary, with fixed draws; `python -m tests.adversary --minutes 30` goes on from there."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
from tests.adversary import corpus, fuzzing, judging

DRAWS = {"damaged file": 60, "damaged run": 25, "options": 30, "both ways": 15, "degenerate": 40}


@pytest.fixture(scope="module")
def clean(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The sound files."""
    folder = tmp_path_factory.mktemp("adversary") / "clean"
    corpus.make(folder)
    yield folder


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("name", judging.ATTACKS)
def test_every_ending_is_one_of_the_table(name: str, clean: Path, tmp_path: Path) -> None:
    for draw in range(DRAWS[name]):
        folder = tmp_path / "work"
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(clean, folder)
        words, wrong = judging.ATTACKS[name](Random(f"{name} {draw}"), folder)
        assert wrong is None, f"draw {draw}: {words}"


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("step", [8, pytest.param(1, marks=pytest.mark.nightly)])
def test_what_the_fuzzer_found_interesting_has_an_ending_of_the_table(step: int, tmp_path: Path) -> None:
    fuzzing.make(tmp_path / "clean")
    seeds = sorted(fuzzing.SEEDS.iterdir())[::step]
    assert len(seeds) > 10
    found = {seed.name: fuzzing.again(seed.read_bytes(), tmp_path / "clean") for seed in seeds}
    assert {name: wrong for name, wrong in found.items() if wrong} == {}
