"""How a function looks from outside: public functions raise errors of hitmiss only, and warnings are Python warnings."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from types import UnionType
from typing import Final, ParamSpec, TypeVar, Union, get_args, get_origin, get_type_hints

from hitmiss.core.columns import ColumnKeywords
from hitmiss.core.errors import DataError, HitmissError, MissingFile, ResultWarning, UsageError, in_python, nearest

P = ParamSpec("P")
T = TypeVar("T")
READING = tuple(ColumnKeywords.__annotations__)
"""Keywords that say what the columns of a table are, wherever a table is taken for trials."""
COLUMN_KEYWORDS: Final = "Unpack[ColumnKeywords]"
"""How a function's `**reading` is annotated that takes these and no other."""
USUAL_WORDS: Final[Mapping[str, tuple[str, ...]]] = {
    "y": ("label",), "y_true": ("label",), "labels": ("label",), "target": ("label",), "truth": ("label",),
    "y_score": ("score",), "scores": ("score",), "y_prob": ("score",), "probs": ("score",), "predictions": ("score",),
    "y_pred": ("decision",), "decisions": ("decision",), "ids": ("item",), "id": ("item",),
    "metric": ("metrics", "maximize"), "groups": ("by",), "group_by": ("by",), "groupby": ("by",), "slice": ("by",),
    "n_boot": ("bootstrap",), "n_bootstrap": ("bootstrap",), "n_bootstraps": ("bootstrap",), "boot": ("bootstrap",),
    "pos_label": ("positive",), "sample_weight": ("weight",), "weights": ("weight",), "units": ("unit",),
    "confidence_level": ("level",), "random_state": ("seed",), "filename": ("output",), "path": ("output",),
}  # fmt: skip
"""Keywords as other packages call them, with ours; of several, the one that a function has."""


def meant_by(word: str, known: Iterable[str]) -> str | None:
    """Return the keyword that was probably meant: a usual word for it, or the most similar one.

    >>> meant_by("y_true", ["label", "score"]), meant_by("metric", ["maximize"]), meant_by("bootstraps", ["bootstrap"])
    ('label', 'maximize', 'bootstrap')
    """
    own = list(known)
    return next((one for one in USUAL_WORDS.get(word, ()) if one in own), None) or nearest(word, own)


def public(function: Callable[P, T], name: str) -> Callable[P, T]:
    """Return a function as its users see it.

    A missing file and an error of polars become errors of hitmiss. The warnings of what it returns are also issued as
    `ResultWarning`, at the line of the caller.
    """

    shape = inspect.signature(function)
    takes = _keywords_of(shape)
    is_checked = any(own.annotation == COLUMN_KEYWORDS for own in shape.parameters.values())

    @wraps(function)
    def call(*arguments: P.args, **keywords: P.kwargs) -> T:
        try:
            for word in keywords.keys() - {*takes} if is_checked else ():
                raise TypeError(f"unknown keyword {word!r}")
            bound = shape.bind(*arguments, **keywords)
        except TypeError as error:
            near = next((one for word in keywords if word not in takes and (one := meant_by(word, takes))), None)
            hint = f"{error}; did you mean {near!r}?" if near else str(error)
            raise UsageError.of("bad-call", name=name, error=hint, parameters=takes) from None
        try:
            made = function(*arguments, **keywords)
        except HitmissError:
            raise
        except FileNotFoundError as error:
            raise MissingFile.of("missing-file", what="file", file=error.filename) from None
        except (IsADirectoryError, PermissionError) as error:
            raise DataError.of("unreadable-file/refused", filename=error.filename, strerror=error.strerror) from None
        except Exception as error:
            if isinstance(error, AttributeError | TypeError | LookupError | ValueError):
                _refuse_misfit(function, bound, name)
            if type(error).__module__.partition(".")[0] != "polars":
                raise
            raise DataError.of("unreadable-table", error=str(error).splitlines()[0]) from error
        for text in dict.fromkeys(getattr(made, "warnings", ())):
            warnings.warn(in_python(str(text)), ResultWarning, stacklevel=2)
        return made

    return call


def _keywords_of(shape: inspect.Signature) -> tuple[str, ...]:
    """Return the keywords that a function takes."""
    own = [p for p in shape.parameters.values() if p.kind is not p.VAR_KEYWORD]
    columns = READING if any(p.annotation == COLUMN_KEYWORDS for p in shape.parameters.values()) else ()
    return (*(p.name for p in own), *columns)


def _refuse_misfit(function: Callable[..., object], bound: inspect.BoundArguments, name: str) -> None:
    """Refuse the first argument whose type is none that the function states; if all fit, a fault is one of hitmiss."""
    try:
        hints = get_type_hints(function)
    except NameError:  # a type that is imported for checking alone
        return
    for own, value in bound.arguments.items():
        kinds = _kinds(hints.get(own))
        if kinds and not isinstance(value, kinds):
            stated = " or ".join(kind.__name__ for kind in kinds if kind is not type(None))
            raise UsageError.of("bad-argument", name=name, argument=own, expected=stated, found=type(value).__name__)


def _kinds(hint: object) -> tuple[type, ...]:
    """Return the classes of which a value of this type is one; none if that cannot be said.

    >>> _kinds(str | None), _kinds(Mapping[str, int]), _kinds(object)
    ((<class 'str'>, <class 'NoneType'>), (<class 'collections.abc.Mapping'>,), ())
    """
    if get_origin(hint) in (Union, UnionType):
        parts = [_kinds(one) for one in get_args(hint)]
        return () if not all(parts) else tuple(kind for part in parts for kind in part)
    plain = get_origin(hint) or hint
    return (plain,) if isinstance(plain, type) and plain is not object and plain.__module__ != "typing" else ()
