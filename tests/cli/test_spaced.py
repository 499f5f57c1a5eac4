"""Command lines as documents write them."""

from __future__ import annotations

import pytest

from hitmiss.cli.main import find_verb
from hitmiss.cli.words import parse
from hitmiss.core.errors import UsageError


def parsed(typed: str) -> list[str]:
    """Return the words that the parser gets."""
    verb, *words = typed.split()
    return parse(words, find_verb(verb).by_spelling).words


@pytest.mark.parametrize(
    ("typed", "known"),
    [
        ("toxicity --languages en es -o out", "--languages=en --languages=es --output=out"),
        ("toxicity --languages en", "--languages=en"),
        ("toxicity --languages=en es", "--languages=en es"),
        ("toxicity --pred_dir my_dir --run_tag=a_b", "--pred-dir=my_dir --run-tag=a_b"),
        ("score a_b.tsv --score_kind llr", "a_b.tsv --score-kind=llr"),
        ("threshold v.csv --test a.csv b.csv --search grid", "v.csv --test=a.csv --test=b.csv --search=grid"),
        ("toxicity --languages en es -- --odd_name", "--languages=en --languages=es -- --odd_name"),
        ("score --threshold -0.5 x", "--threshold=-0.5 x"),
        ("triage x --thresholds -1.5 0.2", "x --thresholds=-1.5 --thresholds=0.2"),
        ("score attack", "attack"),
        ("score --threshold 0.5 attack", "--threshold=0.5 attack"),
        ("report x --title -q", "x --title=-q"),
        ("report x --title --json", "x --title=--json"),
        ("score x -meer -m=auc", "x --metric=eer --metric=auc"),
        ("score x -q --debug -m eer", "x --metric=eer"),
        ("score x -- -q", "x -- -q"),
        ("list metrics", "metrics"),
    ],
)
def test_words_become_what_the_parser_knows(typed: str, known: str) -> None:
    assert parsed(typed) == known.split()


@pytest.mark.parametrize(
    "typed", ["toxicity --languages --json", "toxicity --languages", "attack --strengths -o x", "score x --seed"]
)
def test_an_option_without_its_values_takes_no_other_word(typed: str) -> None:
    with pytest.raises(UsageError, match="needs a value after it"):
        parsed(typed)
