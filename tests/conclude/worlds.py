"""Simulated detectors whose truth is known, and the screen that a reader sees first."""

from __future__ import annotations

import io
import os
import re
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hitmiss.core.finding import FAILED, MARKS, PASSED
from hitmiss.core.trials import Trials
from hitmiss.core.verdict import Verdict
from hitmiss.reports import terminal
from hitmiss.reports.html import render
from hitmiss.reports.page import Page, Part
from hitmiss.reports.summary import Summary

SCREENS = Path(__file__).parent / "screens"
REWRITE = "HITMISS_REWRITE_SCREENS"
"""With this variable set, the screens are written anew instead of compared."""
Floats = NDArray[np.float64]


def labels(n: int) -> NDArray[np.int_]:
    """As many trials of each class, one after the other."""
    return np.tile([1, 0], n // 2)


def slices(n: int, many: int, name: str = "c") -> list[str]:
    """Slices with as many trials of each class."""
    return [f"{name}{k:02d}" for k in np.arange(n) // 2 % many]


def scores(n: int, apart: ArrayLike, seed: int = 0, common: Floats | None = None) -> Floats:
    """Scores of one normal distribution per class, so many deviations apart; `common` is shared by several systems."""
    noise = np.random.default_rng(seed).normal(size=n)
    noise = noise if common is None else 0.8 * common + 0.6 * noise
    return np.asarray(noise + np.asarray(apart, dtype=float) * (labels(n) - 0.5))


def trials(score: Floats, **columns: list[str]) -> Trials:
    """Trials with ids."""
    n = len(score)
    return Trials.of(labels(n), score, item=[f"i{k}" for k in range(n)], **columns)


def screen(name: str, verdict: Verdict) -> None:
    """Compare the first screen of a terminal with the text that is kept; and what no screen may show."""
    stream = io.StringIO()
    terminal.write_verdict(verdict, (), stream)
    text = stream.getvalue().strip() + "\n"
    if verdict.state == FAILED:
        shown = [f for f in (*verdict.fails, *verdict.looked) if f.state == PASSED]
        assert not shown, "no green tick among the failures of a detector that fails"
    assert (
        verdict.headline == text.replace("\n", " ").partition("  Is it good?")[0].strip() or len(verdict.headline) > 90
    )
    _frozen(SCREENS / f"{name}.txt", text)
    _frozen(SCREENS / f"{name}.html", card(name, verdict))


def card(name: str, verdict: Verdict) -> str:
    """Return the first screen of a page with this verdict, as HTML."""
    page = Page(name, (Part("e1", Summary(name, "", (), (), verdict), ()),), (), ())
    html = render(page, static=True)
    made = html[html.index('<section class="card"') : html.index('<section id="e1"')].strip()
    colour = {PASSED: "fine", FAILED: "bad"}.get(verdict.state, "open")
    assert f'<p class="verdict {colour}">' in made, "the colour of the headline is that of the verdict"
    for title in re.findall(r"<h3>(.*?)</h3>\n<ul class=\"lines\">(.*?)</ul>", made, re.DOTALL):
        marks = re.findall(r'<li class="([a-z-]+)"><b aria-hidden="true">(.)</b>', title[1])
        assert marks and all(MARKS[state.replace("-", " ")] == mark for state, mark in marks)  # type: ignore[index]
    return made + "\n"


def _frozen(file: Path, text: str) -> None:
    """Compare a screen with the one that is kept, or write it anew."""
    if os.environ.get(REWRITE):
        file.write_text(text, encoding="utf-8")
    assert text == file.read_text(encoding="utf-8"), f"set {REWRITE}=1 to write the screens anew"


def where(verdict: Verdict) -> set[tuple[str, str]]:
    """The runs and slices in which the verdict states a failure."""
    return {(s.run, ", ".join(s.slice.values())) for s in verdict.slices}


def failed(verdict: Verdict) -> set[str]:
    """The names of the failed checks."""
    return set(verdict.failed_checks)
