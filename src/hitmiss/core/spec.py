"""A spec: an immutable object of stated options, each declared once, as a field.

    unit: Annotated[tuple[str, ...], opt("Columns whose values …", CERTAINTY, read=as_columns, complete="columns")] = ()

The type, the default, the help, the group, other spellings, and how a text is read stand in the field. Everything else is
made from it: the option of the command line with its help and completion, the keyword of Python functions, the key of
`hitmiss.toml`, the JSON schema and the reference pages.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from functools import cache
from typing import Annotated, Any, Final, Self, TypeVar, get_args, get_origin, get_type_hints

from hitmiss.core.convert import InvalidField, declare, fit_field, plain
from hitmiss.core.errors import DataError, UnknownName, UsageError
from hitmiss.core.finding import Finding
from hitmiss.core.kinds import Json
from hitmiss.core.public_call import meant_by

S = TypeVar("S", bound="Spec")

MEASURING: Final = "What is measured"
READING: Final = "Reading files"
CERTAINTY: Final = "Intervals and tests"
RUNNING: Final = "The run"
WRITING: Final = "Output"
OTHERS: Final = "Options"


@dataclass(frozen=True)
class Option:
    """What is said about an option beside its name, type and default.

    Parameters
    ----------
    help, group
        One sentence, and the title under which it stands in the help.
    names
        How the command line spells it, if not as its field (`score_kind` is `--score-kind`).
    metavar
        What stands for its value in the help; by default its choices or the kind of value.
    complete
        What completes its value: `metrics`, `protocols` or `columns`.
    read
        Makes a value of the field of what a caller wrote: one text or several.
    is_single, is_joined
        It is given once, although its field holds several; or several times, and its values are joined by commas.
    takes_words
        It takes all words up to the next option: `--languages en es`.
    is_common
        It stands in the short help.
    is_flag
        False: it has no option of its own; it is a keyword and a key of `hitmiss.toml` only.
    """

    help: str
    group: str = OTHERS
    names: tuple[str, ...] = ()
    metavar: str = ""
    complete: str = ""
    read: Callable[[Any], object] | None = None
    is_single: bool = False
    is_joined: bool = False
    takes_words: bool = False
    is_common: bool = False
    is_flag: bool = True

    def spellings(self, field: str) -> tuple[str, ...]:
        """Return how the command line spells the option of a field, the long name first.

        >>> opt("A metric.", MEASURING, "--metric", "-m").spellings("metrics"), opt("Its kind.").spellings("score_kind")
        (('--metric', '-m'), ('--score-kind',))
        """
        return self.names or (f"--{field.rstrip('_').replace('_', '-')}",)


def opt(help: str, group: str = OTHERS, *names: str, common: bool = False, **others: Any) -> Option:
    """Declare an option: `Annotated[str | None, opt("Name of the positive class.", READING)]`."""
    return Option(help, group, names, is_common=common, **others)


def keyword(help: str, read: Callable[[Any], object] | None = None) -> Option:
    """Declare a field without an option of the command line."""
    return Option(help, read=read, is_flag=False)


@cache
def options_of(kind: Any) -> dict[str, Option]:
    """Return the options of a spec by field."""
    return {name: found for name, hint in hints_of(kind).items() if (found := option_in(hint)) is not None}


def option_in(hint: object) -> Option | None:
    """Return the option that an annotation declares, if any."""
    marks = get_args(hint)[1:] if get_origin(hint) is Annotated else ()
    return next((mark for mark in marks if isinstance(mark, Option)), None)


@cache
def hints_of(kind: Any) -> dict[str, object]:
    """Return the annotations of a spec with what they declare."""
    return get_type_hints(kind, include_extras=True)


@cache
def _readers(kind: Any) -> dict[str, Callable[[Any], object]]:
    return {name: option.read for name, option in options_of(kind).items() if option.read is not None}


@dataclass(frozen=True)
class Spec:
    """An immutable object of stated options, which is changed by names of fields and stored as JSON."""

    _form, _option = "", "option"  # what a file calls it, and an error one of its fields; without a hint, no fields

    def __new__(cls, *_: object, **stated: object) -> Self:
        """Refuse a field that there is none of, with the one that was probably meant."""
        known = {f.name for f in fields(cls)} if stated else set[str]()
        for name in stated:
            if name not in known:
                near = meant_by(name, known)
                raise UnknownName(cls._option, name, known, {name: near} if near else None)
        return super().__new__(cls)

    def _read_fields(self) -> None:
        """Read the fields that a caller may write as texts; one text is one name and not a list of letters."""
        for name, read in _readers(type(self)).items():  # type: ignore[arg-type]
            given = getattr(self, name)
            if given and given is not getattr(type(self), name, None):  # a default is of the form already
                object.__setattr__(self, name, read(given))

    @classmethod
    def checked(cls, name: str, value: object) -> object:
        """Return a value of a field as its type demands; an unknown name is an error that gives the nearest name."""
        known = [f.name for f in fields(cls)]
        if name not in known:
            raise UnknownName(cls._option, name, known)
        read = _readers(cls).get(name)  # type: ignore[arg-type]
        try:
            return fit_field(cls, name, value if read is None or value is None else read(value))
        except InvalidField as fault:
            code = f"bad-{cls._option.replace(' ', '-')}"
            values = {"option": cls._option, "fault": str(fault), "found": repr(fault.value)}
            raise UsageError.coded(Finding("bad-field", values=values), code) from None
        except NotPair as fault:
            spelling = options_of(cls)[name].spellings(name)[0]  # type: ignore[arg-type]
            raise UsageError.of("bad-pair/form", spelling=spelling, fault=fault) from None

    def changed(self, **changes: object) -> Self:
        """Return the same with some fields changed, each checked alone."""
        return replace(self, **{name: self.checked(name, value) for name, value in changes.items()})

    def overridden(self, said: Mapping[str, Any]) -> Self:
        """Return the same with values that a caller states, which are checked already."""
        return replace(self, **said) if said else self

    def to_plain(self) -> dict[str, Json]:
        """Return the JSON form, with every field."""
        return {f.name: plain(getattr(self, f.name)) for f in fields(self)}

    @classmethod
    def from_plain(cls, data: object) -> Self:
        """Make it from its JSON form."""
        try:
            return declare(cls, data)
        except (InvalidField, UsageError) as fault:
            found = Finding("bad-form", values={"form": cls._form, "fault": str(fault)})
            raise DataError.coded(found, f"bad-{cls._form}") from None


@dataclass(frozen=True)
class Layer:
    """Values of fields that stand in one place: a protocol, a settings file, a command."""

    origin: str
    values: Mapping[str, object]
    place: str = ""
    """Where an error says that they stand: `hitmiss.toml, [read]`."""


def make(kind: type[S], *layers: Layer) -> tuple[S, dict[str, str]]:
    """Make a spec from layers, later ones over earlier ones; and return the origin of each value that was stated.

    The values of a field that is a table come from several layers, each with its own origin.

    >>> from hitmiss.core.design import Design
    >>> design, origins = make(Design, Layer("protocol", {"unit": "speaker", "seed": 1}), Layer("command", {"seed": 7}))
    >>> design.unit, design.seed, origins
    (('speaker',), 7, {'unit': 'protocol', 'seed': 'command'})
    """
    spec, origins = kind(), dict[str, str]()
    for layer in layers:
        try:
            said = {name: kind.checked(name, value) for name, value in layer.values.items()}
            spec = spec.overridden(said)
        except UsageError as error:
            if not layer.place:
                raise
            raise UsageError.of("bad-settings/placed", place=layer.place, what=error.found) from None
        for name, value in said.items():
            inner = [f"{name}.{key}" for key in value] if isinstance(value, Mapping) else [name]
            origins |= dict.fromkeys(inner, layer.origin)
    return spec, origins


def as_names(given: object) -> object:
    """Return one text as a list of one; a list stays as it is, so that its type is checked."""
    return (given,) if isinstance(given, str) else given


class NotPair(ValueError):
    """A text that is not of the form `name=value`."""


def as_pairs(given: object) -> object:
    """Return `name=value` texts as a mapping; a mapping stays as it is.

    >>> as_pairs(["item=utt", "score=llr"]), as_pairs({"item": "utt"})
    ({'item': 'utt', 'score': 'llr'}, {'item': 'utt'})
    """
    if isinstance(given, Mapping):
        return given
    found: dict[str, str] = {}
    for text in given if isinstance(given, Iterable) and not isinstance(given, str) else (given,):
        name, _, value = str(text).partition("=")
        if not name or not value:
            raise NotPair(repr(name))
        found[name] = value
    return found


def as_filters(given: object) -> object:
    """Return `column=value` texts as the values of each column; a column that is named twice may have either value.

    >>> as_filters(["codec=C01", "codec=C02", "split=dev"]), as_filters({"codec": "C01"})
    ({'codec': ('C01', 'C02'), 'split': ('dev',)}, {'codec': ('C01',)})
    """
    if isinstance(given, Mapping):
        return {name: as_names(value) for name, value in given.items()}
    found: dict[str, tuple[str, ...]] = {}
    for text in (given,) if isinstance(given, str) else given:  # type: ignore[attr-defined]
        for name, value in dict(as_pairs(text)).items():  # type: ignore[call-overload]
            found[name] = (*found.get(name, ()), value)
    return found
