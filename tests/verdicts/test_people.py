"""The system alone, people alone, and the two together: counted by hand, and nothing guessed."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hitmiss.cli.main import run
from hitmiss.core.errors import DataError, UnknownName
from hitmiss.core.header import Header
from hitmiss.core.kinds import ABSTAIN
from hitmiss.core.sampling import SamplingPlan
from hitmiss.core.trials import Trials
from hitmiss.io.people import PeoplesVerdicts, read_verdicts
from hitmiss.verdicts.people import evaluate_teamwork, human_trials, together, words_of_people

TRUTH = {"a": 1, "b": 1, "c": 0, "d": 0, "e": 1, "f": 0}
SYSTEM = {"a": 1, "b": ABSTAIN, "c": ABSTAIN, "d": 1, "e": None, "f": ABSTAIN}


def system(said: dict[str, int | None] = SYSTEM) -> Trials:
    items = list(TRUTH)
    codes = [said[i] for i in items]
    return Trials.of([TRUTH[i] for i in items], item=items, decision=codes, header=Header("fake", "real"))


def rows(*said: tuple[str, str, str], k: int = 2, model: str = "human") -> list[dict[str, Any]]:
    return [
        {"id": i, "model": model, "trial": who, "prediction": word, "latency_seconds": 3.0, "per_item": k}
        for i, who, word in said
    ]


def verdicts(path: Path, found: list[dict[str, Any]]) -> PeoplesVerdicts:
    path.write_text("".join(json.dumps(row) + "\n" for row in found), encoding="utf-8")
    return read_verdicts(path)


AGREED = rows(
    ("b", "ann", "fake"), ("b", "bob", "fake"),  # right
    ("c", "ann", "fake"), ("c", "bob", "real"),  # they disagree
    ("e", "ann", "cannot determine"), ("e", "bob", "uncertain"),  # they cannot tell
    ("f", "ann", "real"),  # short of a verdict
)  # fmt: skip


def test_counted_by_hand(tmp_path: Path) -> None:
    found = evaluate_teamwork(system(), verdicts(tmp_path / "v.jsonl", AGREED), SamplingPlan(0))

    def of(metric: str, who: str) -> float | None:
        return found.figures.one(metric, **{"decided by": who}).value

    assert of("accuracy", "system") == pytest.approx(1 / 6)
    assert of("accuracy", "together") == pytest.approx(2 / 6), "b is settled; c, e and f are not guessed"
    assert of("coverage", "together") == pytest.approx(3 / 6)
    assert of("accuracy", "people") == pytest.approx(1 / 3), "of b, c and e, which they have finished"
    assert of("accuracy_answered", "people") == 1.0
    (load,) = found.loads
    assert (load.n, load.sent, load.settled, load.open, load.begun, load.unseen) == (6, 4, 1, 2, 1, 0)
    assert (found.n_verdicts, found.n_reviewers, found.seconds) == (7, 2, 21.0)


def test_the_adjudicator_has_the_last_word(tmp_path: Path) -> None:
    said = verdicts(tmp_path / "v.jsonl", AGREED + rows(("c", "zoe", "real"), model="adjudication"))
    people = words_of_people(system(), said)
    assert dict(zip(people.items, people.column("decision"), strict=True)) == {"b": 1, "c": 0, "e": ABSTAIN}
    both = together(system(), people)
    assert both.column("decision").to_list() == [1, 1, 0, 1, None, ABSTAIN], (
        "a failed call that nobody settled stays failed"
    )


def test_people_decide_what_was_left_to_them_or_all_that_they_saw(tmp_path: Path) -> None:
    said = verdicts(tmp_path / "v.jsonl", rows(("d", "ann", "real"), ("b", "ann", "fake"), k=1))
    people = words_of_people(system(), said)
    assert together(system(), people).column("decision").to_list()[1:4] == [1, ABSTAIN, 1]
    assert together(system(), people, "reviewed").column("decision").to_list()[1:4] == [1, ABSTAIN, 0]
    with pytest.raises(UnknownName):
        together(system(), people, "always")  # type: ignore[arg-type]


def test_single_verdicts_are_trials_of_a_run_called_human(tmp_path: Path) -> None:
    trials = human_trials(system(), verdicts(tmp_path / "v.jsonl", AGREED))
    assert trials.header.runs == ("model", "trial") and set(trials.frame["model"]) == {"human"}
    assert set(trials.frame["trial"]) == {"ann", "bob"} and len(trials) == 7
    assert trials.where(trial="ann").label.tolist() == [TRUTH[i] for i in "bcef"]


def test_nobody_has_finished_anything(tmp_path: Path) -> None:
    found = evaluate_teamwork(system(), verdicts(tmp_path / "v.jsonl", rows(("f", "ann", "real"))), SamplingPlan(0))
    assert {e.run["decided by"] for e in found.figures} == {"system", "together"}
    assert found.loads[0].begun == 1 and found.loads[0].settled == 0


CODES = st.sampled_from([1, 0, ABSTAIN, None])


@given(
    st.lists(CODES, min_size=6, max_size=6),
    st.dictionaries(st.tuples(st.sampled_from("abcdef"), st.sampled_from("xyz")), st.sampled_from([1, 0, ABSTAIN])),
)
def test_laws(codes: list[int | None], said: dict[tuple[str, str], int]) -> None:
    """Answers of the system stay, what people settled is added, and everything else is as it was."""
    import polars as pl

    frame = pl.DataFrame(
        [
            {"item": i, "reviewer": r, "decision": d, "seconds": None, "adjudicated": False}
            for (i, r), d in said.items()
        ],
        schema={
            "item": pl.String,
            "reviewer": pl.String,
            "decision": pl.Int8,
            "seconds": pl.Float64,
            "adjudicated": pl.Boolean,
        },
    )
    own = system(dict(zip(TRUTH, codes, strict=True)))
    people = words_of_people(own, PeoplesVerdicts(frame, 2)) if all(list(said).count(k) == 1 for k in said) else None
    assert people is not None
    both = together(own, people).column("decision").to_list()
    for item, before, after in zip(TRUTH, codes, both, strict=True):
        votes = [d for (i, _), d in said.items() if i == item]
        settled = len(votes) == 2 and votes[0] == votes[1] and votes[0] != ABSTAIN
        assert after == (before if before in (0, 1) or not settled else votes[0])
    found = evaluate_teamwork(own, PeoplesVerdicts(frame, 2), SamplingPlan(0))
    load = found.loads[0]
    assert load.sent == sum(c not in (0, 1) for c in codes) == load.settled + load.open + load.begun + load.unseen
    right = sum(after == TRUTH[i] for i, after in zip(TRUTH, both, strict=True))
    assert found.figures.one("accuracy", **{"decided by": "together"}).value == pytest.approx(float(Fraction(right, 6)))


@pytest.mark.parametrize(
    ("found", "message"),
    [
        (rows(("b", "ann", "purple")), "the verdict is none of"),
        (rows(("b", "ann", "fake"), ("b", "ann", "real")), "one person has two verdicts"),
        (rows(("b", "ann", "fake"), ("b", "bob", "fake"), ("b", "eve", "fake")), "more verdicts than the 2"),
        (rows(("b", "ann", "fake"), model="gpt"), "neither human nor adjudication"),
        (rows(("b", "z", "fake"), ("b", "y", "real"), model="adjudication"), "two adjudicators"),
        (rows(("b", "ann", "fake")) + rows(("c", "ann", "fake"), k=3), "one review at a time"),
        ([{"id": "b", "verdict": "fake"}], "has no column 'model'"),
    ],
)
def test_files_that_are_refused(tmp_path: Path, found: list[dict[str, Any]], message: str) -> None:
    with pytest.raises(DataError, match=message):
        verdicts(tmp_path / "v.jsonl", found)


def test_an_item_that_the_results_do_not_have(tmp_path: Path) -> None:
    said = verdicts(tmp_path / "v.jsonl", rows(("z", "ann", "fake")))
    with pytest.raises(DataError, match="people judged items that the results do not have: 1, the first is 'z'"):
        evaluate_teamwork(system(), said)


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = {1: "fake", 0: "real", ABSTAIN: "uncertain"}
    lines = [
        {
            "id": i,
            "label": words[TRUTH[i]],
            "prediction": words.get(code, ""),
            **({} if code is not None else {"error": "x"}),
        }  # type: ignore[arg-type]
        for i, code in SYSTEM.items()
    ]
    results = tmp_path / "results.jsonl"
    results.write_text("".join(json.dumps(row) + "\n" for row in lines))
    verdicts(tmp_path / "v.jsonl", AGREED)
    assert run(["triage", str(results), "--human", str(tmp_path / "v.jsonl"), "-m", "accuracy"]) == 0
    text = capsys.readouterr().out
    assert "the system alone, people alone, and the two together" in text and "Krippendorff's alpha" in text
    assert run(["triage", str(results), "--human", str(tmp_path / "v.jsonl"), "--json"]) == 0
    people = json.loads(capsys.readouterr().out)["people"]
    assert people["loads"][0]["settled"] == 1 and people["n_verdicts"] == 7


def test_repeated_trials_and_several_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from hitmiss.simulate.triage import write

    write(tmp_path)
    results = [json.loads(line) for line in (tmp_path / "results.jsonl").read_text().splitlines()]
    truth = {row["id"]: row["label"] for row in results}
    open_ = sorted({row["id"] for row in results if row["prediction"] == "uncertain"})
    verdicts(tmp_path / "v.jsonl", rows(*((i, who, truth[i]) for i in open_ for who in ("ann", "bob"))))
    asked = [str(tmp_path / "results.jsonl"), "--human", str(tmp_path / "v.jsonl"), "--bootstrap", "20", "--json"]
    assert run(["triage", *asked]) == 0
    people = json.loads(capsys.readouterr().out)["people"]
    means = {
        (e["run"]["decided by"], e["run"]["tools"]): e
        for e in people["estimates"]
        if e["average"] == "mean" and e["metric"] == "accuracy"
    }
    for tools in ("tools", "no-tools"):
        own = [r for r in results if ("tools" if r["use_tools"] else "no-tools") == tools]
        unsure = {r["id"] for r in own if r["prediction"] not in ("real", "fake") or r.get("error")} & set(open_)
        right = sum(
            (r["id"] in unsure and (r["prediction"] not in ("real", "fake") or bool(r.get("error"))))
            or (r["prediction"] == r["label"] and not r.get("error"))
            for r in own
        )
        assert means["together", tools]["value"] == pytest.approx(right / len(own))
        assert means["together", tools]["value"] > means["system", tools]["value"]
    assert means["people", "-"]["value"] == 1.0


def test_the_page_of_a_results_file_has_people_and_flow(tmp_path: Path) -> None:
    """`triage --human -o` keeps what people add; a report of the file shows it, as one of the rows does."""
    from hitmiss.simulate.triage import write

    data = write(tmp_path / "data", share=0.1)
    asked = [str(data / "results.jsonl"), "--human", str(data / "people.jsonl"), "--bootstrap", "20"]
    assert run(["triage", *asked, "-o", str(data / "human.json")]) == 0
    assert run(["report", str(data / "human.json"), "-o", str(tmp_path / "file.html")]) == 0
    rows = ["report", f"triage={asked[0]}", *asked[1:], "-o", str(tmp_path / "rows.html")]
    assert run(rows) == 0
    for name in ("file", "rows"):
        page = (tmp_path / f"{name}.html").read_text(encoding="utf-8")
        for words in (
            "alone, and the two together",
            "Krippendorff",
            "flip_rate",
            "95th percentile",
            'data-kind="flow"',
        ):
            assert words in page, (name, words)
        assert "the data are simulated" in page
    other = tmp_path / "other.jsonl"
    other.write_text('{"id": "zzz", "model": "human", "trial": "ann", "prediction": "real", "per_item": 1}\n')
    assert run([*rows, "--human", str(other)]) == 2
