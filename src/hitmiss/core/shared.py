"""What all parts share: rates that keep their counts, score kinds, text that is safe to show, progress."""

from __future__ import annotations

import math
import os
import threading
import unicodedata
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, Literal, Protocol, TypeAlias, TypeVar

if TYPE_CHECKING:
    from hitmiss.core.tally import Floats

# ----------------------------------------------------------------------
# Small values that all parts share: rates that keep their counts, score kinds, text that is safe to show.

# ----------------------------------------------------------------------
# Small values that all parts share: a rate that keeps its counts, score kinds, decisions.

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
"""Data that JSON can hold."""
JsonObject: TypeAlias = "dict[str, Json]"

ABSTAIN: Final = -1
"""The decision of a detector that abstained."""
FAILED: Final = -2
"""In arrays, the decision of a detector whose call failed; in a table of trials this decision is null."""


def cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


ScoreKind = Literal["llr", "logit", "probability", "raw"]
SCORE_KINDS: Final[tuple[str, ...]] = ("llr", "logit", "probability", "raw")
"""llr: natural-log likelihood ratio; logit: log-odds; probability: 0..1; raw: only the order has a meaning."""

DIGITS: Final = 13
"""Significant digits of a figure: the last bits of sums, powers and logarithms differ between processors."""
END_DIGITS: Final = 10
"""Significant digits of the end of an interval, which needs more of these operations."""


def steady(value: float | None, digits: int = DIGITS) -> float | None:
    """Round a number to the digits that do not depend on the processor, the order of rows or streaming.

    >>> steady(0.1 + 0.2), steady(1.0), steady(None), steady(2 / 3, 4)
    (0.3, 1.0, None, 0.6667)
    """
    return value if value is None or not math.isfinite(value) else float(f"{value:.{digits - 1}e}")


def one_or_several(given: T | Sequence[T] | None) -> tuple[T, ...]:
    """Return what a keyword that takes several was given; one text is one name, not a list of letters.

    >>> one_or_several("eer"), one_or_several(["eer", "f1"]), one_or_several(None)
    (('eer',), ('eer', 'f1'), ())
    """
    if given is None:
        return ()
    return tuple(given) if isinstance(given, Sequence) and not isinstance(given, str | bytes) else (given,)


class Rate(float):
    """A share that keeps its numerator and denominator; NaN if the denominator is 0.

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
    """A figure that keeps the number of trials it was computed over, if these are not all.

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
    """A quantile that keeps its share and the ordered values it was read from.

    >>> Quantile(2.0, 0.5, (1.0, 2.0, 3.0)).of
    3
    """

    share: float
    ordered: Sequence[float] | Floats

    def __new__(cls, value: float, share: float, ordered: Sequence[float] | Floats) -> Quantile:
        quantile: Quantile = super().__new__(cls, value, len(ordered))  # type: ignore[assignment]
        quantile.share, quantile.ordered = share, ordered
        return quantile

    def __reduce__(self) -> tuple[type[Quantile], tuple[float, float, Sequence[float] | Floats]]:  # type: ignore[override]
        return Quantile, (float(self), self.share, self.ordered)


# ----------------------------------------------------------------------
# Make text from files safe to show.
#
# Ids, names and messages are written with their invisible characters escaped (`visible`), so that they cannot move the
# cursor, colour the screen or reverse the reading order. A text that people judge is shown as the model received it
# (`verbatim`): the joiners of Persian, Hindi and emoji are part of it, and the page isolates its reading order.

HIDDEN = ("Cc", "Cf", "Cs", "Zl", "Zp")
"""Unicode categories that a terminal interprets instead of showing: controls, formats, lone surrogates, separators."""


def visible(text: str, *, keep: str = "") -> str:
    r"""Return the text with every invisible character written as its escape, except those in `keep`.

    >>> print(visible("E_01\x1b[31m\n"))
    E_01\x1b[31m\n
    >>> print(visible("spoof\u202e\ufeff é"))
    spoof\u202e\ufeff é
    """
    if text.isascii() and text.isprintable():
        return text
    # a long text has few distinct characters: those are looked up, not each of its millions
    hidden = {ord(c): ascii(c)[1:-1] for c in set(text) if c not in keep and unicodedata.category(c) in HIDDEN}
    return text.translate(hidden) if hidden else text


