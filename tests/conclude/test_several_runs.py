"""Several detectors on the same trials, with a known order and known weaknesses: who is named, for what, by which test."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.conclude.worlds import Floats, failed, labels, scores, screen, slices, trials, where

import hitmiss as hm
from hitmiss.conclude.ranking import duels_of, tiers
from hitmiss.core.design import Design
from hitmiss.core.finding import FAILED, PASSED
from hitmiss.core.header import Header
from hitmiss.core.trials import Trials
from hitmiss.core.verdict import NOT_SHOWN, SHOWN, Verdict
from hitmiss.findings import catalogue
from hitmiss.reports.page import compose
from hitmiss.reports.sources import Measuring, measured
from hitmiss.stats.mcnemar import exact

SIZE = 1200


def common(n: int = SIZE) -> Floats:
    """What all systems find hard."""
    return np.random.default_rng(77).normal(size=n)


def page_of(runs: dict[str, Trials], bootstrap: int = 200) -> Verdict:
    """The verdict on the first screen of a page about these runs."""
    how = Measuring(Design.of(["eer"], by="codec", bootstrap=bootstrap))
    (part,) = compose(
        [measured(own, name, how) for name, own in runs.items()], compare=Design(bootstrap=bootstrap)
    ).parts
    return part.summary.verdict


def test_of_a_good_and_a_coin_the_good_one_is_the_subject_and_the_coin_is_named() -> None:
    codec = slices(SIZE, 3)
    runs = {"coin3": trials(scores(SIZE, 0.0, 1), codec=codec), "good": trials(scores(SIZE, 3.0, 2), codec=codec)}
    found = page_of(runs)
    assert (found.code, found.status, found.subject.run) == ("better-than-other", SHOWN, "good")
    (bad,) = [f for f in found.answers if f.state == FAILED]
    assert (bad.code, bad.subject.run) == ("not-better-than-chance", "coin3")
    assert found.headline.startswith("good does better than coin3; coin3 is not shown to be better than chance")
    screen("good_and_coin", found)


def test_a_name_with_a_colon_stays_whole() -> None:
    a, b = trials(scores(SIZE, 1.0, 1, common())), trials(scores(SIZE, 3.0, 2, common()))
    found = hm.compare(a, b, ["eer"], names=("old: v1", "new: v2"), bootstrap=200).verdict
    assert found.subject.run == "new: v2" and found.status == SHOWN and found.state == PASSED
    assert found.headline == "new: v2 does better than old: v1."
    assert found.test is not None and found.test.paired and found.p is not None and found.p >= 1 / 201
    screen("name_with_colon", found)


def test_a_winner_that_loses_a_slice_is_said_to() -> None:
    codec = slices(3000, 6)
    bad = np.array(codec) == "c00"
    a = trials(scores(3000, np.where(bad, 2.0, 1.0), 1, common(3000)), codec=codec)
    b = trials(scores(3000, np.where(bad, 0.4, 3.0), 2, common(3000)), codec=codec)
    found = hm.compare(a, b, ["eer"], names=("a", "b"), by=["codec"], bootstrap=200).verdict
    assert (found.code, found.status, found.subject.run) == ("better-than-other", SHOWN, "b")
    assert where(found) == {("b", "c00")} and found.state == FAILED
    assert found.headline == "b does better than a, but is worse on codec c00."
    (loss,) = found.fails
    assert loss.code == "worse-in-slice" and loss.values["other"] == "a"
    screen("winner_loses_a_slice", found)


def detected(share: NDArray[np.float64], label: NDArray[np.int_], seed: int) -> list[int]:
    """Decisions: so large a share of the positives is found, and a tenth of the negatives too."""
    draw = np.random.default_rng(seed).random(len(label))
    return np.where(label == 1, draw < share, draw < 0.1).astype(int).tolist()


def decided(decision: list[int], language: list[str]) -> Trials:
    n = len(decision)
    header = Header("toxic", "harmless")
    return Trials.of(labels(n), item=[f"i{k}" for k in range(n)], decision=decision, language=language, header=header)


def test_one_language_that_regresses_is_in_the_headline_as_a_failure() -> None:
    """Turkish recall falls from about 0.86 to 0.40; it is one of twenty languages, and the others gain a little."""
    n = 4000
    language = np.array([f"l{k:02d}" for k in np.arange(n) // 2 % 20])
    language[language == "l07"] = "tr"
    before = np.full(n, 0.86)
    after = np.where(language == "tr", 0.40, 0.885)
    a, b = (decided(detected(share, labels(n), 5), language.tolist()) for share in (before, after))
    found = hm.compare(a, b, ["recall"], names=("old", "new"), by=["language"], bootstrap=200).verdict
    assert found.status == NOT_SHOWN or found.subject.run == "new"
    assert ("new", "tr") in where(found) and found.state == FAILED
    assert all(run == "new" and place in ("tr", "*") for run, place in where(found))
    assert found.headline.startswith(
        "No difference between old and new was shown, but new is worse than old on language tr"
    )
    screen("one_language_regressed", found)


def test_a_macro_that_regresses_alone_is_a_failure() -> None:
    """A large language hides that many small ones each lose a little: no slice shows it, their mean does."""
    small, each = 12, 60
    language = np.array(["big"] * 6000 + [f"s{k:02d}" for k in range(small) for _ in range(each)])
    n = len(language)
    a, b = (
        decided(
            [
                *detected(np.full(6000, 0.8), labels(6000), seed),
                *detected(np.full(n - 6000, share), labels(n - 6000), 5),
            ],
            language.tolist(),
        )
        for share, seed in ((0.85, 1), (0.72, 2))
    )
    made = hm.compare(a, b, ["accuracy"], names=("old", "new"), by=["language"], bootstrap=500)
    macro = made.one("accuracy", average="macro", language="*")
    assert macro.p_adjusted is not None and macro.p_adjusted < 0.05 and (macro.delta or 0) < 0
    found = made.verdict
    whole = made.one("accuracy")
    assert whole.p_adjusted is not None and whole.p_adjusted > 0.05, "over all pairs nothing is shown"
    assert found.code == "no-difference"
    averages = [s for s in found.slices if s.average == "macro"]
    assert [s.run for s in averages] == ["new"] and found.state == FAILED
    assert "the macro over language" in found.headline
    screen("macro_regressed", found)


def test_of_nine_systems_only_the_guilty_one_is_blamed() -> None:
    codec = slices(SIZE, 4)
    bad = np.array(codec) == "c00"
    runs = {}
    for k in range(9):
        apart = np.where(bad & (k == 7), 0.2, 3.6 if k == 6 else 2.6)
        runs[f"sys_{k + 1:02d}"] = trials(scores(SIZE, apart, k, common()), codec=codec)
    found = page_of(runs)
    assert found.subject.run == "sys_07" and found.claim.code in ("best-of-all", "best-shared")
    weak = {(s.run, s.slice.get("codec")) for s in found.slices}
    assert weak == {("sys_08", "c00")}
    assert "sys_08 is weak on codec c00" in found.headline and "but" not in found.headline
    screen("nine_systems", found)


def test_of_thirty_systems_nobody_is_level_with_the_best_by_a_letter() -> None:
    """All thirty differ by far; beyond 26 groups letters go on as a1, which shares a character with a."""
    label = labels(SIZE)
    common_ = common()
    runs = {
        f"s{k + 1:02d}": trials(
            common_ * 0.999 + 0.02 * np.random.default_rng(k).normal(size=SIZE) + (3.4 - 0.1 * k) * label
        )
        for k in range(30)
    }
    ranked = hm.rank(runs, ["roc_auc"], bootstrap=300)
    assert {s.run: s.letters for s in ranked.standings}["s27"] == "a1", "the letters of the case"
    found = ranked.verdict
    last = duels_of(ranked, "roc_auc")[frozenset(("s01", "s27"))]
    assert last.verdict.endswith("better"), "the truth: rank 27 is far from the best"
    assert (found.code, found.status, found.subject.run) == ("best-of-all", SHOWN, "s01")
    order = [s.run for s in ranked.standings]
    made = tiers(order, duels_of(ranked, "roc_auc"))
    assert made["s01"] == 1 and made["s27"] > 1 and list(made.values()) == sorted(made.values())
    screen("thirty_systems", found)


def test_two_alike_are_not_shown_to_differ() -> None:
    a, b = (trials(scores(SIZE, 2.0, seed, common())) for seed in (1, 2))
    found = hm.compare(a, b, ["roc_auc"], names=("a", "b"), bootstrap=0).verdict
    assert (found.code, found.status, found.fails) == ("no-difference", NOT_SHOWN, ())
    assert found.effect is not None and found.effect.low is not None and found.effect.low < 0 < (found.effect.high or 0)
    screen("two_alike", found)


def test_pairs_that_were_left_out_fail_the_check_of_completeness() -> None:
    a, b = trials(scores(SIZE, 2.0, 1, common())), trials(scores(SIZE, 2.6, 2, common()))
    half = Trials(b.frame.head(SIZE // 2), b.header)
    found = hm.compare(a, half, ["roc_auc"], names=("a", "b"), bootstrap=0, allow_missing=True).verdict
    assert "completeness" in failed(found) and found.status == NOT_SHOWN
    screen("pairs_left_out", found)


def people(tmp_path: Path, helpful: float, where_: str) -> Verdict:
    """A system that leaves 30 % open and is right on 90 % of the rest; two people who are right so often."""
    rng, n = np.random.default_rng(3), 400
    label = labels(n)
    said = np.where(rng.random(n) < 0.3, -1, np.where(rng.random(n) < 0.1, 1 - label, label))
    items = [f"i{k}" for k in range(n)]
    asked = np.flatnonzero(said < 0) if where_ == "unanswered" else np.arange(n)
    rows = []
    for at in asked:
        word = ("real", "fake")[label[at] if rng.random() < helpful else 1 - label[at]]
        rows += [
            {"id": items[at], "model": "human", "trial": who, "prediction": word, "per_item": 2}
            for who in ("ann", "bob")
        ]
    file = tmp_path / "people.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    from hitmiss.conclude.verdict import Beside, conclude
    from hitmiss.io.people import read_verdicts
    from hitmiss.protocols.triage import TriageExtras
    from hitmiss.verdicts.people import evaluate_teamwork

    system = Trials.of(label, item=items, decision=said.tolist(), header=Header("fake", "real"))
    work = evaluate_teamwork(system, read_verdicts(str(file), "fake", "real"), where=where_)  # type: ignore[arg-type]
    results = hm.measure(system, ["accuracy", "accuracy_answered", "coverage"])
    found = conclude(results, "accuracy", beside=Beside(asides=(TriageExtras(people=work),)))
    if where_ == "unanswered":
        gains, losses = truth(label, said, rows)
        assert (found.claim.values["gains"], found.claim.values["losses"]) == (gains, losses)
        assert found.p == pytest.approx(exact(losses, gains))
    return found


def truth(label: NDArray[np.int_], said: NDArray[np.int_], rows: list[dict[str, object]]) -> tuple[int, int]:
    """How many items people make right that were open, and how many they make wrong that were right."""
    word = {str(row["id"]): row["prediction"] for row in rows}
    both = [
        {"fake": 1, "real": 0}[str(word[f"i{k}"])] if s < 0 and f"i{k}" in word else int(s) for k, s in enumerate(said)
    ]
    change = [int(b == y) - int(s == y) for b, s, y in zip(both, said, label, strict=True)]
    return change.count(1), change.count(-1)


def test_people_who_gain_on_every_item_are_a_shown_gain(tmp_path: Path) -> None:
    found = people(tmp_path, 0.95, "unanswered")
    assert (found.code, found.status) == ("people-gain", SHOWN)
    assert found.claim.values["losses"] == 0 and found.test is not None and found.test.paired
    screen("people_gain", found)


def test_a_gain_in_one_of_two_configurations_is_the_headline(tmp_path: Path) -> None:
    """One configuration leaves a third open and gains; the other leaves nothing open, so people change nothing there."""
    from hitmiss.conclude.verdict import Beside, conclude
    from hitmiss.io.people import read_verdicts
    from hitmiss.protocols.triage import TriageExtras
    from hitmiss.verdicts.people import evaluate_teamwork

    rng, n = np.random.default_rng(5), 300
    label = labels(n)
    sure = np.where(rng.random(n) < 0.1, 1 - label, label)
    open_ = np.where(rng.random(n) < 0.3, -1, sure)
    items = [f"i{k}" for k in range(n)]
    rows = [
        {"id": items[k], "model": "human", "trial": who, "prediction": ("real", "fake")[label[k]], "per_item": 2}
        for k in np.flatnonzero(open_ < 0)
        for who in ("ann", "bob")
    ]
    file = tmp_path / "people.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    system = Trials.of(
        np.concatenate([label, label]),
        item=items * 2,
        decision=np.concatenate([sure, open_]).tolist(),
        header=Header("fake", "real", runs=("model",)),
        model=["careless"] * n + ["careful"] * n,
    )
    work = evaluate_teamwork(system, read_verdicts(str(file), "fake", "real"), where="unanswered")
    found = conclude(hm.measure(system, ["accuracy"]), "accuracy", beside=Beside(asides=(TriageExtras(people=work),)))
    assert (found.code, found.subject.run, found.status) == ("people-gain", "careful", SHOWN)
    assert {f.code for f in found.answers} >= {"people-gain", "people-open"}


def test_people_who_overrule_a_good_system_badly_are_a_shown_loss(tmp_path: Path) -> None:
    found = people(tmp_path, 0.35, "reviewed")
    assert (found.code, found.status, found.state) == ("people-lose", "refuted", FAILED)
    screen("people_lose", found)


def test_rankings_show_each_number_with_its_interval_and_no_p_below_the_draws(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("spoof", "bonafide")
    files = []
    for k, apart in enumerate((4.0, 2.0, 0.8)):
        file = tmp_path / f"sys{k}.csv"
        rows = [
            f"i{i},{words[y]},{s:.6f}" for i, (y, s) in enumerate(zip(labels(600), scores(600, apart, k), strict=True))
        ]
        file.write_text("id,label,score\n" + "\n".join(rows) + "\n")
        files.append(str(file))
    assert hm.run(["compare", *files, "-m", "eer", "--bootstrap", "300"]) == 0
    text = capsys.readouterr().out
    assert "< 0.004 (300 draws)" in text and "e-" not in text.split("hitmiss:")[0]
    assert hm.run(["compare", *files, "-m", "eer", "--bootstrap", "300", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["verdict"]["subject"]["run"].startswith("sys0")
    for row in found["standings"]:
        file = next(f for f in files if row["run"] in Path(f).name)
        assert hm.run(["score", file, "-m", "eer", "--bootstrap", "300", "--json"]) == 0
        own = json.loads(capsys.readouterr().out)["estimates"][0]
        assert (row["low"], row["high"]) == (own["low"], own["high"])


def test_with_every_sentence_replaced_by_its_code_nothing_else_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is decided by reading a sentence."""
    codec = slices(SIZE, 4)
    bad = np.array(codec) == "c00"
    a = trials(scores(SIZE, 2.0, 1, common()), codec=codec)
    b = trials(scores(SIZE, np.where(bad, 0.3, 3.4), 2, common()), codec=codec)
    made = hm.compare(a, b, ["eer"], by=["codec"], bootstrap=200)
    results = hm.measure(b, ["eer"], by=["codec"], bootstrap=200)
    before = [bare(v) for v in (made.verdict, results.verdict)]
    scramble(monkeypatch)
    after = [bare(v) for v in (made.verdict, results.verdict)]
    assert before == after
    assert results.verdict.headline.startswith("better-than-chance")


def scramble(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace every sentence of the catalogue by its code."""
    known = {
        code: replace(e, text=code, short=code and e.short and code, about=e.about and code, fix="")
        for _, code, e in catalogue.everything()
    }
    monkeypatch.setattr(catalogue, "entries_of", lambda package: known)


def bare(verdict: Verdict) -> object:
    """A verdict without its sentences."""

    def kept(value: object) -> object:
        if isinstance(value, dict):
            return {k: kept(v) for k, v in value.items() if k not in ("text", "headline")}
        return [kept(v) for v in value] if isinstance(value, list) else value

    return kept(verdict.to_dict())


def test_slices_in_which_nothing_can_be_tested_are_not_called_alike() -> None:
    """Every slice holds one class, so that no error rate exists in any of them."""
    label = [k % 2 for k in range(400)]
    rng = np.random.default_rng(4)
    room = ["a" if y else "b" for y in label]
    one, other = (Trials.of(label, np.array(label) * 2 + rng.normal(size=400), room=room) for _ in range(2))
    found = hm.compare(one, other, ["eer"], by=["room"], bootstrap=200).verdict
    codes = {f.code: f.values for f in found.looked}
    assert codes["slices-untestable"] == {"n": 2, "total": 2} and "slices-open" not in codes
