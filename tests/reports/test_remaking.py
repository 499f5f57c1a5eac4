"""Clips made again as a detector heard them: a real detector writes down what it hears, and that is what is made again."""

from __future__ import annotations

import base64
import hashlib
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.reports.media_files import tone

from hitmiss.cli.main import run
from hitmiss.io import read
from hitmiss.media.audio import load_audio
from hitmiss.media.image import load_image
from hitmiss.reports.embedded_media import Media
from hitmiss.reports.media_finder import FileFinder, finder_of
from hitmiss.reports.remaking import remaking_of
from hitmiss.runs.manifest import sealed

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
    rows = [f"c{i}\tc{i}.wav\t{'bonafide' if i % 2 else 'spoof'}" for i in range(6)]
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
        (["--manipulate", "gain(db=-6); noise(snr=12)", "--only", "spoof"], 6),
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
    finder = finder_of(folder, read(folder), [str(clips)])
    assert finder is not None
    found = {row["item"]: finder.find(row) for row in rows_of(folder)}
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
    found = FileFinder(clips, {row["item"]: "c0.wav"}, remaking=remaking_of(folder)).find(row)
    assert isinstance(found, Media) and found.about.endswith(", before gain(db=-6)")


LOOKER = """
import numpy as np

def looker(batch):
    return np.asarray(batch).reshape(len(batch), -1).mean(axis=-1)
"""


@pytest.fixture
def gallery(tmp_path: Path) -> Path:
    """Four pictures with edges, and a detector that looks at their brightness."""
    image = pytest.importorskip("PIL.Image")
    (tmp_path / "looker.py").write_text(LOOKER)
    for i in range(4):
        pixels = np.zeros((64, 48, 3), np.uint8)
        pixels[8 * i : 8 * i + 24, 10:30] = (250, 40 * i, 20)
        image.fromarray(pixels).save(tmp_path / f"p{i}.png")
    rows = [f"p{i}\tp{i}.png\t{'bonafide' if i % 2 else 'spoof'}" for i in range(4)]
    (tmp_path / "list.tsv").write_text("\n".join(["id\tfile\tlabel", *rows]) + "\n")
    return tmp_path


def test_a_changed_picture_is_shown_before_and_as_the_detector_received_it(gallery: Path) -> None:
    words = ["--detector", f"{gallery / 'looker.py'}:looker", "--data", str(gallery / "list.tsv"), "--outputs", "logit"]
    words += ["--input", "image", "--manipulate", "blur(sigma=4); contrast(factor=0.2)"]
    assert run(["detect", *words, "-o", str(gallery / "run")]) == 0
    folder = gallery / "run"
    again = remaking_of(folder)
    assert again is not None
    blurred = next(row for row in rows_of(folder) if row["item"].startswith("p0@blur"))
    before = load_image(gallery / "p0.png")
    after = np.asarray(again(before, blurred))
    assert after.shape == before.shape and np.abs(after.astype(float) - before).max() > 20
    finder = finder_of(folder, read(folder), [str(gallery)])
    assert finder is not None
    clean, changed = (finder.find({**blurred, "item": f"p0@{how}"}) for how in ("clean", "blur(sigma=4)"))
    assert isinstance(clean, Media) and isinstance(changed, Media)
    assert not clean.before and changed.before == clean.address != changed.address
    assert changed.about.endswith(", made again: blur(sigma=4)") and "coded anew" in changed.about
    assert np.abs(pixels_of(changed.address).astype(float) - after).mean() < 3  # JPEG of the same picture
    page = gallery / "report.html"
    assert run(["report", str(folder), "-m", "roc_auc", "--media", str(gallery), "-o", str(page)]) == 0
    text = page.read_text()
    assert text.count("<figcaption>before</figcaption>") == text.count("<figcaption>as received</figcaption>") > 0


def pixels_of(address: str) -> np.ndarray:
    from PIL import Image

    with Image.open(io.BytesIO(base64.b64decode(address.partition(",")[2]))) as opened:
        return np.asarray(opened)
