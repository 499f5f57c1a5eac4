"""What the door does when told to, and what it writes down about it."""

from __future__ import annotations

import io
import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from hitmiss.core import registry
from hitmiss.core.errors import DataError, UnknownName, UsageError
from hitmiss.core.header import Header
from hitmiss.core.trials import Trials
from hitmiss.io import examine, read, write_official_scores

SCORES = pl.DataFrame({"utt": ["a", "b", "c", "d"], "score": ["1.5", "-0.5", "nan", ""]})
KEY = pl.DataFrame({"utt": ["d", "c", "b", "a"], "key": ["spoof", "bonafide", "spoof", "bonafide"]})


def both(items: list[str], labels: list[str], scores: list[str], **more: list[str]) -> pl.DataFrame:
    return pl.DataFrame({"id": items, "label": labels, "score": scores, **more})


def test_nan_and_empty_scores_are_refused_dropped_or_made_the_worst() -> None:
    with pytest.raises(DataError, match=r"1 NaN score.*'c'.*on_nan='drop'.*1 empty score.*'d'"):
        read(SCORES, KEY)
    dropped = read(SCORES, KEY, on_nan="drop")
    assert (dropped.items, dropped.header.choices) == (["a", "b"], ("on-nan:drop(2)",))
    worst = read(SCORES, KEY, on_nan="worst")
    assert (worst.score.tolist(), worst.header.choices) == ([1.5, -0.5, -np.inf, np.inf], ("on-nan:worst(2)",))


def test_a_word_for_missing_is_an_empty_score_and_other_words_are_none_whatever_the_rule() -> None:
    for word in ("NA", "None", " null ", "n/a"):
        frame = both(["a", "b"], ["spoof", "bonafide"], [word, "1"])
        assert [f.kind for f in examine(frame).faults] == ["empty-score"]
        assert read(frame, on_nan="drop").items == ["b"]
    for word in ("-", "1_0", "np.float64(1.0)"):
        with pytest.raises(DataError, match="unreadable score"):
            read(both(["a", "b"], ["spoof", "bonafide"], [word, "1"]), on_nan="drop")


def test_identical_rows_merge_only_when_told() -> None:
    frame = both(["a", "b", "a", "b"], ["spoof", "bonafide"] * 2, ["1", "2", "1", "2.0"])
    with pytest.raises(DataError, match="dedupe=True"):
        read(frame)
    merged = read(frame, dedupe=True)
    assert (merged.items, merged.header.choices) == (["a", "b"], ("dedupe(2)",))


def test_rows_of_other_runs_are_not_merged() -> None:
    frame = both(
        ["a", "a", "a", "b", "b"], ["spoof"] * 3 + ["bonafide"] * 2, ["1"] * 5, model=["p", "q", "p", "p", "q"]
    )
    trials = read(frame, runs=("model",), dedupe=True)
    assert trials.frame.select("item", "model").rows() == [("a", "p"), ("a", "q"), ("b", "p"), ("b", "q")]


def test_repeats_on_both_sides_are_told_of_both() -> None:
    scores = pl.DataFrame({"id": ["a", "b", "b"], "score": [1.0, 2.0, 2.0]})
    key = pl.DataFrame({"id": ["a", "b", "b"], "label": ["spoof", "bonafide", "bonafide"]})
    assert {f.kind for f in examine(scores, key).faults} == {"duplicate-id", "duplicate-in-key"}


def test_places_are_right_after_rows_were_merged_and_left_out() -> None:
    scores = both(["x", "a", "a", "b"], ["spoof", "spoof", "spoof", "spoof"], ["1", "2", "2", "3"])
    key = pl.DataFrame({"id": ["a", "b", "c"], "key": ["spoof", "bonafide", "bonafide"]})
    faults = examine(scores, key, dedupe=True, allow_missing=True).faults
    assert [(f.kind, f.row) for f in faults] == [("label-conflict", 4)]


