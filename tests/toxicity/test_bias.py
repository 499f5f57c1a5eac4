"""Bias metrics against their definition in exact fractions and against scikit-learn; and by the command."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics as sk

from hitmiss.cli.main import run
from hitmiss.core.errors import DataError, UsageError
from hitmiss.metrics.bias import bias_score, bnsp_auc, bpsn_auc, power_mean, subgroup_auc

ROWS = st.lists(st.tuples(st.integers(0, 1), st.integers(0, 6), st.integers(0, 1)), min_size=1, max_size=25)
Rows = list[tuple[int, int, int]]


def exact(rows: Rows, positive: Callable[[int], bool], negative: Callable[[int], bool]) -> Fraction | None:
    ups = [s for y, s, m in rows if y == 1 and positive(m)]
    downs = [s for y, s, m in rows if y == 0 and negative(m)]
    pairs = [Fraction(2 * (u > d) + (u == d), 2) for u in ups for d in downs]
    return sum(pairs, Fraction(0)) / len(pairs) if pairs else None


@given(ROWS)
def test_the_three_areas_are_those_of_their_definition(rows: Rows) -> None:
    label, score, member = zip(*rows, strict=True)
    inside, outside = (lambda m: m == 1), (lambda m: m == 0)
    sides = {subgroup_auc: (inside, inside), bpsn_auc: (outside, inside), bnsp_auc: (inside, outside)}
    for function, (positive, negative) in sides.items():
        wanted = exact(rows, positive, negative)
        found = function(label, [s / 6 for s in score], member)
        assert math.isnan(found) if wanted is None else found == pytest.approx(float(wanted), abs=1e-15)


@given(ROWS)
def test_weights_count_rows(rows: Rows) -> None:
    label, score, member = zip(*rows, strict=True)
    weight = [i % 3 for i in range(len(rows))]
    repeated = [row for row, w in zip(rows, weight, strict=True) for _ in range(w)]
    for function in (subgroup_auc, bpsn_auc, bnsp_auc):
        once = function(label, score, member, weight)
        many = function(*zip(*repeated, strict=True)) if repeated else math.nan
        assert once == pytest.approx(many, abs=1e-12, nan_ok=True)


@given(st.lists(st.floats(0.01, 1.0), min_size=1, max_size=8), st.floats(-8, 8))
def test_a_power_mean_lies_between_its_ends_and_falls_with_p(values: list[float], p: float) -> None:
    found = power_mean(values, p)
    assert min(values) - 1e-9 <= found <= max(values) + 1e-9
    assert power_mean(values, p - 1) <= found + 1e-9
    assert power_mean([2 * v for v in values], p) == pytest.approx(2 * found)


def test_power_means_by_hand() -> None:
    assert power_mean([0.5, 1.0], 1) == 0.75
    assert power_mean([0.25, 1.0], 0) == pytest.approx(0.5)
    assert power_mean([0.5, 1.0], -1) == pytest.approx(2 / 3)
    assert power_mean([0.9, math.nan], -5) == pytest.approx(0.9)
    assert power_mean([0.0, 1.0], -5) == 0.0
    assert math.isnan(power_mean([]))
    with pytest.raises(DataError, match="not negative"):
        power_mean([-0.1])


def test_wrong_questions_are_refused() -> None:
    with pytest.raises(UsageError, match="needs exactly"):
        bias_score(0.9, {"subgroup_auc": [0.5]})
    kinds = {k: [0.8] for k in ("subgroup_auc", "bpsn_auc", "bnsp_auc")}
    with pytest.raises(UsageError, match="between 0 and 1"):
        bias_score(0.9, kinds, overall_weight=1.5)
    with pytest.raises(DataError, match="equally long"):
        subgroup_auc([1, 0], [0.5, 0.4], [1])


def test_the_command_gives_the_competition_figure(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(5)
    n = 600
    label, women, muslim = rng.integers(0, 2, n), rng.random(n), rng.random(n)
    score = np.clip(rng.normal(0.35 + 0.25 * label + 0.1 * (women >= 0.5), 0.2), 0, 1)
    rows = zip(range(n), label.tolist(), score.tolist(), women.tolist(), muslim.tolist(), strict=True)
    lines = [f"{i},{y},{s!r},{w!r},{'' if i % 10 == 0 else repr(m)}" for i, y, s, w, m in rows]
    (tmp_path / "run_en.csv").write_text("\n".join(["id,y_true,y_prob,women,muslim", *lines]))
    words = ["toxicity", "--pred_dir", str(tmp_path), "--run_tag", "run", "--identity", "women", "muslim"]
    assert run([*words, "--bootstrap", "0", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    masks = {"women": women >= 0.5, "muslim": (muslim >= 0.5) & (np.arange(n) % 10 != 0)}
    areas: dict[str, list[float]] = {"subgroup_auc": [], "bpsn_auc": [], "bnsp_auc": []}
    for mask in masks.values():
        for kind, kept in (
            ("subgroup_auc", mask),
            ("bpsn_auc", np.where(label == 1, ~mask, mask)),
            ("bnsp_auc", np.where(label == 1, mask, ~mask)),
        ):
            areas[kind].append(sk.roc_auc_score(label[kept], score[kept]))
    found = {(e["metric"], e["slice"].get("identity")): e["value"] for e in data["estimates"]}
    for kind, values in areas.items():
        assert [found[kind, "women"], found[kind, "muslim"]] == pytest.approx(values, abs=1e-12)
    means = [np.mean(np.array(v) ** -5.0) ** (-1 / 5) for v in areas.values()]
    final = 0.25 * sk.roc_auc_score(label, score) + 0.25 * sum(means)
    assert found["bias_score", "*"] == pytest.approx(final, abs=1e-12)
    assert any("muslim: 60 blank cells" in w for w in data["warnings"])
    assert run([*words, "--bootstrap", "0"]) == 0
    assert "unintended bias by identity" in capsys.readouterr().out


def test_shares_outside_0_to_1_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "run_en.csv").write_text("id,y_true,y_prob,women\na,1,0.5,2\nb,0,0.5,x\n")
    assert run(["toxicity", "--pred_dir", str(tmp_path), "--run_tag", "run", "--identity", "women"]) == 3
    said = capsys.readouterr().err
    assert "outside 0..1" in said and "not a number" in said


def test_several_languages_are_pooled_and_an_identity_without_a_class_is_left_out_and_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rng = np.random.default_rng(8)
    label, score = rng.integers(0, 2, 400), rng.random(400)
    score = np.round((score + 0.3 * label) / 1.3, 3)
    masks = {
        "women": rng.random(400) < 0.3,
        "jewish": (rng.random(400) < 0.2) & (label == 0),
        "none": np.zeros(400, bool),
    }
    for at, language in enumerate(("en", "es")):
        own = range(200 * at, 200 * at + 200)
        rows = [f"{i},{label[i]},{float(score[i])!r}," + ",".join(str(int(m[i])) for m in masks.values()) for i in own]
        text = "\n".join(["id,y_true,y_prob,women,jewish,none", *rows])
        (tmp_path / f"run_{language}.csv").write_text(text + "\n")
    words = ["toxicity", "--pred_dir", str(tmp_path), "--run_tag", "run", "--bootstrap", "0", "--json", "--identity"]
    assert run([*words, *masks]) == 0
    data = json.loads(capsys.readouterr().out)
    found = {(e["metric"], e["slice"].get("identity")): e["value"] for e in data["estimates"]}
    means = []
    for kind, inside, outside in (("subgroup_auc", 1, 1), ("bpsn_auc", 0, 1), ("bnsp_auc", 1, 0)):
        values = []
        for name, mask in masks.items():
            kept = np.where(label == 1, mask == inside, mask == outside)
            both = len(set(label[kept])) == 2
            wanted = sk.roc_auc_score(label[kept], score[kept]) if both else None
            assert found[kind, name] == (pytest.approx(wanted, abs=1e-12) if both else None), (kind, name)
            values += [wanted] if both else []
        means.append(np.mean(np.array(values) ** -5.0) ** (-1 / 5))
        assert found[kind, "*"] == pytest.approx(means[-1], abs=1e-12)
    final = 0.25 * sk.roc_auc_score(label, score) + 0.25 * sum(means)
    assert found["bias_score", "*"] == pytest.approx(final, abs=1e-12)
    used = {e["metric"]: e["note"] for e in data["estimates"] if e["slice"].get("identity") == "*"}
    assert used["subgroup_auc"] == used["bnsp_auc"] == "over 1 of 3 identities"
    assert used["bpsn_auc"] == "over 2 of 3 identities"
    assert "no text mentions none" in data["warnings"]
