"""Trials: the table that does not change, what it refuses, and its digest."""

from __future__ import annotations

import dataclasses
import hashlib
import math
from typing import Any

import numpy as np
import polars as pl
import pytest

import hitmiss as hm
from hitmiss import Header, Trials
from hitmiss.core.errors import DataError, UnknownName, UsageError
from hitmiss.core.header import Source


@pytest.fixture
def trials() -> Trials:
    return Trials.of(
        label=[1, 0, 1, 0],
        score=[2.0, -1.0, 0.5, math.inf],
        item=["a", "b", "c", "d"],
        codec=["C01", "C01", "C02", "-"],
        header=Header(positive="bonafide", negative="spoof", score_kind="llr"),
    )


def test_columns(trials: Trials) -> None:
    assert len(trials) == 4
    assert trials.label.tolist() == [1, 0, 1, 0]
    assert trials.score.tolist() == [2.0, -1.0, 0.5, math.inf]
    assert trials.items == ["a", "b", "c", "d"]
    assert trials.n_positive == 2
    assert trials.column("codec").to_list() == ["C01", "C01", "C02", "-"]
    assert trials.column("target").to_list() == ["bonafide"] * 4
    assert trials.header.slices == ("codec",)


def test_roles_come_from_the_header() -> None:
    head = Header(runs=("model",), numbers=("seconds",))
    made = Trials.of([1, 0], [1, 0], header=head, model=["m", "m"], seconds=[1, 2], codec=[1, 2])
    assert (made.header.runs, made.header.slices, made.header.numbers) == (("model",), ("codec",), ("seconds",))
    assert made.column("codec").to_list() == ["1", "2"]
    assert made.column("seconds").to_list() == [1.0, 2.0]


def test_texts_stay_what_they_are() -> None:
    texts = ["0001", "NA", "None", "-", "1e5", ""]
    made = Trials.of([1, 0] * 3, item=texts, attack=texts)
    assert made.items == texts
    assert made.column("attack").to_list() == texts


def test_choosing_rows(trials: Trials) -> None:
    assert trials.where(codec="C01").items == ["a", "b"]
    assert trials.where(codec="C01", item="b").items == ["b"]
    assert trials.where().items == trials.items
    assert trials.where(codec="C99").items == []
    assert trials.keep(pl.col("score") > 0.0).items == ["a", "c", "d"]
    assert trials.where(codec="C01").header == trials.header
    with pytest.raises(UnknownName, match="did you mean 'codec'"):
        trials.where(codecs="C01")


# --- it does not change -----------------------------------------------------------------------------------------


def test_fields_cannot_be_set(trials: Trials) -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        trials.frame = pl.DataFrame()  # type: ignore[misc]
    with pytest.raises(dataclasses.FrozenInstanceError):
        trials.header.positive = "spoof"  # type: ignore[misc]


def test_arrays_that_come_out_cannot_be_written_to(trials: Trials) -> None:
    for values in (trials.score, trials.label):
        with pytest.raises(ValueError, match="read-only"):
            values[0] = 0


def test_arrays_that_went_in_are_copies() -> None:
    label, score, decision, seconds = np.array([1, 0]), np.array([0.1, 0.2]), np.array([1, 0]), np.array([3.0, 4.0])
    made = Trials.of(label, score, decision=decision, seconds=seconds, header=Header(numbers=("seconds",)))
    before = made.frame.clone()
    for values in (label, score, decision, seconds):
        values[0] = 0
    assert made.frame.equals(before)


def test_frames_that_come_out_are_ones_own(trials: Trials) -> None:
    mine = trials.to_polars()
    mine[0, "score"] = 99.0
    assert trials.score[0] == 2.0


def test_changes_make_new_trials(trials: Trials) -> None:
    changed = trials.put(score=pl.col("score") * 2)
    retitled = trials.retitle(positive="real")
    both = trials.put(Header(positive="real"), score=pl.Series([0.0] * 4))
    assert (changed.score[0], trials.score[0]) == (4.0, 2.0)
    assert (retitled.header.positive, trials.header.positive, both.header.positive) == ("real", "bonafide", "real")
    assert retitled.frame.equals(trials.frame)


