"""Options in layers: protocol < defaults of a verb < hitmiss.toml < command or keywords, each value with its origin."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path

import pytest

from hitmiss.core.design import Design
from hitmiss.core.errors import UnknownName, UsageError
from hitmiss.core.options import SPECS
from hitmiss.core.read_spec import ReadSpec
from hitmiss.core.settings import Settings, load
from hitmiss.core.spec import Layer, Spec, make
from hitmiss.evaluation.asking import make_design
from hitmiss.evaluation.protocol import find_protocol


@pytest.mark.parametrize("order", list(permutations([0, 1, 2])))
def test_the_last_layer_that_states_a_field_wins(order: tuple[int, ...]) -> None:
    layers = [Layer("a", {"seed": 1, "unit": "x"}), Layer("b", {"seed": 2}), Layer("c", {"level": 0.9})]
    design, origins = make(Design, *(layers[i] for i in order))
    last = max(("a", "b"), key=[layers[i].origin for i in order].index)
    assert (design.seed, origins["seed"]) == ({"a": 1, "b": 2}[last], last)
    assert (design.unit, design.level, origins["unit"], origins["level"]) == (("x",), 0.9, "a", "c")
    assert {*origins} == {"seed", "unit", "level"}, "what nobody states has no origin"


def test_tables_are_joined_and_each_entry_keeps_its_origin() -> None:
    below, above = {"columns": {"item": "utt", "score": "p"}}, {"columns": ["score=llr"], "where": ["codec=C01"]}
    made, origins = make(ReadSpec, Layer("file", below), Layer("command", above))
    assert dict(made.columns) == {"item": "utt", "score": "llr"} and dict(made.where) == {"codec": ("C01",)}
    assert origins == {"columns.item": "file", "columns.score": "command", "where.codec": "command"}


def test_a_class_over_another_keeps_its_meaning() -> None:
    """0 and 1 of a protocol name its classes; a caller who turns the classes round gets the other value."""
    rules = {"positive": "real", "negative": "fake", "positive_value": "1"}
    made, _ = make(ReadSpec, Layer("protocol", rules), Layer("command", {"positive": "fake"}))
    assert (made.positive, made.negative, made.positive_value) == ("fake", "real", "0")


@pytest.mark.parametrize(
    ("values", "why"),
    [({"seed": "x"}, "whole number"), ({"level": 2.0}, "between 0 and 1"), ({"bootstrap": 1}, "at least 2")],
)
def test_a_wrong_value_is_named_with_its_place(values: dict[str, object], why: str) -> None:
    with pytest.raises(UsageError, match=why) as found:
        make(Design, Layer("hitmiss.toml", values, "hitmiss.toml, [ask]"))
    assert str(found.value).startswith("hitmiss.toml, [ask]: ") and found.value.code == "bad-settings"


@pytest.mark.parametrize("spec", SPECS)
def test_an_unknown_name_is_refused_by_every_spec(spec: type[Spec]) -> None:
    with pytest.raises(UnknownName):
        make(spec, Layer("command", {"no_such_option": 1}))


def test_a_protocol_stands_below_everything_that_is_stated(tmp_path: Path) -> None:
    """Four layers about the replicates, and what is left when each of them is taken away; a verb's default is the last."""
    text = (tmp_path / "mine.toml", 'name = "mine"\nprimary = "eer"\nmetrics = ["eer"]\nbootstrap = 50\n')
    text[0].write_text(text[1] + '[read]\npositive = "real"\nnegative = "fake"\n')
    (tmp_path / "hitmiss.toml").write_text("[ask]\nbootstrap = 70\n")
    rules, settings = find_protocol(text[0]), load(tmp_path / "hitmiss.toml")

    def drawn(said: dict[str, object], file: Settings | None, defaults: dict[str, object]) -> int:
        return make_design({"protocol": rules, **said}, file, defaults=defaults)[0].bootstrap

    assert drawn({"bootstrap": 80}, settings, {"bootstrap": 60}) == 80
    assert drawn({}, settings, {"bootstrap": 60}) == 70
    assert drawn({}, None, {"bootstrap": 60}) == 50
    assert make_design({"metrics": "eer"}, None, defaults={"bootstrap": 60})[0].bootstrap == 60
    assert drawn({"bootstrap": 0}, settings, {"bootstrap": 60}) == 0, "none is a value, too"
    taken = make_design({"protocol": rules}, settings)[1]
    assert taken is not None and dict(taken.values) == {"bootstrap": "70"}
    assert dict(make_design({"protocol": rules, "bootstrap": 80}, settings)[1].values) == {}  # type: ignore[union-attr]
