"""Every documented command, golden command and wrong input prints the frozen text, and ends with the frozen exit code."""

from __future__ import annotations

import pytest
from tests.docs.test_commands import readable
from tests.golden.texts import TEXTS, Stage, difference, session_of, sessions

FOLLOWED = {session_of(page) for page in readable()}
"""Pages that are followed, and compared with their frozen texts, by the tests of the documentation."""


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Stage:
    """Where the sessions run."""
    return Stage(tmp_path_factory.mktemp("stage"))


@pytest.mark.parametrize("name", [name for name in sessions() if name not in FOLLOWED])
def test_the_text_is_that_frozen(name: str, stage: Stage) -> None:
    diff = difference(name, stage.transcribe(name))
    assert not diff, f"{diff}\nif this is meant: python -m tests.golden.frozen --write {name}"


def test_each_session_is_frozen_and_no_other() -> None:
    assert {f.stem for f in TEXTS.glob("*.txt")} == {*sessions()}


def test_pages_succeed_and_wrong_inputs_do_not() -> None:
    for file in TEXTS.glob("*.txt"):
        codes = {line for line in file.read_text(encoding="utf-8").splitlines() if line.startswith("--- exit")}
        assert (
            codes - {"--- exit 0", "--- exit 1"} if file.stem == "refusals" else codes <= {"--- exit 0", "--- exit 1"}
        )
