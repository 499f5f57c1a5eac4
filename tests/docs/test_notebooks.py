"""The notebooks run from the first cell to the last, and show something."""

from __future__ import annotations

from pathlib import Path

import pytest

NOTEBOOKS = sorted((Path(__file__).resolve().parents[2] / "examples" / "notebooks").glob("*.ipynb"))


def test_there_are_notebooks_and_they_show_what_they_give() -> None:
    """Stored with outputs, so that a visitor sees them without running anything; `make notebooks` writes them anew."""
    import json

    assert len(NOTEBOOKS) >= 3
    for path in NOTEBOOKS:
        code = [c for c in json.loads(path.read_text(encoding="utf-8"))["cells"] if c["cell_type"] == "code"]
        assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1)), "run in order, once"
        assert sum(bool(cell["outputs"]) for cell in code) >= len(code) / 2
        assert not any(out["output_type"] == "error" for cell in code for out in cell["outputs"])
        assert path.stat().st_size < 400_000


@pytest.mark.extras
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_the_notebook_runs(path: Path, tmp_path: Path) -> None:
    import nbformat
    from nbclient import NotebookClient

    book = nbformat.read(path, as_version=4)
    NotebookClient(book, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
    last = [cell for cell in book.cells if cell.cell_type == "code"][-1]
    assert last.outputs and not any(
        out.output_type == "error" for cell in book.cells for out in cell.get("outputs", ())
    )
