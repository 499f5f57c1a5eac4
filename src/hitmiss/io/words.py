"""Which texts mean yes, no or nothing."""

from __future__ import annotations

from typing import Final

ABSENT: Final = ("", "na", "n/a", "nan", "null", "none", "<na>")
"""Texts, in lower case, that mean "missing"."""
TRUE: Final = ("true", "1", "1.0", "yes", "y", "on", "t")
FALSE: Final = ("false", "0", "0.0", "no", "n", "off", "f")


def flag(value: object) -> bool | None:
    """Return whether a text or a value means yes or no; None if it means neither.

    >>> flag("True"), flag("false"), flag(0), flag("1.0"), flag("none"), flag(None), flag("timeout")
    (True, False, False, True, None, None, None)
    """
    text = str(value).strip().lower()
    return True if text in TRUE else False if text in FALSE else None


def is_absent(value: object) -> bool:
    """Return whether a text or a value means "missing".

    >>> is_absent(None), is_absent(" NaN"), is_absent("0"), is_absent("no")
    (True, True, False, False)
    """
    return value is None or str(value).strip().lower() in ABSENT
