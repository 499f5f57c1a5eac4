"""Sounds, images and signals in a report: made anew and small, hostile ones refused, all within the budget."""

from __future__ import annotations

import base64
import io
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from tests.reports.media_files import HOSTILE_FILES, TAIL, folder_of_files, picture, tone

from hitmiss.core.design import Design
from hitmiss.core.header import Header
from hitmiss.core.report_spec import ReportSpec
from hitmiss.core.trials import Trials
from hitmiss.reports.embedded_media import SECONDS, SIDE, Media, Refusal, open_media
from hitmiss.reports.html import render
from hitmiss.reports.item_texts import Reason, rationales_beside
from hitmiss.reports.media_finder import FileFinder, SignalFinder, finder_at, finder_beside
from hitmiss.reports.page import compose
from hitmiss.reports.sources import Measuring, measured
from hitmiss.reports.traces import TRACE_HEIGHT, TRACE_WIDTH, trace_of
from hitmiss.reports.worst_errors import RunEvidence, worst_errors


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return folder_of_files(tmp_path_factory.mktemp("files"))


def content(media: Media) -> bytes:
    return base64.b64decode(media.address.partition("base64,")[2])


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP"])
def test_an_image_becomes_a_small_jpeg_of_the_same_picture(kind: str, tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(picture(kind) + TAIL)
    made = open_media(tmp_path / "a")
    assert (
        isinstance(made, Media)
        and made.kind == "image"
        and made.about.startswith("640 × 320 pixels, shown at 224 × 112 and coded anew")
    )
    small = Image.open(io.BytesIO(content(made)))
    assert small.format == "JPEG" and small.size == (SIDE, SIDE // 2) == made.size
    left, right = small.getpixel((20, 50)), small.getpixel((200, 50))
    assert left[2] > 150 > left[0] and right[0] > 150 > right[2]
    assert b"script" not in content(made), "what stood behind the image came along"


def test_a_transparent_image_lies_on_white_and_its_notes_stay_out(tmp_path: Path) -> None:
    image = Image.new("RGBA", (50, 50), (0, 0, 0, 0))
    image.save(tmp_path / "a.png", exif=Image.Exif())
    made = open_media(tmp_path / "a.png")
    assert isinstance(made, Media)
    small = Image.open(io.BytesIO(content(made)))
    assert small.getpixel((25, 25)) == (255, 255, 255) and not small.getexif()


def test_a_sound_becomes_a_short_mp3_of_the_same_pitch(tmp_path: Path) -> None:
    soundfile = pytest.importorskip("soundfile")
    (tmp_path / "a.wav").write_bytes(tone(440.0, 10.0, 44100))
    made = open_media(tmp_path / "a.wav")
    assert isinstance(made, Media) and made.kind == "sound" and made.about.startswith("first 6 of 10.0 s")
    assert made.address.startswith("data:audio/mpeg;base64,")
    samples, rate = soundfile.read(io.BytesIO(content(made)))
    assert samples.ndim == 1 and abs(len(samples) / rate - SECONDS) < 0.2
    spectrum = np.abs(np.fft.rfft(samples))
    assert abs(float(np.argmax(spectrum)) * rate / len(samples) - 440.0) < 2.0
    assert len(content(made)) < 60_000 and "MP3" in made.about


def test_a_lossless_sound_is_the_samples_themselves_and_says_so(tmp_path: Path) -> None:
    soundfile = pytest.importorskip("soundfile")
    noise = np.random.default_rng(0).integers(-3000, 3000, 16000).astype(np.int16)
    soundfile.write(tmp_path / "a.wav", noise, 16000)
    made = open_media(tmp_path / "a.wav", lossless=True)
    assert isinstance(made, Media) and made.address.startswith("data:audio/flac") and "lossless" in made.about
    samples, rate = soundfile.read(io.BytesIO(content(made)), dtype="int16")
    assert rate == 16000 and np.array_equal(samples, noise)


def test_a_spectrogram_is_dark_where_the_tone_is(tmp_path: Path) -> None:
    (tmp_path / "a.wav").write_bytes(tone(2000.0, 2.0, 16000))
    made = open_media(tmp_path / "a.wav")
    assert isinstance(made, Media)
    grey = np.asarray(Image.open(io.BytesIO(base64.b64decode(made.spectrogram.partition(",")[2]))), dtype=float)
    darkest = int(np.argmin(grey[:, 20:-20].mean(axis=1)))
    assert abs((1 - darkest / grey.shape[0]) * 8000 - 2000) < 300, "frequency goes upwards to half the rate"


@pytest.mark.parametrize("name", sorted(HOSTILE_FILES))
def test_hostile_files_are_refused_with_a_reason(files: Path, name: str) -> None:
    pytest.importorskip("soundfile")
    made = FileFinder(files, column="file").find({"item": "x", "file": name})
    assert isinstance(made, Refusal) and made.name == name and made.reason
    assert str(files) not in made.reason


@pytest.mark.parametrize(
    "name", ["../secret.png", "link.png", "/etc/hostname", "a\0b", "media/../../secret.png", "no.png"]
)
def test_paths_that_lead_out_of_the_folder_are_refused(files: Path, name: str) -> None:
    made = FileFinder(files, column="file").find({"item": "x", "file": name})
    assert isinstance(made, Refusal)
    assert ("leads out" in made.reason) == (name != "no.png"), made


def path_points(path: str) -> np.ndarray[Any, np.dtype[np.float64]]:
    """The corners of an SVG path of one M and one l, by its grammar: numbers with signs or blanks between them."""
    start, steps = path[1:].split("l")
    first = np.array([float(v) for v in start.split()])
    moves = np.array([float(v) for v in re.findall(r"-?\d+", steps)]).reshape(-1, 2)
    return np.vstack([first, first + np.cumsum(moves, axis=0)]) / 4.0


@settings(max_examples=30)
@given(st.integers(0, 10_000), st.integers(2, 400), st.sampled_from([1, 2, 12]))
def test_a_drawn_signal_stays_within_a_pixel_of_the_signal(seed: int, n: int, leads: int) -> None:
    x = np.cumsum(np.random.default_rng(seed).normal(size=(n, leads)), axis=0)
    made = trace_of(x, 100.0)
    chosen = [1, 6, 10] if leads == 12 else list(range(min(leads, 3)))
    kept = x[:, chosen] - np.median(x[:, chosen], axis=0)
    scale = (TRACE_HEIGHT / 2 - 2) / np.abs(kept).max()
    for i, (_, path) in enumerate(made.traces):
        corners = path_points(path)
        true = np.column_stack([np.linspace(0, TRACE_WIDTH, n), TRACE_HEIGHT / 2 - scale * kept[:, i]])
        for point in true:
            a, b = corners[:-1], corners[1:]
            along = np.clip(((point - a) * (b - a)).sum(1) / np.maximum(((b - a) ** 2).sum(1), 1e-12), 0, 1)
            assert np.hypot(*(point - a - along[:, None] * (b - a)).T).min() <= 1.0


def test_the_change_of_a_signal_has_its_own_scale_and_says_its_size() -> None:
    x = np.random.default_rng(0).normal(size=(200, 12))
    delta = np.zeros_like(x)
    delta[50, 1], delta[120, 1] = 0.004, -0.002  # mV, in lead II
    made = trace_of(x, 100.0, x + delta, "under pgd 0.1")
    assert made.change is not None and made.change[0] == "II under pgd 0.1: changed by up to 4 µV"
    height = path_points(made.change[1])[:, 1]
    assert height.max() - height.min() == pytest.approx(1.5 * 17, abs=0.5) and height.min() > 13  # below the words
    assert made.size == (TRACE_WIDTH, 4 * TRACE_HEIGHT) and trace_of(x, 100.0).change is None
    assert len(made.over) == 3 and made.paper and "0.5 mV" in made.about and trace_of(x, 100.0).over == ()
    same = trace_of(x, 100.0, x)
    assert same.over == tuple(path for _, path in same.traces), "an attack that does nothing lies on the clean trace"


def trials_with(names: list[str], header: Header | None = None) -> Trials:
    n = len(names)
    score = np.linspace(-1, 1, n)
    label = [int(i < n // 2) for i in range(n)]
    return Trials.of(
        label, score, item=[f"i{k}" for k in range(n)], header=header or Header("real", "fake"), file=names
    )


@settings(max_examples=25)
@given(st.integers(0, 60_000), st.integers(1, 12))
def test_samples_never_take_more_than_the_budget(files: Path, budget: int, most: int) -> None:
    trials = trials_with(["good.png", "drawing.svg", "good.png", "good.png"] * 3)
    found = worst_errors([RunEvidence("r", trials, finder=FileFinder(files, column="file"))], most=most, budget=budget)
    assert found.n_bytes <= budget
    shown = len(found.samples) + found.left_out
    assert shown == min(most, 6) * 2


def test_both_kinds_of_errors_get_their_share_of_a_small_budget(files: Path) -> None:
    trials = trials_with(["good.png"] * 12)
    one = worst_errors([RunEvidence("r", trials, finder=FileFinder(files, column="file"))], most=1).n_bytes // 2
    found = worst_errors([RunEvidence("r", trials, finder=FileFinder(files, column="file"))], most=6, budget=4 * one)
    held = [sum(s.media is not None for s in own) for own in (found.false_alarms, found.misses)]
    assert abs(held[0] - held[1]) <= 1 and sum(held) >= 2
    assert any("did not fit into the budget" in note for note in found.notes)


def test_what_is_refused_stands_in_the_report_and_is_not_in_it(files: Path) -> None:
    pytest.importorskip("soundfile")
    names = ["good.png", "good.wav", "drawing.svg", "link.png", "bomb.png", "page.wav"]
    data = measured(trials_with(names), "r", Measuring(Design.of(["eer"])))
    finder = FileFinder(files, column="file")
    page = render(compose([type(data)(data.name, data.results, data.pictures, data.trials, finder)]))
    assert page.count("data:image/jpeg;base64,") == 2, "the image, and the spectrogram of the sound"
    assert page.count("data:audio/mpeg;base64,") == 1
    for name in ("drawing.svg", "link.png", "bomb.png", "page.wav"):
        assert f"{name} is not shown: " in page
    assert "pwned" not in page and "data:image/svg" not in page and str(files) not in page
    assert "1 with their image" in page and "1 with their sound" in page


@pytest.mark.parametrize("options", [ReportSpec(no_samples=True), ReportSpec(redact_text=True)])
def test_no_samples_and_redacted_texts_show_no_media(files: Path, options: ReportSpec) -> None:
    data = measured(trials_with(["good.png"] * 6), "r", Measuring(Design.of(["eer"])))
    whole = type(data)(data.name, data.results, data.pictures, data.trials, FileFinder(files, column="file"))
    assert "data:image/jpeg" in render(compose([whole]))
    assert "data:image/jpeg" not in render(compose([whole], options))


def test_places_are_a_folder_a_manifest_an_npz_or_the_score_file_itself(files: Path, tmp_path: Path) -> None:
    assert isinstance(finder_at(files).find({"item": "good"}), Media), "an id may lack the ending"
    (files / "list.tsv").write_text("id\tfile\tlabel\nq\tgood.png\treal\nz\t../secret.png\tfake\n")
    listed = finder_at(files / "list.tsv")
    assert isinstance(listed.find({"item": "q"}), Media) and isinstance(listed.find({"item": "z"}), Refusal)
    assert listed.find({"item": "other"}) is None
    signals = {"x": np.random.default_rng(0).normal(size=(2, 300, 12)), "y": np.eye(2, dtype=int), "fs": 100}
    np.savez(tmp_path / "ecg.npz", **signals, classes=["A", "B"], record=["r0", "r1"])
    finder = finder_at(tmp_path / "ecg.npz")
    assert isinstance(finder, SignalFinder)
    drawn = finder.find({"item": "r1"})
    assert isinstance(drawn, Media) and [name for name, _ in drawn.traces] == ["II", "V1", "V5"]
    assert isinstance(finder.find({"item": "r9"}), Refusal)
    (files / "scores.tsv").write_text("item\tlabel\tscore\tpath\na\treal\t1\tgood.png\nb\tfake\t0\tgood.png\n")
    trials = Trials.of([1, 0], [1.0, 0.0], item=["a", "b"], path=["good.png", "good.png"])
    beside = finder_beside(files / "scores.tsv", trials)
    assert beside is not None and isinstance(beside.find({"item": "a", "path": "good.png"}), Media)
    assert finder_beside(tmp_path / "scores.tsv", trials) is None


def test_evidence_shows_each_item_once_with_what_every_run_said() -> None:
    label, items = [1, 1, 0, 0], ["a", "b", "c", "d"]
    ours = Trials.of(label, [3.0, 2.0, 1.0, -2.0], item=items)
    theirs = Trials.of(label, [3.0, -1.0, 1.0, 2.0], item=items)
    found = worst_errors([RunEvidence("ours", ours, 1.5), RunEvidence("theirs", theirs, 1.5)], most=2)
    said = {s.item: dict(s.runs) for s in found.samples}
    assert said["d"] == {"ours": "right", "theirs": "wrong"} and said["b"] == {"ours": "right", "theirs": "wrong"}
    assert [s.item for s in found.false_alarms] == ["d"] and len(said) == 2, "what every run answers right is no error"


def test_of_repeated_trials_the_wrong_one_is_told_with_how_often_it_came() -> None:
    head = Header("fake", "real", runs=("trial",))
    rows = {"item": ["a", "a", "a"], "label": [0, 0, 0], "decision": [0, 1, 1], "confidence": [0.9, 0.8, 0.7]}
    frame = pl.DataFrame({**rows, "target": [""] * 3, "trial": ["0", "1", "2"]})
    found = worst_errors([RunEvidence("agent", Trials.from_frame(frame, head))])
    (sample,) = found.false_alarms
    assert sample.answers[0].outcome == "wrong" and sample.answers[0].said == "fake in 2 of 3 trials"


def test_rationales_belong_to_their_own_answer(tmp_path: Path) -> None:
    rows = [
        {"id": "a", "model": "m", "use_tools": tools, "trial": t, "label": "real", "prediction": "fake", "confidence": 0.9, "rationale": f"because {tools} {t}"}
        for tools in (True, False) for t in (0, 1)
    ]  # fmt: skip
    file = tmp_path / "r.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    remarks = rationales_beside(file)
    assert remarks is not None
    assert remarks.of({"item": "a", "model": "m", "tools": "no-tools", "trial": "1"}).rationale == "because False 1"
    assert remarks.of({"item": "b", "model": "m", "tools": "no-tools", "trial": "1"}) == Reason()


def test_texts_of_prediction_files_are_shown_and_can_be_redacted(tmp_path: Path) -> None:
    from hitmiss.cli.main import run

    words = ["<b>one</b>", "two", "three", "four"]
    rows = "".join(
        f"{i},{w},{y},{p}\n" for i, (w, y, p) in enumerate(zip(words, (1, 0, 1, 0), (0.1, 0.9, 0.8, 0.2), strict=True))
    )
    (tmp_path / "base_en.csv").write_text("id,text,y_true,y_prob\n" + rows)
    asked = [
        "report",
        f"toxicity={tmp_path}:base",
        "-m",
        "accuracy",
        "--bootstrap",
        "0",
        "-o",
        str(tmp_path / "r.html"),
    ]
    assert run(asked) == 0
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "&lt;b&gt;one&lt;/b&gt;" in page and "<b>one</b>" not in page and "two" in page
    assert run([*asked, "--redact-text"]) == 0
    assert "&lt;b&gt;one" not in (tmp_path / "r.html").read_text(encoding="utf-8")
