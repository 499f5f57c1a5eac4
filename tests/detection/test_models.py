"""Torch, ONNX and transformers detectors: one model, one score; weights never run code."""

from __future__ import annotations

import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from detect_parts import clip, corpus

import hitmiss as hm
from hitmiss.cli.main import run
from hitmiss.core.errors import DataError, UnknownName, UsageError
from hitmiss.core.read_spec import ReadSpec
from hitmiss.detection.loader import make_loader
from hitmiss.detection.loop import detect, run_detector
from hitmiss.detection.opening import open_detector
from hitmiss.detection.outputs import to_probability
from hitmiss.detection.settings import Settings
from hitmiss.io.embeddings import load_embeddings
from hitmiss.io.manifest import read_manifest

pytestmark = pytest.mark.extras

FACTORY = """
import torch

class Small(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.front = torch.nn.Conv1d(1, 8, 64, stride=16)
        self.hidden = torch.nn.Linear(8, 16)
        self.head = torch.nn.Linear(16, 2)

    def forward(self, x):
        h = torch.relu(self.front(x[:, None])).mean(dim=-1)
        return self.head(torch.tanh(self.hidden(h)))
"""


@pytest.fixture
def small(tmp_path: Path) -> str:
    pytest.importorskip("torch")
    (tmp_path / "small.py").write_text(FACTORY)
    return f"{tmp_path / 'small.py'}:Small"


def exported(small: str, path: Path) -> Path:
    torch, _ = pytest.importorskip("torch"), pytest.importorskip("onnxscript")
    module = open_detector(small).module  # type: ignore[attr-defined]
    axes = {"x": {0: torch.export.Dim("batch"), 1: torch.export.Dim("time", min=64)}}
    program = torch.onnx.export(
        module,
        (torch.zeros(2, 4000),),
        dynamo=True,
        dynamic_shapes=axes,
        input_names=["x"],
        output_names=["logits"],
        verbose=False,
    )
    program.save(str(path))
    return path


