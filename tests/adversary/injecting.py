"""Faults at the calls by which a command reads and writes: the n-th open, write, rename or fsync fails, or a signal comes there."""

from __future__ import annotations

import builtins
import errno
import io
import json
import os
import shutil
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any, Final

from tests.adversary.judging import ended, fault
from tests.adversary.writing import RUNS, WRITING

from hitmiss.io.reader import read

CALLS: Final = (
    (builtins, "open"),
    (io, "open"),
    (os, "open"),
    (os, "write"),
    (os, "replace"),
    (os, "rename"),
    (os, "fsync"),
)
FAULTS: Final = {
    "open": (errno.EIO, errno.EACCES, errno.EMFILE, signal.SIGTERM),
    "write": (errno.ENOSPC, errno.EIO, signal.SIGTERM),
    "replace": (errno.EIO, errno.EACCES, signal.SIGTERM),
    "rename": (errno.EIO, signal.SIGTERM),
    "fsync": (errno.EIO, errno.ENOSPC, signal.SIGTERM),
}
"""What each call may meet."""
TIMED: Final = {"lock": "w.", "export xlsx": "w.", "detect": "w.", "attack": "w.", "llm": "w."}
"""What holds the time at which it was made; of a run the rows are compared."""
BEFORE: Final = b"what was there before"


@contextmanager
def at_call(folder: Path, number: int = -1, what: int = 0) -> Iterator[list[str]]:
    """Note the calls about files of a folder by name; the one of this number meets an error or a signal."""
    seen: list[str] = []
    place = str(folder.resolve())

    def is_here(given: object) -> bool:
        if isinstance(given, int):
            return given > 2
        return isinstance(given, str | os.PathLike) and os.path.realpath(os.fspath(given)).startswith(place)

    def with_fault(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*given: Any, **more: Any) -> Any:
            if given and is_here(given[0]):
                seen.append(name)
                if len(seen) - 1 == number:
                    if isinstance(what, signal.Signals):
                        os.kill(os.getpid(), what)
                    else:
                        raise OSError(what, os.strerror(what), given[0] if isinstance(given[0], str) else None)
            return real(*given, **more)

        return call

    kept = [(module, name, getattr(module, name)) for module, name in CALLS]
    for module, name, real in kept:
        setattr(module, name, with_fault(name, real))
    try:
        yield seen
    finally:
        for module, name, real in kept:
            setattr(module, name, real)


def target(name: str, folder: Path) -> Path:
    """The file or folder that a command writes."""
    return folder / next(word for word in WRITING[name] if word.startswith("w"))


def contents(folder: Path) -> dict[str, bytes]:
    """Every file of a folder."""
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


class Trial:
    """One verb on fresh copies of the sound files: its calls, and what each fault leaves behind."""

    def __init__(self, name: str, clean: Path, place: Path) -> None:
        self.name, self.clean, self.folder = name, clean, place / "work"
        self.fresh()
        self.before = contents(self.folder)
        with at_call(self.folder) as calls:
            code, _, err = ended(list(WRITING[name]), self.folder)
        assert code == 0, err
        self.calls = [*calls]
        self.after = contents(self.folder)
        self.fresh()
        ended(list(WRITING[name]), self.folder)
        again = contents(self.folder)
        self.exact = {
            n: d for n, d in self.after.items() if again.get(n) == d and not n.startswith(TIMED.get(name, "-"))
        }
        """What two runs write alike: everything but what holds a time."""
        self.rows = self.scored()

    def fresh(self) -> None:
        """Begin anew; a file that will be written over is there before."""
        shutil.rmtree(self.folder, ignore_errors=True)
        shutil.copytree(self.clean, self.folder)
        goal = target(self.name, self.folder)
        if goal.suffix not in (".run", ".site", ".jsonl") and not goal.exists():
            goal.write_bytes(BEFORE)

    def meet(self, number: int, what: int) -> str | None:
        """Let one call fail; what is wrong with how that ended, or None."""
        self.fresh()
        with at_call(self.folder, number, what):
            code, out, err = ended(list(WRITING[self.name]), self.folder)
        found = contents(self.folder)
        is_listed = what == errno.EACCES and self.name.startswith("board")  # a submission that may not be read
        wrong = fault(code, out, err) or (None if is_listed else self.lost(found))
        wanted = (0, 130) if isinstance(what, signal.Signals) else (0, 5) if what == errno.ENOSPC else (0, 3, 4, 5)
        if wrong is None and code not in wanted:
            wrong = f"exit code {code}: {err[-300:]}"
        if wrong is None and code == 0 and not is_listed and not self.is_whole(found):
            wrong = "it says that it is done, and is not"
        parts = [n for n in found if n.endswith(".part")]
        if wrong is None and parts:
            wrong = f"left behind: {parts}"
        if wrong is not None:
            return wrong
        for owner in self.folder.rglob(
            "owner.json"
        ):  # this process lives on, which the one that was disturbed would not
            owner.unlink()
        code, out, err = ended([*WRITING[self.name], *self.resumed()], self.folder)
        if code != 0 or not self.is_whole(contents(self.folder)):
            return f"again: exit code {code}, {err[-300:]}"
        return None

    def lost(self, found: dict[str, bytes]) -> str | None:
        """What was there before is there as it was, or whole as the command writes it."""
        torn = [n for n, data in self.before.items() if found.get(n) != data and n not in self.after]
        torn += [n for n in self.exact if n in self.before and found.get(n) not in (self.before[n], self.exact[n])]
        return f"torn or lost: {torn}" if torn else None

    def resumed(self) -> list[str]:
        """The word that makes a run go on."""
        begun = target(self.name, self.folder).with_suffix(".run")
        return ["--resume"] if self.name in RUNS and (begun / "manifest.json").exists() else []

    def is_whole(self, found: dict[str, bytes]) -> bool:
        """Whether everything is as an undisturbed command leaves it."""
        return all(found.get(n) == data for n, data in self.exact.items()) and self.scored() == self.rows

    def scored(self) -> list[tuple[Any, ...]]:
        """The rows of a run, however they came; none of another command."""
        if self.name not in RUNS:
            return []
        goal = target(self.name, self.folder)
        if goal.suffix == ".jsonl":
            rows = [json.loads(line) for line in goal.read_text(encoding="utf-8").splitlines()] if goal.exists() else []
            return sorted((row["id"], row["prediction"], row["confidence"]) for row in rows)
        return sorted(read(str(goal)).frame.select("item", "score").rows()) if goal.exists() else []


def every(trial: Trial) -> Iterator[tuple[int, int]]:
    """Each call with each thing that it may meet."""
    for number, name in enumerate(trial.calls):
        for what in FAULTS[name]:
            yield number, what


def injected(rng: Random, folder: Path) -> tuple[list[str], str | None]:
    """One verb, one call, one fault, at random."""
    name = rng.choice(tuple(WRITING))
    trial = Trial(name, folder, folder.with_name("injected"))
    number, what = rng.choice([*every(trial)])
    return [*WRITING[name], f"[call {number} of {len(trial.calls)}: {what}]"], trial.meet(number, what)
