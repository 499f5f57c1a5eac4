"""Builds the documentation as plain HTML that reads offline: `python docs/site.py [FOLDER]` (by default site/).

Pages are the Markdown files of this folder; the navigation is the index page's. No script, no web font, no network.
"""

from __future__ import annotations

import html
import re
import shutil
import sys
from pathlib import Path

from markdown_it import MarkdownIt

HERE = Path(__file__).parent
ELSEWHERE = {"benchmarks": HERE.parent / "benchmarks" / "RESULTS.md"}
"""Pages that are not of this folder, by their name on the site."""
STYLE = """
:root{color-scheme:light dark;--bg:#fff;--fg:#15202b;--muted:#5a6874;--line:#dfe4ea;--code:#f4f6f8;--accent:#0b62a4}
@media(prefers-color-scheme:dark){:root{--bg:#0e141a;--fg:#e7ecf1;--muted:#9dabb8;--line:#2b3743;--code:#18212a;--accent:#7cbcf5}}
*{box-sizing:border-box}body{margin:0;background:var(--bg);color:var(--fg);font:16px/1.6 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif}
.frame{display:grid;grid-template-columns:minmax(0,1fr);max-width:1400px;margin:0 auto;padding:0 1.2rem}
nav{padding:1.2rem 0;border-bottom:1px solid var(--line);font-size:.93rem}nav a{color:var(--muted);text-decoration:none;display:inline-block;margin-right:.9rem}
nav a[aria-current]{color:var(--fg);font-weight:600}nav b{display:none}main{min-width:0;padding-bottom:4rem;overflow-wrap:break-word}main>p,main>ul,main>ol{max-width:88ch}
@media(min-width:900px){.frame{grid-template-columns:210px minmax(0,1fr);gap:2.5rem}nav{border:0;position:sticky;top:0;align-self:start;max-height:100vh;overflow:auto}
nav a,nav b{display:block;margin:.18rem 0}nav b{margin-top:1rem;font-size:.8rem;color:var(--muted);text-transform:uppercase;letter-spacing:.05em}}
a{color:var(--accent)}:focus-visible{outline:2px solid var(--accent);outline-offset:2px}h1{font-size:1.9rem;letter-spacing:-.02em;line-height:1.2}h2{margin-top:2.4rem}
p code,li code{overflow-wrap:anywhere}code{font:.9em ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;background:var(--code);padding:.1em .3em;border-radius:4px}
pre{background:var(--code);border:1px solid var(--line);border-radius:8px;padding:.9rem 1rem;overflow-x:auto;line-height:1.45;font-size:.86rem}pre code{background:none;padding:0}
.scroll{overflow-x:auto}table{border-collapse:collapse;font-size:.93rem}th,td{border-bottom:1px solid var(--line);padding:.4rem .8rem .4rem 0;text-align:left;vertical-align:top}
img{max-width:100%;height:auto;border:1px solid var(--line);border-radius:8px}
"""


def build(target: Path) -> list[Path]:
    """Write every page, the pictures and the schema; the pages."""
    target.mkdir(parents=True, exist_ok=True)
    for extra in (*HERE.glob("*.png"), *HERE.glob("*.svg")):
        shutil.copy(extra, target / extra.name)
    shutil.copytree(HERE / "schema", target / "schema", dirs_exist_ok=True)
    entries = navigation((HERE / "index.md").read_text(encoding="utf-8"))
    made = []
    for name, page in pages().items():
        path = target / f"{name}.html"
        path.write_text(rendered(page, name, entries), encoding="utf-8")
        made.append(path)
    return made


def pages() -> dict[str, Path]:
    """Every page by its name."""
    return {**{page.stem: page for page in sorted(HERE.glob("*.md"))}, **ELSEWHERE}


def navigation(index: str) -> list[tuple[str, list[tuple[str, str]]]]:
    """Groups of (name, page) from the lines of the index that begin in bold; pages that it forgets come last."""
    groups = re.findall(r"^\*\*(.+?)\*\* · (.+)$", _on_site(index), re.MULTILINE)
    found = [("Start", [("Home", "index"), ("Quickstart", "quickstart")])]
    found += [(name, re.findall(r"\[([^\]]+)\]\(([\w-]+)\.md\)", line)) for name, line in groups]
    listed = {page for _, pages in found for _, page in pages}
    rest = [(name.replace("_", " "), name) for name in pages() if name not in listed]
    return [*found, ("More", rest)] if rest else found


def _on_site(text: str) -> str:
    """Links to pages of other folders as links to where the site has them."""
    for name, page in ELSEWHERE.items():
        text = text.replace(f"](../{page.parent.name}/{page.name}", f"]({name}.md")
    return text


def rendered(page: Path, name: str, entries: list[tuple[str, list[tuple[str, str]]]]) -> str:
    """A page with its navigation."""
    text = re.sub(r"<!--.*?-->\n?", "", _on_site(page.read_text(encoding="utf-8")), flags=re.DOTALL)
    body = MarkdownIt("commonmark", {"html": False}).enable("table").render(text)
    body = re.sub(r'href="(?!\w+:)([^"#]*?)\.md(#[^"]*)?"', r'href="\1.html\2"', body)
    body = body.replace("<table>", '<div class="scroll"><table>').replace("</table>", "</table></div>")
    body = re.sub(r"<h([23])>(.*?)</h\1>", _anchored, body)
    links = "".join(
        f"<b>{html.escape(group)}</b>{''.join(_link(t, p, name) for t, p in inside)}" for group, inside in entries
    )
    title = html.escape(next((line[2:] for line in text.splitlines() if line.startswith("# ")), name))
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        f'<title>{title} · hitmiss</title><style>{STYLE}</style></head><body><div class="frame"><nav aria-label="Pages">'
        f"{links}</nav><main>{body}</main></div></body></html>\n"
    )


def _anchored(found: re.Match[str]) -> str:
    plain = re.sub(r"<[^>]+>", "", found[2])
    place = re.sub(r"[^\w]+", "-", html.unescape(plain).lower()).strip("-")
    return f'<h{found[1]} id="{html.escape(place)}">{found[2]}</h{found[1]}>'


def _link(text: str, page: str, here: str) -> str:
    current = ' aria-current="page"' if page == here else ""
    return f'<a href="{page}.html"{current}>{html.escape(text[:1].upper() + text[1:])}</a>'


if __name__ == "__main__":
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else HERE.parent / "site"
    print(f"{len(build(folder))} pages in {folder}; open {folder / 'index.html'}")
