"""The pages that are made from the code are what the code says."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"


def reference() -> ModuleType:
    spec = importlib.util.spec_from_file_location("reference", DOCS / "reference.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("page", [*reference().PAGES])
def test_pages_are_what_the_code_says(page: str) -> None:
    assert (DOCS / page).read_text(encoding="utf-8") == reference().PAGES[page](), "run: python docs/reference.py"
