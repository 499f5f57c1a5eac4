"""The documentation site: every page is built, every link inside it leads somewhere, nothing comes from elsewhere."""

from __future__ import annotations

import re
import subprocess
import sys
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from tests.browser.test_report_in_chromium import browser

from hitmiss.cli.main import VERBS

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    # Strict: a page without a place in the menu, a dead link or a dead anchor ends the build.
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "-f", str(ROOT / "mkdocs.yml"), "-d", folder],
        capture_output=True,
        text=True,
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stderr
    return folder


@pytest.mark.extras
def test_every_page_is_there_and_in_the_navigation(site: Path) -> None:
    pages = {page.relative_to(DOCS).with_suffix(".html") for page in DOCS.rglob("*.md")}
    built = {path.relative_to(site) for path in site.rglob("*.html")} - {Path("404.html")}
    assert {Path(str(page).replace("README", "index")) for page in pages} == built
    index = (site / "index.html").read_text()
    assert {str(page) for page in built if f'href="{page}"' not in index} == set()


@pytest.mark.extras
def test_links_lead_somewhere_and_nothing_is_fetched(site: Path) -> None:
    for path in site.rglob("*.html"):
        text = path.read_text()
        assert not re.search(r'<(?:script|img|iframe)[^>]+src="(?:https?:)?//', text) and "@import" not in text
        assert not re.search(r'<link[^>]+rel="(?:stylesheet|preconnect)"[^>]+href="(?:https?:)?//', text)
        for address in re.findall(r'(?:href|src)="([^"#?]+)(?:[#?][^"]*)?"', text):
            if not re.match(r"[a-z]+:", address) and not address.startswith("/") and path.name != "404.html":
                assert (path.parent / address).exists(), f"{path.name}: {address}"


@pytest.mark.extras
def test_every_public_name_has_its_entry(site: Path) -> None:
    import hitmiss as hm

    text = "".join(path.read_text() for path in site.glob("api*.html"))
    for name in set(hm.__all__) - {"__version__"}:
        assert f"hm.{name}" in text
    assert text.count('class="doc doc-object') >= len(hm.__all__) - 3


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
            cut = page.evaluate(
                f"[...document.querySelectorAll('pre code')].filter({CUT}).map((one) => one.textContent)"
            )
            assert cut == [], f"{path.name}: a command is cut"


CUT = "(one) => one.querySelector('.gp') && !one.querySelector('.go') && one.scrollWidth > one.clientWidth + 1"
"""Blocks of commands alone, without output, that are wider than their box."""


@pytest.mark.extras
def test_the_copy_button_takes_commands_alone(site: Path) -> None:
    serve = partial(SimpleHTTPRequestHandler, directory=str(site))
    with ThreadingHTTPServer(("127.0.0.1", 0), serve) as server, browser() as chromium:
        Thread(target=server.serve_forever, daemon=True).start()
        context = chromium.new_context()
        context.grant_permissions(["clipboard-read", "clipboard-write"])
        page = context.new_page()
        page.goto(f"http://127.0.0.1:{server.server_port}/compare.html")
        page.wait_for_selector("button[data-clipboard-target]", state="attached")
        taken = []
        for block in page.query_selector_all("div.highlight:has(.gp)"):
            block.query_selector("button[data-clipboard-target]").click(force=True)
            page.wait_for_timeout(200)
            taken.append((block.query_selector("code").text_content(), page.evaluate("navigator.clipboard.readText()")))
        server.shutdown()
    assert taken
    for shown, copied in taken:
        typed = re.findall(r"^\$ ((?:.*\\\n)*.*)", shown, re.M)
        assert copied.split() == " ".join(typed).split(), "every command, no prompt and no output"
