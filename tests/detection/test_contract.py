"""What a detector is taken for: settled before the first item, said in one line, kept in the run, or refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.svm import LinearSVC

import hitmiss as hm
from hitmiss.cli.main import run
from hitmiss.core.errors import UsageError
from hitmiss.runs.manifest import load_manifest

N, SAMPLES = 40, 800

DETECTORS = """
import numpy as np

def level(batch):
    return np.log(np.std(batch, axis=1)) + 3.0

def raw(batch):
    return np.std(batch, axis=1)

def over_the_batch(batch):
    z = np.stack([-level(batch), level(batch)], axis=1)
    e = np.exp(z - z.max())
    return e / e.sum(axis=0)

def dice(batch):
    return level(batch) + np.random.default_rng().normal(size=len(batch))

def decisions(batch):
    p = (level(batch) > 0.9).astype(float)
    return np.stack([1 - p, p], axis=1)

def several(*batches):
    return level(batches[0])

def broken():
    return undefined_name
"""


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Forty short sounds; real ones are a little louder."""
    soundfile = pytest.importorskip("soundfile")
    rng, rows = np.random.default_rng(0), ["file\tlabel"]
    for i in range(N):
        is_real = i % 2
        sound = (0.10 + 0.03 * is_real) * rng.normal(size=SAMPLES) * rng.uniform(0.8, 1.2)
        soundfile.write(tmp_path / f"c{i:02d}.wav", sound.astype(np.float32), 16000, subtype="FLOAT")
        rows.append(f"c{i:02d}.wav\t{'real' if is_real else 'fake'}")
    (tmp_path / "data.tsv").write_text("\n".join(rows) + "\n")
    (tmp_path / "mine.py").write_text(DETECTORS)
    return tmp_path


def detect(data: Path, detector: str, *more: str, output: str = "run", code: int = 0) -> Path:
    words = ["detect", "--detector", detector, "--data", str(data / "data.tsv"), "-o", str(data / output)]
    assert run([*words, "--positive", "real", *more]) == code
    return data / output


def terms(folder: Path) -> dict[str, Any]:
    """Return what the run keeps about the detector."""
    kept: Any = load_manifest(folder)["facts"]
    return dict(kept["contract"]["terms"])


def levels(data: Path) -> np.ndarray:
    soundfile = pytest.importorskip("soundfile")
    return np.array([soundfile.read(data / f"c{i:02d}.wav")[0].std() for i in range(N)])


def test_one_line_says_what_the_detector_is_taken_for_and_the_run_keeps_it(data: Path, capsys: Any) -> None:
    folder = detect(data, f"{data}/mine.py:level")
    said = capsys.readouterr().err
    assert "taken for: logits (its values), higher = real (assumed), 16 kHz (assumed), the same twice" in said
    kept = terms(folder)
    assert kept["sample_rate"] == {"value": 16000, "origin": "assumed"} and kept["repeat"]["value"] == 0.0
    folder = detect(data, f"{data}/mine.py:level", "--sample-rate", "16000", "--outputs", "logit", output="other")
    assert "logits (declared)" in (said := capsys.readouterr().err) and "16 kHz (declared)" in said
    assert terms(folder)["outputs"] == {"value": "logit", "origin": "declared"}


def test_raw_scores_stay_as_they_are(data: Path, capsys: Any) -> None:
    folder = detect(data, f"{data}/mine.py:raw", "--outputs", "raw")
    trials = hm.read(str(folder))
    assert trials.score == pytest.approx(levels(data), rel=1e-5)
    assert trials.header.score_kind == "raw" and "probability" not in trials.frame.columns
    wanted = roc_auc_score(np.arange(N) % 2, levels(data))
    assert hm.measure(trials, ["roc_auc"]).one("roc_auc").value == pytest.approx(wanted)
    capsys.readouterr()
    detect(data, f"{data}/mine.py:raw", output="other", code=3)
    said = capsys.readouterr().err
    assert "--outputs probability" in said and "--outputs raw" in said


def test_a_softmax_over_the_batch_is_refused(data: Path, capsys: Any) -> None:
    detect(data, f"{data}/mine.py:over_the_batch", code=2)
    said = capsys.readouterr().err
    assert "differently alone and in a batch" in said and "--batch-items 1" in said


def test_a_randomised_detector_is_said_to_be_one(data: Path, capsys: Any) -> None:
    folder = detect(data, f"{data}/mine.py:dice", "--json")
    shown = json.loads(capsys.readouterr().out)
    assert any("is randomised" in line for line in shown["alarms"])
    assert not any("what else is in the batch" in line for line in (*shown["alarms"], *shown["notes"]))
    assert terms(folder)["repeat"]["value"] > 0.01


