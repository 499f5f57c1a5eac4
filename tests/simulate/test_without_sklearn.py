"""The demonstration trains its detectors without scikit-learn, which only probes and scorers need."""

from __future__ import annotations

import subprocess
import sys

SCRIPT = """
import sys
sys.modules["sklearn"] = None  # as if it were not installed
import numpy as np
from hitmiss.core.errors import EnvironmentFault
from hitmiss.simulate.spectral_baseline import SpectralBaseline
from hitmiss.probes.domain import probe
from hitmiss.simulate.ecg import simulate
from hitmiss.simulate.ecg_detector import ConvBaseline

rng = np.random.default_rng(0)
clips = [rng.normal(size=16000) * (1.0 + i % 2) for i in range(12)]
assert SpectralBaseline.fit(clips, [i % 2 for i in range(12)]).weight.size
ecgs = simulate(40, seed=1)
assert ConvBaseline.fit(ecgs.x, ecgs.y).weight.size
try:
    probe(rng.normal(size=(40, 3)), ["a", "b"] * 20)
except EnvironmentFault as fault:
    assert "hitmiss[probes]" in str(fault)
else:
    raise SystemExit("a probe without scikit-learn was not refused")
"""


def test_detectors_are_trained_and_probes_refused_without_scikit_learn() -> None:
    ended = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
