"""Bias by identity in every verb: the published formula by scikit-learn, and paired intervals that hold."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score

import hitmiss as hm
from hitmiss.cli.main import run
from hitmiss.core.design import Design

Capture = pytest.CaptureFixture[str]
KINDS = ("subgroup_auc", "bpsn_auc", "bnsp_auc")
NAMES = ("women", "muslim")
Array = NDArray[np.float64]
Numbers = dict[tuple[str, str], float]


def drawn(n: int, seed: int, harm: float = 0.0) -> tuple[Array, dict[str, Array], Array, Array]:
    """Labels, shares of annotators for two identities, and the scores of two models; the second may harm one identity."""
    rng = np.random.default_rng(seed)
    label = (rng.random(n) < 0.4).astype(float)
    shares = {name: np.round(rng.random(n) * (rng.random(n) < 0.6), 2) for name in NAMES}
    seen = label + rng.normal(0, 0.8, n)
    score = [seen + rng.normal(0, 0.5, n) for _ in range(2)]
    score[1] = score[1] + harm * (shares["women"] >= 0.5) * (label == 0)
    return label, shares, *(np.round(1 / (1 + np.exp(-own)), 5) for own in score)


def published(label: Array, score: Array, shares: dict[str, Array]) -> Numbers:
    """The formula of the Jigsaw competition, with scikit-learn's areas."""
    found: Numbers = {}
    for name, share in shares.items():
        inside = share >= 0.5
        for kind, kept in zip(
            KINDS, (inside, np.where(label == 1, ~inside, inside), np.where(label == 1, inside, ~inside)), strict=True
        ):
            found[kind, name] = float(roc_auc_score(label[kept], score[kept]))
    for kind in KINDS:
        found[kind, "*"] = float(np.mean([found[kind, name] ** -5.0 for name in shares]) ** -0.2)
    areas = roc_auc_score(label, score), *(found[kind, "*"] for kind in KINDS)
    return {**found, ("bias_score", "*"): 0.25 * float(sum(areas))}


def written(path: Path, label: Array, score: Array, shares: dict[str, Array]) -> str:
    rows = zip(range(len(label)), label, score, *shares.values(), strict=True)
    lines = [",".join(["c" + str(i), str(int(y)), *map(str, rest)]) for i, y, *rest in rows]
    path.write_text("\n".join([",".join(["id", "y_true", "y_prob", *shares]), *lines]) + "\n")
    return str(path)


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str, Numbers, Numbers]:
    label, shares, one, two = drawn(500, 1, 0.6)
    paths = [written(tmp_path / f"{n}.csv", label, s, shares) for n, s in (("old", one), ("new", two))]
    return paths[0], paths[1], published(label, one, shares), published(label, two, shares)


def of(rows: list[dict[str, object]], field: str) -> Numbers:
    return {(r["metric"], r["slice"]["identity"]): r[field] for r in rows if "identity" in r["slice"]}  # type: ignore[index, operator, misc]


def test_every_verb_gives_the_published_formula(
    files: tuple[str, str, Numbers, Numbers], tmp_path: Path, capsys: Capture
) -> None:
    old, new, before, after = files
    words = ["-p", "toxicity", "--identity", *NAMES]
    asked = [*words, "-m", "roc_auc", "--json"]
    assert run(["score", new, *asked, "--bootstrap", "0"]) == 0
    assert of(json.loads(capsys.readouterr().out)["estimates"], "value") == pytest.approx(after, abs=1e-12)
    assert run(["toxicity", new, "--identity", *NAMES, "--bootstrap", "0", "--json"]) == 0
    assert of(json.loads(capsys.readouterr().out)["estimates"], "value") == pytest.approx(after, abs=1e-12)
    assert run(["compare", old, new, *asked]) == 0
    rows = json.loads(capsys.readouterr().out)["differences"]
    assert of(rows, "a") == pytest.approx(before, abs=1e-12)
    assert of(rows, "b") == pytest.approx(after, abs=1e-12)
    for (metric, name), value in after.items():
        rule = f"power mean {metric}" if name == "*" else f"{metric}[identity={name}]"
        for limit, code in ((value - 1e-9, 0), (value + 1e-9, 1)):
            assert run(["gate", new, *words, "--fail-if", f"{rule} < {limit!r}"]) == code, rule
    results = hm.evaluate(new, protocol="toxicity", metrics=["roc_auc"], identity=NAMES)
    found = {(e.metric, e.slice["identity"]): e.value for e in results if "identity" in e.slice}
    assert found == pytest.approx(after, abs=1e-12)
    page = tmp_path / "page.html"
    assert run(["report", new, *words, "--bootstrap", "0", "-o", str(page)]) == 0
    text = page.read_text()
    for value in after.values():
        assert f"{value:.3f}" in text or f"{100 * value:.1f}" in text, value