def test_rows_that_differ_are_never_merged() -> None:
    frame = both(["a", "b", "a"], ["spoof", "bonafide", "spoof"], ["1", "2", "3"])
    with pytest.raises(DataError) as caught:
        read(frame, dedupe=True)
    assert {fault.kind for fault in caught.value.faults} == {"conflicting-id"}
    assert [fault.row for fault in caught.value.faults] == [1, 3]


def test_a_key_may_repeat_a_row_only_when_told_and_never_contradict_itself() -> None:
    scores = pl.DataFrame({"id": ["a", "b"], "score": [1.0, 2.0]})
    twice = pl.DataFrame({"id": ["a", "b", "b"], "label": ["spoof", "bonafide", "bonafide"]})
    assert [f.kind for f in examine(scores, twice).faults] == ["duplicate-in-key"] * 2
    assert read(scores, twice, dedupe=True).header.choices == ("dedupe-key(1)",)
    against = pl.DataFrame({"id": ["a", "b", "b"], "label": ["spoof", "bonafide", "spoof"]})
    assert [f.kind for f in examine(scores, against, dedupe=True).faults] == ["both-labels"] * 2
    codecs = pl.DataFrame({"id": ["a", "b", "b"], "label": ["spoof", "bonafide", "bonafide"], "codec": ["1", "2", "3"]})
    assert [f.kind for f in examine(scores, codecs, dedupe=True).faults] == ["conflicting-in-key"] * 2


def test_labels_on_both_sides_must_agree() -> None:
    scores = both(["a", "b"], ["bonafide", "spoof"], ["1", "2"])
    assert read(scores, pl.DataFrame({"id": ["b", "a"], "key": ["spoof", "bonafide"]})).label.tolist() == [1, 0]
    with pytest.raises(DataError, match="1 row with another label than in the key"):
        read(scores, pl.DataFrame({"id": ["b", "a"], "key": ["bonafide", "bonafide"]}))


def test_slices_on_both_sides_must_agree() -> None:
    scores = pl.DataFrame({"id": ["a", "b"], "score": [1, 2], "codec": ["C1", "C2"]})
    key = pl.DataFrame({"id": ["a", "b"], "key": ["spoof", "bonafide"], "codec": ["C1", "C9"]})
    assert [(f.kind, f.value) for f in examine(scores, key).faults] == [("column-conflict", "C2")]
    assert read(scores, key, slices=()).header.slices == ()


def test_runs_of_a_long_file_must_each_be_complete() -> None:
    rows = [(item, model, "1.0") for model in ("m1", "m2") for item in ("a", "b", "c", "d")]
    frame = pl.DataFrame(rows, schema=["utt", "model", "score"], orient="row")
    trials = read(frame, KEY, runs=("model",))
    assert (len(trials), trials.header.runs) == (8, ("model",))
    with pytest.raises(DataError, match=r"1 id of the key without a score .id 'c'"):
        read(frame.filter(~((pl.col("model") == "m2") & (pl.col("utt") == "c"))), KEY, runs=("model",))
    assert read(frame, KEY).header.runs == ("model",), "its name and the repeated ids say that it names runs"
    with pytest.raises(DataError, match=r"differing rows.* They differ in config: .* runs=.'config'."):
        read(frame.rename({"model": "config"}), KEY)


def test_runs_that_share_the_items_between_them_are_each_incomplete() -> None:
    frame = KEY.select("utt").with_columns(
        model=pl.Series(["m1", "m1", "m2", "m2"]), score=pl.Series([1.0, 2.0, 3.0, 4.0])
    )
    with pytest.raises(DataError, match="4 ids of the key without a score"):
        read(frame, KEY, runs=("model",))


def test_targets_on_one_side_only_are_refused_where_items_repeat() -> None:
    key = pl.DataFrame({"item": ["a", "a"], "target": ["MI", "CD"], "label": ["positive", "negative"]})
    scores = key.select("item", "target").with_columns(score=pl.Series([0.5, 0.25]))
    assert read(scores.reverse(), key).label.tolist() == [0, 1]
    with pytest.raises(DataError, match="no column for the target"):
        read(scores.head(1).drop("target"), key)
    with pytest.raises(DataError, match="no column for the target"):
        read(scores, key.head(1).drop("target"))


