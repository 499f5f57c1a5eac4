"""The command `hitmiss`: its verbs, its global options, and how it ends (exit codes: see `failing`)."""

from __future__ import annotations

import atexit
import gc
import os
import sys
import time
import traceback
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from copy import copy
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer

from hitmiss import artifacts
from hitmiss._version import __version__
from hitmiss.cli import failing, helping, printing, progressing, spaced, supervising
from hitmiss.cli.plain_values import take_plainly
from hitmiss.visible import visible

VERBS = (
    "score",
    "toxicity",
    "threshold",
    "triage",
    "llm",
    "compare",
    "gate",
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
"""Each verb is a file of this folder with a function of the same name (`list_` where the name is Python's own)."""
UNCOUNTED = ("review", "demo")
"""Verbs without a bar: a server has no end, and the demo shows other verbs one by one."""

SELDOM = 200_000
"""New objects after which cycles among them are looked for, instead of 700: importing makes half as many."""

ABOUT_SIGNING = "Sign every file that is written with this SSH key: FILE.sig beside each; see `verify --signers`."
ABOUT_PLUGIN = "A Python file that registers metrics, readers or protocols; may be repeated."

app = typer.Typer(
    name="hitmiss",
    help="Evaluate detectors: the official numbers, with honest intervals, per domain, in seconds.",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    invoke_without_command=True,
    context_settings=helping.NAMES,
    cls=helping.Verbs,
)


@app.callback()
def hitmiss(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and stop.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the whole traceback of a failure.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Results alone: no messages, no conclusions.")] = False,
    verbose: Annotated[bool, typer.Option("--verbose", help="Say what was done and how long it took.")] = False,
    plugin: Annotated[list[Path] | None, typer.Option(metavar="FILE", help=ABOUT_PLUGIN)] = None,
    sign: Annotated[Path | None, typer.Option(metavar="KEY", help=ABOUT_SIGNING)] = None,
) -> None:
    """The options before the verb."""
    if version:
        printing.out(f"hitmiss {__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        printing.out(context.get_help())
        raise typer.Exit
    del debug, quiet, verbose  # `run` takes them out wherever they stand; they are declared here for the help
    if sign is not None:
        from hitmiss import signatures

        signatures.require_key(sign)
        artifacts.after_writing(lambda path: printing.note(f"signed {signatures.sign(path, sign)}"))
    if plugin:
        from hitmiss.registry import load_plugin_file

        for path in plugin:
            load_plugin_file(path)


def declare(verb: str) -> None:
    """Load a verb and declare it, once."""
    if any(command.name == verb for command in app.registered_commands):
        return
    module = import_module(f"hitmiss.cli.{verb}")
    function = getattr(module, "list_" if verb == "list" else verb)
    app.command(verb, cls=helping.GroupedCommand, context_settings=helping.NAMES)(function)
    app.registered_commands.sort(key=lambda command: VERBS.index(command.name or ""))


def run(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and give its exit code; nothing but a result, or with `--json` an error, ever goes to stdout.

    >>> run(["--version"])  # doctest: +ELLIPSIS
    hitmiss ...
    0
    """
    if (
        arguments is None
    ):  # one command a process: looking for cycles among all it has imported takes a tenth of a second
        gc.set_threshold(SELDOM)
        atexit.register(gc.freeze)
    words = list(sys.argv[1:] if arguments is None else arguments)
    if arguments is None and supervising.is_wanted(words):
        return supervising.watched(words)
    code = _run(words)
    if arguments is None:
        supervising.tell_end()
    return code


def _run(words: list[str]) -> int:
    """One command in this process."""
    printing.begin()
    if words == ["--version"]:
        printing.out(f"hitmiss {__version__}")
        return 0
    debug, words = _taken(words, "--debug")
    quiet, words = _taken(words, "--quiet", "-q")
    verbose, words = _taken(words, "--verbose")
    begun = time.perf_counter()
    try:
        with _plain_warnings():
            with printing.quietly(quiet):
                code = _dispatch(spaced.settle(words))
            sys.stdout.flush()
            if verbose:
                printing.note(
                    f"hitmiss {__version__}, Python {sys.version.split()[0]}: {time.perf_counter() - begun:.2f} s"
                )
    except BrokenPipeError:
        _leave_the_pipe()
        return 0
    except (Exception, KeyboardInterrupt) as error:
        if debug:
            traceback.print_exc()
        printing.note(f"hitmiss: {failing.sentence(error)}")
        if "--json" in words and not printing.has_result():  # a gate that failed has said so in its own object
            printing.out_json(failing.document(error))
        return failing.exit_code(error)
    return code


def _dispatch(words: list[str]) -> int:
    """Parse and call the verb. Interrupts come back as a code, a broken pipe as SystemExit: both are undone here."""
    first = words[0] if words else ""
    for verb in [first] if first in VERBS else VERBS:
        declare(verb)
    command = typer.main.get_command(_with_one_verb(first) if first in VERBS else app)
    take_plainly(command)
    if any(name.endswith("_COMPLETE") for name in os.environ):
        helping.complete_values(command)
    verb = next((word for word in words if word in VERBS), "")
    try:
        with artifacts.guarded(), nullcontext() if verb in ("", *UNCOUNTED) else progressing.shown(verb):
            code = command.main(words, prog_name="hitmiss", standalone_mode=False)
    except SystemExit as stop:
        if isinstance(stop.__context__, BrokenPipeError):
            raise stop.__context__ from None
        raise
    if code == failing.INTERRUPTED:
        raise KeyboardInterrupt
    return code if isinstance(code, int) else 0


def _taken(words: list[str], *names: str) -> tuple[bool, list[str]]:
    """Whether an option of all verbs is there, before `--`, and the words without it."""
    end = words.index("--") if "--" in words else len(words)
    kept = [word for at, word in enumerate(words) if at >= end or word not in names]
    return len(kept) < len(words), kept


def _with_one_verb(verb: str) -> typer.Typer:
    """The command with no verb but one: to build the options of all takes longer than many verbs run."""
    alone = copy(app)
    alone.registered_commands = [command for command in app.registered_commands if command.name == verb]
    return alone


@contextmanager
def _plain_warnings() -> Iterator[None]:
    """Warnings of libraries as one line on stderr instead of two with a place in the code."""

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        printing.note(f"hitmiss: warning: {visible(str(message))}")

    with warnings.catch_warnings():
        warnings.showwarning = show
        yield


def _leave_the_pipe() -> None:
    """Nobody reads any more: what is still buffered goes nowhere, so that the interpreter does not complain at exit."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    with suppress(OSError, ValueError):
        os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
