"""`hitmiss attack --save-signals`: what is kept is what was counted, after any interruption."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from hitmiss.attacks.campaign import run_campaign
from hitmiss.attacks.model import as_classifier
from hitmiss.attacks.plan import AttackPlan, sweep
from hitmiss.attacks.recordings import read_recordings
from hitmiss.attacks.signals import has_signals, read_signals
from hitmiss.attacks.worker import PlannedAttacks
from hitmiss.cli.main import run
from hitmiss.core.errors import DataError, IncompleteRun, UsageError
from hitmiss.io import read
from hitmiss.runs.manifest import verify
from hitmiss.simulate.ecg import simulate
from hitmiss.simulate.ecg_detector import ConvBaseline, train

SLOW = """
import time
from hitmiss.simulate.ecg_detector import ConvBaseline
inner = ConvBaseline.load({path!r})

class Slow(ConvBaseline):
    def outputs(self, x):
        time.sleep(0.15)
        return inner.outputs(x)

detector = Slow(inner.filters, inner.offset, inner.weight, inner.bias)
"""
FAMILIES = ("--family", "band_noise(beta=1)", "--family", "morph_amp", "--strengths", "0.5", "1")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    here = tmp_path_factory.mktemp("ecg")
    simulate(150, 0, "train").save(here / "train.npz")
    simulate(18, 0, "test").save(here / "test.npz")
    train(here)
    (here / "slow.py").write_text(SLOW.format(path=str(here / "detector.npz")))
    return here


def words(folder: Path, output: Path, *more: str, detector: str = "detector.py") -> list[str]:
    model = f"{folder / detector}:detector"
    return ["attack", "--detector", model, "--data", str(folder / "test.npz"), *FAMILIES, *more, "-o", str(output)]


@pytest.fixture(scope="module")
def kept(folder: Path) -> Path:
    search = ("--minimal", "band_noise(beta=3)", "--save-signals")
    assert run(words(folder, folder / "run", *search)) == 0
    return folder / "run"


def test_a_kept_signal_gives_the_answer_that_was_counted(folder: Path, kept: Path) -> None:
    model = ConvBaseline.load(folder / "detector.npz")
    frame = read(str(kept)).frame.sort("item", "target")
    for attack, strength in (("band_noise", 0.5), ("morph_amp", 1), ("band_noise", "minimal")):
        ids, x = read_signals(kept, attack=attack, strength=strength)
        assert x.dtype == np.float32 and x.shape == (18, 1000, 12) and ids == [*dict.fromkeys(ids)]
        text = strength if isinstance(strength, str) else f"{strength:g}"
        own = frame.filter(attack=attack, strength=text)
        order = np.argsort(np.array(ids))
        np.testing.assert_allclose(model.outputs(x)[order].reshape(-1), own["score"].to_numpy(), atol=1e-4)
        assert np.array_equal((model.outputs(x)[order].reshape(-1) >= 0).astype(int), own["decision"].to_numpy())
    some, x = read_signals(kept, attack="morph_amp", strength=1, records=ids[3:1:-1])
    assert some == [ids[3], ids[2]] and len(x) == 2
    assert verify(kept) == []


def test_what_is_not_there_is_said(folder: Path, kept: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no signals are of attack pgd.*morph_amp · 0\.5"):
        read_signals(kept, attack="pgd", strength=0.5)
    with pytest.raises(DataError, match="no record 'nobody'"):
        read_signals(kept, attack="morph_amp", strength=1, records=["nobody"])
    assert run(words(folder, tmp_path / "bare")) == 0
    assert not has_signals(tmp_path / "bare")
    with pytest.raises(UsageError, match="--save-signals"):
        read_signals(tmp_path / "bare", attack="morph_amp", strength=1)


def test_aims_and_places_must_be_told_apart(folder: Path, tmp_path: Path) -> None:
    where = ("--window", "2", "--center", "3", "5", "--save-signals", "--no-control")
    assert run(words(folder, tmp_path / "run", *where)) == 0
    with pytest.raises(UsageError, match=r"several attacks are .*morph_amp · 1 · any · 5 s"):
        read_signals(tmp_path / "run", attack="morph_amp", strength=1)
    clean = read_recordings(folder / "test.npz").x
    _, x = read_signals(tmp_path / "run", attack="band_noise", strength=1, place="5 s")
    assert np.abs(x - clean)[:, 450:550].max() > 1e-3 > np.abs(x - clean)[:, 620:].max()


def test_a_changed_file_is_refused(folder: Path, tmp_path: Path) -> None:
    assert run(words(folder, tmp_path / "run", "--save-signals")) == 0
    first = min((tmp_path / "run" / "signals").glob("*.npy"))
    data = bytearray(first.read_bytes())
    data[-1] ^= 1
    first.write_bytes(data)
    with pytest.raises(DataError, match=f"{first.name} was changed"):
        read_signals(tmp_path / "run", attack="band_noise", strength=0.5)
    assert run(["score", str(tmp_path / "run"), "-p", "ecg-attacks"]) == 3


def test_killed_and_resumed_it_keeps_the_same(folder: Path, kept: Path, tmp_path: Path) -> None:
    output = tmp_path / "run"
    command = words(folder, output, "--save-signals", detector="slow.py")
    code = "import sys; from hitmiss.cli.main import run; sys.exit(run(sys.argv[1:]))"
    env = {**os.environ, "PYTHONWARNINGS": ""}
    process = subprocess.Popen([sys.executable, "-c", code, *command], env=env, stderr=subprocess.DEVNULL)
    until = time.monotonic() + 60
    while not list((output / "signals").glob("*.npy")) and time.monotonic() < until:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    with pytest.raises(IncompleteRun):
        read_signals(output, attack="band_noise", strength=0.5)
    (output / "signals" / "0000009999.npy").write_bytes(b"left behind by a writer that was killed")
    assert run([word for word in command if word != "--save-signals"] + ["--resume"]) == 4  # begun with signals
    assert run([*command, "--resume"]) == 0
    assert verify(output) == [] and not (output / "signals" / "0000009999.npy").exists()
    for attack in ("band_noise", "morph_amp"):
        one, other = (read_signals(place, attack=attack, strength=1) for place in (kept, output))
        assert one[0] == other[0] and np.array_equal(one[1], other[1])


def test_signals_need_a_folder(folder: Path) -> None:
    data = read_recordings(folder / "test.npz").first(2)
    plan = AttackPlan(sweep(["band_noise"], [0.5]))
    planned = PlannedAttacks(data, as_classifier(ConvBaseline.load(folder / "detector.npz")), plan)
    with pytest.raises(UsageError, match="output"):
        run_campaign(planned, save_signals=True)
