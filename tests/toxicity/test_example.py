"""The example from texts to figures: on data of our own, and on the shared data to the figures of its README."""

from __future__ import annotations

import csv
import importlib.util
import io
from pathlib import Path

import polars as pl
import pytest

ROOT = Path(__file__).resolve().parents[2]
DATA = Path(__file__).resolve().parents[3] / "shared" / "data" / "toxicity" / "wiki_toxicity.parquet"
README = {
    "en": (0.9140, 0.6990, 0.6792, 0.7200, 0.8963),
    "es": (0.8294, 0.5306, 0.4643, 0.6190, 0.8160),
    "it": (0.8496, 0.5291, 0.5495, 0.5102, 0.8220),
    "tr": (0.9756, 0.7692, 0.6962, 0.8594, 0.9450),
    "macro": (0.8921, 0.6320, 0.5973, 0.6772, 0.8698),
    "micro": (0.8989, 0.6117, 0.5761, 0.6520, 0.8710),
}
COLUMNS = ("roc_auc", "f1", "precision", "recall", "accuracy")


def run_example(data: Path, folder: Path) -> dict[str, dict[str, str]]:
    spec = importlib.util.spec_from_file_location("example_toxicity", ROOT / "examples" / "toxicity_tfidf.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.main(data, folder)
    text = (folder / "baseline_metrics.csv").read_text()
    return {row["language"]: row for row in csv.DictReader(io.StringIO(text))}


def test_words_that_give_it_away_are_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = []
    for language in ("en", "es"):
        for i in range(240):
            bad = i % 3 == 0
            text = f"{'grumpy nonsense' if bad else 'kind words'} about topic {i % 7}"
            rows.append((f"{language}{i}", text, language, int(bad), ("train", "train", "val", "test")[i % 4]))
    path = tmp_path / "texts.csv"
    pl.DataFrame(rows, schema=["id", "text", "lang", "label", "split"], orient="row").write_csv(path)
    figures = run_example(path, tmp_path / "out")
    assert {row: float(f["f1"]) for row, f in figures.items()} == dict.fromkeys(
        ("en", "es", "macro", "micro", "worst"), 1.0
    )
    assert "thresholds that maximise f1 on validation" in capsys.readouterr().out


@pytest.mark.slow
def test_the_shared_data_give_the_figures_of_their_readme(tmp_path: Path) -> None:
    if not DATA.is_file():
        pytest.skip("shared/data/toxicity/wiki_toxicity.parquet is not here")
    figures = run_example(DATA, tmp_path)
    for name, wanted in README.items():
        found = [float(figures[name][column]) for column in COLUMNS]
        assert found == pytest.approx(wanted, abs=0.01), name
