"""What all verbs share: groups of options, output and progress."""

from __future__ import annotations

import dataclasses
import inspect
import json
import math
import os
import shutil
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Generic, Protocol, TextIO, TypeVar, get_args, get_type_hints

import typer

from hitmiss.core import progress
from hitmiss.core.design import Design, Taken, names_of, parse_by, parse_gaps
from hitmiss.core.errors import HitmissError, UnknownName
from hitmiss.core.kinds import Json, JsonObject
from hitmiss.core.read_spec import ReadSpec
from hitmiss.core.sampling import METHODS
from hitmiss.core.text import encodable, escape_invisible, wrap

if TYPE_CHECKING:
    from rich.progress import Progress as Drawn

    from hitmiss.core.results import Estimate
    from hitmiss.core.settings import Settings
    from hitmiss.core.verdict import Verdict


# ----------------------------------------------------------------------
# How the verbs write: results to stdout, everything else to stderr, without styling where stderr is not a terminal.
#
# Text that comes from files is shown with its control characters escaped, so that no id can move the cursor, colour
# the screen, reverse the reading order or hide from the reader.


def out(text: str = "") -> None:
    """Print one or several lines of the result to stdout."""
    _result(escape_invisible(text, keep="\n"))


def note(text: str) -> None:
    """Print a message to stderr; with --quiet only if it reports how the command ended."""
    if not _quiet[-1] or text.startswith("hitmiss: "):
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


def pairs(option: str, texts: Sequence[str]) -> dict[str, str]:
    """Parse `name=value` arguments into a mapping.

    >>> pairs("--column", ["item=utt", "score=llr"])
    {'item': 'utt', 'score': 'llr'}
    """
    from hitmiss.core.errors import UsageError

    found = dict(text.partition("=")[::2] for text in texts)
    for name, value in found.items():
        if not name or not value:
            raise UsageError(f"{option} {name!r}: write name=value, for example item=utt", code="bad-pair")
    return found


def options(choice: Mapping[str, str]) -> str:
    """Write options of a choice as a command line takes them.

    >>> options({"positive": "not real", "positive_value": "1"})
    "--positive 'not real' --positive-value 1"
    """
    import shlex

    return shlex.join(part for name, value in choice.items() for part in (f"--{name.replace('_', '-')}", value))


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


# ----------------------------------------------------------------------
# Progress of a long command: a bar on a terminal after more than two seconds, always on stderr, never in a pipe.
#
# Without a terminal, runs that take hours print a line every half minute.

AFTER_SECONDS = 2.0
EVERY_SECONDS = 30.0
ALL_BUT = 1.0 - 1e-9
LONGEST = 90
"""Width of the text of a bar, in characters."""


def is_shown() -> bool:
    """Say whether progress can be seen: stderr is a terminal that can draw."""
    return sys.stderr.isatty() and os.environ.get("TERM") != "dumb"


@contextmanager
def shown(what: str) -> Iterator[None]:
    """Show a bar while the block runs, from its third second on, if stderr is a terminal."""
    if not is_shown():
        yield
        return
    bar = Bar(what)
    try:
        with progress.listen(bar):
            yield
    finally:
        bar.close()


