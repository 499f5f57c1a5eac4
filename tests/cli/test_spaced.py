"""Command lines as documents write them."""

from __future__ import annotations

import pytest

from hitmiss.cli.main import SPACED, settle
from hitmiss.core.errors import UsageError


@pytest.mark.parametrize(
    ("typed", "known"),
    [
        ("toxicity --languages en es -o out", "toxicity --languages en --languages es -o out"),
        ("toxicity --languages en", "toxicity --languages en"),
        ("toxicity --languages=en es", "toxicity --languages=en es"),
        ("toxicity --pred_dir my_dir --run_tag=a_b", "toxicity --pred-dir my_dir --run-tag=a_b"),
        ("score a_b.tsv --score_kind llr", "score a_b.tsv --score-kind llr"),
        ("threshold v.csv --test a.csv b.csv --search grid", "threshold v.csv --test a.csv --test b.csv --search grid"),
        ("toxicity --languages en es -- --odd_name", "toxicity --languages en --languages es -- --odd_name"),
        ("score --threshold -0.5 x", "score --threshold -0.5 x"),
        ("list", "list"),
        ("", ""),
    ],
)
def test_words_become_what_the_parser_knows(typed: str, known: str) -> None:
    assert settle(typed.split()) == known.split()


@pytest.mark.parametrize("typed", ["toxicity --languages --json", "toxicity --languages", "attack --strengths -o x"])
def test_an_option_without_its_values_takes_no_other_word(typed: str) -> None:
    with pytest.raises(UsageError, match="needs a value after it"):
        settle(typed.split())


def test_negative_numbers_are_values_of_spaced_options(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SPACED, "sweep", ("--thresholds",))  # type: ignore[arg-type]
    assert settle(["sweep", "--thresholds", "-1.5", "0.2"]) == ["sweep", "--thresholds", "-1.5", "--thresholds", "0.2"]
