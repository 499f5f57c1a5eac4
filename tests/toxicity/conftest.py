"""What the toxicity tests share: the rebuilt table of the document, and a writer of small prediction files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from hitmiss.simulate.toxicity import write

HEADER = "id,y_true,y_prob,best_threshold"
Writer = Callable[..., Path]


@pytest.fixture(scope="session")
def rebuilt(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder whose files give the document's own table."""
    return write(tmp_path_factory.mktemp("toxicity"))


@pytest.fixture
def predictions(tmp_path: Path) -> Writer:
    """Writes `run_{language}.csv` from lines into one folder and gives that folder."""

    def put(language: str, *lines: str, header: str = HEADER, suffix: str = ".csv") -> Path:
        folder = tmp_path / "predictions"
        folder.mkdir(exist_ok=True)
        (folder / f"run_{language}{suffix}").write_text("\n".join([header, *lines]) + "\n", encoding="utf-8")
        return folder

    return put
