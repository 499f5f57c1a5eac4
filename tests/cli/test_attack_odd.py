"""`hitmiss attack` on odd data, odd models and odd options: one sentence, its exit code, and never a wrong figure."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.simulate.graphs import ecg_graph

from hitmiss.cli.main import run
from hitmiss.simulate.ecg import simulate
from hitmiss.simulate.ecg_detector import ConvBaseline, train

N = 8
MODELS = """
import numpy as np
from hitmiss.simulate.ecg_detector import ConvBaseline
inner = ConvBaseline.load({path!r})

def probability(x):
    return 1 / (1 + np.exp(-np.asarray(inner.outputs(x))))

def logits(x):
    return inner.outputs(x)

def nothing(x):
    return probability(x) * np.nan

def three(x):
    return probability(x)[:, :3]

def broken(x):
    raise RuntimeError("out of order")

def constant(x):
    return np.full((len(x), 5), 0.3)
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    here = tmp_path_factory.mktemp("odd")
    simulate(120, 0, "train").save(here / "train.npz")
    simulate(N, 0, "test").save(here / "test.npz")
    train(here)
    (here / "models.py").write_text(MODELS.format(path=str(here / "detector.npz")))
    return here


def changed(folder: Path, **arrays: Any) -> Path:
    with np.load(folder / "test.npz") as stored:
        kept = {name: stored[name] for name in stored.files}
    made = {name: value(kept) if callable(value) else value for name, value in arrays.items()}
    path = folder / "odd.npz"
    np.savez(path, **{k: v for k, v in {**kept, **made}.items() if v is not None})
    return path


def attack(folder: Path, data: Path, output: Path, *more: str, detector: str = "detector.py:detector") -> int:
    words = ["attack", "--detector", str(folder / detector), "--data", str(data), "-o", str(output)]
    return run([*words, "--family", "band_noise", "--strengths", "0.5", *more])


def with_hole(a: dict[str, Any]) -> Any:
    x = a["x"].copy()
    x[3, 5, 2] = np.nan
    return x


Arrays = dict[str, Callable[[dict[str, Any]], Any] | Any]
ODD: dict[str, tuple[Arrays, int, str]] = {
    "transposed": ({"x": lambda a: a["x"].transpose(0, 2, 1)}, 3, "--data-layout lead_sample"),
    "whole numbers": ({"x": lambda a: (1000 * a["x"]).astype(np.int16)}, 3, "x_uv"),
    "label 2": ({"y": lambda a: 2 * a["y"]}, 3, "y holds 0 and 1; record 'test-0000"),
    "no rate": ({"fs": None}, 2, "--fs"),
    "rate 0": ({"fs": np.float64(0)}, 2, "sample rate"),
    "an id twice": ({"record": np.array(["a"] * N)}, 3, "two records are called 'a'"),
    "a class twice": ({"classes": np.array(list("AABCD"))}, 3, "one name"),
    "three leads": (
        {"x": lambda a: a["x"][:, :, :3], "leads": np.array(["I", "II", "III"])},
        3,
        "× 1000 × 3 (record × sample × lead)",
    ),
    "more names than leads": ({"x": lambda a: a["x"][:, :, :3]}, 3, "leads has 12 names"),
    "no records": (
        {
            name: (lambda a, name=name: a[name][:0])  # type: ignore[misc]
            for name in ("x", "y", "record", "patient", "sex")
        },
        3,
        "no records",
    ),
    "a column called score": ({"score": np.arange(N)}, 3, "'score'"),
    "a column called strength": ({"strength": np.arange(N)}, 3, "'strength'"),
}


