"""Which items are asked about, and what may be shown of them."""

from __future__ import annotations

import json
import os
import pickle
import struct
from pathlib import Path

import numpy as np
import pytest
from tests.review.review_parts import png, wav, write_results

from hitmiss.core.errors import DataError, UnknownName, UsageError
from hitmiss.review.answered import Wish
from hitmiss.review.choice import choose
from hitmiss.review.library import MOST_PIXELS, Library, media_type
from hitmiss.review.opening import folder_of

TEXTS = ("one", "two", "three", "four", "five", "six")
SAID = ("uncertain", "fake", "real", "purple", "uncertain", "authentic")


def table(folder: Path, said: tuple[str, ...] = SAID, **columns: list[str]) -> str:
    """A file of results: a row a text."""
    rows = [
        {"id": f"t{i}", "text": TEXTS[i], "prediction": word, **{k: v[i] for k, v in columns.items()}}
        for i, word in enumerate(said)
    ]
    path = folder / "results.jsonl"
    path.write_text("".join(json.dumps(r) + "\n" for r in rows), encoding="utf-8")
    return str(path)


def ids(path: str, folder: Path, **wish: object) -> list[str]:
    return sorted(e.item for e in choose(path, Wish(**wish), Library(folder)).entries)  # type: ignore[arg-type]


def test_what_the_system_was_not_sure_of(tmp_path: Path) -> None:
    path = table(tmp_path, error=["", "", "", "", "", "timeout"])
    assert ids(path, tmp_path) == ["t0", "t3", "t4"], "uncertain, and what could not be understood"
    assert ids(path, tmp_path, verdicts=("fake",)) == ["t1"]
    assert ids(path, tmp_path, verdicts=("deepfake", "error")) == ["t1", "t5"], "a word for fake"
    assert ids(path, tmp_path, verdicts=("error",)) == ["t5"]
    assert ids(path, tmp_path, verdicts=("genuine",)) == ["t2"], "a word for real"
    assert len(ids(path, tmp_path, verdicts=("all",))) == 6
    assert ids(path, tmp_path, items=("t2", "t1", "t2")) == ["t1", "t2"]
    with pytest.raises(DataError, match=r"not in results\.jsonl"):
        ids(path, tmp_path, items=("t9",))
    with pytest.raises(UnknownName, match="verdict to review"):
        ids(path, tmp_path, verdicts=("purple",))
    with pytest.raises(UsageError, match="there are 3 items"):
        ids(path, tmp_path, sample=9)


def test_no_label_is_needed_and_none_is_kept(tmp_path: Path) -> None:
    path = table(tmp_path, label=["real", "fake", "real", "fake", "real", "fake"], confidence=["0.5"] * 6)
    chosen = choose(path, Wish(), Library(tmp_path))
    assert "label" not in json.dumps([e.shown for e in chosen.entries]) and not any(e.shown for e in chosen.entries)
    seen = {e.item: e.shown for e in choose(path, Wish(blind=False), Library(tmp_path)).entries}
    assert seen["t0"] == {"system": "uncertain, confidence 0.5", "label": "real"}


def test_sample_and_order_come_from_the_seed(tmp_path: Path) -> None:
    path = table(tmp_path)
    drawn = [tuple(ids(path, tmp_path, verdicts=("all",), sample=3, seed=s)) for s in range(20)]
    assert drawn[0] == tuple(ids(path, tmp_path, verdicts=("all",), sample=3, seed=0)) and len(set(drawn)) > 5
    orders = {tuple(e.item for e in choose(path, Wish(("all",), seed=s), Library(tmp_path)).entries) for s in range(20)}
    assert len(orders) > 10, "the order of the file tells nothing"


def test_one_of_several_runs(tmp_path: Path) -> None:
    rows = [
        {"id": i, "text": i, "model": m, "use_tools": t, "prediction": p}
        for i, m, t, p in (("a", "x", True, "uncertain"), ("a", "x", False, "fake"), ("b", "x", True, "real"), ("b", "x", False, "uncertain"))
    ]  # fmt: skip
    path = tmp_path / "r.jsonl"
    path.write_text("".join(json.dumps(r) + "\n" for r in rows))
    assert ids(str(path), tmp_path) == ["a", "b"], "uncertain in any run"
    assert ids(f"{path}[tools=tools]", tmp_path) == ["a"]
    assert ids(f"{path}[use_tools=false]", tmp_path) == ["b"]
    with pytest.raises(UnknownName):
        ids(f"{path}[speed=1]", tmp_path)
    with pytest.raises(DataError, match="no row has"):
        ids(f"{path}[model=y]", tmp_path)


