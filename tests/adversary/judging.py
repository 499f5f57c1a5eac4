"""One command in this process, and what is wrong with how it ended."""

from __future__ import annotations

import contextlib
import io
import json
import os
import signal
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from random import Random
from types import FrameType
from typing import Any

from tests.adversary import asking, mutating

from hitmiss.cli.main import run
from hitmiss.core.registry import all_metrics

CODES = (0, 1, 2, 3, 4, 5, 130)
PATIENCE = 60
"""Seconds after which a command hangs; the largest of these files has sixty rows."""


class Hangs(BaseException):
    """The command takes longer than any of these should."""


@contextlib.contextmanager
def inside(folder: Path) -> Iterator[None]:
    """A folder as the current one, with a limit of time."""

    def stop(_: int, __: FrameType | None) -> None:
        raise Hangs

    before, taker = Path.cwd(), signal.signal(signal.SIGALRM, stop)
    os.chdir(folder)
    signal.alarm(PATIENCE)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, taker)
        os.chdir(before)


def ended(words: list[str], folder: Path) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of a command."""
    out, err = io.StringIO(), io.StringIO()
    with inside(folder), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), warnings.catch_warnings():
        warnings.simplefilter("default")
        try:
            code = run(words)
        except Hangs:
            return -1, out.getvalue(), "it hangs"
        except SystemExit as stop:
            code = stop.code if isinstance(stop.code, int) else -2
        except BaseException as error:  # whatever comes out is a failure
            return -2, out.getvalue(), f"raised {error!r}"
    return code, out.getvalue(), err.getvalue()


def fault(code: int, out: str, err: str) -> str | None:
    """What is wrong with an ending, or None."""
    if code not in CODES:
        return f"exit code {code}: {err[-300:]}"
    for sign in ("this is a bug in hitmiss", "Traceback (most recent call last)", "RuntimeWarning"):
        if sign in err or sign in out:
            return f"exit code {code}: {err[-300:]}"
    return f"exit code {code} without a word" if code not in (0, 1) and not (err + out).strip() else None


def damaged_run(rng: Random, folder: Path) -> tuple[list[str], str | None]:
    """A file of a run of models, attacks or people, damaged; then a command that reads it."""
    words = asking.kept(rng)
    near = [name for name in asking.FILES if any(name.startswith(word.split(".")[0]) for word in words if "." in word)]
    names = tuple(name for name in near or asking.FILES if (folder / name).is_file())
    name = mutating.damage(rng, folder, names)
    return [f"[{name} damaged]", *words], fault(*ended(words, folder))


def degenerate(rng: Random, folder: Path) -> tuple[list[str], str | None]:
    """Any metric, any interval, on trials of which slices have one class, one trial, one score, ties or infinities."""
    mutating.degenerate(rng, folder / "odd.csv")
    words = ["score", "odd.csv", "--json", "--score-kind", rng.choice(("llr", "raw", "probability", "logit"))]
    for name in rng.sample(sorted(all_metrics()), rng.choice((1, 1, 2, 3))):
        words += ["-m", name]
    words += rng.choice(([], ["--by", "codec"], ["--by", "codec,attack"], ["--matrix", "attack,codec"]))
    words += rng.choice(([], ["--bootstrap", "0"], ["--bootstrap", rng.choice(("1", "7", "30"))]))
    words += rng.choice(([], [], ["--interval", rng.choice(("auto", "percentile", "bca"))]))
    words += rng.choice(([], [], ["--unit", rng.choice(("speaker", "speaker,codec"))], ["--gap", "codec=a:b"]))
    words += rng.choice(([], ["--threshold", rng.choice(("0", "inf", "0.5"))], ["--stratify"], ["--on-nan", "drop"]))
    code, out, err = ended(words, folder)
    wrong = fault(code, out, err)
    if wrong is None and code == 0:
        wrong = next(filter(None, map(_odd_row, json.loads(out)["estimates"])), None)
    return words, wrong


def _odd_row(row: dict[str, Any]) -> str | None:
    """What is wrong with a row of results, or None."""
    if row["value"] is None:
        return None if row["note"] else f"undefined without a reason: {row}"
    low, value, high = (float(row[name]) if row[name] is not None else None for name in ("low", "value", "high"))
    if value != value or (low is not None and high is not None and not low <= high):
        return f"a value or an interval is none: {row}"
    return None


def damaged_file(rng: Random, folder: Path) -> tuple[list[str], str | None]:
    """A file of the folder damaged, then a command that may read it."""
    names = tuple(name for name in asking.FILES if (folder / name).is_file())
    name = mutating.damage(rng, folder, names)
    words = asking.asked(rng)
    return [f"[{name} damaged]", *words], fault(*ended(words, folder))


def options(rng: Random, folder: Path) -> tuple[list[str], str | None]:
    """A command with options at random."""
    words = asking.asked(rng)
    return words, fault(*ended(words, folder))


def both_ways(rng: Random, folder: Path) -> tuple[list[str], str | None]:
    """`score` in memory and in the stream: the same figures, or the stream refuses with a sentence."""
    words = ["score", *asking.scoring(rng), "--json"]
    (code, out, err), (other, streamed, said) = (ended([*words, *more], folder) for more in ([], ["--stream"]))
    wrong = fault(code, out, err) or fault(other, streamed, said)
    if wrong is not None or other != 0:
        return words, wrong
    if code != 0:
        return words, f"memory refuses ({code}: {err[-200:]}), the stream gives figures"
    here, there = (_figures(text) for text in (out, streamed))
    return words, None if here == there else f"memory and stream differ: {_difference(here, there)}"


def _figures(text: str) -> list[Any]:
    """The estimates of a JSON text; ends of intervals to twelve digits, as sums may be taken in another order."""
    rows = json.loads(text)["estimates"]
    for row in rows:
        for name in ("value", "low", "high"):
            if isinstance(row[name], float):
                row[name] = float(f"{row[name]:.11e}")
    return list(rows)


def _difference(here: list[Any], there: list[Any]) -> str:
    pairs = [(a, b) for a, b in zip(here, there, strict=False) if a != b]
    return f"{len(here)} and {len(there)} rows; {pairs[:1]}"[:600]


ATTACKS = {
    "damaged file": damaged_file,
    "damaged run": damaged_run,
    "options": options,
    "both ways": both_ways,
    "degenerate": degenerate,
}


def quiet() -> None:
    """No progress bars, no colours."""
    os.environ["NO_COLOR"] = os.environ["CI"] = "1"
    sys.setrecursionlimit(1000)
