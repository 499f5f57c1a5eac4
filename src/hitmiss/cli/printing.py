"""How the verbs write: results to stdout, everything else and progress to stderr."""

from __future__ import annotations

import dataclasses
import json
import math
import os
import shutil
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol, TextIO

from hitmiss.core import progress
from hitmiss.core.values import spelled, visible, wrapped

if TYPE_CHECKING:
    from hitmiss.core.results import Estimate


# ----------------------------------------------------------------------
# How the verbs write: results to stdout, everything else to stderr, plain where nobody looks at a terminal.
#
# Text that comes from files is shown with its control characters escaped, so that no id can move the cursor, colour
# the screen, reverse the reading order or hide from the reader.


def out(text: str = "") -> None:
    """A line, or several, of the result: to stdout."""
    _result(visible(text, keep="\n"))


def note(text: str) -> None:
    """A message about the work: to stderr; not where --quiet was given, unless it is how the command ended."""
    if not _quiet[-1] or text.startswith("hitmiss: "):
        _write(sys.stderr, visible(text, keep="\n"))


_quiet: list[bool] = [False]


@contextmanager
def quietly(quiet: bool) -> Iterator[None]:
    """For a while no messages and no conclusions, where `quiet`."""
    _quiet.append(quiet)
    try:
        yield
    finally:
        _quiet.pop()


def is_quiet() -> bool:
    """Whether --quiet was given."""
    return _quiet[-1]


def out_json(value: Any) -> None:
    """The result for machines: JSON to stdout. NaN and infinities are refused, as JSON has none."""
    _result(json.dumps(value, indent=1, ensure_ascii=True, allow_nan=False))


def plain(value: Any) -> Any:
    """A value as JSON can hold it: dataclasses become mappings, functions their names, infinities and NaN text.

    >>> plain({"range": (0.0, float("inf")), "metric": len})
    {'range': [0.0, 'inf'], 'metric': 'len'}
    """
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    if isinstance(value, set | frozenset):
        return sorted(map(str, value))
    if isinstance(value, bool | int | str | None) or (isinstance(value, float) and math.isfinite(value)):
        return value
    return getattr(value, "__qualname__", None) or str(value)


def out_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Aligned columns to stdout; the header is bold on a terminal."""
    first, *others = aligned([header, *rows])
    _result(bold(first, sys.stdout))
    for line in others:
        _result(line)


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows of texts as lines whose columns line up; the last column is left as long as it is.

    >>> aligned([["eer", "low"], ["min_dcf", "low"]])
    ['eer      low', 'min_dcf  low']
    """
    shown = [[visible(cell) for cell in row] for row in rows]
    widths = [max(len(row[i]) for row in shown) for i in range(len(shown[0]))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in shown]


def bold(text: str, stream: TextIO) -> str:
    """The text in bold where the stream is a terminal that wants it; NO_COLOR and TERM=dumb are respected."""
    return f"\x1b[1m{text}\x1b[0m" if is_styled(stream) else text


