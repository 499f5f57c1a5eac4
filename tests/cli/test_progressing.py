"""Progress bars on a real terminal (a pty): they come when something takes long, go before results, and are never in a pipe."""

from __future__ import annotations

import gzip
import os
import pty
import select
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hitmiss.cli.main import run
from hitmiss.cli.progress_bar import AFTER_SECONDS, Bar, Progress
from hitmiss.core import progress
from hitmiss.io import fetch
from hitmiss.io.diagnostics import Diagnostics

SCORES = "item\tlabel\tscore\na\tbonafide\t2\nb\tbonafide\t1\nc\tspoof\t0\nd\tspoof\t1.5\n"
HITMISS = [sys.executable, "-m", "hitmiss"]
PATIENCE = 60.0
"""Seconds after which a test gives up; nothing here waits for a time to pass."""


class Terminal:
    """A command whose stderr (and stdout, where asked) is a terminal of its own."""

    def __init__(
        self, words: list[str], *, stdout_too: bool = False, program: list[str] = HITMISS, **environment: str
    ) -> None:
        self.master, slave = pty.openpty()
        env = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "120", **environment}
        self.process = subprocess.Popen(
            [*program, *words],
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
        "import sys; from hitmiss.cli import progress_bar; progress_bar.AFTER_SECONDS = 0.0; "
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
    with progress.listen(bar):
        assert list(progress.each([1, 2], "by codec")) == [1, 2]
        progress.clear()
    bar.close()
    assert waits == [(2.0, True), (2.0, False), (2.0, True), (2.0, False)]


SHARED = """
import sys
from hitmiss.core import progress
from hitmiss.cli import progress_bar
progress_bar.AFTER_SECONDS = 0.0
with progress_bar.shown("score"):
    with progress.step("measuring", 4):
        with progress.part():
            pass
        with progress.part(2):
            progress.report("replicates", 500, 1000)
            sys.stdin.readline()
    sys.stdin.readline()
"""


def test_a_bar_shows_the_share_and_the_time_left_where_the_total_is_known() -> None:
    """One part of four, and half of two more: 50 %, on a terminal of its own."""
    terminal = Terminal(["-c", SHARED], program=[sys.executable])
    terminal.until(b"50%")
    terminal.until(b"500 of 1,000")
    assert b"score: measuring, replicates, 500 of 1,000" in terminal.seen and b" left" in terminal.seen
    assert terminal.feed("\n\n") == b""


def test_the_clock_goes_on_when_a_step_is_done() -> None:
    """A step at its end, then another: the bar is as unfinished as the command."""
    bar = Bar("score", after=3600.0)
    try:
        bar._appear()  # as its timer would
        for share in (0.5, 1.0, 0.0, None, 1.0):
            bar.update("step", 0, None, share)
            assert not bar._drawn.tasks[0].finished
    finally:
        bar.close()


class Heard:
    """Notes the progress."""

    def __init__(self) -> None:
        self.words: list[tuple[str, float | None]] = []

    def update(self, what: str, done: float, total: float | None, share: float | None) -> None:
        assert total is None or 0 <= done <= total
        self.words.append((what, share))

    def clear(self) -> None:
        pass

    def shares(self, step: str) -> list[float]:
        return [share for what, share in self.words if what.startswith(step) and share is not None]


numbers = st.integers(1, 5)


@given(st.lists(st.tuples(numbers, st.lists(numbers, max_size=4)), min_size=1, max_size=4))
def test_steps_within_steps_are_one_share_that_never_falls_and_ends_at_one(tree: list[tuple[int, list[int]]]) -> None:
    """Parts of parts, by exact arithmetic: after k parts of sizes s the share is their sum over the total."""
    heard, total, done = Heard(), sum(size for size, _ in tree), 0
    with progress.listen(heard), progress.step("all", total):
        for size, inner in tree:
            with progress.part(size):
                for _ in progress.each(inner, "inside", [float(i) for i in inner]):
                    progress.report("leaf", 1, 2)
                    progress.report("leaf", 0, 2)  # a second pass over the same: no step back
            done += size
            assert heard.words[-1][1] == pytest.approx(done / total)
    shares = heard.shares("all")
    assert shares == sorted(shares) and shares[-1] == pytest.approx(1.0)


@pytest.fixture(scope="module")
def two_systems(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    rng, folder = np.random.default_rng(0), tmp_path_factory.mktemp("systems")
    label = np.tile([1, 0], 40)
    for name in "ab":
        frame = pl.DataFrame({"item": [f"i{i}" for i in range(80)], "score": rng.normal(size=80) + label})
        codec = pl.Series("codec", np.tile(["C1", "C1", "C2", "C2"], 20))
        named = pl.Series("label", np.where(label == 1, "bonafide", "spoof"))
        frame.with_columns(codec, named).write_csv(folder / f"{name}.csv")
    return [str(folder / f"{name}.csv") for name in "ab"]


@pytest.mark.parametrize(
    ("verb", "steps"),
    [
        ("score", ("parsing files", "measuring")),
        ("compare", ("parsing files", "comparing")),
        ("report", ("runs", "figures")),
    ],
)
def test_long_steps_know_their_total(verb: str, steps: tuple[str, ...], two_systems: list[str], tmp_path: Path) -> None:
    files = two_systems[:1] if verb == "score" else two_systems
    words = [verb, *files, "-m", "eer", "--by", "codec", "--bootstrap", "50", "-o", str(tmp_path / "made")]
    heard = Heard()
    with progress.listen(heard):
        assert run(words) == 0
    for step in steps:
        assert heard.shares(step) and heard.shares(step)[-1] == pytest.approx(1.0), step
    assert all(share is not None for _, share in heard.words)


@pytest.mark.parametrize("with_key", [False, True])
def test_streamed_files_know_about_how_many_rows_they_have(with_key: bool, tmp_path: Path) -> None:
    """Two shards, and a key where there is one: shares of the whole that never fall and end at one."""
    for shard in range(2):
        rows = [f"i{shard}-{i}\t{'spoof' if i % 2 else 'bonafide'}\t{i}" for i in range(400)]
        (tmp_path / f"{shard}.tsv").write_text("\n".join(["item\tlabel\tscore", *rows]) + "\n")
        kept = ["\t".join(row.split("\t")[::2]) for row in rows]
        (tmp_path / f"s{shard}.tsv").write_text("\n".join(["item\tscore", *kept]) + "\n")
    keys = [
        line.rpartition("\t")[0]
        for shard in range(2)
        for line in (tmp_path / f"{shard}.tsv").read_text().splitlines()[1:]
    ]
    (tmp_path / "key.tsv").write_text("\n".join(["item\tlabel", *keys]) + "\n")
    files = [str(tmp_path / f"{'s' if with_key else ''}{shard}.tsv") for shard in range(2)]
    heard = Heard()
    with progress.listen(heard):
        words = ["score", *files, "-m", "eer", "--stream", "--bootstrap", "20"]
        assert run([*words, "--key", str(tmp_path / "key.tsv")] if with_key else words) == 0
    for step in ("shards counted", *(["rows of the key"] if with_key else ["ids compared"])):
        shares = heard.shares(step)
        assert shares == sorted(shares) and shares[-1] == pytest.approx(1.0, abs=0.2), step


def test_large_files_are_read_by_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetch, "PROGRESS_BYTES", 1000)
    lines = ["item\tlabel\tscore", *(f"i{i}\t{'spoof' if i % 2 else 'bonafide'}\t{i}" for i in range(500))]
    text = "\n".join(lines).encode()
    (tmp_path / "plain.tsv").write_bytes(text)
    (tmp_path / "packed.tsv.gz").write_bytes(gzip.compress(text))
    heard = Heard()
    with progress.listen(heard):
        made = [fetch.fetch(tmp_path / name, None, Diagnostics()) for name in ("plain.tsv", "packed.tsv.gz")]
    assert made[0].data == made[1].data == text
    for step in ("reading plain.tsv", "unpacking packed.tsv.gz"):
        shares = heard.shares(step)
        assert shares == sorted(shares) and shares[-1] == pytest.approx(1.0)


def test_without_a_listener_nothing_happens() -> None:
    progress.report("work", 1, 2)
    progress.clear()
    assert list(progress.each((), "nothing")) == []


def test_lines_of_a_long_run_become_rarer(monkeypatch: pytest.MonkeyPatch) -> None:
    said, clock = list[float](), [0.0]
    monkeypatch.setattr("hitmiss.cli.progress_bar.time.monotonic", lambda: clock[0])
    monkeypatch.setattr("hitmiss.cli.progress_bar.note", lambda _: said.append(clock[0]))
    run = Progress()
    for second in range(3600):
        clock[0] = float(second)
        run.count(second, 3600)
    assert said == [30, 90, 210, 450, 930, 1530, 2130, 2730, 3330]
