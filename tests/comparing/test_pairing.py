"""Pairing: what is matched, and what is refused with both lists."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hitmiss.core.errors import DataError
from hitmiss.core.header import Header
from hitmiss.core.trials import Trials, stack
from hitmiss.engine.pairing import pair


def trials(
    items: list[str], *, label: list[int] | None = None, score: list[float] | None = None, **header: object
) -> Trials:
    values = score if score is not None else [float(i) for i in range(len(items))]
    truth = label if label is not None else [int(i.endswith("1")) for i in items]
    return Trials.of(truth, values, item=items, header=Header(**header))  # type: ignore[arg-type]


@given(st.permutations([f"u{i}" for i in range(8)]))
def test_rows_are_matched_by_id_in_any_order(order: list[str]) -> None:
    a = trials([f"u{i}" for i in range(8)], score=[float(i) for i in range(8)])
    b = trials(list(order), score=[10.0 + int(i[1:]) for i in order])
    found = pair(a, b)
    assert found.a.items == found.b.items == a.items
    assert (found.b.score - found.a.score == 10.0).all()


def test_missing_partners_are_refused_with_both_lists() -> None:
    a, b = trials(["x1", "x2", "x3"]), trials(["x2", "x1", "y1", "y2"])
    with pytest.raises(
        DataError, match=r"1 of A are not in B \(as x3\) and 2 of B are not in A \(as y1, y2\)"
    ) as caught:
        pair(a, b)
    assert [(f.kind, f.value) for f in caught.value.faults] == [
        ("only-in-A", "x3"),
        ("only-in-B", "y1"),
        ("only-in-B", "y2"),
    ]
    assert "statistical power differs" in str(caught.value)


def test_missing_partners_are_left_out_when_told() -> None:
    found = pair(trials(["x1", "x2", "x3"]), trials(["x2", "x1", "y1", "y2"]), allow_missing=True)
    assert found.a.items == found.b.items == ["x1", "x2"] and found.left_out == (1, 2)


def test_nothing_in_common_is_refused_even_then() -> None:
    with pytest.raises(DataError, match="no id is in both runs: A has x1, x2, B has y1"):
        pair(trials(["x1", "x2"]), trials(["y1"]), allow_missing=True)


def test_targets_are_part_of_the_question() -> None:
    rows = {"item": ["p", "q", "q", "p"], "target": ["MI", "CD", "MI", "CD"], "label": [1, 0, 0, 1]}
    own = Trials.from_frame(pl.DataFrame({**rows, "score": [1.0, 2.0, 3.0, 4.0]}), Header())
    other = Trials.from_frame(own.frame[::-1], Header())
    found = pair(own, other)
    assert found.a.score.tolist() == found.b.score.tolist() == [4.0, 1.0, 2.0, 3.0]  # in the order of items and targets


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            {"positive": "spoof", "negative": "bonafide"},
            "the directions differ: the positive class is bonafide in A and spoof in B",
        ),
        ({"positive": "real", "negative": "spoof"}, "the positive class is 'bonafide' in A and 'real' in B"),
        ({"positive": "bonafide", "negative": "fake"}, "the negative class is 'spoof' in A and 'fake' in B"),
        ({"positive": "bonafide", "negative": "spoof", "score_kind": "llr"}, "declared 'raw' and those of B 'llr'"),
    ],
)
def test_headers_must_agree(change: dict[str, str], words: str) -> None:
    a = trials(["x1", "x2"], positive="bonafide", negative="spoof")
    with pytest.raises(DataError, match=words):
        pair(a, trials(["x1", "x2"], **change))


def test_score_kinds_do_not_matter_to_decisions() -> None:
    assert len(pair(trials(["x1"]), trials(["x1"], score_kind="llr"), scores=False)) == 1


def test_labels_must_agree() -> None:
    a = trials(["x1", "x2", "x3"], label=[1, 0, 0])
    with pytest.raises(DataError, match="1 of 3 questions have another label in A than in B, the first is 'x2'"):
        pair(a, trials(["x1", "x2", "x3"], label=[1, 1, 0]))
    with pytest.raises(DataError, match="has its classes reversed"):
        pair(a, trials(["x1", "x2", "x3"], label=[0, 1, 1]))


def test_a_file_without_ids_has_no_partners() -> None:
    files = [{"name": "scores.txt", "role": "both", "columns": {"label": "3", "score": "4"}}]
    with pytest.raises(DataError, match=r"A cannot be compared: scores.txt has no ids"):
        pair(trials(["1", "2"], provenance={"files": files}), trials(["1", "2"]))


def test_several_runs_on_one_side_must_be_chosen_from() -> None:
    two = stack({"m1": trials(["x1", "x2"]), "m2": trials(["x1", "x2"])}, "model")
    with pytest.raises(DataError, match=r"A holds 2 runs \(model: m1, m2\).*\[model=m1\] after its name"):
        pair(two, trials(["x1", "x2"]))


def test_repetitions_are_paired_one_by_one() -> None:
    a, b = (
        stack({str(t): trials(["x1", "x2"], score=[t + s, t + s + 1.0]) for t in (1, 2)}, "trial") for s in (0.0, 0.5)
    )
    found = pair(a, Trials.from_frame(b.frame[::-1], b.header))
    assert found.key == ("item", "target", "trial") and found.repeats == ("trial",)
    assert (found.b.score - found.a.score == 0.5).all()


def test_other_numbers_of_repetitions_meet_one_another() -> None:
    def repeated(times: int, step: float) -> Trials:
        made = {str(t): trials(["x1", "x2"], score=[t + step, t + step + 1.0]) for t in range(times)}
        return stack(made, "trial") if times > 1 else made["0"]

    found = pair(repeated(3, 0.0), repeated(2, 0.5))
    assert found.key == ("item", "target", "trial") and len(found) == 3 * 2 * 2
    for item in ("x1", "x2"):
        own = [side.frame.filter(item=item)["score"].mean() for side in (found.a, found.b)]
        start = 0.0 if item == "x1" else 1.0
        assert own == [start + 1.0, start + 1.0]  # (0 + 1 + 2) / 3 and (0.5 + 1.5) / 2
    once = pair(repeated(3, 0.0), repeated(1, 0.5))
    assert len(once) == 3 * 2 and once.repeats == ("trial",)


def test_questions_that_one_side_never_answers_are_refused_whatever_the_repetitions() -> None:
    three = stack({str(t): trials(["x1", "x2"]) for t in range(3)}, "trial")
    with pytest.raises(DataError, match=r"1 of A are not in B \(as x2\)"):
        pair(three, trials(["x1"]))
    assert len(pair(three, trials(["x1"]), allow_missing=True)) == 3


def test_one_row() -> None:
    assert len(pair(trials(["x1"]), trials(["x1"]))) == 1
