"""How the verbs write: results to stdout, everything else to stderr, without styling where stderr is not a terminal.

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
from typing import TYPE_CHECKING, TextIO

from hitmiss.core import progress
from hitmiss.core.design import Taken
from hitmiss.core.kinds import Json, JsonObject
from hitmiss.core.text import encodable, escape_invisible, wrap

if TYPE_CHECKING:
    from hitmiss.core.results import Estimate
    from hitmiss.core.verdict import Verdict


def out(text: str = "") -> None:
    """Print one or several lines of the result to stdout."""
    _result(escape_invisible(text, keep="\n"))


def out_signature(signature: str, file: str | None = None) -> None:
    """Print the signature that ends a result: whole, or short where a file that was written holds the whole one."""
    if file is None:
        out(f"\n{signature}")
        return
    parts = signature.split("|")
    out(f"\n{parts[0]}|…|{parts[-1]} (the whole signature is in {file})")


def note(text: str, *, always: bool = False) -> None:
    """Print a message to stderr; with --quiet only if it is to be printed always."""
    if always or not _quiet[-1]:
        _write(sys.stderr, escape_invisible(text, keep="\n"))


_quiet: list[bool] = [False]


@contextmanager
def quietly(quiet: bool) -> Iterator[None]:
    """Suppress messages and conclusions inside the block if `quiet`."""
    _quiet.append(quiet)
    try:
        yield
    finally:
        _quiet.pop()


def is_quiet() -> bool:
    """Say whether --quiet was given."""
    return _quiet[-1]


def out_json(value: object) -> None:
    """Print the result as JSON to stdout. NaN and infinities are refused, because JSON has no such numbers."""
    out_document(json.dumps(value, indent=1, ensure_ascii=True, allow_nan=False))


def out_with_verdict(document: Mapping[str, object], verdict: Verdict) -> None:
    """Print results as JSON together with what they allow to conclude; files are written without it."""
    from hitmiss.core.artifacts import sealed

    out_document(
        json.dumps(sealed({**document, "verdict": verdict.to_dict()}), indent=1, ensure_ascii=False, allow_nan=False)
    )


def refuse_unmet(verdict: Verdict) -> None:
    """End with exit code 1 if something that is required was not shown."""
    from hitmiss.core.errors import GateFailed

    unmet = tuple(f for f in verdict.requirements if f.values["outcome"] != "PASS")
    if unmet:
        raise GateFailed.of(
            "requirements-unmet", n=len(unmet), total=len(verdict.requirements), outcome=verdict.outcome
        )


def out_document(text: str) -> None:
    """Print a document (JSON, CSV) to stdout: its bytes are UTF-8, whatever the terminal is."""
    _results.append(True)
    _headlines.clear()  # a document states by itself what was taken
    progress.clear()
    binary = getattr(sys.stdout, "buffer", None)
    if binary is None:
        sys.stdout.write(text + "\n")
        return
    sys.stdout.flush()
    binary.write((text + "\n").encode("utf-8", "backslashreplace"))
    binary.flush()


def plain(value: object) -> Json:
    """Convert a value to what JSON can hold: dataclasses become mappings, functions names, infinities and NaN text.

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
        return [*sorted(map(str, value))]
    if isinstance(value, bool | int | str | None) or (isinstance(value, float) and math.isfinite(value)):
        return value
    return getattr(value, "__qualname__", None) or str(value)


def plain_object(value: object) -> JsonObject:
    """Convert a dataclass or a mapping to what a JSON object can hold."""
    found = plain(value)
    if not isinstance(found, dict):
        raise TypeError(f"{type(value).__name__} has no fields")
    return found


def out_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print aligned columns to stdout; the header is bold on a terminal."""
    first, *others = aligned([header, *rows])
    _result(bold(first, sys.stdout))
    for line in others:
        _result(line)


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Join rows of texts to lines whose columns are aligned; the last column is not padded.

    >>> aligned([["eer", "low"], ["min_dcf", "low"]])
    ['eer      low', 'min_dcf  low']
    """
    shown = [[escape_invisible(cell) for cell in row] for row in rows]
    widths = [max(len(row[i]) for row in shown) for i in range(len(shown[0]))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in shown]


def bold(text: str, stream: TextIO) -> str:
    """Return the text in bold if the stream is a terminal; NO_COLOR and TERM=dumb are respected."""
    return f"\x1b[1m{text}\x1b[0m" if is_styled(stream) else text


def is_styled(stream: TextIO) -> bool:
    """Say whether a stream is a terminal whose user has not asked for plain text."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def begin() -> None:
    """Note that a new command begins and nothing is on stdout yet."""
    _results.clear()
    _headlines.clear()
    _taken.clear()


def has_result() -> bool:
    """Say whether this command has written a result to stdout."""
    return bool(_results)


_results: list[bool] = []
_headlines: list[str] = []


def headline(text: str) -> None:
    """Keep a line that stands above the result; without a result, or above a document, it is not printed."""
    _headlines.append(escape_invisible(text))


def _result(text: str) -> None:
    _results.append(True)
    while _headlines:
        _write(sys.stdout, _headlines.pop(0))
    _write(sys.stdout, text)


def _write(stream: TextIO, text: str) -> None:
    progress.clear()
    if stream.isatty() and "\x1b" not in text:
        width = shutil.get_terminal_size((80, 24)).columns
        text = "\n".join(wrap(text, width))
    stream.write(encodable(text, stream.encoding) + "\n")


def expanded(patterns: Sequence[str]) -> list[str]:
    """Expand globs in file names, sorted; a pattern without a match is kept and reported as missing later."""
    from glob import glob

    return [path for pattern in patterns for path in (sorted(glob(pattern)) or [pattern])]  # noqa: PTH207


def sampled(results: Iterable[Estimate]) -> None:
    """Print under a table what its intervals treat as random, and why that of a worst slice is not the slice's own."""
    from hitmiss.engine.sampling_note import under

    found = list(results)
    said = under(found)
    if said is not None:
        out(f"\n{said}")
    own = {(e.metric, *e.run.items(), *e.slice.items()): (e.low, e.high) for e in found if e.average is None}
    worst = [e for e in found if e.average == "worst" and e.low is not None]
    if any(own.get((e.metric, *e.run.items(), *e.slice.items())) not in (None, (e.low, e.high)) for e in worst):
        out("worst: picked for its number, so its interval is wider than the slice's own on the side of better numbers")


_taken: list[Taken] = []


def took(taken: Taken) -> None:
    """Note what this command took from a settings file, and put it above the result."""
    _taken.append(taken)
    headline(str(taken))


def taken() -> JsonObject:
    """Return what this command took from a settings file, for documents that store no design."""
    return {"settings": {"file": _taken[-1].file, "values": dict(_taken[-1].values)}} if _taken else {}


def note_headlines() -> None:
    """Print what would stand above a result where there is none."""
    while _headlines:
        note(_headlines.pop(0))


def either(where: Mapping[str, Sequence[str]]) -> dict[str, tuple[str, ...]]:
    """Split filter values at commas, as verbs that read manifests do: `split=dev,eval`."""
    return {name: tuple(v for text in values for v in text.split(",")) for name, values in where.items()}
