"""The run store: nothing acknowledged is lost, nothing doubled, nothing changed unseen."""

from __future__ import annotations

import json
import os
import random
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from hitmiss.core.errors import DataError, EnvironmentFault, IncompleteRun, UsageError
from hitmiss.runs import owner
from hitmiss.runs.manifest import chosen, load_manifest, require_complete, sealed, segments, verify
from hitmiss.runs.segments import SegmentReader, SegmentWriter, cut_torn_tail, replace_file
from hitmiss.runs.store import Run, start

ITEMS = [f"i{n:04d}" for n in range(300)]

WORKER = """
import sys, time
from pathlib import Path
from hitmiss.runs.store import start
folder, wait, how = sys.argv[1], float(sys.argv[2]), sys.argv[3]
items = [f"i{n:04d}" for n in range(300)]
with start(folder, kind="test", config={"a": 1}, items=items, resume=how == "resume", join=how == "join") as run:
    print("ready", flush=True)
    for at in run.todo():
        run.add(at, {"score": at / 7})
        print(at, flush=True)
        while wait < 0 and not Path(folder + ".go").exists():  # until the test says so
            time.sleep(0.01)
        time.sleep(max(wait, 0.0))
"""


MORTALS = """
import os, sys, time
from itertools import islice
from hitmiss.runs.store import start
items = [f"i{n:04d}" for n in range(300)]

def say(word):
    os.write(1, f"{word}\\n".encode())  # in one piece, or not at all

for _ in sys.stdin:
    child = os.fork()
    if child:
        os.waitpid(child, 0)
        say("dead")
        continue
    say(os.getpid())
    with start(sys.argv[1], kind="test", config={"a": 1}, items=items, resume=True) as run:
        say("ready")
        for at in islice(run.todo(), 14):
            run.add(at, {"score": at / 7})
            say(at)
        time.sleep(3600)  # until it is killed
"""
"""A child per line of input, which works until it is killed: at any place in the work, but never after its end."""


def begin(folder: Path, items: list[str] = ITEMS, config: dict[str, Any] | None = None, **how: bool) -> Run:
    return start(folder, kind="test", config=config or {"a": 1}, items=items, **how)


def worker(folder: Path, wait: float = 0.0, how: str = "resume") -> subprocess.Popen[str]:
    words = [sys.executable, "-c", WORKER, str(folder), str(wait), how]
    return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def scores(folder: Path, n: int = len(ITEMS)) -> dict[int, float]:
    return {at: record["score"] for at, record in chosen(folder, None, n)}


def lines(folder: Path) -> int:
    return sum(path.read_bytes().count(b"\n") for path in segments(folder))


def finished(folder: Path, n: int = 5) -> Path:
    with begin(folder, ITEMS[:n]) as run:
        for at in run.todo():
            run.add(at, {"score": at / 7})
        run.finish(pl.DataFrame({"item": ITEMS[:n]}), answer=42)
    return folder


def test_a_run_from_start_to_end(tmp_path: Path) -> None:
    folder = finished(tmp_path / "run")
    manifest = require_complete(folder)
    assert manifest["state"] == "complete" and manifest["facts"] == {"answer": 42}
    assert scores(folder, 5) == {at: at / 7 for at in range(5)}
    assert pl.read_parquet(folder / "trials.parquet")["item"].to_list() == ITEMS[:5]
    assert verify(folder) == [] and not (folder / "owner.json").exists()


