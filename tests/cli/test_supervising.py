"""A command on a cluster that is lost ends with exit code 5 and a sentence; one that ends by itself keeps its code."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from hitmiss.cluster.ray import Refusal, attempted
from hitmiss.core.errors import DataError


@pytest.mark.parametrize("code", [1, 0, 137])
def test_a_process_that_ray_ends_is_said_to_be_lost(tmp_path: Path, code: int) -> None:
    """Ray leaves from native code, as `os._exit` does."""
    (tmp_path / "lost.py").write_text(f"import os\nos._exit({code})\n")
    words = ["--plugin", str(tmp_path / "lost.py"), "score", "x.csv", "-m", "eer", "--cluster", "auto"]
    done = subprocess.run([sys.executable, "-m", "hitmiss", *words], capture_output=True, text=True, check=False)
    assert done.returncode == 5 and "the connection to the cluster was lost" in done.stderr and done.stdout == ""


def test_a_command_that_ends_by_itself_keeps_its_code(tmp_path: Path) -> None:
    words = ["score", str(tmp_path / "none.csv"), "-m", "eer", "--cluster", "auto", "--no-such-option"]
    done = subprocess.run([sys.executable, "-m", "hitmiss", *words], capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "lost" not in done.stderr


def test_a_file_that_a_machine_does_not_see_is_a_sentence(tmp_path: Path) -> None:
    found = attempted(lambda: (tmp_path / "unseen.csv").read_bytes())
    assert isinstance(found, Refusal)
    error = found.raised()
    assert isinstance(error, DataError) and error.code == "unseen-file" and "unseen.csv" in str(error)
