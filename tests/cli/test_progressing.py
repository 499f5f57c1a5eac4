"""Progress bars on a real terminal (a pty): they come when something takes long, go before results, and are never in a pipe."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from hitmiss import progress
from hitmiss.cli.progressing import AFTER_SECONDS, Bar

SCORES = "item\tlabel\tscore\na\tbonafide\t2\nb\tbonafide\t1\nc\tspoof\t0\nd\tspoof\t1.5\n"
HITMISS = [sys.executable, "-m", "hitmiss"]
PATIENCE = 60.0
"""Seconds after which a test gives up; nothing here waits for a time to pass."""


class Terminal:
    """A command whose stderr (and stdout, where asked) is a terminal of its own."""

    def __init__(self, words: list[str], *, stdout_too: bool = False, **environment: str) -> None:
        self.master, slave = pty.openpty()
        env = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "120", **environment}
        self.process = subprocess.Popen(
            [*HITMISS, *words],
            stdin=subprocess.PIPE,
            stdout=slave if stdout_too else subprocess.PIPE,
            stderr=slave,
            env=env,
        )
        os.close(slave)
        self.seen = b""

    def until(self, wanted: bytes | None) -> bytes:
        """Everything on the terminal until something stands there, or until its end."""
        end = time.monotonic() + PATIENCE
        while wanted is None or wanted not in self.seen:
            assert time.monotonic() < end, f"{wanted!r} never came: {self.seen!r}"
            if select.select([self.master], [], [], 0.5)[0]:
                try:
                    self.seen += os.read(self.master, 65536)
                except OSError:  # the other side is closed
                    break
        return self.seen

    def feed(self, text: str) -> bytes:
        """Give the command its input and take what it wrote to a piped stdout."""
        assert self.process.stdin is not None
        self.process.stdin.write(text.encode())
        self.process.stdin.close()
        said = self.process.stdout.read() if self.process.stdout is not None else b""
        self.until(None)
        assert self.process.wait(PATIENCE) == 0, self.seen
        os.close(self.master)
        if self.process.stdout is not None:
            self.process.stdout.close()
        return said


def test_a_command_that_takes_long_shows_a_bar_on_stderr_and_its_result_alone_on_stdout() -> None:
    terminal = Terminal(["score", "-", "-m", "eer"])
    terminal.until(b"score")  # it waits for its input; the bar comes by itself
    assert "━".encode() in terminal.seen
    said = terminal.feed(SCORES)
    assert b"eer" in said and b"\x1b" not in said and "━".encode() not in said


def test_the_bar_is_gone_before_the_result_is_printed_on_the_same_terminal() -> None:
    terminal = Terminal(["score", "-", "-m", "eer"], stdout_too=True)
    terminal.until("━".encode())
    terminal.feed(SCORES)
    after = terminal.seen[terminal.seen.index(b"4 trials") :]
    assert "━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━".encode() not in after
    before = terminal.seen[: terminal.seen.index(b"4 trials")]
    assert before.rstrip().endswith((b"\x1b[2K", b"\x1b[?25h")), before[-80:]  # its line is wiped, the cursor is back


@pytest.mark.parametrize("stream", ["pipe", "dumb"])
def test_there_is_no_bar_in_a_pipe_nor_on_a_dumb_terminal(stream: str, tmp_path: Path) -> None:
    """Shown at once if it were shown at all: the wait is set to nothing."""
    (tmp_path / "scores.tsv").write_text(SCORES)
    code = (
        "import sys; from hitmiss.cli import progressing; progressing.AFTER_SECONDS = 0.0; "
        "from hitmiss.cli.main import run; sys.exit(run(sys.argv[1:]))"
    )
    words = [sys.executable, "-c", code, "score", str(tmp_path / "scores.tsv"), "-m", "eer", "--bootstrap", "200"]
    if stream == "pipe":
        done = subprocess.run(words, capture_output=True, check=True, env={**os.environ, "TERM": "xterm"})
        assert done.stderr == b"" and b"\x1b" not in done.stdout
        return
    master, slave = pty.openpty()
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=slave, env={**os.environ, "TERM": "dumb"}) as process:
        os.close(slave)
        assert process.stdout is not None and b"eer" in process.stdout.read()
        assert process.wait() == 0
    with pytest.raises(OSError, match="Input/output"):
        os.read(master, 10)  # nothing was written, and nobody will
    os.close(master)


def test_a_bar_waits_two_seconds_and_anew_after_each_print(monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[tuple[float, bool]] = []

    class Timer:
        """Notes that it was started and stopped; nothing passes."""

        daemon = False

        def __init__(self, seconds: float, _: object) -> None:
            self.seconds = seconds

        def start(self) -> None:
            waits.append((self.seconds, True))

        def cancel(self) -> None:
            waits.append((self.seconds, False))

    monkeypatch.setattr(threading, "Timer", Timer)
    assert AFTER_SECONDS == 2.0
    bar = Bar("score")
    with progress.heard_by(bar):
        assert list(progress.each([1, 2], "by codec")) == [1, 2]
        progress.hush()
    bar.close()
    assert waits == [(2.0, True), (2.0, False), (2.0, True), (2.0, False)]


def test_without_a_listener_nothing_happens() -> None:
    progress.tell("work", 1, 2)
    progress.hush()
    assert list(progress.each((), "nothing")) == []
