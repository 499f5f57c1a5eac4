"""Define every error that hitmiss raises on purpose, and the exit code that the command line returns for it.

    HitmissError
    ├── GateFailed          1   a rule or a published claim does not hold
    ├── UsageError          2   the request is wrong: an unknown name, a bad setting
    │   └── UnknownName         … with the nearest known names
    ├── DataError           3   the data is wrong: the error has one `Fault` for each place
    │   └── MissingFile         … a file is not there
    ├── IncompleteRun       4   a run has not finished
    └── EnvironmentFault    5   something is missing on this machine

`UsageError` and `DataError` are also `ValueError`s, so code that does not import hitmiss can catch them.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Self

from hitmiss.core.finding import Finding, Subject, Value, as_value


@dataclass(frozen=True)
class Fault:
    """Describe one problem in the data: what it is, where it is, and the value that was found.

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
    """The base class of every error that hitmiss raises on purpose.

    `code` names the kind of failure in kebab-case. It does not change when the message is reworded, so programs and
    tests should check `code`, not the message. Each class has a default code; a call may give a more specific one.

    Parameters
    ----------
    *arguments
        The message, as for `Exception`.
    code
        A code more specific than that of the class.
    choices
        Options of which one settles the question, by keyword: `[{"positive": "real"}, {"positive": "fake"}]`. The
        command line prints a complete command for each, a Python message the keywords.
    """

    exit_code = 1
    code = "error"
    choices: tuple[Mapping[str, str], ...] = ()
    faults: tuple[Fault, ...] = ()
    names_place: bool = False
    """Whether the message names the place of the only fault, so that it need not be listed."""
    finding: Finding | None = None
    """What was found, from which the message is written."""

    def __init__(self, *arguments: object, code: str | None = None, choices: Sequence[Mapping[str, str]] = ()) -> None:
        super().__init__(*arguments)
        if code is not None:
            self.code = code
        if choices:
            self.choices = tuple(choices)

    @classmethod
    def of(cls, code: str, /, subject: Subject | None = None, **values: object) -> Self:
        """Make the error from what was found: a code of the catalogue with the values of its sentence.

        `error.code` is the code up to its slash, which stays the same for all sentences of one kind.

        >>> error = UsageError.of("no-baseline")
        >>> print(error)
        max_regression needs baseline='RUN' to compare with
        >>> error.message
        '--max-regression needs --baseline RUN to compare with'
        """
        made = cls("")
        made.finding = Finding(code, subject or Subject(), {name: as_value(value) for name, value in values.items()})
        made.code = code.partition("/")[0]
        return made

    @classmethod
    def like(cls, error: HitmissError) -> Self:
        """Make the error of this class from another one: the same finding, code, places and choices."""
        made = cls.coded(error.found, error.code)
        made.faults, made.names_place, made.choices = error.faults, error.names_place, error.choices
        return made

    @classmethod
    def coded(cls, found: Finding, code: str) -> Self:
        """Make the error from what was found, under a code of its own, as one that names a kind of file."""
        made = cls("")
        made.finding, made.code = found, code
        return made

    def with_faults(self, faults: Sequence[Fault]) -> Self:
        """Return the error with the places in the data, which are listed below its message."""
        self.faults = tuple(faults)
        return self

    def at(self, fault: Fault) -> Self:
        """Return the error with the one place in the data that its message names."""
        self.names_place = True
        return self.with_faults([fault])

    def settled_by(self, choices: Sequence[Mapping[str, str]]) -> Self:
        """Return the error with options of which one settles the question."""
        self.choices = tuple(choices)
        return self

    @property
    def found(self) -> Finding:
        """What was found; of an error that was made from a text, that text."""
        return self.finding or Finding("free-refusal", values={"text": super().__str__()})

    @property
    def message(self) -> str:
        """The message with options as the command line writes them."""
        return self.finding.text if self.finding is not None else super().__str__()

    def __str__(self) -> str:
        # values may still hold texts with options, which are not findings yet
        text = in_python(self.message if self.finding is None else str(self.finding))
        return "\n".join([text, *map(_keywords, self.choices)])


class GateFailed(HitmissError):
    """A rule or a published claim does not hold."""

    exit_code = 1
    code = "gate-failed"


class UsageError(HitmissError, ValueError):
    """Raised when a request is wrong, whatever the data: an unknown name, a bad setting, a contradiction.

    The command line exits with status 2. Also a `ValueError`.
    """

    exit_code = 2
    code = "usage"


