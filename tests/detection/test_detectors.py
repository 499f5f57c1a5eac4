"""Detectors that need no heavy package: functions, estimators, programs; and how they are named."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from detect_parts import clip, corpus, expected, two_logits
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from hitmiss.core.errors import DataError, EnvironmentFault, UsageError
from hitmiss.detection.detector import CallableDetector, EstimatorDetector, as_detector
from hitmiss.detection.loop import detect, run_detector
from hitmiss.detection.opening import find_object, open_detector
from hitmiss.detection.outputs import Extraction
from hitmiss.detection.program import ProgramDetector
from hitmiss.detection.settings import Settings

PROGRAM = """
import base64, json, sys
import array
for line in sys.stdin:
    asked = json.loads(line)
    if "text" in asked:
        answer = {"id": asked["id"], "output": len(asked["text"])}
    else:
        values = array.array("f", base64.b64decode(asked["data"]))
        power = sum(v * v for v in values) / len(values)
        answer = {"id": asked["id"], "output": [-power, 2 * power]}
    print(json.dumps(answer), flush=True)
"""


def program(tmp_path: Path, text: str) -> str:
    (tmp_path / "program.py").write_text(text)
    return f"{sys.executable} {tmp_path / 'program.py'}"


def test_a_function_by_name(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("import numpy as np\ndef score(batch):\n    return batch.sum(axis=1)\n")
    detector = open_detector(f"{tmp_path / 'mine.py'}:score", sample_rate=8000)
    assert detector.outputs(np.ones((2, 3))).tolist() == [3.0, 3.0] and detector.sample_rate == 8000
    before = detector.identity  # type: ignore[attr-defined]
    (tmp_path / "mine.py").write_text("import numpy as np\ndef score(batch):\n    return batch.mean(axis=1)\n")
    assert open_detector(f"{tmp_path / 'mine.py'}:score").identity != before  # type: ignore[attr-defined]


def test_a_factory_is_called(tmp_path: Path) -> None:
    (tmp_path / "made.py").write_text("def make(scale=2):\n    return lambda batch: scale * batch.sum(axis=1)\n")
    assert open_detector(f"{tmp_path / 'made.py'}:make").outputs(np.ones((1, 3))).tolist() == [6.0]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("nowhere:model", "cannot be imported"),
        ("math:nothing", "has no 'nothing'"),
        ("nowhere.py:model", "there is no file"),
        ("model", "write one of"),
        ("no/such.onnx", "there is no model"),
    ],
)
def test_unknown_names_are_refused_in_words(text: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        open_detector(text)


def test_what_is_no_detector_is_refused() -> None:
    with pytest.raises(UsageError, match="int is not a detector"):
        as_detector(3)
    with pytest.raises(UsageError, match="no layers"):
        CallableDetector(two_logits).with_layers(np.ones((1, 3)))
    assert find_object("os:path.join") is not None


def test_estimators_give_logits_with_the_polarity_of_their_classes(tmp_path: Path) -> None:
    manifest = corpus(60)
    rng = np.random.default_rng(0)
    features = rng.normal(size=(60, 4)) + 0.5 * (np.arange(60)[:, None] % 2)
    labels = manifest.frame["label"].to_list()

    def load(row: Any) -> Any:
        return features[int(row["file"][1:])]

    model = LogisticRegression().fit(features, labels)
    trials = detect(model, manifest, output=tmp_path / "lr", load=load)
    assert trials.score == pytest.approx(model.decision_function(features), abs=1e-9)
    assert model.classes_.tolist() == ["fake", "real"]
    swapped = LogisticRegression().fit(features, ["human" if w == "real" else "spoof" for w in labels])
    assert swapped.classes_.tolist() == ["human", "spoof"], "the positive class is the first column here"
    again = detect(swapped, manifest, output=tmp_path / "swapped", load=load)
    assert again.score == pytest.approx(trials.score, abs=1e-4)


def test_an_estimator_without_probabilities_and_one_without_anything() -> None:
    features = np.random.default_rng(0).normal(size=(40, 3)) + (np.arange(40)[:, None] % 2)
    model = LinearSVC().fit(features, np.arange(40) % 2)
    assert EstimatorDetector(model).method == "decision_function"
    assert EstimatorDetector(model).outputs(features).shape == (40,)
    with pytest.raises(UsageError, match="has none of"):
        EstimatorDetector(object())


def test_a_program_answers_in_json_lines(tmp_path: Path) -> None:
    detector = ProgramDetector(program(tmp_path, PROGRAM), sample_rate=16000)
    try:
        trials = detect(detector, corpus(25), output=tmp_path / "run", load=clip)
    finally:
        detector.close()
    powers = [3 * float((clip(corpus(25).row(i)).astype(float) ** 2).mean()) for i in range(25)]
    assert trials.score.tolist() == pytest.approx(powers, rel=1e-6)


def test_a_program_gets_texts(tmp_path: Path) -> None:
    detector = ProgramDetector(program(tmp_path, PROGRAM))
    assert detector.outputs(["abc", "ü" * 5000]).tolist() == [[3.0], [5000.0]]
    detector.close()


def test_a_program_that_dies_says_why(tmp_path: Path) -> None:
    detector = ProgramDetector(program(tmp_path, "import sys; sys.exit('no licence')"))
    with pytest.raises(EnvironmentFault, match="exit code 1, it said: no licence") as died:
        detector.outputs(["a"])
    assert died.value.exit_code == 5
    detector.close()


def test_a_program_that_talks_nonsense_or_too_long_is_ended(tmp_path: Path) -> None:
    nonsense = ProgramDetector(program(tmp_path, "print('Loading model ...', flush=True); input()"))
    with pytest.raises(EnvironmentFault, match=r"wrote 'Loading model \.\.\.'"):
        nonsense.outputs(["a"])
    nonsense.close()
    asleep = ProgramDetector(program(tmp_path, "import time; time.sleep(60)"), patience=0.5)
    with pytest.raises(EnvironmentFault, match="ended in the middle"):
        asleep.outputs(["a"])
    asleep.close()


def test_a_program_may_refuse_single_clips(tmp_path: Path) -> None:
    picky = PROGRAM.replace("power = sum", "assert True\n        power = sum").replace(
        "    print(json",
        "    if answer['output'] == 3: answer = {'id': asked['id'], 'error': 'too short'}\n    print(json",
    )
    detector = ProgramDetector(program(tmp_path, picky))
    with pytest.raises(DataError, match="the program says: too short"):
        detector.outputs(["abcd", "abc", "abcde"])
    assert detector.outputs(["abcd", "abcde"]).tolist() == [[4.0], [5.0]], "nothing of the last batch is left over"
    detector.close()


def test_a_missing_program_is_the_machines_fault() -> None:
    with pytest.raises(EnvironmentFault, match="there is no program"):
        ProgramDetector("no-such-program --fast")
    with pytest.raises(UsageError, match="write the command"):
        ProgramDetector("")


def test_a_single_output_for_the_other_class(tmp_path: Path) -> None:
    def fakeness(batch: Any) -> Any:
        odds = two_logits(batch)
        return odds[:, 0] - odds[:, 1]

    settings = Settings(extraction=Extraction(is_reversed=True))
    outcome = run_detector(fakeness, corpus(40), settings, output=tmp_path / "run", load=clip)
    assert outcome.alarms == ()
    reverse = run_detector(fakeness, corpus(40), Settings(), output=tmp_path / "wrong", load=clip)
    assert any("REVERSED" in text and "--higher fake" in text for text in reverse.alarms)
    import hitmiss as hm

    assert hm.read(str(tmp_path / "run")).score == pytest.approx(expected(corpus(40)), abs=1e-9)


def test_a_file_finds_the_modules_beside_it(tmp_path: Path) -> None:
    (tmp_path / "models_beside").mkdir()
    (tmp_path / "models_beside" / "level.py").write_text("def level(batch):\n    return batch.mean(axis=1)\n")
    (tmp_path / "mine.py").write_text("from models_beside.level import level as detector\n")
    (tmp_path / "other.py").write_text("import no_such_module_at_all\n")
    found = open_detector(f"{tmp_path}/mine.py:detector")
    assert found.outputs(np.ones((2, 3))).tolist() == [1.0, 1.0]
    with pytest.raises(UsageError) as missing:
        open_detector(f"{tmp_path}/other.py:x")
    assert missing.value.code == "missing-module"


def test_no_option_is_ignored_in_silence(tmp_path: Path) -> None:
    (tmp_path / "plain.py").write_text("def score(batch):\n    return batch.mean(axis=1)\n")
    for text in (f"{tmp_path}/plain.py:score", "program:cat"):
        for given, code in (({"layers": ["x"]}, "layers-unused"), ({"weights": "no.pt"}, "weights-unused"),
                            ({"precision": "bf16"}, "precision-unused"), ({"compiled": True}, "compiled-unused")):  # fmt: skip
            with pytest.raises(UsageError) as refused:
                open_detector(text, **given)
            assert refused.value.code == code, text


def test_two_files_with_modules_of_one_name_do_not_share_them(tmp_path: Path) -> None:
    for folder, sign in (("a", 1), ("b", -1)):
        (tmp_path / folder / "models").mkdir(parents=True)
        (tmp_path / folder / "models" / "net.py").write_text(f"SIGN = {sign}\n")
        (tmp_path / folder / "detector.py").write_text(
            "from models.net import SIGN\n\ndef score(batch):\n    return SIGN * batch.mean(axis=1)\n"
        )
    first = open_detector(f"{tmp_path}/a/detector.py:score")
    second = open_detector(f"{tmp_path}/b/detector.py:score")
    again = open_detector(f"{tmp_path}/a/detector.py:score")
    batch = np.ones((1, 4), dtype=np.float32)
    assert [d.outputs(batch)[0] for d in (first, second, again)] == [1.0, -1.0, 1.0]


@pytest.mark.parametrize("has_init", [True, False])
def test_a_module_that_is_imported_already_does_not_hide_one_beside_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_init: bool
) -> None:
    (tmp_path / "caller").mkdir()
    monkeypatch.delitem(sys.modules, "network_parts", raising=False)
    monkeypatch.delitem(sys.modules, "network_parts.net", raising=False)
    (tmp_path / "caller" / "network_parts.py").write_text("SIGN = 1\n")
    monkeypatch.syspath_prepend(str(tmp_path / "caller"))
    assert importlib.import_module("network_parts").SIGN == 1
    (tmp_path / "own" / "network_parts").mkdir(parents=True)
    if has_init:
        (tmp_path / "own" / "network_parts" / "__init__.py").write_text("")
    (tmp_path / "own" / "network_parts" / "net.py").write_text("SIGN = -1\n")
    (tmp_path / "own" / "detector.py").write_text(
        "from network_parts.net import SIGN\n\ndef score(batch):\n    return SIGN * batch.mean(axis=1)\n"
    )
    found = open_detector(f"{tmp_path}/own/detector.py:score")
    assert found.outputs(np.ones((1, 4), dtype=np.float32))[0] == -1.0


@pytest.mark.extras
def test_a_network_that_gives_hidden_and_logits_takes_five_lines(tmp_path: Path) -> None:
    """The shape of AASIST, RawNet2 and CLAD: a package `models`, settings in JSON, `(hidden, logits)`, weights in a file."""
    torch = pytest.importorskip("torch")
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "AASIST.py").write_text(
        "import torch\n\n\nclass Model(torch.nn.Module):\n    def __init__(self, d_args):\n        super().__init__()\n"
        "        self.first = torch.nn.Linear(d_args['n'], 4)\n        self.out_layer = torch.nn.Linear(4, 2)\n\n"
        "    def forward(self, x, Freq_aug=False):\n        hidden = torch.tanh(self.first(x))\n"
        "        return hidden, self.out_layer(hidden)\n"
    )
    (tmp_path / "AASIST.conf").write_text('{"model_config": {"n": 64}}')
    lines = [
        "import json, pathlib",
        "from models.AASIST import Model",
        "def detector():",
        f"    return Model(json.loads(pathlib.Path({str(tmp_path / 'AASIST.conf')!r}).read_text())['model_config'])",
    ]
    (tmp_path / "aasist.py").write_text("\n".join(lines) + "\n")
    torch.manual_seed(0)
    state = {"first": torch.nn.Linear(64, 4), "out_layer": torch.nn.Linear(4, 2)}
    weights = {f"{k}.{n}": v for k, part in state.items() for n, v in part.state_dict().items()}
    torch.save(weights, tmp_path / "AASIST.pth")
    made = open_detector(f"{tmp_path}/aasist.py:detector", weights=tmp_path / "AASIST.pth", device="cpu")
    x = np.random.default_rng(0).normal(size=(3, 64)).astype(np.float32)
    wanted = state["out_layer"](torch.tanh(state["first"](torch.from_numpy(x)))).detach().numpy()
    assert np.allclose(made.outputs(x), wanted, atol=1e-6) and len(lines) <= 5
    assert made.output_kind == "logit"  # type: ignore[attr-defined]
    hook = "    net.register_forward_hook(lambda net, clips, found: found[1][:, 1:])"
    second = [*lines[:3], lines[3].replace("return", "net ="), hook, "    return net"]
    (tmp_path / "second.py").write_text("\n".join(second) + "\n")
    alone = open_detector(f"{tmp_path}/second.py:detector", weights=tmp_path / "AASIST.pth", device="cpu")
    assert np.allclose(alone.outputs(x), wanted[:, 1:], atol=1e-6)


@pytest.mark.extras
def test_a_file_may_be_the_first_to_import_torch(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    (tmp_path / "net.py").write_text("import torch\n\ndef net():\n    return torch.nn.Linear(4, 2)\n")
    code = f"from hitmiss.detection.opening import open_detector; print(open_detector({str(tmp_path / 'net.py:net')!r}).name)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
