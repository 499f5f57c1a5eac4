"""Every error that hitmiss raises on purpose, and the exit code each one gives the command line.

    HitmissError
    ├── GateFailed          1   a rule or a claim does not hold
    ├── UsageError          2   the question is wrong: an unknown name, a bad setting
    │   └── UnknownName         … with the nearest known names
    ├── DataError           3   the data is wrong: it carries one `Fault` for each place
    ├── IncompleteRun       4   a run has not finished
    └── EnvironmentFault    5   something is missing on this machine

`UsageError` and `DataError` are also `ValueError`s, so callers who know nothing of hitmiss can catch them.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Fault:
    """One thing that is wrong with the data: what, where and how to fix it.

    >>> print(Fault("nan-score", "the score is not a number", file="s.tsv", row=7, column="score", value="nan"))
    s.tsv, row 7, column score: the score is not a number (found 'nan')
    """

    kind: str
    message: str
    file: str | None = None
    row: int | None = None
    column: str | None = None
    value: str | None = None

    def __str__(self) -> str:
        place = [self.file] if self.file else []
        place += [f"row {self.row}"] if self.row is not None else []
        place += [f"column {self.column}"] if self.column else []
        found = f" (found {self.value!r})" if self.value is not None else ""
        return f"{', '.join(place)}{': ' if place else ''}{self.message}{found}"


class HitmissError(Exception):
    """The root of the tree.

    `code` names the kind of failure in kebab-case and stays the same when the sentence is reworded; programs and tests
    match it instead of the message. A class has a default code; a raise may give a narrower one.
    """

    exit_code = 1
    code = "error"

    def __init__(self, *arguments: object, code: str | None = None) -> None:
        super().__init__(*arguments)
        if code is not None:
            self.code = code


class GateFailed(HitmissError):
    """A rule or a published claim does not hold."""

    exit_code = 1
    code = "gate-failed"


class UsageError(HitmissError, ValueError):
    """The question makes no sense, whatever the data."""

    exit_code = 2
    code = "usage"


class UnknownName(UsageError):
    """A name that is not known, with the nearest ones that are.

    >>> print(UnknownName("metric", "eeer", ["eer", "min_dcf"]))
    unknown metric 'eeer'; did you mean 'eer'? Known: eer, min_dcf
    >>> UnknownName("metric", "eeer", ["eer"]).code
    'unknown-metric'
    """

    def __init__(self, what: str, name: str, known: Iterable[str]) -> None:
        names = sorted(known)
        near = nearest(name, names)
        hint = f"; did you mean {near!r}?" if near else "."
        kind = what.partition(" in ")[0].partition(" of ")[0].replace(" ", "-")
        super().__init__(f"unknown {what} {name!r}{hint} Known: {', '.join(names) or 'none'}", code=f"unknown-{kind}")


class DataError(HitmissError, ValueError):
    """The data cannot be scored as it is. `faults` lists every place."""

    exit_code = 3
    code = "data"

    def __init__(self, message: str, faults: Sequence[Fault] = (), *, code: str | None = None) -> None:
        self.faults = tuple(faults)
        super().__init__(message, code=code or (self.faults[0].kind if self.faults else None))


class IncompleteRun(HitmissError):
    """A run folder whose run has not finished."""

    exit_code = 4
    code = "incomplete-run"


class EnvironmentFault(HitmissError):
    """A package, a program or a resource that this machine lacks."""

    exit_code = 5
    code = "environment"


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name most like `name`, or None.

    >>> nearest("bona-fide", ["bonafide", "spoof"])
    'bonafide'
    """
    spellings = {k.lower(): k for k in known if k}
    found = difflib.get_close_matches(name.lower(), spellings, n=1, cutoff=0.6)
    return spellings[found[0]] if found else None
