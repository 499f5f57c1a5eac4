"""Derived figures and slices of one class."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hitmiss as hm
from hitmiss.cli.main import run
from hitmiss.core.design import Design
from hitmiss.core.errors import UsageError
from hitmiss.core.expressions import Derived
from hitmiss.core.protocol import Protocol
from hitmiss.core.trials import Trials
from hitmiss.engine.comparison import Comparison
from hitmiss.engine.measure import measure_design
from hitmiss.evaluation.protocol import compare_trials, load_protocol, measure_trials

HEAD = 'name = "x"\ntitle = "x"\nprimary = "fpr"\nmetrics = ["fpr", "fnr"]\n'
READ = '[read]\npositive = "real"\nnegative = "fake"\n'


@pytest.mark.parametrize(
    ("text", "values", "expected"),
    [
        ("fpr", [0.25], 0.25),
        ("(max(fpr, a) + fnr) / 2", [0.5, 0.25], 0.375),
        ("1 - mean(fpr, a, b) * 2", [0.25], 0.5),
        ("-fpr + 'fnr'", None, None),
        ("fpr ** 2", None, None),
        ("__import__('os').system('true')", None, None),
        ("max(fpr)", None, None),
        ("max(fpr, a, key=1)", None, None),
        ("fpr if fnr else 1", None, None),
        ("2", None, None),
        ("", None, None),
    ],
)
def test_expressions(text: str, values: list[float] | None, expected: float | None) -> None:
    if values is None:
        with pytest.raises(UsageError) as refused:
            Derived.parse("d", text)
        assert refused.value.code == "bad-expression"
    else:
        assert Derived.parse("d", text).of(values) == expected


@pytest.mark.parametrize(
    ("extra", "where"),
    [
        ('[derived]\nd = "tpr_at_fpr + fnr"\n', "derived.d"),
        ('[names]\nrecall = "TPR"\n', "names.recall"),
        ('[derived]\nd = "fpr +"\n', "cannot read d"),
        ("bootstrap = 'many'\n", "bootstrap"),
    ],
)
def test_a_protocol_says_nothing_that_it_cannot_mean(extra: str, where: str, tmp_path: Path) -> None:
    file = tmp_path / "p.toml"
    file.write_text(HEAD + extra + READ)
    with pytest.raises(UsageError, match=where):
        load_protocol(file)


def sample(rates: list[float], n: int, rng: Any) -> Trials:
    """Negatives of several kinds that pass at some rates, and positives of which a tenth fails."""
    kinds = [f"k{i}" for i in range(len(rates)) for _ in range(n)] + ["-"] * 2 * n
    passed = np.concatenate([rng.random(n) < rate for rate in rates] + [rng.random(2 * n) < 0.9])
    label = np.array([0] * n * len(rates) + [1] * 2 * n)
    return Trials.of(label, decision=passed.astype(int), kind=kinds)


PROTOCOL = Protocol(
    "x",
    metrics=("fpr", "fnr"),
    derived={"d": "(max(fpr, kind) + fnr) / 2", "m": "mean(fpr, kind)"},
    negative_only=("kind",),
)


@pytest.mark.nightly
def test_the_interval_of_a_greatest_figure_covers() -> None:
    """Where four kinds are alike, the worst of the sample is worse than the truth: percentiles miss it, ours do not."""
    rng = np.random.default_rng(5)
    truth, hits, plain, runs = (0.15 + 0.1) / 2, 0, 0, 120
    for _ in range(runs):
        trials = sample([0.15] * 4, 60, rng)
        found = measure_trials(trials, Design(protocol=PROTOCOL, bootstrap=120)).one("d")
        assert found.low is not None and found.high is not None and found.value is not None
        hits += found.low <= truth <= found.high
        plain += 2 * found.value - found.high <= truth <= 2 * found.value - found.low
    assert hits >= 0.88 * runs, hits
    assert plain < hits


def test_mean_and_undefined() -> None:
    trials = sample([0.2, 0.4], 50, np.random.default_rng(0))
    found = measure_trials(trials, Design(protocol=PROTOCOL))
    kind, passed = np.asarray(trials.frame["kind"]), np.asarray(trials.frame["decision"])
    own = [passed[kind == k].mean() for k in ("k0", "k1")]
    assert found.one("m").value == pytest.approx(np.mean(own))
    alone = Trials.of([1, 1, 1], decision=[1, 0, 1], kind=["-"] * 3)
    assert measure_trials(alone, Design(protocol=PROTOCOL)).one("d").note == "undefined: max(fpr, kind) is"


def test_a_derived_figure_can_be_asked_for_by_name() -> None:
    trials = sample([0.2, 0.4], 50, np.random.default_rng(0))
    found = measure_trials(trials, Design(protocol=PROTOCOL, metrics=("m",)))
    assert [e.metric for e in found] == ["fpr", "m"]


def test_a_protocol_fills_in_what_the_caller_leaves_open() -> None:
    protocol = Protocol("x", by=("codec", "codec,q"), unit=("speaker",), bootstrap=100, threshold=0.5)
    filled = Design(protocol=protocol).filled()
    assert (filled.by, filled.unit, filled.bootstrap, filled.threshold) == (
        (("codec",), ("codec", "q")),
        ("speaker",),
        100,
        0.5,
    )
    own = Design(protocol=protocol, by=(("site",),), unit=("item",), bootstrap=7, threshold=0.0).filled()
    assert (own.by, own.unit, own.bootstrap, own.threshold) == ((("site",),), ("item",), 7, 0.0)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    rng = np.random.default_rng(1)
    rows = ["id,label,score,attack,reader"]
    for i in range(120):
        label = "real" if i % 2 else "fake"
        attack, reader = (f"A{i % 3}", "-") if label == "fake" else ("-", f"r{i % 3}")
        rows.append(f"c{i},{label},{rng.normal() + 1.5 * (label == 'real'):.4f},{attack},{reader}")
    file = tmp_path / "t.csv"
    file.write_text("\n".join(rows))
    return file


@pytest.mark.parametrize(
    ("column", "option", "told_apart"), [("attack", "--negative-only", 0), ("reader", "--positive-only", 1)]
)
def test_slices_of_one_class_say_what_to_do_and_do_it(
    table: Path, column: str, option: str, told_apart: int, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["score", str(table), "-m", "eer", "--by", column, "--positive", "real"]
    assert run(words) == 0
    said = "".join(capsys.readouterr())
    assert "each slice has one class" in said and f"{option} {column}" in said
    assert run([*words, option, column]) == 0
    said = "".join(capsys.readouterr())
    assert "each slice has one class" not in said
    trials = hm.read(table, positive="real")
    label, score, own = trials.label, trials.score, np.asarray(trials.frame[column])
    found = measure_trials(
        trials, Design(metrics=("eer",), by=((column,),), **{option[2:].replace("-", "_"): (column,)})
    )
    for value in sorted({*own[label == told_apart]}):
        inside = (own == value) | (label != told_apart)
        assert found.one("eer", **{column: value}).value == hm.metrics.eer(label[inside], score[inside])


def test_columns_of_both_classes_in_one_grouping_give_every_pair_of_slices(table: Path) -> None:
    trials = hm.read(table, positive="real")
    design = Design(metrics=("eer",), by=(("attack", "reader"),), negative_only=("attack",), positive_only=("reader",))
    found = measure_trials(trials, design)
    label, score, frame = trials.label, trials.score, trials.frame
    attack, reader = (np.asarray(frame[name]) for name in ("attack", "reader"))
    pairs = {(a, r) for a in attack[label == 0] for r in reader[label == 1]}
    assert len(pairs) > 3
    for a, r in pairs:
        inside = ((label == 0) & (attack == a)) | ((label == 1) & (reader == r))
        assert found.one("eer", attack=a, reader=r).value == hm.metrics.eer(label[inside], score[inside])


@pytest.mark.parametrize("unit", [(), ("speaker",)])
def test_one_number_has_one_interval(unit: tuple[str, ...]) -> None:
    """An expression that is a row of the tables has the interval of this row, whether the table is asked for or not."""
    rng = np.random.default_rng(2)
    label = np.arange(300) % 2
    columns = {
        "room": [f"r{k}" for k in rng.integers(0, 3, 300)],
        "speaker": [f"s{k}" for k in rng.integers(0, 20, 300)],
    }
    score = rng.normal(size=300) + 1.2 * label
    trials = Trials.of(label, score, decision=(score > 0.6).astype(int), **columns)
    derived = {
        "worst": "max(eer, room)",
        "mean": "mean(roc_auc, room)",
        "worst_area": "min(roc_auc, room)",
        "alone": "eer",
        "best": "min(eer, room)",
        "share": "accuracy",
    }
    protocol = Protocol("x", metrics=("eer", "roc_auc", "accuracy"), derived=derived)
    design = Design(protocol=protocol, bootstrap=60, unit=unit)
    plain = measure_trials(trials, design)
    tables = measure_trials(trials, Design(protocol=protocol, bootstrap=60, unit=unit, by=(("room",),)))
    rows = {(e.metric, e.average, bool(e.slice)): e for e in tables}
    for name, row in (
        ("worst", rows["eer", "worst", True]),
        ("mean", rows["roc_auc", "macro", True]),
        ("worst_area", rows["roc_auc", "worst", True]),
        ("alone", rows["eer", None, False]),
        ("share", rows["accuracy", None, False]),
    ):
        assert row.low is not None
        for found in (plain.one(name), tables.one(name)):
            assert (found.value, found.low, found.high, found.method) == (row.value, row.low, row.high, row.method)
    least = plain.one("best")
    assert least.low is not None and least.low <= (least.value or 0.0)


def test_a_term_may_state_a_setting_that_is_usual_anyway(tmp_path: Path) -> None:
    """`tpr_at_fpr(fpr=0.01)` is `tpr_at_fpr`, whose usual share is 0.01: measured and compared alike."""
    head = HEAD.replace('["fpr", "fnr"]', '["tpr_at_fpr(fpr=0.01)"]').replace('"fpr"', '"lost"')
    (tmp_path / "p.toml").write_text(f'{head}[derived]\nlost = "1 - tpr_at_fpr(fpr=0.01)"\n{READ}')
    protocol = load_protocol(tmp_path / "p.toml")
    rng = np.random.default_rng(0)
    label = rng.random(200) < 0.5
    trials = Trials.of(label=label, score=label + rng.normal(size=200), positive="real", negative="fake")
    found = measure_trials(trials, Design.of(bootstrap=0, protocol=protocol))
    assert found.one("lost").value == 1 - found.one("tpr_at_fpr").value  # type: ignore[operator]
    made = compare_trials({"a": trials, "b": trials}, Design.of(bootstrap=0, protocol=protocol))
    assert isinstance(made, Comparison)
    assert [d.a for d in made if d.metric == "lost"] == [found.one("lost").value]


def test_an_expression_over_crossed_units_has_the_error_of_its_parts() -> None:
    # Twice the EER is known as well as the EER: its jackknife, which is no error of a quantile, made it wider.
    rng = np.random.default_rng(4)
    speaker, attack, label = rng.integers(0, 20, 800), rng.integers(0, 8, 800), rng.random(800) < 0.4
    score = 2.0 * label + 0.5 * rng.normal(size=20)[speaker] + rng.normal(size=800)
    attacks = np.where(label, "none", attack.astype(str))
    trials = Trials.of(label, score, speaker=np.char.add("s", speaker.astype(str)), attack=attacks)
    rules = Protocol(metrics=("eer",), derived={"twice": "2 * eer"})
    design = Design(protocol=rules, metrics=("eer",)).changed(bootstrap=200, unit=("speaker", "attack"))
    one, twice = measure_design(trials, design, derived=rules.expressions())
    assert one.low is not None and one.high is not None
    assert (twice.low, twice.high) == pytest.approx((2.0 * one.low, 2.0 * one.high), rel=2e-4)
