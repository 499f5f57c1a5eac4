"""`hitmiss report` of runs that have files: sounds of detections, signals of attacks, what `--media` names, what is told to be left out."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from tests.reports.media_files import SVG, picture, tone

from hitmiss.cli.main import run
from hitmiss.runs.manifest import load_manifest, sealed
from hitmiss.simulate.ecg import simulate
from hitmiss.simulate.ecg_detector import train

SCORER = "def loudness(batch):\n    import numpy as np\n    return 10 * np.abs(np.asarray(batch)).max(axis=-1) - 2\n"


@pytest.fixture
def clips(tmp_path: Path) -> Path:
    """Eight clips in a folder of their own, listed in a manifest; one of them is no sound."""
    pytest.importorskip("soundfile")
    (tmp_path / "data" / "wav").mkdir(parents=True)
    for i in range(8):
        (tmp_path / "data" / "wav" / f"c{i}.wav").write_bytes(tone(300.0 + 50 * i, 0.5 + 0.1 * i))
    rows = [f"c{i}\twav/c{i}.wav\t{'bonafide' if i % 2 else 'spoof'}" for i in range(8)]
    (tmp_path / "data" / "list.tsv").write_text("\n".join(["id\tfile\tlabel", *rows]) + "\n")
    (tmp_path / "scorer.py").write_text(SCORER)
    return tmp_path


def detected(here: Path, *more: str) -> Path:
    words = ["--detector", f"{here / 'scorer.py'}:loudness", "--data", str(here / "data" / "list.tsv")]
    assert run(["detect", *words, "--cut-length", "8000", "-o", str(here / "run"), *more]) == 0
    return here / "run"


def report(*words: object) -> str:
    """A report of these words, as text."""
    assert run(["report", *map(str, words)]) == 0
    return Path(str(words[-1])).read_text(encoding="utf-8")


def test_a_run_knows_its_sounds_and_says_nothing_of_folders(clips: Path) -> None:
    folder = detected(clips, "--manipulate", "gain(db=-6); gain(db=6)")
    assert load_manifest(folder)["facts"]["media"] == "../data"
    shown = ["--media", clips / "data"]
    page = report(folder, "-m", "eer", "--bootstrap", "0", "--samples", "10", *shown, "-o", clips / "r.html")
    assert 2 <= page.count("data:audio/mpeg;base64,") <= 20, "at most ten of each kind, and only errors"
    assert "made again: gain(db=6)" in page and str(clips) not in page and "../data" not in page
    for words in (["--no-samples"], ["--redact-text"], ["--samples-budget", "100"]):
        assert "data:audio" not in report(
            folder, "-m", "eer", "--bootstrap", "0", *shown, *words, "-o", clips / "q.html"
        )


def test_a_run_shows_nothing_that_lies_outside_it(clips: Path) -> None:
    """A run may come from anybody, and names the folder of its files: the report of it holds none of this machine's."""
    folder = detected(clips)
    words = [folder, "-m", "eer", "--bootstrap", "0"]
    page = report(*words, "-o", clips / "r.html")
    assert "data:audio" not in page and "outside the run" in page
    manifest = load_manifest(folder)
    for place in (str(clips / "data"), "../data/../data", "../link", "link/deeper"):
        manifest["facts"]["media"] = place
        (folder / "manifest.json").write_bytes(sealed(manifest))
        (clips / "link").unlink(missing_ok=True)
        (clips / "link").symlink_to(clips / "data")
        assert "data:audio" not in report(*words, "-o", clips / "r.html")
    (clips / "data").rename(folder / "kept")
    manifest["facts"]["media"] = "kept"
    (folder / "manifest.json").write_bytes(sealed(manifest))
    assert "data:audio" in report(*words, "-o", clips / "r.html")


def test_a_run_whose_files_went_away_is_reported_without_them(clips: Path) -> None:
    folder = detected(clips)
    (clips / "data").rename(clips / "moved")
    assert "data:audio" not in report(folder, "-m", "eer", "--bootstrap", "0", "-o", clips / "r.html")
    told = ["--media", clips / "moved" / "list.tsv"]
    assert "data:audio" in report(folder, "-m", "eer", "--bootstrap", "0", *told, "-o", clips / "q.html")


