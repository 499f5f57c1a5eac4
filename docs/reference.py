"""Writes docs/metrics.md from the metrics themselves: `python docs/reference.py`. A test keeps the two the same."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

from hitmiss.core.registry import Metric, all_metrics

PAGE = Path(__file__).with_name("metrics.md")
HEAD = """# Metrics

Written by `python docs/reference.py` from the docstrings; do not edit. Every metric takes arrays and gives a number
(`hitmiss.metrics`), and works by its name in `hitmiss score -m NAME` and `hm.measure(trials, [NAME])`.

| metric | better | range | columns | settings | score kinds |
|---|---|---|---|---|---|
"""


def page() -> str:
    """The whole page."""
    metrics = [m for m in all_metrics().values() if m.function.__module__.startswith("hitmiss.")]
    return HEAD + "".join(map(row, metrics)) + "".join(map(section, metrics))


def row(metric: Metric) -> str:
    """A metric's line in the table."""
    settings = ", ".join(f"{k}={v}" for k, v in metric.defaults.items())
    low, high = metric.range
    cells = [f"[{metric.name}](#{metric.name})", metric.best, f"{low:g}..{high:g}", ", ".join(metric.columns)]
    return f"| {' | '.join([*cells, settings, ', '.join(metric.kinds) or 'any'])} |\n"


def section(metric: Metric) -> str:
    """A metric's docstring as a section."""
    text, examples = [], []
    for line in (inspect.getdoc(metric.function) or "").splitlines():
        is_example = bool(examples) or line.startswith(">>>")
        # Two blanks before a comment, as the formatter has it: the page is formatted, docstrings are not.
        (examples if is_example else text).append(re.sub(r" {3,}# ", "  # ", line) if is_example else line)
    code = "\n```pycon\n" + "\n".join(examples) + "\n```\n" if examples else ""
    return f"\n## {metric.name}\n\n" + "\n".join(text).strip() + "\n" + code


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