# --- what is refused --------------------------------------------------------------------------------------------


def test_duplicates_are_refused() -> None:
    with pytest.raises(DataError, match=r"2 rows share an id \(item, target\), the first is 'b'"):
        Trials.of([1, 0, 1], item=["a", "b", "b"])


def test_an_item_may_return_in_another_run_or_for_another_target() -> None:
    table = pl.DataFrame({"item": ["a", "a"], "label": [1, 1], "model": ["m1", "m2"], "target": ["x", "x"]})
    assert len(Trials.from_frame(table, Header(runs=("model",)))) == 2
    with pytest.raises(DataError, match="an item has one label"):
        Trials.from_frame(table.with_columns(label=pl.Series([1, 0])), Header(runs=("model",)))
    with pytest.raises(DataError, match="share an id"):
        Trials.from_frame(table, Header(slices=("model",)))
    assert len(Trials.from_frame(table.with_columns(target=pl.Series(["x", "y"])), Header())) == 2


@pytest.mark.parametrize("decision", [[0.7, 0.2], [1, 2], np.array([257, 0]), [1, math.nan], ["fake", "real"]])
def test_decisions_are_not_rounded(decision: Any) -> None:
    with pytest.raises(DataError, match="each decision must be one of"):
        Trials.of([1, 0], decision=decision)


@pytest.mark.parametrize("label", [[0.7, 1.0], [2, 0], [-1, 1], [None, 1], ["spoof", "1"], [math.nan, 0.0]])
def test_labels_are_not_rounded(label: list[Any]) -> None:
    with pytest.raises(DataError, match="each label must be one of"):
        Trials.from_frame(pl.DataFrame({"item": ["a", "b"], "label": label}, strict=False), Header())


def test_the_first_wrong_value_is_named() -> None:
    table = pl.DataFrame({"item": ["a", "b", "c"], "label": [1, 3, 7]})
    with pytest.raises(DataError, match=r"found 2 that are not, the first is 3 at position 1"):
        Trials.from_frame(table, Header())


@pytest.mark.parametrize("label", [[1, 0], [True, False], [1.0, 0.0], ["1", "0"]])
def test_sound_labels_of_any_kind(label: list[Any]) -> None:
    made = Trials.from_frame(pl.DataFrame({"item": ["a", "b"], "label": label}), Header())
    assert made.label.tolist() == [1, 0]


def test_decisions_may_abstain_or_be_missing() -> None:
    table = pl.DataFrame({"item": ["a", "b", "c"], "label": [1, 0, 1], "decision": [1, -1, None]})
    assert Trials.from_frame(table, Header()).column("decision").to_list() == [1, -1, None]


def test_missing_columns_are_named() -> None:
    with pytest.raises(UsageError, match="no column 'codec'"):
        Trials.from_frame(pl.DataFrame({"item": ["a"], "label": [1]}), Header(slices=("codec",)))
    with pytest.raises(UnknownName, match="unknown column 'score'"):
        _ = Trials.of([1, 0]).score


def test_masked_values_are_refused_not_unmasked() -> None:
    with pytest.raises(DataError, match="masked"):
        Trials.of([1, 0], np.ma.array([1.0, 2.0], mask=[True, False]))


def test_labels_of_arrays_are_checked() -> None:
    with pytest.raises(DataError, match="label must be 1"):
        Trials.of([1, 2])


# --- digest -----------------------------------------------------------------------------------------------------


def test_the_digest_is_of_the_content(trials: Trials) -> None:
    same = Trials.from_frame(trials.frame.select(sorted(trials.frame.columns)), trials.header)
    assert same.digest == trials.digest
    assert len(trials.digest) == 16
    others = [
        trials.put(score=pl.Series([2.0, -1.0, 0.5, 7.0])),
        trials.put(codec=pl.Series(["C01", "C01", "C02", "C03"])),
        trials.put(more=pl.Series(["x"] * 4)),
        trials.where(codec="C01"),
        trials.keep(pl.col("score") < 10),
    ]
    assert len({trials.digest, *(o.digest for o in others)}) == 6


