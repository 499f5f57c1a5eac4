"""A pytest plugin of `mutation.py`: the tests are collected once, and each mutant meets its tests in a copy of this process.

A mutant inside a function becomes the code of that function, wherever the function is kept; the file on the disk is changed too,
for what a test starts. The process that is copied has begun no workers: its copies would not have them, and wait for them.
"""

from __future__ import annotations

import gc
import json
import os
import select
import shutil
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any, Final

import pytest
from _pytest.runner import runtestprotocol

KILLED, SURVIVED, UNCHANGED = 1, 0, 3
"""How a copy ends; `UNCHANGED`: the mutant is not in the code of a function, and needs a process of its own."""
MOST_SECONDS: Final = 900.0
"""How long a copy may wait for something; how long it may compute is counted for each test."""


def codes(code: CodeType) -> Iterator[CodeType]:
    """Every code object inside another, itself included."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from codes(constant)


def put(file: str, text: str, line: int) -> bool:
    """Let the functions of a file run another text of it; False where no function runs what changed in this line."""
    made = {(c.co_qualname, c.co_firstlineno): c for c in codes(compile(text, file, "exec"))}
    gc.unfreeze()  # `gc` does not list what is frozen
    is_changed = False
    for function in [f for f in gc.get_objects() if isinstance(f, FunctionType) and f.__code__.co_filename == file]:
        old = function.__code__
        new = made.get((old.co_qualname, old.co_firstlineno))
        if new is not None and old.co_firstlineno <= line and new != old:
            try:
                function.__code__ = new
            except ValueError:  # it refers to other variables of an outer function
                return False
            is_changed = True
    return is_changed


def met(job: dict[str, Any], items: dict[str, pytest.Item]) -> int:
    """In the copy: run the tests of a mutant until one fails."""
    if not put(job["path"], job["text"], job["line"]):
        return UNCHANGED
    chosen = [(items[name], seconds) for name, seconds in job["tests"] if name in items]
    for at, (item, seconds) in enumerate(chosen):
        signal.setitimer(signal.ITIMER_PROF, 20 + 10 * seconds)  # the signal ends the process
        following = chosen[at + 1][0] if at + 1 < len(chosen) else None
        if any(report.failed for report in runtestprotocol(item, log=False, nextitem=following)):
            Path(job["said"]).write_text(item.nodeid, encoding="utf-8")
            return KILLED
    return SURVIVED


def answered(job: dict[str, Any], items: dict[str, pytest.Item]) -> dict[str, Any]:
    """Begin a copy, wait for its end, and say what it found."""
    folder = tempfile.mkdtemp(prefix="mutant-")
    job["said"] = str(Path(folder, "said"))
    child = os.fork()
    if child == 0:
        code = KILLED
        try:
            os.setsid()
            os.environ["TMPDIR"], tempfile.tempdir = folder, None
            code = met(job, items)
        finally:
            os._exit(code)
    handle = os.pidfd_open(child)
    is_done = bool(select.select([handle], [], [], MOST_SECONDS)[0])
    if not is_done:
        os.killpg(child, signal.SIGKILL)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    os.close(handle)
    said = Path(job["said"])
    by = said.read_text(encoding="utf-8") if said.exists() else "it did not end" if code < 0 else ""
    shutil.rmtree(folder, ignore_errors=True)
    return {"code": KILLED if code < 0 else code, "by": by}


began: list[str] = []
"""The files whose collection began a thread that copies of this process would wait for."""


def has_workers() -> bool:
    """Whether the workers of polars run."""
    names = [(task / "comm").read_text().strip() for task in Path("/proc/self/task").iterdir()]
    return any(name.removeprefix("polars-").isdecimal() or name.startswith("tokio") for name in names)


def pytest_collectreport(report: pytest.CollectReport) -> None:
    """Note the first file that begins workers."""
    if not began and has_workers():
        began.append(report.nodeid.partition("::")[0])


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool:
    """Answer one line of JSON for each that comes in."""
    items = {item.nodeid: item for item in session.items}
    with os.fdopen(int(os.environ["JOBS"])) as jobs, os.fdopen(int(os.environ["ANSWERS"]), "w") as answers:
        print(json.dumps({"tests": len(items), "began": began}), file=answers, flush=True)
        for line in jobs:
            print(json.dumps(answered(json.loads(line), items)), file=answers, flush=True)
    return True
