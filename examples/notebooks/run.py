"""Run every notebook of this folder in an empty folder, and store what it shows: `python examples/notebooks/run.py`."""

from __future__ import annotations

import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient

HERE = Path(__file__).parent


def main() -> None:
    """Run and store."""
    for path in sorted(HERE.glob("*.ipynb")):
        book = nbformat.read(path, as_version=4)
        with tempfile.TemporaryDirectory() as folder:
            NotebookClient(book, timeout=600, resources={"metadata": {"path": folder}}).execute()
        for cell in book.cells:
            cell.get("metadata", {}).pop("execution", None)  # when it ran
        nbformat.write(book, path)


if __name__ == "__main__":
    main()