def test_hard_decisions_are_called_so(data: Path, capsys: Any) -> None:
    detect(data, f"{data}/mine.py:decisions", "--json")
    alarms = json.loads(capsys.readouterr().out)["alarms"]
    assert any("hard decisions: only 0 and 1 occur" in line for line in alarms)
    assert not any("no information" in line for line in alarms)


def test_a_function_of_any_number_of_batches_is_a_detector(data: Path) -> None:
    folder = detect(data, f"{data}/mine.py:several")
    assert hm.read(str(folder)).score == pytest.approx(np.log(levels(data)) + 3.0, rel=1e-5)


@pytest.mark.parametrize(
    ("text", "name", "words"),
    [
        (
            "import numpy as np\nprint(1 / 0)\n",
            "f",
            ["ZeroDivisionError: division by zero", "own.py, line 2", "print(1 / 0)"],
        ),
        ("from math import nothing_there\n", "f", ["ImportError", "own.py, line 1"]),
        ("def f(:\n", "f", ["SyntaxError", "own.py, line 1"]),
        ("def f():\n    return undefined_name\n", "f", ["NameError", "own.py, line 2", "return undefined_name"]),
    ],
)
def test_an_error_of_the_users_own_code_is_theirs(
    data: Path, capsys: Any, text: str, name: str, words: list[str]
) -> None:
    (data / "own.py").write_text(text)
    detect(data, f"{data}/own.py:{name}", code=2)
    said = capsys.readouterr().err
    assert "bug in hitmiss" not in said and all(word in said for word in words), said


def fitted(kind: Any, classes: list[Any]) -> Any:
    """An estimator on the level of a clip; the last class is the louder one."""
    x = np.random.default_rng(1).normal(size=(200, 1)) + np.repeat([0.0, 1.0], 100)[:, None]
    model = kind().fit(x, np.repeat(classes, 100))

    class OnLevels:
        classes_ = model.classes_

        def fit(self) -> None: ...

        def _x(self, batch: Any) -> Any:
            return 10 * np.asarray(batch).std(axis=1)[:, None]

    own = OnLevels()
    for method in ("predict_log_proba", "decision_function"):
        if hasattr(model, method) and (kind is LinearSVC or method == "predict_log_proba"):
            setattr(OnLevels, method, lambda self, b, m=method: getattr(model, m)(self._x(b)))
    return own


def test_number_classes_of_an_estimator_need_a_declaration(data: Path) -> None:
    table, wanted = str(data / "data.tsv"), roc_auc_score(np.arange(N) % 2, levels(data))
    model = fitted(LogisticRegression, [0, 1])  # nothing says whether 1 is real or fake
    with pytest.raises(UsageError, match="the model's classes are 0, 1; which of them is 'real'") as refused:
        hm.detect(model, table, data / "a", positive="real")
    assert refused.value.code == "which-class"
    for index, sign in ((1, 1), (0, -1)):
        trials = hm.detect(model, table, data / f"b{index}", positive="real", positive_index=index)
        found = hm.measure(trials, ["roc_auc"]).one("roc_auc").value
        assert found == pytest.approx(wanted if sign > 0 else 1 - wanted)


def test_the_classes_of_a_decision_function_decide_its_direction(data: Path) -> None:
    table, wanted = str(data / "data.tsv"), roc_auc_score(np.arange(N) % 2, levels(data))
    quiet = fitted(LinearSVC, ["bonafide", "spoof"])  # higher means spoof, and it learned that spoof is louder
    trials = hm.detect(quiet, table, data / "a", positive="real")
    assert hm.measure(trials, ["roc_auc"]).one("roc_auc").value == pytest.approx(1 - wanted)
    with pytest.raises(UsageError, match="Say higher, the class that a higher output means"):
        hm.detect(fitted(LinearSVC, [0, 1]), table, data / "b", positive="real")
    trials = hm.detect(fitted(LinearSVC, [0, 1]), table, data / "c", positive="real", higher="real")
    assert hm.measure(trials, ["roc_auc"]).one("roc_auc").value == pytest.approx(wanted)


# ----------------------------------------------------------------------
# Torch modules that end in something that is no sigmoid and no softmax by name.

