"""Type the commands of pages into this environment, each page in an empty folder; print what each one gave as JSON.

Run by the interpreter of an environment that holds the wheel alone; needs nothing but the wheel and `pages.py`.
"""

from __future__ import annotations

import contextlib
import io
import json
import re
import sys
import tempfile
from pathlib import Path

from pages import SET_UP, blocks

from hitmiss.cli.main import run


def typed(words: list[str]) -> dict[str, object]:
    """Run a command; return its exit code and the last lines of what it said."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = run(words)
    return {"words": words, "code": code, "said": (out.getvalue() + err.getvalue())[-1500:]}


def follow(page: Path) -> list[dict[str, object]]:
    """Type the set-up of a page and its commands, in order."""
    named = [found[1].strip().split() for found in SET_UP.finditer(page.read_text(encoding="utf-8"))]
    found = [typed(words) for words in map(list, dict.fromkeys(map(tuple, named)))]
    for block in blocks(page):
        if title := re.match(r"# (\S+\.(?:py|toml))\n", block.text):
            Path(title[1]).write_text(block.text, encoding="utf-8")
        if block.why_not is None:
            found += [typed(words) for words in block.commands if words and words[0] != "demo"]
    return found


def main(pages: list[str]) -> None:
    """Follow each page and print one line of JSON for it."""
    for name in pages:
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            print(json.dumps({"page": name, "typed": follow(Path(name))}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
