"""Words of the documentation and of every message: spelled right, and in plain technical English."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.source import SOURCE, trees

ROOT = Path(__file__).resolve().parents[2]
READ = ["docs", "README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "CODE_OF_CONDUCT.md", "src", "examples"]
TERMS = "fpr,cant,fo,nd,te,caf,infarction,discreet,intoto,alle,ignora,responde,manipule,falso"
"""What codespell takes for misspelt: a metric, words of JSON, codes of languages, a file format, a diagnosis, words."""

UNWANTED = {
    r"\bmend(s|ed|ing)?\b": "fix",
    r"\b(is|are|was|were|be|been) told\b": "is reported, is stated",
    r"\btold (by|of|here|there|apart)\b": "reported, distinguished",
    r"\btells? (\w+ )?(apart|it|them)\b": "distinguishes, names",
    r"\bstands? (in|there|alone|beside|inside)\b": "is in, occurs",
    r"\bthe door\b": "the reader",
    r"\b(whoever|whosoever)\b": "the person who",
    r"\bfor want of\b": "because there is no",
    r"\ball the same\b": "anyway",
    r"\ba (row|table|line|file) an? \w+\b": "one row per …",
    r"\bone an? (run|row|class|clip|record|language|line|file|model|item|metric|person)\b": "one per …",
    r"\bsamples? a second\b": "per second",
    r"(?<!there )\bis no (number|run|json|detector|picture|model|record|review|comparison|checkpoint|probability)\b": "is not a …",
    r"\bhas it not\b": "does not have it",
    r"\bgoes without saying\b": "is the default",
    r"\bthe document's\b": "name the document",
}
"""Turns of phrase that slow a reader down, with what to write instead."""


ANY_UNWANTED = re.compile("|".join(UNWANTED), re.I)


def faults(text: str) -> list[str]:
    if not ANY_UNWANTED.search(text):  # one search for all of them: nearly every text is clean
        return []
    found = [(re.search(pattern, text, re.I), better) for pattern, better in UNWANTED.items()]
    return [f"{hit[0]!r} (better: {better})" for hit, better in found if hit]


def messages(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Every text of a source file that a user may see: literals of two words and more, without docstrings."""
    prose = set[int]()
    for node in ast.walk(tree):  # a statement comes before what it contains
        if isinstance(node, ast.Expr):
            prose.add(id(node.value))
        elif (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and id(node) not in prose
            and " " in node.value
        ):
            yield node.lineno, node.value


def test_messages_are_plain() -> None:
    wrong = [
        f"{path.relative_to(ROOT)}:{line}: {fault}"
        for path, tree in trees(ANY_UNWANTED.pattern, re.I)
        for line, text in messages(tree)
        for fault in faults(text)
    ]
    assert wrong == []


@pytest.mark.parametrize("ending", ["toml", "html"])
def test_templates_and_protocols_are_plain(ending: str) -> None:
    files = sorted(SOURCE.rglob(f"*.{ending}"))
    assert files
    texts = ((path, re.sub(r"\{[{%].*?[}%]\}|<[^>]*>", " ", path.read_text(encoding="utf-8"))) for path in files)
    assert [f"{path.name}: {fault}" for path, text in texts for fault in faults(text)] == []


def test_pages_are_plain() -> None:
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md", *sorted((ROOT / "docs").rglob("*.md"))]
    assert [f"{page.name}: {fault}" for page in pages for fault in faults(page.read_text(encoding="utf-8"))] == []


def test_the_patterns_find_what_they_look_for() -> None:
    assert faults("a row an estimate") and faults("the id stands in row 3") and faults("Mend the file")
    assert not faults("one row per estimate; the stand-in model recommends")


@pytest.mark.extras
def test_spelling() -> None:
    files = [str(ROOT / name) for name in READ]
    command = [sys.executable, "-m", "codespell_lib", *files, "--skip", "*.png,*.json,*.npz", "-L", TERMS]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


LINTED = {"typography": False, "lexical_illusions": False, "dates_times": False, "misc.phrasal_adjectives": False}
"""Rules of proselint that are off: straight quotes are those of code; tables repeat words; "at 1" is not an hour; the
family-wise error is a term."""


