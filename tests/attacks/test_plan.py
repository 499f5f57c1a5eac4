"""Codec plans, and the rows and transforms that come of them."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from hitmiss.attacks.codec_plan import UNCODED, parse_conditions, read_codec_plan, usable
from hitmiss.attacks.conditions import CodedRows, ManipulatedRows
from hitmiss.core.errors import DataError, UnknownName, UsageError
from hitmiss.io.manifest import Manifest
from hitmiss.media.audio import Clip

PLAN = "codec\tname\tsample_rate\tq1\tq2\tunit\tnote\nC05\tmp3_wb\t16000\t16\t24\tkbps\t\nX01\tg711_ulaw\t8000\t64\t\tkbps\t\n"
CLIP: Clip = (0.1 * np.random.default_rng(0).standard_normal(8000)).astype(np.float32)


def write(folder: Path, text: str = PLAN) -> Path:
    path = folder / "plan.tsv"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_plan_gives_its_conditions_in_order(tmp_path: Path) -> None:
    conditions = read_codec_plan(write(tmp_path))
    assert [str(c) for c in conditions] == ["C05-q1", "C05-q2", "X01-q1"]
    assert conditions[1].columns == {"codec": "C05", "codec_q": "2"}
    assert conditions[1].codec is not None and conditions[1].codec.rate_of(2) == 24
    assert [str(c) for c in read_codec_plan(tmp_path / "plan.tsv", qualities=[2])] == ["C05-q2"]


def test_words_give_conditions() -> None:
    assert [str(c) for c in parse_conditions("mp3:1+5, gsm")] == ["C05-q1", "C05-q5", "X02-q1"]
    assert len(parse_conditions("opus")) == 5
    for bad, error in {"": UsageError, "mp3:9": UsageError, "mp3:best": UsageError, "opsu": UnknownName}.items():
        with pytest.raises(error):
            parse_conditions(bad)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a\tb\n1\t2\n", "not a codec plan"),
        (PLAN.replace("mp3_wb", "mp4_wb"), "did you mean 'mp3_wb'"),
        (PLAN.replace("\t24\t", "\ttwo\t"), "row 2"),
        (PLAN.replace("X01", "C05"), "twice"),
    ],
)
def test_a_wrong_plan_is_refused(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises((DataError, UnknownName), match=says):
        read_codec_plan(write(tmp_path, text))


def test_what_the_machine_lacks_is_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hitmiss.attacks.codec_engines._program_encoders", lambda: frozenset())
    conditions, missing = usable([UNCODED, *parse_conditions("speex:1,gsm,amr-wb:1")])
    assert [str(c) for c in conditions] == ["NONE", "X02-q1"]
    assert set(missing) == {"speex_wb", "amr_wb"} and all("ffmpeg" in why for why in missing.values())


def test_rows_are_crossed_and_each_clip_goes_its_way() -> None:
    coded = CodedRows(parse_conditions("gsm,ulaw"))
    manifest = Manifest(pl.DataFrame({"item": ["a", "b"], "file": ["a.wav", "b.wav"]})).crossed(coded.columns)
    assert len(manifest) == 6
    rows = [manifest.row(i) for i in range(6)]
    assert {row["codec"] for row in rows} == {"NONE", "X01", "X02"} and {row["source"] for row in rows} == {"a", "b"}
    outs = {row["codec"]: coded(CLIP, row) for row in rows}
    assert np.array_equal(outs["NONE"], CLIP)
    assert not np.array_equal(outs["X01"], outs["X02"]) and all(len(out) == len(CLIP) for out in outs.values())
    with pytest.raises(UnknownName):
        coded(CLIP, {"codec": "C99", "codec_q": "1"})


def row(item: str, label: str, manipulation: str) -> dict[str, str]:
    return {"item": f"{item}@{manipulation}", "source": item, "label": label, "manipulation": manipulation}


def test_manipulations_touch_only_the_class_that_they_should() -> None:
    both = ManipulatedRows(["gain(db=6)"])
    fakes = ManipulatedRows(["gain(db=6)"], only="fake")
    for label in ("real", "fake"):
        assert np.array_equal(both(CLIP, row("a", label, "clean")), CLIP)
        assert not np.array_equal(both(CLIP, row("a", label, "gain(db=6)")), CLIP)
    assert np.array_equal(fakes(CLIP, row("a", "real", "gain(db=6)")), CLIP)
    assert not np.array_equal(fakes(CLIP, row("a", "fake", "gain(db=6)")), CLIP)


def test_what_is_drawn_depends_on_the_clip_and_the_seed_alone() -> None:
    rows = [row(item, "fake", "noise(snr=10)") for item in "ab"]
    one, again, other = (ManipulatedRows(["noise(snr=10)"], seed=s) for s in (0, 0, 1))
    assert np.array_equal(one(CLIP, rows[0]), again(CLIP, rows[0]))
    again(CLIP, rows[1])
    assert np.array_equal(one(CLIP, rows[1]), again(CLIP, rows[1]))
    assert not np.array_equal(one(CLIP, rows[0]), one(CLIP, rows[1]))
    assert not np.array_equal(one(CLIP, rows[0]), other(CLIP, rows[0]))


def test_both_can_be_sent_to_other_processes() -> None:
    for made in (CodedRows(parse_conditions("gsm")), ManipulatedRows()):
        sent = pickle.loads(pickle.dumps(made))
        assert sent.columns == made.columns and sent.pinned == made.pinned


def test_callables_have_names_and_clean_is_taken() -> None:
    named = ManipulatedRows({"louder": lambda x: 2 * x})
    assert named.columns == [{"manipulation": "clean"}, {"manipulation": "louder"}]
    assert np.array_equal(named(CLIP, row("a", "real", "louder")), 2 * CLIP)
    with pytest.raises(UsageError, match="another"):
        ManipulatedRows({"clean": abs})
    with pytest.raises(UnknownName):
        named(CLIP, row("a", "real", "softer"))
