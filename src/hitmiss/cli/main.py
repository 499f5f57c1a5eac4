"""The command `hitmiss`: its verbs, its global options, its help, and how it ends."""

from __future__ import annotations

import atexit
import gc
import os
import re
import shlex
import sys
import textwrap
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from copy import copy
from dataclasses import asdict
from functools import cache, partial
from importlib import import_module
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer
from typer import Abort, TyperException
from typer.core import TyperCommand, TyperGroup

from hitmiss._version import __version__
from hitmiss.cli import common
from hitmiss.core import artifacts, errors
from hitmiss.core.errors import DataError, EnvironmentFault, Fault, HitmissError, UsageError
from hitmiss.core.text import escape_invisible
from hitmiss.runs.signals import stop_on_terminate

if TYPE_CHECKING:
    from typer._click.core import Command, Context, Parameter
    from typer._click.formatting import HelpFormatter
    from typer._click.parser import _Option, _OptionParser, _ParsingState

    Completing = Callable[[Context, Parameter, str], list[str]]

# ----------------------------------------------------------------------
# Options as the evaluation documents write them: several values after one option, and underscores for dashes.
#
# `--languages en es --pred_dir DIR` becomes `--languages en --languages es --pred-dir DIR`, as the parser needs it.

SPACED: Final[Mapping[str, tuple[str, ...]]] = {
    "toxicity": ("--languages", "--identity", "--texts"),
    "threshold": ("--test", "--languages"),
    "attack": ("--strengths", "--center", "--threshold"),
    "compare": ("--languages",),
    "triage": ("--thresholds", "--least-confidence", "--costs"),
    "llm": ("--models", "--thresholds"),
    "review": ("--thresholds", "--items"),
}
"""For each verb, the options that take all words up to the next option; `--` ends them before an argument."""

NUMBER: Final = re.compile(r"-(\d|\.\d|inf)")
OPTION: Final = re.compile(r"--[A-Za-z][A-Za-z0-9_-]*")


def settle(words: Sequence[str]) -> list[str]:
    """Rewrite the words of a command line to the form that the parser knows.

    >>> settle(["toxicity", "--languages", "en", "es", "--pred_dir", "a_b", "--dump_errors"])
    ['toxicity', '--languages', 'en', '--languages', 'es', '--pred-dir', 'a_b', '--dump-errors']
    >>> settle(["toxicity", "--languages", "en", "es", "--", "my_file.csv"])
    ['toxicity', '--languages', 'en', '--languages', 'es', '--', 'my_file.csv']
    >>> settle(["toxicity", "--languages", "--run_tag", "a"])
    Traceback (most recent call last):
    hitmiss.core.errors.UsageError: languages needs a value after it
    """
    spaced = SPACED.get(verb_of(words), ())
    settled: list[str] = []
    current: str | None = None
    for at, word in enumerate(words):
        if word == "--":
            return settled + list(words[at:])
        if is_option(word):
            current = dashed(word) if dashed(word) in spaced else None  # with `=` it has exactly one value
            if current is None:
                settled.append(dashed(word))
            elif at + 1 == len(words) or is_option(words[at + 1]):
                raise UsageError(f"{word} needs a value after it")
        elif current is not None:
            settled += [current, word]
        else:
            settled.append(word)
    return settled


VALUED: Final = ("--plugin", "--sign")
"""The options before the verb that take a value."""


def verb_of(words: Sequence[str]) -> str:
    """Return the verb of a command line: its first word that is neither an option nor the value of one; or nothing.

    >>> verb_of(["--plugin", "score", "-q", "toxicity", "attack"]), verb_of(["--version"])
    ('toxicity', '')
    """
    left = iter(words)
    for word in left:
        if word in VALUED:
            next(left, None)
        elif not word.startswith("-"):
            return word
    return ""


def is_option(word: str) -> bool:
    """Say whether a word begins an option and is not a negative number.

    >>> is_option("--seed"), is_option("-o"), is_option("-0.5"), is_option("-")
    (True, True, False, False)
    """
    return word.startswith("-") and len(word) > 1 and NUMBER.match(word) is None


def dashed(word: str) -> str:
    """Replace underscores by dashes in an option's name; the text after `=` is kept.

    >>> dashed("--run_tag=my_run"), dashed("-o")
    ('--run-tag=my_run', '-o')
    """
    name, equals, value = word.partition("=")
    return name.replace("_", "-") + equals + value if OPTION.fullmatch(name) else word


