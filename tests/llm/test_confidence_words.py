"""Confidences in words: kept as they are said, and numbers only where somebody says which."""

from __future__ import annotations

import pytest

from hitmiss.core.errors import UsageError
from hitmiss.llm.parsers import confidence_words, find_parser, parse_record

PARSER = find_parser("lenient", {"high": 0.9, "not sure": 0.55})


def said(confidence: str) -> dict[str, object]:
    return {"answer": f'{{"verdict": "fake", "confidence": "{confidence}", "rationale": "r"}}'}


@pytest.mark.parametrize(("text", "number"), [("high", 0.9), ("High", 0.9), ("not sure", 0.55)])
def test_a_declared_word_is_its_number_and_an_undeclared_one_is_kept(text: str, number: float) -> None:
    plain = parse_record(said(text), find_parser("lenient"))
    assert (plain["prediction"], plain["confidence"], plain["confidence_word"]) == ("fake", None, text.lower())
    assert "the verdict counts without it" in str(plain["problem"])
    found = parse_record(plain, PARSER)  # a stored record, read again
    assert (found["prediction"], found["confidence"]) == ("fake", number) and "problem" not in found
    assert parse_record(found, find_parser("lenient")) == plain


@pytest.mark.parametrize("text", ["medium", "0.7", "90%", "90", "high1", "as high as it can be said to be"])
def test_what_was_not_declared_stays(text: str) -> None:
    assert parse_record(said(text), PARSER) == parse_record(said(text), find_parser("lenient"))


def test_a_line_in_words_is_read_too() -> None:
    found = parse_record({"answer": "Verdict: fake\nConfidence: High"}, PARSER)
    assert (found["prediction"], found["confidence"]) == ("fake", 0.9)
    two = parse_record({"answer": "Verdict: fake\nConfidence: high\nConfidence: low"}, PARSER)
    assert two["confidence"] is None and "confidence_word" not in two


@pytest.mark.parametrize("text", ["", "high", "high=", "high=2", "high=0.9,high=0.8", "=0.5", "high=nan"])
def test_what_declares_nothing_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="takes words and numbers"):
        confidence_words(text)