MODULES = """
import torch

class Net(torch.nn.Module):
    def __init__(self, ending, columns=2):
        super().__init__()
        torch.manual_seed(0)
        self.head = torch.nn.Linear(1, columns)
        with torch.no_grad():
            self.head.weight.copy_(torch.linspace(-4, 4, columns)[:, None] if columns > 1 else torch.tensor([[8.0]]))
            self.head.bias.zero_()
        self.ending = ending

    def forward(self, x):
        z = self.head(10 * x.std(dim=1, keepdim=True) - 1.1)
        return self.ending(z)

logits = Net(lambda z: z)
log_softmax_exp = Net(lambda z: torch.log_softmax(z, 1).exp())
exp_over_sum = Net(lambda z: torch.exp(z) / torch.exp(z).sum(1, keepdim=True))
softmax = Net(lambda z: torch.softmax(z, 1))
mixture = Net(lambda z: torch.einsum("be,bec->bc", torch.full((len(z), 2), 0.5), torch.stack([torch.softmax(z, 1)] * 2, 1)))
over_the_batch = Net(lambda z: torch.softmax(z, 0))
sigmoid = Net(lambda z: torch.sigmoid(z), 1)
by_hand = Net(lambda z: 1 / (1 + torch.exp(-z)), 1)
tanh_half = Net(lambda z: 0.5 * (torch.tanh(z / 2) + 1), 1)
hard = Net(lambda z: torch.nn.functional.hardsigmoid(z), 1)
dirichlet = Net(lambda z: (torch.exp(z) + 1e-9) / (torch.exp(z) + 1e-9).sum(1, keepdim=True))

def make():
    return logits
"""


@pytest.fixture
def modules(data: Path) -> Path:
    pytest.importorskip("torch")
    (data / "nets.py").write_text(MODULES)
    return data


def wanted_log_odds(data: Path) -> np.ndarray:
    """The difference of the two logits, 8 times what the head is given."""
    soundfile = pytest.importorskip("soundfile")
    levels = [soundfile.read(data / f"c{i:02d}.wav")[0].std(ddof=1) for i in range(N)]
    return np.asarray(8 * (10 * np.array(levels) - 1.1))


@pytest.mark.extras
@pytest.mark.parametrize(
    "name", ["logits", "log_softmax_exp", "exp_over_sum", "softmax", "mixture", "sigmoid", "dirichlet"]
)
def test_probabilities_are_never_squashed_twice(modules: Path, name: str) -> None:
    trials = hm.read(str(detect(modules, f"{modules}/nets.py:{name}")))
    assert trials.score == pytest.approx(wanted_log_odds(modules), abs=2e-3)


@pytest.mark.extras
@pytest.mark.parametrize("name", ["by_hand", "tanh_half"])
def test_one_column_that_may_be_either_is_refused_until_it_is_declared(modules: Path, capsys: Any, name: str) -> None:
    detect(modules, f"{modules}/nets.py:{name}", code=3)
    assert "they may be probabilities or logits" in capsys.readouterr().err
    trials = hm.read(str(detect(modules, f"{modules}/nets.py:{name}", "--outputs", "probability", output="b")))
    assert trials.score == pytest.approx(wanted_log_odds(modules), abs=2e-3)


@pytest.mark.extras
def test_a_hard_sigmoid_is_refused_until_it_is_declared(modules: Path) -> None:
    detect(modules, f"{modules}/nets.py:hard", code=3)
    trials = hm.read(str(detect(modules, f"{modules}/nets.py:hard", "--outputs", "probability", output="b")))
    assert trials.frame["probability"].to_numpy() == pytest.approx(
        np.clip(wanted_log_odds(modules) / 6 + 0.5, 0, 1), abs=1e-4
    )


@pytest.mark.extras
@pytest.mark.parametrize("name", ["softmax", "sigmoid"])
def test_a_last_step_may_be_declared(modules: Path, name: str) -> None:
    trials = hm.read(str(detect(modules, f"{modules}/nets.py:{name}", "--outputs", "probability")))
    assert trials.score == pytest.approx(wanted_log_odds(modules), abs=1e-4)


@pytest.mark.extras
def test_a_softmax_over_the_batch_of_a_module_is_refused_and_not_replaced(modules: Path, capsys: Any) -> None:
    detect(modules, f"{modules}/nets.py:over_the_batch", code=2)
    assert "softmax over the batch" in capsys.readouterr().err


# ----------------------------------------------------------------------
# Embeddings are averaged over time, whatever the axes of a layer are.

LAYERS = """
import torch

class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv1d(1, 24, 16, stride=8)

    def forward(self, x):
        return torch.relu(self.conv(x))

class Net(torch.nn.Module):
    def __init__(self, length=None):
        super().__init__()
        torch.manual_seed(0)
        self.length = length
        self.block, self.head = Block(), torch.nn.Linear(24, 2)
        self.fixed = torch.nn.Identity()

    def forward(self, x):
        if self.length and x.shape[1] != self.length:
            raise ValueError("another length")
        return self.head(self.fixed(self.block(x[:, None])).mean(dim=2))

def free():
    return Net()

def bound():
    return Net(800)
"""