# ----------------------------------------------------------------------
# Plain option values, taken as they are.
#
# typer builds a pydantic validator for every option of a verb, given or not, and imports pydantic for it: a fifth of a
# second at the start of a verb with many. No way of declaring an option keeps it from that (`parser`, `click_type` and a
# default of None all get one). Nearly all values are texts, or whole numbers, or were not given at all, and need none, so
# they are taken here, where click lets a parameter process its value. Anything else goes the way of typer; so does
# everything where typer no longer says what an option is declared as, and then a test of the start fails.

DECLARED: Final = "type_descriptor"
"""The attribute in which typer keeps how an option is declared."""
OTHER: Final = object()
"""Marks a value that is not plain."""


def take_plainly(command: Command) -> None:
    """Let the options of a command and its verbs take plain values as they are."""
    for part in (command, *getattr(command, "commands", {}).values()):
        for param in part.get_params(typer.Context(part, **part.context_settings)):
            if hasattr(param, DECLARED):
                param.process_value = partial(_process, param, param.process_value)


def _process(param: Parameter, usual: Callable[[Context, object], object], ctx: Context, value: object) -> object:
    """Return the value in the form that the verb needs; `usual` is typer's own conversion."""
    plain = _plain(param, value)
    if plain is OTHER:
        return usual(ctx, value)
    return plain if param.callback is None else param.callback(ctx, param, plain)


def _plain(param: Parameter, value: object) -> object:
    if value is None:
        return OTHER if param.required else () if param.multiple or param.nargs == -1 else None
    declared = getattr(param, DECLARED)
    if declared.choices is not None or declared.is_path or declared.is_ranged:
        return OTHER
    kind = declared.annotation
    if (kind is str and type(value) is str) or (kind is float and type(value) is float):
        return value
    if kind is int and (type(value) is int or (isinstance(value, str) and value.isascii() and value.isdecimal())):
        return int(value)
    if kind == list[str] and value and isinstance(value, list | tuple) and all(type(v) is str for v in value):
        return list(value)
    return OTHER


# ----------------------------------------------------------------------
# An option that takes one value takes it once: of two values, neither is chosen in silence.


class Once:
    """A command whose options refuse a second value, unless they are declared to take several."""

    def make_parser(self, ctx: Context) -> _OptionParser:
        """Return the parser; completion of a half-written line is not checked."""
        parser: _OptionParser = super().make_parser(ctx)  # type: ignore[misc]
        for option in {*parser._long_opt.values(), *parser._short_opt.values()} if not ctx.resilient_parsing else ():
            if option.action in ("store", "store_const"):
                option.process = partial(_once, option, option.process)  # type: ignore[method-assign]
        return parser


def _once(option: _Option, usual: Callable[[object, _ParsingState], None], value: object, state: _ParsingState) -> None:
    """Take the value of an option, unless it has another one; a flag may be repeated."""
    is_flag = option.action == "store_const"
    name, given = max(option.obj.opts, key=len), option.const if is_flag else value
    before = state.opts.get(option.dest or "", OTHER)
    if before is not OTHER and is_flag and before is not given:
        both = f"{name} and {max(option.obj.secondary_opts, key=len, default=name)}"
        raise UsageError(f"{both} contradict each other; leave one of them out", code="given-twice")
    if before is not OTHER and not is_flag:
        raise UsageError(
            f"{name} takes one value and has two, {before!r} and {given!r}; leave one of them out", code="given-twice"
        )
    usual(value, state)


# ----------------------------------------------------------------------
# Help and completion: options in groups, one example per verb, summaries that are not cut, completion of values.
#
# Everything here is based on the names of options, so that a verb only has to declare each option once.

