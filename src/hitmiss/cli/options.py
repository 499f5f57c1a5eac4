"""From a verb's signature to its options: a parameter is an option, an argument, or a spec whose fields are options.

    def score(
        scores: Annotated[tuple[str, ...], arg("Score file(s).")],
        key: Annotated[str | None, opt("Key with the labels.", READING, common=True)] = None,
        *,
        design: Design,
        reading: Annotated[ReadSpec, fields(without=("settings",))],
    ) -> int | None: ...

A verb is a plain function: it gets its specs made, protocol < `hitmiss.toml` < command, and returns nothing or its exit
code. An option that the verb declares itself replaces the field of a spec that has the same spelling.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, Union, get_args, get_origin, get_type_hints

import click
from click.core import ParameterSource

from hitmiss.cli import complete, printing
from hitmiss.core.design import Design, Taken
from hitmiss.core.errors import HitmissError, UnknownName
from hitmiss.core.read_spec import ReadSpec
from hitmiss.core.spec import READING, Layer, Option, Spec, hints_of, make, opt, option_in, options_of

if TYPE_CHECKING:
    from hitmiss.core.settings import Settings

SETTINGS: Final = opt(
    "Settings file instead of the folder's hitmiss.toml (see `hitmiss init`); none for no file.",
    READING,
    metavar="FILE",
)
METAVARS: Final[Mapping[type, str]] = {int: "N", float: "NUMBER", Path: "PATH"}
"""What stands for a value without choices in the help; otherwise TEXT."""


@dataclass(frozen=True)
class Argument:
    """What is said about an argument: its help and what stands for it."""

    help: str
    metavar: str = ""


def arg(help: str, metavar: str = "") -> Argument:
    """Declare an argument of a verb."""
    return Argument(help, metavar)


@dataclass(frozen=True)
class Fields:
    """Which fields of a spec a verb has as options, and its own defaults."""

    only: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    defaults: Mapping[str, object] = field(default_factory=dict)


def fields(*only: str, without: tuple[str, ...] = (), **defaults: object) -> Fields:
    """Choose the fields of a spec for a verb: `Annotated[Design, fields(without=("matrix",), bootstrap=1000)]`."""
    return Fields(only, without, defaults)


@dataclass(frozen=True)
class Part:
    """One spec among the parameters of a verb, with the fields that are options."""

    name: str
    kind: type[Spec]
    options: Mapping[str, Option]
    defaults: Mapping[str, object]


class VerbOption(click.Option):
    """An option with what its declaration says: its group, and whether it stands in the short help."""

    def __init__(self, declared: Option, name: str, hint: object, default: object, part: str = "") -> None:
        self.declared = declared
        kind, several = _kind_of(hint)
        choices = _choices(kind)
        spellings = declared.spellings(name)
        is_flag = kind is bool
        if is_flag and default is not False and "/" not in spellings[0]:  # without it neither is stated, or it is on
            spellings = (f"{spellings[0]}/--no-{spellings[0][2:]}", *spellings[1:])
        many = several and not declared.is_single
        # click takes a default of None for a value: a required option must have no default at all
        stated: dict[str, Any] = {} if default is ... else {"default": None if many else default}
        super().__init__(
            [*spellings, _parameter(name, part)],
            help=declared.help,
            required=default is ...,
            show_default=isinstance(default, int | float | str | Path) and not is_flag and default != "" and not many,
            multiple=many,
            is_flag=is_flag,
            type=None if is_flag else _click_type(kind),
            metavar=declared.metavar or (None if is_flag else "|".join(choices) or METAVARS.get(kind, "TEXT")),
            shell_complete=complete.values_of(declared.complete, choices),
            **stated,
        )

    @property
    def spelling(self) -> str:
        """The long name."""
        return max(self.opts, key=len)


class Words(click.ParamType):  # type: ignore[type-arg]  # generic for the type checker alone
    """A text of which some are known; a spec checks its fields itself."""

    name = "text"

    def __init__(self, known: tuple[str, ...]) -> None:
        self.known = known

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> object:
        """Return a known word; another is an error that gives the nearest."""
        del ctx
        if value not in self.known:
            what = f"value of {param.spelling}" if isinstance(param, VerbOption) else param.name or "" if param else ""
            raise UnknownName(what, str(value), self.known)
        return value


def _kind_of(hint: object) -> tuple[Any, bool]:
    """Return the type of one value, and whether there may be several."""
    hint = get_args(hint)[0] if get_origin(hint) is Annotated else hint
    if get_origin(hint) in (Union, UnionType):
        kinds = [kind for kind in get_args(hint) if kind is not NoneType]
        hint = kinds[0] if len(kinds) == 1 else list[str] if any(get_origin(k) is tuple for k in kinds) else str
    if get_origin(hint) in (list, tuple):
        return get_args(hint)[0], True
    return hint, get_origin(hint) in (dict, Mapping)


def _click_type(kind: Any) -> click.ParamType[Any] | type:
    if get_origin(kind) is Literal:
        return Words(get_args(kind))
    if kind is Path:
        return click.Path(path_type=Path)
    return kind if kind in (int, float) else str


def _parameter(name: str, part: str = "") -> str:
    """Return what the parser calls a parameter of a verb, or a field of one of its specs."""
    return f"{part}__{name}" if part else name.rstrip("_")


def _choices(kind: Any) -> tuple[str, ...]:
    return tuple(map(str, get_args(kind))) if get_origin(kind) is Literal else ()


class Verb(click.Command):
    """A verb: its options are made from the signature of a function."""

    def __init__(self, name: str, function: Callable[..., int | None]) -> None:
        self.function = function
        self.hints = get_type_hints(function, include_extras=True)
        self.signature = inspect.signature(function).parameters
        self.parts: list[Part] = []
        summary, _, self.example = (inspect.getdoc(function) or "").partition("\n$ ")
        super().__init__(name, params=list(self._parameters()), help=summary.strip(), add_help_option=False)

    def _parameters(self) -> Iterator[click.Parameter]:
        own = {s for n, h in self.hints.items() if (o := option_in(h)) is not None for s in o.spellings(n)}
        for name, parameter in self.signature.items():
            hint = self.hints[name]
            default = ... if parameter.default is parameter.empty else parameter.default
            declared, kind = option_in(hint), _kind_of(hint)[0]
            if declared is not None:
                yield VerbOption(declared, name, hint, default)
            elif isinstance(kind, type) and issubclass(kind, Spec):
                yield from self._fields(name, kind, hint, own)
            else:
                yield _argument(name, hint, default)

    def _fields(self, name: str, kind: type[Spec], hint: object, own: Collection[str]) -> Iterator[click.Parameter]:
        chosen = next((mark for mark in get_args(hint)[1:] if isinstance(mark, Fields)), Fields())
        hints, empty = hints_of(kind), kind()  # type: ignore[arg-type]
        options = {
            each: option
            for each, option in options_of(kind).items()  # type: ignore[arg-type]
            if option.is_flag
            and each not in chosen.without
            and (not chosen.only or each in chosen.only)
            and not {*own} & {*option.spellings(each)}
        }
        self.parts.append(Part(name, kind, options, chosen.defaults))
        for each, option in options.items():
            yield VerbOption(option, each, hints[each], chosen.defaults.get(each, getattr(empty, each)), name)
        if kind is ReadSpec and not chosen.only and "settings" not in chosen.without:
            yield VerbOption(SETTINGS, "settings", str | None, None)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the words, which completion also looks into for files."""
        ctx.meta[complete.WORDS] = tuple(args)
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> object:
        """Make the specs and call the verb."""
        said = {name for name in ctx.params if ctx.get_parameter_source(name) not in (None, ParameterSource.DEFAULT)}
        return Call(self, dict(ctx.params), said).run()

    @cached_property
    def by_spelling(self) -> dict[str, click.Option]:
        """The options by each of their spellings."""
        options = [p for p in self.params if isinstance(p, click.Option)]
        return {s: p for p in options for s in (*p.opts, *p.secondary_opts)}


