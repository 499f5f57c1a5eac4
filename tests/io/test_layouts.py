"""Files of the field are recognised as what they are, and files that could be two things are refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from hitmiss.core.design import Design
from hitmiss.core.errors import DataError, UnknownName, UsageError, in_python
from hitmiss.core.protocol import Gap
from hitmiss.core.registry import all_of
from hitmiss.evaluation.protocol import measure_trials, read_side
from hitmiss.io import ReadSpec, examine, read

PROTOCOL = [
    "E_1607 E_01 M C05 2 E_0009486171 AC1 A26 spoof -",
    "D_0062 E_02 F - - - - bonafide bonafide -",
    "D_0063 E_03 F - 0 - AC1 A11 spoof -",
]
SCORES = "filename\tcm-score\nE_01\t-1.5\nE_02\t2.25\nE_03\t0.5\n"
EXPECTED = {"E_01": (0, -1.5), "E_02": (1, 2.25), "E_03": (0, 0.5)}


def save(folder: Path, text: str, name: str = "s.tsv") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def layouts(trials: object) -> list[str]:
    return [file["layout"] for file in trials.header.provenance["files"]]  # type: ignore[attr-defined]


KEYS = {
    "asvspoof5-protocol": "\n".join(PROTOCOL),
    "cm-key": "filename\tcm-label\nE_03\tspoof\nE_01\tspoof\nE_02\tbonafide\n",
    "evaluation-full-key": "trial_anon cm-label attack_anon codec tar_spk_anon asv-label track_2_tag\n"
    "E_01 spoof A26 C05 T1 spoof -\nE_02 bonafide bonafide - T2 target -\nE_03 spoof A11 - T1 spoof -\n",
    "asvspoof5-protocol with header": "SPEAKER_ID,FLAC_FILE_NAME,SPEAKER_GENDER,CODEC,CODEC_Q,CODEC_SEED,ATTACK_TAG,"
    "ATTACK_LABEL,KEY,TMP\n" + "\n".join(row.replace(" ", ",") for row in PROTOCOL),
    "asvspoof2019-protocol": "LA_1 E_01 - A07 spoof\nLA_2 E_02 - - bonafide\nLA_1 E_03 - A08 spoof\n",
    "asvspoof2021-key": "LA_1 E_01 alaw ita A07 spoof notrim eval\nLA_2 E_02 none - - bonafide notrim eval\n"
    "LA_1 E_03 alaw ita A08 spoof notrim progress\n",
    "item-label": "E_01 spoof\nE_02 bonafide\nE_03 spoof\n",
    "table": "Utterance;Y_True\nE_01;spoof\nE_02;bonafide\nE_03;spoof\n",
}


@pytest.mark.parametrize("layout", KEYS)
def test_keys(tmp_path: Path, layout: str) -> None:
    trials = read(save(tmp_path, SCORES), save(tmp_path, KEYS[layout], "key"))
    assert layouts(trials) == ["cm-scores", layout]
    assert {i: (y, s) for i, y, s in trials.frame.select("item", "label", "score").iter_rows()} == EXPECTED


SINGLE = {
    "speaker-item-score-label": "S1 E_01 -1.5 spoof\nS2 E_02 2.25 bonafide\nS1 E_03 .5 spoof\n",
    "item-attack-label-score": "E_01 A07 spoof -1.5\nE_02 - bonafide 2.25\nE_03 A08 spoof 5e-1\n",
    "item-score-label": "E_01,-1.5,spoof\nE_02,2.25,bonafide\nE_03,0.5,spoof\n",
    "item-label-score": "E_01\tspoof\t-1.5\nE_02\tbonafide\t2.25\nE_03\tspoof\t0.5\n",
    "table": "LLR,key,File\n-1.5,spoof,E_01\n2.25,bonafide,E_02\n0.5,spoof,E_03\n",
}


@pytest.mark.parametrize("layout", SINGLE)
def test_single_files(tmp_path: Path, layout: str) -> None:
    trials = read(save(tmp_path, SINGLE[layout]))
    assert layouts(trials) == [layout]
    assert {i: (y, s) for i, y, s in trials.frame.select("item", "label", "score").iter_rows()} == EXPECTED


def test_headerless_scores_join_whatever_the_order(tmp_path: Path) -> None:
    trials = read(save(tmp_path, "E_03 0.5\nE_01 -1.5\nE_02 2.25\n"), save(tmp_path, KEYS["cm-key"], "k"))
    assert trials.items == ["E_03", "E_01", "E_02"]
    assert trials.label.tolist() == [0, 0, 1]


def test_files_without_ids_are_read_numbered_and_called_unpaired(tmp_path: Path) -> None:
    path = save(tmp_path, "- - real 0.85\n- - fake 0.23\n- - real 0.85\n")
    trials = read(path, positive="real")
    assert (trials.items, trials.label.tolist(), trials.header.positive) == (["1", "2", "3"], [1, 0, 1], "real")
    assert layouts(trials) == ["unpaired"]
    assert any("unpaired" in note for note in trials.header.notes)
    with pytest.raises(DataError, match="no column is the item"):
        read(path, save(tmp_path, KEYS["cm-key"], "k"))


def test_protocol_columns_are_text_and_renamed_values_are_declared(tmp_path: Path) -> None:
    none = {"-": "NONE", "0": "NONE"}
    trials = read(
        save(tmp_path, SCORES), save(tmp_path, KEYS["asvspoof5-protocol"], "k"), rename={"codec": none, "codec_q": none}
    )
    assert trials.header.slices == (
        "speaker",
        "gender",
        "codec",
        "codec_q",
        "codec_seed",
        "attack_tag",
        "attack",
        "tmp",
    )
    assert trials.frame["codec"].to_list() == ["C05", "NONE", "NONE"]
    assert trials.frame["codec_q"].to_list() == ["2", "NONE", "NONE"]
    assert trials.frame["codec_seed"].to_list() == ["E_0009486171", "-", "-"]


SASV = "spk\tfilename\tcm-score\tasv-score\tsasv-score\nT1\tE_01\t1\t2\t3\nT2\tE_01\t1\t-2\t-1\nT1\tE_02\t-4\t-\t-3\n"
SASV_KEY = "spk\tfilename\tcm-label\tasv-label\nT1\tE_01\tbonafide\ttarget\nT2\tE_01\tbonafide\tnontarget\nT1\tE_02\tspoof\tspoof\n"


def test_track_two_is_about_the_claimed_speaker(tmp_path: Path) -> None:
    trials = read(save(tmp_path, SASV), save(tmp_path, SASV_KEY, "k"))
    assert layouts(trials) == ["sasv-scores", "sasv-key"]
    assert (trials.header.positive, trials.label.tolist(), trials.score.tolist()) == (
        "target",
        [1, 0, 0],
        [3.0, -1.0, -3.0],
    )
    assert trials.frame["target"].to_list() == ["T1", "T2", "T1"]
    assert trials.frame["label_word"].to_list() == ["target", "nontarget", "spoof"]
    assert trials.frame["asv_score"].to_list() == [2.0, -2.0, None]


def test_track_two_asked_about_spoofing(tmp_path: Path) -> None:
    trials = read(save(tmp_path, SASV), save(tmp_path, SASV_KEY, "k"), positive="bonafide")
    assert (trials.label.tolist(), trials.score.tolist()) == ([1, 1, 0], [1.0, 1.0, -4.0])


@pytest.mark.parametrize(
    ("text", "kind", "flag"),
    [
        ("id,file,label,score\na,b,spoof,1\n", "ambiguous-column", "--column item=id"),
        ("id,label,key,score\na,spoof,spoof,1\n", "ambiguous-column", "--column label=label"),
        ("id,label,score,llr\na,spoof,1,1\n", "ambiguous-column", "--column score=score"),
        ("id,label,label,score\na,spoof,spoof,1\n", "ambiguous-column", "name of its own"),
        ("id,label,score,Score\na,spoof,1,2\n", "ambiguous-column", "--column score=score"),
        ("id,label,LABEL,score\na,spoof,bonafide,1\n", "ambiguous-column", "--column label=label"),
        ("id,Id,label,score\na,b,spoof,1\n", "ambiguous-column", "--column item=id"),
        ("id,label,system\na,spoof,1\n", "missing-column", "--column score=NAME"),
        ("id,kind,score\na,spoof,1\n", "missing-column", "--column label=NAME"),
        ("a b c d e f g\n1 2 3 4 5 6 x\n", "missing-column", "--column"),
        ("E_01 0.5 1\nE_02 0.5 0\n", "missing-column", "--column"),
    ],
)
def test_what_could_be_two_things_is_refused_and_the_option_named(
    tmp_path: Path, text: str, kind: str, flag: str
) -> None:
    with pytest.raises(DataError) as caught:
        read(save(tmp_path, text))
    assert caught.value.faults[0].kind == kind
    assert in_python(flag) in str(caught.value)


def test_declared_columns_come_first(tmp_path: Path) -> None:
    text = "id,file,truth,label,a,b\n1,x,spoof,zzz,1,-1\n2,y,bonafide,zzz,2,-2\n"
    trials = read(save(tmp_path, text), columns={"item": "file", "label": "truth", "score": "b"}, slices=("id",))
    assert (trials.items, trials.score.tolist(), trials.header.slices) == (["x", "y"], [-1.0, -2.0], ("id",))
    with pytest.raises(DataError, match="no column 'trut'; did you mean 'truth'"):
        read(save(tmp_path, text), columns={"item": "file", "label": "trut", "score": "b"})


def test_positions_name_columns_where_there_is_no_header(tmp_path: Path) -> None:
    path = save(tmp_path, "0.5 x E_01 spoof\n0.7 y E_02 bonafide\n")
    trials = read(path, columns={"score": "1", "item": "column_3", "label": "4"})
    assert (trials.items, trials.score.tolist(), trials.header.slices) == (["E_01", "E_02"], [0.5, 0.7], ("column_2",))
    with pytest.raises(DataError, match="from 1 to 4"):
        read(path, columns={"score": "5"})


def test_a_header_of_unknown_names_is_still_a_header(tmp_path: Path) -> None:
    path = save(tmp_path, "info,2nd,out\nE_01,spoof,0.5\nE_02,bonafide,0.7\n")
    with pytest.raises(DataError, match=r"there are 'info', '2nd', 'out'"):
        read(path)
    assert read(path, columns={"item": "info", "label": "2nd", "score": "out"}).score.tolist() == [0.5, 0.7]


def test_a_protocol_that_begins_with_an_uncoded_row_has_no_header(tmp_path: Path) -> None:
    key = save(tmp_path, "\n".join([PROTOCOL[1], PROTOCOL[0], PROTOCOL[2]]), "k")
    assert read(save(tmp_path, SCORES), key).n_positive == 1


def test_several_systems_in_one_file_become_runs(tmp_path: Path) -> None:
    path = save(tmp_path, "file,key,codec,a,b\nx,spoof,C1,1,-1\ny,bonafide,C2,2,-2\n")
    trials = read(path, score_columns=("a", "b"))
    assert trials.header.runs == ("system",)
    assert trials.header.slices == ("codec",)
    assert trials.where(system="b").score.tolist() == [-1.0, -2.0]
    assert len(trials) == 4


def test_a_forced_layout_overrules_recognition(tmp_path: Path) -> None:
    path = save(tmp_path, "real 1 spoof\nfake 2 bonafide\n")
    assert read(path, layout="item-score-label").items == ["real", "fake"]
    with pytest.raises(UnknownName, match="item-score"):
        read(path, layout="item-scor")
    with pytest.raises(DataError, match="has 10 columns"):
        read(path, save(tmp_path, "a b", "k"), layout="asvspoof5-protocol", columns={"score": "2", "item": "1"})


def test_missing_slices_are_noted_missing_runs_refused(tmp_path: Path) -> None:
    path = save(tmp_path, SINGLE["table"])
    assert any("codec" in note for note in read(path, slices=("codec",)).header.notes)
    with pytest.raises(DataError, match="no column 'model'"):
        read(path, runs=("model",))


def test_every_layout_is_listed_as_a_reader() -> None:
    assert {"cm-scores", "asvspoof5-protocol", "unpaired", "table"} <= set(all_of("reader"))


def test_options_refuse_what_they_do_not_know() -> None:
    with pytest.raises(UnknownName, match="did you mean 'dedupe'"):
        ReadSpec().changed(dedup=True)
    for wrong in ({"on_nan": "skip"}, {"score_kind": "odds"}, {"separator": "ab"}, {"decimal": "'"}):
        with pytest.raises(UsageError):
            ReadSpec().changed(**wrong)


def test_examine_tells_what_was_recognised(tmp_path: Path) -> None:
    seen = examine(save(tmp_path, SCORES), save(tmp_path, KEYS["asvspoof5-protocol"], "k"))
    assert seen.is_clean
    assert seen.summary["classes"] == {"bonafide": 1, "spoof": 2}
    assert seen.summary["slices"]["codec"]["commonest"] == {"-": 2, "C05": 1}
    assert seen.summary["files"][1]["columns"]["label"] == "column_9"


WHOLE_KEY = "utt codec speaker label\na C1 s1 bonafide\nb C2 s1 spoof\nc C1 s2 bonafide\nd C2 s2 spoof\n"
WHOLE_SCORES = "utt,score\na,2\nb,-1\nc,0.5\nd,1\n"


def test_columns_that_nobody_asks_for_are_not_read_and_change_no_figure(tmp_path: Path) -> None:
    scores, key = tmp_path / "s.csv", tmp_path / "k.txt"
    scores.write_text(WHOLE_SCORES)
    key.write_text(WHOLE_KEY)
    spec = ReadSpec(positive="bonafide")
    for design, slices in (
        (Design.of(["eer", "roc_auc"], by="codec"), ("codec",)),
        (Design.of(["eer"], unit="speaker", bootstrap=20), ("speaker",)),
        (Design.of(["eer"], bootstrap=20), ("speaker",)),  # a warning says that speakers repeat
        (Design.of(["eer"], gap=Gap("codec", ("C1",))), ("codec",)),
    ):
        part = read_side([scores], key, spec, design, is_whole=False)
        whole = read_side([scores], key, spec, design)
        assert part.header.slices == slices
        assert set(whole.header.slices) == {"codec", "speaker"}
        made, expected = measure_trials(part, design), measure_trials(whole, design)
        assert made.estimates == expected.estimates
        assert made.warnings == expected.warnings
        assert made.signature == expected.signature


def test_words_that_repeat_are_read_as_codes_and_change_no_figure(tmp_path: Path) -> None:
    n = 400
    scores, key, both = tmp_path / "s.tsv", tmp_path / "k.txt", tmp_path / "both.csv"
    rows = [
        (
            f"u{i}",
            "C9" if i == n - 2 else f"C{i % 3}",
            f"s{i % 40}",
            ("bonafide", "spoof", "fake")[i * 5 % 7 % 3],
            i * 7 % 31,
        )
        for i in range(n)
    ]
    key.write_text("".join(f"{item} {codec} {who} {label} x\n" for item, codec, who, label, _ in rows))
    key.write_text("utt codec speaker label last\n" + key.read_text())
    turned = [*rows[n // 2 :], *rows[: n // 2]]  # in another order than the key
    both.write_text("utt,score,codec,label\n" + "".join(f"{r[0]},{r[4]},{r[1]},{r[3]}\n" for r in rows))
    for order, extra in ((rows, ""), (turned, ""), (turned, "speaker")):
        lines = [f"{r[0]}\t{r[4]}" + (f"\t{r[2]}" if extra else "") for r in order]
        scores.write_text("\n".join(["\t".join(filter(None, ("utt", "score", extra))), *lines]) + "\n")
        for spec in (
            ReadSpec(positive="bonafide"),
            ReadSpec(positive="bonafide", rename={"codec": {"C1": "one", "C9": "C2"}}),
            ReadSpec(positive="bonafide", where={"codec": ("C0", "C9")}),
        ):
            for design in (
                Design.of(["eer", "roc_auc"], by="codec"),
                Design.of(["eer"], by="label_word"),
                Design.of(["eer"], unit="speaker", bootstrap=20),
            ):
                for files in ((scores, key), (both, None)):
                    if files[1] is None and design.unit:
                        continue
                    part = read_side([files[0]], files[1], spec, design, is_whole=False)
                    whole = read_side([files[0]], files[1], spec, design)
                    made, expected = measure_trials(part, design), measure_trials(whole, design)
                    assert made.estimates == expected.estimates
                    assert made.warnings == expected.warnings
                    assert made.signature == expected.signature
    both.write_text(
        both.read_text().replace(f"u{n - 2},{rows[-2][4]},C9", f"u{n - 2},{rows[-2][4]},")
    )  # an empty codec
    design = Design.of(["eer", "roc_auc"], by="codec")
    part, whole = (read_side([both], None, ReadSpec(positive="bonafide"), design, is_whole=w) for w in (False, True))
    assert measure_trials(part, design).estimates == measure_trials(whole, design).estimates
    assert "" in {e.slice.get("codec") for e in measure_trials(part, design)}
    key.write_text(key.read_text().replace("u399 C0 s39 bonafide", "u399 C0 s39 bonafied"))
    with pytest.raises(DataError) as refused:
        read_side([scores], key, ReadSpec(positive="bonafide"), Design.of(["eer"]), is_whole=False)
    assert [(f.kind, f.row, f.value) for f in refused.value.faults] == [("unknown-label", n + 1, "bonafied")]


def test_a_missing_column_is_refused_with_all_that_there_are(tmp_path: Path) -> None:
    scores, key = tmp_path / "s.csv", tmp_path / "k.txt"
    scores.write_text(WHOLE_SCORES)
    key.write_text(WHOLE_KEY)
    design = Design.of(["eer"], by="language")
    part = read_side([scores], key, ReadSpec(positive="bonafide"), design, is_whole=False)
    with pytest.raises(UnknownName) as refused:
        measure_trials(part, design)
    assert "Known: codec, speaker" in str(refused.value)


@pytest.mark.parametrize(
    ("scores", "key", "code"),
    [
        ("utt,score,speaker\na,2,s1\nb,-1,s9\nc,0.5,s2\nd,1,s2\n", WHOLE_KEY, "column-conflict"),
        (WHOLE_SCORES, WHOLE_KEY + "d C2 s3 spoof\n", "conflicting-in-key"),
        (WHOLE_SCORES, WHOLE_KEY + "d C2 s2 spoof\n", "duplicate-in-key"),
        (WHOLE_SCORES, WHOLE_KEY.replace("d C2 s2 spoof", "d C2 s2"), "ragged-row"),
    ],
)
def test_a_column_that_is_not_used_is_still_checked(tmp_path: Path, scores: str, key: str, code: str) -> None:
    (tmp_path / "s.csv").write_text(scores)
    (tmp_path / "k.txt").write_text(key)
    files, spec = ([tmp_path / "s.csv"], tmp_path / "k.txt"), ReadSpec(positive="bonafide")
    for is_whole in (True, False):
        with pytest.raises(DataError) as refused:
            read_side(*files, spec, Design.of(["eer"]), is_whole=is_whole)
        assert next(fault.kind for fault in refused.value.faults) == code