def test_missing_ids_are_listed_on_both_sides_and_coverage_is_written_down() -> None:
    scores = pl.DataFrame({"utt": ["a", "b", "x"], "score": [1.0, 2.0, 3.0]})
    with pytest.raises(DataError, match=r"2 ids of the key without a score .*'d', 'c'.*; also 1 scored id.*'x'"):
        read(scores, KEY)
    trials = read(scores, KEY, allow_missing=True)
    assert (trials.items, trials.header.coverage) == (["a", "b"], (2, 4))
    assert trials.header.choices == ("coverage:2/4", "unlisted:1")


def test_files_that_share_no_id_are_refused_even_then() -> None:
    with pytest.raises(DataError, match="no id is in both files"):
        read(pl.DataFrame({"utt": ["p", "q"], "score": [1.0, 2.0]}), KEY, allow_missing=True)


@pytest.mark.parametrize(
    ("change", "hint"),
    [
        (lambda i: f" {i} ", "spaces around them"),
        (str.upper, "regard to case"),
        (lambda i: f"flac/{i}", "folder"),
        (lambda i: f"{i}.flac", "file suffix"),
        (lambda i: f"x/{i}.wav", "folder and file suffix"),
    ],
)
def test_ids_that_nearly_match_come_with_what_they_differ_in(change: object, hint: str) -> None:
    scores = pl.DataFrame({"utt": ["a", *(change(i) for i in "bcd")], "score": [1.0, 2.0, 3.0, 4.0]})  # type: ignore[operator]
    with pytest.raises(DataError, match=f"3 would match .*{hint}"):
        read(scores, KEY)


def test_ids_are_text_and_stay_so(tmp_path: Path) -> None:
    items = ["0001", "1", "1.0", "NA", "None", "-", "null", "1e3", "\u00e9", "e\u0301", " a", "a"]
    rows = [f"{item},{('bonafide', 'spoof')[n % 2]},{n}" for n, item in enumerate(items)]
    path = tmp_path / "s.csv"
    path.write_text("\n".join(["id,label,score", *rows]), encoding="utf-8")
    assert read(path).items == items


def test_higher_can_mean_the_negative_class() -> None:
    frame = both(["a", "b"], ["spoof", "bonafide"], ["0.75", "0.25"])
    turned = read(frame, higher="spoof")
    assert turned.score.tolist() == [-0.75, -0.25]
    assert "higher:spoof" in turned.header.choices
    assert any("reversed" in note for note in turned.header.notes)
    assert read(frame, higher="spoof", score_kind="probability").score.tolist() == [0.25, 0.75]
    assert read(frame, higher="bonafide").header.choices == ()
    with pytest.raises(UnknownName):
        read(frame, higher="toxic")


def test_turning_probabilities_says_what_rounding_ties() -> None:
    frame = both(["a", "b", "c"], ["spoof", "bonafide", "spoof"], ["1e-20", "2e-20", "0.5"])
    notes = read(frame, higher="spoof", score_kind="probability").header.notes
    assert any("1 distinct scores became equal" in note for note in notes)


@pytest.mark.parametrize("wrong", ["1.0000001", "-1e-9", "inf"])
def test_probabilities_lie_between_0_and_1(wrong: str) -> None:
    frame = both(["a", "b"], ["spoof", "bonafide"], [wrong, "0.5"])
    assert read(frame).score[0] == float(wrong)
    assert [f.kind for f in examine(frame, score_kind="probability").faults] == ["not-a-probability"]


def test_oddities_are_noted_and_do_not_stop() -> None:
    labels = ["spoof", "bonafide"] * 10
    items = [str(i) for i in range(20)]
    constant = read(both(items, labels, ["0.5"] * 20))
    assert any("all 20 scores are 0.5" in n for n in constant.header.notes)
    one = read(both(items, ["spoof"] * 20, [str(i) for i in range(20)]))
    assert any("all 20 trials are spoof" in n for n in one.header.notes)
    infinite = read(both(items, labels, ["inf", "-Infinity", *items[2:]]))
    assert any("2 scores are infinite" in n for n in infinite.header.notes)
    tied = read(both(items, labels, ["1.0"] * 5 + ["0"] * 5 + ["0.5", "0.25"] * 5), score_kind="probability")
    assert any("50.0% of the probabilities" in n for n in tied.header.notes)


