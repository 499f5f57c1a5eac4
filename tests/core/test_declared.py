"""Declarations: what a file says becomes a dataclass, or one sentence says why not."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import pytest

from hitmiss.core.convert import InvalidField, declare


@dataclass(frozen=True)
class Inner:
    names: tuple[str, ...]
    kind: Literal["a", "b"] = "a"


@dataclass(frozen=True)
class Outer:
    inner: Inner
    share: float | None = None
    is_on: bool = False
    settings: dict[str, dict[str, str | bool | int | float | None]] = field(default_factory=dict)


def test_lists_become_tuples_and_whole_numbers_numbers_but_settings_stay_as_they_are() -> None:
    found = declare(Outer, {"inner": {"names": ["x"]}, "share": 1, "settings": {"m": {"n": 3, "flag": True, "w": 0.5}}})
    assert found == Outer(Inner(("x",)), 1.0, False, {"m": {"n": 3, "flag": True, "w": 0.5}})
    assert type(found.settings["m"]["n"]) is int and found.settings["m"]["flag"] is True


@pytest.mark.parametrize(
    ("data", "where", "said"),
    [
        ({}, "inner", "missing"),
        ({"inner": {}}, "inner.names", "missing"),
        ({"inner": {"names": []}, "other": 1}, "other", "no such key"),
        ({"inner": {"names": [], "sort": 1}}, "inner.sort", "no such key"),
        ({"inner": {"names": "x"}}, "inner.names", "a list"),
        ({"inner": {"names": ["x", 1]}}, "inner.names.1", "a text"),
        ({"inner": {"names": [], "kind": "c"}}, "inner.kind", "one of 'a', 'b'"),
        ({"inner": []}, "inner", "a table"),
        ({"inner": {"names": []}, "share": "1"}, "share", "a number"),
        ({"inner": {"names": []}, "share": True}, "share", "a number"),
        ({"inner": {"names": []}, "is_on": 1}, "is_on", "true or false"),
        ({"inner": {"names": []}, "settings": {"m": {"n": [1]}}}, "settings.m.n", "a text or true or false or"),
    ],
)
def test_what_does_not_fit_is_told_with_its_place(data: dict[str, Any], where: str, said: str) -> None:
    with pytest.raises(InvalidField) as caught:
        declare(Outer, data)
    assert str(caught.value).startswith(f"{where}: ") and said in str(caught.value)
