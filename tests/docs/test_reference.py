"""The metric reference is what the metrics say."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from hitmiss.core.registry import all_metrics

DOCS = Path(__file__).resolve().parents[2] / "docs"


def test_the_page_is_up_to_date() -> None:
    spec = importlib.util.spec_from_file_location("reference", DOCS / "reference.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert (DOCS / "metrics.md").read_text(encoding="utf-8") == module.page(), "run: python docs/reference.py"


def test_every_metric_says_what_a_reader_needs() -> None:
    for metric in all_metrics().values():
        if metric.function.__module__.startswith("hitmiss."):
            text = metric.function.__doc__ or ""
            assert "Undefined" in text and "Reference" in text and ">>>" in text, metric.name