def test_numbers_and_answers_have_their_types() -> None:
    frame = both(
        ["a", "b", "c"],
        ["0", "1", "1"],
        ["0.1", "0.2", "0.3"],
        y_pred=["0", "abstain", "1"],
        confidence=["0.5", "", "1"],
    )
    frame = frame.with_columns(seconds=pl.Series(["1.5", "-", "2"]))
    trials = read(frame, positive="toxic", positive_value="1", numbers=("seconds",))
    assert trials.frame["decision"].to_list() == [0, -1, 1]
    assert trials.frame["confidence"].to_list() == [0.5, None, 1.0]
    assert trials.frame["seconds"].to_list() == [1.5, None, 2.0]
    bad = frame.with_columns(confidence=pl.Series(["0.5", "7", "1"]), y_pred=pl.Series(["0", "2", "1"]))
    kinds = {f.kind for f in examine(bad, positive="toxic", positive_value="1").faults}
    assert kinds == {"not-a-probability", "unknown-decision"}


def test_shards_are_one_run(tmp_path: Path) -> None:
    for i, item in enumerate("abcd"):
        (tmp_path / f"part{i}.tsv").write_text(f"filename\tcm-score\n{item}\t{i}\n")
    trials = read(str(tmp_path / "part*.tsv"), KEY)
    assert trials.items == list("abcd")
    listed = read([tmp_path / "part1.tsv", tmp_path / "part0.tsv"], KEY, allow_missing=True)
    assert listed.items == ["b", "a"]
    (tmp_path / "part4.tsv").write_text("filename\tcm-score\nb\t9\n")
    with pytest.raises(DataError) as caught:
        read(str(tmp_path / "part*.tsv"), KEY)
    assert [(f.file, f.row) for f in caught.value.faults] == [("part1.tsv", 2), ("part4.tsv", 2)]
    (tmp_path / "part4.tsv").write_text("filename\tcm-score\tseed\nb\t9\t1\n")
    with pytest.raises(DataError, match=r"its columns differ from those of part0\.tsv"):
        read(str(tmp_path / "part*.tsv"), KEY)


def test_stdin_is_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    class Stdin:
        buffer = io.BytesIO(b"a 1\nb 2\nc 3\nd 4\n")

    monkeypatch.setattr("sys.stdin", Stdin)
    trials = read("-", KEY)
    assert trials.score.tolist() == [1.0, 2.0, 3.0, 4.0]


