"""What items show is found again from the run alone: by reports and by reviews, with no path of this machine anywhere."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import pytest
from llm_parts import rows_of, write_dataset

from hitmiss.cli.main import run
from hitmiss.review.answered import Wish
from hitmiss.review.opening import folder_of, open_review


def wav(n: int = 800) -> bytes:
    """A sound of n samples."""
    data = b"".join(struct.pack("<h", (i * 37) % 2000 - 1000) for i in range(n))
    head = struct.pack(
        "<4sI4s4sIHHIIHH4sI",
        b"RIFF",
        36 + len(data),
        b"WAVE",
        b"fmt ",
        16,
        1,
        1,
        8000,
        16000,
        2,
        16,
        b"data",
        len(data),
    )
    return head + data


@pytest.fixture
def asked(pictures: Path, tmp_path: Path) -> Path:
    """A folder with a dataset of every kind and, elsewhere in it, the rows of a function that is always unsure or wrong."""
    data = tmp_path / "data"
    (data / "images").mkdir(parents=True)
    rows: list[dict[str, Any]] = rows_of(pictures)[:4]
    for row in rows:
        (data / row["image"]).write_bytes((pictures.parent / row["image"]).read_bytes())
    rows[1]["image"] = str(data / rows[1]["image"])  # given whole: it must not be written so
    (data / "a.wav").write_bytes(wav())
    rows += [
        {"id": "sound", "audio": "a.wav", "label": "real"},
        {"id": "words", "text": "<b>so</b> it is", "label": "real"},
    ]
    write_dataset(data, rows)
    (tmp_path / "mine.py").write_text(
        "def f(item):\n"
        "    wrong = 'real' if item.label == 'fake' else 'fake'\n"
        "    return {'verdict': wrong, 'confidence': 0.9}\n"
        "def g(item):\n    return 'uncertain'\n"
    )
    out = tmp_path / "out"
    out.mkdir()
    names = [f"{tmp_path / 'mine.py'}:{name}" for name in "fg"]
    words = ["llm", "--dataset", str(data / "dataset.jsonl"), "--models", *names, "-o", str(out / "results.jsonl")]
    assert run(words) == 0
    return tmp_path


def test_rows_name_the_file_below_the_dataset(asked: Path) -> None:
    rows = rows_of(asked / "out" / "results.jsonl")[:6]
    assert [r.get("image") or r.get("audio") or r.get("text") for r in rows[4:]] == ["a.wav", "<b>so</b> it is"]
    for row in rows[:4]:
        assert row["image"].startswith("images/") and (asked / "data" / row["image"]).is_file()
    kept = [p for p in (asked / "out").rglob("*") if p.is_file() and str(asked / "data").encode() in p.read_bytes()]
    assert kept == []


@pytest.mark.parametrize("source", ["results.jsonl", "results.run"])
def test_a_report_shows_them(asked: Path, source: str) -> None:
    chosen = f"{asked / 'out' / source}[model={asked / 'mine.py'}:f]"
    assert (
        run(["report", chosen, "-p", "triage", "-o", str(asked / "r.html"), "--bootstrap", "0", "--media", str(asked)])
        == 0
    )
    page = (asked / "r.html").read_text()
    assert page.count("data:image/jpeg;base64,") == 5  # four pictures, and the spectrogram of the sound
    assert "data:audio/" in page
    assert "&lt;b&gt;so&lt;/b&gt; it is" in page and str(asked) not in page.replace(f"{asked}/mine.py", "")


def test_a_report_on_rows_beside_the_dataset_needs_no_run(asked: Path) -> None:
    rows = (asked / "out" / "results.jsonl").read_text()
    (asked / "data" / "copied.jsonl").write_text(rows)
    chosen = f"{asked / 'data' / 'copied.jsonl'}[model={asked / 'mine.py'}:f]"
    assert run(["report", chosen, "-p", "triage", "-o", str(asked / "r.html"), "--bootstrap", "0"]) == 0
    assert (asked / "r.html").read_text().count("data:image/jpeg;base64,") == 5


@pytest.mark.parametrize("source", ["results.jsonl", "results.run"])
def test_a_review_shows_them(asked: Path, source: str) -> None:
    store, library = open_review(asked / "out" / source, store=asked / f"{source}.sqlite")
    try:
        assert library.root is not None and library.root.resolve() == asked / "data"
        kinds = {item: (kind, source) for item, kind, source in store.rows("SELECT item, kind, source FROM items")}
    finally:
        store.close()
    assert kinds["words"] == ("text", "<b>so</b> it is") and kinds["sound"] == ("audio", "a.wav")
    assert [kind for kind, _ in kinds.values()].count("image") == 4 and len(kinds) == 6


def test_files_that_went_away_are_told(asked: Path) -> None:
    (asked / "data").rename(asked / "elsewhere")
    run_folder = asked / "out" / "results.run"
    assert folder_of(run_folder) == run_folder.parent
    from hitmiss.core.errors import DataError

    with pytest.raises(DataError, match="cannot be shown"):
        open_review(run_folder, wish=Wish(), store=asked / "s.sqlite")
    moved = asked / "elsewhere" / "dataset.jsonl"
    rows = rows_of(moved)
    rows[1]["image"] = f"images/{Path(rows[1]['image']).name}"
    moved.write_text("".join(json.dumps(row) + "\n" for row in rows))
    store, _ = open_review(run_folder, dataset=moved, store=asked / "s.sqlite")
    assert store.n_items == 6
    store.close()
