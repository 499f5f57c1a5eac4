"""How a function looks from outside: public functions raise errors of hitmiss only, and warnings are Python warnings."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from hitmiss.core.columns import ColumnKeywords
from hitmiss.core.errors import DataError, HitmissError, MissingFile, ResultWarning, UsageError, in_python, nearest

P = ParamSpec("P")
T = TypeVar("T")
READING = tuple(ColumnKeywords.__annotations__)
"""Keywords that say what the columns of a table are, wherever a table is taken for trials."""
COLUMN_KEYWORDS = "Unpack[ColumnKeywords]"
"""How a function's `**reading` is annotated that takes these and no other."""


def public(function: Callable[P, T], name: str) -> Callable[P, T]:
    """Return a function as its users see it.

    A missing file and an error of polars become errors of hitmiss. The warnings of what it returns are also issued as
    `ResultWarning`, at the line of the caller.
    """

    shape = inspect.signature(function)
    takes_columns = any(p.annotation == COLUMN_KEYWORDS for p in shape.parameters.values())

    @wraps(function)
    def call(*arguments: P.args, **keywords: P.kwargs) -> T:
        try:
            for word in keywords.keys() - shape.parameters.keys() if takes_columns else ():
                if word not in READING:
                    near = nearest(word, shape.parameters)
                    raise TypeError(f"unknown keyword {word!r}{f'; did you mean {near!r}?' if near else ''}")
            shape.bind(*arguments, **keywords)
        except TypeError as error:
            own = ((p.name,) if p.annotation != COLUMN_KEYWORDS else READING for p in shape.parameters.values())
            takes = tuple(word for words in own for word in words)
            raise UsageError.of("bad-call", name=name, error=error, parameters=takes) from None
        try:
            made = function(*arguments, **keywords)
        except HitmissError:
            raise
        except FileNotFoundError as error:
            raise MissingFile.of("missing-file", what="file", file=error.filename) from None
        except (IsADirectoryError, PermissionError) as error:
            raise DataError.of("unreadable-file/refused", filename=error.filename, strerror=error.strerror) from None
        except Exception as error:
            if type(error).__module__.partition(".")[0] != "polars":
                raise
            raise DataError.of("unreadable-table", error=str(error).splitlines()[0]) from error
        for text in dict.fromkeys(getattr(made, "warnings", ())):
            warnings.warn(in_python(str(text)), ResultWarning, stacklevel=2)
        return made

    return call
