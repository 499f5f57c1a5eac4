"""The help of the verbs, the options that all of them take, and the completion of values."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from hitmiss.cli import main
from hitmiss.cli.main import VERBS, run

Capture = pytest.CaptureFixture[str]


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_an_example_and_a_short_help(verb: str, capsys: Capture) -> None:
    assert run([verb, "-h"]) == 0
    said = capsys.readouterr().out
    assert "Example:" in said and f"hitmiss {verb}" in said.split("Example:")[1]
    assert "<list[str]>" not in said


def test_the_summaries_are_not_cut(capsys: Capture) -> None:
    assert run(["--help"]) == 0
    said = capsys.readouterr().out
    assert "..." not in said.split("Verbs:")[1] and all(f"  {verb} " in said for verb in VERBS)
    assert "warnings and a signature" in " ".join(said.split())


def test_options_stand_in_groups(capsys: Capture) -> None:
    assert run(["score", "--help"]) == 0
    said = capsys.readouterr().out
    places = [said.index(f"{title}:") for title in main.GROUPS]
    assert places == sorted(places) and said.index("--bootstrap") > said.index("Intervals and tests:")


def test_quiet_says_results_alone(tmp_path: Path, capsys: Capture) -> None:
    file = tmp_path / "s.csv"
    rows = "\n".join(f"i{i},{i % 2},{0.1 * i}" for i in range(40))
    file.write_text(f"item,label,score\n{rows}\n")
    words = ["score", str(file), "-m", "roc_auc", "--positive", "fake", "--positive-value", "1"]
    assert run(words) == 0
    loud = capsys.readouterr()
    assert run([*words, "--quiet"]) == 0
    quiet = capsys.readouterr()
    assert "Can I trust it?" in loud.out and "Can I trust it?" not in quiet.out and "roc_auc" in quiet.out
    assert run([*words, "--verbose"]) == 0
    assert "Python" in capsys.readouterr().err


def test_the_version_loads_no_verb() -> None:
    code = "import sys; from hitmiss.cli.main import run; run(['--version']); print([m for m in sys.modules if m.startswith('hitmiss.cli.score')])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out.splitlines()[-1] == "[]"


def test_values_complete(tmp_path: Path) -> None:
    file = tmp_path / "key.tsv"
    file.write_text("item\tlabel\tcodec\tcodec_q\n")
    assert {"eer", "ece"} <= set(main.VALUES["metric"]({}))
    assert "asvspoof5" in set(main.VALUES["protocol"]({}))
    complete = main._completing(main.VALUES["by"])

    class Context:
        params = {"scores": [str(file)]}  # noqa: RUF012

    assert complete(Context(), None, "co") == ["codec", "codec_q"]
    assert complete(Context(), None, "label,co") == ["label,codec", "label,codec_q"]