@pytest.mark.parametrize("name", ODD)
def test_odd_data(name: str, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arrays, code, words = ODD[name]
    assert attack(folder, changed(folder, **arrays), tmp_path / "run") == code
    said = capsys.readouterr().err
    assert words in said and "bug in hitmiss" not in said and not (tmp_path / "run" / "trials.parquet").exists()


def test_a_record_with_a_hole_is_left_out_and_named(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from hitmiss.io import read

    assert attack(folder, changed(folder, x=with_hole), tmp_path / "run") == 0
    said = capsys.readouterr().err
    assert f"1 of {N} records left out: test-00003: its signal holds values that are NaN" in said
    assert read(str(tmp_path / "run")).frame["item"].n_unique() == N - 1


def test_the_same_records_however_they_are_stored(folder: Path, tmp_path: Path) -> None:
    from hitmiss.io import read

    stored = {
        "plain": ({}, ()),
        "turned": ({"x": lambda a: a["x"].transpose(0, 2, 1)}, ("--data-layout", "lead_sample")),
        "double": ({"x": lambda a: a["x"].astype(np.float64)}, ()),
        "rate": ({"fs": None}, ("--fs", "100")),
    }
    scores = []
    for name, (arrays, more) in stored.items():
        assert attack(folder, changed(folder, **arrays), tmp_path / name, *more) == 0
        scores.append(read(str(tmp_path / name)).frame.sort("attack", "strength", "item", "target")["score"].to_numpy())
    for other in scores[1:]:
        np.testing.assert_allclose(other, scores[0], atol=1e-5)


@pytest.mark.parametrize(
    ("model", "words"),
    [
        ("logits", "must be probabilities"),
        ("nothing", "NaN or infinite"),
        ("three", "3 outputs and 5 classes are named"),
        ("broken", "RuntimeError: out of order"),
    ],
)
def test_odd_models(model: str, words: str, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert attack(folder, folder / "test.npz", tmp_path / "run", detector=f"models.py:{model}") == 3
    said = capsys.readouterr().err
    assert words in said and "bug in hitmiss" not in said


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--target", "MI"), "none of these families can aim"),
        (("--target", "XX"), "unknown class 'XX'"),
        (("--seed", "-1"), "--seed must be 0 or more"),
        (("--batch", "0"), "--batch must be 1 or more"),
        (("--limit", "0"), "--limit must be above 0"),
        (("--threshold", "2"), "0 to 1"),
        (("--strengths", "0.5"), "asked for twice"),
        (("--strengths", "-0.5"), "between 0 and 1"),
        (("--window", "2", "--center", "50"), "runs from 0 to 10"),
    ],
)
def test_odd_options(
    options: tuple[str, ...], words: str, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert attack(folder, folder / "test.npz", tmp_path / "run", *options) == 2
    assert words in capsys.readouterr().err


def score(place: Path, capsys: pytest.CaptureFixture[str]) -> str:
    capsys.readouterr()
    assert run(["score", str(place), "-p", "ecg-attacks"]) == 0
    return capsys.readouterr().out


def test_what_a_reader_of_the_figures_must_know(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert attack(folder, folder / "test.npz", tmp_path / "constant", detector="models.py:constant") == 0
    assert "the model gives the same answer for every record" in score(tmp_path / "constant", capsys)
    assert attack(folder, changed(folder, y=lambda a: 1 - a["y"]), tmp_path / "wrong") == 0
    said = score(tmp_path / "wrong", capsys)
    assert "look REVERSED" in said and "–" in said  # changed among right ones: of nothing
    assert attack(folder, changed(folder, x=lambda a: 1000 * a["x"]), tmp_path / "volts") == 0
    assert "are these microvolts" in score(tmp_path / "volts", capsys)


@pytest.mark.extras
def test_a_graph_for_a_fixed_number_of_records(folder: Path, tmp_path: Path) -> None:
    from hitmiss.io import read

    onnx = pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    pytest.importorskip("torch")
    ecg_graph(ConvBaseline.load(folder / "detector.npz"), tmp_path / "any.onnx")
    graph, scores = onnx.load(tmp_path / "any.onnx"), []
    for size in (None, 1, 3):
        made = onnx.ModelProto()
        made.CopyFrom(graph)
        for value in (made.graph.input[0], made.graph.output[0]) if size else ():
            value.type.tensor_type.shape.dim[0].Clear()
            value.type.tensor_type.shape.dim[0].dim_value = size
        onnx.save(made, str(folder / f"fixed{size}.onnx"))
        more = ("--family", "pgd", "--no-control")
        assert attack(folder, folder / "test.npz", tmp_path / f"{size}", *more, detector=f"fixed{size}.onnx") == 0
        frame = read(str(tmp_path / f"{size}")).frame.sort("attack", "strength", "item", "target")
        scores.append(frame.filter(attack="band_noise")["score"].to_numpy())
        assert (frame.filter(attack="pgd")["decision"] != frame.filter(attack="clean")["decision"]).any()
    for other in scores[1:]:
        np.testing.assert_allclose(other, scores[0], atol=1e-4)


@pytest.mark.parametrize("content", [b"", b"filename,score\na,1\n", b"PK\x03\x04 nothing"])
def test_data_that_is_no_archive_is_told_without_advice_to_unpickle_it(
    content: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "s.npz").write_bytes(content)
    words = [
        "--detector",
        "model.onnx",
        "--data",
        str(tmp_path / "s.npz"),
        "--family",
        "band_noise",
        "--strengths",
        "0.1",
    ]
    assert run(["attack", *words, "--output", str(tmp_path / "run")]) == 3
    said = capsys.readouterr().err
    assert "s.npz is not an .npz of plain arrays" in said and "numpy.savez" in said and "pickle" not in said
