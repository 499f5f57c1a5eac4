"""The keywords of Python functions are the fields of the specs: the checked-in file is what the generator writes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import get_type_hints

import pytest

import hitmiss as hm
from hitmiss.core.keywords import DesignKeywords, ReadKeywords
from hitmiss.core.spec import options_of

ROOT = Path(__file__).parents[2]


def test_the_file_is_what_the_fields_say() -> None:
    code = "import sys; sys.path.insert(0, 'docs'); import keywords; print(keywords.keywords(), end='')"
    made = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    kept = (ROOT / "src/hitmiss/core/keywords.py").read_text(encoding="utf-8")
    assert "".join(made.split()) == "".join(kept.split()), "run python docs/keywords.py and format it"


def test_every_field_with_an_option_is_a_keyword() -> None:
    assert {*get_type_hints(ReadKeywords)} == {*options_of(hm.ReadSpec)}
    assert {*get_type_hints(DesignKeywords)} | {"protocol"} == {*options_of(hm.Design)}


@pytest.mark.parametrize("name", ["threshold", "matrix", "stratify", "positive_only"])
def test_evaluate_takes_every_field_of_a_design(name: str) -> None:
    trials = hm.Trials.of([1, 1, 0, 0] * 5, [3.0, 1.0, 2.0, 0.0] * 5, a=list("xy") * 10, b=list("uuvv") * 5)
    value = {"threshold": 1.5, "matrix": "a,b", "stratify": True, "positive_only": "a"}[name]
    results = hm.evaluate(trials, metrics="accuracy" if name == "threshold" else "eer", **{name: value})  # type: ignore[misc]
    assert (
        results.design is not None
        and getattr(results.design, name) == hm.Design().changed(**{name: value}).__dict__[name]
    )
    if name == "threshold":
        assert results["accuracy"].value == 0.5


def test_a_misspelt_keyword_names_the_nearest() -> None:
    with pytest.raises(hm.UsageError, match="did you mean 'bootstrap'"):
        hm.evaluate("nowhere.csv", metrics="eer", bootstrp=3)  # type: ignore[call-arg]
