"""Every golden command gives the figures that were frozen; where they must change, the changelog lists it."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from commands import COMMANDS  # noqa: E402
from frozen import FIGURES, all_figures, differences  # noqa: E402


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    """What every command gives now."""
    return all_figures()


@pytest.fixture(scope="module")
def frozen() -> dict[str, Any]:
    """What every command gave when it was frozen."""
    return json.loads(FIGURES.read_text(encoding="utf-8"))  # type: ignore[no-any-return]


@pytest.mark.parametrize("name", [c.name for c in COMMANDS])
def test_figures_are_those_frozen(name: str, found: dict[str, Any], frozen: dict[str, Any]) -> None:
    """The figures of a command are those in figures.json."""
    wrong = list(differences(frozen[name], found[name]))
    assert not wrong, "\n".join(wrong[:10])


def test_every_command_succeeds(frozen: dict[str, Any]) -> None:
    """No command was frozen in a failure, which would freeze a sentence instead of figures."""
    assert {name: f["exit"] for name, f in frozen.items() if f["exit"] not in (0, 1)} == {}
    assert {*frozen} == {c.name for c in COMMANDS}


def test_a_difference_is_found() -> None:
    """The comparison notices a changed number, a missing entry and a missing field, and lets a new field be."""
    assert list(differences({"a": [1.0, 2.0]}, {"a": [1.0, 2.0], "b": 3})) == []
    assert list(differences({"a": [1.0, 2.0]}, {"a": [1.0, 2.001]}))
    assert list(differences({"a": [1.0, 2.0]}, {"a": [1.0]}))
    assert list(differences({"a": 1.0}, {"b": 1.0}))