def test_the_digest_of_files_is_of_their_bytes_in_any_order(trials: Trials) -> None:
    one, two = Source("a.tsv", "11" * 32), Source("b.tsv", "22" * 32)
    from_files = trials.retitle(sources=(one, two))
    assert from_files.digest == trials.retitle(sources=(two, one)).digest
    assert from_files.digest == from_files.where(codec="C01").digest
    assert from_files.digest != trials.digest
    assert from_files.digest != trials.retitle(sources=(one,)).digest
    renamed = dataclasses.replace(one, name="other.tsv")
    assert from_files.digest == trials.retitle(sources=(renamed, two)).digest


# --- views ------------------------------------------------------------------------------------------------------


def test_it_says_what_it_is(trials: Trials) -> None:
    assert repr(trials) == "Trials(4 trials, 2 bonafide, 2 spoof, llr scores, slices ['codec'])"


def test_hostile_text_is_escaped() -> None:
    evil = "<script>alert('x')</script>&\""
    made = Trials.of([1, 0], item=[evil, "b"], header=Header(positive=evil), **{evil: [evil, "y"]})
    page = made._repr_html_()
    assert "<script" not in page
    assert page.count("&lt;script&gt;") >= 4
    assert "alert('x')" not in page


def test_a_long_table_shows_its_head() -> None:
    page = Trials.of([1, 0] * 50)._repr_html_()
    assert page.count("<tr>") == 11


def test_pandas(trials: Trials) -> None:
    pandas = pytest.importorskip("pandas")
    table = trials.to_pandas()
    assert isinstance(table, pandas.DataFrame)
    assert table["codec"].tolist() == ["C01", "C01", "C02", "-"]
    assert table["score"].tolist() == trials.score.tolist()


# --- every way in checks as `read` does --------------------------------------------------------------------------

RAW, PROBABILITY = Header(), Header(score_kind="probability")


def _by_of(score: Any, header: Header = RAW, **columns: Any) -> Trials:
    return Trials.of([1, 0, 1], score, header=header, **columns)


def _by_frame(score: Any, header: Header = RAW, **columns: Any) -> Trials:
    rows = {"item": list("abc"), "label": [1, 0, 1], "score": score, **columns}
    return Trials.from_frame(pl.DataFrame(rows, strict=False), header)


def _by_itself(score: Any, header: Header = RAW, **columns: Any) -> Trials:
    rows = {"item": list("abc"), "target": ["x"] * 3, "label": [1, 0, 1], "score": score, **columns}
    return Trials(pl.DataFrame(rows, strict=False), header)


def _by_put(score: Any, header: Header = RAW, **columns: Any) -> Trials:
    put = {name: pl.Series(values, strict=False) for name, values in {"score": score, **columns}.items()}
    return Trials.of([1, 0, 1], [0.1, 0.2, 0.3], header=header).put(**put)


WAYS = [_by_of, _by_frame, _by_itself, _by_put]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("score", "header", "code"),
    [
        ([math.nan, 0.2, 0.3], Header(), "nan-score"),
        ([None, 0.2, 0.3], Header(), None),  # an array of floats holds None as NaN, a column as null
        ([0.1, 0.2, 1.7], PROBABILITY, "not-a-probability"),
        (["0.1", "0.2", "high"], Header(), "not-a-number"),
    ],
)
def test_scores_that_cannot_be_ranked_come_in_by_no_way(way: Any, score: Any, header: Header, code: str | None) -> None:
    with pytest.raises(DataError) as error:
        way(score, header)
    assert error.value.code in ({code} if code else {"nan-score", "empty-score"})


@pytest.mark.parametrize("way", WAYS)
def test_confidence_is_a_probability_or_missing(way: Any) -> None:
    with pytest.raises(DataError) as error:
        way([0.1, 0.2, 0.3], confidence=[0.5, 95.0, 0.5])
    assert error.value.code == "not-a-probability"
    assert way([0.1, 0.2, 0.3], confidence=[0.5, math.nan, None]).column("confidence").to_list() == [0.5, None, None]