LISTED: Final = 200
"""Most names that a message lists; a model may have thousands of inner values."""
MANY: Final = 24
"""More known names than these are counted, not listed, beside the nearest ones."""
LISTS: Final = ("metric", "protocol")
"""What `hitmiss list` lists."""


class UnknownName(UsageError):
    """Raised for an unknown name; the message gives the nearest known name and lists all of them, or the first ones.

    With `synonyms` (another spelling -> the name), these are searched too, and the three nearest names are given.

    >>> print(UnknownName("metric", "eeer", ["eer", "min_dcf"]))
    unknown metric 'eeer'; did you mean 'eer'? Known: eer, min_dcf
    >>> print(UnknownName("metric", "aucc", ["ece", "eer", "mcc", "roc_auc"], {"auc": "roc_auc"}))
    unknown metric 'aucc'; did you mean 'roc_auc', 'mcc' or 'ece'? Known: ece, eer, mcc, roc_auc
    >>> UnknownName("metric", "eeer", ["eer"]).code
    'unknown-metric'
    """

    def __init__(self, what: str, name: str, known: Iterable[str], synonyms: Mapping[str, str] | None = None) -> None:
        self.name = name
        names = sorted(known)
        spellings = {name: name for name in names} | dict(synonyms or {})
        most, least = (1, SIMILAR) if synonyms is None or name in synonyms else (NEAREST, 0.0)
        near = [repr(one) for one in _similar(str(name), spellings, most, least)]
        kind = what.partition(" in ")[0].partition(" of ")[0].replace(" ", "-")
        super().__init__("", code=f"unknown-{kind}")
        values: dict[str, Value] = {
            "what": what,
            "name": name,
            "near": Finding("near-names", values={"names": " or ".join(filter(None, (", ".join(near[:-1]), near[-1])))})
            if near
            else ".",
            "known": tuple(names[:LISTED]) or ("none",),
            "more": Finding("more-names", values={"n": len(names) - LISTED}) if len(names) > LISTED else None,
        }
        self.finding = Finding("unknown-name", values=values)
        if near and len(names) > MANY:
            listing = f": `hitmiss list {what}s`" if what in LISTS else ""
            self.finding = Finding("unknown-name/many", values={**values, "n": len(names), "listing": listing})


class DataError(HitmissError, ValueError):
    """Raised when the data cannot be scored as it is. The command line exits with status 3. Also a `ValueError`.

    Parameters
    ----------
    message
        What is wrong.
    faults
        One `Fault` for each place in the data; kept in the attribute `faults`.
    code
        The kind of failure; by default the kind of the first fault.
    choices
        Options of which one settles the question.
    """

    exit_code = 3
    code = "data"

    def __init__(
        self,
        message: str = "",
        faults: Sequence[Fault] = (),
        *,
        code: str | None = None,
        choices: Sequence[Mapping[str, str]] = (),
    ) -> None:
        self.faults = tuple(faults)
        super().__init__(message, code=code or (self.faults[0].kind if self.faults else None), choices=choices)


class MissingFile(DataError, FileNotFoundError):
    """Raised where a file that a call names is not there; also a `FileNotFoundError`."""

    code = "missing-file"


class IncompleteRun(HitmissError):
    """Raised for a run folder whose run has not finished."""

    exit_code = 4
    code = "incomplete-run"


class EnvironmentFault(HitmissError):
    """Raised when this machine lacks a package, a program or a resource. The command line exits with status 5."""

    exit_code = 5
    code = "environment"


class ResultWarning(UserWarning):
    """Warns of what a reader of the results should know; the results keep the same texts in `warnings`."""


class AssumedMeaning(UserWarning):
    """Warns that labels were read as documented because the caller did not say what they mean; it names the mapping."""


