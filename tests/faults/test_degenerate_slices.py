"""Slices with one class, one trial or endless scores, and slices by many columns: a figure or a reason, never a crash."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from hitmiss.cli.main import run

NAMES = [f"c{i}" for i in range(8)]


def wide(folder: Path, suffix: str = ".csv") -> tuple[Path, pl.DataFrame]:
    """600 trials with eight columns of some 230 values each: 230^8 possible combinations pass 2^62."""
    rng = np.random.default_rng(5)
    n = 600
    positive = rng.random(n) < 0.5
    columns = {name: [f"v{k:03d}" for k in rng.integers(0, 256, n)] for name in NAMES}
    frame = pl.DataFrame(
        {
            "item": [f"i{k}" for k in range(n)],
            "label": np.where(positive, "bonafide", "spoof"),
            "score": rng.normal(size=n) + positive,
            **columns,
        }
    )
    path = folder / f"wide{suffix}"
    frame.write_parquet(path) if suffix == ".parquet" else frame.write_csv(path)
    return path, frame


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
@pytest.mark.parametrize("how", [(), ("--stream",)])
def test_slices_by_many_columns_are_those_of_the_data(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], suffix: str, how: tuple[str, ...]
) -> None:
    path, frame = wide(tmp_path, suffix)
    code = run(["score", str(path), "-m", "accuracy", "--threshold", "0", "--by", ",".join(NAMES), "--json", *how])
    assert code == 0
    rows = [e for e in json.loads(capsys.readouterr().out)["estimates"] if e["slice"] and e["average"] is None]
    right = ((frame["score"] >= 0) == (frame["label"] == "bonafide")).to_list()
    expected = {row: (float(hit), 1) for row, hit in zip(frame.select(NAMES).iter_rows(), right, strict=True)}
    assert {tuple(e["slice"][name] for name in NAMES): (e["value"], e["n"]) for e in rows} == expected


@pytest.fixture(scope="module")
def trials(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Trials whose attacks hold one class each, and whose codecs hold two, one or a single trial."""
    rng = np.random.default_rng(7)
    n = 120
    positive = rng.random(n) < 0.4
    codec = rng.choice(["C01", "C02"], n).astype(object)
    codec[0], codec[positive & (codec == "C02") & (np.arange(n) % 2 == 0)] = "lone", "clean"
    frame = pl.DataFrame(
        {
            "item": [f"i{k}" for k in range(n)],
            "label": np.where(positive, "bonafide", "spoof"),
            "score": np.round(1 / (1 + np.exp(-rng.normal(size=n) - positive)), 3),
            "codec": codec.astype(str),
            "attack": np.where(positive, "-", rng.choice(["A01", "A02"], n)),
            "speaker": rng.choice([f"s{k}" for k in range(9)], n),
        }
    )
    path = tmp_path_factory.mktemp("degenerate") / "t.csv"
    frame.write_csv(path)
    return path


METRICS = (
    "brier",
    "log_loss",
    "average_precision",
    "eer",
    "eer(ties=hull)",
    "roc_auc",
    "min_dcf",
    "accuracy",
    "mcc",
    "f1",
)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("drawing", [(), ("--bootstrap", "30"), ("--bootstrap", "30", "--interval", "percentile")])
def test_one_class_slices_are_measured_with_every_interval(
    trials: Path, capsys: pytest.CaptureFixture[str], metric: str, drawing: tuple[str, ...]
) -> None:
    asked = ["-m", metric, "--score-kind", "probability", "--threshold", "0.5", "--by", "attack", "--by", "codec"]
    assert run(["score", str(trials), *asked, *drawing, "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["estimates"]
    assert {e["slice"].get("attack") for e in rows if e["average"] is None} >= {"-", "A01", "A02"}
    for e in rows:
        assert e["value"] is not None or e["note"], e


@pytest.mark.parametrize("values", [("inf",), ("-inf", "inf"), ("1e308", "-1e308"), ("1e200", "inf")])
def test_endless_and_huge_ratios_have_intervals_or_a_reason(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], values: tuple[str, ...]
) -> None:
    rng = np.random.default_rng(3)
    rows = [(f"i{k}", "bonafide" if k % 3 else "spoof", repr(float(rng.normal() + (k % 3 > 0)))) for k in range(90)]
    for at, value in enumerate(values):
        rows[at] = (*rows[at][:2], value)
    path = tmp_path / "t.csv"
    path.write_text("item,label,score\n" + "".join(",".join(row) + "\n" for row in rows))
    assert run(["score", str(path), "-p", "asvspoof5", "--score-kind", "llr", "--bootstrap", "50", "--json"]) == 0
    for e in json.loads(capsys.readouterr().out)["estimates"]:
        if e["low"] is not None and isinstance(e["value"], float):
            assert float(e["low"]) <= e["value"] <= float(e["high"]), e


def test_attacks_of_trials_without_an_attack(trials: Path, tmp_path: Path) -> None:
    only = tmp_path / "bonafide.csv"
    pl.read_csv(trials).filter(pl.col("label") == "bonafide").write_csv(only)
    assert run(["score", str(only), "-p", "asvspoof5", "--by", "attack"]) == 0
    assert run(["score", str(only), "-p", "asvspoof5", "--matrix", "attack,codec", "--bootstrap", "20"]) == 0


@pytest.mark.parametrize("how", [(), ("--stream",)])
def test_sums_beyond_every_float_are_infinite_without_a_word_of_numpy(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], how: tuple[str, ...]
) -> None:
    rows = [f"i{k},{('spoof', 'bonafide')[k % 2]},{('1e308', '-1e308', '0.5')[k % 3]}" for k in range(60)]
    (tmp_path / "t.csv").write_text("\n".join(["item,label,score", *rows]) + "\n")
    words = ["score", str(tmp_path / "t.csv"), "-p", "asvspoof5", "--score-kind", "llr", "--bootstrap", "20"]
    assert run([*words, *how]) == 0
    assert "overflow" not in capsys.readouterr().err


def test_a_protocol_of_endless_depth_is_a_sentence(tmp_path: Path, trials: Path) -> None:
    deep = tmp_path / "deep.toml"
    deep.write_text("a=" + "[" * 3000 + "]" * 3000)
    assert run(["score", str(trials), "-p", str(deep)]) == 2
