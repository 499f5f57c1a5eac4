"""What a failure becomes: one sentence on stderr, an exit code, and under `--json` an object on stdout.

| code | when                                                                                     |
|------|------------------------------------------------------------------------------------------|
| 0    | done; also when the reader of a pipe went away                                             |
| 1    | a gate or a claim does not hold (`GateFailed`)                                             |
| 2    | the command is wrong (`UsageError`, an unknown verb or option)                             |
| 3    | the data is wrong (`DataError`), or a file is missing or cannot be read                    |
| 4    | a run has not finished (`IncompleteRun`)                                                   |
| 5    | this machine lacks something (`EnvironmentFault`, disk full, no memory), or a bug in hitmiss |
| 130  | interrupted                                                                                |
"""

from __future__ import annotations

from dataclasses import asdict

from typer import Abort, TyperException

from hitmiss.errors import DataError, EnvironmentFault, Fault, HitmissError
from hitmiss.visible import visible

SCHEMA = 1
INTERRUPTED = 130
SHOWN_FAULTS = 5


def exit_code(error: BaseException) -> int:
    """The exit code of a failure.

    >>> exit_code(DataError("a score is missing")), exit_code(FileNotFoundError()), exit_code(ZeroDivisionError())
    (3, 3, 5)
    """
    if isinstance(error, HitmissError | TyperException):
        return error.exit_code
    if isinstance(error, KeyboardInterrupt | Abort):
        return INTERRUPTED
    return DataError.exit_code if _is_about_a_file(error) else EnvironmentFault.exit_code


def sentence(error: BaseException) -> str:
    """What to tell the user; control characters of untrusted text are escaped.

    >>> sentence(ZeroDivisionError("division by zero"))
    'ZeroDivisionError: division by zero; this is a bug in hitmiss, run again with --debug and report what it prints'
    """
    if isinstance(error, DataError):
        return "\n".join([visible(str(error)), *_fault_lines(error)])
    if isinstance(error, TyperException):
        return visible(f"{error.format_message()} See `{_command(error)} --help`.")
    if isinstance(error, HitmissError):
        return visible(str(error))
    if isinstance(error, KeyboardInterrupt | Abort):
        return "interrupted"
    if isinstance(error, OSError):
        return visible(_file_sentence(error))
    if isinstance(error, MemoryError):
        return "there is not enough memory on this machine"
    kind = type(error).__name__
    return visible(f"{kind}: {error}; this is a bug in hitmiss, run again with --debug and report what it prints")


def code_of(error: BaseException) -> str:
    """The stable name of a failure, for programs.

    >>> code_of(DataError("a score is NaN", code="nan-score")), code_of(FileNotFoundError()), code_of(KeyError("x"))
    ('nan-score', 'missing-file', 'bug')
    """
    if isinstance(error, HitmissError):
        return error.code
    if isinstance(error, TyperException):
        return "usage"
    if isinstance(error, KeyboardInterrupt | Abort):
        return "interrupted"
    if isinstance(error, FileNotFoundError):
        return "missing-file"
    if isinstance(error, OSError):
        return "unreadable-file" if _is_about_a_file(error) else "environment"
    return "environment" if isinstance(error, MemoryError) else "bug"


def document(error: BaseException) -> dict[str, object]:
    """What a failure prints under `--json`: its code, its sentence, and every place with a fault.

    >>> document(DataError("a score is NaN", [Fault("nan-score", "it is NaN", file="s.csv", row=7)]))["error"]["code"]
    'nan-score'
    """
    faults = [asdict(fault) for fault in getattr(error, "faults", ())]
    message = sentence(error).partition("\n")[0]
    return {"schema": SCHEMA, "error": {"code": code_of(error), "message": message, "faults": faults}}


def _command(error: TyperException) -> str:
    context = getattr(error, "ctx", None)
    return context.command_path if context is not None else "hitmiss"


def _fault_lines(error: DataError) -> list[str]:
    """The places, unless the sentence says the only one already.

    >>> from hitmiss.errors import Fault
    >>> one = Fault("nan-score", "a score is NaN", file="s.csv", row=7)
    >>> _fault_lines(DataError("s.csv, row 7: a score is NaN; drop it", [one]))
    []
    >>> _fault_lines(DataError("2 scores are NaN", [one, Fault("nan-score", "a score is NaN", file="s.csv", row=9)]))
    ['  s.csv, row 7: a score is NaN', '  s.csv, row 9: a score is NaN']
    """
    if len(error.faults) == 1 and all(part in str(error) for part in _told(error.faults[0])):
        return []
    lines = [f"  {visible(str(fault))}" for fault in error.faults[:SHOWN_FAULTS]]
    left = len(error.faults) - SHOWN_FAULTS
    return [*lines, f"  … and {left} more; `hitmiss validate` lists all"] if left > 0 else lines


def _told(fault: Fault) -> list[str]:
    """What a sentence must hold to have said all of a fault; a column is named in the message where it matters."""
    parts = [fault.message, fault.file, fault.value, None if fault.row is None else f"row {fault.row}"]
    return [part for part in parts if part]


def _is_about_a_file(error: BaseException) -> bool:
    return isinstance(error, FileNotFoundError | IsADirectoryError | NotADirectoryError | PermissionError)


def _file_sentence(error: OSError) -> str:
    place = f"{error.filename}: " if error.filename is not None else ""
    if isinstance(error, FileNotFoundError):
        return f"there is no file {error.filename}" if error.filename is not None else str(error)
    return f"{place}{error.strerror or error}"
