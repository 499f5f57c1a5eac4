"""The error tree: exit codes, messages that help, and names that are nearest."""

from __future__ import annotations

import inspect
from dataclasses import fields
from pathlib import Path

import pytest

import hitmiss as hm
from hitmiss.cli.main import run
from hitmiss.core import errors
from hitmiss.core.errors import DataError, Fault, HitmissError, UnknownName, UsageError, in_python, nearest
from hitmiss.core.options import option_name
from hitmiss.findings.render import PYTHON, write


def test_exit_codes() -> None:
    codes = {
        name: kind.exit_code
        for name, kind in inspect.getmembers(errors, inspect.isclass)
        if issubclass(kind, HitmissError) and kind is not HitmissError
    }
    assert codes == {
        "GateFailed": 1,
        "UsageError": 2,
        "UnknownName": 2,
        "DataError": 3,
        "MissingFile": 3,
        "IncompleteRun": 4,
        "EnvironmentFault": 5,
    }


def test_the_tree_in_the_docstring_is_the_tree() -> None:
    for name, kind in inspect.getmembers(errors, inspect.isclass):
        if issubclass(kind, HitmissError):
            assert name in (errors.__doc__ or "")


@pytest.mark.parametrize("kind", [UsageError, DataError])
def test_callers_who_know_nothing_of_hitmiss_catch_value_errors(kind: type[HitmissError]) -> None:
    with pytest.raises(ValueError, match="no"):
        raise kind("no")


def test_a_data_error_carries_its_faults() -> None:
    faults = [Fault("nan", "not a number", row=3), Fault("nan", "not a number", row=9)]
    assert DataError("two", faults).faults == tuple(faults)
    assert DataError("none").faults == ()


def test_a_fault_says_where() -> None:
    assert str(Fault("x", "is wrong")) == "is wrong"
    assert str(Fault("x", "is wrong", row=0)) == "row 0: is wrong"
    assert (
        str(Fault("x", "is wrong", file="a.csv", column="label", value=""))
        == "a.csv, column label: is wrong (found '')"
    )


def test_an_unknown_name_lists_what_is_known() -> None:
    assert str(UnknownName("codec", "C99x", ["C02", "C01"])) == "unknown codec 'C99x'. Known: C01, C02"
    assert "did you mean 'C01'?" in str(UnknownName("codec", "C011", ["C02", "C01"]))
    assert str(UnknownName("codec", "x", [])) == "unknown codec 'x'. Known: none"
    long = str(UnknownName("inner value", "node_412x", [f"node_{i}" for i in range(5000)]))
    assert long.endswith("did you mean 'node_412'? There are 5,000 in all"), "the nearest one is enough"
    far = str(UnknownName("inner value", "queue", [f"node_{i}" for i in range(5000)]))
    assert far.endswith(" and 4,800 more")


def test_nearest() -> None:
    assert nearest("SPOOF", ["bonafide", "spoof"]) == "spoof"
    assert nearest("zzz", ["bonafide", "spoof"]) is None
    assert nearest("", ["", "spoof"]) is None


@pytest.mark.parametrize(
    ("rows", "option"),
    [
        ("id,label,score\na,fake,0.9\nb,real,0.1\n", "--positive fake"),
        ("id,label,score\na,spoof,0.9\na,spoof,0.9\nb,bonafide,0.1\n", "--dedupe"),
        ("id,label,score\na,spoof,nan\nb,bonafide,0.1\nc,spoof,0.3\n", "--on-nan drop"),
        ("id,label,score,prob\na,spoof,1,.5\nb,bonafide,0,.1\n", "--column score=score"),
    ],
)
def test_the_command_names_options_and_a_function_keywords_and_both_can_be_followed(
    rows: str, option: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "scores.csv"
    path.write_text(rows)
    assert run(["score", str(path), "-m", "accuracy", "--threshold", "0.5"]) == 3
    said = capsys.readouterr().err
    assert option.partition("=")[0] in said
    assert run(["score", str(path), "-m", "accuracy", "--threshold", "0.5", *option.split()]) == 0
    with pytest.raises(DataError) as refused:
        hm.read(path)
    keywords = in_python(option)
    assert "--" not in str(refused.value) and keywords.partition("'score'}")[0] in str(refused.value)
    assert len(eval(f"hm.read(path, {keywords})").label) >= 2


def test_options_of_reading_become_fields_of_the_reading() -> None:
    for field in fields(hm.ReadSpec):
        assert write(f"say {{{option_name(field.name)}?}}", {}, PYTHON) == f"say {field.name}"