NAMES: Final = {"help_option_names": ["-h", "--help"]}
"""Settings for the context of every command."""
READING: Final = "Reading files"
MEASURING: Final = "What is measured"
CERTAINTY: Final = "Intervals and tests"
WRITING: Final = "Output"
HELPING_OTHER: Final = "Options"
GROUPS: Final[Mapping[str, tuple[str, ...]]] = {
    MEASURING: (
        "protocol", "metric", "by", "matrix", "gap", "threshold", "group", "identity", "languages", "fail_if", "max_regression",
        "baseline", "calibrate_on", "calibrate_key", "calibration", "seeds", "thresholds", "choose", "rates", "costs",
        "positive_only", "negative_only", "regression_by",
    ),
    READING: (
        "key", "column", "key_column", "score_column", "run_column", "score_kind", "positive", "negative", "positive_value", "higher", "on_nan",
        "dedupe", "allow_missing", "label_cut", "pair", "layout", "separator", "encoding", "decimal", "where", "human", "dataset", "media", "match",
        "weight", "weight_kind", "abstain", "missing", "labels", "read", "stream", "counts", "memory", "scratch", "engine",
        "cluster", "settings",
    ),
    CERTAINTY: ("bootstrap", "unit", "seed", "level", "interval", "stratify", "test", "correction", "force", "decide", "strict"),
    WRITING: (
        "output", "report", "json", "junit", "title", "name", "static", "no_samples", "redact_text", "samples", "budget", "pdf", "to",
        "raw", "percent", "no_intervals", "documented", "dump_errors", "max_errors", "schema", "help",
    ),
}  # fmt: skip
EXAMPLES: Final[Mapping[str, str]] = {
    "init": "hitmiss init scores.csv key.csv",
    "score": "hitmiss score scores.tsv --key key.tsv -m eer --by codec --bootstrap 1000",
    "toxicity": "hitmiss toxicity --pred-dir predictions --run-tag baseline",
    "threshold": "hitmiss threshold dev_en.csv --test test_en.csv --maximize f1",
    "triage": "hitmiss triage results.jsonl --by generator",
    "llm": "hitmiss llm dataset.jsonl --models openai/gpt-5 --output run",
    "compare": "hitmiss compare ours.tsv baseline.tsv --key key.tsv -m eer --by codec",
    "gate": "hitmiss gate results.json --fail-if 'eer > 0.05'",
    "plan": "hitmiss plan pilot.tsv --key key.tsv -m eer --width 0.01 --unit speaker",
    "report": "hitmiss report scores.tsv --key key.tsv -p asvspoof5 -o report.html",
    "export": "hitmiss export results.json --to latex",
    "validate": "hitmiss validate scores.tsv --key key.tsv",
    "verify": "hitmiss verify results.json scores.tsv --key key.tsv",
    "sql": "hitmiss sql trials --by codec",
    "review": "hitmiss review dataset.jsonl --store verdicts.db",
    "detect": "hitmiss detect --detector model.onnx --data eval.tsv --output run",
    "attack": "hitmiss attack --detector model.onnx --data test.npz --family pgd --strengths 0.1 0.5 --output run",
    "drift": "hitmiss drift run --by codec",
    "shortcuts": "hitmiss shortcuts eval.tsv --by seconds",
    "probe": "hitmiss probe embeddings.npz --key key.tsv --label codec",
    "list": "hitmiss list metrics",
    "show": "hitmiss show eer",
    "demo": "hitmiss demo --small",
    "doctor": "hitmiss doctor",
}


class GroupedCommand(Once, TyperCommand):
    """A verb whose help shows its options in groups, and an example."""

    def format_options(self, ctx: Context, formatter: HelpFormatter) -> None:
        """Write the options, each group under its title."""
        found: dict[str, list[tuple[str, str]]] = {}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            if record is None:
                continue
            kind = "Arguments" if param.param_type_name == "argument" else group_of(param.name or "")
            found.setdefault(kind, []).append(_helping_plain(record))
        for title in ("Arguments", HELPING_OTHER, *GROUPS):
            if title in found:
                with formatter.section(title):
                    formatter.write_dl(found[title])

    def format_epilog(self, ctx: Context, formatter: HelpFormatter) -> None:
        """Write one example."""
        del ctx
        example = EXAMPLES.get(self.name or "")
        if example:
            with formatter.section("Example"):
                indent = "  "
                lines = textwrap.wrap(example, formatter.width - 6, subsequent_indent=indent, break_on_hyphens=False)
                formatter.write(" \\\n".join(f"{indent}{line}" for line in lines) + "\n")


class Verbs(Once, TyperGroup):
    """The list of verbs with their full summaries."""

    def format_commands(self, ctx: Context, formatter: HelpFormatter) -> None:
        """Write one entry per verb, wrapped and never cut."""
        rows = []
        for name in self.list_commands(ctx):
            command = self.get_command(ctx, name)
            if command is not None and not command.hidden:
                rows.append((name, (command.help or "").strip().split("\n")[0].rstrip(".")))
        with formatter.section("Verbs"):
            formatter.write_dl(rows)


