"""Other systems and other terminals: streams that are not UTF-8, and a system without what only Linux has."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

ELSEWHERE = """
import os, pathlib, signal, sys

# Windows has none of these modules and functions, and opens no folder as a file.
for name in ("fcntl", "resource", "pwd", "grp", "termios", "tty", "pty", "readline"):
    sys.modules[name] = None
for name in ("memfd_create", "sched_getaffinity", "fork", "getuid", "geteuid", "fchmod", "mkfifo", "statvfs"):
    if hasattr(os, name):
        delattr(os, name)
for name in ("SIGHUP", "SIGALRM", "SIGKILL", "SIGUSR1"):
    delattr(signal, name)
opened, listed = os.open, open

def open_file(path, *rest, **more):
    if isinstance(path, (str, os.PathLike)) and (os.path.isdir(path) or str(path).startswith("/proc")):
        raise PermissionError(13, "Permission denied", str(path))
    return opened(path, *rest, **more)

os.open = open_file
"""
"""A system like Windows."""
IN_TURN = """
import json, sys
from hitmiss.cli.main import run

for words in json.loads(sys.argv[1]):
    code = run(words)
    print(f"\\x1e{code}", flush=True)
"""
"""Several commands in one process, each followed by its exit code."""


@cache
def ran(folder: Path, encoding: str = "utf-8", elsewhere: bool = False) -> dict[str, str]:
    """What each command of the core prints, in a process with this encoding; all must succeed."""
    done = subprocess.run(
        [sys.executable, "-c", ELSEWHERE * elsewhere + IN_TURN, json.dumps(list(CORE.values()))],
        cwd=folder,
        env={**os.environ, "PYTHONIOENCODING": encoding, "PYTHONUTF8": "0"},
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode(encoding)
    parts = re.split(r"\x1e(\d+)\r?\n", done.stdout.decode(encoding))
    assert parts[1::2] == ["0"] * len(CORE), done.stderr.decode(encoding)
    return dict(zip(CORE, parts[::2], strict=False))


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Small files of every verb of the core."""
    folder = tmp_path_factory.mktemp("core")
    rows = [(i, ("bonafide", "spoof")[i % 2], (i * 37 % 101) / 50 - (i % 2) * 0.7, f"C{i % 3}") for i in range(120)]
    for name, shift in (("a", 0.0), ("b", 0.1)):
        lines = [f"u{i},{label},{score + shift * (i % 5):.4f},{codec}\n" for i, label, score, codec in rows]
        (folder / f"{name}.csv").write_text("id,label,score,codec\n" + "".join(lines))
    texts = [f"{i},{i % 2},{(i * 7 % 10) / 10 * 0.5 + (i % 2) * 0.4:.2f}\n" for i in range(60)]
    (folder / "run_en.csv").write_text("id,y_true,y_prob\n" + "".join(texts))
    said = [
        f'{{"id": "x{i}", "model": "m", "label": "{("fake", "real")[i % 2]}", '
        f'"prediction": "{("fake", "real", "uncertain")[i % 3]}", "confidence": 0.8}}\n'
        for i in range(40)
    ]
    (folder / "t.jsonl").write_text("".join(said))
    return folder


SCORE = ["a.csv", "--positive", "bonafide", "-m", "eer", "-m", "roc_auc", "--by", "codec", "--bootstrap", "20"]
CORE = {
    "score": ["score", *SCORE, "-o", "results.json"],
    "toxicity": ["toxicity", "--pred_dir", ".", "--run_tag", "run", "--languages", "en", "--bootstrap", "20"],
    "triage": ["triage", "t.jsonl", "--bootstrap", "20"],
    "compare": ["compare", "a.csv", "b.csv", "--positive", "bonafide", "-m", "roc_auc"],
    "gate": ["gate", "results.json", "--fail-if", "eer>0.9"],
    "report": ["report", "results.json", "-o", "report.html"],
}


@pytest.mark.parametrize("verb", CORE)
def test_the_core_runs_on_a_system_without_what_linux_has(files: Path, verb: str) -> None:
    there, here = ran(files, elsewhere=True)[verb], ran(files)[verb]
    assert there == here and (here or verb == "report")


def test_runs_are_refused_there_in_a_sentence(files: Path) -> None:
    (files / "d.py").write_text("def d(texts):\n    return [float(len(t)) for t in texts]\n")
    (files / "d.csv").write_text("id,text,label\n1,aa,toxic\n2,b,non-toxic\n")
    words = ["detect", "--detector", "d.py:d", "--data", "d.csv", "--input", "text", "-p", "toxicity", "-o", "run"]
    start = [sys.executable, "-c", ELSEWHERE + IN_TURN, json.dumps([words])]
    found = subprocess.run(start, cwd=files, capture_output=True, check=False)
    assert found.stdout == b"\x1e5\n" and b"need Linux or macOS" in found.stderr and b"bug" not in found.stderr


@pytest.mark.parametrize("encoding", ["cp1252", "latin-1", "ascii"])
@pytest.mark.parametrize("verb", ["score", "triage", "compare", "toxicity"])
def test_tables_come_through_in_any_encoding(files: Path, verb: str, encoding: str) -> None:
    plain, full = ran(files, encoding)[verb], ran(files)[verb]
    assert "\\u" not in plain and len(plain.splitlines()) == len(full.splitlines())
    figures = [[word for word in text.split() if word[:1].isdigit()] for text in (plain, full)]
    assert figures[0] == figures[1] != []
