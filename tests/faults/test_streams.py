"""Standard streams that are closed or of another encoding, pipes and devices as files, and an end from outside."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

VERBS = {
    "score": (["score", "s.csv", "--positive", "fake", "-m", "eer", "--by", "codec"], 0),
    "compare": (["compare", "s.csv", "t.csv", "--positive", "fake", "-m", "eer", "--bootstrap", "20"], 0),
    "gate": (["gate", "r.json", "--fail-if", "eer > 0.9"], 0),
    "broken": (["gate", "r.json", "--fail-if", "eer >= 0.0001"], 2),
    "failed": (["gate", "r.json", "--fail-if", "eer > 0.0001"], 1),
    "export": (["export", "r.json", "-o", "out.csv"], 0),
    "report": (["report", "r.json", "-o", "out.html"], 0),
    "verify": (["verify", "r.json", "s.csv"], 0),
    "missing": (["score", "no.csv", "-m", "eer"], 3),
}
STREAMS = {
    "stdout closed": (">&-", {}),
    "stderr closed": ("2>&- >/dev/null", {}),
    "both closed": (">&- 2>&-", {}),
    "all closed": ("<&- >&- 2>&-", {}),
    "cp1252": ("", {"PYTHONIOENCODING": "cp1252"}),
    "ascii": ("", {"PYTHONIOENCODING": "ascii"}),
    "C": ("", {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}),
}
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs a POSIX shell")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("streams")
    for name, shift in (("s.csv", 0.4), ("t.csv", 0.2)):
        rows = [
            f"i{i},{'fake' if i % 3 else 'real'},{(i * 37 % 101) / 101 + shift * (i % 3 > 0):.4f},{'−x' if i % 2 else '-x'}"
            for i in range(80)
        ]
        (place / name).write_text("id,label,score,codec\n" + "\n".join(rows) + "\n", encoding="utf-8")
    done = shell("score s.csv --positive fake -m eer --by codec -o r.json", place)
    assert done.returncode == 0, done.stderr
    return place


def shell(words: str, folder: Path, more: dict[str, str] | None = None) -> subprocess.CompletedProcess[bytes]:
    command = f"exec '{sys.executable}' -m hitmiss {words}"
    return subprocess.run(
        ["bash", "-c", command], cwd=folder, env={**os.environ, **(more or {})}, capture_output=True, check=False
    )


@pytest.mark.parametrize("stream", STREAMS)
@pytest.mark.parametrize("verb", VERBS)
def test_exit_codes_hold_whatever_the_streams_are(folder: Path, verb: str, stream: str) -> None:
    import shlex

    words, code = VERBS[verb]
    redirected, more = STREAMS[stream]
    done = shell(f"{shlex.join(words)} {redirected}", folder, more)
    assert done.returncode == code, done.stderr
    assert b"Traceback" not in done.stderr and b"this is a bug" not in done.stderr
    for name in ("out.csv", "out.html"):
        if name in words:
            text = (folder / name).read_text(encoding="utf-8")
            assert "−x" in text and "-x" in text
            (folder / name).unlink()


@pytest.mark.parametrize("stream", ["cp1252", "ascii", "C"])
def test_json_is_the_same_bytes_in_every_encoding(folder: Path, stream: str) -> None:
    words = "score s.csv --positive fake -m eer --by codec --json"
    plain, other = shell(words, folder, {"PYTHONIOENCODING": "utf-8"}), shell(words, folder, STREAMS[stream][1])
    assert plain.stdout == other.stdout
    assert {e["slice"].get("codec") for e in json.loads(other.stdout)["estimates"]} >= {"−x", "-x"}


@pytest.mark.parametrize("how", ["", "--stream"])
def test_a_file_may_be_a_pipe_of_the_shell(folder: Path, how: str) -> None:
    piped = shell(f"score <(cat s.csv) --positive fake -m eer --json {how}", folder)
    plain = shell(f"score s.csv --positive fake -m eer --json {how}", folder)
    assert piped.returncode == 0, piped.stderr
    assert json.loads(piped.stdout)["estimates"] == json.loads(plain.stdout)["estimates"]


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="there is no /dev/zero")
@pytest.mark.parametrize("how", ["", "--stream"])
def test_a_device_without_an_end_is_refused(folder: Path, how: str) -> None:
    done = shell(f"score /dev/zero -m eer {how}", folder)
    assert done.returncode == 3 and b"zero" in done.stderr


def test_an_end_from_outside_leaves_nothing(tmp_path: Path) -> None:
    """SIGTERM while a pipe is copied: exit code 130, and no scratch file stays."""
    pipe, scratch = tmp_path / "pipe", tmp_path / "scratch"
    os.mkfifo(pipe)
    scratch.mkdir()
    words = [sys.executable, "-m", "hitmiss", "score", str(pipe), "--positive", "fake", "-m", "eer", "--stream"]
    process = subprocess.Popen(
        words, env={**os.environ, "TMPDIR": str(scratch)}, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    with pipe.open("wb") as file:  # opens as soon as the command reads
        file.write(b"id,label,score\n" * 100)
        file.flush()
        time.sleep(0.5)
        assert [*scratch.iterdir()]
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=60)
    assert process.returncode == 130, said
    assert [*scratch.iterdir()] == []
