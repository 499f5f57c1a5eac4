"""Text from files made safe to show: no id can move the cursor, colour the screen or reverse the reading order."""

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