def test_files_that_are_not_there_are_said_to_be_missing(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read(tmp_path / "none.tsv")
    with pytest.raises(UsageError, match="no file matches"):
        read(str(tmp_path / "*.tsv"))
    with pytest.raises(UsageError, match="no file was given"):
        read([])
    with pytest.raises(UsageError, match="of the type int"):
        read(3)


def test_a_source_in_memory_makes_the_digest_cover_the_columns() -> None:
    scores = SCORES.filter(pl.col("score").is_in(["1.5", "-0.5"]))
    one = read(scores, KEY, allow_missing=True)
    other = read(scores.with_columns(score=pl.Series(["1.5", "-0.25"])), KEY, allow_missing=True)
    assert one.header.sources == ()
    assert one.digest != other.digest


def test_a_key_in_memory_changes_the_digest_too(tmp_path: Path) -> None:
    path = tmp_path / "s.tsv"
    path.write_text("a 1\nb 2\n")
    keys = [
        pl.DataFrame({"id": ["a", "b"], "label": labels}) for labels in (["bonafide", "spoof"], ["spoof", "bonafide"])
    ]
    assert read(path, keys[0]).digest != read(path, keys[1]).digest


def test_headers_can_be_written_as_json(tmp_path: Path) -> None:
    path = tmp_path / "s.csv"
    path.write_text("id,label,score\na,spoof,1\nb,bonafide,2\n")
    assert json.loads(json.dumps(dict(read(path).header.provenance)))["files"][0]["layout"] == "table"


def test_a_plugin_reader_makes_frames_of_files(tmp_path: Path) -> None:
    def odd(path: Path) -> pl.DataFrame:
        """Reader of the test."""
        rows = [line.split("=>") for line in Path(path).read_text().split()]
        return pl.DataFrame(rows, schema=["item", "score"], orient="row")

    registry.add("reader", "odd-format", odd)
    try:
        path = tmp_path / "s.odd"
        path.write_text("a=>1\nb=>2\nc=>3\nd=>4\n")
        trials = read(path, KEY, layout="odd-format")
        assert trials.score.tolist() == [1.0, 2.0, 3.0, 4.0]
        assert trials.header.provenance["files"][0]["encoding"] == "reader odd-format"
    finally:
        registry.forget("odd-format", "reader")


def test_official_scores_round_trip_to_the_last_bit(tmp_path: Path) -> None:
    scores = [0.1, 1 / 3, -2.5e-308, 1.7976931348623157e308, float("inf"), -0.0, 123456789.12345679]
    items = [f"E_{i}" for i in range(7)]
    trials = Trials.of([1, 0, 1, 0, 1, 0, 1], scores, item=items, header=Header(positive="bonafide", negative="spoof"))
    write_official_scores(trials, tmp_path / "s.tsv")
    text = (tmp_path / "s.tsv").read_bytes().decode()
    assert text.startswith("filename\tcm-score\nE_0\t0.1\n")
    key = pl.DataFrame({"filename": items, "cm-label": ["bonafide", "spoof"] * 3 + ["bonafide"]})
    again = read(tmp_path / "s.tsv", key)
    assert again.score.tobytes() == np.array(scores).tobytes()
    assert again.header.provenance["files"][0]["layout"] == "cm-scores"


def test_official_scores_refuse_what_the_format_cannot_say(tmp_path: Path) -> None:
    path = tmp_path / "s.tsv"
    with pytest.raises(UsageError, match="higher score means bonafide"):
        write_official_scores(Trials.of([1, 0], [1, 2], header=Header(positive="spoof", negative="bonafide")), path)
    with pytest.raises(DataError, match="this format cannot write"):
        write_official_scores(Trials.of([1, 0], [1, 2], item=["a\tb", "c"]), path)
    two = Trials.of([1, 1], [1, 2], item=["a", "a"], header=Header(runs=("system",)), system=["p", "q"])
    with pytest.raises(UsageError, match="each id once"):
        write_official_scores(two, path)
    assert not path.exists()


def test_escapes_are_seen_and_not_obeyed() -> None:
    items = ["\x1b[2J", "\u202egnp", "x"]
    with pytest.raises(DataError) as caught:
        read(both(items, ["spoof", "bonafide", "\x1b]0;own\x07"], ["nan", "nan", "1"]))
    shown = str(caught.value) + "".join(map(str, caught.value.faults))
    assert not {"\x1b", "\u202e", "\x07"} & set(shown)
    assert r"\x1b[2J" in shown
    assert r"\u202egnp" in shown


@pytest.mark.parametrize("end", ["", "\n"])
@pytest.mark.parametrize("long_at", [0, 3], ids=["first", "last"])
def test_a_row_too_long_is_refused_though_another_is_too_short(tmp_path: Path, long_at: int, end: str) -> None:
    rows = ["a,spoof,0.1,C1", "b,bonafide,0.9,", "c,bonafide,0.8", "d,spoof,0.3,C2"]
    rows[long_at] += ","
    path = tmp_path / "scores.csv"
    path.write_text("\n".join(["utt,key,score,codec", *rows]) + end)
    with pytest.raises(DataError) as refused:
        read(path)
    assert [fault.row for fault in refused.value.faults] == sorted([2 + long_at, 4])