def test_a_header_cannot_make_probabilities_of_other_scores() -> None:
    with pytest.raises(DataError) as error:
        Trials.of([1, 0], [2.0, -1.0]).retitle(score_kind="probability")
    assert error.value.code == "not-a-probability"


def test_masked_values_and_other_lengths_are_refused() -> None:
    masked = np.ma.masked_invalid([0.1, math.nan, 0.3])
    for columns in ({"score": masked}, {"confidence": masked}, {"decision": np.ma.masked_equal([1, 0, 1], 0)}):
        with pytest.raises(DataError) as error:
            Trials.of([1, 0, 1], **columns)
        assert error.value.code == "masked-value"
    for score in ([0.1, 0.2], [[0.1], [0.2], [0.3]]):
        with pytest.raises(DataError):
            _by_of(score)


def test_a_trial_that_failed_has_no_score_and_is_measured_by_nobody() -> None:
    failed = _by_frame([None, 0.2, 0.3], error=["timeout", "", ""])
    assert failed.column("score").to_list() == [None, 0.2, 0.3]
    with pytest.raises(DataError) as error:
        _ = failed.score
    assert error.value.code == "empty-score"
    assert failed.keep(pl.col("score").is_not_null()).score.tolist() == [0.2, 0.3]


def test_measuring_and_comparing_refuse_nan() -> None:
    rng = np.random.default_rng(5)
    label, score = rng.integers(0, 2, 100), rng.normal(size=100)
    holed = np.where(np.arange(100) < 10, np.nan, score)
    for ask in (
        lambda: hm.measure(Trials.of(label, holed), ["eer"]),
        lambda: hm.compare(Trials.of(label, score), Trials.of(label, holed), ["eer"]),
    ):
        with pytest.raises(DataError) as error:
            ask()
        assert error.value.code == "nan-score"


def test_what_is_no_trials_says_how_to_make_some() -> None:
    for wrong in (np.array([1, 0]), 3, None):
        for call in (lambda w: hm.measure(w, ["eer"]), lambda w: hm.compare(w, w, ["eer"])):
            with pytest.raises(UsageError) as error:
                call(wrong)
            assert error.value.code == "not-trials" and "hm.Trials.of(y, s)" in str(error.value)
    assert hm.measure(Trials.of([1, 0], [0.9, 0.1]), "eer").one("eer").value == 0.0


def test_the_hash_of_the_rows_is_that_of_their_bytes_in_one_order() -> None:
    """Written anew in plain Python, so that hashes in stored results stay valid: by id, then by slices, then by the rest."""
    rng = np.random.default_rng(3)
    n = 300
    rows = [
        (str(rng.integers(0, 120)), "en" if i < 150 else "tr", int(rng.integers(0, 2)), float(rng.integers(0, 3)))
        for i in range(n)
    ]
    for given in (rows, sorted(rows, key=lambda row: row[3]), rows[::-1]):
        item, language, label, score = zip(*given, strict=True)
        frame = {"item": item, "target": "x", "label": label, "score": score, "language": language}
        trials = Trials(pl.DataFrame(frame), Header("x", "y", slices=("language",)))
        sha = hashlib.sha256()
        ordered = sorted(rows)
        texts = {"item": 0, "language": 1}
        for name in ("item", "label", "language", "score", "target"):
            if name in texts:
                data = "\x1f".join(row[texts[name]] for row in ordered).encode()
            elif name == "target":
                data = "\x1f".join(["x"] * n).encode()
            else:
                data = np.array(
                    [row[2 if name == "label" else 3] for row in ordered], trials.frame[name].to_numpy().dtype
                )
                data = data.tobytes()
            sha.update(name.encode() + b"\x1e" + data + b"\x1e")
        assert trials.content == sha.hexdigest()
    assert trials.content != trials.keep(pl.int_range(pl.len()) > 0).content
