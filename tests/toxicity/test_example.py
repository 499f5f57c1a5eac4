"""The example from texts to figures: on data of our own, and on the shared data to the figures of its README."""

from __future__ import annotations

import csv
import importlib.util
import io
from pathlib import Path
from typing import Any

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
    example("toxicity_tfidf").main(data, folder)
    return table(folder / "baseline_metrics.csv")


def example(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(f"example_{name}", ROOT / "examples" / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def table(path: Path) -> dict[str, dict[str, str]]:
    text = path.read_text()
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


@pytest.mark.nightly
def test_the_shared_data_give_the_figures_of_their_readme(tmp_path: Path) -> None:
    if not DATA.is_file():
        pytest.skip("shared/data/toxicity/wiki_toxicity.parquet is not here")
    figures = run_example(DATA, tmp_path)
    for name, wanted in README.items():
        found = [float(figures[name][column]) for column in COLUMNS]
        assert found == pytest.approx(wanted, abs=0.01), name


LABELS = ("toxic", "severe_toxic", "obscene", "threat", "insult", "identity_hate")


def checkpoint(folder: Path) -> Path:
    """A tiny BERT with Detoxify's six labels, weights drawn wide so that its answers differ."""
    import torch
    import transformers

    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "you", "are", "kind", "vile", "a", "day"]
    folder.mkdir()
    (folder / "vocab.txt").write_text("\n".join(words))
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=len(words), hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16,
        initializer_range=0.8, id2label=dict(enumerate(LABELS)), label2id={n: i for i, n in enumerate(LABELS)},
        problem_type="multi_label_classification",
    )  # fmt: skip
    transformers.BertForSequenceClassification(config).save_pretrained(folder)
    transformers.BertTokenizerFast(str(folder / "vocab.txt")).save_pretrained(folder)
    return folder


@pytest.mark.extras
@pytest.mark.filterwarnings("ignore")
def test_the_strong_baseline_scores_by_one_sigmoid_per_label(tmp_path: Path) -> None:
    """Probabilities as the library's own pipeline gives them, and figures from them as scikit-learn gives them."""
    transformers = pytest.importorskip("transformers")
    from sklearn.metrics import roc_auc_score

    words = ("you", "are", "kind", "vile", "a", "day")
    rows = []
    for language in ("en", "es"):
        for i in range(32):
            text = " ".join(words[(i * k + k * k) % 6] for k in range(1, 3 + i % 5))
            rows.append((f"{language}{i}", text, language, int(i // 2 % 3 == 0), ("val", "test")[i % 2]))
    data, model = tmp_path / "texts.csv", checkpoint(tmp_path / "model")
    pl.DataFrame(rows, schema=["id", "text", "lang", "label", "split"], orient="row").write_csv(data)
    example("toxicity_detoxify").main(model, data, tmp_path / "out")
    pipeline = transformers.pipeline("text-classification", model=str(model), top_k=None, device="cpu")
    figures = table(tmp_path / "out" / "detoxify_metrics.csv")
    for language in ("en", "es"):
        made = pl.read_csv(tmp_path / "out" / "test" / f"detoxify_{language}.csv")
        theirs = [
            next(r["score"] for r in found if r["label"] == "toxic") for found in pipeline(made["text"].to_list())
        ]
        assert made["y_prob"].to_list() == pytest.approx(theirs, abs=1e-5)
        assert float(figures[language]["roc_auc"]) == pytest.approx(roc_auc_score(made["y_true"], made["y_prob"]))