def _argument(name: str, hint: object, default: object) -> click.Argument:
    declared = next((mark for mark in get_args(hint)[1:] if isinstance(mark, Argument)), Argument(""))
    kind, several = _kind_of(hint)
    made = click.Argument(
        [_parameter(name)],
        type=_click_type(kind),
        required=default is ...,
        nargs=-1 if several else 1,
        metavar=declared.metavar or None,
        shell_complete=complete.values_of("", _choices(kind)),
    )
    made.about = declared.help  # type: ignore[attr-defined]
    return made


@dataclass
class Call:
    """One call of a verb: the values of its options, and which of them the command states."""

    verb: Verb
    given: dict[str, Any]
    said: set[str]

    def run(self) -> object:
        """Make the specs, protocol < settings < command; say what was taken from settings; call the verb."""
        specs = {part.name for part in self.verb.parts}
        own = {name: self._own(name) for name in self.verb.signature if name not in specs}
        settings = self._settings(own)
        if settings is None:
            return self.verb.function(**own, **self._made(own, None)[0])
        made, taken = self._made(own, settings)
        if taken.values:
            made = {n: replace(d, taken=taken) if isinstance(d, Design) else d for n, d in made.items()}
            printing.took(taken)
        try:
            ended = self.verb.function(**own, **made)
        except HitmissError as error:
            from hitmiss.core.settings import blamed

            raise blamed(error, taken) from None
        printing.note_headlines()  # the verb has printed no result, only written files
        return ended

    def _own(self, name: str) -> Any:
        """Return the value of a parameter of the verb; several that were not given are None where the verb says so."""
        value = self.given[_parameter(name)]
        default = self.verb.signature[name].default
        if isinstance(value, tuple):
            return default if not value and default is not inspect.Parameter.empty else list(value)
        return value

    def _stated(self, part: Part) -> dict[str, object]:
        """Return what the command states about a spec."""
        found: dict[str, object] = {}
        for name, option in part.options.items():
            key = _parameter(name, part.name)
            if key in self.said:
                value = self.given[key]
                found[name] = ",".join(value) if option.is_joined else value
        return found

    def _settings(self, own: Mapping[str, object]) -> Settings | None:
        """Return the settings that apply; none where a verb reads no scores, but results that have their own."""
        if "settings" not in self.given:
            return None
        named = self.given["settings"]
        if (named is None and not Path("hitmiss.toml").is_file()) or not _reads(own):
            return None
        from hitmiss.core.settings import find

        return find(named)

    def _made(self, own: dict[str, Any], settings: Settings | None) -> tuple[dict[str, Any], Taken]:
        """Return the specs of the verb, and what was taken from settings: first the protocol and the key."""
        stated = {part.name: self._stated(part) for part in self.verb.parts}
        taken = Taken("") if settings is None else self._filled(own, stated, settings)
        made: dict[str, Any] = {}
        for part in sorted(self.verb.parts, key=lambda part: part.kind is Design):
            said, found = stated[part.name], None
            if part.kind is Design:
                from hitmiss.evaluation.asking import make_design

                made[part.name], found = make_design(said, settings, allowed=[*part.options], defaults=part.defaults)
            elif part.kind is ReadSpec and settings is not None:
                made[part.name], found = settings.reading(said)
            else:
                made[part.name], _ = make(part.kind, Layer("default", part.defaults), Layer("command", said))
            taken = taken if found is None else taken | found
        return made, taken

    def _filled(self, own: dict[str, Any], stated: dict[str, dict[str, object]], settings: Settings) -> Taken:
        """Fill in the protocol and the key of the settings where the verb takes them and they were not given."""
        taken = settings.taken()
        for part in self.verb.parts:
            if settings.protocol and "protocol" in part.options and "protocol" not in stated[part.name]:
                stated[part.name]["protocol"] = settings.protocol
                taken |= settings.taken(protocol=settings.protocol)
        for name in ("protocol", "key"):
            value = getattr(settings, name)
            if value is not None and name in own and name not in self.said:
                own[name] = [value] if _kind_of(self.verb.hints[name])[1] else value
                taken |= settings.taken(**{name: value})
        return taken


FILES: Final = ("scores", "run", "runs", "results", "validation", "pilot")
"""Arguments of verbs that name what is read."""


def _reads(own: Mapping[str, Any]) -> bool:
    """Say whether a command reads scores: stored results were made with settings of their own."""
    for name in FILES:
        if name in own:
            files = own[name]
            paths = [Path(str(one)) for one in (files if isinstance(files, list | tuple) else [files] if files else [])]
            return not all(map(_is_stored, paths))
    return True


def _is_stored(path: Path) -> bool:
    if path.suffix != ".json":
        return (path / "results.json").is_file()
    from hitmiss.claims.open import json_object

    return "signature" in json_object(path)