def test_a_score_file_with_a_column_of_paths(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(picture())
    (tmp_path / "b.svg").write_bytes(SVG)
    rows = "".join(f"{i}\t{i % 2}\t{i / 10}\t{'a.png' if i % 4 else 'b.svg'}\n" for i in range(12))
    (tmp_path / "scores.tsv").write_text("item\tlabel\tscore\timage\n" + rows)
    words = ["--positive", "fake", "--negative", "real", "--positive-value", "1", "-m", "eer", "--bootstrap", "0"]
    page = report(tmp_path / "scores.tsv", *words, "-o", tmp_path / "r.html")
    assert (
        "data:image/jpeg;base64," in page and "b.svg is not shown: it is neither a PNG" in page and "pwned" not in page
    )
    scored = ["score", str(tmp_path / "scores.tsv"), *words, "--report", str(tmp_path / "s.html")]
    assert run(scored) == 0 and "data:image/jpeg" in (tmp_path / "s.html").read_text()


def test_media_that_is_nowhere_is_a_usage_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "s.tsv").write_text("item\tlabel\tscore\na\tbonafide\t1\nb\tspoof\t0\n")
    assert (
        run(
            [
                "report",
                str(tmp_path / "s.tsv"),
                "-m",
                "eer",
                "--media",
                str(tmp_path / "none"),
                "-o",
                str(tmp_path / "r.html"),
            ]
        )
        == 2
    )
    assert "there is no folder or file of media none" in capsys.readouterr().err


def test_attacks_from_signals_to_a_report(tmp_path: Path) -> None:
    simulate(120, 0, "train").save(tmp_path / "train.npz")
    simulate(16, 0, "test").save(tmp_path / "test.npz")
    train(tmp_path)
    data = ["--detector", f"{tmp_path / 'detector.py'}:detector", "--data", str(tmp_path / "test.npz")]
    families = ["--family", "band_noise(beta=3)", "--family", "lead_loss", "--strengths", "0.5", "1"]
    assert run(["attack", *data, *families, "-o", str(tmp_path / "run")]) == 0
    page = report(
        tmp_path / "run",
        "-p",
        "ecg-attacks",
        "--by",
        "target",
        "--bootstrap",
        "20",
        "--media",
        tmp_path / "test.npz",
        "-o",
        tmp_path / "r.html",
    )
    assert (
        'class="trace"' in page
        and "Robust accuracy over strength" in page
        and "16 records, 16 of them with a label" in page
    )
    results = str(tmp_path / "results.json")
    assert run(["score", str(tmp_path / "run"), "-p", "ecg-attacks", "-o", results]) == 0
    again = report(results, "-o", tmp_path / "q.html")
    assert "Robust accuracy over strength" in again and 'class="trace"' not in again


def test_toxicity_and_triage_keep_their_curves(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    for language in ("en", "tr"):
        label = rng.random(80) < 0.4
        score = np.clip(0.3 * label + 0.5 * rng.random(80), 0, 1)
        rows = [f"{i},{int(y)},{s:.4f},{int(s > 0.5)},0.5" for i, (y, s) in enumerate(zip(label, score, strict=True))]
        text = "\n".join(["id,y_true,y_prob,y_pred_best,best_threshold", *rows]) + "\n"
        (tmp_path / f"base_{language}.csv").write_text(text)
    words = ["toxicity", "--pred_dir", str(tmp_path), "--run_tag", "base", "--bootstrap", "20"]
    assert run([*words, "--results", str(tmp_path / "tox.json")]) == 0
    kinds = [d["kind"] for d in json.loads((tmp_path / "tox.json").read_text())["pictures"][0]["displays"]]
    assert kinds == ["det", "roc", "pr", "histogram", "reliability"]
    assert "Multilingual toxicity" in report(tmp_path / "tox.json", "-o", tmp_path / "r.html")
    lines = [
        json.dumps({"id": f"i{i}", "label": "fake" if i % 2 else "real", "model": "m", "trial": t, "verdict": ["real", "fake", "uncertain"][(i + t) % 3], "confidence": 0.5 + (i % 5) / 10})
        for i in range(40)
        for t in (0, 1)
    ]  # fmt: skip
    (tmp_path / "results.jsonl").write_text("\n".join(lines) + "\n")
    assert run(["triage", str(tmp_path / "results.jsonl"), "--bootstrap", "20", "-o", str(tmp_path / "tri.json")]) == 0
    drawn = json.loads((tmp_path / "tri.json").read_text())["pictures"]
    assert len(drawn) == 1 and [d["kind"] for d in drawn[0]["displays"]] == ["reliability", "risk_coverage"]
    page = report(tmp_path / "tri.json", "-o", tmp_path / "q.html")
    assert "Risk and coverage" in page and "Mean over repeated runs" in page
