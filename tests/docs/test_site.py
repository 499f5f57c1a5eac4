"""The documentation site: every page is built, every link inside it leads somewhere, nothing comes from elsewhere."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest
from tests.browser.test_report_in_chromium import browser

from hitmiss.cli.main import VERBS

DOCS = Path(__file__).resolve().parents[2] / "docs"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    spec = importlib.util.spec_from_file_location("site_builder", DOCS / "site.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    folder = tmp_path_factory.mktemp("site")
    module.build(folder)
    return folder


def test_every_page_is_there_and_in_the_navigation(site: Path) -> None:
    pages = {page.stem for page in DOCS.glob("*.md")} | {"benchmarks"}
    assert {path.stem for path in site.glob("*.html")} == pages
    index = (site / "index.html").read_text()
    menu = index[index.index("<nav") : index.index("</nav>")]
    assert {name for name in pages if f'"{name}.html"' not in menu} == set()


def test_links_lead_somewhere_and_nothing_is_fetched(site: Path) -> None:
    for path in site.glob("*.html"):
        text = path.read_text()
        assert "<script" not in text and not re.search(r'src="(?:https?:)?//', text) and "@import" not in text
        for address in re.findall(r'(?:href|src)="([^"#]+)(?:#[^"]*)?"', text):
            if not re.match(r"[a-z]+:", address) and not address.startswith("../"):
                assert (site / address).exists(), f"{path.name}: {address}"


def test_tables_and_code_are_rendered(site: Path) -> None:
    text = (site / "report.html").read_text()
    assert "<table>" in text and "<pre><code" in text and "<!-- not run" not in text and 'id="what-is-in-it"' in text


def test_every_verb_is_in_the_index_and_its_page_speaks_of_it() -> None:
    index = (DOCS / "index.md").read_text(encoding="utf-8")
    for verb in VERBS:
        row = next(
            (line for line in index.splitlines() if line.startswith("| `") and f"`hitmiss {verb}`" in line), None
        )
        assert row is not None, f"{verb} is not in the table of verbs"
        (page, *_) = re.findall(r"\]\((\w+)\.md\)", row)
        assert f"hitmiss {verb}" in (DOCS / f"{page}.md").read_text(encoding="utf-8"), f"{page} says nothing of {verb}"


@pytest.mark.extras
@pytest.mark.parametrize("width", [360, 1280])
def test_no_page_is_wider_than_the_screen(site: Path, width: int) -> None:
    with browser() as chromium:
        page = chromium.new_context(viewport={"width": width, "height": 900}).new_page()
        for path in sorted(site.glob("*.html")):
            page.goto(path.as_uri())
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), path.name
            assert page.evaluate("[...document.images].every((image) => image.naturalWidth > 0)"), path.name
