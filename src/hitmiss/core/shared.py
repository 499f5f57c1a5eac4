"""What everything shares: rates that remember their counts, score kinds, text that is safe to show, progress."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final, Literal, Protocol, TypeVar

# ----------------------------------------------------------------------
# Small values that everything shares: rates that remember their counts, score kinds, text that is safe to show.

# ----------------------------------------------------------------------
# Small values that everything shares: a rate that remembers its counts, score kinds, decisions.

ABSTAIN: Final = -1
"""The decision of a detector that declined to decide."""
FAILED: Final = -2
"""In arrays, the decision of a detector whose call failed; in a table of trials such a decision is null."""

ScoreKind = Literal["llr", "logit", "probability", "raw"]
SCORE_KINDS: Final[tuple[str, ...]] = ("llr", "logit", "probability", "raw")
"""llr: natural-log likelihood ratio; logit: log-odds; probability: 0..1; raw: only the order means anything."""

DIGITS: Final = 13
"""Significant digits of a figure: the last bits of sums, powers and logarithms differ between processors."""
END_DIGITS: Final = 10
"""Significant digits of the end of an interval, where more such operations meet."""


def steady(value: float | None, digits: int = DIGITS) -> float | None:
    """A number without the digits that another processor, another order of rows or a stream may give otherwise.

    >>> steady(0.1 + 0.2), steady(1.0), steady(None), steady(2 / 3, 4)
    (0.3, 1.0, None, 0.6667)
    """
    return value if value is None or not math.isfinite(value) else float(f"{value:.{digits - 1}e}")


class Rate(float):
    """A share that remembers what it is a share of; NaN where there is nothing to share.

    >>> Rate(1, 4)
    Rate(1/4 = 0.25)
    >>> Rate(1, 4) + 0.5
    0.75
    >>> Rate(0, 0)
    Rate(0/0 = nan)
    """

    hits: float
    of: float

    def __new__(cls, hits: float, of: float) -> Rate:
        rate = super().__new__(cls, hits / of if of else float("nan"))
        rate.hits, rate.of = hits, of
        return rate

    def __repr__(self) -> str:
        return f"Rate({self.hits:g}/{self.of:g} = {float(self):g})"

    def __reduce__(self) -> tuple[type[Rate], tuple[float, float]]:
        return Rate, (self.hits, self.of)


class Over(float):
    """A figure that remembers over how many trials it was computed, where those are not all.

    >>> Over(0.25, 12)
    Over(0.25 over 12)
    """

    of: float

    def __new__(cls, value: float, of: float) -> Over:
        over = super().__new__(cls, value)
        over.of = of
        return over

    def __repr__(self) -> str:
        return f"Over({float(self):g} over {self.of:g})"

    def __reduce__(self) -> tuple[type[Over], tuple[float, float]]:
        return Over, (float(self), self.of)


class Quantile(Over):
    """A quantile that remembers which share lies below it, and the ordered values that it was read from.

    >>> Quantile(2.0, 0.5, (1.0, 2.0, 3.0)).of
    3
    """

    share: float
    ordered: Any

    def __new__(cls, value: float, share: float, ordered: Any) -> Quantile:
        quantile: Quantile = super().__new__(cls, value, len(ordered))  # type: ignore[assignment]
        quantile.share, quantile.ordered = share, ordered
        return quantile

    def __reduce__(self) -> tuple[type[Quantile], tuple[float, float, Any]]:  # type: ignore[override]
        return Quantile, (float(self), self.share, self.ordered)


# ----------------------------------------------------------------------
# Text from files made safe to show.
#
# Ids, names and messages are written with their invisible characters escaped (`visible`): none can move the cursor, colour
# the screen or reverse the reading order. A text that people judge is shown as the model got it (`verbatim`): the joiners of
# Persian, Hindi and emoji are part of it, and the page keeps its reading order to itself.

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


# ----------------------------------------------------------------------
# How far long work is: whoever works says so, whoever can show it listens. Without a listener nothing happens.
#
#     with progress.step("measuring", tables):              # in the work: what it is, and of how many parts
#         with progress.part():                             # one of them; more than one with part(3)
#             for sample in progress.each(samples, "by codec", sizes):
#                 progress.tell("replicates", 200, 1000)    # the innermost word
#     with progress.heard_by(bar):                          # around it, in the command line
#         ...
#
# A step inside a part of another is that share of it, so the listener hears one share of the whole, which never falls.

T = TypeVar("T")


class Listener(Protocol):
    """Somebody who shows how far the work is."""

    def told(self, what: str, done: float, total: float | None, share: float | None) -> None:
        """The work is here: so many of so many done, and this share of the step under way; None where nobody knows."""

    def hushed(self) -> None:
        """Something is about to be printed: be out of its way."""


class _Step:
    """A step under way: how much of it is done, and how much the part at hand is."""

    def __init__(self, what: str, total: float) -> None:
        self.what, self.total, self.done = what, total, 0.0
        self.begin(0.0)

    def begin(self, size: float) -> None:
        """The part at hand is this large, and nothing of it is done."""
        self.part, self.inside = size, 0.0

    def share(self, of_part: float) -> float:
        """The share done, where this much of the part at hand is; what was further before stays there."""
        self.inside = max(self.inside, of_part)
        return min((self.done + self.part * self.inside) / self.total, 1.0) if self.total > 0 else 0.0


_listeners: list[Listener] = []
_steps: list[_Step] = []


@contextmanager
def heard_by(listener: Listener) -> Iterator[None]:
    """Tell this listener for as long as the block runs; an outer one hears nothing meanwhile."""
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)


@contextmanager
def step(what: str, total: float) -> Iterator[None]:
    """Work of so many parts (files, bytes, tables, trials: whatever takes alike long)."""
    own = _Step(what, total)
    _steps.append(own)
    tell()
    try:
        yield
    finally:
        _steps.remove(own)


@contextmanager
def part(size: float = 1.0) -> Iterator[None]:
    """The next part of the step at hand, so many of its total; outside of a step nothing happens."""
    own = _steps[-1] if _steps else None
    if own is None:
        yield
        return
    own.begin(size)
    tell()
    try:
        yield
    finally:
        own.done += size
        own.begin(0.0)
        tell()


def each(things: Sequence[T], what: str, sizes: Sequence[float] | None = None) -> Iterator[T]:
    """The things one after the other as a step of its own; `sizes` where they take differently long.

    >>> list(each([1, 2], "numbers"))
    [1, 2]
    """
    weights = sizes if sizes is not None else [1.0] * len(things)
    with step(what, float(sum(weights))):
        for done, (thing, size) in enumerate(zip(things, weights, strict=True)):
            with part(size):
                tell("", done, len(things))
                yield thing


def tell(what: str = "", done: float = 0, total: float | None = None) -> None:
    """Say how far the work is, inside the part at hand where there is one."""
    if not _listeners:
        return
    share = min(done / total, 1.0) if total else 0.0
    for own in reversed(_steps):
        share = own.share(share)
    words = [own.what for own in _steps] + [what]
    said = [word for word in dict.fromkeys(words) if word]
    _listeners[-1].told(", ".join(said[:1] + said[1:][-1:]), done, total, share if total or _steps else None)


def hush() -> None:
    """Ask whoever shows progress to be out of the way of what is printed next."""
    if _listeners:
        _listeners[-1].hushed()
