"""`hitmiss detect --manipulate` on texts and pictures, with small detectors that were really trained; `hitmiss list attacks`."""

from __future__ import annotations

import json
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path

import numpy as np
import pytest

from hitmiss.cli.main import run as run_command
from hitmiss.io import read
from hitmiss.robustness.manipulation import equal_error

TEXTS = """
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

NICE = ["thank you kind friend", "what a lovely day", "great work everyone", "see you soon dear", "this is very helpful"]
NASTY = ["you stupid idiot", "shut up you moron", "what a pathetic loser", "stupid worthless trash", "idiot go away loser"]
detector = make_pipeline(TfidfVectorizer(), LogisticRegression(C=100.0)).fit(NICE + NASTY, [0] * 5 + [1] * 5)
"""
IMAGES = """
import numpy as np

def features(pictures):
    grey = np.stack([p.mean(axis=2) for p in pictures]) / 255.0
    return np.abs(grey[:, ::2, ::2] - grey[:, 1::2, ::2]).mean(axis=(1, 2))[:, None]  # the trace of a careless enlargement

class Detector:
    def __init__(self):
        from sklearn.linear_model import LogisticRegression
        rng = np.random.default_rng(7)
        smooth = np.cumsum(rng.normal(0, 2.0, (40, 16, 16)), axis=1)[..., None] + 128 + np.zeros(3)
        fake = smooth.copy()
        fake[:, ::2] += 12
        self.model = LogisticRegression(C=1e6).fit(features([*smooth, *fake]), [0] * 40 + [1] * 40)

    def __call__(self, pictures):
        return self.model.predict_proba(features(pictures))[:, 1]

detector = Detector()
"""


def run(*words: str) -> str:
    out, err = StringIO(), StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = run_command(list(words))
    assert code == 0, err.getvalue()
    return out.getvalue()


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    (tmp_path / "detector.py").write_text(TEXTS)
    rows = ["item\tlabel\ttext"]
    rows += [f"a{i}\ttoxic\tyou stupid idiot and pathetic loser number {i}" for i in range(8)]
    rows += [f"b{i}\tbenign\tthank you dear friend this is great work {i}" for i in range(8)]
    (tmp_path / "data.tsv").write_text("\n".join(rows) + "\n")
    return tmp_path


def test_texts_with_typos_and_lookalikes(texts: Path) -> None:
    common = ["--detector", f"{texts}/detector.py:detector", "--data", f"{texts}/data.tsv", "--input", "text"]
    classes = ["--positive", "toxic", "--negative", "benign"]
    how = ["--manipulate", "typos(rate=0.3)", "--manipulate", "homoglyphs(rate=0.9)", "--only", "toxic"]
    run("detect", *common, *classes, *how, "-o", f"{texts}/run")
    trials = read(str(texts / "run"))
    assert trials.frame["manipulation"].unique().sort().to_list() == [
        "clean",
        "homoglyphs(rate=0.9)",
        "typos(rate=0.3)",
    ]
    clean = trials.where(manipulation="clean")
    assert (clean.score[clean.label == 1].min()) > clean.score[clean.label == 0].max()
    hidden = trials.where(manipulation="homoglyphs(rate=0.9)")
    assert hidden.score[hidden.label == 1].mean() < clean.score[clean.label == 1].mean() - 1.0  # unknown words
    np.testing.assert_allclose(
        hidden.score[hidden.label == 0], clean.score[clean.label == 0]
    )  # only toxic ones are changed
    found = json.loads(run("drift", f"{texts}/run", "--json", "--bootstrap", "0"))
    rates = {(e["slice"]["manipulation"], e["metric"]): e["value"] for e in found["estimates"]}
    frozen = equal_error(clean.label, clean.score)[1]
    assert rates["clean", "frr"] == 0.0 and rates["homoglyphs(rate=0.9)", "shift_real"] < -1.0
    assert rates["homoglyphs(rate=0.9)", "frr"] == np.mean(hidden.score[hidden.label == 1] <= frozen)


