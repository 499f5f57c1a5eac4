"""The drift table, checked by hand and by its laws."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hitmiss as hm
from hitmiss.core.errors import DataError, UnknownName, UsageError
from hitmiss.core.header import Header
from hitmiss.core.trials import Trials
from hitmiss.metrics.detection import eer
from hitmiss.protocols.deepfake_audio import compute_all_metrics, compute_far_frr
from hitmiss.reports.drift_table import drift_table
from hitmiss.robustness.manipulation import CHANGED, beside_clean, drift, equal_error

LABEL = [1, 1, 1, 1, 0, 0, 0, 0]
CLEAN = [4.0, 3.0, 2.0, 0.5, 1.0, 0.0, -1.0, -2.0]


def trials(**conditions: list[float]) -> Trials:
    """Trials of eight clips, two a speaker and class, under several conditions."""
    names = list(conditions)
    source = [f"clip{i}" for i in range(len(LABEL))]
    speaker = [f"s{i % 4}" for i in range(len(LABEL))]
    return Trials.of(
        LABEL * len(names),
        np.concatenate([np.asarray(conditions[n], dtype=float) for n in names]),
        item=[f"{s}@{n}" for n in names for s in source],
        source=source * len(names),
        speaker=speaker * len(names),
        manipulation=[n for n in names for _ in source],
        header=Header("real", "fake", "logit"),
    )


def test_the_figures_by_hand() -> None:
    # Clean: the EER point rejects 0.5 and below or 1.0 and below; at 0.75 FAR = 1/4 and FRR = 1/4.
    louder = [5.0, 4.0, 3.0, 1.5, 2.0, 1.0, 0.0, -1.0]  # every score one higher
    found = drift(trials(clean=CLEAN, louder=louder), bootstrap=0)
    assert found.one("far", manipulation="clean").value == 0.25
    assert found.one("frr", manipulation="clean").value == 0.25
    assert found.one("far", manipulation="louder").value == 0.5  # 2.0 and 1.0
    assert found.one("frr", manipulation="louder").value == 0.0
    assert found.one("far_drift", manipulation="louder").value == 0.25
    assert found.one("frr_drift", manipulation="louder").value == -0.25
    assert (
        found.one("shift_real", manipulation="louder").value
        == found.one("shift_fake", manipulation="louder").value
        == 1
    )
    assert found.one("eer", manipulation="louder").value == 0.25  # the EER sees nothing of it
    assert "optimistic" in found.warnings[0]


def test_nothing_changed_is_no_drift() -> None:
    found = drift(trials(clean=CLEAN, same=CLEAN), bootstrap=200, unit="speaker")
    for metric in ("far_drift", "frr_drift", "shift_fake", "shift_real"):
        e = found.one(metric, manipulation="same")
        assert (e.value, e.low, e.high) == (0.0, None, None), "four speakers say nothing about others"
    assert found.one("eer", manipulation="same").note != CHANGED


def test_fakes_only_is_labelled() -> None:
    fakes = [*CLEAN[:4], 9.0, 8.0, 7.0, 6.0]
    found = drift(trials(clean=CLEAN, noise=fakes, both=[s + 1 for s in CLEAN]), bootstrap=0)
    assert found.one("far", manipulation="noise").value == 1.0
    assert found.one("frr", manipulation="noise").value == found.one("frr", manipulation="clean").value
    assert found.one("eer", manipulation="noise").note == CHANGED
    assert found.one("eer", manipulation="both").note != CHANGED
    assert any("1 of 2 conditions" in w for w in found.warnings)


def test_a_threshold_from_elsewhere_is_used_as_it_is() -> None:
    found = drift(trials(clean=CLEAN, other=CLEAN), threshold=1.0, bootstrap=0)
    assert found.one("far", manipulation="clean").value == 0.0  # 1.0 is not above 1.0
    assert found.one("frr", manipulation="clean").value == 0.25
    assert "given" in found.warnings[0]


def many(n: int = 120) -> Trials:
    """Clips of forty speakers, clean and with a noise that moves scores up."""
    rng = np.random.default_rng(3)
    label = np.arange(n) % 2
    clean = rng.normal(size=n) + 1.5 * label
    noise = clean + 0.4 + 0.5 * rng.normal(size=n)
    header = Header("real", "fake", "logit")
    return Trials.of(
        np.tile(label, 2),
        np.concatenate([clean, noise]),
        item=[f"c{i}@{k}" for k in ("clean", "noise") for i in range(n)],
        source=[f"c{i}" for i in range(n)] * 2,
        speaker=[f"s{i // 3}" for i in range(n)] * 2,
        manipulation=["clean"] * n + ["noise"] * n,
        gender=[("f", "m")[i // 3 % 2] for i in range(n)] * 2,
        header=header,
    )


def test_intervals_hold_the_figure_and_the_seed_fixes_them() -> None:
    one, again = (drift(many(), unit="speaker", bootstrap=300, seed=5) for _ in range(2))
    assert one == again
    for e in one:
        assert e.low is not None and e.value is not None and e.high is not None, e
        assert e.low <= e.value <= e.high
    assert one.one("far", manipulation="noise").method == "bootstrap 300,unit=speaker,auto,0.95,seed=5"


def test_the_interval_is_that_of_whole_speakers() -> None:
    """Against a bootstrap of speakers written here; ends agree within what the replicates leave open."""
    trials = many()
    frame = beside_clean(trials).frame.filter(pl.col("manipulation") == "noise", pl.col("label") == 0)
    moved = (frame["decision"] - frame["decision_clean"]).to_numpy()
    speaker = frame["speaker"].rank("dense").to_numpy().astype(int) - 1
    rng = np.random.default_rng(0)
    n = speaker.max() + 1
    drawn = []
    for _ in range(4000):
        weight = np.bincount(rng.integers(0, n, n), minlength=n)[speaker]
        drawn.append(np.average(moved, weights=weight))
    e = drift(trials, unit="speaker", bootstrap=4000).one("far_drift", manipulation="noise")
    assert e.value == pytest.approx(moved.mean())
    assert [e.low, e.high] == pytest.approx(np.quantile(drawn, [0.025, 0.975]).tolist(), abs=0.02)


def test_drift_is_a_metric_like_any_other() -> None:
    """Sliced further, compared between detectors, and with a gap."""
    trials = beside_clean(many())
    found = hm.measure(trials, ["far_drift"], by=["manipulation,gender"], bootstrap=100, unit="speaker")
    frame = trials.frame.filter(pl.col("manipulation") == "noise", pl.col("label") == 0)
    for gender in ("f", "m"):
        own = frame.filter(pl.col("gender") == gender)
        expected = (own["decision"] - own["decision_clean"]).mean()
        assert found.one("far_drift", manipulation="noise", gender=gender).value == pytest.approx(expected)
    worse = trials.put(decision=pl.lit(1, dtype=pl.Int8))
    delta = hm.compare(trials, worse, ["far_drift"], by="manipulation", bootstrap=100, unit="speaker")
    row = next(d for d in delta if d.slice == {"manipulation": "noise"})
    rest = frame["decision"].mean()
    assert row.delta == pytest.approx(1.0 - rest)


def _renamed(whole: Trials) -> Trials:
    """The changed clips under other names."""
    link = "source" if "source" in whole.frame.columns else "item"
    other = pl.when(pl.col("manipulation") == "clean").then(pl.col(link)).otherwise(pl.col(link) + "?")
    return Trials(whole.frame.with_columns(other.alias(link)), whole.header)


def test_a_clip_without_a_partner_is_left_out_and_counted() -> None:
    whole = trials(clean=CLEAN, other=[s - 0.5 for s in CLEAN])
    found = drift(Trials(whole.frame[:-1], whole.header), threshold=1.0, bootstrap=0)
    n = {e.slice["manipulation"]: e.n for e in found.estimates if e.metric == "eer"}
    assert n == {"clean": len(CLEAN), "other": len(CLEAN) - 1}
    assert any(f"1 of {len(CLEAN)} clean clips have no score here" in said for said in found.warnings)
    part = whole.frame[:-1].filter(pl.col("manipulation") == "other")
    wanted = np.mean(part.filter(pl.col("label") == 0)["score"].to_numpy() > 1.0)
    far = next(e for e in found.estimates if e.metric == "far" and e.slice["manipulation"] == "other")
    assert far.value == pytest.approx(wanted)


def test_the_documented_functions_and_drift_freeze_the_same_threshold() -> None:
    rng = np.random.default_rng(5)
    label = np.tile([1, 0], 60)
    score = rng.normal(label * 1.0, 1.0)
    both = np.concatenate([score, score - 0.3])
    header = Header("real", "fake", "logit")
    made = Trials.of(
        np.tile(label, 2), both, item=[f"{i}" for i in range(240)], source=[f"{i % 120}" for i in range(240)], header=header,
        manipulation=["clean"] * 120 + ["lower"] * 120,
    )  # fmt: skip
    documented = compute_all_metrics(label, score)
    far, frr = compute_far_frr(label, score - 0.3, documented["EER_threshold"])
    found = {(e.slice["manipulation"], e.metric): e.value for e in drift(made, bootstrap=0).estimates}
    assert (found["lower", "far"], found["lower", "frr"]) == pytest.approx((far, frr))


def test_pairs_must_be_pairs() -> None:
    whole = trials(clean=CLEAN, other=CLEAN)
    with pytest.raises(DataError) as alone:
        drift(_renamed(whole), bootstrap=0)
    assert alone.value.code == "no-partners"
    with pytest.raises(DataError, match="more than once"):
        drift(whole, pair_by="speaker", bootstrap=0)
    with pytest.raises(UnknownName):
        drift(whole, clean="cleen", bootstrap=0)
    with pytest.raises(UsageError, match="which manipulation is the clean one"):
        drift(trials(a=CLEAN, b=CLEAN), bootstrap=0)


def test_several_columns_make_one_condition() -> None:
    base = trials(clean=CLEAN, low=[s - 1 for s in CLEAN], high=[s + 1 for s in CLEAN])
    quality = base.frame["manipulation"].replace({"clean": "NONE", "low": "1", "high": "2"})
    codec = base.frame["manipulation"].replace({"clean": "NONE", "low": "C01", "high": "C01"})
    both = Trials(base.frame.with_columns(codec.alias("codec"), quality.alias("codec_q")), base.header)
    found = drift(both, "codec,codec_q", bootstrap=0)
    assert {e.slice["codec × codec_q"] for e in found} == {"NONE", "C01 × 1", "C01 × 2"}
    with pytest.raises(DataError, match="more than once"):
        drift(both, "codec", bootstrap=0)


def test_the_table_has_a_row_a_condition() -> None:
    table = drift_table(drift(trials(clean=CLEAN, noise=[*CLEAN[:4], 9.0, 8.0, 7.0, 6.0]), bootstrap=0))
    assert [row[0].text for row in table.rows] == ["clean", "noise"]
    assert table.rows[1][1].text == "1.0000" and table.rows[1][2].text == "+0.7500"
    assert table.rows[1][-1].text.endswith("†")


@given(st.lists(st.tuples(st.booleans(), st.integers(-4, 4)), min_size=2, max_size=30))
def test_far_and_frr_at_the_threshold_average_to_the_eer(rows: list[tuple[bool, int]]) -> None:
    label, score = np.array([r for r, _ in rows]), np.array([s for _, s in rows], dtype=float)
    if label.all() or not label.any():
        with pytest.raises(DataError):
            equal_error(label, score)
        return
    rate, threshold = equal_error(label, score)
    far, frr = np.mean(score[~label] > threshold), np.mean(score[label] <= threshold)
    assert rate == eer(label, score)
    assert (far + frr) / 2 == pytest.approx(rate, abs=1e-12)
