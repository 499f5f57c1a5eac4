"""Two attack runs side by side: figures by hand, tests against scipy and against every way counted, refusals."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy.stats import binomtest

from hitmiss.cli.main import run
from hitmiss.core.design import ComparisonRules, Design
from hitmiss.core.errors import DataError, UsageError
from hitmiss.core.header import Header
from hitmiss.core.results import code_of
from hitmiss.core.trials import Trials
from hitmiss.engine.comparison import Comparison
from hitmiss.evaluation.protocol import compare_trials, find_protocol, measure_trials
from hitmiss.simulate.ecg import simulate
from hitmiss.simulate.ecg_detector import ConvBaseline

CLASSES = ("CD", "MI")
N = 40
TRUTH = np.random.default_rng(1).integers(0, 2, (N, 2))


def bits(seed: int, harm: float) -> tuple[np.ndarray, np.ndarray]:
    """Answers without an attack and under one."""
    rng = np.random.default_rng(seed)
    clean = np.where(rng.random((N, 2)) < 0.15, 1 - TRUTH, TRUTH)
    return clean, np.where(rng.random((N, 2)) < harm, 1 - clean, clean)


def campaign(number: int, harm: float, patients: int = N, **about: Any) -> Trials:
    clean, hit = bits(number, harm)
    frames = []
    for (attack, strength), answer in {("clean", "0"): clean, ("pgd", "1"): hit, ("noise ~ pgd", "1"): clean}.items():
        rows = [(f"r{i:02d}", CLASSES[k], int(TRUTH[i, k]), int(answer[i, k])) for i in range(N) for k in range(2)]
        frame = pl.DataFrame(rows, schema=["item", "target", "label", "decision"], orient="row")
        score = frame["decision"].to_numpy() * 2.0 - 1 + np.random.default_rng(number).normal(size=2 * N) / 5
        place = frame["item"].str.slice(1).cast(int)
        columns = {"attack": pl.lit(attack), "strength": pl.lit(strength), "score": pl.Series(score)}
        columns |= {"patient": (place % patients).cast(str), "sex": (place % 2).cast(str)}
        frames.append(frame.with_columns(**columns))
    made = {"dataset_digest": "d", "seed": 0, "attacks": {"pgd 1": "pgd 1 {}"}, **about}
    header = Header(
        "present", "absent", "logit", runs=("attack", "strength"), slices=("patient", "sex"), provenance=made
    )
    return Trials.from_frame(pl.concat(frames), header)


PGD = {"attack": "pgd", "strength": "1"}


def compare_attacks(a: Trials, b: Trials, by: str = "", **contest: Any) -> Comparison:
    asked = Design.of(
        by=by or (), protocol=find_protocol("ecg-attacks"), bootstrap=1000, contest=ComparisonRules(**contest)
    )
    made = compare_trials({"A": a, "B": b}, asked)
    assert isinstance(made, Comparison)
    return made


def test_figures_and_mcnemar_by_hand() -> None:
    made = compare_attacks(campaign(2, 0.1), campaign(3, 0.5))
    (clean_a, hit_a), (clean_b, hit_b) = bits(2, 0.1), bits(3, 0.5)
    flips = [(clean_a != hit_a).any(axis=1), (clean_b != hit_b).any(axis=1)]
    right = [(c == TRUTH).all(axis=1) & (h == TRUTH).all(axis=1) for c, h in ((clean_a, hit_a), (clean_b, hit_b))]
    for name, (one, other) in {"changed": flips, "robust_accuracy": right}.items():
        row = made.one(name, **PGD)
        assert (row.a, row.b, row.delta) == pytest.approx((one.mean(), other.mean(), other.mean() - one.mean()))
        only = int((one & ~other).sum()), int((other & ~one).sum())
        assert row.test == "mcnemar" and row.p_value == pytest.approx(binomtest(only[0], sum(only), 0.5).pvalue)
        assert {row.wins, row.losses} == set(only) and row.wins + row.ties + row.losses == N == row.n_pairs
        assert row.low is not None and row.high is not None and row.low <= row.delta <= row.high
    assert made.one("changed", **PGD).verdict == "A better"  # fewer of its answers change
    among = made.one("changed_correct", **PGD)
    was_right = [(c == TRUTH).all(axis=1) for c in (clean_a, clean_b)]
    assert among.a == pytest.approx(flips[0][was_right[0]].mean()) and among.test == "bootstrap"
    assert among.b == pytest.approx(flips[1][was_right[1]].mean())
    assert not any("noise" in d.slice["attack"] for d in made)
    by_class = compare_attacks(campaign(2, 0.1), campaign(3, 0.5), by="target").one("flipped", **PGD, target="MI")
    assert by_class.b == pytest.approx((clean_b != hit_b)[:, 1].mean())
    by_sex = compare_attacks(campaign(2, 0.1), campaign(3, 0.5), by="sex").one("changed", **PGD, sex="1")
    assert by_sex.a == pytest.approx(flips[0][1::2].mean()) and by_sex.n_pairs == N // 2


@pytest.mark.parametrize(("patients", "drawn"), [(N, "item"), (8, "patient")])
def test_attack_runs_draw_records_or_patients_with_several_records(patients: int, drawn: str) -> None:
    """The unit is the record, or the patient if some patient has several; nothing is left to be warned about."""
    asked = Design.of(protocol=find_protocol("ecg-attacks"), bootstrap=100)
    found = measure_trials(campaign(2, 0.3, patients=patients), asked)
    pooled = [e for e in found if e.units is not None and not e.slice and e.average is None]
    assert {e.units for e in pooled} <= {patients} and (pooled or drawn == "item")
    assert ("unit=patient" in found.signature) is (drawn == "patient")
    assert not any(code_of(text) == "unit-not-used" for text in found.warnings)


def test_patients_are_exchanged_as_a_whole() -> None:
    """With eight patients every way of exchanging them is counted, here by hand."""
    made = compare_attacks(campaign(2, 0.1, patients=8), campaign(3, 0.5, patients=8))
    (clean_a, hit_a), (clean_b, hit_b) = bits(2, 0.1), bits(3, 0.5)
    gains = (clean_b != hit_b).any(axis=1).astype(int) - (clean_a != hit_a).any(axis=1)
    by_patient = np.bincount(np.arange(N) % 8, gains)
    ways = [abs(np.dot(signs, by_patient)) for signs in product((-1, 1), repeat=8)]
    row = made.one("changed", **PGD)
    assert row.test == "permutation"
    assert row.p_value == pytest.approx(np.mean(np.array(ways) >= abs(by_patient.sum()) - 1e-9))
    alone = compare_attacks(campaign(2, 0.1), campaign(3, 0.5)).one("changed", **PGD)
    assert row.low is not None and alone.low is not None and row.low != alone.low  # drawn as a whole, too
    few = compare_attacks(campaign(2, 0.1, patients=3), campaign(3, 0.5, patients=3)).one("changed", **PGD)
    assert few.low is None and "3 units (patient) alone" in (few.note or "")


def test_turned_round_and_with_itself() -> None:
    a, b = campaign(2, 0.1), campaign(3, 0.5)
    one, other = compare_attacks(a, b), compare_attacks(b, a)
    for d in one:
        back = other.one(d.metric, **d.slice)
        assert d.delta == pytest.approx(-back.delta) and d.p_value == pytest.approx(back.p_value)
        assert (d.wins, d.losses) == (back.losses, back.wins)
    assert {d.verdict for d in compare_attacks(a, a) if d.metric != "macro_auc" and d.test == "mcnemar"} == {
        "identical"
    }
    p = [d.p_value for d in one if d.metric == "exact_match"]
    adjusted = [d.p_adjusted for d in one if d.metric == "exact_match"]
    assert len(p) == 2 and min(adjusted) == pytest.approx(min(1.0, 2 * min(p)))  # clean and pgd are one family


def test_what_is_not_comparable_is_refused() -> None:
    a, b = campaign(2, 0.1), campaign(3, 0.5)
    stronger = campaign(3, 0.5, attacks={"pgd 1": 'pgd 1 {"steps": 40}'})
    with pytest.raises(DataError, match=r"different attacks .*steps"):
        compare_attacks(a, stronger)
    assert any("INVALID COMPARISON" in w for w in compare_attacks(a, stronger, force=True).warnings)
    with pytest.raises(DataError, match="different datasets"):
        compare_attacks(a, campaign(3, 0.5, dataset_digest="e"))
    assert any("seeds 0 and 1" in w for w in compare_attacks(a, campaign(3, 0.5, seed=1)).warnings)
    unknown = replace(b, header=replace(b.header, provenance={}))
    assert any("was not checked" in w for w in compare_attacks(a, unknown).warnings)
    fewer = b.keep(pl.col("item") != "r07")
    with pytest.raises(DataError, match=r"2 of A are not in B \(as r07"):
        compare_attacks(a, fewer)
    kept = compare_attacks(a, fewer, allow_missing=True)
    assert kept.one("changed", **PGD).n_pairs == N - 1 and any("left out" in w for w in kept.warnings)
    flipped = pl.when(pl.col("item") == "r03").then(1 - pl.col("label")).otherwise(pl.col("label")).cast(pl.Int8)
    with pytest.raises(DataError, match="another label in A than in B, the first is 'r03'"):
        compare_attacks(a, replace(b, frame=b.frame.with_columns(label=flipped)))
    renamed = b.frame.with_columns(strength=pl.col("strength").replace("1", "0.5"))
    with pytest.raises(UsageError, match="no attack and strength in common"):
        compare_attacks(a, replace(b, frame=renamed))
    with pytest.raises(UsageError, match="delong"):
        compare_attacks(a, b, test="delong")


def test_from_two_run_folders(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    test, train = simulate(16, 0, "test"), simulate(120, 0, "train")
    test.save(tmp_path / "test.npz")
    for name, seed in (("a", 0), ("b", 9)):
        (tmp_path / name).mkdir()
        ConvBaseline.fit(train.x, train.y, seed=seed).save(tmp_path / name / "model.npz")
        code = f"from hitmiss.simulate.ecg_detector import ConvBaseline\nmodel = ConvBaseline.load({str(tmp_path / name / 'model.npz')!r})\n"
        (tmp_path / name / "model.py").write_text(code)
        words = ["--detector", f"{tmp_path / name / 'model.py'}:model", "--data", str(tmp_path / "test.npz")]
        done = ["--family", "band_noise(beta=2)", "--strengths", "1", "-o", str(tmp_path / name / "run")]
        assert run(["attack", *words, *done]) == 0
    capsys.readouterr()
    assert run(["compare", str(tmp_path / "a/run"), str(tmp_path / "b/run"), "-p", "ecg-attacks"]) == 0
    said = capsys.readouterr().out
    assert "16 pairs (records)" in said and "changed ↓ by attack × strength" in said and "all pairs" not in said
    assert run(["compare", str(tmp_path / "a/run"), "-p", "ecg-attacks"]) == 2