def _helping_plain(record: tuple[str, str]) -> tuple[str, str]:
    """Return an option without Python's name for the type of its values."""
    return record[0].replace("<list[str]>", "TEXT").replace("<str>", "TEXT").replace("<int>", "N"), record[1]


def group_of(name: str) -> str:
    """Return the group that an option belongs to.

    >>> group_of("bootstrap"), group_of("score_kind"), group_of("detector")
    ('Intervals and tests', 'Reading files', 'Options')
    """
    return next((title for title, names in GROUPS.items() if name in names), HELPING_OTHER)


def complete_values(command: Command) -> None:
    """Let the options of a command and its verbs complete their values."""
    for part in (command, *getattr(command, "commands", {}).values()):
        for param in part.get_params(typer.Context(part, **part.context_settings)):
            values = VALUES.get(param.name or "")
            if values is not None and hasattr(param, "_custom_shell_complete"):
                param._custom_shell_complete = _completing(values)


def _completing(values: Callable[[Mapping[str, object]], Iterator[str]]) -> Completing:
    def complete(ctx: Context, _param: Parameter, incomplete: str) -> list[str]:
        head, comma, tail = incomplete.rpartition(",")
        return [f"{head}{comma}{value}" for value in values(ctx.params) if value.startswith(tail)]

    return complete


def _metrics(_: Mapping[str, object]) -> Iterator[str]:
    from hitmiss.core.registry import all_metrics

    yield from sorted(all_metrics())


def _protocols(_: Mapping[str, object]) -> Iterator[str]:
    from hitmiss.evaluation.protocol import protocols

    yield from sorted(protocols())


def _columns(given: Mapping[str, object]) -> Iterator[str]:
    """Return the columns named in the first lines of the given files."""
    for name in ("key", "scores", "runs", "files", "predictions"):
        value = given.get(name)
        for path in value if isinstance(value, list | tuple) else [value]:
            if isinstance(path, str) and Path(path).is_file():
                with Path(path).open(encoding="utf-8", errors="replace") as file:
                    first = file.readline(100_000).rstrip("\r\n")
                yield from first.split("\t" if "\t" in first else "," if "," in first else " ")


def _words(*words: str) -> Callable[[Mapping[str, object]], Iterator[str]]:
    return lambda _given: iter(words)


VALUES: Final[Mapping[str, Callable[[Mapping[str, object]], Iterator[str]]]] = {
    "metric": _metrics,
    "protocol": _protocols,
    "by": _columns,
    "unit": _columns,
    "matrix": _columns,
    "group": _columns,
    "score_kind": _words("llr", "logit", "probability", "raw"),
    "on_nan": _words("refuse", "drop", "worst"),
    "interval": _words("auto", "percentile", "bca"),
    "calibration": _words("affine", "pav"),
    "to": _words("latex", "markdown", "csv", "xlsx", "json", "model-card"),
}


# ----------------------------------------------------------------------
# How a failure is reported: one sentence on stderr, an exit code, and with `--json` an object on stdout.
#
# | code | when                                                                                     |
# |------|------------------------------------------------------------------------------------------|
# | 0    | done; also when the reader of a pipe has closed it                                         |
# | 1    | a gate or a claim does not hold (`GateFailed`)                                             |
# | 2    | the command is wrong (`UsageError`, an unknown verb or option)                             |
# | 3    | the data is wrong (`DataError`), or a file is missing or cannot be read                    |
# | 4    | a run has not finished (`IncompleteRun`)                                                   |
# | 5    | this machine lacks something (`EnvironmentFault`, disk full, no memory), or a bug in hitmiss |
# | 130  | interrupted                                                                                |

SCHEMA = 1
INTERRUPTED = 130
SHOWN_FAULTS = 5


def exit_code(error: BaseException) -> int:
    """Return the exit code of a failure.

    >>> exit_code(DataError("a score is missing")), exit_code(FileNotFoundError()), exit_code(ZeroDivisionError())
    (3, 3, 5)
    """
    if isinstance(error, HitmissError | TyperException):
        return error.exit_code
    if isinstance(error, KeyboardInterrupt | Abort):
        return INTERRUPTED
    return DataError.exit_code if _is_about_a_file(error) else EnvironmentFault.exit_code


