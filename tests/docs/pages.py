"""The blocks of a page of the documentation that a reader can run; needs nothing but the standard library."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

FENCE = re.compile(
    r"(?:<!-- not run: (?P<why>[^>]*?) -->\n)?^```(?P<kind>console|python|toml)\n(?P<text>.*?)^```", re.S | re.M
)
SET_UP = re.compile(r"(?:`|^\$ )hitmiss (demo --(?:files|small)[^`\n#]*)", re.M)

PLUGINS = (("metric", "d_prime"), ("attack", "hum"), ("detector", "loudness"))
"""What the pages register; a test forgets it afterwards."""


def joined(text: str) -> str:
    """A text with every command on one line: a backslash at the end of a line goes on in the next one, as in a shell."""
    return re.sub(r"\s*\\\n\s*", " ", text)


@dataclass(frozen=True)
class Block:
    """A fenced block of a page."""

    page: str
    kind: str
    text: str
    why_not: str | None

    @property
    def commands(self) -> list[list[str]]:
        """The words of each command; a pattern without quotes is replaced by the files that it names, as a shell does."""
        lines = joined(self.text).splitlines()
        typed = [
            [
                name
                for word, raw in zip(
                    shlex.split(line, comments=True), shlex.split(line, True, posix=False), strict=True
                )
                for name in (sorted(map(str, Path().glob(word))) if "*" in word and word == raw else []) or [word]
            ]
            for line in (line[2:] for line in lines if line.startswith("$ "))
        ]
        return [words[1:] for words in typed if words and words[0] == "hitmiss"]


def blocks(page: Path) -> list[Block]:
    found = FENCE.finditer(page.read_text(encoding="utf-8"))
    return [Block(page.name, f["kind"], f["text"], f["why"]) for f in found]
