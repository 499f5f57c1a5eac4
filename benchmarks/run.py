"""Runs benchmarks and puts their tables into RESULTS.md.

    python benchmarks/run.py [NAME …]        all of them without a name; the tables of the others stay as they are

Each script here that is named below prints Markdown; its docstring says what is measured against what.
"""

from __future__ import annotations

import ast
import datetime
import platform
import re
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
PAGE = HERE / "RESULTS.md"
NAMES = (
    "bootstrap", "interval_coverage", "plans", "rankings", "boards", "command", "toxicity", "moderation", "triage_guarantee", "prevalence_coverage", "llm_runs", "comparisons", "detect", "detect_gpu", "kills", "fuzzing", "attacks",
    "attacks_gpu", "ecg_ptbxl", "report", "scale", "cluster",
)  # fmt: skip
"""In the order of the page. What needs a machine or data that is not here keeps the table it has."""

HEAD = """# Benchmarks

Each table comes out of one run of one script, and `python benchmarks/run.py NAME` measures it again. Ratios are
comparable; seconds belong to the machine of that day. No test looks at a clock.
"""


def section(name: str) -> str:
    """A section with a fresh table: what the script says it measures, and what it printed."""
    script = HERE / f"{name}.py"
    about = (ast.get_docstring(ast.parse(script.read_text(encoding="utf-8"))) or "").strip()
    printed = subprocess.run([sys.executable, str(script)], check=True, capture_output=True, text=True).stdout.strip()
    made = f"{datetime.date.today()}, Python {platform.python_version()}, {platform.machine()}"
    return wrapped(name, f"## {name}\n\n{about}\n\n{printed}\n\nMeasured {made}.")


def wrapped(name: str, text: str) -> str:
    """A section between the marks by which it is found again."""
    return f"<!-- {name} -->\n{text}\n<!-- /{name} -->\n"


def sections(page: str) -> dict[str, str]:
    """The sections of a page by name."""
    found = re.finditer(r"<!-- (?P<name>\w+) -->\n.*?<!-- /(?P=name) -->\n", page, re.S)
    return {m["name"]: m[0] for m in found}


def main(names: list[str]) -> None:
    """Measure and write."""
    for name in names or [n for n in NAMES if (HERE / f"{n}.py").exists()]:
        print(name, flush=True)
        fresh = section(name)
        kept = sections(PAGE.read_text(encoding="utf-8")) if PAGE.exists() else {}  # others may have measured meanwhile
        kept[name] = fresh
        order = [*(n for n in NAMES if n in kept), *(n for n in kept if n not in NAMES)]  # no table is lost
        PAGE.write_text(HEAD + "".join(f"\n{kept[n]}" for n in order), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