def test_a_gate_stops_a_model_that_harms_one_identity(
    files: tuple[str, str, Numbers, Numbers], tmp_path: Path, capsys: Capture
) -> None:
    """The rule names the identity, so its column need not be named again; the comment names it in its first line."""
    old, new, before, after = files
    comment = tmp_path / "c.md"
    words = ["gate", new, "--baseline", old, "-p", "toxicity", "--max-regression", "bpsn_auc[identity=women]=0"]
    assert run([*words, "--json", "--comment", str(comment)]) == 1
    (check,) = json.loads(capsys.readouterr().out)["checks"]
    key = ("bpsn_auc", "women")
    assert check["value"] == pytest.approx(before[key] - after[key], abs=1e-12)
    assert 0.0 < check["low"] < check["value"] < check["high"] and "paired" in check["reason"]
    assert "identity women" in comment.read_text().splitlines()[0]
    assert run(["gate", old, "--baseline", old.replace("old", "old"), *words[4:]]) == 0
    assert run(["score", new, "-p", "toxicity", "-m", "roc_auc", "--require", "bpsn_auc[identity=women] >= 0.95"]) == 1
    assert run(["score", new, "-p", "toxicity", "-m", "roc_auc", "--require", "bpsn_auc[identity=muslim] >= 0.6"]) == 0


def test_the_verdict_of_a_comparison_names_the_identity(
    files: tuple[str, str, Numbers, Numbers], capsys: Capture
) -> None:
    old, new, *_ = files
    assert run(["compare", old, new, "-p", "toxicity", "-m", "roc_auc", "--identity", *NAMES, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    shown = [d for d in told["differences"] if d["slice"] == {"identity": "women"} and d["verdict"] == "A better"]
    assert {d["metric"] for d in shown} == {"subgroup_auc", "bpsn_auc"}
    assert not [d for d in told["differences"] if d["slice"] == {"identity": "muslim"} and d["verdict"] == "B better"]
    assert run(["compare", old, new, "-p", "toxicity", "-m", "roc_auc", "--identity", *NAMES]) == 0
    out = capsys.readouterr().out
    assert "identity women" in out and "bias_score" in out and len(out.splitlines()) <= 40


def differences(
    label: Array, shares: dict[str, Array], one: Array, two: Array, **more: object
) -> dict[tuple[str, str], hm.Difference]:
    columns = {name: [str(v) for v in share] for name, share in shares.items()}
    items = [f"i{k}" for k in range(len(label))]
    extra = {name: [f"u{v}" for v in own] for name, own in more.items()}  # type: ignore[attr-defined]
    sides = [hm.Trials.of(label.astype(int), s, item=items, **columns, **extra) for s in (one, two)]
    design = Design.of(["roc_auc"], identity=NAMES, unit=tuple(extra), bootstrap=100)
    return {(d.metric, d.slice["identity"]): d for d in hm.compare(*sides, design) if "identity" in d.slice}


@pytest.mark.parametrize("authors", [0, 60])
def test_paired_intervals_are_those_of_resampled_pairs(authors: int) -> None:
    """Texts, or whole authors, drawn again with both scores: the deviation of each difference, power means included."""
    label, shares, one, two = drawn(900, 7)
    rng = np.random.default_rng(0)
    author = rng.integers(0, authors, 900) if authors else np.arange(900)
    level = rng.normal(0, 0.05, author.max() + 1) if authors else np.zeros(900)
    two = two + level[author]
    found = differences(label, shares, one, two, **({"author": author} if authors else {}))
    rows = [np.flatnonzero(author == a) for a in range(author.max() + 1)]
    made: list[Numbers] = []
    for _ in range(300):
        own = np.concatenate([rows[a] for a in rng.integers(0, len(rows), len(rows))])
        picked = {name: share[own] for name, share in shares.items()}
        before, after = (published(label[own], s[own], picked) for s in (one, two))
        made.append({key: after[key] - before[key] for key in after})
    for key, d in found.items():
        spread = float(np.std([one[key] for one in made], ddof=1))
        assert d.low is not None and d.high is not None
        assert d.high - d.low == pytest.approx(2 * 1.98 * spread, rel=0.16), key


def test_models_alike_are_seldom_called_different() -> None:
    """400 pairs of models of one quality: 7 numbers each; at 5 % each is called different in at most 5 % and chance."""
    called = dict.fromkeys([(k, n) for k in KINDS for n in (*NAMES, "*")] + [("bias_score", "*")], 0)
    for seed in range(400):
        label, shares, one, two = drawn(250, 1000 + seed)
        for key, d in differences(label, shares, one, two).items():
            called[key] += d.p_value is not None and d.p_value < 0.05
    assert max(called.values()) <= 34, called  # a binomial of 400 with 5 % is above 34 in 1 of 1,000
    assert sum(called.values()) >= 0.02 * 400 * len(called)


def test_labels_of_one_text_are_drawn_together(tmp_path: Path, capsys: Capture) -> None:
    label, shares, one, two = drawn(300, 4)
    names = {"toxic": one, "insult": two}
    truth = {name: label if name == "toxic" else np.roll(label, 3) for name in names}
    head = ["id", *truth, *(f"{name}_prob" for name in names), *shares]
    cells = zip(*(truth[n].astype(int) for n in names), *names.values(), *shares.values(), strict=True)
    lines = [",".join([f"c{i}", *map(str, row)]) for i, row in enumerate(cells)]
    path = tmp_path / "wide.csv"
    path.write_text("\n".join([",".join(head), *lines]) + "\n")
    every = np.concatenate([truth[n] for n in names]), np.concatenate(list(names.values()))
    wanted = published(*every, {name: np.tile(share, 2) for name, share in shares.items()})
    for words in (
        ["score", str(path), "-p", "toxicity", "-m", "roc_auc", "--by", "type"],
        ["toxicity", str(path)],
    ):
        assert run([*words, "--identity", *NAMES, "--bootstrap", "0", "--json"]) == 0
        told = json.loads(capsys.readouterr().out)["estimates"]
        assert of(told, "value") == pytest.approx(wanted, abs=1e-12)
        assert {e["units"] for e in told if e["metric"] == "bias_score"} == {300}


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["score", "{new}", "--identity", "wimmin"], "unknown-column"),
        (["compare", "{old}", "{new}", "{new}", "--identity", "women"], "identities-of-many"),
        (["score", "{new}", "-m", "roc_auc", "--stream", "--identity", "women", "--bootstrap", "0"], "identity-unfit"),
        (["score", "{bad}", "--identity", "women", "--bootstrap", "0"], "share-outside"),
    ],
)
def test_what_cannot_be_asked_is_refused(
    words: list[str], code: str, files: tuple[str, str, Numbers, Numbers], tmp_path: Path, capsys: Capture
) -> None:
    bad = tmp_path / "bad.csv"
    bad.write_text("id,y_true,y_prob,women\na,1,0.7,0.9\nb,0,0.2,7\nc,0,0.4,0\nd,1,0.6,1\n")
    named = {"{old}": files[0], "{new}": files[1], "{bad}": str(bad)}
    assert run([*(named.get(word, word) for word in words), "--json"]) in (2, 3)
    error = json.loads(capsys.readouterr().out)["error"]
    assert error["code"] == code
    if code == "share-outside":
        assert [(f["row"], f["column"], f["value"]) for f in error["faults"]] == [(3, "women", "7")]


