"""The report in a real browser: nothing hostile happens, nothing is asked of the network, and it can be read at any width."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.browser.chromium import browser
from tests.reports.hostile import HOSTILE, hostile_trials
from tests.reports.media_files import HOSTILE_FILES, folder_of_files

from hitmiss.core.design import Design
from hitmiss.core.report_spec import ReportSpec
from hitmiss.core.trials import Trials
from hitmiss.reports.html import render
from hitmiss.reports.media_finder import FileFinder
from hitmiss.reports.page import compose
from hitmiss.reports.sources import Measuring, measured

pytestmark = pytest.mark.extras
READING = Path(__file__).parent / "reading.js"
METRICS = ("eer", "min_dcf", "act_dcf", "roc_auc", "accuracy", "ece")


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The hostile report: as it is, without its policy, and static."""
    folder = tmp_path_factory.mktemp("pages")
    by = ("codec", "<i>codec</i>", "codec,codec_q")
    data = [measured(hostile_trials(), HOSTILE[i], Measuring(Design.of(METRICS, by=by, bootstrap=20))) for i in (1, 2)]
    data[0] = replace(
        data[0], trials=with_files(data[0].trials), finder=FileFinder(folder_of_files(folder), column="file")
    )
    whole, static = render(compose(data, ReportSpec(title=HOSTILE[3]))), render(compose(data), static=True)
    bare = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", whole)
    assert bare != whole
    made = {}
    for name, text in (("whole", whole), ("no-policy", bare), ("static", static)):
        made[name] = folder / f"{name}.html"
        made[name].write_text(text, encoding="utf-8")
    return made


