"""What a command loads: starting takes longer than most commands compute, so nothing is loaded that was not asked for."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tests.golden.data import write_all

OF_RUNS = ("attacks", "detection", "llm", "media", "cluster", "review", "bridges", "boards", "probes", "simulate")
PAGE = ("reports.page", "reports.evaluations", "reports.displays")
SEVERAL = ("engine.comparison", "engine.rank", "engine.bias", "engine.identities")
OTHER_SPECS = ("core.run_spec", "core.gate_spec", "core.report_spec")
HEAVY = ("scipy", "sklearn", "matplotlib", "pandas", "jinja2", "rich")
UNASKED = {
    "score eval_a.tsv --key eval.key -p asvspoof5 --bootstrap 0": (*OF_RUNS, *PAGE, *SEVERAL, *OTHER_SPECS),
    "toxicity --pred_dir predictions --run_tag base --languages en es it --bootstrap 0": (*OF_RUNS, *PAGE),
    "threshold predictions:base --test predictions:other": (*OF_RUNS, *PAGE),
    "compare eval_a.tsv eval_b.tsv --key eval.key -p asvspoof5 --bootstrap 200": (*OF_RUNS, *PAGE),
    "validate eval_a.tsv --key eval.key": (*OF_RUNS, *PAGE, *SEVERAL, "metrics"),
}
"""Commands, and parts of the package that they do not need."""
NEEDS_SCIPY = ("compare",)
PROGRAM = "import sys; from hitmiss.cli.main import run; code = run(sys.argv[1:]); print(*sys.modules, sep='\\n', file=sys.stderr); sys.exit(code)"


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("files")
    write_all(folder)
    return folder


@pytest.mark.parametrize("command", UNASKED, ids=lambda command: command.split()[0])
def test_nothing_is_loaded_that_was_not_asked_for(command: str, files: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *command.split()], cwd=files, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    loaded = {*done.stderr.splitlines()}
    unasked = {f"hitmiss.{name}" for name in UNASKED[command]} | {
        name for name in HEAVY if command.split()[0] not in NEEDS_SCIPY or name != "scipy"
    }
    assert "hitmiss.cli.main" in loaded and "polars" in loaded
    assert sorted(loaded & unasked) == []
