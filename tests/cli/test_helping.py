"""The help of the verbs, the options that all of them take, and the completion of values."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.shell_completion import ShellComplete

from hitmiss.cli import main
from hitmiss.cli.help import GROUPS
from hitmiss.cli.main import JOBS, VERBS, run
from hitmiss.cli.options import VerbOption

Capture = pytest.CaptureFixture[str]


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_an_example_and_a_short_help(verb: str, capsys: Capture) -> None:
    assert run([verb, "-h"]) == 0
    said = capsys.readouterr().out
    assert "Example:" in said and f"hitmiss {verb}" in said.split("Example:")[1]
    assert "<list[str]>" not in said and "Literal" not in said


def flags(text: str) -> set[str]:
    """Return the options that a help lists."""
    return {name for line in text.splitlines() for name in re.findall(r"^  (?:-\w, )?(--[a-z-]+)(?=[ ,/]|$)", line)}


@pytest.mark.parametrize("verb", VERBS)
def test_the_short_help_shows_at_most_fourteen_options_and_the_long_one_all(verb: str, capsys: Capture) -> None:
    assert run([verb, "--help"]) == 0
    short = flags(capsys.readouterr().out) - {"--help", "--help-all"}
    assert run([verb, "--help-all"]) == 0
    long = flags(capsys.readouterr().out) - {"--help", "--help-all"}
    declared = {p.spelling.partition("/")[0] for p in main.find_verb(verb).params if isinstance(p, VerbOption)}
    assert short <= long and len(short) <= 14
    assert {name.split("/")[0] for name in declared} == long


def test_the_summaries_are_not_cut(capsys: Capture) -> None:
    assert run(["--help"]) == 0
    said = capsys.readouterr().out
    assert "..." not in said and all(f"  {verb} " in said for verb in VERBS)
    assert [line for line in said.splitlines() if line.rstrip(":") in JOBS] == [f"{job}:" for job in JOBS]
    assert "warnings and a signature" in " ".join(said.split())


def test_options_stand_in_groups(capsys: Capture) -> None:
    assert run(["score", "--help-all"]) == 0
    said = capsys.readouterr().out
    places = [said.index(f"{title}:") for title in GROUPS if f"{title}:" in said]
    assert len(places) >= 4
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
    assert {"eer", "ece"} <= {*completed("score", "--metric", "e")}
    assert completed("score", "-p", "deepf") == ["deepfake-audio"]
    assert completed("score", str(file), "--by", "co") == ["codec", "codec_q"]
    assert completed("score", str(file), "--by", "label,co") == ["label,codec", "label,codec_q"]
    assert completed("score", "--on-nan", "d") == ["drop"]
    assert "--score-kind" in completed("score", "--score")
    assert completed("sc") == ["score"]


def completed(*words: str) -> list[str]:
    """Return what a shell gets for the last word of a command line."""
    found = ShellComplete(main._group(), {}, "hitmiss", main.COMPLETION).get_completions(list(words[:-1]), words[-1])
    return [item.value for item in found]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_gets_its_script(shell: str, capsys: Capture) -> None:
    assert run(["--completion", shell]) == 0
    assert main.COMPLETION in capsys.readouterr().out


def test_the_kinds_of_detectors_are_listed_by_a_fresh_process() -> None:
    done = subprocess.run([sys.executable, "-m", "hitmiss", "list", "detectors"], capture_output=True, text=True)
    assert {".onnx", "beats", "program", "hf-audio"} <= {line.split()[0] for line in done.stdout.splitlines()}
