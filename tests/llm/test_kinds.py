"""Sounds and texts from the dataset to the triage table, over the wire to a real server."""

from __future__ import annotations

import hashlib
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from llm_parts import rows_of, write_dataset

pytest.importorskip("inspect_ai", reason="inspect_ai is not installed")

from forked import command, done
from tests.llm.faulty import StandIn

from hitmiss.io.triage import read_results
from hitmiss.llm.tools import BY_KIND

soundfile = pytest.importorskip("soundfile", reason="soundfile is not installed")

pytestmark = [pytest.mark.extras, pytest.mark.usefixtures("canary")]

FORMS = {"a.wav": "WAV", "b.flac": "FLAC", "c.ogg": "OGG", "d.mp3": "MP3"}


def sounds(folder: Path) -> Path:
    """Four clips, one a format; those labelled fake end at 3 kHz of 8."""
    rng, rows = np.random.default_rng(8), []
    for i, (name, form) in enumerate(FORMS.items()):
        spectrum = np.fft.rfft(rng.normal(scale=0.1, size=8000))
        label = ("real", "fake")[i % 2]
        spectrum[1500 if label == "fake" else 4000 :] = 0
        buffer = io.BytesIO()
        soundfile.write(buffer, np.fft.irfft(spectrum), 16000, format=form)
        (folder / name).write_bytes(buffer.getvalue())
        rows.append({"id": name[0], "audio": name, "label": label})
    return write_dataset(folder, rows)


def test_sounds_with_and_without_tools(tmp_path: Path) -> None:
    path = sounds(tmp_path)
    with StandIn() as server:
        words = command(
            path, server, tmp_path / "r.jsonl", "--tools", "both", "--trials", "2", "--max-connections", "1"
        )
        code, _, err = done([*words, "--metrics-output", str(tmp_path / "m.json")], tmp_path)
        assert code == 0, err
        assert len(server.requests) == 4 * 2 * (1 + 2)
    rows = rows_of(tmp_path / "r.jsonl")
    received = {seen.item for seen in server.requests}
    for row in rows:
        held = (tmp_path / row["audio"]).read_bytes()
        told = row.get("sent")
        assert (told is None) == (row["audio"] in ("a.wav", "d.mp3"))
        assert (told["sha256"] if told else hashlib.sha256(held).hexdigest()) in received
        assert row["tool_usage"] == ([tool.name for tool in BY_KIND["audio"]] if row["use_tools"] else [])
    assert [r["sent"]["from"] for r in rows if r["id"] in "bc"][:2] == ["audio/flac", "audio/ogg"]
    details = [d["cached"] for r in rows for d in r["tool_details"]]
    assert details.count(False) == details.count(True) == 4 * 3  # the second trial finds them
    by_tools = [r for r in rows if r["use_tools"] and r["id"] in "ab"]
    assert all(r["prediction"] == r["label"] for r in by_tools)  # the stand-in did read what the tools said
    assert set(json.loads((tmp_path / "m.json").read_text())) >= {"judge-1|tools", "judge-1|no-tools"}
    assert "sent" not in read_results(tmp_path / "r.jsonl").frame.columns


def test_texts(tmp_path: Path) -> None:
    texts = [" ".join(["so"] * 60), "every word here differs from all others", "ünï – “code” 日本\u202e"]
    rows: list[dict[str, Any]] = [
        {"id": f"тест-{i}\u202e", "text": t, "label": ("fake", "real")[i % 2]} for i, t in enumerate(texts)
    ]
    path = write_dataset(tmp_path, rows)
    with StandIn() as server:
        words = command(path, server, tmp_path / "r.jsonl")
        code, _, err = done([*words, "--tools", "both"], tmp_path)
        assert code == 2 and "there are tools for pictures and sounds, and the dataset has neither" in err
        assert not server.requests and not (tmp_path / "r.run").exists()
        code, out, err = done([*words, "--trials", "2"], tmp_path)
        assert code == 0, err
        assert len(server.requests) == 6
    assert sorted({json.loads(seen.text.splitlines()[-1])["item"] for seen in server.requests}) == sorted(texts)
    found = rows_of(tmp_path / "r.jsonl")
    assert [(r["id"], r["text"]) for r in found[:3]] == [(r["id"], r["text"]) for r in rows]
    assert found[0]["prediction"] == "fake" and found[1]["prediction"] == "real"
    assert "\u202e" not in out + err
    code, out, _ = done(["triage", str(tmp_path / "r.jsonl")], tmp_path)
    assert code == 0 and "accuracy" in out and "\u202e" not in out
