"""Torch and ONNX models asked about the same pictures, against their own arithmetic."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from llm_parts import rows_of
from PIL import Image
from tests.llm.running import run_llm

from hitmiss.core.errors import UsageError
from hitmiss.detection.outputs import Extraction
from hitmiss.llm.detectors import open_models
from hitmiss.llm.items import Item, read_items
from hitmiss.llm.plan import CallPlan
from hitmiss.runs.manifest import load_manifest

pytestmark = pytest.mark.extras

NET = '''
import torch

class Net(torch.nn.Module):
    """Fake is what is bright: two logits, real and fake."""

    def forward(self, x):
        bright = 20 * (x.mean(dim=(1, 2, 3)) - 0.5)
        return torch.stack([-bright, bright], dim=1)
'''


def onnx_model(path: Path, side: int) -> None:
    """The same arithmetic as one column, for pictures of one size."""
    onnx = pytest.importorskip("onnx")
    from onnx import TensorProto, helper

    nodes = [
        helper.make_node("GlobalAveragePool", ["x"], ["planes"]),
        helper.make_node("ReduceMean", ["planes"], ["mean"], axes=[1, 2, 3], keepdims=0),
        helper.make_node("Sub", ["mean", "half"], ["centred"]),
        helper.make_node("Mul", ["centred", "forty"], ["flat"]),
        helper.make_node("Unsqueeze", ["flat", "last"], ["logits"]),
    ]
    numbers = [
        helper.make_tensor("half", TensorProto.FLOAT, [], [0.5]),
        helper.make_tensor("forty", TensorProto.FLOAT, [], [40.0]),
        helper.make_tensor("last", TensorProto.INT64, [1], [1]),
    ]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, side, side])
    y = helper.make_tensor_value_info("logits", TensorProto.FLOAT, [1, 1])
    graph = helper.make_graph(nodes, "bright", [x], [y], numbers)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), str(path))


def expected(item: Item, side: int | None = None) -> float:
    assert item.path is not None
    image = Image.open(item.path).convert("RGB")
    pixels = np.asarray(
        image if side is None else image.resize((side, side), Image.Resampling.BILINEAR), dtype=np.float64
    )
    return float(1 / (1 + np.exp(-40 * (pixels.mean() / 255 - 0.5))))


def asked(pictures: Path, tmp_path: Path, name: str, **how: Any) -> list[tuple[Item, dict[str, Any]]]:
    models, items = open_models([name], **how), read_items(pictures)
    plan = CallPlan(items, list(models), detectors={n: m.identity for n, m in models.items()})
    run_llm(plan, output=tmp_path / "r.jsonl", models=models)
    return list(zip(items, rows_of(tmp_path / "r.jsonl"), strict=True))


def test_torch(pictures: Path, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    (tmp_path / "net.py").write_text(NET)
    for item, row in asked(pictures, tmp_path, f"{tmp_path / 'net.py'}:Net", thresholds=(0.2, 0.8)):
        p = expected(item)
        assert row["prediction"] == ("fake" if p >= 0.8 else "real" if p < 0.2 else "uncertain")
        assert row["confidence"] == pytest.approx(p if p >= 0.8 else 1 - p if p < 0.2 else max(p, 1 - p), abs=1e-4)


def test_onnx_with_a_size_of_its_own(pictures: Path, tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    onnx_model(tmp_path / "m.onnx", 20)
    for item, row in asked(pictures, tmp_path, str(tmp_path / "m.onnx"), image_size=20):
        p = expected(item, 20)
        assert row["prediction"] == ("fake" if p >= 0.5 else "real")
        assert row["confidence"] == pytest.approx(max(p, 1 - p), abs=1e-4)


def test_one_number_between_0_and_1_must_be_declared(pictures: Path, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    (tmp_path / "one.py").write_text(
        "import torch\nclass One(torch.nn.Module):\n    def forward(self, x):\n        return x.mean(dim=(1, 2, 3))\n"
    )
    name = f"{tmp_path / 'one.py'}:One"
    with pytest.raises(UsageError, match="outputs='probability'"):
        asked(pictures, tmp_path, name)
    (tmp_path / "p").mkdir()
    for item, row in asked(pictures, tmp_path / "p", name, extraction=Extraction(kind="probability")):
        assert item.path is not None
        p = np.asarray(Image.open(item.path).convert("RGB"), dtype=np.float64).mean() / 255
        assert row["prediction"] == ("fake" if p >= 0.5 else "real")


def test_a_picture_of_the_wrong_size_is_a_failed_call(pictures: Path, tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    onnx_model(tmp_path / "m.onnx", 48)
    small = tmp_path / "s.png"
    Image.new("RGB", (10, 10)).save(small)
    models = open_models([str(tmp_path / "m.onnx")])
    items = [*read_items(pictures)[:2], Item("small", "image", "fake", "", "image/png", data=small.read_bytes())]
    plan = CallPlan(items, list(models), detectors={n: m.identity for n, m in models.items()})
    found = run_llm(plan, output=tmp_path / "r.jsonl", models=models).rows
    assert ["error" in row for row in found] == [False, False, True]


def test_what_a_model_is_taken_for_is_said_and_nothing_is_asked_twice(pictures: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "from pathlib import Path\n\n"
        "def judge(item):\n"
        "    with (Path(__file__).parent / 'asked').open('a') as file:\n"
        "        file.write(item.id + '\\n')\n"
        "    return 0.75\n\n"
        "class Detector:\n"
        "    name, sample_rate = 'bright', None\n"
        "    def outputs(self, batch):\n"
        "        with (Path(__file__).parent / 'computed').open('a') as file:\n"
        "            file.write('.\\n')\n"
        "        return [[-1.5, 2.5]]\n"
    )
    items = read_items(pictures)
    for name, file, words in (
        ("judge", "asked", "probabilities of fake"),
        ("Detector", "computed", "logits (its values), 2 exclusive classes, 1 = fake (assumed)"),
    ):
        text, lines = f"{tmp_path / 'mine.py'}:{name}", list[str]()
        models = open_models([text])
        plan = CallPlan(items, list(models), detectors={n: m.identity for n, m in models.items()})
        run_llm(plan, output=tmp_path / f"{name}.jsonl", models=models, tell=lines.append)
        assert len((tmp_path / file).read_text().splitlines()) == len(items)
        assert len(lines) == 1 and f"taken for: {words}" in lines[0]
        kept: Any = load_manifest(tmp_path / f"{name}.run")["facts"]
        assert words in kept["contracts"][text]["line"]
