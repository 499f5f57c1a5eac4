"""The record decorator of `core.shared` makes the same classes as that of the standard library."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any

import pytest

from hitmiss.core import shared

BOTH = pytest.mark.parametrize("make", [dataclasses.dataclass, shared.dataclass])


def classes(make: Callable[..., Any]) -> dict[str, Any]:
    @make(frozen=True)
    class Point:
        """A point."""

        x: int
        y: float = 1.5
        tags: list[str] = field(default_factory=list, hash=False)
        note: str = field(default="", compare=False, repr=False)

        def __post_init__(self) -> None:
            if self.x < 0:
                raise ValueError("x")

    @make(frozen=True, eq=False)
    class Named:
        name: str
        extra: Mapping[str, int] = field(default_factory=dict)
        size: int = field(kw_only=True, default=3)
        made: list[int] = field(init=False, default_factory=list)

    @make
    class Open:
        a: int = 0

    @make(frozen=True)
    class Empty:
        """Nothing."""

    @make(frozen=True)
    class Told:
        a: int

        def __repr__(self) -> str:
            return f"<{self.a}>"

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Told) and self.a % 2 == other.a % 2

        def __hash__(self) -> int:
            return self.a % 2

    @make(frozen=True)
    class Same:
        a: int

        def __eq__(self, other: object) -> bool:
            return True

    @make(frozen=True)
    class Deep(Empty):
        z: int = 4

    return {c.__name__: c for c in (Point, Named, Open, Empty, Told, Same, Deep)}


def test_signatures_fields_and_texts_are_those_of_the_standard_library() -> None:
    theirs, ours = classes(dataclasses.dataclass), classes(shared.dataclass)
    for name, cls in theirs.items():
        assert str(inspect.signature(ours[name])) == str(inspect.signature(cls)), name
        assert [repr(f) for f in dataclasses.fields(ours[name])] == [repr(f) for f in dataclasses.fields(cls)]
        assert ours[name].__match_args__ == cls.__match_args__
        assert ours[name].__dataclass_params__.frozen == cls.__dataclass_params__.frozen
        assert (ours[name].__hash__ is None) == (cls.__hash__ is None)
        assert ours[name].__init__.__annotations__ == cls.__init__.__annotations__
    for made in (theirs, ours):
        assert repr(made["Point"](1, tags=["a"])).endswith("Point(x=1, y=1.5, tags=['a'])")
        assert repr(made["Empty"]()).endswith("Empty()")
        assert repr(made["Told"](5)) == "<5>"


@BOTH
def test_objects_are_compared_by_their_fields(make: Callable[..., Any]) -> None:
    made = classes(make)
    point, told = made["Point"], made["Told"]
    assert point(1, 2.0) == point(1, 2.0, note="other")
    assert point(1) != point(2)
    assert point(1) != made["Open"](1)
    assert len({point(1, 2.0), point(1, 2.0, note="x"), point(3)}) == 2
    assert hash(point(1, tags=["a"])) == hash(point(1))
    assert len({told(1), told(3), told(2)}) == 2
    assert made["Empty"]() == made["Empty"]()
    assert hash(made["Same"](1)) == hash(made["Same"](1))
    named = made["Named"]("a")
    assert named != made["Named"]("a")
    assert len({named, named}) == 1
    with pytest.raises(TypeError):
        hash(made["Open"]())


@BOTH
def test_frozen_objects_do_not_change_and_copies_are_equal(make: Callable[..., Any]) -> None:
    made = classes(make)
    point = made["Point"](1)
    for name in ("x", "other"):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(point, name, 3)
    with pytest.raises(dataclasses.FrozenInstanceError):
        del point.x
    with pytest.raises(ValueError, match="x"):
        made["Point"](-1)
    with pytest.raises(TypeError):
        made["Point"]()
    with pytest.raises(TypeError):
        made["Named"]("a", {}, 4)
    assert made["Named"]("a", size=4).size == 4
    assert made["Named"]("a").made == []
    assert made["Named"]("a").extra is not made["Named"]("b").extra
    assert dataclasses.replace(point, y=2.0) == made["Point"](1, 2.0)
    assert dataclasses.asdict(point) == {"x": 1, "y": 1.5, "tags": [], "note": ""}
    assert copy.deepcopy(point) == copy.copy(point) == point
    opened = made["Open"]()
    opened.a = 5
    assert opened == made["Open"](5)
    deep = made["Deep"](3)
    assert (deep.z, deep == made["Deep"](3)) == (3, True)
    with pytest.raises(dataclasses.FrozenInstanceError):
        deep.z = 1


def test_a_record_is_pickled() -> None:
    from hitmiss.core.question import Gap

    assert pickle.loads(pickle.dumps(Gap("codec", ("C1",)))) == Gap("codec", ("C1",))
