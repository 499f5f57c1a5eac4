"""The verbs calibrate, fuse, convert and board, typed as a user types them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import hitmiss as hm

N = 400


def write(folder: Path, name: str, seed: int, shift: float, *, n: int = N, probability: bool = False) -> Path:
    """Write a score file of the official layout, and the key of its trials beside it."""
    label = np.random.default_rng(n).random(n) < 0.4
    score = 2 * (shift * label + np.random.default_rng(seed).normal(size=n)) - 1
    values = 1 / (1 + np.exp(-score)) if probability else score
    ids = [f"u{i}" for i in range(n)]
    pl.DataFrame({"filename": ids, "cm-score": values}).write_csv(folder / name, separator="\t")
    words = np.where(label, "bonafide", "spoof")
    key = pl.DataFrame({"filename": ids, "cm-label": words, "speaker": [f"s{i % 20}" for i in range(n)]})
    key.write_csv(folder / f"key{n}.tsv", separator="\t")
    return folder / name


def run(*words: object) -> int:
    """Run a command."""
    return hm.run([str(word) for word in words])


def test_a_fit_is_stored_and_maps_scores_without_labels(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What is written for unlabelled scores is slope × score + offset of the stored fit, in the official layout."""
    dev, test = write(tmp_path, "dev.tsv", 1, 1.5), write(tmp_path, "eval.tsv", 2, 1.5, n=300)
    model, out = tmp_path / "model.json", tmp_path / "out.tsv"
    assert run("calibrate", dev, "--key", tmp_path / f"key{N}.tsv", "--save", model, "--bootstrap", 0) == 0
    shown = capsys.readouterr().out
    assert "before" in shown and "held-out" in shown
    assert run("calibrate", test, "--model", model, "--to", out) == 0
    fitted = json.loads(model.read_text())["mapping"]
    raw, made = (pl.read_csv(path, separator="\t") for path in (test, out))
    assert made.columns == ["filename", "cm-score"] and made["filename"].to_list() == raw["filename"].to_list()
    expected = fitted["slope"] * raw["cm-score"].to_numpy() + fitted["offset"]
    np.testing.assert_allclose(made["cm-score"].to_numpy(), expected, rtol=1e-14)


