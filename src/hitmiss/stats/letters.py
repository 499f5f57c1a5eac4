"""Compact letter display: runs that share a letter have not been shown to differ (Piepho 2004, insert and absorb)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def groups(names: Sequence[str], different: Iterable[tuple[str, str]]) -> list[tuple[str, ...]]:
    """Return the largest groups without a pair that differs, in the order of `names`.

    >>> groups(["a", "b", "c"], [("a", "c")])
    [('a', 'b'), ('b', 'c')]
    >>> groups(["a", "b"], [])
    [('a', 'b')]
    """
    found = [frozenset(names)]
    for one, other in different:
        split = [part for g in found for part in ((g - {one}, g - {other}) if {one, other} <= g else (g,))]
        found = [g for g in dict.fromkeys(split) if not any(g < rest for rest in split)]
    place = {name: i for i, name in enumerate(names)}
    ordered = [tuple(sorted(g, key=place.__getitem__)) for g in found]
    return sorted(ordered, key=lambda g: [place[name] for name in g])


def letters(names: Sequence[str], different: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return the letters of each name: those of the groups that it belongs to.

    >>> letters(["a", "b", "c"], [("a", "c")])
    {'a': 'a', 'b': 'ab', 'c': 'b'}
    """
    found = groups(names, different)
    return {name: "".join(_letter(i) for i, g in enumerate(found) if name in g) for name in names}


def _letter(index: int) -> str:
    """Return a … z, then a1 … z1, a2 …"""
    round_, place = divmod(index, 26)
    return chr(ord("a") + place) + (str(round_) if round_ else "")
