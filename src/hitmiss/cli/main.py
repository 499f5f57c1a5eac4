"""The command `hitmiss`: its verbs, its global options, and how it ends."""

from __future__ import annotations

import atexit
import gc
import os
import sys
import time
import traceback
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Final

from hitmiss._version import __version__
from hitmiss.cli import printing, progress_bar
from hitmiss.core import artifacts
from hitmiss.core.errors import DataError, UnknownName
from hitmiss.core.text import escape_invisible

if TYPE_CHECKING:
    import click

    from hitmiss.cli.options import Verb

JOBS: Final[Mapping[str, tuple[str, ...]]] = {
    "Measure": ("score", "toxicity", "triage", "drift", "threshold", "calibrate", "fuse", "prevalence", "audit"),
    "Compare and decide": ("compare", "board", "replace", "lock", "gate", "plan", "verify"),
    "Run models": ("detect", "attack", "llm", "probe", "shortcuts"),
    "People": ("review", "annotators"),
    "Files": ("init", "validate", "convert", "report", "export", "sql"),
    "Help": ("list", "show", "demo", "doctor"),
}
"""The verbs by job. Each is a file of this folder with a function of the same name (`list_` for `list`)."""
VERBS: Final = tuple(verb for verbs in JOBS.values() for verb in verbs)
CALLING: Final = ("detect", "attack", "llm")
"""Verbs that call code of the user's."""
UNCOUNTED: Final = ("review", "demo")
"""Verbs without a bar: a server has no end, and the demo runs other verbs one by one."""
ABOUT: Final = "Evaluate detectors: the official numbers, with honest intervals, per domain, in seconds."
COMPLETION: Final = "_HITMISS_COMPLETE"
"""The variable by which a shell asks for completions."""

SELDOM = 200_000
"""Garbage collection starts after this many new objects instead of 700: imports alone create half as many."""

SLEEPY = "4"
"""Threads for matrix products sleep until there is work. Otherwise each core first spins for 40 ms, once numpy is imported."""


@cache
def find_verb(name: str) -> Verb:
    """Return a verb with its options; only its own file is loaded."""
    from hitmiss.cli.options import Verb

    if name not in VERBS:
        raise UnknownName("verb", name, VERBS)
    module = import_module(f"hitmiss.cli.{name}")
    return Verb(name, getattr(module, "list_" if name == "list" else name))


@cache
def _global_options() -> dict[str, click.Option]:
    """Return the options before the verb, by their spellings."""
    import click

    options = (
        click.Option(["--version"], is_flag=True, help="Print the version and stop."),
        click.Option(["--debug"], is_flag=True, help="Show the whole traceback of a failure."),
        click.Option(["--quiet", "-q"], is_flag=True, help="Print results only: no messages, no conclusions."),
        click.Option(["--verbose"], is_flag=True, help="Say what was done and how long it took."),
        click.Option(
            ["--plugin"],
            multiple=True,
            metavar="FILE",
            help="A Python file that registers metrics, readers or protocols; may be repeated.",
        ),
        click.Option(
            ["--sign"],
            metavar="KEY",
            help="Sign every file that is written with this SSH key: FILE.sig beside each; see `verify --signers`.",
        ),
        click.Option(
            ["--completion"],
            metavar="bash|zsh|fish",
            help="Print the shell script that completes verbs, options and values.",
        ),
    )
    return {spelling: option for option in options for spelling in option.opts}


def _split(words: Sequence[str]) -> tuple[list[str], str, list[str]]:
    """Split a command line into the words before the verb, the verb, and the words after it.

    >>> _split(["--plugin", "score", "-q", "toxicity", "attack"])
    (['--plugin', 'score', '-q'], 'toxicity', ['attack'])
    """
    at = 0
    while at < len(words) and words[at].startswith("-") and words[at] != "--":
        at += 2 if words[at] in ("--plugin", "--sign", "--completion") else 1
    return list(words[:at]), words[at] if at < len(words) else "", list(words[at + 1 :])


@dataclass
class _State:
    """What is known about a command before it ends: it decides how a failure is reported."""

    everywhere: set[str]
    """The options of every verb that stand in the words: `debug`, `quiet`, `verbose`."""
    is_json: bool


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
    _open_closed_streams()
    printing.begin()
    if words == ["--version"]:
        printing.out(f"hitmiss {__version__}")
        return 0
    if arguments is None and COMPLETION in os.environ:
        from click.shell_completion import shell_complete

        return shell_complete(_group(), {}, "hitmiss", COMPLETION, os.environ[COMPLETION])
    begun, state = time.perf_counter(), _State({"debug"} & {word[2:] for word in words}, "--json" in words)
    try:
        with _plain_warnings():
            code = _run(words, state)
            sys.stdout.flush()
            if "verbose" in state.everywhere:
                printing.note(
                    f"hitmiss {__version__}, Python {sys.version.split()[0]}: {time.perf_counter() - begun:.2f} s"
                )
    except BrokenPipeError:
        _leave_the_pipe()
        return 0
    except (Exception, KeyboardInterrupt) as error:
        from hitmiss.cli.failures import completed_commands, document, exit_code, sentence

        if "debug" in state.everywhere:
            traceback.print_exc()
        commands = completed_commands(error, words)
        printing.note(
            "\n".join([f"hitmiss: {sentence(error)}", *(f"  {escape_invisible(command)}" for command in commands)])
        )
        if state.is_json and not printing.has_result():  # a gate that failed has already printed its own object
            printing.out_json(document(error, commands))
        return exit_code(error)
    return code


