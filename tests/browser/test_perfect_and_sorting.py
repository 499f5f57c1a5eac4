"""A page about a detector without errors works, and sorting sorts every slice, the weak ones too."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.browser.chromium import browser

from hitmiss.core.design import Design
from hitmiss.core.trials import Trials
from hitmiss.reports.html import render
from hitmiss.reports.page import compose
from hitmiss.reports.sources import Measuring, measured

pytestmark = pytest.mark.extras


def page_of(tmp_path: Path, score: np.ndarray, codec: list[str]) -> Path:
    n = len(score)
    trials = Trials.of(np.tile([1, 0], n // 2), score, item=[f"i{k}" for k in range(n)], codec=codec)
    made = measured(trials, "mine", Measuring(Design.of(["eer"], by="codec", bootstrap=100)))
    file = tmp_path / "page.html"
    file.write_text(render(compose([made])), encoding="utf-8")
    return file


def test_a_perfect_detector_has_a_working_page(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    codec = [f"c{k // 2 % 5}" for k in range(600)]
    file = page_of(tmp_path, rng.normal(size=600) + 40 * np.tile([1, 0], 300), codec)
    with browser() as opened:
        page = opened.new_page()
        said: list[str] = []
        page.on("console", lambda message: said.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: said.append(str(error)))
        page.goto(file.as_uri())
        page.wait_for_selector("html[data-ready=yes]")
        cells = {
            name: page.inner_text(f"[data-cell={name}]") for name in ("tp", "fn", "fp", "tn", "frr", "far", "cost")
        }
        assert cells == {
            "tp": "300",
            "fn": "0",
            "fp": "0",
            "tn": "300",
            "frr": "0.00 %",
            "far": "0.00 %",
            "cost": "0.00",
        }
        assert page.locator("figure[data-kind=det] > svg").count() == 1
        dot = page.locator("figure[data-kind=det] .probe-dot")
        box, plot = dot.bounding_box(), page.locator("figure[data-kind=det] > svg").bounding_box()
        assert box is not None and plot is not None
        assert (
            plot["x"] <= box["x"] <= plot["x"] + plot["width"] and plot["y"] <= box["y"] <= plot["y"] + plot["height"]
        )
        assert "wrongly answered" not in page.content() and page.locator(".cards > li").count() == 0
        assert said == []


def test_sorting_sorts_weak_slices_with_the_others(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    codec = [f"c{k // 2 % 8:02d}" for k in range(3200)]
    apart = np.where(np.array(codec) == "c05", 0.3, 3.0)
    file = page_of(tmp_path, rng.normal(size=3200) + apart * np.tile([1, 0], 1600), codec)
    with browser() as opened:
        page = opened.new_page()
        page.goto(file.as_uri())
        page.wait_for_selector("html[data-ready=yes]")
        assert page.locator("tr.weak").count() == 1
        table = page.locator("table.sortable").filter(has=page.locator("tr.weak")).first
        heads = table.locator("thead th")
        at = next(
            i for i in range(heads.count()) if "EER" in heads.nth(i).inner_text() or "eer" in heads.nth(i).inner_text()
        )
        button = heads.nth(at).locator("button")
        button.click()
        names = slices_of(table)
        assert names[-1] == "c05" and len(names) == 8
        button.click()
        assert slices_of(table)[0] == "c05"
        heads.nth(0).locator("button").click()
        assert slices_of(table) == sorted(names)


def slices_of(table: object) -> list[str]:
    """The names of the slices in the order in which they stand, averages left out."""
    found = table.locator("tbody tr th").all_inner_texts()  # type: ignore[attr-defined]
    return [text.strip()[:3] for text in found if text.strip().startswith("c0")]