def with_files(trials: Trials | None) -> Trials:
    """The worst errors get a sound, an image, a drawing that is hostile, a link that leads out, and hostile names."""
    assert trials is not None
    hostile = [*HOSTILE_FILES, "link.png", "../secret.png", *HOSTILE]
    names = [("good.wav", "good.png", hostile[i // 3 % len(hostile)])[i % 3] for i in range(len(trials))]
    column = pl.Series("file", names)
    order = trials.frame.sort("confidence", descending=True).with_columns(column)
    return Trials(order, replace(trials.header, slices=(*trials.header.slices, "file")))


def opened(context: Any, path: Path) -> tuple[Any, list[str], list[str]]:
    """A page that is ready, what it complained of, and what it asked for."""
    page = context.new_page()
    said: list[str] = []
    asked: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("dialog", lambda dialog: said.append("dialog"))
    page.on("request", lambda request: asked.append(request.url))
    page.goto(path.as_uri())
    if "static" not in path.name:
        page.wait_for_selector("html[data-ready]", timeout=30_000)
    return page, said, asked


def through(page: Any) -> None:
    """Scroll through the whole page, open everything that opens, point at the figures, sort, change the theme."""
    page.evaluate("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
    for box in page.query_selector_all("figure, .scroll"):
        box.scroll_into_view_if_needed()
        page.wait_for_timeout(30)
    for button in page.query_selector_all("thead button")[:6]:
        button.click()
    for slider in page.query_selector_all("input[type=range]"):
        slider.focus()
        for _ in range(3):
            page.keyboard.press("ArrowRight")
    for button in page.query_selector_all("#theme"):
        button.click()
    page.wait_for_timeout(200)


@pytest.mark.parametrize("name", ["whole", "no-policy", "static"])
def test_hostile_names_do_nothing_and_nothing_leaves(pages: dict[str, Path], name: str) -> None:
    with browser() as chromium:
        page, said, asked = opened(chromium.new_context(), pages[name])
        through(page)
        assert page.evaluate("window.pwned") is None
        assert (
            page.evaluate("document.querySelectorAll('[onerror],[onload],[onmouseover],iframe,object,embed').length")
            == 0
        )
        assert page.evaluate("[...document.querySelectorAll('[href],[src]')].filter((e) => /^(javascript|https?):/i.test(e.getAttribute('href') || e.getAttribute('src') || '')).length") == 0  # fmt: skip
        assert [a for a in asked if not a.startswith(("file:", "data:", "blob:"))] == []
        assert said == []
        drawn = page.evaluate("document.querySelectorAll('figure svg.plate').length")
        assert drawn >= page.evaluate("document.querySelectorAll('figure[data-kind]').length") > 7
        assert page.evaluate("document.querySelectorAll('figure svg b, figure svg script').length") == 0


@pytest.mark.parametrize("name", ["whole", "no-policy", "static"])
def test_sounds_play_and_images_show_inside_the_page(pages: dict[str, Path], name: str) -> None:
    with browser() as chromium:
        page, said, asked = opened(chromium.new_context(), pages[name])
        seconds = page.evaluate(
            """() => Promise.all([...document.querySelectorAll('audio')].map((a) => new Promise((done) => {
                 a.onloadedmetadata = () => done(a.duration); a.onerror = () => done(-1); a.preload = 'auto'; a.load(); })))"""
        )
        assert seconds and all(0.9 < s < 1.3 for s in seconds), seconds
        shown = page.evaluate(
            "Promise.all([...document.querySelectorAll('img.thumb')].map((i) => i.decode().then(() => i.naturalWidth)))"
        )
        assert shown and all(width == 224 for width in shown)
        kinds = page.evaluate("[...document.querySelectorAll('audio, img.thumb')].map((e) => e.src.split(';')[0])")
        assert set(kinds) == {"data:audio/mpeg", "data:image/jpeg"}
        assert [a for a in asked if not a.startswith(("file:", "data:", "blob:"))] == [] and said == []


def test_no_control_leads_out_of_the_page(pages: dict[str, Path]) -> None:
    """Every button, link, box and list is used: no window opens, nothing is asked for, nothing is downloaded."""
    with browser() as chromium:
        context = chromium.new_context()
        page, said, asked = opened(context, pages["whole"])
        through(page)
        left: list[Any] = []
        context.on("page", lambda other: left.append(other))
        page.on("download", lambda download: left.append(download))
        page.evaluate("document.querySelectorAll('button, a, summary').forEach((e) => e.click())")
        page.evaluate(
            """document.querySelectorAll('input, select').forEach((e) => {
                 e.value = e.type === 'search' ? 'codec' : e.tagName === 'SELECT' ? '1' : '0.3';
                 e.dispatchEvent(new Event('input')); e.dispatchEvent(new Event('change')); })"""
        )
        page.wait_for_timeout(300)
        assert left == [] and said == []
        assert [a for a in asked if not a.startswith(("file:", "data:"))] == []
        assert page.evaluate("document.querySelectorAll('form, iframe, [target], [download]').length") == 0


def test_the_policy_stops_a_script_that_is_not_ours(pages: dict[str, Path], tmp_path: Path) -> None:
    """The check above can fail: the same page with a script put in runs it without the policy, and does not with it."""
    with browser() as chromium:
        for name, ran in (("no-policy", 9), ("whole", None)):
            broken = tmp_path / f"{name}.html"
            broken.write_text(pages[name].read_text().replace("</main>", "<script>window.pwned=9</script></main>", 1))
            page, _, _ = opened(chromium.new_context(), broken)
            assert page.evaluate("window.pwned") == ran


def assert_it_reads_well(page: Any) -> None:
    """Contrast of every text by the formula of WCAG 2, names of everything that has no text, levels of headings."""
    page.evaluate("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
    read = page.evaluate(READING.read_text(encoding="utf-8"))
    assert read["looked"] > 100 and read["found"] == []


@pytest.mark.parametrize("width", [360, 820, 1600])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_width_and_theme_can_be_read(pages: dict[str, Path], width: int, scheme: str) -> None:
    with browser() as chromium:
        context = chromium.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
        page, said, _ = opened(context, pages["whole"])
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "the page scrolls sideways"
        assert_it_reads_well(page)
        assert said == []


def test_every_figure_is_there_without_scripts(pages: dict[str, Path]) -> None:
    with browser() as chromium:
        page = chromium.new_context(java_script_enabled=False).new_page()
        page.goto(pages["whole"].as_uri())
        figures = page.locator("figure[data-kind]")
        assert figures.count() >= 8 and page.locator("figure details").count() >= 8
        for i in range(figures.count()):
            assert figures.nth(i).locator("svg.plate path.line, svg.plate path.bars").count() >= 1
        assert page.locator(".explore:visible, .filter:visible").count() == 0  # what needs scripts is not offered


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("scripts", [True, False])
def test_paper_is_light_and_has_every_figure(pages: dict[str, Path], scheme: str, scripts: bool) -> None:
    """Printed from a dark page as from a light one: dark ink on white, in figures too, with page numbers."""
    with browser() as chromium:
        context = chromium.new_context(color_scheme=scheme, java_script_enabled=scripts)
        page = context.new_page()
        page.goto(pages["whole"].as_uri())
        if scripts and scheme == "dark":
            page.evaluate("document.documentElement.dataset.theme = 'dark'")
        page.emulate_media(media="print", color_scheme=scheme)
        assert len(page.pdf(prefer_css_page_size=True, print_background=True)) > 50_000
        if scripts:
            ink = page.evaluate("[getComputedStyle(document.body).color, getComputedStyle(document.body).backgroundColor, getComputedStyle(document.querySelector('figure[data-kind] path.line.k0')).stroke]")  # fmt: skip
            assert ink == ["rgb(21, 32, 43)", "rgb(255, 255, 255)", "rgb(0, 114, 178)"]
            assert page.locator("figure[data-kind] svg.plate:visible").count() >= 8


def test_one_threshold_moves_every_view(pages: dict[str, Path]) -> None:
    with browser() as chromium:
        page, said, _ = opened(chromium.new_context(), pages["whole"])
        box = page.locator(".explore").first

        def state() -> list[str]:
            cells = box.locator("[data-cell]").all_inner_texts()
            dot = page.locator("figure[data-kind=det] .probe-dot").first
            line = page.locator("figure[data-kind=histogram] .probe").first
            return [
                *cells,
                dot.get_attribute("cx") or "",
                line.get_attribute("d") or "",
                box.locator("output").inner_text(),
            ]

        before = state()
        slider = box.locator("input[type=range]")
        slider.focus()
        for _ in range(12):
            page.keyboard.press("ArrowRight")
        after = state()
        assert sum(a != b for a, b in zip(before, after, strict=True)) >= 8, (before, after)
        box.locator("[data-best]").click()
        best = state()
        cost = next(
            i
            for i, name in enumerate(box.locator("[data-cell]").evaluate_all("e => e.map((x) => x.dataset.cell)"))
            if name == "cost"
        )
        assert float(best[cost]) <= min(float(before[cost]), float(after[cost])) and said == []


def test_tables_of_many_rows_can_be_searched(tmp_path: Path) -> None:
    from tests.reports import stories

    file = tmp_path / "page.html"
    file.write_text(render(compose([stories.one_bad_slice()])), encoding="utf-8")
    with browser() as chromium:
        page, said, _ = opened(chromium.new_context(), file)
        first = page.evaluate("document.querySelector('table.sortable tbody tr').textContent")
        assert "c07" in first and "worse" in first  # the worst comes first, and a test says so
        page.locator("input[type=search]").first.fill("c07")
        rows = page.evaluate("[...document.querySelectorAll('.tall tbody tr')].filter((r) => !r.hidden && !r.className.match(/pooled|macro|worst/)).map((r) => r.cells[0].textContent)")  # fmt: skip
        assert len(rows) == 1 and rows[0].startswith("c07")
        page.locator("button.jump").first.click()
        assert page.locator("details.multiples[open] figure.picked").count() == 1 and said == []


STORIES = {
    "coin": "Not shown to be better than chance.",
    "bad": "Better than chance, but weak on codec c07.",
    "turned": "Worse than chance; failed checks: direction.",
    "shift": "Better than chance, but scores shift between codecs.",
    "same": "Better than chance.",
    "ends": "Better than chance; failed checks: scores",
    "two": "sys00 does better than sys01.",
    "thirty": "sys00 has the best Equal error rate",
    "people": "Better with people.",
    "attacks": "defended keeps more under attack than base.",
}


@pytest.mark.parametrize("name", STORIES)
def test_the_first_screen_tells_the_story(name: str, tmp_path: Path) -> None:
    """What somebody sees who opens the file and does nothing: the verdict, and the three questions."""
    from tests.reports import stories
    from tests.reports.test_stories import attack_run

    from hitmiss.reports.evaluations import RunData

    made = {
        "coin": lambda: [stories.coin_flip()],
        "bad": lambda: [stories.one_bad_slice()],
        "turned": lambda: [stories.backwards()],
        "shift": lambda: [stories.score_shift()],
        "same": lambda: [stories.homogeneous(0)],
        "ends": lambda: [stories.saturated()],
        "two": lambda: stories.systems(2),
        "thirty": lambda: stories.systems(30, size=300),
        "people": lambda: [stories.triage_with_people(tmp_path)],
        "attacks": lambda: [RunData(n, attack_run(c, 0.05)) for n, c in (("base", 0.7), ("defended", 0.2))],
    }[name]()
    file = tmp_path / "page.html"
    file.write_text(render(compose(made, compare=Design(bootstrap=200))), encoding="utf-8")
    with browser() as chromium:
        page, _, _ = opened(chromium.new_context(viewport={"width": 1280, "height": 800}), file)
        assert page.locator(".verdict").inner_text().startswith(STORIES[name])
        for text in ("Is it good?", "Where does it fail?", "Can I trust it?"):
            place = page.get_by_role("heading", name=text).bounding_box()
            assert place is not None and place["y"] < 800, text
        if name == "people":
            assert page.locator("figure[data-kind=flow] rect.block").count() >= 10
            said = page.locator("section[aria-label^='Summary']").inner_text()
            assert "together" in said and "Krippendorff's alpha" in said
            shown = page.locator("#e1 caption").all_inner_texts()
            assert {"Verdicts", "What was left to people"} <= set(shown)


def test_errors_are_chosen_by_what_each_run_said_and_by_slice(tmp_path: Path) -> None:
    from tests.reports import stories

    file = tmp_path / "page.html"
    file.write_text(render(compose(stories.systems(2), compare=Design(bootstrap=50))), encoding="utf-8")
    with browser() as chromium:
        page, said, _ = opened(chromium.new_context(), file)
        shown = "[...document.querySelectorAll('.evidence .cards > li')].filter((c) => !c.hidden).map((c) => [c.dataset.runs, c.dataset.slices])"
        every = page.evaluate(shown)
        page.locator(".evidence").get_by_label("sys00 is").select_option("right")
        page.locator(".evidence").get_by_label("sys01 is").select_option("wrong")
        page.locator(".evidence").get_by_label("codec").select_option("c01")
        left = page.evaluate(shown)
        wanted = [
            pair for pair in every if pair[0] == '[["sys00", "right"], ["sys01", "wrong"]]' and '"c01"' in pair[1]
        ]
        assert 0 < len(left) == len(wanted) < len(every) and left == wanted and said == []
        assert page.locator(".evidence output").inner_text() == f"{len(left)} of {len(every)} errors"
        page.locator(".evidence input[type=search]").fill("no such words")
        assert page.evaluate(shown) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_to_complain_of(pages: dict[str, Path], tmp_path: Path, scheme: str) -> None:
    """Names, roles, contrast, landmarks and order, by the rules of axe-core, with everything opened."""
    from tests.reports import stories

    axe = pytest.importorskip("axe_core_python", reason="axe-core-python is not installed; make test-extras")
    rules = (Path(axe.__file__).parent / "axe.min.js").read_text(encoding="utf-8")
    made = {"people": [stories.triage_with_people(tmp_path)], "two": stories.systems(2)}
    files = [pages["whole"], pages["static"]]
    for name, sources in made.items():
        files.append(tmp_path / f"{name}.html")
        files[-1].write_text(render(compose(sources, compare=Design(bootstrap=50))), encoding="utf-8")
    with browser() as chromium:
        for file in files:
            page = chromium.new_context(color_scheme=scheme, bypass_csp=True).new_page()
            page.goto(file.as_uri())
            page.evaluate("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
            page.evaluate(rules)
            found = page.evaluate("axe.run(document, { resultTypes: ['violations'] })")["violations"]
            assert [(v["id"], v["nodes"][0]["html"][:200]) for v in found] == [], file.name


def test_tables_can_be_used_by_keyboard(pages: dict[str, Path]) -> None:
    with browser() as chromium:
        page, _, _ = opened(chromium.new_context(), pages["whole"])
        button = page.locator("table.sortable thead button").nth(1)
        button.focus()
        page.keyboard.press("Enter")
        assert page.locator("th[aria-sort=ascending]").count() == 1
        assert page.evaluate("document.querySelectorAll('.scroll:not([tabindex=\"0\"])').length") == 0
        assert page.evaluate("[...document.querySelectorAll('table')].every((t) => t.querySelector('th[scope=col]'))")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_static_page_reads_as_well(pages: dict[str, Path], scheme: str) -> None:
    with browser() as chromium:
        assert_it_reads_well(opened(chromium.new_context(color_scheme=scheme), pages["static"])[0])


def test_keys_go_through_the_page_in_its_order_and_nothing_moves_by_itself(pages: dict[str, Path]) -> None:
    with browser() as chromium:
        page, _, _ = opened(chromium.new_context(reduced_motion="reduce"), pages["whole"])
        assert page.evaluate("getComputedStyle(document.documentElement).scrollBehavior") == "auto"
        assert page.evaluate("document.getAnimations().length") == 0
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.className") == "skip"
        places = []
        for _ in range(25):
            page.keyboard.press("Tab")
            places.append(page.evaluate("[...document.querySelectorAll('*')].indexOf(document.activeElement)"))
            assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") != "none"
        assert places == sorted(places) and len({*places}) == len(places)
