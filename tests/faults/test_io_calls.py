"""Every verb that writes, with a fault or a signal at its opens, writes, renames and fsyncs: nothing torn, lost or left behind."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
from tests.adversary import corpus, injecting
from tests.adversary.writing import OTHERS, WRITING

from hitmiss.cli.main import VERBS

N = 6
"""Faults of each command in `make test`; `make nightly` takes all of them."""
pytestmark = pytest.mark.filterwarnings("default")


@pytest.fixture(scope="module")
def clean(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("calls") / "clean"
    corpus.make(folder)
    yield folder


def test_every_verb_is_tried_or_says_why_not() -> None:
    assert {words[0] for words in WRITING.values()} | {*OTHERS} == {*VERBS}
    assert not {words[0] for words in WRITING.values()} & {*OTHERS}


@pytest.mark.parametrize("name", WRITING)
def test_a_fault_leaves_nothing_torn(name: str, clean: Path, tmp_path: Path) -> None:
    trial = injecting.Trial(name, clean, tmp_path)
    assert {"open", "write", "replace", "fsync"} <= {*trial.calls}
    assert trial.calls[trial.calls.index("replace") - 1] == "fsync", "renamed before it is on the disk"
    for number, what in Random(name).sample([*injecting.every(trial)], N):
        assert trial.meet(number, what) is None, (number, trial.calls[number], what)


@pytest.mark.nightly
@pytest.mark.parametrize("name", WRITING)
def test_no_fault_leaves_anything_torn(name: str, clean: Path, tmp_path: Path) -> None:
    trial = injecting.Trial(name, clean, tmp_path)
    faults = [*injecting.every(trial)]
    found = {(n, trial.calls[n], what): trial.meet(n, what) for n, what in faults}
    assert {key: wrong for key, wrong in found.items() if wrong} == {}
