"""How the command ends: one sentence on stderr, nothing on stdout, and the exit code of the table in `cli.failing`."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import hitmiss.cli
from hitmiss.cli.main import VERBS, find_verb, run

Capture = pytest.CaptureFixture[str]

ENDINGS = [
    ("errors.GateFailed('the EER is above 0.05')", 1, "hitmiss: the EER is above 0.05"),
    ("errors.UsageError('give a key')", 2, "hitmiss: give a key"),
    ("errors.DataError('2 scores are missing')", 3, "hitmiss: 2 scores are missing"),
    ("errors.IncompleteRun('the run stopped at item 7')", 4, "hitmiss: the run stopped at item 7"),
    ("errors.EnvironmentFault('torch is missing')", 5, "hitmiss: torch is missing"),
    ("FileNotFoundError(2, 'No such file', 'scores.tsv')", 3, "hitmiss: there is no file scores.tsv"),
    (
        "FileNotFoundError(2, 'No such file', 'roc_auc')",
        3,
        "hitmiss: there is no file roc_auc; for the metric of this name write -m roc_auc",
    ),
    (
        "registry.parse('eer,min_dcf(c_fa=10)') and OSError()",
        2,
        "hitmiss: cannot read 'eer,min_dcf(c_fa=10)' as a metric; give several one by one: -m eer -m min_dcf(c_fa=10)",
    ),
    ("PermissionError(13, 'Permission denied', 'scores.tsv')", 3, "hitmiss: scores.tsv: Permission denied"),
    ("IsADirectoryError(21, 'Is a directory', 'runs')", 3, "hitmiss: runs: Is a directory"),
    ("OSError(28, 'No space left on device', 'out.json')", 5, "hitmiss: out.json: No space left on device"),
    ("MemoryError()", 5, "hitmiss: there is not enough memory on this machine"),
    ("KeyboardInterrupt()", 130, "hitmiss: interrupted"),
]


def failing_plugin(folder: Path, expression: str) -> list[str]:
    """Words of a command line whose work fails: a plug-in that breaks the verb."""
    file = folder / "fails.py"
    imports = "from hitmiss.core import errors, registry\nfrom hitmiss.core.errors import Fault"
    broken = (
        f"import hitmiss.cli.list as verb\ndef metric_rows():\n    verb.metric_rows = kept\n    raise {expression}\n"
    )
    file.write_text(f"{imports}\n{broken}\nkept, verb.metric_rows = verb.metric_rows, metric_rows\n", encoding="utf-8")
    return ["--plugin", str(file), "list", "metrics"]


@pytest.mark.parametrize(("raised", "code", "sentence"), ENDINGS)
def test_each_failure_has_its_ending(raised: str, code: int, sentence: str, tmp_path: Path, capsys: Capture) -> None:
    assert run(failing_plugin(tmp_path, raised)) == code
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err == f"{sentence}\n"


def test_a_bug_is_called_a_bug(tmp_path: Path, capsys: Capture) -> None:
    assert run(failing_plugin(tmp_path, "RuntimeError('seven')")) == 5
    err = capsys.readouterr().err
    assert err.startswith("hitmiss: RuntimeError: seven; this is a bug in hitmiss") and "--debug" in err
    assert err.count("\n") == 1


@pytest.mark.parametrize("place", [0, 4])
def test_debug_shows_the_traceback_wherever_it_stands(place: int, tmp_path: Path, capsys: Capture) -> None:
    words = failing_plugin(tmp_path, "errors.DataError('no')")
    assert run([*words[:place], "--debug", *words[place:]]) == 3
    err = capsys.readouterr().err
    assert "Traceback" in err and err.endswith("hitmiss: no\n")


@pytest.mark.parametrize(("count", "lines"), [(0, 1), (5, 6), (6, 7), (12, 7)])
def test_faults_are_listed_up_to_five(count: int, lines: int, tmp_path: Path, capsys: Capture) -> None:
    faults = f"[Fault('nan-score', 'not a number', file='s.tsv', row=n) for n in range({count})]"
    assert run(failing_plugin(tmp_path, f"errors.DataError('bad scores', {faults})")) == 3
    err = capsys.readouterr().err.splitlines()
    assert len(err) == lines
    assert (f"  … and {count - 5} more; `hitmiss validate` lists all" in err) == (count > 5)
    assert count == 0 or err[1] == "  s.tsv, row 0: not a number"


def test_control_characters_of_the_data_are_shown_not_obeyed(tmp_path: Path, capsys: Capture) -> None:
    assert run(failing_plugin(tmp_path, r"errors.DataError('id \x1b[2J\r\n\u202e\x9b is there twice')")) == 3
    assert capsys.readouterr().err == r"hitmiss: id \x1b[2J\r\n\u202e\x9b is there twice" + "\n"


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["docter"], "did you mean 'doctor'?"),
        (["list", "metrix"], "'metrics'"),
        (["list", "metrics", "--jsn"], "--json"),
        (["show"], "`hitmiss show --help`"),
        (["show", "eeer"], "did you mean 'eer'"),
        (["show", "eer(tie=1)"], "did you mean 'ties'?"),
        (["--plugin", "nowhere.py", "list", "metrics"], "no plug-in file nowhere.py"),
    ],
)
def test_wrong_words_are_code_2_with_a_hint(words: list[str], hint: str, capsys: Capture) -> None:
    assert run(words) == 2
    printed = capsys.readouterr()
    assert printed.out == "" and printed.err.startswith("hitmiss: ") and hint in printed.err


def test_a_plugin_s_metric_is_known(tmp_path: Path, capsys: Capture) -> None:
    from hitmiss.core import registry

    file = tmp_path / "mine.py"
    file.write_text(
        "from hitmiss import metric\n"
        "@metric(best='low', range=(0.0, float('inf')))\n"
        "def spread(score, weight=None, *, scale=2.0):\n    'Largest less smallest score.'\n    return 0.0\n"
    )
    try:
        assert run(["--plugin", str(file), "show", "spread(scale=3)"]) == 0
    finally:
        registry.forget("spread")
    out = capsys.readouterr().out
    assert "scale=3" in out and "Largest less smallest score." in out and "0.0, inf" in out


@pytest.mark.parametrize("words", [[], ["--help"], *([verb, "--help"] for verb in VERBS)])
def test_everything_has_help(words: list[str], capsys: Capture) -> None:
    assert run(words) == 0
    out = capsys.readouterr().out
    assert out.startswith("Usage: hitmiss") and "--help" in out
    assert len(out.split("\n\n")[1].strip()) > 20, "a verb says what it does"


def test_the_verbs_are_those_of_the_table() -> None:
    files = {path.stem for path in (Path(hitmiss.cli.__file__).parent).glob("*.py")}
    assert {*VERBS} <= files and all(find_verb(verb).name == verb for verb in VERBS)


def test_a_reader_that_goes_away_is_no_error() -> None:
    child = subprocess.Popen(
        [sys.executable, "-m", "hitmiss", "list", "metrics", "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert child.stdout is not None and child.stderr is not None
    child.stdout.close()
    err = child.stderr.read()
    child.stderr.close()
    assert (child.wait(), err) == (0, b"")


def test_an_interrupt_is_130(tmp_path: Path) -> None:
    file = tmp_path / "waits.py"
    file.write_text("import time\nprint('ready', flush=True)\ntime.sleep(60)\n")
    command = [sys.executable, "-m", "hitmiss", "--plugin", str(file), "list", "metrics"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None and child.stdout.readline() == "ready\n"
        os.kill(child.pid, signal.SIGINT)
        out, err = child.communicate(timeout=30)
    assert (child.returncode, out, err) == (130, "", "hitmiss: interrupted\n")


def test_python_m_hitmiss_is_the_command() -> None:
    done = subprocess.run([sys.executable, "-m", "hitmiss", "nonsense"], capture_output=True, text=True, check=False)
    assert done.returncode == 2 and done.stdout == "" and done.stderr.startswith("hitmiss: ")


def test_a_model_that_ends_the_program_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "model.py").write_text("def score(texts):\n    raise SystemExit(7)\n")
    (tmp_path / "x.csv").write_text("item,text,label\na,x,bonafide\nb,y,spoof\n")
    words = ["detect", "--data", str(tmp_path / "x.csv"), "--detector", f"{tmp_path / 'model.py'}:score"]
    assert run([*words, "--input", "text", "--outputs", "logit", "-o", str(tmp_path / "run")]) == 3
    assert "exit code 7" in capsys.readouterr().err


@pytest.mark.parametrize("stream", [[], ["--stream"]], ids=["memory", "stream"])
@pytest.mark.parametrize("ending", [".csv", ".jsonl"])
def test_a_number_too_large_for_a_float_is_no_infinity(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], stream: list[str], ending: str
) -> None:
    """1e400 and 1e500 would both be infinite, and equal; an infinity that is written as one is read."""
    rows = [("a", "real", "{}"), ("b", "fake", "0.9"), ("c", "real", "0.3"), ("d", "fake", "0.8")]
    path = tmp_path / f"scores{ending}"
    for least, code in (("-1e400", 3), ("-Infinity", 0)):
        if ending == ".csv":
            lines = ["id,label,score", *(",".join(row) for row in rows)]
        else:
            lines = [f'{{"id": "{i}", "label": "{y}", "score": {x}}}' for i, y, x in rows]
        path.write_text("\n".join(lines).replace("{}", least) + "\n")
        assert run(["score", str(path), "--positive", "fake", "-m", "roc_auc", *stream]) == code
    assert "'-1e400'" in capsys.readouterr().err


@pytest.mark.parametrize("stream", [[], ["--stream"]], ids=["memory", "stream"])
def test_a_table_by_name_alone_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], stream: list[str]
) -> None:
    path = tmp_path / "scores.parquet"
    path.write_bytes(bytes(range(128, 256)) * 4)
    assert run(["score", str(path), "--positive", "fake", "-m", "roc_auc", *stream]) == 3
    assert "neither such a table nor text" in capsys.readouterr().err