def sentence(error: BaseException) -> str:
    """Return the message for the user; control characters of untrusted text are escaped.

    >>> sentence(ZeroDivisionError("division by zero"))
    'ZeroDivisionError: division by zero; this is a bug in hitmiss, run again with --debug and report what it prints'
    """
    if isinstance(error, DataError):
        return "\n".join([escape_invisible(str(error)), *_fault_lines(error)])
    if isinstance(error, TyperException):
        return escape_invisible(f"{error.format_message()} See `{_command(error)} --help`.")
    if isinstance(error, HitmissError):
        return escape_invisible(str(error))
    if isinstance(error, KeyboardInterrupt | Abort):
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
    if isinstance(error, TyperException):
        return "usage"
    if isinstance(error, KeyboardInterrupt | Abort):
        return "interrupted"
    if isinstance(error, FileNotFoundError):
        return "missing-file"
    if isinstance(error, OSError):
        return "unreadable-file" if _is_about_a_file(error) else "environment"
    return "environment" if isinstance(error, MemoryError) else "bug"


def complete(error: BaseException, words: Sequence[str]) -> list[str]:
    """Return the commands of which one settles what an error leaves open: the given one with each of the choices.

    An option that a choice sets replaces the one that was given.

    >>> complete(DataError("which?", choices=[{"positive": "real"}, {"positive": "not real"}]), ["score", "a b.csv"])
    ["hitmiss score 'a b.csv' --positive real", "hitmiss score 'a b.csv' --positive 'not real'"]
    """
    found = []
    for choice in error.choices if isinstance(error, HitmissError) else ():
        names = {f"--{name.replace('_', '-')}" for name in choice}
        kept = [w for w, before in zip(words, ["", *words], strict=False) if not {w.partition("=")[0], before} & names]
        found.append(f"{shlex.join(['hitmiss', *kept])} {common.options(choice)}")
    return found


def document(error: BaseException, commands: Sequence[str] = ()) -> dict[str, object]:
    """Return what a failure prints with `--json`: its code, its message, every place with a fault, commands to choose.

    >>> document(DataError("a score is NaN", [Fault("nan-score", "it is NaN", file="s.csv", row=7)]))["error"]["code"]
    'nan-score'
    """
    faults = [asdict(fault) for fault in getattr(error, "faults", ())]
    message = sentence(error).partition("\n")[0]
    told: dict[str, object] = {"code": code_of(error), "message": message, "faults": faults}
    return {"schema": SCHEMA, "error": {**told, "commands": list(commands)} if commands else told}


def _command(error: TyperException) -> str:
    context = getattr(error, "ctx", None)
    return context.command_path if context is not None else "hitmiss"


def _fault_lines(error: DataError) -> list[str]:
    """List the places of faults, unless the message already contains the only one.

    >>> from hitmiss.core.errors import Fault
    >>> one = Fault("nan-score", "a score is NaN", file="s.csv", row=7)
    >>> _fault_lines(DataError("s.csv, row 7: a score is NaN; drop it", [one]))
    []
    >>> _fault_lines(DataError("2 scores are NaN", [one, Fault("nan-score", "a score is NaN", file="s.csv", row=9)]))
    ['  s.csv, row 7: a score is NaN', '  s.csv, row 9: a score is NaN']
    """
    if len(error.faults) == 1 and all(part in str(error) for part in _told(error.faults[0])):
        return []
    lines = [f"  {escape_invisible(str(fault))}" for fault in error.faults[:SHOWN_FAULTS]]
    left = len(error.faults) - SHOWN_FAULTS
    return [*lines, f"  … and {left} more; `hitmiss validate` lists all"] if left > 0 else lines


def _told(fault: Fault) -> list[str]:
    """Return the texts that a message must contain to cover a fault; the column is in the message where it matters."""
    parts = [fault.message, fault.file, fault.value, None if fault.row is None else f"row {fault.row}"]
    return [part for part in parts if part]


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


# ----------------------------------------------------------------------
# The command `hitmiss`: its verbs, its global options, and how it ends (exit codes: see above).