class Bar:
    """A bar that appears after a delay, hides when something is printed, and returns if the work takes long again."""

    def __init__(self, what: str, after: float | None = None) -> None:
        self._after = AFTER_SECONDS if after is None else after
        self._name = what
        self._state: tuple[str, float, float | None, float | None] = ("", 0, None, None)
        self._furthest: float | None = None
        self._began = (time.monotonic(), 0.0)
        self._lock = threading.RLock()
        self._drawn: Drawn | None = None
        self._timer: threading.Timer | None = None
        self._wait()

    def update(self, what: str, done: float, total: float | None, share: float | None) -> None:
        """Record the progress, and show it if the bar is visible."""
        with self._lock:
            self._state = (what, done, total, share)
            if share is None or self._furthest is None or share < self._furthest:
                self._began = (time.monotonic(), share or 0.0)  # another step, with its own speed
            self._furthest = share
            if self._drawn is not None:
                self._update()

    def clear(self) -> None:
        """Hide the bar and start the delay again."""
        with self._lock:
            self.close()
            self._wait()

    def close(self) -> None:
        """Hide the bar for good."""
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
                return  # it was closed while this thread waited for the lock
            said = (TextColumn(f"{{task.fields[{field}]}}", markup=False) for field in ("left", "said"))
            columns = (BarColumn(30), TaskProgressColumn(), *said, TimeElapsedColumn())
            # rich would also capture stdout and send results to stderr
            console = Console(stderr=True)
            self._drawn = Drawn(*columns, console=console, transient=True, redirect_stdout=False, redirect_stderr=False)
            self._drawn.add_task("", total=None, left="", said="")
            self._update()
            self._drawn.start()

    def _update(self) -> None:
        if self._drawn is None:
            return
        what, done, total, share = self._state
        count = f"{done:,.0f} of {total:,.0f}" if total is not None else ""
        text = escape_invisible(": ".join(filter(None, (self._name, ", ".join(filter(None, (what, count)))))))
        said = f"{text[: LONGEST - 1]}…" if len(text) > LONGEST else text
        task = self._drawn.task_ids[0]
        # another step may follow: a complete bar would stop rich's clock for good
        total = None if share is None else 1.0
        completed = min(share or 0.0, ALL_BUT)
        self._drawn.update(task, said=said, left=self._left(share), total=total, completed=completed)

    def _left(self, share: float | None) -> str:
        """Estimate the remaining time of the step from its speed since it was first seen."""
        began, at = self._began
        if share is None or share - at <= 0.0:
            return ""
        seconds = (time.monotonic() - began) * (1.0 - share) / (share - at)
        return f"{duration(seconds)} left"


