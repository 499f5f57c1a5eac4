"""Compare what a claim states with what was recomputed: every field of the two documents, in both directions."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from hitmiss.core.protocol import Protocol
from hitmiss.evaluation.protocol import protocols

TOLERANCE: Final = 1e-9
"""Numbers that differ by less than this are equal."""
ROWS: Final[Mapping[str, tuple[str, ...]]] = {
    "estimates": ("metric", "run", "slice", "average"),
    "differences": ("metric", "slice", "average"),
    "mcnemar": ("reading", "slice"),
    "standings": ("metric", "run", "slice", "average"),
    "pairs": ("run_a", "run_b", "a", "b", "metric", "slice", "average"),
    "checks": ("rule", "figure"),
    "systems": ("system",),
}
"""The tables of a claim, with the fields that identify a row."""
APART: Final = ("schema", "kind", "digest", "signature", "design", "reading", "content", "hitmiss")
"""What has rules of its own: the form, how the claim is replayed, and hashes of the data."""
WARNED: Final = ("warnings", "warning_codes", "warning_values")
UNCOUNTED: Final = ("questions", "facts", "decisions", "note_codes")
"""What the claim of a stream may lack: trials that are only counted have no items."""


def document_differences(
    claimed: Mapping[str, object], found: Mapping[str, object], *, is_counted: bool = False, files: Sequence[str] = ()
) -> Iterator[str]:
    """Yield every field that differs, is missing or was added; an empty field is one that is not there.

    Parameters
    ----------
    claimed, found
        The documents, in JSON form.
    is_counted
        Whether the claim was made from trials that were only counted.
    files
        The names of the files that were read now; they may have had other names.
    """
    for name in dict.fromkeys((*claimed, *found)):
        a, b = claimed.get(name), found.get(name)
        if name in APART or name in WARNED[1:] or (is_counted and name in UNCOUNTED and not a):
            continue
        if name == WARNED[0]:
            yield from _warning_differences(claimed, found, files)
        elif name in ROWS:
            yield from row_differences(_table(claimed, name), _table(found, name), ROWS[name])
        elif not same(_stated(a), _stated(b)):
            yield f"{name}: claimed {_cut(a)}, found {_cut(b)}"


def _stated(value: object) -> object:
    """Return a value, or None for one that says nothing; 0 and false say something."""
    return None if value in ("", [], {}) else value


def protocol_differences(protocol: Protocol | None) -> tuple[list[str], list[str]]:
    """Compare the rules of a protocol with those known here; return the differences, and rules that only a claim states."""
    if protocol is None:
        return [], []
    known = protocols().get(protocol.name)
    if known is None:
        return [], [f"the rules of the protocol {protocol.name}, which the claim states itself"]
    if replace(known, natural=()) == replace(protocol, natural=()):
        return [], []
    return [f"protocol: the claim was made by a protocol called {protocol.name} that is not the one known here"], []


def _cut(value: object) -> str:
    text = str(value)
    return text if len(text) <= 200 else f"{text[:200]}…"


def _warning_differences(
    claimed: Mapping[str, object], found: Mapping[str, object], files: Sequence[str]
) -> Iterator[str]:
    """Yield the warnings that differ, by their texts; then those whose codes or numbers do."""
    ours, theirs = _warnings(found), _warnings(claimed)
    renamed = _renamed([text for text, *_ in theirs], [text for text, *_ in ours], files)
    theirs = [(renamed.get(text, text), code, values) for text, code, values in theirs]
    said, seen = ([text for text, *_ in rows] for rows in (theirs, ours))
    yield from (f"warning not claimed: {text}" for text in seen if seen.count(text) > said.count(text))
    yield from (f"warning claimed and not found: {text}" for text in said if said.count(text) > seen.count(text))
    if sorted(said) == sorted(seen):
        for (text, *a), (_, *b) in zip(sorted(theirs, key=_text), sorted(ours, key=_text), strict=True):
            if text not in renamed.values() and not same(a, b):
                yield f"the data behind a warning: claimed {a}, found {b} ({text})"


def _text(row: Sequence[object]) -> str:
    return str(row[0])


def _warnings(document: Mapping[str, object]) -> list[tuple[str, object, object]]:
    """Return each warning with its code and its numbers, as a file stores them in three lists."""
    texts, codes, values = (_list(document, name) for name in WARNED)
    n = max(len(texts), len(codes), len(values))  # a code without a text is an edit too
    codes, values = [*codes, *[None] * (n - len(codes))], [*values, *[{}] * (n - len(values))]
    return [(str(t), c, v) for t, c, v in zip([*texts, *[""] * (n - len(texts))], codes, values, strict=True)]


def _renamed(said: Sequence[str], seen: Sequence[str], files: Sequence[str]) -> dict[str, str]:
    """Map claimed warnings about a file to the warnings found, which differ by the name of the file alone.

    >>> _renamed(["old.csv: read as latin-1", "eer: few trials"], ["b/new.csv: read as latin-1"], ["b/new.csv"])
    {'old.csv: read as latin-1': 'b/new.csv: read as latin-1'}
    """
    about = [(text, text[len(file) :]) for file in files for text in seen if text.startswith(f"{file}: ")]
    return {own: text for text, rest in about for own in said if own not in seen and own.endswith(rest)}


def _list(document: Mapping[str, object], name: str) -> list[object]:
    found = document.get(name)
    return found if isinstance(found, list) else []


def _table(document: Mapping[str, object], name: str) -> list[Mapping[str, object]]:
    return [row if isinstance(row, Mapping) else {"": row} for row in _list(document, name)]


def row_differences(
    claimed: Sequence[Mapping[str, object]], found: Sequence[Mapping[str, object]], key: Sequence[str]
) -> Iterator[str]:
    """Yield the rows of a table that differ, that were only claimed, and that were only found."""
    ours, theirs = _named_rows(found, key), _named_rows(claimed, key)
    for name, row in theirs.items():
        other = ours.get(name)
        if other is None:
            yield f"{name}: claimed, not found"
            continue
        for field in dict.fromkeys([*row, *other]):
            if not same(row.get(field), other.get(field)):
                yield f"{name}: claimed {field} {_cut(row.get(field))}, found {_cut(other.get(field))}"
    yield from (f"{name}: found, not claimed" for name in ours if name not in theirs)
    if [*ours] != [*theirs] and {*ours} == {*theirs}:
        yield f"the order of the rows of {next(iter(theirs))}: not as claimed"


def _named_rows(rows: Iterable[Mapping[str, object]], key: Sequence[str]) -> dict[str, Mapping[str, object]]:
    """Return the rows by their names; a repeated row gets a number."""
    named: dict[str, Mapping[str, object]] = {}
    for row in rows:
        name = _name(row, key)
        times = sum(other == name or other.startswith(f"{name} (") for other in named)
        named[f"{name} ({times + 1})" if times else name] = row
    return named


def _name(row: Mapping[str, object], key: Sequence[str]) -> str:
    words = []
    for field in key:
        value = row.get(field)
        if isinstance(value, Mapping):
            words += [f"[{', '.join(f'{k}={v}' for k, v in value.items())}]"] if value else []
        elif value:
            words.append(str(value))
    return " ".join(words)


def same(a: object, b: object, tolerance: float = TOLERANCE) -> bool:
    """Return whether two JSON values are equal, numbers within the tolerance; an infinity equals only itself.

    >>> same({"x": [1.0, None]}, {"x": [1.0 + 1e-12, None]}), same(1, True), same("inf", 1e300)
    (True, False, False)
    """
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    if isinstance(a, int | float) and isinstance(b, int | float):
        try:
            return a == b or (math.isfinite(a) and math.isfinite(b) and abs(a - b) <= tolerance * max(1.0, abs(a)))
        except OverflowError:  # an integer too large for a float
            return False
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        return {*a} == {*b} and all(same(a[k], b[k], tolerance) for k in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(same(x, y, tolerance) for x, y in zip(a, b, strict=True))
    return bool(a == b)
