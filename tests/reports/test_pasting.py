"""What people paste, where they paste it: LaTeX into a document that loads booktabs, Markdown into a renderer, a card into a hub."""

from __future__ import annotations

import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import pytest
from tests.reports.hostile import HOSTILE

from hitmiss.core.results import Estimate, Results
from hitmiss.core.text import escape_invisible
from hitmiss.reports.evaluations import RunData
from hitmiss.reports.exports import Export, export
from hitmiss.reports.latex import OTHERS

NAMES = (
    *HOSTILE, "[2cm]", "*", "[", "]", '"quoted"', "é ü ß", "a--b---c", "``x''", "?`!`", "−5 ≤ x", "\\\\[1cm]", "%", "&&",
    "\\end{tabular}", "– “q” …", "a_b_c", "1. first", "# head", "> quote", "- list", "~~gone~~", "![i](x)", "&amp;", "$x$",
)  # fmt: skip


def exported(to: str, names: tuple[str, ...] = NAMES) -> str:
    rows = [
        Estimate("eer", 0.1 + i / 100, 0.05 - i / 100, 0.2 + i / 100, n=100 + i, n_positive=50, slice={"codec": name})
        for i, name in enumerate(names)
    ]
    rows += [Estimate("eer", None, n=1, slice={"codec": "none"}, note="undefined"), Estimate("eer", 0.3, n=5)]
    return str(export([RunData("run", Results(tuple(rows)))], Export(to)))


def test_every_row_of_a_latex_table_is_a_row() -> None:
    """A strict reading of the body: cells between unescaped `&`, braces in balance, and nothing after `\\\\` that it would take."""
    text = exported("latex")
    body = text[text.index("codec &") : text.rindex(r"\bottomrule")]
    rows = [row.strip() for row in re.split(r"(?<!\\)\\\\\s", body) if row.strip()]
    assert len(rows) == len(NAMES) + 3, "a head, the names, an undefined one, the pooled one"
    for row in rows:
        cells = row.removeprefix(r"\midrule").strip()
        assert not cells.startswith(("[", "*")), "an option of the line break before"
        assert len(re.findall(r"(?<!\\)&", cells)) == 2
        plain = re.sub(r"\\[{}]", "", cells)
        assert plain.count("{") == plain.count("}")
        assert not re.search(r"(?<!\\)[%#]", plain)
    assert "$-$0.01" in body, "negative ends have a minus, not a hyphen"
    assert OTHERS not in text and OTHERS in exported("latex", ("日本語",))


def has_booktabs() -> bool:
    """Whether pdflatex is there with the package that the document loads; some machines have a part of TeX."""
    finder = shutil.which("kpsewhich")
    if finder is None or shutil.which("pdflatex") is None:
        return False
    return subprocess.run([finder, "booktabs.sty"], capture_output=True, check=False).returncode == 0


@pytest.mark.skipif(
    not has_booktabs(), reason="there is no pdflatex with booktabs; apt-get install texlive-latex-recommended"
)
def test_a_paper_with_booktabs_takes_it(tmp_path: Path) -> None:
    paper = (
        rf"\documentclass{{article}}\usepackage{{booktabs}}\begin{{document}}\tiny {exported('latex')}\end{{document}}"
    )
    (tmp_path / "paper.tex").write_text(paper, encoding="utf-8")
    words = ["pdflatex", "-halt-on-error", "-interaction=nonstopmode", "-draftmode", "-no-shell-escape", "paper.tex"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, errors="replace", check=False)
    assert done.returncode == 0, done.stdout[-1500:]


class Cells(HTMLParser):
    """The cells of the tables of a page as text, and the tags inside them."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self.tags: set[str] = set()
        self.inside = False

    def handle_starttag(self, tag: str, attrs: object) -> None:  # noqa: ARG002
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")
            self.inside = True
        elif self.inside:
            self.tags.add(tag)

    def handle_endtag(self, tag: str) -> None:
        self.inside = self.inside and tag not in ("td", "th")

    def handle_data(self, data: str) -> None:
        if self.inside:
            self.rows[-1][-1] += data


def test_markdown_shows_every_name_letter_for_letter() -> None:
    renderer = (
        pytest.importorskip("markdown_it")
        .MarkdownIt("commonmark", {"html": True})
        .enable("table")
        .enable("strikethrough")
    )
    seen = Cells()
    seen.feed(renderer.render(exported("markdown")))
    tables = [row for row in seen.rows if len(row) == 3]
    names = [row[0] for row in tables[1:]]
    assert names[: len(NAMES)] == [escape_invisible(name).strip() for name in NAMES]
    assert seen.tags <= {"strong"}


@pytest.mark.extras
def test_the_hub_reads_the_model_card() -> None:
    hub = pytest.importorskip("huggingface_hub")
    card = hub.ModelCard(exported("model-card"))
    assert len(card.data.eval_results) >= len(NAMES) + 1
    assert {result.metric_type for result in card.data.eval_results} == {"eer"}
