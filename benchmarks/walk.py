"""Which modules a command passes through, from its files to its table.

    python benchmarks/walk.py [score] [stream] [toxicity] [compare]

A module counts when one of its functions runs; what is only imported does not. The commands run on the small files of
the golden commands (tests/golden/data.py).
"""

from __future__ import annotations

import contextlib
import io
import sys
import tempfile
from pathlib import Path
from types import FrameType

HERE = Path(__file__).resolve().parent
PACKAGE = str(HERE.parent / "src" / "hitmiss")
SCORE = "score eval_a.tsv --key eval.key -p asvspoof5 --score-kind llr --by codec --bootstrap 1000 --unit speaker"
COMMANDS = {
    "score": SCORE,
    "stream": f"{SCORE} --stream",
    "toxicity": "toxicity --pred_dir predictions --run_tag base --languages en es it",
    "compare": "compare eval_a.tsv eval_b.tsv --key eval.key -p asvspoof5 --bootstrap 1000",
}


def walk(words: list[str]) -> dict[str, set[str]]:
    """The functions that a command runs, by module."""
    from hitmiss.cli.main import run

    entered: dict[str, set[str]] = {}

    def note(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        # A class body or a module's own lines run when it is imported: that is no step of the walk.
        if event == "call" and code.co_filename.startswith(PACKAGE) and not code.co_name.startswith("<module"):
            module = code.co_filename[len(PACKAGE) + 1 :]
            entered.setdefault(module, set()).add(code.co_qualname)

    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        run(words)  # once untraced: what decorators and dataclasses do when modules load is no step of the walk
        sys.setprofile(note)
        try:
            code = run(words)
        finally:
            sys.setprofile(None)
    if code:
        raise SystemExit(f"hitmiss {' '.join(words)} gave {code}")
    return entered


def main(names: list[str]) -> None:
    """Print how many modules and functions each command passes through, and which modules."""
    sys.path.insert(0, str(HERE.parent / "tests" / "golden"))
    from data import write_all

    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        write_all(Path(folder))
        for name in names or COMMANDS:
            entered = walk(COMMANDS[name].split())
            functions = sum(map(len, entered.values()))
            print(f"{name}: {len(entered)} modules, {functions} functions")
            print("  " + " ".join(sorted(entered)))


if __name__ == "__main__":
    main(sys.argv[1:])
