"""The paper kit: systems × conditions, labels and captions, matrices that are shaded, figures in a folder."""

from __future__ import annotations

import io
import re
import shutil
import subprocess
import zipfile
from pathlib import Path

import numpy as np
import pytest
from tests.reports import stories

import hitmiss as hm
from hitmiss.cli.main import run
from hitmiss.core.results import Estimate, Results
from hitmiss.engine.rank import compare_all
from hitmiss.engine.ranking import RankedRun
from hitmiss.reports.evaluations import RunData, evaluations
from hitmiss.reports.latex import latex
from hitmiss.reports.markdown import markdown
from hitmiss.reports.paper_kit import PACKAGES, paper_tables
from hitmiss.reports.pictures import pictures, to_json
from hitmiss.reports.plate import Dots
from hitmiss.reports.result_tables import tables
from hitmiss.reports.sheets import csv_text, xlsx_bytes
from hitmiss.reports.slice_plates import ranks_plate
from hitmiss.reports.table_style import TableStyle


def test_systems_are_rows_and_conditions_columns() -> None:
    sources = stories.systems(3)
    text = paper_tables(evaluations(sources)[0], ["eer"])
    (table,) = re.findall(r"\\begin{table}.*?\\end{table}", text, re.DOTALL)
    assert r"System & {pooled} & {c00} & {c01} & {c02} \\" in table
    rows = [line for line in table.splitlines() if line.startswith("sys")]
    assert len(rows) == 3 and all(row.count("&") == 4 for row in rows)
    whole = sources[0].results.one("eer").value
    assert whole is not None and f"{100 * whole:.1f}" in rows[0]
    assert r"\label{tab:eer-codec}" in table and "EER" in table and r"\bfseries" not in table  # nothing was tested


