"""What a run pins: every file that can change a score. A run that goes on with another model is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from hitmiss.cli.main import run
from hitmiss.detection.opening import open_detector
from hitmiss.detection.pinning import code_digest, external_data, local_code
from hitmiss.detection.program import ProgramDetector


def varint(n: int) -> bytes:
    return bytes([n]) if n < 0x80 else bytes([n & 0x7F | 0x80]) + varint(n >> 7)


@pytest.mark.parametrize("name", ["m.data", "w" * 200])
def test_files_that_a_model_names_are_found_in_its_bytes(tmp_path: Path, name: str) -> None:
    entry = b"\x0a\x08location\x12" + varint(len(name)) + name.encode()
    (tmp_path / "m.onnx").write_bytes(b"junk" + entry + b"\x0a\x06offset\x12\x010" + entry)
    assert external_data(tmp_path / "m.onnx") == {}, "a file that is not there holds nothing"
    (tmp_path / name).write_bytes(b"one")
    before = external_data(tmp_path / "m.onnx")
    (tmp_path / name).write_bytes(b"two")
    after = external_data(tmp_path / "m.onnx")
    assert list(before) == list(after) == [name] and before != after


def test_code_is_pinned_with_what_it_imports_from_beside_it(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("import json\nfrom package.inner import weight\ndef score(b):\n    import late\n")
    (tmp_path / "package").mkdir()
    for file, text in {
        "package/__init__.py": "",
        "package/inner.py": "from . import deep\nweight = 1\n",
        "package/deep.py": "",
        "package/other.py": "",
        "late.py": "import mine\n",
    }.items():
        (tmp_path / file).write_text(text)
    names = [str(path.relative_to(tmp_path.resolve())) for path in local_code(tmp_path / "mine.py")]
    assert names == ["mine.py", "late.py", "package/__init__.py", "package/deep.py", "package/inner.py"]
    seen = {code_digest(tmp_path / "mine.py")}
    for file in ("late.py", "package/deep.py", "package/inner.py"):
        (tmp_path / file).write_text("changed = True\n")
        seen.add(code_digest(tmp_path / "mine.py"))
    assert len(seen) == 4
    (tmp_path / "package/other.py").write_text("changed = True\n")
    assert code_digest(tmp_path / "mine.py") in seen


def test_a_resumed_run_refuses_changed_code_beside_the_detector(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "pinned_weights.py").write_text("W = 1.0\n")
    (tmp_path / "mine.py").write_text(
        "import numpy as np\nfrom pinned_weights import W\n\ndef score(texts):\n    return np.array([W * len(t) for t in texts])\n"
    )
    rows = pl.DataFrame({"item": list("abcd"), "text": ["x", "yy", "zzz", ""], "label": ["bonafide", "spoof"] * 2})
    rows.write_csv(tmp_path / "items.csv")
    words = [
        "detect",
        "--data",
        str(tmp_path / "items.csv"),
        "--detector",
        f"{tmp_path / 'mine.py'}:score",
        "--input",
        "text",
    ]
    words += ["--outputs", "logit", "-o", str(tmp_path / "run")]
    assert run(words) == 0, capsys.readouterr().err
    (tmp_path / "pinned_weights.py").write_text("W = 2.0\n")
    capsys.readouterr()
    assert run([*words, "--resume", "--retry"]) == 4
    assert "begun with another configuration: detector.source" in capsys.readouterr().err


def test_an_estimator_is_pinned_by_the_code_that_built_it(tmp_path: Path) -> None:
    code = "class Model:\n    classes_ = ['real', 'fake']\n    def fit(self): ...\n    def __repr__(self): return 'Model()'\n"
    code += "    def decision_function(self, x): return x[:, 0] * {w}\nmodel = Model()\n"
    (tmp_path / "est.py").write_text(code.format(w=1))
    before = open_detector(f"{tmp_path / 'est.py'}:model").identity  # type: ignore[attr-defined]
    (tmp_path / "est.py").write_text(code.format(w=2))
    assert open_detector(f"{tmp_path / 'est.py'}:model").identity != before  # type: ignore[attr-defined]


def test_the_files_of_a_program_are_pinned(tmp_path: Path) -> None:
    script = tmp_path / "score.py"
    script.write_text("one")
    detector = ProgramDetector(f"python {script}")
    before = detector.identity
    script.write_text("two")
    assert detector.identity != before
    detector.close()
    detector._errors.close()


@pytest.mark.extras
def test_weights_beside_an_onnx_graph_are_pinned(tmp_path: Path) -> None:
    import onnx

    def write(weight: float) -> None:
        tensor = onnx.numpy_helper.from_array(np.full((4000, 1), weight, dtype=np.float32), "w")
        graph = onnx.helper.make_graph(
            [onnx.helper.make_node("MatMul", ["x", "w"], ["logits"])],
            "g",
            [onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, ["n", 4000])],
            [onnx.helper.make_tensor_value_info("logits", onnx.TensorProto.FLOAT, ["n", 1])],
            [tensor],
        )
        model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8)
        (tmp_path / "m.data").unlink(missing_ok=True)
        onnx.save(model, tmp_path / "m.onnx", save_as_external_data=True, location="m.data", size_threshold=0)

    write(1.0)
    first = open_detector(str(tmp_path / "m.onnx")).identity  # type: ignore[attr-defined]
    write(2.0)
    second = open_detector(str(tmp_path / "m.onnx")).identity  # type: ignore[attr-defined]
    assert first["onnx"] == second["onnx"] and first["external"] != second["external"]


READING = """
from pathlib import Path
def score(paths):
    texts = [Path(p).read_text() for p in paths]
    if any(t == "broken" for t in texts):
        raise ValueError("cannot read it")
    return [float(len(t)) - 8.0 for t in texts]
"""


@pytest.mark.parametrize("workers", ["0", "1"])
def test_a_run_does_not_go_on_over_other_files(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], workers: str
) -> None:
    """Each item's file is pinned by content when it is read, and compared when the run is resumed or retried."""
    files = {f"f{i}.txt": "x" * (3 * i + 1) for i in range(6)}
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "f3.txt").write_text("broken")
    (tmp_path / "mine.py").write_text(READING)
    rows = [f"{name},{('bonafide', 'spoof')[i % 2]}" for i, name in enumerate(files)]
    (tmp_path / "d.csv").write_text("\n".join(["file,label", *rows]) + "\n")
    words = [
        "detect",
        "--detector",
        f"{tmp_path / 'mine.py'}:score",
        "--data",
        str(tmp_path / "d.csv"),
        "--input",
        "path",
    ]
    words += ["--file-column", "file", "--outputs", "logit", "--workers", workers, "-o", str(tmp_path / "run")]
    assert run(words) == 0
    table = pl.read_parquet(tmp_path / "run" / "trials.parquet")
    assert table.height == 5
    again = [*words, "--resume", "--retry"]
    (tmp_path / "f3.txt").write_text(files["f3.txt"])  # what failed was not scored: it may be put right
    (tmp_path / "f1.txt").write_text("other words")
    capsys.readouterr()
    assert run(again) == 4
    said = capsys.readouterr().err
    assert "f1.txt" in said and "1 files" in said
    (tmp_path / "f1.txt").unlink()
    assert run(again) == 4
    (tmp_path / "f1.txt").write_text(files["f1.txt"])  # the same bytes at another time are the same file
    assert run(again) == 0
    assert pl.read_parquet(tmp_path / "run" / "trials.parquet").height == 6
