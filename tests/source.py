"""The source as tests read it: the files that hold a word, and their trees."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

SOURCE = Path(__file__).resolve().parent.parent / "src" / "hitmiss"


@cache
def texts() -> dict[Path, str]:
    """Return the text of every source file."""
    return {path: path.read_text(encoding="utf-8") for path in sorted(SOURCE.rglob("*.py"))}


def trees(pattern: str, flags: int = 0) -> Iterator[tuple[Path, ast.Module]]:
    """Yield the files in which a pattern occurs, with their trees: parsing every file for each question takes seconds."""
    wanted = re.compile(pattern, flags)
    for path, text in texts().items():
        joined = re.sub(r'"\s*\n\s*[fr]?"', "", text)  # a sentence over several lines is one text
        if wanted.search(text) or wanted.search(joined):
            yield path, ast.parse(text, str(path))
