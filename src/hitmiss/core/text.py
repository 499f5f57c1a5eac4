"""Make text from files safe to show.

Ids, names and messages are written with their invisible characters escaped (`escape_invisible`), so that they cannot
move the cursor, colour the screen or reverse the reading order. A text that people judge is shown as the model received
it (`escape_controls`): the joiners of Persian, Hindi and emoji are part of it, and the page isolates its reading order.
"""

from __future__ import annotations

import unicodedata

HIDDEN = ("Cc", "Cf", "Cs", "Zl", "Zp")
"""Unicode categories that a terminal interprets instead of showing: controls, formats, lone surrogates, separators."""


def escape_invisible(text: str, *, keep: str = "") -> str:
    r"""Return the text with every invisible character written as its escape, except those in `keep`.

    >>> print(escape_invisible("E_01\x1b[31m\n"))
    E_01\x1b[31m\n
    >>> print(escape_invisible("spoof\u202e\ufeff é"))
    spoof\u202e\ufeff é
    """
    if text.isascii() and text.isprintable():
        return text
    # a long text has few distinct characters: those are looked up, not each of its millions
    hidden = {ord(c): ascii(c)[1:-1] for c in set(text) if c not in keep and unicodedata.category(c) in HIDDEN}
    return text.translate(hidden) if hidden else text


LONGEST_QUOTE = 60


def quoted(text: str | None) -> str:
    r"""Return text from a file in the form shown in messages: quoted, control characters escaped, shortened if long.

    >>> print(quoted("E_01\x1b[31m\u202e"))
    'E_01\x1b[31m\u202e'
    >>> quoted("x" * 100)[-4:]
    "xx…'"
    """
    text = text or ""
    return repr(text if len(text) <= LONGEST_QUOTE else text[: LONGEST_QUOTE - 1] + "…")


ASCII_MARKS = {
    "↓": "v", "↑": "^", "→": "->", "–": "-", "—": "-", "−": "-", "×": "x", "·": ".", "…": "...", "±": "+/-", "≥": ">=",
    "≤": "<=", "✓": "+", "✗": "!", "★": "*", "─": "-", "│": "|", "\u00a0": " ", "’": "'", "“": '"', "”": '"', "₁₀": "10",
}  # fmt: skip
"""Replacements of our own marks for encodings that lack them."""


def encodable(text: str, encoding: str | None) -> str:
    r"""Return the text as an encoding can write it: marks that it lacks become ASCII, other characters are escaped.

    >>> encodable("eer ↓ × Ω", "utf-8"), encodable("eer ↓ × Ω", "cp1252")
    ('eer ↓ × Ω', 'eer v × \\u03a9')
    """
    try:
        text.encode(encoding or "utf-8")
    except UnicodeEncodeError:
        for mark, plain in ASCII_MARKS.items():
            if mark in text and not _is_known(mark, encoding or "utf-8"):
                text = text.replace(mark, plain)
        return text.encode(encoding or "utf-8", "backslashreplace").decode(encoding or "utf-8")
    except LookupError:  # the stream cannot really use an encoding that Python does not know
        return text
    return text


def _is_known(mark: str, encoding: str) -> bool:
    try:
        mark.encode(encoding)
    except UnicodeEncodeError:
        return False
    return True


def wrap(text: str, width: int, indent: str = "") -> list[str]:
    """Break a text into lines of at most `width` characters: at spaces, else after a sign, else inside a word.

    Lines after the first begin with `indent`; spaces at the beginning of the text are kept.

    >>> wrap("one two three", 8), wrap("boot:1000,stratified|kind:llr", 16)
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


def escape_controls(text: str) -> str:
    r"""Return the text, with only control characters and lone surrogates escaped, which no page can hold.

    >>> escape_controls("\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645") == "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645"
    True
    >>> print(escape_controls("a\x00b\tc"))
    a\x00b	c
    """
    if text.isprintable():
        return text
    return "".join(c if c in "\n\r\t" or unicodedata.category(c) not in ("Cc", "Cs") else ascii(c)[1:-1] for c in text)
