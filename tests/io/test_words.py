"""Class words: exact ones are understood, near ones are refused with what was meant."""

from __future__ import annotations

import polars as pl
import pytest

from hitmiss.core.classes import FAMILIES, understand
from hitmiss.core.errors import DataError, UsageError
from hitmiss.io import examine, read


def table(labels: list[str]) -> pl.DataFrame:
    return pl.DataFrame({"id": [f"i{i}" for i in range(len(labels))], "label": labels, "score": range(len(labels))})


@pytest.mark.parametrize("family", FAMILIES)
def test_every_word_of_a_family_is_understood_either_way_round(family: object) -> None:
    for one in family.positive:  # type: ignore[attr-defined]
        for other in family.negative:  # type: ignore[attr-defined]
            reading = understand([one, other], positive=one)
            assert one in reading.positive_words
            assert other in reading.negative_words
            assert not reading.problems
            assert one in understand([one, other], positive=other).negative_words


@pytest.mark.parametrize(
    ("labels", "kind", "meant"),
    [
        (["bonafied", "spoof"], "unknown-label", "bonafide"),
        (["bonafide", "spooof"], "unknown-label", "spoof"),
        (["bonafide", "toxic"], "unknown-label", None),
        (["bonafide", ""], "missing-label", None),
        (["bonafide", "spoof", "0"], "ambiguous-label", None),
        (["reel", "fake"], "unknown-label", "real"),
    ],
)
def test_words_that_are_not_exact_are_refused(labels: list[str], kind: str, meant: str | None) -> None:
    faults = examine(table(labels)).faults
    assert kind in {fault.kind for fault in faults}
    assert meant is None or any(repr(meant) in fault.message for fault in faults)


def test_the_sentence_counts_and_names_the_nearest_word() -> None:
    with pytest.raises(DataError, match=r"402 rows with the unknown label 'bonafied' .*did you mean 'bonafide'"):
        read(table(["bonafied"] * 402 + ["spoof"] * 3))


@pytest.mark.parametrize("labels", [["Real", "FAKE"], ["bona-fide", "Spoof"], ["Bona Fide", "spoof"], ["REAL", "fake"]])
def test_case_and_hyphens_do_not_make_another_word(labels: list[str]) -> None:
    assert read(table([*labels, labels[0]]), positive="Bona_Fide").label.tolist() == [1, 0, 1]
    assert read(table([*labels, labels[0]]), positive="spoof").label.tolist() == [0, 1, 0]


@pytest.mark.parametrize(
    ("labels", "value"),
    [(["1", "0", "1"], "1"), (["1.0", "0.0", "1.0"], "1"), (["0", "1", "0"], "0"), (["yes", "no", "yes"], "yes")],
)
def test_values_that_name_no_class_are_read_when_declared(labels: list[str], value: str) -> None:
    trials = read(table(labels), positive="toxic", negative="fine", positive_value=value)
    assert trials.label.tolist() == [1, 0, 1]
    assert (trials.header.positive, trials.header.negative) == ("toxic", "fine")


@pytest.mark.parametrize("wrong", ["2", "-1", "0.7", "", "NA"])
def test_a_third_value_is_refused_even_then(wrong: str) -> None:
    faults = examine(table(["1", "0", wrong]), positive="toxic", positive_value="1").faults
    assert [fault.value for fault in faults if "label" in fault.kind] == [wrong]


def test_classes_of_ones_own() -> None:
    assert read(table(["cat", "dog"]), positive="dog").label.tolist() == [0, 1]
    assert read(table(["cat", "dog"]), positive="dog", negative="cat").header.negative == "cat"
    for labels in (["cat", "dog", "cow"], ["dog", "dogg"]):
        assert examine(table(labels), positive="dog").faults


def test_declaring_one_class_twice_is_a_wrong_question() -> None:
    with pytest.raises(UsageError, match="same class"):
        read(table(["real", "fake"]), positive="real", negative="bonafide")


def test_the_positive_class_can_be_the_fakes() -> None:
    trials = read(table(["real", "fake"]), positive="fake")
    assert (trials.label.tolist(), trials.header.negative) == ([0, 1], "real")


def test_braces_in_a_label_do_not_upset_the_message() -> None:
    with pytest.raises(DataError, match=r"\{n\}|\{x\}"):
        read(table(["{x}", "spoof"]))