def test_blank_cells_mention_nothing_and_are_counted(tmp_path: Path, capsys: Capture) -> None:
    label, shares, one, _ = drawn(200, 9)
    path = Path(written(tmp_path / "b.csv", label, one, shares))
    lines = path.read_text().splitlines()
    lines[1:21] = [line.rsplit(",", 1)[0] + "," for line in lines[1:21]]
    path.write_text("\n".join(lines) + "\n")
    blank = {**shares, "muslim": np.where(np.arange(200) < 20, 0.0, shares["muslim"])}
    assert run(["score", str(path), "-m", "roc_auc", "--identity", *NAMES, "--bootstrap", "0", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert of(told["estimates"], "value") == pytest.approx(published(label, one, blank), abs=1e-12)
    assert any("muslim: 20 blank cells" in w for w in told["warnings"])


@pytest.mark.parametrize("words", [["score", "-p", "toxicity", "-m", "roc_auc"], ["toxicity"]])
def test_a_fault_of_a_text_with_several_labels_is_named_once_by_its_id(
    words: list[str], tmp_path: Path, capsys: Capture
) -> None:
    path = tmp_path / "wide.csv"
    rows = [f"t{k},{k % 2},{k // 2 % 2},0.{k % 10},0.{k % 7},{'maybe' if k == 25 else k % 2}" for k in range(30)]
    path.write_text("\n".join(["id,toxic,threat,toxic_prob,threat_prob,women", *rows]) + "\n")
    assert run([*words, str(path), "--identity", "women", "--bootstrap", "0", "--json"]) == 3
    (fault,) = json.loads(capsys.readouterr().out)["error"]["faults"]
    assert (fault["file"], fault["row"], fault["column"], fault["value"]) == ("wide.csv", None, "women", "maybe")
    assert "'t25'" in fault["message"]
