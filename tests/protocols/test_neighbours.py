"""Protocols of neighbours that need only a declaration: In-the-Wild, fake images and videos."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import hitmiss as hm


def test_in_the_wild_is_read_by_its_published_key(tmp_path: Path) -> None:
    """meta.csv: file, speaker, label with bona-fide and spoof."""
    rng = np.random.default_rng(2)
    words = ["bona-fide" if i % 3 else "spoof" for i in range(60)]
    score = [rng.normal(1.0 if word == "bona-fide" else -1.0) for word in words]
    (tmp_path / "meta.csv").write_text(
        "file,speaker,label\n" + "".join(f"{i}.wav,Speaker {i % 7},{word}\n" for i, word in enumerate(words))
    )
    (tmp_path / "scores.txt").write_text("".join(f"{i}.wav {s}\n" for i, s in enumerate(score)))
    found = hm.evaluate(
        tmp_path / "scores.txt", tmp_path / "meta.csv", "in-the-wild", by=["speaker"], bootstrap=0, settings="none"
    )
    label = [int(word == "bona-fide") for word in words]
    assert found.one("eer").value == hm.metrics.eer(label, score, ties="official")
    assert {e.slice["speaker"] for e in found if e.slice and e.average is None} == {f"Speaker {i}" for i in range(7)}


@pytest.mark.parametrize("kind", ["image", "video"])
def test_each_generator_is_measured_against_all_real_ones(kind: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(4)
    generator = ["-", "gan", "diffusion"] * 30
    label = [int(g != "-") for g in generator]
    score = rng.normal(np.array(label) * 1.5)
    text = "".join(
        f"{i},{'fake' if y else 'real'},{s},{g}\n"
        for i, (y, s, g) in enumerate(zip(label, score, generator, strict=True))
    )
    (tmp_path / "t.csv").write_text("id,label,score,generator\n" + text)
    found = hm.evaluate(tmp_path / "t.csv", None, f"fake-{kind}", by=["generator"], bootstrap=0, settings="none")
    for name in ("gan", "diffusion"):
        own = np.array([g in (name, "-") for g in generator])
        expected = hm.metrics.roc_auc(np.array(label)[own], score[own])
        assert found.one("roc_auc", generator=name).value == pytest.approx(expected, abs=1e-12)
