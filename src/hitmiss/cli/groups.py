"""Option groups: options that several verbs share, declared once.

A group is a function: its parameters are options, its result is what the verb is given. `grouped(reading=reading)` puts
the options of the group in the place of the verb's parameter `reading`. An option that the verb declares itself replaces
that of the group; `partial(group, bootstrap=1000)` is a group with another default, `without(group, "gap")` one with
fewer options.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import cache, cached_property
from typing import Annotated, Any, Generic, TypeVar, get_type_hints

import typer

from hitmiss.core.errors import UnknownName
from hitmiss.core.question import METHODS, Design, Gap, ReadSpec, names_of, parse_by

T = TypeVar("T")


def reading(
    column: Annotated[list[str] | None, typer.Option(help="Our name = the file's column, `item=utt`.")] = None,
    key_column: Annotated[
        list[str] | None, typer.Option(help="The same for the key, where its columns are called otherwise.")
    ] = None,
    score_column: Annotated[
        list[str] | None, typer.Option(help="A score column; repeat it for several systems.")
    ] = None,
    run_column: Annotated[
        list[str] | None, typer.Option(help="A column that tells runs apart, as config; repeat it.")
    ] = None,
    score_kind: Annotated[str | None, typer.Option(help="llr, logit, probability or raw.")] = None,
    positive: Annotated[str | None, typer.Option(help="Name of the positive class.")] = None,
    negative: Annotated[str | None, typer.Option(help="Name of the other class.")] = None,
    positive_value: Annotated[str | None, typer.Option(help="What the label column says for positive, as 1.")] = None,
    higher: Annotated[str | None, typer.Option(help="The class that a higher score means.")] = None,
    abstain: Annotated[list[str] | None, typer.Option(help="A word of the decisions that means no answer.")] = None,
    where: Annotated[
        list[str] | None, typer.Option(help="Rows to keep, `codec=C01`; repeat it for more values or columns.")
    ] = None,
    on_nan: Annotated[str | None, typer.Option(help="refuse, drop or worst.")] = None,
    dedupe: Annotated[bool, typer.Option("--dedupe", help="Merge identical rows.")] = False,
    allow_missing: Annotated[bool, typer.Option("--allow-missing", help="Score what both files have.")] = False,
    match: Annotated[str | None, typer.Option(help="Match ids exact, or by stem: no folder, no ending.")] = None,
    layout: Annotated[str | None, typer.Option(help="A layout (see `list readers`) instead of recognition.")] = None,
    separator: Annotated[str | None, typer.Option(help="Separator of the columns.")] = None,
    encoding: Annotated[str | None, typer.Option(help="Encoding of the files.")] = None,
    decimal: Annotated[str | None, typer.Option(help="Decimal sign, `.` or `,`.")] = None,
) -> ReadSpec:
    """How files are read: what every verb that reads scores takes."""
    from hitmiss.cli import printing

    return ReadSpec().changed(
        columns=printing.pairs("--column", column or []),
        key_columns=printing.pairs("--key-column", key_column or []),
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
        match=match,
        layout=layout,
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
    unit: Annotated[str | None, typer.Option(help="Column drawn as a whole, `speaker` or `speaker,attack`.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of the draws.")] = 0,
    level: Annotated[float, typer.Option(help="Level of the intervals.")] = 0.95,
    interval: Annotated[str, typer.Option(help="auto, percentile or bca.")] = "auto",
    stratify: Annotated[
        bool | None, typer.Option(help="Draw units within each class (refused if they hold both).")
    ] = None,
    gap: Annotated[str, typer.Option(help="In-domain value(s), `codec=NONE` or `codec=in:out`; or none.")] = "auto",
    threshold: Annotated[
        float | None, typer.Option(help="Decide at this threshold (score >= t), for accuracy, f1 …")
    ] = None,
    negative_only: Annotated[
        list[str] | None, typer.Option(help="A column that tells negatives apart; a slice meets all positives.")
    ] = None,
    positive_only: Annotated[
        list[str] | None, typer.Option(help="A column that tells positives apart; a slice meets all negatives.")
    ] = None,
) -> Design:
    """What is asked: what every verb that measures takes."""
    from hitmiss.evaluation.protocol import find_protocol

    if interval not in METHODS:
        raise UnknownName("kind of interval", interval, METHODS)
    chosen = find_protocol(protocol) if protocol else None
    asked = Design().changed(
        protocol=chosen.undrawn if chosen is not None and bootstrap == 0 else chosen,
        metrics=tuple(metric or ()),
        by=parse_by(by or ()),
        matrix=names_of(matrix),
        gap=gap if gap in ("auto", "none") else Gap.parse(gap),
        unit=names_of(unit),
        bootstrap=bootstrap or 0,
        seed=seed,
        level=level,
        interval=interval,
        stratify=stratify,
        threshold=threshold,
        negative_only=tuple(negative_only or ()),
        positive_only=tuple(positive_only or ()),
    )
    return asked.filled()


def _filters(texts: list[str]) -> dict[str, tuple[str, ...]]:
    """`column=value` arguments; a column that is named twice may have either value."""
    from hitmiss.cli import printing

    found: dict[str, tuple[str, ...]] = {}
    for text in texts:
        for name, value in printing.pairs("--where", [text]).items():
            found[name] = (*found.get(name, ()), value)
    return found


def either(where: Mapping[str, Sequence[str]]) -> dict[str, tuple[str, ...]]:
    """Filters in which commas part values, as the verbs over manifests take them: `split=dev,eval`."""
    return {name: tuple(v for text in values for v in text.split(",")) for name, values in where.items()}


class Grouped(Generic[T]):
    """A verb whose groups are spread into options; typer sees the whole signature, made when it first asks."""

    def __init__(self, verb: Callable[..., T], groups: dict[str, Callable[..., object]]) -> None:
        self.verb, self.groups = verb, groups
        self.__name__, self.__doc__, self.__module__ = verb.__name__, verb.__doc__, verb.__module__

    def __call__(self, **given: Any) -> T:
        made = {name: group(**{k: given.pop(k) for k in self._of_group[name]}) for name, group in self.groups.items()}
        return self.verb(**given, **made)

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
    def __annotations__(self) -> dict[str, Any]:  # type: ignore[override]
        return {name: p.annotation for name, p in self.__signature__.parameters.items()}


def grouped(**groups: Callable[..., object]) -> Callable[[Callable[..., T]], Grouped[T]]:
    """A decorator that spreads groups of options into the signature of a verb."""
    return lambda verb: Grouped(verb, groups)


class Fewer(Generic[T]):
    """A group with fewer options."""

    def __init__(self, group: Callable[..., T], names: tuple[str, ...]) -> None:
        self.func, self.names = group, names

    def __call__(self, **given: Any) -> T:
        return self.func(**given)

    @cached_property
    def __signature__(self) -> inspect.Signature:
        whole = inspect.signature(self.func)
        return whole.replace(parameters=[p for name, p in whole.parameters.items() if name not in self.names])


def without(group: Callable[..., T], *names: str) -> Fewer[T]:
    """A group with fewer options."""
    return Fewer(group, names)


def _hints(function: Callable[..., object]) -> dict[str, Any]:
    """The annotations of a verb or a group: of a partial, or of fewer options, those of what it calls."""
    while hasattr(function, "func"):
        function = function.func
    return _resolved(function)


@cache
def _resolved(function: Callable[..., object]) -> dict[str, Any]:
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
"""How intervals are drawn: replicates, unit, seed and level, for verbs that settle everything else themselves."""
