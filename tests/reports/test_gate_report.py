"""A gate's outcome for others: Markdown that cannot be broken by names, XML that parses, a summary that fits."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

from hypothesis import given
from hypothesis import strategies as st

from hitmiss.engine.requirement import Check
from hitmiss.reports.gate_report import SUMMARY_LIMIT, append_summary, error_lines, junit, markdown, table

CHECKS = [
    Check("eer > 0.2", "eer", 0.1, 0.2, True, "0.1"),
    Check("eer[codec=C05] > 0.1", "eer [codec=C05]", 0.2, 0.1, False, "0.2"),
]


def test_junit_has_a_case_a_check() -> None:
    root = ElementTree.fromstring(junit("run", CHECKS))
    assert (root.get("tests"), root.get("failures")) == ("2", "1")
    cases = root.findall("./testsuite/testcase")
    assert [c.find("failure") is None for c in cases] == [True, False]
    assert cases[1].find("failure").get("message") == "eer[codec=C05] > 0.1: 0.2"  # type: ignore[union-attr]


@given(st.text(max_size=40))
def test_any_name_gives_xml_that_parses_and_one_row(name: str) -> None:
    checks = [Check(name, name, None, 0.1, False, name)]
    assert len(ElementTree.fromstring(junit(name, checks)).findall("./testsuite/testcase")) == 1
    text = markdown(name, checks)
    row = text.splitlines()[6]
    assert row.startswith("| ❌ |") and row.replace("\\\\", "").replace("\\|", "").count("|") == 5
    assert "<" not in text and len(text.splitlines()) == 7
    assert all("\n" not in line and "\r" not in line for line in error_lines(checks))


def test_failures_come_first() -> None:
    assert [row[0].text for row in table(CHECKS).rows] == ["FAIL", "pass"]
    assert markdown("run", CHECKS).index("❌") < markdown("run", CHECKS).index("✅")
    assert markdown("run", CHECKS[:1]).startswith("### hitmiss gate: all 1 checks passed")
    assert error_lines(CHECKS[:1]) == []


def test_a_summary_is_appended_and_cut(tmp_path: Path) -> None:
    path = tmp_path / "summary.md"
    append_summary(path, "one")
    append_summary(path, "two")
    assert path.read_text() == "one\ntwo\n"
    append_summary(path, "é long line\n" * 200_000)
    data = path.read_bytes()
    assert len(data) <= SUMMARY_LIMIT and data.startswith(b"one\ntwo\n")
    assert "cut: the summary is longer" in data.decode()
    size = len(data)
    append_summary(path, "late")
    assert len(path.read_bytes()) <= size + 200
