"""A spec: an immutable object of stated options, each declared once as a field."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any, Self

from hitmiss.core.convert import InvalidField, declare, fit_field, plain
from hitmiss.core.errors import DataError, UnknownName, UsageError
from hitmiss.core.kinds import Json


@dataclass(frozen=True)
class Spec:
    """An immutable object of stated options, which is changed by names of fields and stored as JSON."""

    _form, _option = "", "option"  # what a file calls it, and an error one of its fields; without a hint, no fields

    @property
    def _several(self) -> dict[str, Callable[[Any], object]]:
        """How each field that takes several is read, so that one text is one name and not a list of letters."""
        return {}

    def _read_several(self) -> None:
        for name, reading in self._several.items():
            given = getattr(self, name)
            if given:
                object.__setattr__(self, name, reading(given))

    def changed(self, **changes: object) -> Self:
        """Return the same with some fields changed; an unknown name is an error that gives the nearest name."""
        known = [f.name for f in fields(self)]
        for name in changes:
            if name not in known:
                raise UnknownName(self._option, name, known)
        several = self._several
        try:
            given = {name: several[name](value) if name in several else value for name, value in changes.items()}
            return replace(self, **{name: fit_field(type(self), name, value) for name, value in given.items()})
        except InvalidField as fault:
            code = f"bad-{self._option.replace(' ', '-')}"
            raise UsageError(f"{self._option} {fault}; found {fault.value!r}", code=code) from None

    def to_plain(self) -> dict[str, Json]:
        """Return the JSON form, with every field."""
        return {f.name: plain(getattr(self, f.name)) for f in fields(self)}

    @classmethod
    def from_plain(cls, data: object) -> Self:
        """Make it from its JSON form."""
        try:
            return declare(cls, data)
        except (InvalidField, UsageError) as fault:
            raise DataError(
                f"the {cls._form} that the file states is not of the known form: {fault}", code=f"bad-{cls._form}"
            ) from None


def as_names(given: object) -> object:
    """Return one text as a list of one; a list stays as it is, so that its type is checked."""
    return (given,) if isinstance(given, str) else given