def embeddings(folder: Path, layer: str) -> np.ndarray:
    with np.load(folder / "embeddings.npz") as stored:
        return np.asarray(stored[layer])


def wanted_embeddings(data: Path) -> np.ndarray:
    """The mean of the block's 24 channels over time, computed by hand."""
    torch, soundfile = pytest.importorskip("torch"), pytest.importorskip("soundfile")
    torch.manual_seed(0)
    conv = torch.nn.Conv1d(1, 24, 16, stride=8)
    x = np.stack([soundfile.read(data / f"c{i:02d}.wav", dtype="float32")[0] for i in range(N)])
    with torch.no_grad():
        return np.asarray(torch.relu(conv(torch.from_numpy(x)[:, None])).mean(dim=2))


@pytest.mark.extras
def test_a_block_of_any_name_is_averaged_over_time(data: Path, capsys: Any) -> None:
    pytest.importorskip("torch")
    (data / "nets.py").write_text(LAYERS)
    wanted = wanted_embeddings(data)
    folder = detect(data, f"{data}/nets.py:free", "--embed", "block")
    assert embeddings(folder, "block") == pytest.approx(wanted, abs=1e-5)
    capsys.readouterr()
    detect(data, f"{data}/nets.py:bound", "--embed", "block", output="b", code=2)
    assert "--embed block@1 or --embed block@2" in capsys.readouterr().err
    folder = detect(data, f"{data}/nets.py:bound", "--embed", "block@2", output="c")
    assert embeddings(folder, "block") == pytest.approx(wanted, abs=1e-5)


@pytest.mark.extras
@pytest.mark.parametrize("length", ["samples", SAMPLES])
def test_an_inner_value_of_an_onnx_graph_is_averaged_over_time(data: Path, length: Any) -> None:
    onnx, torch = pytest.importorskip("onnx"), pytest.importorskip("torch")
    pytest.importorskip("onnxruntime")
    torch.manual_seed(0)
    conv = torch.nn.Conv1d(1, 24, 16, stride=8)
    node, array = onnx.helper.make_node, onnx.numpy_helper.from_array
    value, kind = onnx.helper.make_tensor_value_info, onnx.TensorProto.FLOAT
    steps = [
        node("Conv", ["sound", "weight", "bias"], ["inner"], strides=[8]),
        node("Relu", ["inner"], ["after"]),
        node("ReduceMean", ["after"], ["mean"], axes=[2], keepdims=0),
        node("MatMul", ["mean", "head"], ["logits"]),
    ]
    stored = {"weight": conv.weight, "bias": conv.bias, "head": torch.randn(24, 2)}
    graph = onnx.helper.make_graph(
        steps, "small", [value("sound", kind, ["n", 1, length])], [value("logits", kind, ["n", 2])],
        [array(v.detach().numpy(), name) for name, v in stored.items()],
    )  # fmt: skip
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 13)], ir_version=8)
    onnx.save(model, str(data / "m.onnx"))
    folder = detect(data, str(data / "m.onnx"), "--embed", "after")
    assert embeddings(folder, "after") == pytest.approx(wanted_embeddings(data), abs=1e-5)


# ----------------------------------------------------------------------
# Sounds that would be scored as something else.


def test_channels_that_cancel_and_samples_on_another_scale_are_failures_with_a_reason(data: Path, capsys: Any) -> None:
    soundfile = pytest.importorskip("soundfile")
    sound = 0.1 * np.random.default_rng(3).normal(size=SAMPLES)
    soundfile.write(data / "c00.wav", np.stack([sound, -sound], axis=1), 16000)
    soundfile.write(data / "c01.wav", (sound * 32768).astype(np.float32), 16000, subtype="FLOAT")
    soundfile.write(data / "c02.wav", np.stack([sound, 0.5 * sound], axis=1), 16000, subtype="FLOAT")
    folder = detect(data, f"{data}/mine.py:level")
    assert "2 failed" in capsys.readouterr().out
    reasons = (folder / "failures.tsv").read_text()
    assert "cancel each other" in reasons and "divide them by 32,768" in reasons
    scores = {row["item"]: row["score"] for row in hm.read(str(folder)).frame.iter_rows(named=True)}
    assert scores["c02.wav"] == pytest.approx(np.log(0.75 * sound.std()) + 3.0, rel=1e-5)