def _open_closed_streams() -> None:
    """Open what was closed when the process began (`>&-`), so that no file gets its number and nothing written is an error."""
    if None not in (sys.stdin, sys.stdout, sys.stderr):
        return
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free number, which is this one
    is_lost = sys.stdout is None
    sys.stdin = sys.stdin or os.fdopen(0, "r", encoding="utf-8", closefd=False)
    sys.stdout = sys.stdout or os.fdopen(1, "w", encoding="utf-8", closefd=False)
    sys.stderr = sys.stderr or os.fdopen(2, "w", encoding="utf-8", closefd=False)
    if is_lost:
        printing.note("the standard output is closed: what would be printed is lost; the exit code and files are not")


def _run(words: list[str], state: _State) -> int:
    """Run a command line; what stands anywhere in it is noted in `state` as soon as it is known."""
    from hitmiss.cli.words import parse

    before, name, after = _split(words)
    values: Mapping[str, Sequence[str]] = {}
    if before or not name or name.startswith("-"):
        first = parse(before, _global_options())
        state.everywhere |= first.everywhere
        if _is_done_without_verb(first.words, first.values, name):
            return 0
        values = first.values
    verb = find_verb(name)
    parsed = parse(after, verb.by_spelling)
    state.everywhere |= parsed.everywhere
    state.is_json = "--json" in parsed.values
    for word in parsed.words:
        if word in ("-h", "--help", "--help-all"):
            from hitmiss.cli.help import verb_help

            printing.out(verb_help(verb, is_whole=word == "--help-all"))
            return 0
        if word == "--":
            break
    with artifacts.guarded(), printing.quietly("quiet" in state.everywhere):
        if values:
            _prepare(values)
        return _call(verb, parsed.words)


def _is_done_without_verb(words: Sequence[str], values: Mapping[str, Sequence[str]], name: str) -> bool:
    """Do what is asked without a verb, and return whether that was all."""
    import click

    for word in words:
        if word.startswith("-") and word.partition("=")[0] not in (*_global_options(), "-h", "--help", "--help-all"):
            raise click.NoSuchOption(word, possibilities=[*_global_options()])
    if "--version" in values:
        printing.out(f"hitmiss {__version__}")
    elif "--completion" in values:
        printing.out(_completion_script(values["--completion"][0]))
    elif not name or {"-h", "--help", "--help-all"} & {*words}:
        from hitmiss.cli.help import overview

        options = [*dict.fromkeys(_global_options().values())]
        printing.out(overview(ABOUT, [(job, [*map(find_verb, verbs)]) for job, verbs in JOBS.items()], options))
    else:
        return False
    return True


def _prepare(values: Mapping[str, Sequence[str]]) -> None:
    """Load plug-ins, and sign what is written."""
    if "--sign" in values:
        from hitmiss.core import signing

        key = Path(values["--sign"][0])
        signing.require_key(key)
        artifacts.after_writing(lambda path: printing.note(f"signed {signing.sign(path, key)}"))
    for path in values.get("--plugin", ()):
        from hitmiss.core.registry import load_plugin_file

        load_plugin_file(Path(path))


def _call(verb: Verb, words: list[str]) -> int:
    """Check the options of a verb and call it; return its exit code."""
    import click

    from hitmiss.runs.signals import stop_on_terminate

    try:
        with (
            stop_on_terminate(),
            nullcontext() if verb.name in UNCOUNTED else progress_bar.shown(verb.name or ""),
        ):
            context = verb.make_context(f"hitmiss {verb.name}", words)
            with context:
                code = verb.invoke(context)
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except SystemExit as stop:
        if verb.name in CALLING:
            raise DataError.of("model-exited", code_2=stop.code) from None
        raise
    return code if isinstance(code, int) else 0


def _completion_script(shell: str) -> str:
    """Return the script that makes a shell complete our words."""
    from click.shell_completion import get_completion_class

    kind = get_completion_class(shell)
    if kind is None:
        raise UnknownName("shell", shell, ("bash", "zsh", "fish"))
    return kind(_group(), {}, "hitmiss", COMPLETION).source()


def _group() -> click.Group:
    """Return the verbs as a group, for completion."""
    import click

    class Verbs(click.Group):
        def list_commands(self, ctx: click.Context) -> list[str]:
            del ctx
            return [*VERBS]

        def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
            del ctx
            return find_verb(cmd_name) if cmd_name in VERBS else None

    return Verbs("hitmiss", params=[*dict.fromkeys(_global_options().values())])


def _mute_native_code() -> None:
    """Silence native libraries at exit: DuckDB lists its own leaks on stderr, which do not concern the command."""
    if "duckdb" in sys.modules:
        with suppress(OSError, ValueError):
            sys.stderr.flush()
            with open(os.devnull, "w") as nowhere:  # noqa: PTH123  # Path is not needed at the end
                os.dup2(nowhere.fileno(), 2)


@contextmanager
def _plain_warnings() -> Iterator[None]:
    """Print warnings of libraries as one line on stderr instead of two with a place in the code."""

    def show(message: Warning | str, *_: object, **__: object) -> None:
        printing.note(f"hitmiss: warning: {escape_invisible(str(message))}", always=True)

    with warnings.catch_warnings():
        warnings.showwarning = show
        yield


def _leave_the_pipe() -> None:
    """Discard buffered output after the reader closed the pipe, so that the interpreter does not complain at exit."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    with suppress(OSError, ValueError):
        os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
