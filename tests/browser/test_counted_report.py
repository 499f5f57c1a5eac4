"""A report of counted trials in a real browser: its figures are drawn, it says what it lacks, and nothing goes wrong."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.browser.test_report_in_chromium import browser
from tests.outofcore.conftest import simulated, write

from hitmiss.cli.main import run

pytestmark = pytest.mark.extras


@pytest.mark.usefixtures("few_are_many")
def test_figures_from_bins_are_drawn(tmp_path: Path) -> None:
    write(simulated(4000), tmp_path / "s.parquet")
    page = tmp_path / "r.html"
    asked = [
        "score",
        str(tmp_path / "s.parquet"),
        "-p",
        "asvspoof5",
        "--score-kind",
        "llr",
        "--by",
        "codec",
        "--report",
        str(page),
    ]
    assert run([*asked, "--stream", "--memory", "10MB"]) == 0
    with browser() as opened:
        tab, wrong = opened.new_page(viewport={"width": 1100, "height": 900}), list[str]()
        tab.on("pageerror", lambda error: wrong.append(str(error)))
        tab.on("console", lambda said: wrong.append(said.text) if said.type == "error" else None)
        tab.goto(page.as_uri())
        figures = tab.locator("figure[data-kind] svg.plate")
        assert figures.count() >= 7 and not wrong
        assert tab.get_by_text("Drawn from counts").is_visible()
        assert tab.get_by_text("the trials were counted, not kept").is_visible()
        assert "nan" not in tab.inner_text("body").lower().split()


@pytest.fixture
def few_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every measurement counts as one of very many trials."""
    from hitmiss.outofcore import stream
    from hitmiss.stats import sketch

    monkeypatch.setattr(sketch, "LARGE", 4)
    monkeypatch.setattr(stream, "KEY_BYTES", 10**9)
