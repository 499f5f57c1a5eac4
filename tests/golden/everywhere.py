"""What the file-based commands of the demo and of the golden list give on this processor, as one JSON object.

    python tests/golden/everywhere.py [STEP or NAME …]

It is run by test_everywhere.py with numpy's and OpenBLAS's choices of instructions and threads set from outside, and
under an emulated processor. Words restrict it to these steps of the demo and these commands of the golden list.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

GOLDEN = (
    "score-trials", "score-bca", "score-gap", "score-stream", "score-probability", "score-affine", "toxicity",
    "triage", "triage-guarantee", "compare", "compare-auc", "compare-triage", "drift-units",
)  # fmt: skip


def printed(words: list[str]) -> str:
    """What a command writes to stdout; it must succeed."""
    from hitmiss.cli.main import run

    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()) as said:
        code = run(words)
    assert code == 0, said.getvalue()
    return out.getvalue()


def everything(only: list[str]) -> dict[str, Any]:
    """The digests of all files that are simulated, and what each command prints."""
    from commands import COMMANDS
    from data import write_all

    from hitmiss.cli.demo_steps import STEPS

    found: dict[str, Any] = {}
    for step in STEPS:
        if step.name in ("asvspoof5", "toxicity", "triage") and (not only or step.name in only):
            data = step.simulate(Path(step.name), 0.005)
            for file in sorted(f for f in data.rglob("*") if f.is_file()):
                found[file.as_posix()] = hashlib.sha256(file.read_bytes()).hexdigest()
            for i, words in enumerate(step.commands(data)):
                fewer = ["100" if word == "1000" else word for word in words]
                if words[0] in ("triage", "compare"):
                    fewer += ["--bootstrap", "100"]
                found[f"{step.name} {i}"] = printed(fewer)
    write_all(Path.cwd())
    for command in COMMANDS:
        if command.name in (only or GOLDEN):
            found[command.name] = printed(command.words.split())
    return found


if __name__ == "__main__":
    os.environ["COLUMNS"] = "120"
    with tempfile.TemporaryDirectory() as place, contextlib.chdir(place):
        json.dump(everything(sys.argv[1:]), sys.stdout)
