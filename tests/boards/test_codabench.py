"""The scoring program for Codabench, run as Codabench runs it."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from tests.boards.conftest import Challenge

import hitmiss as hm
from hitmiss.core.design import Design
from hitmiss.core.read_spec import ReadSpec
from hitmiss.reports.codabench import write_bundle

DESIGN = Design.of(["eer", "roc_auc"], bootstrap=100)


def laid_out(challenge: Challenge, system: str, *, packages: bool) -> Path:
    """Lay out program, keys and a submission as Codabench does."""
    app = challenge.root / "app"
    write_bundle(challenge.root / "bundle.zip", DESIGN, ReadSpec(), packages=packages)
    zipfile.ZipFile(challenge.root / "bundle.zip").extractall(app / "program")
    shutil.copytree(challenge.keys, app / "input" / "ref")
    shutil.copytree(challenge.submissions / system, app / "input" / "res")
    return app


def run(app: Path, *python: str) -> subprocess.CompletedProcess[str]:
    """Run the command of the program."""
    words = [*python, str(app / "program" / "score.py"), str(app / "input"), str(app / "output")]
    return subprocess.run(words, capture_output=True, text=True, check=False, timeout=300)


def check(challenge: Challenge, app: Path) -> None:
    """The scores are those of the metric, and the page tells nothing about single trials."""
    scores = json.loads((app / "output" / "scores.json").read_text())
    for dataset in ("wild", "studio"):
        own = hm.metrics.eer(challenge.label[dataset], challenge.score["fair", dataset])
        assert scores[f"eer_{dataset}"] == pytest.approx(own, abs=1e-15)
        assert scores[f"roc_auc_{dataset}_low"] < scores[f"roc_auc_{dataset}"] < scores[f"roc_auc_{dataset}_high"]
    assert scores["eer"] == pytest.approx((scores["eer_wild"] + scores["eer_studio"]) / 2)
    page = (app / "output" / "detailed_results.html").read_text()
    assert "wild-1" not in page and "bonafide" not in page


def test_the_program_scores_a_submission(challenge: Challenge) -> None:
    """With hitmiss in the image, the program needs nothing else."""
    app = laid_out(challenge, "fair", packages=False)
    assert (app / "program" / "metadata.yaml").read_text() == "command: python3 $program/score.py $input $output\n"
    done = run(app, sys.executable)
    assert done.returncode == 0, done.stderr
    check(challenge, app)


def test_a_bad_submission_is_told_why(challenge: Challenge) -> None:
    """The participant reads the sentence; no score is written."""
    app = laid_out(challenge, "fair", packages=False)
    (app / "input" / "res" / "wild.tsv").write_text("item\tscore\nwild-0\tnan\n")
    done = run(app, sys.executable)
    assert done.returncode == 3 and "NaN" in done.stderr and "Traceback" not in done.stderr
    assert not (app / "output" / "scores.json").exists()
    (app / "input" / "res" / "wild.tsv").unlink()
    done = run(app, sys.executable)
    assert done.returncode == 3 and "no file for wild" in done.stderr


@pytest.mark.extras
def test_the_bundle_runs_alone_without_a_network(challenge: Challenge) -> None:
    """An interpreter without site-packages, and without a network where the machine can take it away."""
    app = laid_out(challenge, "fair", packages=True)
    bare = [str(Path(sys.base_prefix) / "bin" / f"python3.{sys.version_info.minor}"), "-I", "-S"]
    probe = subprocess.run(["unshare", "-rn", "true"], capture_output=True, check=False)
    done = run(app, *(["unshare", "-rn"] if probe.returncode == 0 else []), *bare)
    assert done.returncode == 0, done.stderr
    check(challenge, app)
