"""Refusals of audits, queues, votes and tables that cannot be used as they are, and of a codec that a machine lacks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.findings.producing import Case, assert_produces

import hitmiss as hm
from hitmiss.attacks.codec_engines import _program_encoders, ffmpeg_program
from hitmiss.core.errors import UsageError
from hitmiss.core.read_spec import ReadSpec
from hitmiss.core.tally import Tally
from hitmiss.derive.operating_points import capacity_threshold
from hitmiss.detection.detect_spec import DetectSpec
from hitmiss.evaluation.detecting import _coded
from hitmiss.io.manifest import read_manifest

TEXTS = "".join(f"t{k},{k % 2},{k / 40}\n" for k in range(40))
VOTES = "".join(f"t{k},{k % 2},{k // 3 % 2},{k % 2}\n" for k in range(40))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with strata that expect nothing, scores, and the votes of three annotators."""
    (tmp_path / "strata.csv").write_text("language,flagged,n\nen,yes,900\nen,no,9100\n")
    (tmp_path / "scores.csv").write_text("id,label,score\n" + TEXTS)
    (tmp_path / "votes.csv").write_text("id,ann,bob,eve\n" + VOTES)
    (tmp_path / "scored.csv").write_text("id,score,seconds\n" + "".join(f"t{k},{k / 40},{k}\n" for k in range(40)))
    return tmp_path


@pytest.fixture
def small_ffmpeg(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An ffmpeg program that knows no encoder."""
    program = tmp_path / "ffmpeg"
    program.write_text("#!/bin/sh\nexit 0\n")
    program.chmod(0o755)
    monkeypatch.setenv("HITMISS_FFMPEG", str(program))
    for cached in (ffmpeg_program, _program_encoders):
        cached.cache_clear()
    yield
    for cached in (ffmpeg_program, _program_encoders):
        cached.cache_clear()


CASES: tuple[tuple[str, Case, str], ...] = (
    ("audit-expected", "audit --population strata.csv --by language --labels 300", "expected"),
    (
        "bad-volume-in-use",
        "threshold scores.csv --capacity 300 --volume 0 --prevalence 0.1 --positive 1",
        "above 0",
    ),
    ("free-refusal", lambda: UsageError("a plug-in says so").found.text, "a plug-in says so"),
    ("no-threshold-fits", lambda: capacity_threshold(Tally.of([1, 0], [1.0, 1.0]), 0.1, 0.1), "0.1"),
    ("not-a-table", lambda: hm.evaluate([{"label": 1, "score": 0.5}, {"label": object(), "score": []}]), "table"),
    (
        "votes-metric",
        "annotators votes.csv --votes ann,bob,eve --scores scored.csv -m median_seconds",
        "median_seconds",
    ),
)


@pytest.mark.parametrize(("code", "case", "named"), [pytest.param(*case, id=case[0]) for case in CASES])
def test_produced(code: str, case: Case, named: str, folder: Path) -> None:
    assert_produces(code, case, folder, named)


@pytest.mark.usefixtures("small_ffmpeg")
def test_a_codec_that_the_machine_lacks_is_left_out_and_named(tmp_path: Path) -> None:
    (tmp_path / "clips.csv").write_text("id,label\na.wav,real\nb.wav,fake\n")
    (tmp_path / "a.wav").write_bytes(b"")
    (tmp_path / "b.wav").write_bytes(b"")
    manifest = read_manifest(str(tmp_path / "clips.csv"), root=str(tmp_path), options=ReadSpec(positive="fake"))
    notes: list[str] = []
    _coded(DetectSpec(codecs=("g711_ulaw", "speex_nb")), manifest, 16000, notes)
    assert [note.findings[0].code for note in notes] == ["codec-left-out"] and "speex_nb" in notes[0]  # type: ignore[attr-defined]