@pytest.mark.extras
def test_prose_linter(tmp_path: Path) -> None:
    """proselint over the text of every page: code, links and comments are blanked, so that lines keep their numbers."""
    code = r"^```.*?^```|<!--.*?-->|`[^`\n]*`|\]\([^)]*\)"
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md", *sorted((ROOT / "docs").rglob("*.md"))]
    for page in pages:
        text = re.sub(
            code, lambda hit: "x" + "\n" * hit[0].count("\n"), page.read_text(encoding="utf-8"), flags=re.S | re.M
        )
        (tmp_path / "-".join(page.relative_to(ROOT).parts)).write_text(text, encoding="utf-8")
    (tmp_path / "rules.json").write_text(json.dumps({"checks": LINTED}))
    (tmp_path / "bad.md").write_text("It was a very unique idea, in actual fact.\n")
    command = [
        sys.executable,
        "-m",
        "proselint",
        "check",
        "--config",
        "rules.json",
        *(p.name for p in tmp_path.glob("*.md")),
    ]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    found = [line for line in done.stdout.splitlines() if line.strip()]
    assert [line for line in found if "bad.md" in line], "the linter must find what it looks for"
    assert [line for line in found if "bad.md" not in line] == []


def test_paragraphs_are_short() -> None:
    """A paragraph of a page for people has at most 120 words; tables, code and generated pages apart."""
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
    left_out = re.compile(r"metrics\.md|cli\.md|api.*\.md")
    long = [
        f"{page.name}: {len(part.split())} words: {part.strip()[:60]}"
        for page in pages
        if not left_out.fullmatch(page.name) and page.parent.name != "adr"
        for part in re.split(
            r"\n\s*\n|\n(?=[-*] |\d+\. )",
            re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.S | re.M),
        )
        if not part.lstrip().startswith(("|", "#")) and len(part.split()) > 120
    ]
    assert long == []


DRAWN = re.compile(
    r"plot|draw|svg|pdf|png|matplotlib|axes|paper|latex|picture|notebook|tables|curves|\bdet\b|caption|render|column wide"
    r"|figures?[`./]|--figures|hm\.figures|figure with intervals|public figures|reports, figures|figures (into|end in)|figure of these trials|figures:\s*$",
    re.I,
)
"""What a line is about in which a figure is a plot."""
FIGURE = re.compile(r"\bfigures?\b(?![}(!])", re.I)


def numbers_called_figures(lines: list[str]) -> list[str]:
    return [line.strip() for line in lines if FIGURE.search(line) and not DRAWN.search(line)]


def test_a_figure_is_a_plot() -> None:
    """Numbers are numbers, estimates or metrics: whoever reads "figure" may look for a picture."""
    pages = [
        ROOT / "README.md",
        ROOT / "CONTRIBUTING.md",
        *(ROOT / "docs").glob("*.md"),
        *(ROOT / "docs/tutorials").glob("*.md"),
    ]
    wrong = [
        f"{page.name}: {line}"
        for page in pages
        for line in numbers_called_figures(
            re.sub(r"‹\w+›|\| `[\w/-]+` \|", "", page.read_text(encoding="utf-8")).splitlines()
        )
    ]
    wrong += [
        f"{path.relative_to(SOURCE)}:{node.lineno}: {line}"
        for path, tree in trees(FIGURE.pattern, re.I)
        if path.relative_to(SOURCE).parts[0] != "reports"
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value
        for line in numbers_called_figures(node.value.splitlines())
    ]
    assert wrong == []
    assert numbers_called_figures(["the figure is undefined", "Draw every figure."]) == ["the figure is undefined"]


def test_commands_fit() -> None:
    """A command of a page is read whole: no line of it is longer than 100 characters."""
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    blocks = (
        (page, text)
        for page in pages
        for text in re.findall(r"^```console\n(.*?)^```", page.read_text(encoding="utf-8"), re.S | re.M)
    )
    typed = (
        (page, line)
        for page, text in blocks
        for hit in re.finditer(r"^\$ .*(?:\\\n.*)*", text, re.M)
        for line in hit[0].splitlines()
    )
    assert [f"{page.name}: {line}" for page, line in typed if len(line) > 100] == []
