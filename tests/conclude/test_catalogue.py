"""The catalogue of findings: every code that the source names has an entry, once, and every entry can be written."""

from __future__ import annotations

import ast
import re
from collections import Counter

import pytest
from tests.source import SOURCE, trees

from hitmiss.core.errors import UsageError
from hitmiss.core.finding import ERROR, Amount, Entry, Finding, Option
from hitmiss.findings import catalogue
from hitmiss.findings.render import HTML, LATEX, PYTHON, TERMINAL, parts_of, said, write

CATALOGUE = list(catalogue.everything())
CODES = {code for _, code, _ in CATALOGUE}


def named_codes() -> dict[str, str]:
    """Codes that stand as texts in `Finding(…)` and `SomeError.of(…)`, with the first file that names each."""
    found: dict[str, str] = {}
    for path, tree in trees(r"\.of\(|Finding\("):
        if path.name == "doctor.py":  # it has findings of its own, about the machine
            continue
        for node in ast.walk(tree):
            if not isinstance(node, ast.Call) or not node.args or not isinstance(node.args[0], ast.Constant):
                continue
            f, code = node.func, node.args[0].value
            is_error = isinstance(f, ast.Attribute) and f.attr == "of" and ast.unparse(f.value).endswith(KINDS)
            if (is_error or (isinstance(f, ast.Name) and f.id == "Finding")) and isinstance(code, str):
                found.setdefault(code, str(path.relative_to(SOURCE)))
    return found


KINDS = ("Error", "Fault", "IncompleteRun", "GateFailed")


def test_every_code_of_the_source_is_in_the_catalogue() -> None:
    assert {code: file for code, file in named_codes().items() if code not in CODES} == {}


def test_every_code_has_one_home() -> None:
    assert [code for code, n in Counter(code for _, code, _ in CATALOGUE).items() if n > 1] == []


def test_every_home_of_entries_is_collected() -> None:
    assert {path.parent.name for path in SOURCE.glob("*/findings.py")} <= set(catalogue.HOMES)


@pytest.mark.parametrize("entry", [pytest.param(entry, id=code) for _, code, entry in CATALOGUE])
def test_every_sentence_can_be_written_on_every_surface(entry: Entry) -> None:
    for template in (entry.sentence, entry.short, entry.about):
        names = {part.field for part in parts_of(template) if part.field and not part.field.startswith("-")}
        inside = {name for part in parts_of(template) for name in [*_inside(part.field), *_in_noun(part.format)]}
        values = dict.fromkeys(names | inside, "x")
        for surface in (TERMINAL, HTML, LATEX):
            text = write(template, values, surface)
            literal = re.sub(r"\\(text\w+)?\{\}?|\{[-'*\[\]]\}", "", text)  # what LaTeX needs to print a character
            assert "{" not in literal or "{{" in template
        assert "--" not in re.sub("`[^`]*`", "", write(template, values, PYTHON)), "an option is one"


def _inside(field: str) -> list[str]:
    return [piece.partition(">")[0] for piece in field.split("<")[1:]] if field.startswith("-") else []


def _in_noun(format_: str) -> list[str]:
    return re.findall(r"<(\w+)>", format_)


def test_surfaces_write_options_and_names_in_their_own_way() -> None:
    found = Finding("free-text", values={"text": "a & b <c>"})
    assert write("{text}: {o}", {**found.values, "o": Option("higher", "spoof")}, HTML) == (
        "a &amp; b &lt;c&gt;: <code>--higher spoof</code>"
    )
    assert write("{text}: {o}", {"text": "50% of_x", "o": Option("higher", "spoof")}, LATEX) == (
        r"50\% of\_x: \texttt{{-}{-}higher spoof}"
    )
    assert write("{o}", {"o": Option("higher", "spoof")}, PYTHON) == "higher='spoof'"


def test_a_file_that_is_named_like_an_option_stays_as_it_is() -> None:
    error = UsageError.of("bad-rule", text="--force > 1")
    assert "--force > 1" in str(error) and "force=True" not in str(error)


LINE = 80
OF_A_VALUE = {"": 8, "who": 6, "title": 10, "parts": 24}
"""How long a value of a sentence usually is, by its name; lists, files and commands to copy stand below a sentence."""


@pytest.mark.parametrize("entry", [pytest.param(entry, id=code) for _, code, entry in CATALOGUE])
def test_every_sentence_fits_two_lines_of_a_terminal(entry: Entry) -> None:
    size = len("hitmiss: " if entry.severity == ERROR else "! ")
    for part in parts_of(entry.sentence):
        size += len(part.literal)
        if part.field.startswith("-"):
            size += len(f"{part.field}{part.format}".rstrip("?"))
        elif part.field:
            size += OF_A_VALUE.get(part.field, OF_A_VALUE[""])
    assert size <= 2 * LINE


MADE = {"requirement-met", "requirement-broken", "vain-rule/never", "vain-rule/always"}
MADE |= {f"{option}-unused" for option in ("weights", "layers", "precision", "compiled")}
MADE |= {f"unknown-{column}/{why}" for column in ("label", "decision") for why in ("number", "several", "many", "word")}
MADE |= {"missing-label", "missing-decision"}
"""Codes that the source puts together from two words."""


def test_no_entry_is_left_over() -> None:
    source = "\n".join(p.read_text(encoding="utf-8") for p in SOURCE.rglob("*.py") if p.name != "findings.py")
    assert {code for code in CODES - MADE if f'"{code}"' not in source} == set()


@pytest.mark.parametrize(("metric", "unit"), [("eer", " percentage points"), ("cllr", "")])
def test_a_difference_without_a_sign_has_the_unit_and_the_digits_of_one_with_a_sign(metric: str, unit: str) -> None:
    delta = Amount.turned(0.025, metric, -0.031, 0.081, sign=1)
    signed, plain, far = (said(a).partition(" [")[0] for a in (delta, delta.beside(0.025), delta.as_far(0.025)))
    assert far.endswith(unit) and far == signed.removeprefix("+") and signed.startswith("+")
    assert plain.split("\N{NO-BREAK SPACE}")[0] == far.removesuffix(unit)
    assert ("%" in plain) == bool(unit) and "%" not in far
