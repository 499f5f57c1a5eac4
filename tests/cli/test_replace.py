"""`hitmiss replace`: thresholds carried over, and what is said of the change, on data whose truth is known."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import hitmiss as hm
from hitmiss.core.trials import Trials
from hitmiss.evaluation.replacing import CHANGED, SAME, replace_classifier

N = 6000


def world(n: int = N, seed: int = 0, *, shift: float = 0.0, squash: bool = True) -> tuple[Trials, Trials]:
    """Two classifiers of the same texts: the new one has another scale, and flags more in Turkish by `shift`."""
    rng = np.random.default_rng(seed)
    label = (rng.random(n) < 0.2).astype(int)
    language = np.where(rng.random(n) < 0.5, "en", "tr")
    common = rng.normal(size=n)
    old = 1.5 * label + common + 0.5 * rng.normal(size=n)
    new = 1.5 * label + common + 0.5 * rng.normal(size=n)
    item = [f"t{i}" for i in range(n)]
    scaled = 1 / (1 + np.exp(-3 * new)) if squash else new
    moved = np.where(language == "tr", scaled + shift, scaled)
    return tuple(Trials.of(label, s, item=item, language=language) for s in (old, moved))  # type: ignore[return-value]


@pytest.mark.parametrize("keep", ["flag-rate", "false-alarms", "recall"])
def test_a_replacement_of_the_same_skill_keeps_its_rates(keep: str) -> None:
    """Another scale needs another threshold; with it nothing changes beyond the margin, in both languages."""
    old, new = world()
    found = replace_classifier(old, new, 1.0, by=["language"], keep=keep, margin=0.12 if keep == "recall" else 0.08)
    assert [group.group["language"] for group in found.groups] == ["en", "tr"]
    assert {group.outcome for group in found.groups} == {SAME}
    for group in found.groups:
        assert 0.9 < group.new_threshold < 0.99  # 1 / (1 + exp(-3)) is 0.953
        assert group.kept.name == keep and abs(group.kept.difference) < 0.05


def test_thresholds_are_those_of_the_other_half_by_hand() -> None:
    """The threshold reaches as many texts of the fit part as the old one, and rates are counted on the rest."""
    old, new = world(n=900)
    found = replace_classifier(old, new, 1.0)
    (group,) = found.groups
    judged = set(found.flips["item"]) | set()
    before, after = old.score >= 1.0, new.score >= group.new_threshold
    flips = {item for item, a, b in zip(old.items, before, after, strict=True) if a != b}
    assert judged <= flips
    assert group.n_fit + group.kept.n == 900
    assert group.kept.only_old + group.kept.only_new == found.flips.height


def test_the_order_of_rows_and_other_groups_change_nothing() -> None:
    """What is said of a language depends on its own texts."""
    old, new = world()
    first = replace_classifier(old, new, 1.0, by=["language"])
    turned = [Trials(t.frame.reverse(), t.header) for t in (old, new)]
    assert replace_classifier(turned[0], turned[1], 1.0, by=["language"]).groups == first.groups
    alone = [t.where(language="en") for t in (old, new)]
    own = replace_classifier(alone[0], alone[1], 1.0)
    assert own.groups[0].new_threshold == first.groups[0].new_threshold
    assert own.groups[0].kept.old == first.groups[0].kept.old


def test_one_threshold_for_all_shows_the_language_that_changes() -> None:
    """Without thresholds of their own, a language whose scores moved is named."""
    old, new = world(shift=0.04, squash=True)
    both = replace_classifier(old, new, 1.0, by=["language"])
    assert {group.outcome for group in both.groups} != {CHANGED}
    pooled = replace_classifier(old, new, 1.0)
    limit = pooled.groups[0].new_threshold
    kept = {name: [t.where(language=name) for t in (old, new)] for name in ("en", "tr")}
    rates = {name: ((a.score >= 1.0).mean(), (b.score >= limit).mean()) for name, (a, b) in kept.items()}
    assert rates["tr"][1] > rates["tr"][0] + 0.03 > rates["en"][1]


def test_a_worse_replacement_is_said_to_be_worse() -> None:
    """At an equal flag rate a weaker classifier loses recall and raises false alarms: the headline says so."""
    from hitmiss.reports.replacement import headline

    old, new = world()
    rng = np.random.default_rng(1)
    weaker = new.put(score=pl.Series("score", new.score + rng.normal(size=len(new)) * 0.6))
    found = replace_classifier(old, weaker, 1.0, by=["language"])
    assert all({"false-alarms", "recall"} == set(group.worse) for group in found.groups)
    assert "Less recall in 2 of 2 groups" in headline(found) and "More false alarms" in headline(found)


def test_wrong_outcomes_are_rare() -> None:
    """Of 200 replacements without any change, at most 5 % and chance are called changed."""
    wrong = 0
    for seed in range(200):
        old, new = world(n=400, seed=seed, squash=False)
        found = replace_classifier(old, new, 1.0, margin=0.001)
        # the threshold is random, so its own true rate is what is kept: compare with many texts
        many = world(n=20_000, seed=10_000 + seed, squash=False)
        truth = (many[1].score >= found.groups[0].new_threshold).mean() - (many[0].score >= 1.0).mean()
        kept = found.groups[0].kept
        wrong += not kept.low <= truth <= kept.high
    assert wrong / 200 <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / 200)


def write(folder: Path, *, labelled: bool) -> tuple[Path, Path]:
    """Write two score files."""
    paths = []
    for name, trials in zip(("old", "new"), world(n=800), strict=True):
        table = pl.DataFrame(
            {"id": trials.items, "score": trials.score, "language": trials.frame["language"], "label": trials.label}
        )
        path = folder / f"{name}.csv"
        (table if labelled else table.drop("label")).write_csv(path)
        paths.append(path)
    return paths[0], paths[1]


@pytest.mark.parametrize("labelled", [True, False])
def test_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str], labelled: bool) -> None:
    """Tables, JSON, flips and the page agree; without labels the flag rate is kept all the same."""
    old, new = write(tmp_path, labelled=labelled)
    words = ["replace", old, new, "--threshold", 1.0, "--by", "language", "--positive", "toxic"]
    words += ["--positive-value", 1] if labelled else []
    outputs = ["--flips", tmp_path / "f.csv", "--report", tmp_path / "p.html", "--json"]
    assert hm.run([str(w) for w in [*words, *outputs]]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [g["group"] for g in found["groups"]] == [{"language": "en"}, {"language": "tr"}]
    assert pl.read_csv(tmp_path / "f.csv").height == found["n_flips"]
    assert "Approved by" in (tmp_path / "p.html").read_text()
    assert {r["name"] for r in found["groups"][0]["rates"]} == (
        {"flag-rate", "false-alarms", "recall"} if labelled else {"flag-rate"}
    )
    assert hm.run([str(w) for w in words]) == 0
    assert "new threshold" in capsys.readouterr().out


def test_wrong_calls_are_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without a threshold, without labels, with other texts, without a threshold for a group."""
    old, new = write(tmp_path, labelled=False)
    base = ["replace", str(old), str(new), "--positive", "toxic"]
    short = tmp_path / "short.csv"
    short.write_text("\n".join(new.read_text().splitlines()[:-3]) + "\n")
    for words, part in (
        (base, "--threshold"),
        ([*base, "--threshold", "1", "--keep", "recall"], "labels"),
        ([*base, "--threshold", "en=1", "--by", "language"], "tr"),
        ([*base, "--threshold", "high"], "'high'"),
        (["replace", str(old), str(short), "--positive", "toxic", "--threshold", "1"], "3 texts of old.csv"),
    ):
        assert hm.run(words) in (2, 3)
        shown = capsys.readouterr()
        assert part in shown.err and not shown.out, shown.err