def test_thresholds_apply_to_the_scale_of_the_file_whatever_a_higher_score_means(tmp_path: Path) -> None:
    path, negated = tmp_path / "up.csv", tmp_path / "down.csv"
    scores = {"a": 0.1, "b": 0.2, "c": 0.5, "d": 0.8, "e": 0.9}
    path.write_text("id,text,score\n" + "".join(f"{k},x,{v}\n" for k, v in scores.items()))
    negated.write_text("id,text,score\n" + "".join(f"{k},x,{-v}\n" for k, v in scores.items()))
    for verdict in ("fake", "real", "uncertain"):
        up = ids(str(path), tmp_path, thresholds=(0.2, 0.8), verdicts=(verdict,))
        assert up == ids(str(negated), tmp_path, thresholds=(-0.8, -0.2), verdicts=(verdict,), higher="real")
    with pytest.raises(UnknownName, match="class for a higher score"):
        ids(str(path), tmp_path, thresholds=(0.2, 0.8), higher="dog")


def test_scores_with_thresholds_and_other_classes(tmp_path: Path) -> None:
    path = tmp_path / "scores.csv"
    path.write_text("id,text,score\na,x,0.1\nb,y,0.5\nc,z,0.9\n")
    assert ids(str(path), tmp_path, thresholds=(0.2, 0.8)) == ["b"]
    assert ids(str(path), tmp_path, thresholds=(0.2, 0.8), verdicts=("toxic",), positive="toxic", negative="fine") == [
        "c"
    ]
    with pytest.raises(DataError, match="no verdicts to go by"):
        ids(str(path), tmp_path)
    path.write_text("id,text,score\na,x,nan\nb,y,\n")
    with pytest.raises(DataError, match="2 rows have no score"):
        ids(str(path), tmp_path, thresholds=(0.2, 0.8))


def test_a_finished_run_of_detect(tmp_path: Path) -> None:
    """The run has no files in its table; the manifest that it was made from names them, and so does its list of files."""
    from hitmiss.cli.main import run

    (tmp_path / "detector.py").write_text(
        "def score(paths):\n    return [0.1 * (i + 1) for i, _ in enumerate(paths)]\n"
    )
    lines = []
    for i in range(4):
        (tmp_path / f"c{i}.wav").write_bytes(wav())
        lines.append(f"c{i}.wav\t{'real' if i % 2 else 'fake'}\n")
    (tmp_path / "m.tsv").write_text("file\tlabel\n" + "".join(lines))
    words = ["detect", "--detector", f"{tmp_path}/detector.py:score", "--data", f"{tmp_path}/m.tsv", "--input", "path"]
    assert run([*words, "-o", f"{tmp_path}/run", "--outputs", "logit", "--positive", "fake"]) == 0
    library = Library(tmp_path)
    chosen = choose(str(tmp_path / "run"), Wish(("all",)), library, str(tmp_path / "m.tsv"))
    assert {e.kind for e in chosen.entries} == {"audio"} and chosen.pinned["run"] == "run"
    alone = choose(str(tmp_path / "run"), Wish(("all",)), Library(folder_of(tmp_path / "run")))
    assert [(e.item, e.source) for e in alone.entries] == [(e.item, e.source) for e in chosen.entries]
    with pytest.raises(DataError, match="cannot be shown"):
        choose(str(tmp_path / "run"), Wish(("all",)), Library(tmp_path / "run"))


def test_a_finished_run_that_keeps_its_rows(tmp_path: Path) -> None:
    """As `hitmiss llm` leaves it: the rows of the document stand in the folder beside the table."""
    import polars as pl

    from hitmiss.runs.store import start

    with start(tmp_path / "llm.run", kind="llm", config={}, items=["t0", "t1"]) as run:
        for at in run.todo():
            run.add(at, {"prediction": "x"})
        table(tmp_path / "llm.run", ("uncertain", "fake"))
        run.finish(
            pl.DataFrame({"item": ["t0", "t1"]}),
            ["results.jsonl"],
            rows="results.jsonl",
            layout="triage",
            positive="fake",
            negative="real",
        )
    chosen = choose(str(tmp_path / "llm.run"), Wish(), Library(tmp_path))
    assert [e.item for e in chosen.entries] == ["t0"] and chosen.pinned["run"] == "llm.run"
    (tmp_path / "llm.run" / "results.jsonl").write_text("{}")
    with pytest.raises(DataError, match="was changed after it was finished"):
        choose(str(tmp_path / "llm.run"), Wish(), Library(tmp_path))


def test_files_are_told_by_their_bytes(tmp_path: Path) -> None:
    good = {
        "a.bin": (png(), "image"), "b.png": (wav(), "audio"), "c": (b"fLaC" + bytes(20), "audio"),
        "d": (b"OggS" + bytes(20), "audio"), "e": (b"ID3" + bytes(20), "audio"), "f": (b"\xff\xfb" + bytes(20), "audio"),
        "g.txt": (b"<b>text</b>", "text"),
    }  # fmt: skip
    pytest.importorskip("PIL")
    for name, (data, kind) in good.items():
        (tmp_path / name).write_bytes(data)
        assert Library(tmp_path).kind_of(name) == kind
    bad = {
        "x.png": b"<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'/>",
        "y.jpg": b"<!doctype html><script>1</script>",
        "z.svg": b"<?xml version='1.0'?><svg/>",
        "w.gif": b"GIF89a" + bytes(20), "v.pdf": b"%PDF-1.7 " + bytes(20), "empty.png": b"",
    }  # fmt: skip
    for name, data in bad.items():
        (tmp_path / name).write_bytes(data)
        assert media_type(data[:16]) is None
        with pytest.raises(DataError, match="is none of PNG"):
            Library(tmp_path).kind_of(name)
    (tmp_path / "utf16.txt").write_bytes("hé".encode("utf-16"))
    with pytest.raises(DataError, match="not UTF-8"):
        Library(tmp_path).kind_of("utf16.txt")


