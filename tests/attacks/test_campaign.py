"""Campaigns: the same in any batch, order and after any interruption; figures, controls, health checks."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from hitmiss.attacks.campaign import run_campaign
from hitmiss.attacks.config import PerturbationConfig
from hitmiss.attacks.leads import consistent, violation
from hitmiss.attacks.minimal import minimal_strength
from hitmiss.attacks.model import as_classifier, binarize
from hitmiss.attacks.perform import perform
from hitmiss.attacks.plan import AttackPlan, sweep
from hitmiss.attacks.queries import margins, powerset, random_search, to_pattern
from hitmiss.attacks.recordings import Recordings, read_recordings
from hitmiss.attacks.worker import PlannedAttacks, same_norm_noise
from hitmiss.core.errors import DataError, IncompleteRun, UnknownName, UsageError
from hitmiss.core.run_spec import RunSpec
from hitmiss.core.trials import Trials
from hitmiss.evaluation.evaluate import evaluate
from hitmiss.robustness.attacks import measure_attacks
from hitmiss.robustness.campaign import Campaign
from hitmiss.runs.progress import Progress
from hitmiss.simulate.ecg import CLASSES, simulate
from hitmiss.simulate.ecg_detector import ConvBaseline
from hitmiss.stats.random import noise_generator

CONFIGS = sweep(
    ["band_noise", "morph_amp", "random_search"],
    [0.5, 1.0],
    extra={"band_noise": {"beta": 1.0}, "random_search": {"queries": 20}},
)
SEARCH = sweep(["band_noise"], [1.0], extra={"band_noise": {"beta": 2.0}})


@pytest.fixture(scope="module")
def model() -> ConvBaseline:
    some = simulate(200, 0, "train")
    return ConvBaseline.fit(some.x, some.y)


@pytest.fixture(scope="module")
def data() -> Recordings:
    some = simulate(24, 0, "test")
    return Recordings(some.x, some.y, 100.0, CLASSES, some.record, {"patient": some.patient, "sex": some.sex}, "digest")


@pytest.fixture(scope="module")
def trials(model: ConvBaseline, data: Recordings) -> Trials:
    return run_campaign(PlannedAttacks(data, as_classifier(model), AttackPlan(CONFIGS, SEARCH)))


def rows_of(trials: Trials) -> pl.DataFrame:
    return trials.frame.sort("item", "target", "attack", "strength")


def test_any_batch_and_order(model: ConvBaseline, data: Recordings, trials: Trials) -> None:
    turned = data.where(np.ones(24, dtype=bool))
    order = np.random.default_rng(0).permutation(24)
    columns = {k: [v[i] for i in order] for k, v in turned.columns.items()}
    turned = Recordings(
        data.x[order], data.y[order], data.fs, data.classes, [data.ids[i] for i in order], columns, "digest"
    )
    plan = AttackPlan(CONFIGS[::-1], SEARCH)
    again = run_campaign(PlannedAttacks(turned, as_classifier(model), plan, batch=3, together=5))
    one, other = rows_of(trials), rows_of(again)
    assert one.select("item", "target", "attack", "strength", "decision").equals(
        other.select("item", "target", "attack", "strength", "decision")
    )
    for name in ("score", "delta_l2", "delta_linf", "minimal_strength"):
        np.testing.assert_allclose(one[name].to_numpy(), other[name].to_numpy(), rtol=1e-5, atol=1e-5)


def test_a_run_folder_is_the_same_and_goes_on_after_a_stop(
    model: ConvBaseline, data: Recordings, trials: Trials, tmp_path: Path
) -> None:
    class Stop(Exception):
        pass

    def stop(progress: Progress) -> None:
        if progress.n_done > progress.n_total / 2:
            raise Stop

    planned = PlannedAttacks(data, as_classifier(model), AttackPlan(CONFIGS, SEARCH))
    with pytest.raises(Stop):
        run_campaign(planned, tmp_path / "run", report=stop)
    with pytest.raises(IncompleteRun):
        evaluate(str(tmp_path / "run"), protocol="ecg-attacks")
    other = PlannedAttacks(data, as_classifier(model), AttackPlan(CONFIGS, SEARCH, seed=1))
    with pytest.raises(IncompleteRun, match="seed"):
        run_campaign(other, tmp_path / "run", RunSpec(resume=True))
    run_campaign(planned, tmp_path / "run", RunSpec(resume=True))
    mine, stored = (
        measure_attacks(trials, by=["target", "sex"]),
        evaluate(str(tmp_path / "run"), protocol="ecg-attacks", by=["target", "sex"]),
    )
    assert [(e.metric, e.run, e.slice) for e in mine] == [(e.metric, e.run, e.slice) for e in stored]
    for a, b in zip(mine, stored, strict=True):
        assert a.value == pytest.approx(b.value, abs=1e-6)


def test_figures_by_hand(trials: Trials) -> None:
    results = measure_attacks(trials, bootstrap=50)
    frame = trials.frame.sort("item", "target")
    clean = frame.filter(attack="clean")
    hit = frame.filter(attack="band_noise", strength="1")
    bits, after, truth = (
        f["decision" if i < 2 else "label"].to_numpy().reshape(-1, 5) for i, f in enumerate((clean, hit, clean))
    )
    changed, right = (bits != after).any(axis=1), (bits == truth).all(axis=1)
    cell = {"attack": "band_noise", "strength": "1"}
    assert results.one("changed", **cell).value == pytest.approx(changed.mean())
    assert results.one("changed_correct", **cell).value == pytest.approx(changed[right].mean())
    assert results.one("exact_match", **cell).value == pytest.approx((after == truth).all(axis=1).mean())
    assert results.one("robust_accuracy", **cell).value == pytest.approx((right & (after == truth).all(axis=1)).mean())
    e = results.one("changed", **cell)
    assert e.low is not None and e.high is not None and e.low <= changed.mean() <= e.high
    sklearn = pytest.importorskip("sklearn.metrics")
    scores = hit["score"].to_numpy().reshape(-1, 5)
    assert results.one("macro_auc", **cell).value == pytest.approx(
        sklearn.roc_auc_score(truth, scores, average="macro")
    )


def test_the_control_has_the_norm_of_its_attack(trials: Trials) -> None:
    for cell in Campaign.of(trials).cells:
        if not cell.is_control:
            control = next(
                c
                for c in Campaign.of(trials).cells
                if c.run["attack"] == f"noise ~ {cell.run['attack']}" and c.run["strength"] == cell.run["strength"]
            )
            np.testing.assert_allclose(control.numbers["delta_l2"], cell.numbers["delta_l2"], rtol=1e-9)


def test_minimal_strengths_flip_the_records(model: ConvBaseline, data: Recordings) -> None:
    planned = PlannedAttacks(data, as_classifier(model), AttackPlan((), SEARCH))
    least, done = planned.search(SEARCH[0], range(len(data.ids)))
    flips = (binarize(planned.model.proba(done.x)) != planned.records.clean_bits).any(axis=1)
    assert flips.any() and np.array_equal(flips, np.isfinite(least))
    again = perform(
        planned.records,
        np.flatnonzero(flips).tolist(),
        [replace(SEARCH[0], strength=float(s)) for s in least[flips]],
        [planned.rng(i, f"minimal {SEARCH[0]}") for i in np.flatnonzero(flips).tolist()],
    )
    assert np.array_equal(again.x, done.x[flips])


def test_a_flip_with_less_than_the_budget_counts_for_less() -> None:
    least = np.array([0.05, 0.5])
    found = minimal_strength(
        lambda at, s: np.where(s >= least[at], np.maximum(0.6 * s, least[at]), np.inf), 2, rounds=7
    )
    assert (found >= least).all() and (found - least <= 2**-7).all()


def test_bisection_brackets_the_step() -> None:
    least = np.random.default_rng(0).uniform(0.0, 1.2, 500)
    calls: list[int] = []

    def attempt(at: Any, s: Any) -> Any:
        calls.append(len(at))
        return s >= least[at]

    found = minimal_strength(attempt, 500, rounds=8)
    flips = least <= 1.0
    assert len(calls) == 9 and np.isinf(found[~flips]).all()
    assert (found[flips] >= least[flips]).all() and (found[flips] - least[flips] <= 2**-8 + 1e-12).all()


def test_random_search_keeps_its_budget_and_stops() -> None:
    x = np.random.default_rng(0).normal(size=(3, 60, 2))
    aim = np.array([0.001, 0.01, 9.0])
    asked = []

    def margin(rows: Any, changed: Any) -> Any:
        asked.append(len(rows))
        return aim[rows] - (changed - x[rows]).mean(axis=(1, 2))

    delta, n = random_search(
        x, margin, np.full(3, 0.1), np.ones((3, 60, 1)), [noise_generator(0, i) for i in range(3)], queries=80
    )
    assert np.abs(delta).max() <= 0.1 + 1e-12 and n == sum(asked) < 3 * 80
    assert delta[0].mean() >= 0.001 and delta[1].mean() >= 0.01


def test_margins_and_patterns() -> None:
    odds = np.array([[1.0, -2.0], [0.5, -0.2]])
    clean = np.array([[1, 0], [1, 0]])
    assert margins(odds, np.zeros(2), clean, np.array([-1, 1]), np.array([0.0, 1.0])).tolist() == [1.0, 0.2]
    assert to_pattern([[0, 1]]).tolist() == [2] and powerset([[0, 1]]).tolist() == [[0.0, 0.0, 1.0, 0.0]]
    with pytest.raises(UsageError, match="too large"):
        to_pattern(np.zeros((1, 13)))


def fake(changed_by_strength: dict[str, list[int]], **numbers: list[float]) -> Trials:
    """Trials of one class whose bit flips for so many of 40 records at each strength."""
    n, parts = 40, []
    for attack, strength, flips in [
        ("clean", "0", 0),
        *((a, s, k) for a, ks in changed_by_strength.items() for s, k in zip(("0.1", "0.5"), ks, strict=True)),
    ]:
        bits = np.where(np.arange(n) < flips, 1, 0)
        own = {k: np.full(n, v[0] if attack == "clean" else v[1]) for k, v in numbers.items()}
        parts.append(
            pl.DataFrame(
                {
                    "item": [f"r{i:02d}" for i in range(n)],
                    "label": [i % 2 for i in range(n)],
                    "score": bits - 0.5 + 0.001 * np.arange(n),
                    "decision": bits,
                    "attack": attack,
                    "strength": strength,
                    **own,
                }
            )
        )
    from hitmiss.core.header import Header

    return Trials.from_frame(
        pl.concat(parts), Header("present", "absent", "logit", runs=("attack", "strength"), numbers=tuple(numbers))
    )


@pytest.mark.parametrize(
    ("trials", "word"),
    [
        (fake({"pgd": [30, 5]}), "success falls"),
        (fake({"pgd": [5, 6], "noise ~ pgd": [9, 9]}), "must beat noise"),
        (fake({"pgd": [0, 0], "noise ~ pgd": [0, 0]}), "changes no record"),
        (fake({"pgd": [5, 6], "random_search": [9, 9]}), "gradients may be masked"),
        (fake({"pgd": [5, 30]}, zero_gradient=[0.0, 1.0]), "exactly 0"),
        (fake({"pgd": [5, 30]}, budget=[1.0, 1.0], budget_used=[0.0, 1.001]), "over their budget"),
    ],
)
def test_a_failed_attack_is_called_so(trials: Trials, word: str) -> None:
    assert any(word in w for w in measure_attacks(trials).warnings)


def test_a_sound_attack_is_not() -> None:
    sound = fake(
        {"pgd": [5, 30], "noise ~ pgd": [0, 1]}, budget=[1.0, 1.0], budget_used=[0.0, 1.0], zero_gradient=[0.0, 0.0]
    )
    assert measure_attacks(sound).warnings == ()


def test_independent_records_have_wilson_intervals() -> None:
    e = measure_attacks(fake({"pgd": [5, 30]})).one("changed", attack="pgd", strength="0.5")
    assert (e.value, e.method) == (0.75, "wilson")


def test_targets_and_windows_are_runs_of_their_own(model: ConvBaseline, data: Recordings) -> None:
    aimed = sweep(
        ["random_search"],
        [1.0],
        center_time=5.0,
        window_seconds=2.0,
        aims=[("MI", "force"), ("NORM", "suppress")],
        extra={"random_search": {"queries": 5}},
    )
    made = run_campaign(PlannedAttacks(data, as_classifier(model), AttackPlan(aimed, control=False)))
    assert made.header.runs == ("attack", "strength", "aim", "place")
    results = measure_attacks(made)
    cell = {"attack": "random_search", "strength": "1", "aim": "force MI", "place": "5 s"}
    before = Campaign.of(made).clean.bits[:, CLASSES.index("MI")]
    assert results.one("target_base", **cell).value == pytest.approx(before.mean())
    assert results.one("target_eligible", **cell).of == (before == 0).sum()


def test_wrong_plans_are_refused(model: ConvBaseline, data: Recordings) -> None:
    with pytest.raises(UnknownName, match="band_noise"):
        sweep(["band_nose"], [0.5])
    with pytest.raises(UsageError, match="twice"):
        AttackPlan(CONFIGS + CONFIGS[:1]).steps  # noqa: B018
    with pytest.raises(DataError, match="5 outputs"):
        PlannedAttacks(
            Recordings(data.x, data.y[:, :2], 100.0, ("A", "B"), data.ids), as_classifier(model), AttackPlan(CONFIGS)
        )
    blind = as_classifier(lambda x: np.full((len(x), 5), 0.5))
    with pytest.raises(UsageError, match="needs gradients"):
        PlannedAttacks(data, blind, AttackPlan(sweep(["pgd"], [0.5])))
    with pytest.raises(UnknownName, match="MI"):
        aimed = PerturbationConfig("random_search", 0.5, 0.0, target_class="IM")
        run_campaign(PlannedAttacks(data, as_classifier(model), AttackPlan((aimed,))))


def test_recordings_from_files(tmp_path: Path) -> None:
    simulate(5).save(tmp_path / "ecg.npz")
    read = read_recordings(tmp_path / "ecg.npz")
    assert (
        read.x.shape == (5, 1000, 12) and read.columns["sex"][0] in ("male", "female") and read.ids[0] == "test-00000"
    )
    np.savez(tmp_path / "turned.npz", x=read.x.transpose(0, 2, 1), y=read.y, classes=CLASSES, fs=100)
    assert np.array_equal(read_recordings(tmp_path / "turned.npz", layout="lead_sample").x, read.x)
    np.savez(tmp_path / "uv.npz", x_uv=np.full((1, 20, 2), 500, dtype=np.int16), y=[[1]], classes=["MI"], fs=100)
    assert read_recordings(tmp_path / "uv.npz").x[0, 0, 0] == 0.5
    for broken, word in (
        ({"y": [[1]]}, "no array 'x'"),
        ({"x": np.zeros((1, 5, 2)), "y": [[2]], "classes": ["MI"], "fs": 1}, "0 and 1"),
    ):
        np.savez(tmp_path / "bad.npz", **broken)  # type: ignore[arg-type]
        with pytest.raises(DataError, match=word):
            read_recordings(tmp_path / "bad.npz")
    (tmp_path / "no.npz").write_text("no")
    with pytest.raises(DataError, match=r"not an \.npz"):
        read_recordings(tmp_path / "no.npz")


def test_derived_leads_count_within_the_budget_while_searching() -> None:
    """A derived lead may move by more than the eight others: what is judged on the way is what comes out."""
    judged: list[np.ndarray] = []

    def margin(rows: np.ndarray, x: np.ndarray) -> np.ndarray:
        judged.append(np.abs(x).max(axis=(1, 2)))
        return np.ones(len(rows))

    rngs = [np.random.default_rng(i) for i in range(3)]
    delta, _ = random_search(
        np.zeros((3, 50, 12)), margin, np.full(3, 0.1), np.ones((3, 50, 1)), rngs, queries=10, shape=consistent
    )
    assert max(j.max() for j in judged) <= 0.1 + 1e-12 and np.abs(delta).max() <= 0.1 + 1e-12
    assert violation(delta) < 1e-12


def test_same_norm_noise_stays_in_its_window() -> None:
    window = np.zeros(50)
    window[10:20] = 1.0
    noise = same_norm_noise((50, 3), window, 2.0, np.random.default_rng(0))
    assert np.linalg.norm(noise) == pytest.approx(2.0) and not noise[:10].any() and not noise[20:].any()


def test_groups_have_their_mean_and_their_worst(trials: Trials) -> None:
    results = measure_attacks(trials, by=["target", "sex"], bootstrap=40)
    run = {"attack": "random_search", "strength": "1"}
    for names, metric in ((("target",), "flipped"), (("sex",), "changed"), (("target",), "roc_auc")):
        own = [e for e in results if e.metric == metric and e.run == run and tuple(e.slice) == names]
        cells = [e for e in own if e.average is None]
        values = [e.value for e in cells if e.value is not None]
        macro, worst = (next(e for e in own if e.average == kind) for kind in ("macro", "worst"))
        assert macro.value == pytest.approx(np.mean(values)) and set(macro.slice.values()) == {"*"}
        assert worst.value == (min(values) if metric == "roc_auc" else max(values))
        assert worst.slice in [e.slice for e in cells]
        if len(set(values)) > 1:
            assert macro.low is not None and macro.low <= macro.value <= (macro.high or 0.0)
    macro_auc = results.one("macro_auc", **run)
    class_mean = next(e for e in results if e.metric == "roc_auc" and e.run == run and e.average == "macro")
    assert class_mean.value == pytest.approx(macro_auc.value)
    # Other draws, and the mean of slices counts the patients of each class: fewer degrees of freedom, so wider.
    (low, high), (lower, upper) = ((e.low or 0.0, e.high or 0.0) for e in (macro_auc, class_mean))
    assert lower <= low < macro_auc.value < min(high, upper) and upper == pytest.approx(high, abs=0.01)
    assert high - low < upper - lower < 1.5 * (high - low)
    with pytest.raises(UsageError, match="cannot be combined"):
        measure_attacks(trials, by=["target,sex"])


def test_the_signature_is_verified(model: ConvBaseline, data: Recordings, tmp_path: Path) -> None:
    from hitmiss.claims.verify import verify

    run_campaign(PlannedAttacks(data, as_classifier(model), AttackPlan(CONFIGS[:2], SEARCH)), tmp_path / "run")
    for options in ({}, {"by": ["target", "sex"], "bootstrap": 50, "seed": 3, "level": 0.9, "unit": "item"}):
        results = evaluate(str(tmp_path / "run"), protocol="ecg-attacks", **options)
        assert results.signature.startswith("hitmiss:") and "|protocol:ecg-attacks|" in results.signature
        assert verify(results.signature, str(tmp_path / "run")).holds
        first = replace(results.estimates[0], value=0.123)
        claim = tmp_path / "claim.json"
        claim.write_text(replace(results, estimates=(first, *results.estimates[1:])).to_json())
        found = verify(str(claim), str(tmp_path / "run"))
        assert not found.holds and any("0.123" in d for d in found.differences)


def test_an_attack_with_several_settings_is_called_with_them(model: ConvBaseline, data: Recordings) -> None:
    """Under one name they would be one attack twice, and nothing could be measured."""
    mild, strong = (sweep(["band_noise"], [0.5, 1.0], extra={"band_noise": {"beta": b}}) for b in (0.2, 2))
    trials = run_campaign(PlannedAttacks(data, as_classifier(model), AttackPlan((*mild, *strong), SEARCH)))
    attacks = {c.run["attack"]: c.family for c in Campaign.of(trials).cells if not c.is_control}
    assert attacks == dict.fromkeys(("band_noise(beta=0.2)", "band_noise(beta=2)", "band_noise"), "band_noise")
    results = measure_attacks(trials)
    changed = [results.one("changed", attack=f"band_noise(beta={b})", strength="1").value for b in ("0.2", "2")]
    assert changed[0] < changed[1]