SPELLED = {
    "↓": "v", "↑": "^", "→": "->", "–": "-", "—": "-", "−": "-", "×": "x", "·": ".", "…": "...", "±": "+/-", "≥": ">=",
    "≤": "<=", "✓": "+", "✗": "!", "★": "*", "─": "-", "│": "|", "\u00a0": " ", "’": "'", "“": '"', "”": '"', "₁₀": "10",
}  # fmt: skip
"""Replacements of our own marks for encodings that lack them."""


def spelled(text: str, encoding: str | None) -> str:
    r"""Return the text as an encoding can write it: marks that it lacks become ASCII, other characters are escaped.

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
    except LookupError:  # the stream cannot really use an encoding that Python does not know
        return text
    return text


def _is_known(mark: str, encoding: str) -> bool:
    try:
        mark.encode(encoding)
    except UnicodeEncodeError:
        return False
    return True


def wrapped(text: str, width: int, indent: str = "") -> list[str]:
    """Break a text into lines of at most `width` characters: at spaces, else after a sign, else inside a word.

    Lines after the first begin with `indent`; spaces at the beginning of the text are kept.

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
    r"""Return the text, with only control characters and lone surrogates escaped, which no page can hold.

    >>> verbatim("\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645") == "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645"
    True
    >>> print(verbatim("a\x00b\tc"))
    a\x00b	c
    """
    if text.isprintable():
        return text
    return "".join(c if c in "\n\r\t" or unicodedata.category(c) not in ("Cc", "Cs") else ascii(c)[1:-1] for c in text)


# ----------------------------------------------------------------------
# Progress of long work: the work reports it, and a listener may show it. Without a listener nothing happens.
#
#     with progress.step("measuring", tables):              # in the work: what it is, and of how many parts
#         with progress.part():                             # one of them; more than one with part(3)
#             for sample in progress.each(samples, "by codec", sizes):
#                 progress.tell("replicates", 200, 1000)    # progress of the innermost work
#     with progress.heard_by(bar):                          # around it, in the command line
#         ...
#
# A step inside a part of another step counts as that share of it, so the listener gets one share of the whole, which
# never decreases.

T = TypeVar("T")


class Listener(Protocol):
    """An object that shows the progress of the work."""

    def told(self, what: str, done: float, total: float | None, share: float | None) -> None:
        """Show progress: how much is done of how much, and the share of the current step; None if it is not known."""

    def hushed(self) -> None:
        """Clear the display, because something is about to be printed."""


class _Step:
    """A step in progress: how much of it is done, and the size of its current part."""

    def __init__(self, what: str, total: float) -> None:
        self.what, self.total, self.done = what, total, 0.0
        self.begin(0.0)

    def begin(self, size: float) -> None:
        """Begin a part of this size."""
        self.part, self.inside = size, 0.0

    def share(self, of_part: float) -> float:
        """Return the share done, given the share of the current part; it never decreases."""
        self.inside = max(self.inside, of_part)
        return min((self.done + self.part * self.inside) / self.total, 1.0) if self.total > 0 else 0.0


_listeners: list[Listener] = []
_steps: list[_Step] = []


@contextmanager
def heard_by(listener: Listener) -> Iterator[None]:
    """Report progress to this listener while the block runs; an outer listener gets nothing in the meantime."""
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)


@contextmanager
def step(what: str, total: float) -> Iterator[None]:
    """Run work of this many parts (files, bytes, tables, trials: parts that take about equally long)."""
    own = _Step(what, total)
    _steps.append(own)
    tell()
    try:
        yield
    finally:
        _steps.remove(own)


@contextmanager
def part(size: float = 1.0) -> Iterator[None]:
    """Run the next part of the current step, of this size; outside a step this does nothing."""
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
    """Yield the things one after the other as a step; `sizes` if they take different times.

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
    """Report progress inside the current part, if there is one; parts that run side by side report none of their own."""
    if not _listeners or threading.current_thread() is not threading.main_thread():
        return
    share = min(done / total, 1.0) if total else 0.0
    for own in reversed(_steps):
        share = own.share(share)
    words = [own.what for own in _steps] + [what]
    said = [word for word in dict.fromkeys(words) if word]
    _listeners[-1].told(", ".join(said[:1] + said[1:][-1:]), done, total, share if total or _steps else None)


def hush() -> None:
    """Ask the progress display to make room for what is printed next."""
    if _listeners:
        _listeners[-1].hushed()
