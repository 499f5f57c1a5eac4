"""Clips made again as a detector heard them: a real detector writes down what it hears, and that is what is made again."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.report.media_files import tone

from hitmiss.cli.main import run
from hitmiss.io import read
from hitmiss.io.runs import sealed
from hitmiss.media.audio import load_audio
from hitmiss.reports.evidence import FileShelf, Media, remaking_of, shelf_of

LISTENER = """
import hashlib
from pathlib import Path
import numpy as np

def listener(batch):
    for clip in np.asarray(batch, dtype=np.float32):
        (Path(__file__).parent / "heard" / hashlib.sha256(clip.tobytes()).hexdigest()).touch()
    return np.abs(np.asarray(batch)).mean(axis=-1)
"""
SAMPLES = 8000


@pytest.fixture
def clips(tmp_path: Path) -> Path:
    """Six clips of half a second, so that none is cut or tiled, and a detector that notes what it hears."""
    pytest.importorskip("soundfile")
    (tmp_path / "heard").mkdir()
    (tmp_path / "listener.py").write_text(LISTENER)
    for i in range(6):
        (tmp_path / f"c{i}.wav").write_bytes(tone(300.0 + 50 * i, 0.5))
    rows = [f"c{i}\tc{i}.wav\t{'real' if i % 2 else 'fake'}" for i in range(6)]
    (tmp_path / "list.tsv").write_text("\n".join(["id\tfile\tlabel", *rows]) + "\n")
    return tmp_path


def detected(here: Path, *more: str) -> Path:
    words = ["--detector", f"{here / 'listener.py'}:listener", "--data", str(here / "list.tsv"), "--outputs", "logit"]
    assert run(["detect", *words, "--cut-length", str(SAMPLES), "-o", str(here / "run"), *more]) == 0
    return here / "run"


def rows_of(folder: Path) -> list[dict[str, Any]]:
    return read(folder).frame.to_dicts()


@pytest.mark.parametrize(
    ("words", "how_many"),
    [
        (["--manipulate", "gain(db=-6); noise(snr=12)", "--only", "fake"], 6),
        (["--codecs", "gsm,opus:1+3"], 18),
    ],
)
def test_what_is_made_again_is_what_was_heard_to_the_last_bit(clips: Path, words: list[str], how_many: int) -> None:
    pytest.importorskip("av")
    folder = detected(clips, *words)
    again = remaking_of(folder)
    assert again is not None
    heard = {path.name for path in (clips / "heard").iterdir()}
    changed = 0
    for row in rows_of(folder):
        clip = load_audio(clips / f"{row['source']}.wav", again.rate)
        made = np.asarray(again(clip, row), dtype=np.float32)
        assert hashlib.sha256(made.tobytes()).hexdigest() in heard, row["item"]
        changed += not np.array_equal(made, clip)
    assert changed == how_many


def test_the_report_shows_them_so_and_says_it(clips: Path) -> None:
    folder = detected(clips, "--manipulate", "gain(db=-6)")
    shelf = shelf_of(folder, read(folder), [str(clips)])
    assert shelf is not None
    found = {row["item"]: shelf.find(row) for row in rows_of(folder)}
    clean, quiet = found["c0@clean"], found["c0@gain(db=-6)"]
    assert isinstance(clean, Media) and isinstance(quiet, Media)
    assert "again" not in clean.about and quiet.about.endswith(", made again: gain(db=-6)")
    assert clean.address != quiet.address


@pytest.mark.parametrize(
    "codecs",
    [
        {"manipulations": ["my_own_function"], "only": None, "seed": 0},
        {"manipulations": "gain", "only": None},
        {"C01-q1": ["no_such_codec", 16000, 12.0]},
        {"C01": ["opus_wb", 16000, 12.0]},
        {"C01-q1": "opus"},
        [],
        None,
    ],
)
def test_what_cannot_be_made_again_is_shown_as_it_was_before(clips: Path, codecs: Any) -> None:
    """The run says what nobody here can do, or what is no description at all."""
    folder = detected(clips, "--manipulate", "gain(db=-6)")
    row = next(row for row in rows_of(folder) if row["item"].startswith("c0@gain"))
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["config"]["codecs"] = codecs
    (folder / "manifest.json").write_bytes(sealed(manifest))
    found = FileShelf(clips, {row["item"]: "c0.wav"}, remaking=remaking_of(folder)).find(row)
    assert isinstance(found, Media) and found.about.endswith(", before gain(db=-6)")
