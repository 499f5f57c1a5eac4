"""How a failure is reported: one sentence on stderr, an exit code, and with `--json` an object on stdout.

| code | when                                                                                     |
|------|------------------------------------------------------------------------------------------|
| 0    | done; also when the reader of a pipe has closed it                                         |
| 1    | a gate or a claim does not hold (`GateFailed`)                                             |
| 2    | the command is wrong (`UsageError`, an unknown verb or option)                             |
| 3    | the data is wrong (`DataError`), or a file is missing or cannot be read                    |
| 4    | a run has not finished (`IncompleteRun`)                                                   |
| 5    | this machine lacks something (`EnvironmentFault`, disk full, no memory), or a bug in hitmiss |
| 130  | interrupted                                                                                |
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import asdict

import click

from hitmiss.core.errors import DataError, EnvironmentFault, HitmissError, message_of
from hitmiss.core.options import option_name, option_words
from hitmiss.core.text import escape_invisible

SCHEMA = 1
INTERRUPTED = 130
SHOWN_FAULTS = 5


def exit_code(error: BaseException) -> int:
    """Return the exit code of a failure.

    >>> exit_code(DataError("a score is missing")), exit_code(FileNotFoundError()), exit_code(ZeroDivisionError())
    (3, 3, 5)
    """
    if isinstance(error, HitmissError | click.ClickException):
        return error.exit_code
    if isinstance(error, KeyboardInterrupt | click.Abort):
        return INTERRUPTED
    return DataError.exit_code if _is_about_a_file(error) else EnvironmentFault.exit_code


def sentence(error: BaseException) -> str:
    """Return the message for the user; control characters of untrusted text are escaped.

    >>> sentence(ZeroDivisionError("division by zero"))
    'ZeroDivisionError: division by zero; this is a bug in hitmiss, run again with --debug and report what it prints'
    """
    if isinstance(error, DataError):
        return "\n".join([escape_invisible(message_of(error)), *_fault_lines(error)])
    if isinstance(error, click.ClickException):
        return escape_invisible(f"{error.format_message()} See `{_command(error)} --help`.")
    if isinstance(error, HitmissError):
        return escape_invisible(message_of(error))
    if isinstance(error, KeyboardInterrupt | click.Abort):
        return "interrupted"
    if isinstance(error, OSError):
        return escape_invisible(_file_sentence(error))
    if isinstance(error, MemoryError):
        return "there is not enough memory on this machine"
    kind = type(error).__name__
    return escape_invisible(
        f"{kind}: {error}; this is a bug in hitmiss, run again with --debug and report what it prints"
    )


def code_of(error: BaseException) -> str:
    """Return the stable name of a failure, for programs.

    >>> code_of(DataError("a score is NaN", code="nan-score")), code_of(FileNotFoundError()), code_of(KeyError("x"))
    ('nan-score', 'missing-file', 'bug')
    """
    if isinstance(error, HitmissError):
        return error.code
    if isinstance(error, click.ClickException):
        return "usage"
    if isinstance(error, KeyboardInterrupt | click.Abort):
        return "interrupted"
    if isinstance(error, FileNotFoundError):
        return "missing-file"
    if isinstance(error, OSError):
        return "unreadable-file" if _is_about_a_file(error) else "environment"
    return "environment" if isinstance(error, MemoryError) else "bug"


def completed_commands(error: BaseException, words: Sequence[str]) -> list[str]:
    """Return the commands of which one settles what an error leaves open: the given one with each of the choices.

    An option that a choice sets replaces the one that was given.

    >>> completed_commands(DataError("which?", choices=[{"positive": "real"}, {"positive": "not real"}]), ["score", "a b.csv"])
    ["hitmiss score 'a b.csv' --positive real", "hitmiss score 'a b.csv' --positive 'not real'"]
    """
    found = []
    for choice in error.choices if isinstance(error, HitmissError) else ():
        flags, names = ({option_name(n) for n, value in choice.items() if bool(value) is has} for has in (False, True))
        pairs = zip(words, ["", *words], strict=False)
        kept = [w for w, before in pairs if not {w.partition("=")[0], before} & names and w not in flags]
        found.append(f"{shlex.join(['hitmiss', *kept])} {shlex.join(option_words(choice))}")
    return found


def document(error: BaseException, commands: Sequence[str] = ()) -> dict[str, object]:
    """Return what a failure prints with `--json`: its code, its message, every place with a fault, commands to choose.

    >>> from hitmiss.core.errors import Fault
    >>> document(DataError("a score is NaN", [Fault("nan-score", "it is NaN", file="s.csv", row=7)]))["error"]["code"]
    'nan-score'
    """
    faults = [asdict(fault) for fault in getattr(error, "faults", ())]
    message = sentence(error).partition("\n")[0]
    told: dict[str, object] = {"code": code_of(error), "message": message, "faults": faults}
    return {"schema": SCHEMA, "error": {**told, "commands": list(commands)} if commands else told}


def _command(error: click.ClickException) -> str:
    context = getattr(error, "ctx", None)
    return context.command_path if context is not None else "hitmiss"


def _fault_lines(error: DataError) -> list[str]:
    """List the places of faults, unless the message names the only one.

    >>> from hitmiss.core.errors import Fault
    >>> one = Fault("nan-score", "a score is NaN", file="s.csv", row=7)
    >>> _fault_lines(DataError("s.csv, row 7: a score is NaN; drop it").at(one))
    []
    >>> _fault_lines(DataError("2 scores are NaN", [one, Fault("nan-score", "a score is NaN", file="s.csv", row=9)]))
    ['  s.csv, row 7: a score is NaN', '  s.csv, row 9: a score is NaN']
    """
    if error.names_place:
        return []
    lines = [f"  {escape_invisible(str(fault))}" for fault in error.faults[:SHOWN_FAULTS]]
    left = len(error.faults) - SHOWN_FAULTS
    return [*lines, f"  … and {left} more; `hitmiss validate` lists all"] if left > 0 else lines


def _is_about_a_file(error: BaseException) -> bool:
    return isinstance(error, FileNotFoundError | IsADirectoryError | NotADirectoryError | PermissionError)


def _file_sentence(error: OSError) -> str:
    place = f"{error.filename}: " if error.filename is not None else ""
    if isinstance(error, FileNotFoundError):
        if error.filename is None:
            return str(error)
        from hitmiss.core.registry import all_metrics

        hint = f"; for the metric of this name write -m {error.filename}" if error.filename in all_metrics() else ""
        return f"there is no file {error.filename}{hint}"
    return f"{place}{error.strerror or error}"
