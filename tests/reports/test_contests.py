"""Comparisons, rankings and gates have pages of their own, and runs tell what was tested."""

from __future__ import annotations

import json
import re
import zlib
from pathlib import Path

import polars as pl
import pytest
from tests.browser.chromium import CHROMIUM
from tests.reports import stories

from hitmiss.cli.main import run
from hitmiss.core.artifacts import sealed
from hitmiss.core.errors import DataError
from hitmiss.engine.compare import compare
from hitmiss.engine.comparison import Comparison
from hitmiss.engine.rank import compare_all
from hitmiss.reports.contests import contest_page, is_contest, read_contest
from hitmiss.reports.dossier import dossier_of
from hitmiss.reports.html import print_pdf, render
from hitmiss.reports.page import compose


def test_a_saved_comparison_becomes_a_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a, b = (source.trials for source in stories.systems(2))
    assert a is not None and b is not None
    made = compare(a, b, ["eer"], names=("ours", "theirs"), by=["codec"], bootstrap=200)
    file = tmp_path / "cmp.json"
    made.save(file)
    again = read_contest(file)
    assert is_contest(file) and isinstance(again, Comparison)
    assert [d.verdict for d in again] == [d.verdict for d in made] and again.names == made.names
    assert run(["report", str(file), "-o", str(tmp_path / "page.html")]) == 0
    assert capsys.readouterr().err.endswith(f"MB, from {file}\n"), "two runs, not one"
    page = (tmp_path / "page.html").read_text()
    assert (
        "ours does better than theirs" in page and "Can I trust it?" in page and made.signature.split("|")[-1] in page
    )


def test_a_comparison_is_exported_in_every_form_with_every_figure(tmp_path: Path) -> None:
    """The same tables as the page: every slice with both figures, the difference, its interval and the verdict."""
    a, b = (source.trials for source in stories.systems(2))
    assert a is not None and b is not None
    made = compare(a, b, ["eer"], names=("ours", "theirs"), by=["codec"], bootstrap=200)
    file = tmp_path / "cmp.json"
    made.save(file)
    for ending in (".md", ".tex", ".csv", ".xlsx"):
        if ending == ".xlsx":
            pytest.importorskip("xlsxwriter")
        assert run(["export", str(file), "-o", str(tmp_path / f"out{ending}")]) == 0
    markdown, latex = ((tmp_path / f"out{ending}").read_text() for ending in (".md", ".tex"))
    sheet = pl.read_csv(tmp_path / "out.csv", infer_schema=False)
    for d in made:
        slice_ = next(iter(d.slice.values()), "eer ↓") if not d.average else "macro"
        ends = f"[{d.low:+.4f}, {d.high:+.4f}]"
        (line,) = [x for x in markdown.splitlines() if x.startswith(f"| {slice_} ")]
        assert f"{d.a:.4f}" in line and f"{d.b:.4f}" in line and ends in line and d.verdict in line
        named = slice_.replace("↓", r"$\downarrow$")
        turned = [table for table in re.findall(r"\\begin{table}.*?\\end{table}", latex, re.DOTALL) if named in table]
        line = " & ".join([x for x in latex.splitlines() if x.startswith(named)] or turned)  # wide: in parts, or turned
        assert f"{d.a:.4f}" in line and ends.replace("-", "$-$") in line
        cells = {row["column"]: row for row in sheet.filter(pl.col("row") == slice_).to_dicts()}
        assert cells["A"]["value"] == f"{d.a:.4f}" and cells["verdict"]["value"] == d.verdict
        assert next(row for name, row in cells.items() if name.startswith("B − A"))["below"] == ends
    gate = tmp_path / "gate.json"
    check = {"rule": "eer > 0.1", "figure": "eer", "value": 0.2, "limit": 0.1, "passed": False, "reason": "0.2"}
    gate.write_text(json.dumps(sealed({"schema": 1, "kind": "gate", "checks": [check]})))
    assert run(["export", str(gate), "-o", str(tmp_path / "gate.md")]) == 0
    assert "| FAIL | eer | eer &gt; 0.1 | 0.2 |" in (tmp_path / "gate.md").read_text()
    assert run(["export", str(gate), "--to", "json"]) == 2  # it is JSON already, and no results