@pytest.mark.nightly
def test_twenty_kills_lose_and_double_nothing(tmp_path: Path) -> None:
    folder, rng, acknowledged = tmp_path / "run", random.Random(5), set[int]()
    begin(folder).close()
    words = [sys.executable, "-c", MORTALS, str(folder)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as mother:
        assert mother.stdin is not None and mother.stdout is not None
        for _ in range(20):
            mother.stdin.write("\n")
            mother.stdin.flush()
            child = int(mother.stdout.readline())
            assert mother.stdout.readline() == "ready\n"
            seen = [int(mother.stdout.readline()) for _ in range(rng.randint(1, 8))]
            os.kill(child, signal.SIGKILL)
            acknowledged |= {*seen, *map(int, iter(mother.stdout.readline, "dead\n"))}
        mother.stdin.close()
    assert acknowledged <= set(scores(folder)), "an acknowledged item was lost"
    assert lines(folder) == len(scores(folder)), "an item was written twice"
    assert 20 <= len(acknowledged) < len(ITEMS), "each child does 1 to 14 items"
    with begin(folder, resume=True) as run:
        for at in run.todo():
            run.add(at, {"score": at / 7})
        assert run.is_done
    assert scores(folder) == {at: at / 7 for at in range(len(ITEMS))} and lines(folder) == len(ITEMS)


def test_a_tail_torn_at_any_byte_is_cut_and_the_rest_kept(tmp_path: Path) -> None:
    whole = SegmentWriter(tmp_path / "items")
    for at in range(4):
        whole.append({"at": at, "item": "ü\n" * at})
    whole.close()
    data = whole.path.read_bytes()
    ends = [i + 1 for i, byte in enumerate(data) if byte == 10]
    for size in range(len(data) + 1):
        whole.path.write_bytes(data[:size])
        kept = sum(end <= size for end in ends)
        assert cut_torn_tail(whole.path) == size - ([0, *ends])[kept]
        assert [r["at"] for r in SegmentReader(whole.path).records()] == list(range(kept))


def test_zeros_at_the_end_are_a_torn_tail(tmp_path: Path) -> None:
    writer = SegmentWriter(tmp_path / "items")
    writer.append({"at": 0})
    writer.close()
    with writer.path.open("ab") as file:
        file.write(b"\0" * 512)
    assert cut_torn_tail(writer.path) == 512
    assert len(list(SegmentReader(writer.path).records())) == 1


def test_damage_in_the_middle_is_refused_by_line(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    with begin(folder) as run:
        for at in range(3):
            run.add(at, {"score": 1.0})
    (segment,) = segments(folder)
    first, second, third = segment.read_bytes().splitlines(keepends=True)
    segment.write_bytes(first + second[:-9] + b"\n" + third)
    with pytest.raises(DataError, match=r"000001\.jsonl, row 2: the line is not a record"):
        begin(folder, resume=True)


def test_a_record_of_another_item_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    with begin(folder) as run:
        run.add(0, {"score": 1.0})
    (segment,) = segments(folder)
    segment.write_bytes(segment.read_bytes().replace(b"i0000", b"i0001"))
    with pytest.raises(DataError, match="not among the items of the run"):
        begin(folder, resume=True)


def test_a_changed_configuration_is_refused_with_the_difference(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    with begin(folder, config={"a": 1, "model": {"sha": "x"}}) as run:
        run.add(0, {"score": 1.0})
    with pytest.raises(IncompleteRun, match=r'model\.sha: "x" before, "y" now') as refused:
        begin(folder, config={"a": 1, "model": {"sha": "y"}}, resume=True)
    assert refused.value.exit_code == 4 and "a:" not in str(refused.value).split("configuration")[1]
    with pytest.raises(IncompleteRun, match="items"):
        begin(folder, ITEMS[:9], config={"a": 1, "model": {"sha": "x"}}, resume=True)
    begin(folder, config={"a": 1, "model": {"sha": "x"}}, resume=True).close()


def test_a_folder_in_use_is_never_overwritten(tmp_path: Path) -> None:
    with begin(tmp_path / "begun") as run:
        run.add(0, {"score": 1.0})
    with pytest.raises(IncompleteRun, match="resume=True"):
        begin(tmp_path / "begun")
    with pytest.raises(UsageError, match="finished run"):
        begin(finished(tmp_path / "done"), ITEMS[:5])
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.txt").write_text("mine")
    with pytest.raises(UsageError, match="holds no run"):
        begin(tmp_path / "other")
    assert (tmp_path / "other" / "thesis.txt").read_text() == "mine"


def test_a_success_beats_a_failure_and_is_not_repeated(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    with begin(folder, ITEMS[:3]) as run:
        run.add(0, {"error": "first"})
        run.add(1, {"score": 1.0})
        run.add(2, {"error": "stays"})
    with begin(folder, ITEMS[:3], resume=True) as run:
        assert run.is_done and list(run.todo()) == [] and list(run.todo(retry=True)) == [0, 2]
        run.add(0, {"score": 5.0})
    with begin(folder, ITEMS[:3], resume=True) as run:
        assert list(run.todo(retry=True)) == [2]
        found = {at: {k: v for k, v in r.items() if k in ("score", "error")} for at, r in run.records()}
    assert found == {0: {"score": 5.0}, 1: {"score": 1.0}, 2: {"error": "stays"}}


def test_a_second_process_is_told_who_owns_the_run(tmp_path: Path) -> None:
    process = worker(tmp_path / "run", 0.05)
    assert process.stdout is not None and process.stdout.readline() == "ready\n"
    try:
        with pytest.raises(EnvironmentFault, match=rf"process {process.pid} on .* join=True") as refused:
            begin(tmp_path / "run", resume=True)
        assert refused.value.exit_code == 5
    finally:
        process.kill()
        process.communicate()
    begin(tmp_path / "run", resume=True).close()  # a dead owner is no owner


def test_a_silent_owner_of_another_machine_is_replaced_when_its_heart_stops(tmp_path: Path) -> None:
    begin(tmp_path / "run").close()
    lock = tmp_path / "run" / "owner.json"
    lock.write_text(json.dumps({"pid": 1, "host": "elsewhere"}))
    with pytest.raises(EnvironmentFault, match="process 1 on elsewhere"):
        begin(tmp_path / "run", resume=True)
    long_ago = time.time() - owner.EXPIRY_SECONDS - 1
    os.utime(lock, (long_ago, long_ago))
    with begin(tmp_path / "run", resume=True):
        assert json.loads(lock.read_text())["pid"] == os.getpid()


def test_processes_that_join_share_the_work_exactly(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    begin(folder).close()
    crew = [worker(folder, -1, "join") for _ in range(2)]
    begun = [[process.stdout.readline() for _ in range(2)] for process in crew if process.stdout is not None]
    Path(f"{folder}.go").touch()  # each has done its first item
    outs = []
    for process, (_, first) in zip(crew, begun, strict=True):
        out, errors = process.communicate()
        assert process.returncode == 0, errors
        outs.append({int(first), *map(int, out.split())})
    assert sum(map(len, outs)) == len(ITEMS) == lines(folder), "each item exactly once"


def test_the_work_of_a_killed_partner_is_taken_over(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    begin(folder).close()
    partner = worker(folder, -1, "join")
    assert partner.stdout is not None and partner.stdout.readline() == "ready\n"
    with begin(folder, resume=False, join=True) as run:
        mine = []
        for at in run.todo():
            run.add(at, {"score": at / 7})
            mine.append(at)
        assert 0 < len(mine) < len(ITEMS) and not run.is_done, "the partner's part is not for us"
        partner.kill()
        partner.communicate()
        for at in run.todo():
            run.add(at, {"score": at / 7})
        assert run.is_done
    assert scores(folder) == {at: at / 7 for at in range(len(ITEMS))}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_says_so(tmp_path: Path, number: signal.Signals) -> None:
    code = WORKER.replace("import sys, time", "import sys, time\nfrom hitmiss.runs.signals import stop_on_terminate")
    code = code.replace("with start(", "with stop_on_terminate(), start(")
    words = [sys.executable, "-c", code, str(tmp_path / "run"), "-1", "fresh"]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    for _ in range(2):
        process.stdout.readline()
    process.send_signal(number)
    process.communicate()
    assert process.returncode != 0
    assert load_manifest(tmp_path / "run")["state"] == "interrupted"
    assert len(scores(tmp_path / "run")) == 1 and not (tmp_path / "run" / "owner.json").exists()
    with pytest.raises(IncompleteRun, match=r"interrupted, \d+ of 300 items"):
        require_complete(tmp_path / "run")


FULL = """
import resource, signal, sys
from hitmiss.core.errors import EnvironmentFault
from hitmiss.runs.store import start
resource.setrlimit(resource.RLIMIT_FSIZE, (3000, 3000))
run = start(sys.argv[1], kind="test", config={"a": 1}, items=[f"i{n:04d}" for n in range(300)])
done = 0
try:
    for at in run.todo():
        run.add(at, {"score": at / 7, "more": "x" * 90})
        done += 1
except EnvironmentFault as error:
    print(done, error.exit_code, error)
run.close()
"""


def test_a_full_disk_is_said_and_what_was_written_stays(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FULL, str(tmp_path / "run")], capture_output=True, text=True, check=True
    )
    count, code, text = done.stdout.split(" ", 2)
    assert code == "5" and "disk is full" in text and "resume" in text
    assert sorted(scores(tmp_path / "run")) == list(range(int(count))) and 10 < int(count) < 300
    with begin(tmp_path / "run", resume=True) as run:
        assert run.torn == 0, "the half-written record was taken back at once"
        assert next(iter(run.todo())) == int(count)


def test_a_file_that_cannot_be_put_in_place_leaves_the_old_one(tmp_path: Path) -> None:
    path = tmp_path / "manifest.json"
    replace_file(path, b"old")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
    try:
        with pytest.raises(EnvironmentFault, match="disk is full"):
            replace_file(path, b"x" * 5000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert path.read_bytes() == b"old" and list(tmp_path.iterdir()) == [path]


def test_every_changed_byte_of_a_finished_run_is_seen(tmp_path: Path) -> None:
    folder = finished(tmp_path / "run", 2)
    for path in [folder / "manifest.json", folder / "trials.parquet", *segments(folder)]:
        data = path.read_bytes()
        for at in range(len(data)):
            path.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
            with pytest.raises((DataError, IncompleteRun)):
                require_complete(folder)
        path.write_bytes(data)
    assert verify(folder) == []


def test_added_and_missing_files_are_seen(tmp_path: Path) -> None:
    folder = finished(tmp_path / "run")
    (folder / "items" / "000099.jsonl").write_text('{"at":0,"item":"i0000","score":9}\n')
    assert verify(folder) == ["items/000099.jsonl was added"]
    (folder / "items" / "000099.jsonl").unlink()
    (folder / "trials.parquet").unlink()
    assert verify(folder) == ["trials.parquet is missing"]


def test_another_schema_is_refused(tmp_path: Path) -> None:
    folder = finished(tmp_path / "run")
    manifest = {**load_manifest(folder), "schema": 99}
    (folder / "manifest.json").write_bytes(sealed(manifest))
    with pytest.raises(DataError, match="schema 99"):
        load_manifest(folder)
    with pytest.raises(UsageError, match="is not a run"):
        load_manifest(tmp_path)


@pytest.mark.parametrize("records", [[], [{"error": "no"}, {"error": "no"}]], ids=["nothing", "failures"])
def test_a_run_without_a_success_begins_afresh(tmp_path: Path, records: list[dict[str, Any]]) -> None:
    folder = tmp_path / "run"
    with begin(folder, config={"a": 1}) as run:
        for at, record in enumerate(records):
            run.add(at, record)
    with begin(folder, config={"a": 2}) as run:
        assert list(run.todo())[:2] == [0, 1] and run.manifest["config"] == {"a": 2}
        run.add(0, {"score": 1.0})
    with pytest.raises(IncompleteRun, match="not finished"):
        begin(folder, config={"a": 3})


def test_a_run_that_fails_before_its_first_result_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentFault), begin(tmp_path / "run"):
        raise EnvironmentFault("no model")
    assert not (tmp_path / "run").exists()