def duration(seconds: float) -> str:
    """Format a duration for a bar.

    >>> duration(3.2), duration(75), duration(4000)
    ('4 s', '1 min 15 s', '1 h 6 min')
    """
    whole = math.ceil(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


class Run(Protocol):
    """A run in progress, as the bar sees it."""

    n_before: int

    @property
    def n_done(self) -> int:
        """The number of items done by this process."""

    @property
    def n_total(self) -> int:
        """The total number of items."""

    def line(self) -> str:
        """Describe the progress in words."""


class Progress:
    """A callback for long runs, which may be called often: it updates the bar, or prints a line every half minute."""

    def __init__(self) -> None:
        self._said = time.monotonic()

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        """Do nothing: the bar belongs to the command and ends with it."""

    def __call__(self, run: Run) -> None:
        """Show a run; the bar itself shows how much is done and how long the rest takes."""
        said = [part for part in run.line().split(", ")[1:] if not part.endswith(" left")]
        progress.report(", ".join(said), run.n_before + run.n_done, run.n_total)
        self._say(run.line)

    def count(self, done: int, total: int) -> None:
        """Show how many of how many are done."""
        progress.report("", done, total)
        self._say(lambda: f"{done:,} of {total:,}")

    def _say(self, line: Callable[[], str]) -> None:
        if is_shown() or time.monotonic() - self._said < EVERY_SECONDS:
            return
        self._said = time.monotonic()
        note(line())


# ----------------------------------------------------------------------
# Option groups: options that several verbs share, declared once.
#
# A group is a function: its parameters are options, its result is passed to the verb. `grouped(reading=reading)` puts
# the options of the group in place of the verb's parameter `reading`. An option that the verb declares itself replaces
# that of the group; `partial(group, bootstrap=1000)` is a group with another default, `without(group, "gap")` one with
# fewer options.

T = TypeVar("T")
SETTINGS = "Settings file instead of the folder's hitmiss.toml (see `hitmiss init`); none for no file."


def reading(
    column: Annotated[list[str] | None, typer.Option(help="Our name = the file's column, `item=utt`.")] = None,
    key_column: Annotated[
        list[str] | None, typer.Option(help="The same for the key, if its columns have other names.")
    ] = None,
    score_column: Annotated[
        list[str] | None, typer.Option(help="A score column; repeat it for several systems.")
    ] = None,
    run_column: Annotated[
        list[str] | None, typer.Option(help="A column that names the run, such as config; may be repeated.")
    ] = None,
    score_kind: Annotated[str | None, typer.Option(help="llr, logit, probability or raw.")] = None,
    positive: Annotated[str | None, typer.Option(help="Name of the positive class.")] = None,
    negative: Annotated[str | None, typer.Option(help="Name of the other class.")] = None,
    positive_value: Annotated[
        str | None, typer.Option(help="Value of the positive class in the label column, such as 1.")
    ] = None,
    higher: Annotated[str | None, typer.Option(help="The class that a higher score means.")] = None,
    abstain: Annotated[list[str] | None, typer.Option(help="A word in the decisions that means no answer.")] = None,
    where: Annotated[
        list[str] | None, typer.Option(help="Rows to keep, `codec=C01`; repeat it for more values or columns.")
    ] = None,
    on_nan: Annotated[str | None, typer.Option(help="refuse, drop or worst.")] = None,
    dedupe: Annotated[bool, typer.Option("--dedupe", help="Merge identical rows.")] = False,
    allow_missing: Annotated[
        bool, typer.Option("--allow-missing", help="Score only the ids that both files have.")
    ] = False,
    weight: Annotated[str | None, typer.Option(help="Column with the weight of each row; needs --weight-kind.")] = None,
    weight_kind: Annotated[
        str | None,
        typer.Option(help="frequency (a row stands for so many rows) or sampling (1 / the chance to be sampled)."),
    ] = None,
    match: Annotated[
        str | None, typer.Option(help="Match ids exactly (exact), or without folder and suffix (stem).")
    ] = None,
    layout: Annotated[
        str | None, typer.Option(help="A layout (see `list readers`) instead of recognising one.")
    ] = None,
    pair: Annotated[
        list[str] | None, typer.Option(help="In a wide file: a label column = its score column, `toxic=toxic_prob`.")
    ] = None,
    label_cut: Annotated[
        float | None, typer.Option(help="Labels are shares of annotators: positive from this share on, such as 0.5.")
    ] = None,
    missing: Annotated[str | None, typer.Option(help="refuse, or drop rows without label, score or decision.")] = None,
    separator: Annotated[str | None, typer.Option(help="Separator of the columns.")] = None,
    encoding: Annotated[str | None, typer.Option(help="Encoding of the files.")] = None,
    decimal: Annotated[str | None, typer.Option(help="Decimal sign, `.` or `,`.")] = None,
    settings: Annotated[str | None, typer.Option(metavar="FILE", help=SETTINGS)] = None,
) -> ReadSpec:
    """Collect the options about reading files, which every verb that reads scores has."""
    del settings  # `Grouped` takes it, because it is about all groups of a verb
    return ReadSpec().changed(
        columns=pairs("--column", column or []),
        key_columns=pairs("--key-column", key_column or []),
        score_columns=tuple(score_column or ()),
        runs=tuple(run_column or ()),
        score_kind=score_kind,
        positive=positive,
        negative=negative,
        positive_value=positive_value,
        higher=higher,
        abstain=tuple(abstain or ()),
        where=_filters(where or []),
        on_nan=on_nan,
        dedupe=dedupe,
        allow_missing=allow_missing,
        weight=weight,
        weight_kind=weight_kind,
        match=match,
        layout=layout,
        pairs=pairs("--pair", pair or []),
        label_cut=label_cut,
        missing=missing,
        separator=separator,
        encoding=encoding,
        decimal=decimal,
    )


def design(
    protocol: Annotated[str | None, typer.Option("--protocol", "-p", help="A protocol, or a .toml file.")] = None,
    metric: Annotated[list[str] | None, typer.Option("--metric", "-m", help="A metric; may be repeated.")] = None,
    by: Annotated[list[str] | None, typer.Option(help="Slice column(s), `codec` or `codec,codec_q`.")] = None,
    matrix: Annotated[str | None, typer.Option(help="Two slice columns as a matrix, `attack,codec`.")] = None,
    bootstrap: Annotated[int | None, typer.Option(help="Replicates of the bootstrap; 0 for none.")] = None,
    unit: Annotated[
        list[str] | None,
        typer.Option(help="Column(s) whose values are resampled as a whole, `speaker` or `speaker,attack`."),
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the resampling.")] = 0,
    level: Annotated[float, typer.Option(help="Level of the intervals.")] = 0.95,
    interval: Annotated[str, typer.Option(help="auto, percentile or bca.")] = "auto",
    stratify: Annotated[
        bool | None, typer.Option(help="Resample units within each class (refused if one holds both).")
    ] = None,
    gap: Annotated[
        list[str] | None,
        typer.Option(help="In-domain value(s), `codec=NONE` or `codec=in:out`; or none; may be repeated."),
    ] = None,
    threshold: Annotated[
        float | None, typer.Option(help="Decide at this threshold (score >= t), for accuracy, f1 …")
    ] = None,
    require: Annotated[
        list[str] | None,
        typer.Option(help="What must be shown, as 'eer.high <= 0.05', or requirements.toml; may be repeated."),
    ] = None,
    negative_only: Annotated[
        list[str] | None, typer.Option(help="A column about negatives; each slice is measured with all positives.")
    ] = None,
    positive_only: Annotated[
        list[str] | None, typer.Option(help="A column about positives; each slice is measured with all negatives.")
    ] = None,
) -> Design:
    """Collect the options about what is measured, which every verb that measures has."""
    from hitmiss.evaluation.protocol import find_protocol, stated

    if interval not in METHODS:
        raise UnknownName("kind of interval", interval, METHODS)
    chosen = find_protocol(protocol) if protocol else None
    asked = Design().changed(
        protocol=chosen.undrawn if chosen is not None and bootstrap == 0 else chosen,
        metrics=tuple(metric or ()),
        by=parse_by(by or ()),
        matrix=names_of(matrix),
        gap=parse_gaps(gap or ()),
        unit=names_of(",".join(unit) if unit else None),
        bootstrap=bootstrap or 0,
        seed=seed,
        level=level,
        interval=interval,
        stratify=stratify,
        threshold=threshold,
        require=stated(require or ()),
        negative_only=tuple(negative_only or ()),
        positive_only=tuple(positive_only or ()),
    )
    return asked.filled()


def _filters(texts: list[str]) -> dict[str, tuple[str, ...]]:
    """Parse `column=value` arguments; a column that is named twice may have either value."""

    found: dict[str, tuple[str, ...]] = {}
    for text in texts:
        for name, value in pairs("--where", [text]).items():
            found[name] = (*found.get(name, ()), value)
    return found


def either(where: Mapping[str, Sequence[str]]) -> dict[str, tuple[str, ...]]:
    """Split filter values at commas, as verbs that read manifests do: `split=dev,eval`."""
    return {name: tuple(v for text in values for v in text.split(",")) for name, values in where.items()}


class Grouped(Generic[T]):
    """A verb whose groups are expanded into options; typer sees the full signature, built when it first asks for it."""

    def __init__(self, verb: Callable[..., T], groups: dict[str, Callable[..., object]]) -> None:
        self.verb, self.groups = verb, groups
        self.__name__, self.__doc__, self.__module__ = verb.__name__, verb.__doc__, verb.__module__

    def __call__(self, **given: object) -> T:
        layer = self._layer(given)
        if layer is None:
            made = self._made(given)
            return self.verb(**given, **made)
        made = layer.over(self._made(layer.filled(given)), self._of_group)
        try:
            ended = self.verb(**given, **made)
        except HitmissError as error:
            from hitmiss.core.settings import blamed

            raise blamed(error, layer.taken) from None
        while _headlines:  # the verb has printed no result, only written files
            note(_headlines.pop(0))
        return ended

    def _made(self, given: dict[str, object]) -> dict[str, object]:
        """Return what each group makes of its options, which are removed from those given."""
        return {name: group(**{k: given.pop(k) for k in self._of_group[name]}) for name, group in self.groups.items()}

    def _layer(self, given: dict[str, object]) -> Layer | None:
        """Return the layer of a settings file; None without one, and where a verb reads no scores."""
        if "settings" not in given:
            return None
        from hitmiss.core.settings import NAME, find

        named = given["settings"] if isinstance(given["settings"], str) else None
        if (named is None and not Path(NAME).is_file()) or not _reads(given):
            return None
        found = find(named)
        return None if found is None else Layer(found, _said(), _hints(self.verb).get("key"))

    @cached_property
    def _own(self) -> dict[str, inspect.Parameter]:
        return dict(inspect.signature(self.verb).parameters)

    @cached_property
    def _of_group(self) -> dict[str, list[str]]:
        taken = {*self._own}
        return {
            name: [option for option in inspect.signature(group).parameters if option not in taken]
            for name, group in self.groups.items()
        }

    @cached_property
    def __signature__(self) -> inspect.Signature:
        options: list[inspect.Parameter] = []
        for name, own in self._own.items():
            group = self.groups.get(name)
            if group is None:
                options.append(own.replace(annotation=_hints(self.verb)[name]))
                continue
            theirs, hints = inspect.signature(group).parameters, _hints(group)
            options += [theirs[option].replace(annotation=hints[option]) for option in self._of_group[name]]
        return inspect.Signature([p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in options])

    @property
    def __annotations__(self) -> dict[str, object]:  # type: ignore[override]
        return {name: p.annotation for name, p in self.__signature__.parameters.items()}


class Layer:
    """The settings of a folder as one layer of a command: below its options, above a protocol."""

    def __init__(self, settings: Settings, said: frozenset[str], key_hint: object) -> None:
        self.settings, self.said, self.taken = settings, said, settings.taken()
        self._takes_keys = list[str] | None in get_args(key_hint)

    def filled(self, given: dict[str, object]) -> dict[str, object]:
        """Fill in the protocol and the key where the verb takes them and they were not given."""
        for name in ("protocol", "key"):
            value = getattr(self.settings, name)
            if value is not None and name in given and name not in self.said:
                given[name] = [value] if name == "key" and self._takes_keys else value
                self.taken |= self.settings.taken(**{name: value})
        return given

    def over(self, made: dict[str, object], options: Mapping[str, Collection[str]]) -> dict[str, object]:
        """Return what the groups made, with the settings where the command states nothing; and say what was taken."""
        for name, one in sorted(made.items(), key=lambda item: isinstance(item[1], Design)):
            if isinstance(one, ReadSpec):
                made[name], taken = self.settings.reading(one)
                self.taken |= taken
            elif isinstance(one, Design):
                own = {"metrics" if o == "metric" else o for o in options[name] if o not in self.said}
                made[name], taken = self.settings.asking(one, own)
                self.taken |= taken
        if self.taken.values:
            made |= {name: replace(d, taken=self.taken) for name, d in made.items() if isinstance(d, Design)}
            _taken.append(self.taken)
            headline(str(self.taken))
        return made


_taken: list[Taken] = []


def taken() -> JsonObject:
    """Return what this command took from a settings file, for documents that store no design."""
    return {"settings": {"file": _taken[-1].file, "values": dict(_taken[-1].values)}} if _taken else {}


FILES: Final = ("scores", "run", "runs", "results", "validation", "pilot")
"""Arguments of verbs that name what is read."""


def _reads(given: Mapping[str, object]) -> bool:
    """Say whether a command reads scores: stored results were made with settings of their own."""
    for name in FILES:
        files = given.get(name, OTHER)
        if files is OTHER:
            continue
        paths = [Path(str(one)) for one in (files if isinstance(files, list | tuple) else [files] if files else [])]
        return not all(_is_stored(path) for path in paths)
    return True


OTHER: Final = object()


def _is_stored(path: Path) -> bool:
    if path.suffix != ".json":
        return (path / "results.json").is_file()
    from hitmiss.claims.open import json_object

    return "signature" in json_object(path)


def _said() -> frozenset[str]:
    """Return the names of the options that stand in the command line."""
    from typer._click.globals import get_current_context

    context = get_current_context(silent=True)
    if context is None:
        return frozenset()
    sources = {name: context.get_parameter_source(name) for name in context.params}
    return frozenset(name for name, source in sources.items() if source is not None and source.name != "DEFAULT")


def grouped(**groups: Callable[..., object]) -> Callable[[Callable[..., T]], Grouped[T]]:
    """Return a decorator that expands groups of options into the signature of a verb."""
    return lambda verb: Grouped(verb, groups)


class Fewer(Generic[T]):
    """A group with fewer options."""

    def __init__(self, group: Callable[..., T], names: tuple[str, ...]) -> None:
        self.func, self.names = group, names

    def __call__(self, **given: object) -> T:
        return self.func(**given)

    @cached_property
    def __signature__(self) -> inspect.Signature:
        whole = inspect.signature(self.func)
        return whole.replace(parameters=[p for name, p in whole.parameters.items() if name not in self.names])


def without(group: Callable[..., T], *names: str) -> Fewer[T]:
    """Return a group with fewer options."""
    return Fewer(group, names)


def _hints(function: Callable[..., object]) -> dict[str, object]:
    """Return the annotations of a verb or a group; for a partial or a reduced group, those of the wrapped function."""
    while hasattr(function, "func"):
        function = function.func
    return _resolved(function)


@cache
def _resolved(function: Callable[..., object]) -> dict[str, object]:
    return get_type_hints(function, include_extras=True)


drawing = without(
    design,
    "protocol",
    "metric",
    "by",
    "matrix",
    "interval",
    "stratify",
    "gap",
    "threshold",
    "negative_only",
    "positive_only",
)
"""Options for intervals (replicates, unit, seed and level), for verbs that set everything else themselves."""