def test_the_suite_of_texts_is_the_same_with_workers(texts: Path) -> None:
    common = ["--detector", f"{texts}/detector.py:detector", "--data", f"{texts}/data.tsv", "--input", "text"]
    common += ["--positive", "toxic", "--negative", "benign", "--manipulate", "suite"]
    run("detect", *common, "-o", f"{texts}/one")
    run("detect", *common, "--workers", "1", "--batch-items", "3", "-o", f"{texts}/two")
    one, two = (read(str(texts / name)).frame.sort("item", "manipulation") for name in ("one", "two"))
    assert one["manipulation"].n_unique() == 5 and one["item"].equals(two["item"])
    np.testing.assert_allclose(one["score"].to_numpy(), two["score"].to_numpy(), atol=1e-9)


def test_pictures_through_jpeg_and_blur(tmp_path: Path) -> None:
    from PIL import Image

    (tmp_path / "detector.py").write_text(IMAGES)
    rng, rows = np.random.default_rng(1), ["item\tlabel\tfile"]
    for i in range(12):
        picture = np.cumsum(rng.normal(0, 2.0, (24 + 2 * (i % 3), 16)), axis=0)[..., None] + 128 + np.zeros(3)
        label = "fake" if i % 2 else "real"
        picture[::2] += 12 if label == "fake" else 0
        Image.fromarray(np.clip(picture, 0, 255).astype(np.uint8)).save(tmp_path / f"{i}.png")
        rows.append(f"p{i}\t{label}\t{i}.png")
    (tmp_path / "data.tsv").write_text("\n".join(rows) + "\n")
    common = ["--detector", f"{tmp_path}/detector.py:detector", "--data", f"{tmp_path}/data.tsv", "--input", "image"]
    common += ["--file-column", "file", "--positive", "fake", "--negative", "real", "--outputs", "probability"]
    run(
        "detect",
        *common,
        "--manipulate",
        "blur(sigma=2); jpeg(quality=90); contrast(factor=0.9)",
        "-o",
        f"{tmp_path}/run",
    )
    trials = read(str(tmp_path / "run"))
    clean = trials.where(manipulation="clean")
    assert clean.score[clean.label == 1].min() > clean.score[clean.label == 0].max()
    blurred, coded = (trials.where(manipulation=name) for name in ("blur(sigma=2)", "jpeg(quality=90)"))
    assert blurred.score[blurred.label == 1].max() < clean.score[clean.label == 1].min()  # blur takes the trace away
    assert coded.score[coded.label == 1].min() > coded.score[coded.label == 0].max()  # a mild JPEG does not


def test_a_family_of_another_medium_is_refused(texts: Path, capsys: pytest.CaptureFixture[str]) -> None:
    common = [
        "detect",
        "--detector",
        f"{texts}/detector.py:detector",
        "--data",
        f"{texts}/data.tsv",
        "-o",
        f"{texts}/run",
        *("--positive", "toxic", "--negative", "benign"),
    ]
    for given, medium, word in (
        ("jpeg(quality=20)", "text", "homoglyphs, typos"),
        ("band_noise", "text", "hitmiss attack"),
        ("typos", "audio", "noise"),
        ("typos", "path", "does not load"),
    ):
        assert run_command([*common, "--input", medium, "--manipulate", given]) == 2
        assert word in capsys.readouterr().err


def test_every_family_is_listed_and_can_be_called_as_listed() -> None:
    from hitmiss.attacks.config import PerturbationConfig, families
    from hitmiss.attacks.family import perturbation
    from hitmiss.core.metric_spec import parse

    found = json.loads(run("list", "attacks", "--json"))["attacks"]
    names = {row["name"] for row in found}
    assert {*families(), "typos", "homoglyphs", "jpeg", "blur", "noise", "gain"} <= names
    for row in found:
        spec = parse(row["call"])
        if row["for"] == "ecg":
            PerturbationConfig(spec.name, 0.5, 0.0, extra=dict(spec.settings))
        else:
            perturbation(row["call"])
    lines = run("list", "attacks").splitlines()
    assert len(lines) == len(found) + 1 and any(line.startswith("typos(rate=0.1)") for line in lines)
    assert "beta=0.1" in run("show", "band_noise") and "needs gradients" in run("show", "pgd")
