"""`python -m tests.adversary --minutes 30`: draw after draw until the time is over; exit code 1 where something failed."""

from __future__ import annotations

import argparse
import shlex
import shutil
import sys
import tempfile
import time
from pathlib import Path
from random import Random

from tests.adversary import corpus, injecting, judging

ATTACKS = {**judging.ATTACKS, "injected": injecting.injected}


def attempt(draw: int, clean: Path, folder: Path) -> tuple[str, list[str], str | None]:
    """One draw on a fresh copy of the files: which attack, the command, and what is wrong."""
    rng = Random(draw)
    name = rng.choice(tuple(ATTACKS))
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(clean, folder)
    words, wrong = ATTACKS[name](rng, folder)
    return name, words, wrong


def main() -> int:
    """Run for so many minutes, or one draw again."""
    parser = argparse.ArgumentParser(prog="python -m tests.adversary")
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--first", type=int, default=0, help="the first draw")
    parser.add_argument("--draw", type=int, help="this one draw alone, its files kept in ./adversary")
    given = parser.parse_args()
    judging.quiet()
    with tempfile.TemporaryDirectory() as place:
        clean = Path(place) / "clean"
        corpus.make(clean)
        if given.draw is not None:
            name, words, wrong = attempt(given.draw, clean, Path("adversary").resolve())
            print(f"{name}: {shlex.join(words)}\n{wrong or 'nothing is wrong'}")
            return int(wrong is not None)
        return _soak(given.first, given.minutes, clean, Path(place) / "work")


def _soak(first: int, minutes: float, clean: Path, folder: Path) -> int:
    end, draw, failures, seen = time.monotonic() + 60 * minutes, first, 0, set()
    while time.monotonic() < end:
        name, words, wrong = attempt(draw, clean, folder)
        if wrong is not None:
            failures += 1
            if wrong not in seen:
                print(f"draw {draw}, {name}: {shlex.join(words)}\n    {wrong}", flush=True)
            seen.add(wrong)
        draw += 1
    print(f"{draw - first:,} draws, {failures} failures")
    return int(failures > 0)


if __name__ == "__main__":
    sys.exit(main())
