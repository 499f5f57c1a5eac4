"""Lets the tests of this folder import `llm_parts`; pictures, and a place of their own for caches."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture
def own_caches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Caches and logs of inspect_ai under the test's own folder."""
    home = tmp_path / "home"
    for name in ("XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(name, str(home / name))
    return home


@pytest.fixture(scope="session")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dataset of 24 small pictures."""
    from hitmiss.simulate.pictures import write

    return write(tmp_path_factory.mktemp("pictures"), share=0.0, side=48) / "dataset.jsonl"


@pytest.fixture
def canary(own_caches: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A key in the environment that must be found nowhere, and caches of the test's own."""
    from llm_parts import KEY

    monkeypatch.setenv("CANARY_API_KEY", KEY)
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
    return own_caches
