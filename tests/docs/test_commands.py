"""Every page of the documentation is read as a reader would: in order, in an empty folder, after its one set-up command.

Each page with commands names `hitmiss demo …` as its set-up; nothing else is arranged. Blocks of TOML or Python that begin
with a file name are saved under it, Python blocks of a page share one session. A block that cannot run in the tests is
preceded by `<!-- not run: why -->`.
"""

from __future__ import annotations

import ast
import contextlib
import io
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from tests.docs.conftest import SetUp
from tests.docs.pages import PLUGINS, SET_UP, Block, blocks
from tests.golden.texts import difference, is_frozen, printed, session_of, transcript

import hitmiss as hm
from hitmiss.core.registry import forget

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = [
    ROOT / "README.md",
    *(p for p in sorted(DOCS.rglob("*.md")) if p.name not in ("cli.md", "metrics.md") and not p.name.startswith("api")),
]
TUTORIALS = DOCS / "tutorials"
"""On systems with a POSIX shell, test_tutorials.py types these pages into one, with a wheel that is installed."""


def readable() -> Iterator[Path]:
    """Yield the pages with something to run."""
    for page in PAGES:
        if page.parent == TUTORIALS and sys.platform != "win32":
            continue
        if any(b.why_not is None and (b.commands or b.kind == "python") for b in blocks(page)):
            yield page


@pytest.mark.parametrize("page", [pytest.param(page, id=str(page.relative_to(ROOT))) for page in readable()])
def test_a_reader_can_follow_the_page(
    page: Path, set_up: SetUp, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Everything works, and every command prints what is frozen in `tests/golden/texts`."""
    monkeypatch.setenv("COLUMNS", "100")
    named = [found[1].strip() for found in SET_UP.finditer(page.read_text(encoding="utf-8"))]
    ours = [b for b in blocks(page) if b.why_not is None]
    alone = ("doctor", "list", "show")
    needs_files = any(words[0] not in alone for b in ours for words in b.commands) or any(
        '"demo/' in b.text or ".tsv" in b.text for b in ours
    )
    assert named or not needs_files, f"{page.name} does not name its set-up command"
    for command in dict.fromkeys(named):
        set_up(command, tmp_path)
    names: dict[str, object] = {"__name__": "block"}
    typed: list[str] = []
    try:
        with contextlib.chdir(tmp_path):
            for block in ours:
                if title := re.match(r"# (\S+\.(?:py|toml))\n", block.text):
                    Path(title[1]).write_text(block.text, encoding="utf-8")
                for words in block.commands:
                    if words[0] != "demo":
                        text = printed(words, tmp_path)
                        assert text.endswith("--- exit 0"), text
                        typed += [text] if is_frozen(words) else []
                if block.kind == "python" and not title:  # a file with a name is run by the commands
                    check_python(block, names)
    finally:
        for kind, name in PLUGINS:
            with contextlib.suppress(KeyError):
                forget(name, kind)
    if typed:
        diff = difference(session_of(page), transcript(session_of(page), typed))
        assert not diff, f"{diff}\nif this is meant: python -m tests.golden.frozen --write {session_of(page)}"


def check_python(block: Block, names: dict[str, object]) -> None:
    """Every statement runs, every expression is a figure or a table with something in it, what is printed and written is there."""
    shown, before = io.StringIO(), dict(names)
    with contextlib.redirect_stdout(shown):
        values = evaluated(block, names)
    for told in re.findall(r"(?:save|write)\((?:\w+, )?\"([^\"]+)\"", block.text):
        assert Path(told).exists(), f"{block.page}: {told} was not written"
    made = [name for name in names if name not in before and not name.startswith("_")]
    assert values or made, f"{block.page}: the block does nothing that can be seen"
    for text, value in values.items():
        assert says_something(value), f"{block.page}: {text} gives {value!r}"
    comments = re.findall(r"^print\(.*\)\s+# (\S.*)$", block.text, re.M)
    for told, line in zip(comments, shown.getvalue().splitlines(), strict=False):
        pattern = r".*".join(re.escape(part) for part in told.split("…"))
        assert re.fullmatch(pattern, line), f"{block.page}: prints {line}, says {told}"


def evaluated(block: Block, names: dict[str, object]) -> dict[str, object]:
    """Run a block statement by statement; the value of each expression by its text, save for what only acts."""
    values: dict[str, object] = {}
    source = block.text.replace(">>> ", "")
    for node in ast.parse(source).body:
        text = ast.unparse(node)
        if isinstance(node, ast.Expr) and not re.match(r"print\(|.*\b(save|write|update|log|add|register)\(", text):
            values[text] = eval(compile(ast.Expression(node.value), block.page, "eval"), names)
        else:
            exec(compile(ast.Module([node], []), block.page, "exec"), names)
    return values


def says_something(value: object) -> bool:
    """Whether a value is a defined figure, or holds one, or is a thing to go on with."""
    if isinstance(value, float | int):
        return bool(np.isfinite(value))
    if isinstance(value, hm.Results):
        return any(e.value is not None and np.isfinite(e.value) for e in value)
    if hasattr(value, "shape"):
        return all(value.shape)
    return value is not None and (not isinstance(value, dict | list | tuple | str) or len(value) > 0)


def test_the_pages_link_to_what_exists() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
            assert target.startswith("https://") or (page.parent / target).exists(), f"{page.name}: {target}"
