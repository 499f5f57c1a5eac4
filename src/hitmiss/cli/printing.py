"""How the verbs write: results to stdout, everything else to stderr, plain where nobody looks at a terminal.

Text that comes from files is shown with its control characters escaped, so that no id can move the cursor, colour
the screen, reverse the reading order or hide from the reader.
"""

from __future__ import annotations

import dataclasses
import json
import math
import os
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TextIO

from hitmiss import progress
from hitmiss.visible import spelled, visible, wrapped

if TYPE_CHECKING:
    from hitmiss.results import Estimate


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
    from hitmiss.errors import UsageError

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
    from hitmiss.measuring.sampling import under

    said = under(results)
    if said is not None:
        out(f"\n{said}")