VERBS = (
    "init",
    "score",
    "toxicity",
    "threshold",
    "triage",
    "llm",
    "compare",
    "gate",
    "plan",
    "report",
    "export",
    "validate",
    "verify",
    "sql",
    "review",
    "detect",
    "attack",
    "drift",
    "shortcuts",
    "probe",
    "list",
    "show",
    "demo",
    "doctor",
)
"""Each verb is a file of this folder with a function of the same name (`list_` where the name is a Python built-in)."""
CALLING = ("detect", "attack", "llm")
"""Verbs that call code of the user's."""
EVERYWHERE = (("--debug",), ("--quiet", "-q"), ("--verbose",))
"""Options that stand anywhere in a command line, before the verb or after it."""
UNCOUNTED = ("review", "demo")
"""Verbs without a bar: a server has no end, and the demo runs other verbs one by one."""

SELDOM = 200_000
"""Garbage collection starts after this many new objects instead of 700: imports alone create half as many."""

SLEEPY = "4"
"""Threads for matrix products sleep until there is work. Otherwise each core first spins for 40 ms, once numpy is imported."""

ABOUT_SIGNING = "Sign every file that is written with this SSH key: FILE.sig beside each; see `verify --signers`."
ABOUT_PLUGIN = "A Python file that registers metrics, readers or protocols; may be repeated."

app = typer.Typer(
    name="hitmiss",
    help="Evaluate detectors: the official numbers, with honest intervals, per domain, in seconds.",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    invoke_without_command=True,
    context_settings=NAMES,
    cls=Verbs,
)


