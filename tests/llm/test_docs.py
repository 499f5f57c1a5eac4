"""The page and the example say what happens."""

from __future__ import annotations

import contextlib
import importlib.util
from pathlib import Path

import pytest

from hitmiss.cli.main import run
from hitmiss.llm.rows import row_of, shared
from hitmiss.llm.tools import TOOLS

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "llm.md").read_text(encoding="utf-8")


def test_the_page_shows_what_the_command_prints(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from hitmiss.simulate.pictures import write

    joined = PAGE.replace("\\\n", " ").splitlines()
    line = next(line for line in joined if "--models hitmiss.llm.standin:look" in line)
    with contextlib.chdir(tmp_path):
        write("demo/llm")
        assert run(line.split()[2:]) == 0
    shown = capsys.readouterr()
    assert all(line in PAGE for line in shown.out.splitlines())
    assert "!" not in shown.err  # the simulated pictures leak no label


def test_the_page_names_every_tool_and_field() -> None:
    from hitmiss.llm.items import Item
    from hitmiss.llm.plan import Call, CallPlan
    from hitmiss.llm.prices import Prices

    item = Item("a", "image", "fake", "0", "image/png", file="a.png")
    plan = CallPlan([item], ["m"])
    row = row_of(plan, Call("m", False, 0, item), {"error": "no"}, shared(plan), Prices({}))
    assert all(f"{name}" in PAGE for name in (*row, *TOOLS))


@pytest.mark.usefixtures("own_caches")
def test_the_example(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec = importlib.util.spec_from_file_location("example_llm", ROOT / "examples" / "llm_detector.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.main(tmp_path)
    text = capsys.readouterr().out
    assert "fake_slip_rate [model=hitmiss.llm.standin:look" in text