@pytest.mark.filterwarnings("ignore")
def test_torch_and_onnx_agree_for_any_batch_worker_and_order(small: str, tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    model = exported(small, tmp_path / "model.onnx")
    manifest = corpus(40)
    first = None
    for i, (text, settings) in enumerate(
        [
            (small, {}),
            (small, {"batch_items": 1}),
            (str(model), {}),
            (str(model), {"workers": 2, "batch_seconds": 2.0}),
        ]
    ):
        found = detect(
            open_detector(text, sample_rate=16000), manifest, output=tmp_path / str(i), load=clip, **settings
        )
        first = found.score if first is None else first
        assert np.abs(found.score - first).max() < 1e-5


def test_weights_come_from_safetensors_and_from_checkpoints(small: str, tmp_path: Path) -> None:
    torch, safe = pytest.importorskip("torch"), pytest.importorskip("safetensors.torch")
    module = open_detector(small).module  # type: ignore[attr-defined]
    state = {name: torch.full_like(value, 0.01) for name, value in module.state_dict().items()}
    safe.save_file(state, str(tmp_path / "w.safetensors"))
    torch.save({"state_dict": {f"module.{k}": v for k, v in state.items()}, "epoch": 3}, tmp_path / "w.pt")
    batch = np.ones((2, 4000), dtype=np.float32)
    found = [open_detector(small, weights=tmp_path / name).outputs(batch) for name in ("w.safetensors", "w.pt")]
    assert np.array_equal(found[0], found[1]) and not np.allclose(found[0], open_detector(small).outputs(batch))
    del state["head.bias"]
    torch.save(state, tmp_path / "short.pt")
    with pytest.raises(DataError, match=r"1 weights are missing \(head\.bias\)"):
        open_detector(small, weights=tmp_path / "short.pt")
    with pytest.raises(UsageError, match="there is no checkpoint"):
        open_detector(small, weights=tmp_path / "nothing.pt")


class Evil:
    """What a poisoned checkpoint holds: a thing that does something when it is unpickled."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.marker),)


def test_a_poisoned_checkpoint_runs_nothing(small: str, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    marker = tmp_path / "pwned"
    torch.save({"state_dict": Evil(marker)}, tmp_path / "zip.pt")
    (tmp_path / "raw.pt").write_bytes(pickle.dumps({"model": Evil(marker)}))
    for name in ("zip.pt", "raw.pt"):
        for text, weights in ((small, tmp_path / name), (f"beats:{tmp_path / name}", None)):
            with pytest.raises(DataError, match=r"run code|no checkpoint"):
                open_detector(text, weights=weights)
    assert not marker.exists()
    pickle.loads((tmp_path / "raw.pt").read_bytes())
    assert marker.exists(), "the poison works where somebody swallows it"


def test_layers_are_kept_for_the_probe(small: str, tmp_path: Path) -> None:
    manifest = corpus(30, codec=["a", "b"] * 15)
    detector = open_detector(small, sample_rate=16000, layers=["front", "hidden"])
    run_detector(detector, manifest, Settings(), output=tmp_path / "run", load=clip)
    kept = load_embeddings(tmp_path / "run" / "embeddings.npz")
    assert kept.layers["front"].shape[0] == 30 and kept.layers["hidden"].shape == (30, 16)
    assert kept.column("item").tolist() == manifest.items and kept.column("codec").tolist() == ["a", "b"] * 15
    torch, module = pytest.importorskip("torch"), detector.module  # type: ignore[attr-defined]
    one = torch.from_numpy(clip(manifest.row(3)))[None, None]
    front = torch.relu(module.front(one))
    with torch.no_grad():
        wanted = module.hidden(front.mean(dim=-1))[0].numpy()
    assert kept.layers["hidden"][3] == pytest.approx(wanted, abs=1e-5)
    with pytest.raises(UnknownName, match="did you mean 'hidden'"):
        open_detector(small, layers=["hiden"])


@pytest.mark.filterwarnings("ignore")
def test_inner_values_of_an_onnx_model_are_layers(small: str, tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx")
    path = exported(small, tmp_path / "model.onnx")
    inner = [node.output[0] for node in onnx.load(str(path)).graph.node if node.op_type == "Tanh"]
    detector = open_detector(str(path), layers=inner)
    outputs, layers = detector.with_layers(np.ones((3, 4000), dtype=np.float32))  # type: ignore[attr-defined]
    assert outputs.shape == (3, 2) and layers[inner[0]].shape == (3, 16)
    with pytest.raises(UnknownName, match="inner value"):
        open_detector(str(path), layers=["nothing"])


def test_a_scikit_learn_model_as_onnx(tmp_path: Path) -> None:
    convert = pytest.importorskip("skl2onnx").to_onnx
    from sklearn.linear_model import LogisticRegression

    features = np.random.default_rng(0).normal(size=(80, 5)).astype(np.float32)
    model = LogisticRegression().fit(features, (features[:, 0] > 0).astype(int))
    (tmp_path / "lr.onnx").write_bytes(convert(model, features[:1]).SerializeToString())
    detector = open_detector(str(tmp_path / "lr.onnx"))
    assert detector.outputs(features) == pytest.approx(model.predict_proba(features), abs=1e-6)


def test_a_file_that_is_no_model(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    (tmp_path / "bad.onnx").write_bytes(b"not a model")
    with pytest.raises(DataError, match=r"bad\.onnx is not a model"):
        open_detector(str(tmp_path / "bad.onnx"))


@pytest.mark.filterwarnings("ignore")
def test_transformers_label_names_give_the_polarity(tmp_path: Path) -> None:
    library = pytest.importorskip("transformers")
    config = library.Wav2Vec2Config(
        hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32, conv_dim=(16, 16), conv_kernel=(10, 3),
        conv_stride=(5, 2), num_feat_extract_layers=2, num_conv_pos_embeddings=16, num_conv_pos_embedding_groups=2,
        classifier_proj_size=16, id2label={0: "bonafide", 1: "spoof"}, label2id={"bonafide": 0, "spoof": 1},
    )  # fmt: skip
    library.Wav2Vec2ForSequenceClassification(config).save_pretrained(tmp_path / "model")
    library.Wav2Vec2FeatureExtractor().save_pretrained(tmp_path / "model")
    detector = open_detector(f"hf-audio:{tmp_path / 'model'}")
    assert detector.labels == ("bonafide", "spoof") and detector.sample_rate == 16000  # type: ignore[attr-defined]
    manifest = corpus(20)
    trials = detect(detector, manifest, output=tmp_path / "run", load=clip)
    raw = np.concatenate([detector.outputs(clip(manifest.row(i))[None]) for i in range(20)])
    assert trials.score == pytest.approx(raw[:, 0] - raw[:, 1], abs=1e-5), "bonafide is column 0, and positive"


@pytest.mark.filterwarnings("ignore")
def test_transformers_texts_of_any_length_share_a_batch(tmp_path: Path) -> None:
    library = pytest.importorskip("transformers")
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "you", "are", "kind", "vile", "##ly"]
    (tmp_path / "vocab.txt").write_text("\n".join(words))
    tokenizer = library.BertTokenizerFast(str(tmp_path / "vocab.txt"))
    config = library.BertConfig(
        vocab_size=len(words), hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16,
        id2label={0: "non-toxic", 1: "toxic"}, label2id={"non-toxic": 0, "toxic": 1},
    )  # fmt: skip
    library.BertForSequenceClassification(config).save_pretrained(tmp_path / "model")
    tokenizer.save_pretrained(tmp_path / "model")
    detector = open_detector(f"hf-text:{tmp_path / 'model'}")
    texts = ["you are kind", "vile", "you are you are you are vile"]
    together = detector.outputs(texts)
    alone = np.concatenate([detector.outputs([text]) for text in texts])
    assert np.abs(together - alone).max() < 1e-5 and together.shape == (3, 2)


@pytest.mark.parametrize("precision", ["bfloat16", "int8"])
@pytest.mark.filterwarnings("ignore")
def test_a_precision_of_a_transformers_model_is_measured_and_reported(precision: str, tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    model = text_model(tmp_path / "model", ["non-toxic", "toxic"])
    texts = comments(tmp_path / "c.csv")
    exact = open_detector(f"hf-text:{model}", device="cpu")
    rounded = open_detector(f"hf-text:{model}", device="cpu", precision=precision)
    manifest = read_manifest(tmp_path / "c.csv", options=ReadSpec(positive="toxic", negative="non-toxic"))
    load = make_loader("text", manifest, None)
    outcome = run_detector(rounded, manifest, Settings(), output=tmp_path / "run", load=load)
    odds = np.array([float(np.diff(exact.outputs([text])[0])[0]) for text in texts])
    change = np.abs(hm.read(tmp_path / "run").score - odds)
    told = next(note for note in outcome.notes if note.startswith(f"{precision}: "))
    assert change.max() > 0 and told.endswith(f"{change.max():.2g} at most")


def text_model(folder: Path, labels: list[str], **settings: object) -> Path:
    """A tiny BERT with these labels, weights drawn wide so that its answers differ."""
    import torch
    import transformers

    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "you", "are", "kind", "vile", "a", "day"]
    folder.mkdir()
    (folder / "vocab.txt").write_text("\n".join(words))
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=len(words), hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16,
        initializer_range=0.8, id2label=dict(enumerate(labels)), label2id={n: i for i, n in enumerate(labels)}, **settings,
    )  # fmt: skip
    transformers.BertForSequenceClassification(config).save_pretrained(folder)
    transformers.BertTokenizerFast(str(folder / "vocab.txt")).save_pretrained(folder)
    return folder


def comments(path: Path) -> list[str]:
    texts = ["you are kind", "vile", "you are you are vile", "a day", "are you vile a day", "kind day"]
    rows = [f"{i},{text},{('toxic', 'non-toxic')[i % 2]}\n" for i, text in enumerate(texts)]
    path.write_text("id,text,label\n" + "".join(rows))
    return texts


@pytest.mark.filterwarnings("ignore")
def test_labels_that_exclude_nothing_get_a_sigmoid_each(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    labels = ["toxic", "severe_toxic", "obscene", "threat", "insult", "identity_hate"]
    model = text_model(tmp_path / "model", labels, problem_type="multi_label_classification")
    texts = comments(tmp_path / "c.csv")
    words = ["detect", "--detector", f"hf-text:{model}", "--data", str(tmp_path / "c.csv"), "--input", "text"]
    assert run([*words, "-p", "toxicity", "-o", str(tmp_path / "run"), "--device", "cpu"]) == 0
    ours = to_probability(hm.read(tmp_path / "run").score)
    pipeline = transformers.pipeline("text-classification", model=str(model), top_k=None, device="cpu")
    theirs = [next(row["score"] for row in rows if row["label"] == "toxic") for rows in pipeline(texts)]
    assert ours == pytest.approx(theirs, abs=1e-5)


@pytest.mark.filterwarnings("ignore")
def test_label_names_that_say_nothing_are_asked_about(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("transformers")
    model = text_model(tmp_path / "model", ["LABEL_0", "LABEL_1"])
    comments(tmp_path / "c.csv")
    words = ["detect", "--detector", f"hf-text:{model}", "--data", str(tmp_path / "c.csv"), "--input", "text"]
    words += ["-p", "toxicity", "--device", "cpu"]
    assert run([*words, "-o", str(tmp_path / "run")]) == 2
    assert "--positive-index" in capsys.readouterr().err
    assert run([*words, "-o", str(tmp_path / "other"), "--positive-index", "0"]) == 0


def test_a_folder_without_a_model_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    with pytest.raises(DataError, match="is no audio model"):
        open_detector(f"hf-audio:{tmp_path}")
    with pytest.raises(UsageError):
        open_detector("hf-video:x")


@pytest.mark.extras
@pytest.mark.parametrize(
    ("ending", "kind"),
    [
        ("linear", "logit"),
        ("sigmoid", "logit"),
        ("module", "logit"),
        ("softmax", "logit"),
        ("scaled", "logit"),
        ("tuple", "logit"),
        ("halved", "auto"),
    ],
)
def test_the_last_step_says_what_the_outputs_are(ending: str, kind: str) -> None:
    torch = pytest.importorskip("torch")
    from hitmiss.detection.torch import TorchDetector

    class Net(torch.nn.Module):  # type: ignore[misc,name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.head = torch.nn.Linear(4, 1 if ending in ("sigmoid", "module") else 2)
            self.last = torch.nn.Sigmoid()

        def forward(self, x: Any) -> Any:
            logits = self.head(x)
            made = {
                "linear": lambda: logits,
                "sigmoid": lambda: torch.sigmoid(logits).squeeze(-1),
                "module": lambda: self.last(logits),
                "softmax": lambda: torch.nn.functional.softmax(logits, dim=1),
                "scaled": lambda: logits * 0.01 + 0.5,
                "tuple": lambda: (x.repeat(1, 40), logits),
                "halved": lambda: torch.sigmoid(logits) * 0.5,
            }
            return made[ending]()

    torch.manual_seed(0)
    net = Net()
    x = np.random.default_rng(0).normal(0, 0.1, (5, 4)).astype(np.float32)
    wanted = net.head(torch.from_numpy(x)).detach().numpy()
    detector = TorchDetector(net, device="cpu")
    found = detector.outputs(x)
    assert detector.output_kind == kind
    if ending not in ("scaled", "halved"):
        assert found.reshape(5, -1) == pytest.approx(wanted, abs=1e-6)


@pytest.mark.extras
def test_the_head_stays_in_float32_under_bfloat16() -> None:
    torch = pytest.importorskip("torch")
    from hitmiss.detection.torch import TorchDetector

    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 2))
    x = np.random.default_rng(0).normal(0, 5, (200, 64)).astype(np.float32)
    exact = TorchDetector(net, device="cpu").outputs(x)
    rounded = TorchDetector(net, device="cpu", precision="bf16").outputs(x)
    grid = rounded.astype(np.float32).view(np.uint32) & 0xFFFF
    assert (grid != 0).mean() > 0.9  # not on the grid of bfloat16
    assert 0 < np.abs(rounded - exact).max() < 0.1


@pytest.mark.extras
def test_the_default_is_float32_and_tf32_is_only_for_gpus() -> None:
    torch = pytest.importorskip("torch")
    from hitmiss.detection.torch import TorchDetector

    assert TorchDetector(torch.nn.Linear(4, 2), device="cpu").precision == "float32"
    with pytest.raises(UsageError) as refused:
        TorchDetector(torch.nn.Linear(4, 2), device="cpu", precision="tf32")
    assert refused.value.code == "tf32-on-cuda"


@pytest.mark.extras
@pytest.mark.filterwarnings("ignore")
def test_int8_is_on_request_and_leaves_the_head() -> None:
    torch = pytest.importorskip("torch")
    from hitmiss.detection.torch import TorchDetector

    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 2))
    x = np.random.default_rng(0).normal(0, 1, (50, 64)).astype(np.float32)
    exact = TorchDetector(net, device="cpu").outputs(x)
    whole = TorchDetector(net, device="cpu", precision="int8")
    assert whole.identity["precision"] == "int8"
    assert 0 < np.abs(whole.outputs(x) - exact).max() < 0.1
    quiet = np.concatenate([x[:1] / 100, x])  # a loud neighbour must not take the digits of a quiet item
    assert np.abs(whole.outputs(quiet)[:1] - whole.outputs(quiet[:1])).max() < 1e-6
    assert np.array_equal(TorchDetector(net, device="cpu").outputs(x), exact)  # the module itself is as it was
    with pytest.raises(UsageError) as nothing:
        TorchDetector(torch.nn.Linear(4, 2), device="cpu", precision="int8")
    assert nothing.value.code == "int8-nothing"


@pytest.mark.parametrize("precision", ["bfloat16", "int8"])
@pytest.mark.filterwarnings("ignore")
def test_what_a_precision_changes_is_measured_and_reported(precision: str, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    from hitmiss.detection.torch import TorchDetector

    class Net(torch.nn.Module):  # type: ignore[misc,name-defined]
        def __init__(self) -> None:
            super().__init__()
            torch.manual_seed(0)
            self.inner, self.head = torch.nn.Linear(40, 30), torch.nn.Linear(30, 2)

        def forward(self, x: Any) -> Any:
            return self.head(torch.tanh(self.inner(x[:, :40])))

    manifest = corpus(8)
    exact = TorchDetector(Net(), device="cpu")
    rounded = TorchDetector(Net(), device="cpu", precision=precision)
    outcome = run_detector(rounded, manifest, Settings(), output=tmp_path / "run", load=clip)
    told = next(note for note in outcome.notes if note.startswith(f"{precision}: "))
    rows = [clip(manifest.row(at))[None] for at in range(8)]
    odds = [[float(np.diff(model.outputs(row)[0])[0]) for row in rows] for model in (exact, rounded)]
    change = np.abs(np.subtract(*odds))
    assert change.max() > 0 and f"of 8 clips differ from those in float32 by {change.mean():.2g} in the mean" in told
    assert told.endswith(f"{change.max():.2g} at most")
    plain = run_detector(exact, manifest, Settings(), output=tmp_path / "plain", load=clip)
    assert not any("float32" in note for note in plain.notes)


@pytest.mark.filterwarnings("ignore")
def test_onnx_models_run_on_bound_memory(small: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runtime = pytest.importorskip("onnxruntime")
    path = exported(small, tmp_path / "model.onnx")
    x = np.random.default_rng(0).normal(0, 0.1, (3, 4000)).astype(np.float32)
    plain = runtime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    wanted = plain.run(None, {plain.get_inputs()[0].name: x})[0]

    def copying(*_: Any, **__: Any) -> Any:
        raise AssertionError("a plain call copies more than is needed")

    monkeypatch.setattr(runtime.InferenceSession, "run", copying)
    detector = open_detector(str(path), sample_rate=16000, device="cpu")
    assert np.array_equal(detector.outputs(x), wanted)


@pytest.mark.filterwarnings("ignore")
def test_an_onnx_model_in_eight_bits_is_close_and_no_score_depends_on_its_batch(small: str, tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    path = exported(small, tmp_path / "model.onnx")
    exact = open_detector(str(path), sample_rate=16000, device="cpu")
    rounded = open_detector(str(path), sample_rate=16000, device="cpu", precision="int8")
    x = np.random.default_rng(0).normal(0, 0.1, (6, 4000)).astype(np.float32)
    x[0] /= 100  # a loud neighbour must not take the digits of a quiet clip
    assert 0 < np.abs(rounded.outputs(x) - exact.outputs(x)).max() < 0.01
    assert np.abs(rounded.outputs(x)[:1] - rounded.outputs(x[:1])).max() < 1e-6
    assert rounded.identity["precision"] == "int8" and "precision" not in exact.identity
    outcome = run_detector(rounded, corpus(8), Settings(), output=tmp_path / "run", load=clip)
    assert any(note.startswith("int8: log-odds of 8 clips differ from those in float32") for note in outcome.notes)
    for given, code in (
        ({"precision": "bf16"}, "bad-precision"),
        ({"precision": "int8", "device": "cuda"}, "int8-on-cpu"),
    ):
        with pytest.raises(UsageError) as refused:
            open_detector(str(path), **given)
        assert refused.value.code == code