@app.callback()
def hitmiss(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and stop.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the whole traceback of a failure.")] = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Print results only: no messages, no conclusions.")
    ] = False,
    verbose: Annotated[bool, typer.Option("--verbose", help="Say what was done and how long it took.")] = False,
    plugin: Annotated[list[Path] | None, typer.Option(metavar="FILE", help=ABOUT_PLUGIN)] = None,
    sign: Annotated[Path | None, typer.Option(metavar="KEY", help=ABOUT_SIGNING)] = None,
) -> None:
    """Declare the options before the verb."""
    if version:
        common.out(f"hitmiss {__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        common.out(context.get_help())
        raise typer.Exit
    del debug, quiet, verbose  # `run` removes them wherever they occur; they are declared here for the help
    if sign is not None:
        from hitmiss.core import artifacts, signing

        signing.require_key(sign)
        artifacts.after_writing(lambda path: common.note(f"signed {signing.sign(path, sign)}"))
    if plugin:
        from hitmiss.core.registry import load_plugin_file

        for path in plugin:
            load_plugin_file(path)


def declare(verb: str) -> None:
    """Load a verb and declare it, once."""
    if any(command.name == verb for command in app.registered_commands):
        return
    module = import_module(f"hitmiss.cli.{verb}")
    function = getattr(module, "list_" if verb == "list" else verb)
    app.command(verb, cls=GroupedCommand, context_settings=NAMES)(function)
    app.registered_commands.sort(key=lambda command: VERBS.index(command.name or ""))


@contextmanager
def _as_options() -> Iterator[None]:
    """Let messages name options as the command line spells them."""
    before, errors.is_command = errors.is_command, True
    try:
        yield
    finally:
        errors.is_command = before


@_as_options()
def run(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code; only a result, or with `--json` an error, goes to stdout.

    Parameters
    ----------
    arguments
        The words after `hitmiss`, one per item: `["score", "scores.tsv", "-m", "eer"]`. None: those of this process.

    Returns
    -------
    int
        0, or the exit code of the failure: 1 a gate or a claim, 2 the request, 3 the data, 4 an unfinished run, 5 this
        machine.

    >>> run(["--version"])  # doctest: +ELLIPSIS
    hitmiss ...
    0
    """
    if arguments is None:  # one command per process: garbage collection over all imports would take a tenth of a second
        atexit.register(_mute_native_code)  # registered first, so it is called last
        gc.set_threshold(SELDOM)
        atexit.register(gc.freeze)
        os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", SLEEPY)
    words = list(sys.argv[1:] if arguments is None else arguments)
    common.begin()
    if words == ["--version"]:
        common.out(f"hitmiss {__version__}")
        return 0
    begun = time.perf_counter()
    debug, is_json = "--debug" in words, "--json" in words
    try:
        with _plain_warnings():
            values = _value_places(words, _parser(_known(words)))
            debug, quiet, verbose = (_has(words, values, *names) for names in EVERYWHERE)
            is_json = _has(words, values, "--json")
            words = [word for at, word in enumerate(words) if at in values or word not in chain(*EVERYWHERE)]
            with common.quietly(quiet):
                code = _dispatch(settle(words))
            sys.stdout.flush()
            if verbose:
                common.note(
                    f"hitmiss {__version__}, Python {sys.version.split()[0]}: {time.perf_counter() - begun:.2f} s"
                )
    except BrokenPipeError:
        _leave_the_pipe()
        return 0
    except (Exception, KeyboardInterrupt) as error:
        if debug:
            traceback.print_exc()
        commands = complete(error, words)
        common.note(
            "\n".join([f"hitmiss: {sentence(error)}", *(f"  {escape_invisible(command)}" for command in commands)])
        )
        if is_json and not common.has_result():  # a gate that failed has already printed its own object
            common.out_json(document(error, commands))
        return exit_code(error)
    return code


def _dispatch(words: list[str]) -> int:
    """Parse and call the verb. Interrupts arrive as a code, a broken pipe as SystemExit; both are undone here."""
    command = _parser(_known(words))
    if any(name.endswith("_COMPLETE") for name in os.environ):
        complete_values(command)
    verb = _known(words) or ""
    try:
        with (
            stop_on_terminate(),
            artifacts.guarded(),
            nullcontext() if verb in ("", *UNCOUNTED) else common.shown(verb),
        ):
            code = command.main(words, prog_name="hitmiss", standalone_mode=False)
    except SystemExit as stop:
        if isinstance(stop.__context__, BrokenPipeError):
            raise stop.__context__ from None
        if verb in CALLING:
            raise DataError(
                f"the code of the model ended the program (exit code {stop.code}); have it raise an error instead",
                code="model-exited",
            ) from None
        raise
    if code == INTERRUPTED:
        raise KeyboardInterrupt
    return code if isinstance(code, int) else 0


@cache
def _parser(only: str | None) -> Command:
    """Return the parser of one verb, or of all; a program that runs many commands builds each once."""
    for verb in [only] if only else VERBS:
        declare(verb)
    command = typer.main.get_command(_with_one_verb(only) if only else app)
    take_plainly(command)
    return command


def _mute_native_code() -> None:
    """Silence native libraries at exit: DuckDB lists its own leaks on stderr, which do not concern the command."""
    if "duckdb" in sys.modules:
        with suppress(OSError, ValueError):
            sys.stderr.flush()
            with open(os.devnull, "w") as nowhere:  # noqa: PTH123  # Path is not needed at the end
                os.dup2(nowhere.fileno(), 2)


def _known(words: Sequence[str]) -> str | None:
    """Return the verb of a command line if there is such a verb."""
    verb = verb_of(words)
    return verb if verb in VERBS else None


def _value_places(words: Sequence[str], command: Command) -> set[int]:
    """Return where words are values of an option or stand after `--`, whatever they look like: `--title -q`."""
    verb = _known(words)
    spaced = SPACED.get(verb or "", ())  # these take no word that looks like an option
    parts = (command, *([command.commands[verb]] if verb else []))  # type: ignore[attr-defined]
    params = [p for part in parts for p in part.params if p.param_type_name == "option" and not p.is_flag]
    valued = {name for p in params for name in p.opts if name not in spaced}
    found: set[int] = set()
    for at, word in enumerate(words):
        if word == "--" and at not in found:
            return found | {*range(at, len(words))}
        if at not in found and dashed(word) in valued:
            found.add(at + 1)
    return found


def _has(words: Sequence[str], values: set[int], *names: str) -> bool:
    """Say whether an option of all verbs is among the words that are not values."""
    return any(word in names for at, word in enumerate(words) if at not in values)


def _with_one_verb(verb: str) -> typer.Typer:
    """Return the command with only one verb: building the options of all verbs takes longer than many verbs run."""
    alone = copy(app)
    alone.registered_commands = [command for command in app.registered_commands if command.name == verb]
    return alone


@contextmanager
def _plain_warnings() -> Iterator[None]:
    """Print warnings of libraries as one line on stderr instead of two with a place in the code."""

    def show(message: Warning | str, *_: object, **__: object) -> None:
        common.note(f"hitmiss: warning: {escape_invisible(str(message))}")

    with warnings.catch_warnings():
        warnings.showwarning = show
        yield


def _leave_the_pipe() -> None:
    """Discard buffered output after the reader closed the pipe, so that the interpreter does not complain at exit."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    with suppress(OSError, ValueError):
        os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