def message_of(error: BaseException) -> str:
    """Return what an error says, with options as the command line writes them if it is one of ours.

    >>> message_of(UsageError("say --unit")), message_of(KeyError("a"))
    ('say --unit', "'a'")
    """
    return error.message if isinstance(error, HitmissError) else str(error)


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that is most similar to `name`, or None if no name is similar enough.

    >>> nearest("bona-fide", ["bonafide", "spoof"])
    'bonafide'
    """
    return next(iter(_similar(name, {one: one for one in known}, 1, SIMILAR)), None)


NEAREST: Final = 3
"""How many similar names the error about a name with synonyms gives."""
SIMILAR: Final = 0.6
"""How similar a name must be to be the one that was meant: 1 is equal, 0 has no letter in common."""


def _similar(name: str, known: Mapping[str, str], most: int, least: float) -> list[str]:
    """Return the names of the most similar spellings, the nearest first."""
    spellings = {spelling.lower(): own for spelling, own in known.items() if spelling}
    found = difflib.get_close_matches(name.lower(), spellings, n=max(1, len(spellings)), cutoff=least)
    return list(dict.fromkeys(spellings[one] for one in found))[:most]


# ----------------------------------------------------------------------
# Messages name options as the command line spells them. Someone who calls a function reads its keywords instead.

_OPTION: Final = re.compile(
    r"(?P<command>`[^`]*`)|(?P<leave>\bleave )?(?<![\w'\"-])(?:--(?P<name>[a-z][a-z_-]*)|-(?P<short>[mpo])(?= ))"
    r"(?: (?P<value>[^\s,;:()?'-][^\s,;:()?]*|-?\d[^\s,;:()?]*|,)"
    r"(?=$|[,;:()?]| (?:\(|--|-[mpo] |or |and |if |to |with |for |as |in )))?"
)
"""A command in backticks, which stays; or an option, and its value where what follows shows that it is one. What begins
with a quote is a value of the data."""
_AGAIN: Final = re.compile(r"\b(\w+)=([\[{])([^\]}]*)[\]}], \1=[\[{]")
_NUMBER: Final = re.compile(r"-?\d+(\.\d+)?(e-?\d+)?")
_SHORT: Final = {"m": "metrics", "p": "protocol", "o": "output"}
_KEYWORD: Final = {
    "column": "columns",
    "key_column": "key_columns",
    "score_column": "score_columns",
    "run_column": "runs",
    "metric": "metrics",
}
_FLAGS: Final = ("dedupe", "allow_missing", "resume", "retry", "join", "force", "static")
_MAPPINGS: Final = ("columns", "key_columns", "where", "rename")
_WORDS: Final = ("out", "to", "or", "and", "if", "with", "for", "as", "in", "goes", "is", "once", "takes", "needs")


def in_python(text: str) -> str:
    """Return a message in which options of the command line are keywords of a function.

    >>> print(in_python("say which class is positive, as --positive toxic --positive-value 1"))
    say which class is positive, as positive='toxic', positive_value='1'
    >>> print(in_python("say which one it is with --column item=NAME, merge rows with --dedupe, or leave --stream out"))
    say which one it is with columns={'item': 'NAME'}, merge rows with dedupe=True, or leave stream out
    >>> print(in_python("-m eer -m roc_auc; run `hitmiss detect … --resume`, or fix it and run with --resume --retry"))
    metrics=['eer', 'roc_auc']; run `hitmiss detect … --resume`, or fix it and run with resume=True, retry=True
    >>> print(in_python("--picture goes with --input image, --gap codec=NONE with --threshold -0.5 (--positive-index)"))
    picture goes with input='image', gap='codec=NONE' with threshold=-0.5 (positive_index)
    >>> print(in_python("2 repeated rows (ids '--first', 'b'); merge identical rows with --dedupe"))
    2 repeated rows (ids '--first', 'b'); merge identical rows with dedupe=True
    """
    if "-" not in text:
        return text
    told, n = _OPTION.subn(_keyword, text)
    while n:  # an option may be given twice, a keyword once
        told, n = _AGAIN.subn(r"\1=\2\3, ", told)
    return told


def _keywords(choice: Mapping[str, str]) -> str:
    """Return the options of a choice as keywords, on a line of their own below the message."""
    return f"  {', '.join(f'{name}={value!r}' for name, value in choice.items())}"


def _keyword(found: re.Match[str]) -> str:
    if found["command"]:
        return found["command"]
    word = found["name"].replace("-", "_") if found["name"] else _SHORT[found["short"]]
    name, value, before = _KEYWORD.get(word, word), found["value"], found["leave"] or ""
    more = "," if found.string.startswith((" --", " -m ", " -p ", " -o "), found.end()) else ""
    if value is None or value in _WORDS:
        is_set = name in _FLAGS and value is None and not before
        return f"{before}{name}{'=True' if is_set else ''}{f' {value}' if value else ''}{more}"
    left, equals, right = value.partition("=")
    if equals and name in _MAPPINGS:
        shown = "{" + f"{left!r}: {right!r}" + "}"
    elif name in ("score_columns", "runs", "metrics"):
        shown = f"[{value!r}]"
    else:
        shown = value if _NUMBER.fullmatch(value) and name != "positive_value" else repr(value)
    return f"{before}{name}={shown}{more}"
