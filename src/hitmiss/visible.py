"""Text from files made safe to show.

Ids, names and messages are written with their invisible characters escaped (`visible`): none can move the cursor, colour
the screen or reverse the reading order. A text that people judge is shown as the model got it (`verbatim`): the joiners of
Persian, Hindi and emoji are part of it, and the page keeps its reading order to itself.
"""

from __future__ import annotations

import unicodedata

HIDDEN = ("Cc", "Cf", "Cs", "Zl", "Zp")
"""Unicode categories that a terminal obeys instead of showing: controls, formats, lone surrogates, separators."""


def visible(text: str, *, keep: str = "") -> str:
    r"""The text with every character that would not be seen written as its escape, save those in `keep`.

    >>> print(visible("E_01\x1b[31m\n"))
    E_01\x1b[31m\n
    >>> print(visible("spoof\u202e\ufeff é"))
    spoof\u202e\ufeff é
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(c if c in keep or unicodedata.category(c) not in HIDDEN else ascii(c)[1:-1] for c in text)


SPELLED = {
    "↓": "v", "↑": "^", "→": "->", "–": "-", "—": "-", "−": "-", "×": "x", "·": ".", "…": "...", "±": "+/-", "≥": ">=",
    "≤": "<=", "✓": "+", "✗": "!", "★": "*", "─": "-", "│": "|", "\u00a0": " ", "’": "'", "“": '"', "”": '"', "₁₀": "10",
}  # fmt: skip
"""What stands for our own marks where an encoding lacks them."""


def spelled(text: str, encoding: str | None) -> str:
    r"""The text as an encoding can write it: marks that it lacks are spelled in ASCII, other characters escaped.

    >>> spelled("eer ↓ × Ω", "utf-8"), spelled("eer ↓ × Ω", "cp1252")
    ('eer ↓ × Ω', 'eer v × \\u03a9')
    """
    try:
        text.encode(encoding or "utf-8")
    except UnicodeEncodeError:
        for mark, plain in SPELLED.items():
            if mark in text and not _is_known(mark, encoding or "utf-8"):
                text = text.replace(mark, plain)
        return text.encode(encoding or "utf-8", "backslashreplace").decode(encoding or "utf-8")
    except LookupError:  # an encoding that Python does not know cannot be what the stream really uses
        return text
    return text


def _is_known(mark: str, encoding: str) -> bool:
    try:
        mark.encode(encoding)
    except UnicodeEncodeError:
        return False
    return True


def wrapped(text: str, width: int, indent: str = "") -> list[str]:
    """A text in lines of at most `width` characters, broken at spaces, else after a sign, and only then inside a word.

    Lines after the first begin with `indent`; spaces at the beginning of the text stay.

    >>> wrapped("one two three", 8), wrapped("boot:1000,stratified|kind:llr", 16)
    (['one two', 'three'], ['boot:1000,', 'stratified|', 'kind:llr'])
    """
    lines: list[str] = []
    for paragraph in text.split("\n"):
        rest, lead = paragraph, ""
        while len(lead) + len(rest) > width:
            room = max(width - len(lead), 1)
            cut = rest.rfind(" ", 1, room + 1)
            if cut <= 0 or not rest[:cut].strip():
                signs = [at + 1 for at in range(min(room, len(rest))) if rest[at] in "|,;/+_-" and at + 1 <= room]
                cut = signs[-1] if signs and signs[-1] > room // 3 else room
            lines.append(lead + rest[:cut].rstrip())
            rest, lead = rest[cut:].lstrip(" "), indent
        lines.append(lead + rest)
    return lines


def verbatim(text: str) -> str:
    r"""The text as it is, but for what no page can hold: control characters and halves of surrogate pairs are escaped.

    >>> verbatim("\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645") == "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645"
    True
    >>> print(verbatim("a\x00b\tc"))
    a\x00b	c
    """
    if text.isprintable():
        return text
    return "".join(c if c in "\n\r\t" or unicodedata.category(c) not in ("Cc", "Cs") else ascii(c)[1:-1] for c in text)
