"""The error tree: exit codes, messages that help, and names that are nearest."""

from __future__ import annotations

import inspect

import pytest

from hitmiss.core import errors
from hitmiss.core.errors import DataError, Fault, HitmissError, UnknownName, UsageError, nearest


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


def test_nearest() -> None:
    assert nearest("SPOOF", ["bonafide", "spoof"]) == "spoof"
    assert nearest("zzz", ["bonafide", "spoof"]) is None
    assert nearest("", ["", "spoof"]) is None