def is_styled(stream: TextIO) -> bool:
    """Whether a stream is a terminal whose user has not asked for plain text."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def begin() -> None:
    """A new command begins: nothing is on stdout yet."""
    _results.clear()


def has_result() -> bool:
    """Whether this command has written a result to stdout."""
    return bool(_results)


_results: list[bool] = []


def _result(text: str) -> None:
    _results.append(True)
    _write(sys.stdout, text)


def _write(stream: TextIO, text: str) -> None:
    progress.hush()
    if stream.isatty() and "\x1b" not in text:
        width = shutil.get_terminal_size((80, 24)).columns
        text = "\n".join(wrapped(text, width))
    stream.write(spelled(text, stream.encoding) + "\n")


def pairs(option: str, texts: Sequence[str]) -> dict[str, str]:
    """`name=value` arguments as a mapping.

    >>> pairs("--column", ["item=utt", "score=llr"])
    {'item': 'utt', 'score': 'llr'}
    """
    from hitmiss.core.errors import UsageError

    found = dict(text.partition("=")[::2] for text in texts)
    for name, value in found.items():
        if not name or not value:
            raise UsageError(f"{option} {name!r}: write name=value, as item=utt", code="bad-pair")
    return found


def expanded(patterns: Sequence[str]) -> list[str]:
    """File names with globs expanded in sorted order; a pattern that matches nothing stays and is missed later."""
    from glob import glob

    return [path for pattern in patterns for path in (sorted(glob(pattern)) or [pattern])]  # noqa: PTH207


def sampled(results: Iterable[Estimate]) -> None:
    """What the intervals of a table take to be random, under the table."""
    from hitmiss.engine.resample import under

    said = under(results)
    if said is not None:
        out(f"\n{said}")


# ----------------------------------------------------------------------
# How far a long command is: a bar on a terminal once it takes more than two seconds, always on stderr, never in a pipe.
#
# Runs that go on for hours also say a line every half minute where nobody looks at a terminal.

AFTER_SECONDS = 2.0
EVERY_SECONDS = 30.0
ALL_BUT = 1.0 - 1e-9
LONGEST = 90
"""Characters of what a bar says."""


def is_shown() -> bool:
    """Whether somebody looks: stderr is a terminal that can draw."""
    return sys.stderr.isatty() and os.environ.get("TERM") != "dumb"


@contextmanager
def shown(what: str) -> Iterator[None]:
    """Show a bar for as long as the block runs, from its third second on, where stderr is a terminal."""
    if not is_shown():
        yield
        return
    bar = Bar(what)
    try:
        with progress.heard_by(bar):
            yield
    finally:
        bar.close()


class Bar:
    """A bar that waits before it appears, goes away when something is printed, and comes back when that takes long too."""

    def __init__(self, what: str, after: float | None = None) -> None:
        self._after = AFTER_SECONDS if after is None else after
        self._name = what
        self._state: tuple[str, float, float | None, float | None] = ("", 0, None, None)
        self._furthest: float | None = None
        self._began = (time.monotonic(), 0.0)
        self._lock = threading.RLock()
        self._drawn: Any = None
        self._timer: threading.Timer | None = None
        self._wait()

    def told(self, what: str, done: float, total: float | None, share: float | None) -> None:
        """Note how far the work is, and show it if the bar is there."""
        with self._lock:
            self._state = (what, done, total, share)
            if share is None or self._furthest is None or share < self._furthest:
                self._began = (time.monotonic(), share or 0.0)  # another step, with a pace of its own
            self._furthest = share
            if self._drawn is not None:
                self._update()

    def hushed(self) -> None:
        """Go away; wait anew."""
        with self._lock:
            self.close()
            self._wait()

    def close(self) -> None:
        """Go away for good."""
        with self._lock:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None
            if self._drawn is not None:
                self._drawn.stop()
                self._drawn = None

    def _wait(self) -> None:
        self._timer = threading.Timer(self._after, self._appear)
        self._timer.daemon = True
        self._timer.start()

    def _appear(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeElapsedColumn
        from rich.progress import Progress as Drawn

        with self._lock:
            if self._timer is None or self._drawn is not None:
                return  # it was closed while it waited for the lock
            said = (TextColumn(f"{{task.fields[{field}]}}", markup=False) for field in ("left", "said"))
            columns = (BarColumn(30), TaskProgressColumn(), *said, TimeElapsedColumn())
            # rich would catch stdout too and send results to stderr
            quiet: dict[str, Any] = {"transient": True, "redirect_stdout": False, "redirect_stderr": False}
            self._drawn = Drawn(*columns, console=Console(stderr=True), **quiet)
            self._drawn.add_task("", total=None, left="", said="")
            self._update()
            self._drawn.start()

    def _update(self) -> None:
        what, done, total, share = self._state
        count = f"{done:,.0f} of {total:,.0f}" if total is not None else ""
        text = visible(": ".join(filter(None, (self._name, ", ".join(filter(None, (what, count)))))))
        said = f"{text[: LONGEST - 1]}…" if len(text) > LONGEST else text
        task = self._drawn.task_ids[0]
        # another step may follow: what is whole would stop rich's clock for good
        known = {"total": None if share is None else 1.0, "completed": min(share or 0.0, ALL_BUT)}
        self._drawn.update(task, said=said, left=self._left(share), **known)

    def _left(self, share: float | None) -> str:
        """About how long the step goes on at the pace that it had since it was first seen."""
        began, at = self._began
        if share is None or share - at <= 0.0:
            return ""
        seconds = (time.monotonic() - began) * (1.0 - share) / (share - at)
        return f"{duration(seconds)} left"


def duration(seconds: float) -> str:
    """A time as a bar says it.

    >>> duration(3.2), duration(75), duration(4000)
    ('4 s', '1 min 15 s', '1 h 6 min')
    """
    whole = math.ceil(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


class Run(Protocol):
    """A run under way, as far as a bar is concerned."""

    n_before: int

    @property
    def n_done(self) -> int:
        """How many were done by this process."""

    @property
    def n_total(self) -> int:
        """How many there are."""

    def line(self) -> str:
        """How far it is, in words."""


class Progress:
    """What a long run calls as often as it likes: the bar shows it, or a line is said every half minute."""

    def __init__(self) -> None:
        self._said = time.monotonic()

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        """The bar belongs to the command and ends with it."""

    def __call__(self, run: Run) -> None:
        """Show a run: the bar says itself how much is done and how long it takes still."""
        said = [part for part in run.line().split(", ")[1:] if not part.endswith(" left")]
        progress.tell(", ".join(said), run.n_before + run.n_done, run.n_total)
        self._say(run.line)

    def count(self, done: int, total: int) -> None:
        """Show so many of so many."""
        progress.tell("", done, total)
        self._say(lambda: f"{done:,} of {total:,}")

    def _say(self, line: Any) -> None:
        if is_shown() or time.monotonic() - self._said < EVERY_SECONDS:
            return
        self._said = time.monotonic()
        note(line())
