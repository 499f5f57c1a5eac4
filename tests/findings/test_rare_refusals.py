"""What is refused or noted seldom: damaged claims, unlike sources, services and codecs that fail, and data that ask too much."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from tests.findings.producing import Case, assert_produces

import hitmiss as hm
from hitmiss.attacks.codec_engines import _run_ffmpeg
from hitmiss.claims.replay import Files, replayed
from hitmiss.cluster.ray import Head
from hitmiss.cluster.sending import Sent, accepted, attempted
from hitmiss.core.artifacts import sealed
from hitmiss.core.design import Design, TriageRules
from hitmiss.core.read_spec import ReadSpec
from hitmiss.core.sampling import SamplingPlan
from hitmiss.core.trials import Trials
from hitmiss.derive.calibration import fit_affine
from hitmiss.detection.opening import open_detector
from hitmiss.detection.scorer import Scorer
from hitmiss.engine.drawn import Drawn
from hitmiss.engine.interval import ends_of_draws
from hitmiss.evaluation.protocol import find_protocol, read_trials
from hitmiss.protocols.triage import decided
from hitmiss.reports.pictures import load
from hitmiss.review.answered import Wish
from hitmiss.review.choice import choose
from hitmiss.review.library import Library


def trials() -> Trials:
    """Trials of two classes that overlap."""
    label = [k % 2 for k in range(40)]
    return Trials.of(label, np.random.default_rng(0).normal(size=40) + label, item=[f"i{k}" for k in range(40)])


def verifier() -> object:
    """Read the scores of a verifier whose key says only whether the speaker is the claimed one."""
    Path("cm.csv").write_text("id,label,score\na,bonafide,2\nb,spoof,1\n")
    Path("asv.txt").write_text("S 1 2.0\nS 0 1.0\n")
    return read_trials("cm.csv", None, find_protocol("asvspoof2019-la"), ReadSpec(asv="asv.txt"))


def unknown_curve() -> object:
    """Read results that bring a curve of a kind which does not exist."""
    hm.measure(trials(), "eer", bootstrap=0).save("r.json")
    data = {k: v for k, v in json.loads(Path("r.json").read_text()).items() if k != "digest"}
    data["pictures"] = [{"run": {}, "displays": [{"kind": "wheel"}]}]
    Path("r.json").write_text(json.dumps(sealed(data)))
    return load("r.json")


def without_media() -> object:
    """Choose items to review of which no file is there."""
    Path("said.jsonl").write_text('{"id": "a", "file": "gone.png", "prediction": "uncertain"}\n')
    return choose("said.jsonl", Wish(allow_missing=True), Library(Path()))


def failing_ffmpeg() -> object:
    """Ask the program of this name for a codec that it does not have."""
    Path("ffmpeg").write_text(f"#!{sys.executable}\nimport sys\nsys.stderr.write('Unknown encoder')\nsys.exit(1)\n")
    Path("ffmpeg").chmod(0o755)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HITMISS_FFMPEG", str(Path("ffmpeg").resolve()))
        return _run_ffmpeg(["-c:a", "none"], b"")


def barely_spread() -> object:
    """Calibrate scores that differ by less than any ordinary number."""
    with np.errstate(all="ignore"):
        return fit_affine([0, 1, 0, 1] * 10, [0, 1e-300, 2e-300, 3e-300] * 10)


CASES: Sequence[tuple[str, Case, str]] = [
    ("bad-asv-key", verifier, "asv.txt"),
    ("ffmpeg-failed", failing_ffmpeg, "Unknown encoder"),
    ("key-not-a-table", lambda: replayed(
        Design.of(["eer"]), ReadSpec(), Files(("duckdb:a.db#scores",), ("key.csv",)), ()
    ), "key"),
    ("lost-cluster", lambda: (_ for _ in ()).throw(Head("10.1.1.1", 6379).loss()), "10.1.1.1"),
    ("no-bca", lambda: ends_of_draws(None, Drawn(0.5, replicates=np.ones(9)), SamplingPlan(method="bca")), "BCa"),  # type: ignore
    ("no-development/confidences", lambda: decided(trials(), Design(triage=TriageRules(recalibration="pav"))), ""),
    ("no-fit", barely_spread, "pav"),
    ("nothing-to-review/shown", without_media, ""),
    ("pictures-refused", unknown_curve, "r.json"),
    ("unseen-file", lambda: accepted(attempted(lambda: Path("gone.csv").read_text())), "gone.csv"),
]  # fmt: skip


@pytest.mark.parametrize(("code", "case", "named"), [pytest.param(*case, id=case[0]) for case in CASES])
def test_produced(code: str, case: Case, named: str, tmp_path: Path) -> None:
    assert_produces(code, case, tmp_path, named)


HEAVY: Sequence[tuple[str, Case, str]] = [
    ("on-machine", lambda: accepted(Scorer().open(Sent.of(partial(open_detector, "gone.py:f")))), "gone.py"),
]  # fmt: skip


@pytest.mark.extras
@pytest.mark.parametrize(("code", "case", "named"), [pytest.param(*case, id=case[0]) for case in HEAVY])
def test_produced_with_heavy_packages(code: str, case: Case, named: str, tmp_path: Path) -> None:
    assert_produces(code, case, tmp_path, named)
