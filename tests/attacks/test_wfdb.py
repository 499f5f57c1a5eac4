"""WFDB records as data, beside the package of PhysioNet; and records that cannot be used do not end a run."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from hitmiss.attacks.campaign import run_campaign
from hitmiss.attacks.model import as_classifier
from hitmiss.attacks.plan import AttackPlan, sweep
from hitmiss.attacks.recordings import Recordings, read_recordings
from hitmiss.attacks.worker import PlannedAttacks
from hitmiss.cli.main import run
from hitmiss.core.errors import DataError
from hitmiss.io import read
from hitmiss.media.wfdb import read_record


def write_16(folder: Path, name: str, values: np.ndarray, fs: int = 100, dx: str = "426783006") -> None:
    """A record of format 16 by the published rules: little-endian numbers in turns, 1,000 of them to a mV."""
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.dat").write_bytes(values.astype("<i2").tobytes())
    lines = [f"{name} {values.shape[1]} {fs} {len(values)}"]
    for lead in range(values.shape[1]):
        own = values[:, lead].astype(np.int64)
        lines.append(f"{name}.dat 16 1000(0)/mV 16 0 {own[0]} {int(own.sum()) % 65536} 0 lead{lead}")
    (folder / f"{name}.hea").write_text("\n".join([*lines, "#Sex: Male", f"#Dx: {dx}"]) + "\n")


def folder_of_records(tmp_path: Path, n: int = 4) -> tuple[Path, np.ndarray]:
    values = np.random.default_rng(0).integers(-900, 900, (n, 200, 3))
    for at in range(n):
        write_16(tmp_path / "records", f"r{at}", values[at], dx="426783006" if at % 2 else "164889003,426783006")
    return tmp_path / "records", values


@pytest.mark.extras
@pytest.mark.filterwarnings("ignore")  # the package warns of itself
@pytest.mark.parametrize("form", ["16", "212", "80", "24", "32"])
def test_records_equal_those_of_the_wfdb_package(form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wfdb = pytest.importorskip("wfdb")
    monkeypatch.chdir(tmp_path)
    x = np.random.default_rng(1).normal(0, 0.5, (501, 3))
    x[7, 1] = np.nan
    wfdb.wrsamp(
        "r", fs=360, units=["mV", "uV", "V"], sig_name=["I", "II", "V1"], p_signal=x, fmt=[form] * 3, comments=["Dx: 1"]
    )
    theirs, ours = wfdb.rdrecord("r").p_signal * [1.0, 1e-3, 1e3], read_record(tmp_path / "r.hea")
    assert ours.fs == 360 and ours.leads == ("I", "II", "V1") and ours.comments["dx"] == "1"
    np.testing.assert_allclose(ours.signal, theirs, rtol=1e-12, equal_nan=True)


def test_a_folder_of_records_is_attacked(tmp_path: Path) -> None:
    folder, values = folder_of_records(tmp_path)
    found = read_recordings(folder)
    assert found.ids == ["r0", "r1", "r2", "r3"] and found.fs == 100 and found.classes == ("164889003", "426783006")
    assert np.allclose(found.x, values / 1000.0) and found.y[:, 0].tolist() == [1, 0, 1, 0]
    assert found.columns["sex"] == ["Male"] * 4
    (folder / "RECORDS").write_text("r2\nr0\n")
    (tmp_path / "labels.csv").write_text("record,MI,NORM,site\nr0,1,0,a\nr1,0,1,b\nr2,0,1,c\nr3,1,1,d\n")
    (tmp_path / "model.py").write_text(
        "import numpy as np\ndef model(x):\n    m = x.mean(axis=(1, 2))[:, None]\n"
        "    return 1 / (1 + np.exp(-np.hstack([m, -m]) * 50))\n"
    )
    words = ["attack", "--detector", f"{tmp_path}/model.py:model", "--data", str(folder), "--labels"]
    words += [f"{tmp_path}/labels.csv", "--family", "square(queries=9)", "--strengths", "1", "-o", f"{tmp_path}/run"]
    assert run(words) == 0
    frame = read(f"{tmp_path}/run").frame
    assert frame["item"].unique().sort().to_list() == ["r0", "r2"]
    assert frame.filter(item="r2")["site"].unique().to_list() == ["c"]


def test_a_record_that_is_cut_off_is_not_taken_for_one(tmp_path: Path) -> None:
    folder, values = folder_of_records(tmp_path)
    whole = (folder / "r1.dat").read_bytes()
    (folder / "r1.dat").write_bytes(whole[:-6])
    (folder / "r3.dat").write_bytes((values[3] + (np.arange(200) == 9)[:, None]).astype("<i2").tobytes())
    with pytest.raises(DataError) as error:
        read_record(folder / "r1.hea")
    assert error.value.code == "wfdb-short"
    with pytest.raises(DataError) as error:
        read_record(folder / "r3.hea")
    assert error.value.code == "wfdb-checksum"
    found = read_recordings(folder)
    assert found.ids == ["r0", "r2"] and set(found.failures) == {"r1", "r3"}


def test_one_bad_record_does_not_end_a_run(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(0, 0.2, (8, 40, 2))
    x[2, 5, 1] = np.nan

    def model(signals: np.ndarray) -> np.ndarray:
        if (signals[:, 0, 0] > 90).any():
            raise RuntimeError("too loud")
        m = signals.mean(axis=(1, 2))
        m = np.where(np.abs(signals[:, 1, 0] - 7.0) < 1e-6, np.nan, m)  # no answer for this record as it is
        return np.stack([1 / (1 + np.exp(-9 * m)), np.full(len(m), 0.2)], axis=1)

    x[4, 1, 0] = 7.0
    x[6, 0, 0] = 99.0
    ids = [f"r{i}" for i in range(8)]
    data = Recordings(x, np.tile([[1, 0]], (8, 1)).astype(np.int8), 100.0, ("a", "b"), ids)
    plan = AttackPlan(sweep(["band_noise"], [0.5, 1.0]), control=False)
    trials = run_campaign(PlannedAttacks(data, as_classifier(model), plan), tmp_path / "run")
    assert trials.frame["item"].unique().sort().to_list() == ["r0", "r1", "r3", "r5", "r7"]
    told = next(note for note in trials.header.notes if "left out" in note)
    assert told.startswith("3 of 8") and all(name in told for name in ("r2", "r4", "r6"))


def test_a_record_that_fails_under_attack_is_left_out_of_every_condition() -> None:
    x = np.tile(0.1 * np.sin(np.arange(40.0))[:, None], (4, 1, 1))
    x[3] += 1.0

    def model(signals: np.ndarray) -> np.ndarray:
        m = signals.mean(axis=(1, 2))
        is_changed = np.abs(signals - x[3]).max(axis=(1, 2)) > 1e-6
        return np.where((m > 0.5) & is_changed, np.nan, 0.3)[:, None]

    data = Recordings(x, np.ones((4, 1), dtype=np.int8), 100.0, ("a",), ["a", "b", "c", "d"])
    planned = PlannedAttacks(data, as_classifier(model), AttackPlan(sweep(["powerline"], [1.0]), control=False))
    trials = run_campaign(planned)
    assert trials.frame["item"].unique().sort().to_list() == ["a", "b", "c"]
    assert any(note.startswith("1 of 4 records left out: d") for note in trials.header.notes)


def test_a_model_that_answers_nothing_is_not_the_records_fault() -> None:
    data = Recordings(np.zeros((3, 40, 1)), np.ones((3, 1), dtype=np.int8), 100.0, ("a",), ["a", "b", "c"])
    with pytest.raises(DataError, match="NaN or infinite"):
        PlannedAttacks(
            data, as_classifier(lambda x: np.full((len(x), 1), np.nan)), AttackPlan(sweep(["powerline"], [1.0]))
        )