def test_rankings_and_gates_have_pages_too(tmp_path: Path) -> None:
    runs = {source.name: source.trials for source in stories.systems(3) if source.trials is not None}
    made = compare_all(runs, ["roc_auc"])
    file = tmp_path / "ranking.json"
    file.write_text(made.to_json())
    assert "sys00 has the best" in contest_page(file).parts[0].summary.verdict.answers[0].text
    gate = tmp_path / "gate.json"
    check = {"rule": "eer > 0.1", "figure": "eer", "value": 0.2, "limit": 0.1, "passed": False, "reason": "0.2"}
    gate.write_text(json.dumps(sealed({"schema": 1, "kind": "gate", "checks": [check]})))
    page = contest_page(gate)
    assert page.parts[0].summary.verdict.headline == "1 of 1 rules broken." and "eer &gt; 0.1" in render(page)


def test_a_broken_comparison_is_refused_in_a_sentence(tmp_path: Path) -> None:
    file = tmp_path / "cmp.json"
    file.write_text(json.dumps(sealed({"schema": 1, "kind": "comparison", "differences": 3})))
    with pytest.raises(DataError) as error:
        read_contest(file)
    assert error.value.code == "not-a-comparison"


def test_the_dossier_of_a_run_names_detector_codecs_and_dates(tmp_path: Path) -> None:
    config = {
        "detector": {"name": "detector.onnx", "onnx": "ec90"},
        "codecs": {"C01": ["opus_wb", 16000, 12.0]},
        "window": None,
    }
    made = {
        "kind": "detect",
        "started": "2026-01-01T00:00:00Z",
        "config": config,
        "facts": {"n_failed": 0},
        "files": {"x": "y"},
    }
    (tmp_path / "manifest.json").write_text(json.dumps(made))
    found = dict(dossier_of(tmp_path))
    assert found["detector name"] == "detector.onnx" and found["codecs C01"] == "opus_wb; 16000; 12.0"
    assert found["started"].startswith("2026") and "window" not in found
    assert dossier_of(tmp_path / "nowhere" / "deeper") == ()


def test_the_dossier_names_no_folder_and_no_address(tmp_path: Path) -> None:
    config = {
        "detector": {"source": "/data/somebody/models/det.py:detector"},
        "base_url": "http://10.1.2.3:8000/v1",
        "data": ["../private/list.tsv", "C:\\Users\\somebody\\x.wav"],
        "models": {"/data/somebody/m.py:f": {"outputs": "logit"}, "openai/gpt-5": {"provider": "openai"}},
    }
    (tmp_path / "manifest.json").write_text(json.dumps({"config": config}))
    text = str(dossier_of(tmp_path))
    assert "det.py:detector" in text and "list.tsv" in text and "x.wav" in text and "m.py:f outputs" in text
    assert "models openai/gpt-5 provider" in text
    text = text.replace("openai/gpt-5", "")
    assert not [word for word in ("somebody", "private", "10.1.2.3", "/") if word in text]


@pytest.mark.extras
@pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium on this machine; apt-get install -y chromium")
def test_a_report_prints_to_pdf(tmp_path: Path) -> None:
    gate = tmp_path / "gate.json"
    gate.write_text(json.dumps(sealed({"schema": 1, "kind": "gate", "checks": []})))
    out = tmp_path / "page.pdf"
    assert run(["report", str(gate), "-o", str(tmp_path / "page.html"), "--pdf", str(out)]) == 0
    assert out.read_bytes().startswith(b"%PDF")


@pytest.mark.extras
@pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium on this machine; apt-get install -y chromium")
def test_every_printed_page_has_its_number(tmp_path: Path) -> None:
    """The same page without the rule for the margins prints one text less on each sheet."""
    whole = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", render(compose([stories.one_bad_slice()])))
    bare = re.sub(r"@bottom-right \{[^}]*\}", "", whole)
    assert bare != whole
    counted = []
    for name, text in (("whole", whole), ("bare", bare)):
        (tmp_path / f"{name}.html").write_text(text, encoding="utf-8")
        print_pdf(tmp_path / f"{name}.html", tmp_path / f"{name}.pdf")
        data = (tmp_path / f"{name}.pdf").read_bytes()
        sheets = len(re.findall(rb"/Type\s*/Page\b", data))
        # A stream may end with the byte of a carriage return, which is then no part of the line end: `decompressobj`
        # reads what is there, with one byte too many or too few of the checksum.
        packed = re.findall(rb"FlateDecode[^>]*>>\s*stream\r?\n(.*?)\r?\nendstream", data, re.S)
        streams = [zlib.decompressobj().decompress(s) for s in packed]
        counted.append((sheets, sum(len(re.findall(rb"\bBT\b", s)) for s in streams)))
    (sheets, texts), (same, fewer) = counted
    assert sheets == same > 3 and texts >= fewer + sheets
