"""Tables on terminals of 80, 100 and 120 columns: no line is wider, no figure is cut, every row can be told from the others."""

from __future__ import annotations

import fcntl
import io
import os
import re
import struct
import termios
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TextIO

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.reports import stories
from tests.reports.test_stories import attack_run

from hitmiss.cli import demo_steps
from hitmiss.conclude.verdict import conclude as assess
from hitmiss.core.results import Results
from hitmiss.engine.compare import compare
from hitmiss.engine.rank import compare_all
from hitmiss.reports import comparison_tables, ranking_tables, result_tables, terminal
from hitmiss.reports.table import Table, TableCell
from hitmiss.reports.terminal import LEAST_TEXT

WIDTHS = (80, 100, 120)
Job = tuple[str, float, Callable[[Path, float], Path], Callable[[Path], list[list[str]]]]
"""A job of the demo: its name, the share of its data, how the data is made, and its commands."""


def on_terminal(shown: Sequence[Table], width: int, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What a terminal of that width is sent, without its colours."""
    monkeypatch.delenv("COLUMNS", raising=False)
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    master, slave = os.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, width, 0, 0))
    held = io.StringIO()

    class Terminal(io.StringIO):
        encoding = "utf-8"  # type: ignore[assignment]

        def isatty(self) -> bool:
            return os.isatty(slave)

        def fileno(self) -> int:
            return slave

        def write(self, text: str) -> int:
            return held.write(text)

    stream: TextIO = Terminal()
    try:
        terminal.write_tables(list(shown), stream)
    finally:
        os.close(master)
        os.close(slave)
    return re.sub(r"\x1b\[\d*m", "", held.getvalue()).splitlines()


def demo_tables() -> list[Table]:
    """The kinds of tables that the verbs print: all trials, by slice, comparisons, rankings, attacks, long names."""
    runs = stories.systems(3)
    a, b, c = (run.trials for run in runs)
    assert a is not None and b is not None and c is not None
    found = result_tables.tables(runs[0].results, "bonafide")
    found += comparison_tables.tables(
        compare(a, b, ["eer", "roc_auc"], by=["codec"], bootstrap=50, seed=0, names=("a", "b"))
    )
    found += ranking_tables.ranking_tables(compare_all({"a": a, "b": b, "c": c}, ["roc_auc"]))
    attacks = [attack_run(x, 0.05) for x in (0.2, 0.5)]
    rows = [e for own in attacks for e in own]
    moved = [
        type(e)(**{**vars(e), "run": {**e.run, "strength": f"{i / 10:g}", "aim": "force MI", "place": "whole"}})
        for i, e in enumerate(rows)
    ]
    found += result_tables.tables(Results(tuple(moved)), "labels")
    long = "a_run_with_a_very_long_name/of_a_folder/that_nobody_would_shorten"
    names = tuple(
        (TableCell(f"{long}_{i}"), *(TableCell(f"{j / 7:.4f}", "[.1234, .5678]") for j in range(6))) for i in range(9)
    )
    return [*found, Table("long names", ("run", *(f"metric_{j} ↓" for j in range(6))), names)]


def printed_by(folder: Path, jobs: Sequence[Job], change: Callable[[list[str]], list[str]]) -> list[Table]:
    """Every table that jobs of the demo print; `change` makes their commands shorter."""
    from hitmiss.cli.main import run

    found = list[Table]()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(terminal, "write_tables", lambda shown, stream=None: found.extend(shown))
        for name, share, simulate, commands in jobs:
            for words in commands(simulate(folder / name, share)):
                assert run(change(words)) == 0
    return found


def instead(words: list[str], option: str, value: str) -> list[str]:
    """Return a command with this value of an option, whether it had another one or none."""
    at = words.index(option) if option in words else len(words)
    return [*words[:at], *words[at + 2 :], option, value]


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> list[Table]:
    """Every table of the jobs that need no model: scores, toxicity, triage with people, comparisons."""
    jobs: list[Job] = [
        ("asvspoof5", 0.02, demo_steps.simulate_asvspoof5, demo_steps.score_asvspoof5),
        ("toxicity", 0.02, demo_steps.simulate_toxicity, demo_steps.score_toxicity),
        ("triage", 0.02, demo_steps.simulate_triage, demo_steps.score_triage),
    ]
    found = printed_by(
        tmp_path_factory.mktemp("demo"),
        jobs,
        lambda words: words if words[0] == "toxicity" else instead(words, "--bootstrap", "20"),
    )
    assert len(found) > 15
    return found


@pytest.fixture(scope="module")
def printed_with_models(tmp_path_factory: pytest.TempPathFactory) -> list[Table]:
    """Every table of the jobs that run a model: a detector over codecs, attacks on ECGs, a model asked about pictures."""
    for name in ("soundfile", "soxr", "av", "PIL"):
        pytest.importorskip(name)
    jobs: list[Job] = [
        ("voices", 0.02, demo_steps.simulate_voices, demo_steps.detect_voices),
        ("ecg", 0.05, demo_steps.simulate_ecg, demo_steps.attack_ecg),
        ("llm", 0.02, demo_steps.simulate_pictures, demo_steps.ask_standin),
    ]

    def shorter(words: list[str]) -> list[str]:
        words = ["20" if word == "1000" else word for word in words]
        if words[0] == "detect":
            return instead(words, "--workers", "0")
        if words[0] != "attack":
            return words
        kept = words[: words.index("--family")]
        families = ["--family", "band_noise(beta=0.5)", "--family", "morph_amp", "--strengths", "0.5", "1"]
        return [*kept, *families, *words[words.index("--output") :]]

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(demo_steps, "has_inspect", lambda: False)  # the stand-in is asked without a server
        found = printed_by(tmp_path_factory.mktemp("models"), jobs, shorter)
    titles = " ".join(table.title for table in found)
    assert "drift by codec" in titles and "by attack" in titles and "verdicts" in titles
    return found


def assert_it_fits(table: Table, width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """No line is too wide, no figure is cut, no label is lost, and no two rows look alike."""
    lines = on_terminal([table], width, monkeypatch)
    assert max(map(len, lines)) <= width, max(lines, key=len)
    joined = "\n".join(lines)
    for row in table.rows:
        for cell in row[table.labels :]:
            for part in filter(None, (cell.text, cell.below)):
                short = [word for word in part.split() if len(word) <= LEAST_TEXT]  # longer are names, not figures
                assert all(word in joined for word in short), (part, joined)
    squeezed = re.sub(r"\s", "", joined)
    for row in table.rows:
        for label in row[: table.labels]:  # names are wrapped at words and underscores, so their pieces are there
            pieces = [p for p in re.split(r"[\s_]+", label.text) if p]
            assert all(piece[:12] in squeezed for piece in pieces), (label.text, joined)
    named = [tuple(cell.text for cell in row[: table.labels or len(row)]) for row in table.rows]
    assert len({*named}) == len(named), table.title


@pytest.mark.parametrize("width", WIDTHS)
def test_every_table_fits_and_keeps_every_figure(
    width: int, printed: list[Table], monkeypatch: pytest.MonkeyPatch
) -> None:
    for table in [*demo_tables(), *printed]:
        assert_it_fits(table, width, monkeypatch)


@pytest.mark.extras
@pytest.mark.parametrize("width", WIDTHS)
def test_every_table_of_the_jobs_with_models_fits(
    width: int, printed_with_models: list[Table], monkeypatch: pytest.MonkeyPatch
) -> None:
    for table in printed_with_models:
        assert_it_fits(table, width, monkeypatch)


@given(
    st.lists(st.lists(st.tuples(st.integers(0, 9999), st.booleans()), min_size=1, max_size=14), min_size=1, max_size=8),
    st.sampled_from((40, 80, 100, 120)),
    st.integers(3, 60),
)
@settings(max_examples=60, deadline=None)
def test_any_table_fits(figures: list[list[tuple[int, bool]]], width: int, label: int) -> None:
    n = min(map(len, figures))
    rows = tuple(
        (
            TableCell("x" * label + f"{i}"),
            *(TableCell(f"0.{v:04d}", f"[.{v:04d}, .9999]" if ends else "") for v, ends in row[:n]),
        )
        for i, row in enumerate(figures)
    )
    table = Table("t", ("name", *(f"m{i} ↓" for i in range(n))), rows)
    drawn = [row.text for row in terminal.fitted(table, width)]
    assert max(map(len, drawn)) <= width
    found = "\n".join(drawn)
    for row in rows:
        for cell in row[1:]:
            assert len(re.findall(rf"(?<![\d.]){re.escape(cell.text)}", found)) >= 1
    counted = [word for line in drawn for word in re.findall(r"(?<![\d.\[])0\.\d{4}", line)]
    assert len(counted) == n * len(rows)  # each figure once: none is lost, none is shown twice


def test_a_narrow_encoding_gets_marks_in_ascii() -> None:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="cp1252", write_through=True)
    terminal.write_tables(
        [Table("eer × codec", ("codec", "eer ↓"), ((TableCell("C01"), TableCell("–", "−0.1")),))], stream
    )
    terminal.write_verdict(assess(stories.coin_flip().results), (), stream)
    said = raw.getvalue().decode("cp1252")
    assert "eer v" in said and "×" in said and "! Not shown to be better than chance" in said and "\\u" not in said


def test_a_pipe_gets_one_line_per_row_and_no_colour() -> None:
    stream = io.StringIO()
    (table,) = [t for t in demo_tables() if t.title == "long names"]
    terminal.write_tables([table], stream)
    lines = stream.getvalue().strip().splitlines()
    assert len(lines) == 2 + len(table.rows) and "\x1b" not in stream.getvalue()