def test_before_and_after_are_those_of_score(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The numbers that calibrate shows are those that `score` gives for the written file."""
    dev, test = write(tmp_path, "dev.tsv", 1, 1.5), write(tmp_path, "eval.tsv", 2, 1.5, n=300)
    key, other = tmp_path / f"key{N}.tsv", tmp_path / "key300.tsv"
    out = tmp_path / "out.tsv"
    words = ["--apply", test, "--apply-key", other, "--to", out, "-m", "cllr", "-m", "eer", "--bootstrap", 0, "--json"]
    assert run("calibrate", dev, "--key", key, *words) == 0
    shown = json.loads(capsys.readouterr().out)["results"]["estimates"]
    after = {e["metric"]: e["value"] for e in shown if e["run"]["calibration"] == "after affine"}
    alone = hm.evaluate(out, other, metrics=["cllr", "eer"], score_kind="llr", bootstrap=0)
    assert after == pytest.approx({e.metric: e.value for e in alone if not e.slice}, rel=1e-12)


def test_fusion_of_two_systems(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A fusion is better than both of its systems, is written, and the stored fit gives the same file."""
    a, b = write(tmp_path, "a.tsv", 1, 1.3), write(tmp_path, "b.tsv", 2, 1.2)
    c, d = write(tmp_path, "c.tsv", 3, 1.3, n=300), write(tmp_path, "d.tsv", 4, 1.2, n=300)
    key, other, model = tmp_path / f"key{N}.tsv", tmp_path / "key300.tsv", tmp_path / "m.json"
    words = ["--apply", c, d, "--apply-key", other, "--to", tmp_path / "one.tsv", "--save", model]
    assert run("fuse", a, b, "--key", key, *words, "-m", "eer", "--bootstrap", 0, "--json") == 0
    shown = json.loads(capsys.readouterr().out)["results"]["estimates"]
    eers = {e["run"]["calibration"]: e["value"] for e in shown}
    assert eers["after fusion"] < min(eers["a"], eers["b"])
    assert run("fuse", c, d, "--model", model, "--to", tmp_path / "two.tsv") == 0
    assert (tmp_path / "one.tsv").read_bytes() == (tmp_path / "two.tsv").read_bytes()
    assert run("fuse", c, "--model", model) == 2
    assert "2 systems" in capsys.readouterr().err


@pytest.mark.parametrize("scale", ["log-odds", "same"])
def test_convert_keeps_the_order(tmp_path: Path, scale: str) -> None:
    """Probabilities become log-odds, or stay; no score changes its place."""
    given = write(tmp_path, "p.tsv", 5, 1.5, probability=True)
    words = ["--positive", "bonafide", "--score-kind", "probability", "--scale", scale]
    assert run("convert", given, tmp_path / "out.tsv", *words) == 0
    raw, made = (pl.read_csv(path, separator="\t")["cm-score"].to_numpy() for path in (given, tmp_path / "out.tsv"))
    np.testing.assert_allclose(made, np.log(raw / (1 - raw)) if scale == "log-odds" else raw, rtol=1e-12)


def test_what_cannot_be_converted_is_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Raw scores have no probabilities, scores without labels no direction, and an input is not written over."""
    given = write(tmp_path, "s.tsv", 6, 1.5)
    out = tmp_path / "out.tsv"
    assert run("convert", given, out, "--positive", "bonafide", "--scale", "probability") == 2
    assert "calibrate" in capsys.readouterr().err
    assert run("convert", given, out) == 2
    assert "--positive" in capsys.readouterr().err
    before = given.read_bytes()
    assert run("convert", given, given, "--positive", "bonafide") != 0
    assert given.read_bytes() == before


def test_scores_without_labels_are_never_measured(tmp_path: Path) -> None:
    """The stand-in classes of unlabelled scores reach no number."""
    from hitmiss.core.read_spec import ReadSpec
    from hitmiss.io.unlabelled import read_unlabelled

    trials = read_unlabelled(str(write(tmp_path, "s.tsv", 7, 1.5)), ReadSpec(), "bonafide")
    with pytest.raises(hm.DataError, match="no labels"):
        hm.measure(trials, ["eer"])


def test_a_board_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Tables, JSON, a site, LaTeX, CSV, and a board.toml give one board."""
    folder = tmp_path / "submissions"
    folder.mkdir()
    for name, shift, seed in (("good", 3.0, 1), ("fair", 1.0, 2)):
        write(tmp_path, f"{name}.tsv", seed, shift).rename(folder / f"{name}.tsv")
    key = tmp_path / f"key{N}.tsv"
    outputs = ["--site", tmp_path / "site", "--table", tmp_path / "t.tex", "--table", tmp_path / "t.csv"]
    assert run("board", folder, "--keys", key, "-m", "eer", "--bootstrap", 100, *outputs) == 0
    shown = capsys.readouterr().out
    assert shown.index("good") < shown.index("fair")
    assert (tmp_path / "site" / "index.html").is_file() and "good" in (tmp_path / "t.tex").read_text()
    plan = tmp_path / "board.toml"
    files = "".join(f'[systems.{name}]\nall = "submissions/{name}.tsv"\n' for name in ("good", "fair"))
    plan.write_text(f'title = "Two"\n[datasets.all]\nkey = "{key.name}"\n{files}')
    assert run("board", plan, "-m", "eer", "--bootstrap", 100, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert [s["system"] for s in found["systems"]] == ["good", "fair"] and found["title"] == "Two"
    plan.write_text(plan.read_text() + "[datasets.more]\nweigth = 2\n")
    assert run("board", plan, "-m", "eer") == 2
    assert "weight" in capsys.readouterr().err