def test_bombs_are_refused(tmp_path: Path) -> None:
    pytest.importorskip("PIL")
    (tmp_path / "wide.png").write_bytes(png(60_000, 60_000))
    with pytest.raises(DataError, match=r"not a picture that can be shown|pixels"):
        Library(tmp_path).kind_of("wide.png")
    (tmp_path / "broken.png").write_bytes(png()[:20])
    with pytest.raises(DataError, match=r"not a picture|no longer a picture"):
        Library(tmp_path).kind_of("broken.png")
    assert MOST_PIXELS < 60_000**2
    with (tmp_path / "long.wav").open("wb") as file:
        file.write(wav())
        file.truncate(600 * 2**20)  # sparse: it takes no room
    with pytest.raises(DataError, match="larger than the 512 MiB"):
        Library(tmp_path).kind_of("long.wav")
    huge = table(tmp_path, ("uncertain",))
    Path(huge).write_text(json.dumps({"id": "a", "text": "x" * 300_000, "prediction": "uncertain"}) + "\n")
    with pytest.raises(DataError, match="cannot be shown"):
        ids(huge, tmp_path)


@pytest.mark.parametrize(
    "path",
    [
        "../secret.png", "a/../../secret.png", "/etc/passwd", "{root}/../secret.png", "file:///etc/passwd", "FILE:secret",
        "http://127.0.0.1/x.png", "link.png", "linked/secret.png", "x\0.png", "..\\secret.png", "....//secret.png",
        "%2e%2e/secret.png", "~/secret.png", "", ".", "//etc/passwd",
    ],
)  # fmt: skip
def test_no_path_leads_out(tmp_path: Path, path: str) -> None:
    root = tmp_path / "media"
    root.mkdir()
    (tmp_path / "secret.png").write_bytes(png())
    (root / "link.png").symlink_to(tmp_path / "secret.png")
    (root / "linked").symlink_to(tmp_path)
    with pytest.raises(DataError):
        Library(root).kind_of(path.format(root=root))
    with pytest.raises(DataError):
        Library(root).file(path.format(root=root))


def test_what_cannot_be_shown_is_told_and_left_out_only_on_request(tmp_path: Path) -> None:
    pytest.importorskip("PIL")
    path = write_results(tmp_path, n=3)
    (tmp_path / "p1.png").unlink()
    with pytest.raises(DataError, match="1 of 3 items cannot be shown") as error:
        choose(str(path), Wish(), Library(tmp_path))
    assert error.value.faults[0].value == "secret-1" and "there is no file p1.png" in str(error.value.faults[0])
    chosen = choose(str(path), Wish(allow_missing=True), Library(tmp_path))
    assert len(chosen.entries) == 2 and len(chosen.left_out) == 1


def test_arrays_are_never_unpickled(tmp_path: Path) -> None:
    marker = tmp_path / "ran"

    class Evil:
        def __reduce__(self) -> tuple[object, tuple[str]]:
            return os.mkdir, (str(marker),)

    head = b"\x93NUMPY\x01\x00"
    about = b"{'descr': '|O', 'fortran_order': False, 'shape': (1,), }"
    about += b" " * (64 - (len(head) + 2 + len(about) + 1) % 64) + b"\n"
    (tmp_path / "evil.npy").write_bytes(head + struct.pack("<H", len(about)) + about + pickle.dumps([Evil()]))
    with pytest.raises(DataError, match="not a plain array"):
        Library(tmp_path, fs=100.0).kind_of("evil.npy")
    assert not marker.exists()
    np.save(tmp_path / "words.npy", np.array(["a", "b"]))
    with pytest.raises(DataError, match="must hold numbers"):
        Library(tmp_path, fs=100.0).kind_of("words.npy")
    np.save(tmp_path / "good.npy", np.zeros((500, 12)))
    assert Library(tmp_path, fs=100.0).kind_of("good.npy") == "ecg"
    with pytest.raises(UsageError, match="say fs"):
        Library(tmp_path).kind_of("good.npy")


def test_recordings_by_id(tmp_path: Path) -> None:
    from hitmiss.attacks.recordings import read_recordings

    x = np.random.default_rng(0).normal(size=(2, 300, 12))
    np.savez(tmp_path / "r.npz", x=x, y=np.zeros((2, 1), int), classes=["AF"], fs=100.0, record=["a", "b"])
    library = Library(tmp_path, read_recordings(tmp_path / "r.npz"))
    path = tmp_path / "scores.csv"
    path.write_text("id,decision\na,-1\nb,1\n")
    (entry,) = choose(str(path), Wish(positive="AF", negative="normal"), library).entries
    assert (entry.item, entry.kind) == ("a", "ecg")
    assert np.allclose(library.ecg("a").signal, x[0].T)
