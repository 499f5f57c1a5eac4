"""Results as tables of text, plain and drawn."""

from __future__ import annotations

import io
import re

import numpy as np
import pytest

import hitmiss as hm
from hitmiss.core.protocol import Gap, Protocol
from hitmiss.core.trials import stack
from hitmiss.engine.measure import measure
from hitmiss.engine.repeats import over_repeats
from hitmiss.reports import terminal
from hitmiss.reports.result_tables import matrix, tables
from hitmiss.reports.table import Table


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def trials(seed: int = 0, codecs: tuple[str, ...] = ("C01", "C02", "NONE")) -> hm.Trials:
    rng = np.random.default_rng(seed)
    label = rng.random(600) < 0.4
    attack = np.where(label, "bonafide", rng.choice(["A17", "A18"], 600))
    head = hm.Header(positive="bonafide", negative="spoof")
    return hm.Trials.of(
        label, rng.normal(0, 1, 600) + 2 * label, codec=rng.choice(codecs, 600), attack=attack, header=head
    )


def plain(found: list[Table]) -> str:
    out = io.StringIO()
    terminal.write_tables(found, out)
    return out.getvalue()


def test_each_figure_and_interval_is_in_the_table() -> None:
    results = measure(trials(), ["eer", "roc_auc"], by=["codec"], bootstrap=100, gap=Gap("codec", ("NONE",)))
    shown = plain(tables(results, "bonafide"))
    for e in results:
        assert f"{e.value:.4f}" in shown
        assert f"{e.low:.4f}".replace("0.", ".", 1) in shown or f"{e.low:.4f}" in shown
    for word in (
        "all trials",
        "by codec",
        "pooled",
        "macro",
        "worst",
        "gap: codec rest − NONE",
        "eer ↓",
        "roc_auc ↑",
        "95% interval",
    ):
        assert word in shown


def test_the_worst_slice_is_named_once_or_beside_each_interval() -> None:
    seen = set()
    for seed in range(8):
        results = measure(trials(seed), ["eer", "roc_auc"], by=["codec"], bootstrap=60)
        worst = [e for e in results if e.average == "worst"]
        names = [e.slice["codec"] for e in worst]
        (line,) = [line for line in plain(tables(results, "bonafide")).splitlines() if line.startswith("worst")]
        assert all(f"{e.high:.4f}".removeprefix("0") in line for e in worst)
        seen.add(len(set(names)))
        if len(set(names)) == 1:
            assert line.startswith(f"worst {names[0]} ") and line.count(names[0]) == 1
        else:
            assert all(f"{name} [" in line for name in names)
    assert seen == {1, 2}


def test_columns_without_anything_are_left_out() -> None:
    shown = plain(tables(measure(trials(), ["eer"]), "bonafide"))
    assert "interval" not in shown and shown.splitlines()[2].split() == ["metric", "value", "n", "bonafide"]


def test_undefined_is_a_dash_and_the_row_stays() -> None:
    shown = plain(tables(measure(trials(), ["eer"], by=["attack"]), "bonafide"))
    assert re.search(r"^A17 +\d+ +0 +–$", shown, re.M)


def test_matrix_has_pooled_ends_and_every_cell() -> None:
    results = measure(
        trials(), ["eer"], by=["attack", "codec", "attack,codec"], protocol=Protocol(negative_only=("attack",))
    )
    table = matrix(results, "attack", "codec", "eer")
    assert table.header == ("attack", "pooled", "C01", "C02", "NONE")
    assert [row[0].text for row in table.rows] == ["pooled", "A17", "A18"]
    assert table.rows[1][2].text == f"{results.one('eer', attack='A17', codec='C01').value:.4f}"


def test_runs_are_rows_and_seeds_are_summed_up() -> None:
    first = trials(1)
    other = first.put(score=first.column("score").round(1))
    both = measure(stack({"s1": first, "s2": other}, "seed"), ["eer"], by=["codec"])
    shown = plain(tables(over_repeats(both), "bonafide"))
    assert re.search(r"^s1 +600", shown, re.M) and "over runs" in shown and "2 runs" in shown
    assert "by codec (seed s2)" in shown


@pytest.mark.parametrize("hostile", ["\x1b[31mred", "a\nb", "\u202egnp", "x\x07"])
def test_values_from_files_cannot_steer_the_terminal(hostile: str) -> None:
    results = measure(trials(codecs=(hostile, "C01")), ["eer"], by=["codec"])
    for out in (io.StringIO(), Terminal()):
        terminal.write_tables(tables(results, "bonafide"), out)
        shown = re.sub(r"\x1b\[[0-9;]*m", "", out.getvalue()) if isinstance(out, Terminal) else out.getvalue()
        assert hostile not in shown and hostile.encode("unicode_escape").decode() in shown


def test_a_terminal_gets_lines_and_bold_and_no_line_is_wider() -> None:
    out = Terminal()
    terminal.write_tables(tables(measure(trials(), ["eer", "min_dcf"], by=["codec"], bootstrap=50), "bonafide"), out)
    bare = re.sub(r"\x1b\[[0-9;]*m", "", out.getvalue())
    assert "─" in bare and "\x1b[1m" in out.getvalue()
    assert max(map(len, bare.splitlines())) <= 100