def test_many_conditions_and_systems_lose_no_row() -> None:
    rng = np.random.default_rng(0)
    label = np.arange(2400) % 2
    codec = [f"c{i:02d}" for i in np.arange(2400) // 2 % 20]
    made = [
        RunData(
            f"s{i:02d}",
            hm.measure(hm.Trials.of(label, rng.normal(size=2400) + label, codec=codec), ["eer"], by=["codec"]),
        )
        for i in range(45)
    ]
    text = paper_tables(evaluations(made)[0])
    assert text.count(r"\begin{longtable}") == 3 and text.count("tab:eer-codec-") == 3
    for i in range(45):
        assert len(re.findall(rf"^s{i:02d} &", text, re.MULTILINE)) == 3
    assert all(f"{{c{i:02d}}}" in text for i in range(20))


def test_crossed_conditions_are_a_shaded_matrix() -> None:
    rng = np.random.default_rng(1)
    label = np.arange(1200) % 2
    attack, codec = (np.array(list("ABC"))[np.arange(1200) // k % 3] for k in (2, 6))
    trials = hm.Trials.of(label, rng.normal(size=1200) + label, attack=attack.tolist(), codec=codec.tolist())
    results = hm.measure(trials, ["eer"], by=["attack", "codec", "attack,codec"])
    text = paper_tables(evaluations([RunData("r", results)])[0])
    assert r"\cellcolor{orange!63}" in text and "by attack and codec" in text


def test_the_command_writes_tables_and_figures(tmp_path: Path) -> None:
    (source,) = stories.systems(1)
    assert source.trials is not None
    file = tmp_path / "results.json"
    file.write_text(to_json(source.results, pictures(source.trials, source.results)))
    assert run(["export", str(file), "--for", "paper", "-o", str(tmp_path / "kit")]) == 0
    kit = tmp_path / "kit"
    assert (kit / "tables.tex").read_text().startswith("% needs") and (kit / "det.pdf").read_bytes().startswith(b"%PDF")


def has_latex() -> bool:
    """Whether there is a LaTeX with the packages that the tables need."""
    finder = shutil.which("kpsewhich")
    if finder is None or shutil.which("pdflatex") is None:
        return False
    wanted = [f"{name}.sty" for name in PACKAGES]
    found = subprocess.run([finder, *wanted], capture_output=True, text=True, check=False).stdout.split()
    return len(found) == len(wanted)


@pytest.mark.skipif(not has_latex(), reason="there is no pdflatex with siunitx, adjustbox, … on this machine")
@pytest.mark.parametrize("columns", ["onecolumn", "twocolumn"])
def test_the_tables_compile_and_nothing_is_overfull_or_lost(tmp_path: Path, columns: str) -> None:
    """Few systems, and more than a page is long: every row is set, on paper of one column and of two."""
    rng = np.random.default_rng(0)
    label, codec = np.arange(240) % 2, [f"c{i}" for i in np.arange(240) // 2 % 4]
    many = [
        RunData(
            f"s{i:02d}",
            hm.measure(hm.Trials.of(label, rng.normal(size=240) + label, codec=codec), ["eer"], by=["codec"]),
        )
        for i in range(60)
    ]
    few, long = (paper_tables(evaluations(sources)[0]) for sources in (stories.systems(3), many))
    assert "longtable}" in long and "begin{longtable" not in few
    told = re.sub(r"^(s\d\d) &", r"\\typeout{SET-\1}\1 &", long, flags=re.MULTILINE)
    packages = "".join(rf"\usepackage{{{p}}}" for p in PACKAGES)
    body = rf"\documentclass[{columns}]{{article}}{packages}\begin{{document}}{few}{told}\end{{document}}"
    (tmp_path / "t.tex").write_text(body)
    done = subprocess.run(
        ["pdflatex", "-interaction=nonstopmode", "t.tex"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-1500:]
    assert "Overfull" not in done.stdout and "Float too large" not in done.stdout
    assert set(re.findall(r"SET-(s\d\d)", done.stdout)) == {f"s{i:02d}" for i in range(60)}


def test_the_kit_has_forest_heat_and_rank_figures_and_says_how_to_cite(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = stories.systems(3, size=240)
    for source in made:
        source.results.save(tmp_path / f"{source.name}.json")
    ranked = compare_all({s.name: s.trials for s in made if s.trials is not None}, ["eer"], bootstrap=50)
    (tmp_path / "ranks.json").write_text(ranked.to_json(), encoding="utf-8")
    files = [str(tmp_path / f"{s.name}.json") for s in made]
    asked = [
        "export",
        *files,
        "--for",
        "paper",
        "--comparison",
        str(tmp_path / "ranks.json"),
        "-o",
        str(tmp_path / "kit"),
    ]
    assert run(asked) == 0
    names = {p.name for p in (tmp_path / "kit").iterdir()}
    assert {"forest_codec_sys00.pdf", "ranks.pdf", "tables.tex"} <= names
    said = capsys.readouterr().err
    assert "cite: hitmiss" in said and said.count("signature: hitmiss:") == 3
    shorts = [line.removeprefix("signature: ") for line in said.splitlines() if line.startswith("signature: ")]
    text = (tmp_path / "kit" / "tables.tex").read_text(encoding="utf-8")
    assert all(len(short) <= 60 and short in text for short in shorts)


def test_exports_call_a_metric_as_its_protocol_does() -> None:
    rows = tuple(
        Estimate("fpr", v, n=50, n_positive=20, slice={"species": s} if s else {}, best="low", title="APCER")
        for s, v in (("", 0.1), ("a", 0.2), ("b", 0.05))
    )
    results = Results(rows)
    for made in (
        latex(tables(results, "", TableStyle())),
        markdown(tables(results, "", TableStyle())),
        paper_tables(evaluations([RunData("r", results)])[0]),
    ):
        assert "APCER" in made and "fpr" not in made.replace("tab:fpr", "")
    assert "APCER" in csv_text(results)
    assert b"APCER" in zipfile.ZipFile(io.BytesIO(xlsx_bytes(results))).read("xl/sharedStrings.xml")


def test_a_rank_figure_shows_intervals_that_hold_the_rank() -> None:
    own = [RankedRun("eer", f"s{i}", 0.1 * i, "a", "low", rank_low=max(i - 1, 1), rank_high=i + 1) for i in (1, 2, 3)]
    plate = ranks_plate(own, "tier", {"s1": "1", "s2": "1", "s3": "2"})
    assert [name for _, name in plate.y.ticks] == ["s1 (tier 1)", "s2 (tier 1)", "s3 (tier 2)"]
    (dots,) = plate.marks
    assert isinstance(dots, Dots) and dots.low is not None and dots.high is not None
    assert (dots.low <= dots.x).all() and (dots.x <= dots.high).all() and dots.y[0] > dots.y[-1]
