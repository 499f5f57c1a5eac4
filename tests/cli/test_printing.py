"""Text for people and for machines: what is escaped, what is bold, what lines up."""

from __future__ import annotations

import io
import json
import os
import unicodedata
from collections.abc import Iterator
from typing import TextIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hitmiss.cli import printing
from hitmiss.core.text import HIDDEN, escape_invisible


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[TextIO]:
    """A real terminal to write to, whatever the tests themselves run in."""
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    master, slave = os.openpty()
    with os.fdopen(slave, "w") as stream:
        yield stream
    os.close(master)


@given(st.text())
def test_nothing_hidden_is_left(text: str) -> None:
    shown = escape_invisible(text)
    assert not [c for c in shown if unicodedata.category(c) in HIDDEN]
    shown.encode("utf-8")  # raises where a lone surrogate is left


@given(st.text(alphabet=st.characters(exclude_categories=HIDDEN)))
def test_ordinary_text_is_untouched(text: str) -> None:
    assert escape_invisible(text) == text


def test_lone_surrogates_of_file_names_can_be_printed(capsys: pytest.CaptureFixture[str]) -> None:
    printing.note(b"scores\xff.tsv".decode("utf-8", "surrogateescape"))
    assert capsys.readouterr().err == "scores\\udcff.tsv\n"


def test_a_narrow_encoding_does_not_stop_the_output(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="ascii")
    monkeypatch.setattr("sys.stdout", stream)
    printing.out("Brümmer ≥ 1")
    stream.flush()
    assert raw.getvalue() == b"Br\\xfcmmer >= 1\n"


def test_bold_on_a_terminal(terminal: TextIO) -> None:
    assert printing.bold("eer", terminal) == "\x1b[1meer\x1b[0m"


@pytest.mark.parametrize(("name", "value"), [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_plain_where_it_is_asked_for(name: str, value: str, terminal: TextIO, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, value)
    assert printing.bold("eer", terminal) == "eer"


def test_plain_in_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    printing.out_table(["name", "best"], [["min_dcf", "low"], ["eer\x1b[1m", "low"]])
    assert capsys.readouterr().out == "name        best\nmin_dcf     low\neer\\x1b[1m  low\n"


def test_json_refuses_what_it_cannot_hold(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ValueError, match="JSON"):
        printing.out_json({"value": float("nan")})
    assert capsys.readouterr().out == ""
    printing.out_json(printing.plain({"value": float("nan"), "ids": {"b", "a"}}))
    assert json.loads(capsys.readouterr().out) == {"value": "nan", "ids": ["a", "b"]}
