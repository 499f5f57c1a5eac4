"""What a classifier is taken for before it is attacked: its classes, its leads, its gradients; or a refusal."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import hitmiss as hm
from hitmiss.attacks.leads import LEADS
from hitmiss.attacks.model import as_classifier
from hitmiss.attacks.recordings import read_recordings
from hitmiss.attacks.signals import read_signals
from hitmiss.cli.main import run
from hitmiss.conclude.attacks import conclude_attacks
from hitmiss.core.errors import DataError, UsageError
from hitmiss.runs.manifest import load_manifest

N, SAMPLES, CLASSES = 24, 120, 4
TURNED = ("II", "I", "V1", "V2", "V3", "AVR", "AVL", "AVF", "III", "V4", "V5", "V6")
"""The standard leads in another order, some in capitals."""


def arrays_of(path: Path) -> dict[str, Any]:
    with np.load(path) as stored:
        return dict(stored)


def softmax(z: np.ndarray) -> np.ndarray:
    e = np.exp(z - z.max(axis=1, keepdims=True))
    return np.asarray(e / e.sum(axis=1, keepdims=True))


def weights() -> np.ndarray:
    return np.random.default_rng(2).normal(size=(2, CLASSES))


def logits(x: np.ndarray) -> np.ndarray:
    """Four logits from the deviation of two leads."""
    return np.asarray((np.asarray(x, dtype=np.float64).std(axis=1) - 0.3) * 20 @ weights())


def exclusive(x: np.ndarray) -> np.ndarray:
    return softmax(logits(x))


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Records of two leads with one class each: mostly the one that `exclusive` gives."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(N, SAMPLES, 2)) * rng.uniform(0.1, 0.5, (N, 1, 2))
    right = exclusive(x).argmax(axis=1)
    right[::5] = (right[::5] + 1) % CLASSES
    np.savez(tmp_path / "x.npz", x=x, y=np.eye(CLASSES, dtype=int)[right], classes=list("abcd"), fs=100.0)
    return tmp_path


def attacked(model: Any, data: Path, **settings: Any) -> Any:
    """Attack with noise, keep the signals, and return the share of changed answers and of right clean ones."""
    options = {"families": ["band_noise"], "strengths": [1.0], "control": False, "save_signals": True} | settings
    trials = hm.attack(model, data / "x.npz", data / "run", **options)
    results = hm.evaluate(trials, protocol="ecg-attacks", bootstrap=0)
    return next(
        e.value for e in results if e.metric == "changed" and e.run.get("attack") == "band_noise" and not e.slice
    )


def brute_force(data: Path) -> float:
    """Return the share of records whose largest output changes, from the signals that the run kept."""
    _, x = read_signals(data / "run", attack="band_noise", strength=1.0)
    before = read_recordings(data / "x.npz").x.astype(np.float32)
    return float((exclusive(x).argmax(axis=1) != exclusive(before).argmax(axis=1)).mean())


def test_outputs_that_sum_to_one_are_exclusive_classes(data: Path) -> None:
    found = attacked(exclusive, data)
    assert found == pytest.approx(brute_force(data)) and 0 < found < 1
    kept: Any = load_manifest(data / "run")["facts"]
    assert kept["contract"]["terms"]["exclusive"] == {"value": True, "origin": "its values"}
    assert "4 exclusive classes (its values)" in kept["contract"]["line"]


def test_the_probabilities_of_an_estimator_are_exclusive_classes(data: Path) -> None:
    stored = arrays_of(data / "x.npz")
    model = LogisticRegression(max_iter=200).fit(stored["x"].reshape(N, -1) ** 2, stored["y"].argmax(axis=1))

    class Squared:
        classes_ = model.classes_

        def fit(self) -> None: ...

        def predict_proba(self, x: Any) -> Any:
            return model.predict_proba(x**2)

    found = attacked(Squared(), data)
    _, x = read_signals(data / "run", attack="band_noise", strength=1.0)
    before = stored["x"].astype(np.float32)
    answers = [Squared().predict_proba(np.asarray(v).reshape(N, -1)).argmax(axis=1) for v in (before, x)]
    assert found == pytest.approx(float((answers[0] != answers[1]).mean()))


def test_sums_of_one_and_several_labels_are_two_readings(data: Path) -> None:
    stored = arrays_of(data / "x.npz")
    stored["y"][0] = 1
    np.savez(data / "x.npz", **stored)
    with pytest.raises(UsageError, match="sum to 1") as refused:
        attacked(exclusive, data)
    assert refused.value.code == "exclusive-unknown"
    attacked(exclusive, data, single_label=False)


MODULES = """
import torch

class Net(torch.nn.Module):
    def __init__(self, ending):
        super().__init__()
        self.register_buffer("weights", torch.tensor(WEIGHTS, dtype=torch.float32))
        self.head = torch.nn.Linear(2, 4, bias=False)
        with torch.no_grad():
            self.head.weight.copy_(self.weights.T)
        self.ending = ending

    def forward(self, x):
        return self.ending(self.head((x.std(dim=1, correction=0) - 0.3) * 20))

logits = Net(lambda z: z)
by_hand = Net(lambda z: torch.log_softmax(z, 1).exp())
dropped = Net(lambda z: torch.nn.functional.dropout(z, 0.5, training=True))
"""


@pytest.fixture
def modules(data: Path) -> Path:
    pytest.importorskip("torch")
    (data / "nets.py").write_text(MODULES.replace("WEIGHTS", repr(weights().tolist())))
    return data


@pytest.mark.extras
def test_logits_with_one_class_per_record_are_asked_about(modules: Path) -> None:
    with pytest.raises(UsageError, match="gives logits of 4 classes") as refused:
        attacked(f"{modules}/nets.py:logits", modules)
    assert refused.value.code == "exclusive-unknown"
    assert attacked(f"{modules}/nets.py:logits", modules, single_label=True) == pytest.approx(brute_force(modules))


@pytest.mark.extras
def test_a_softmax_by_hand_is_not_squashed_again(modules: Path) -> None:
    assert attacked(f"{modules}/nets.py:by_hand", modules) == pytest.approx(brute_force(modules))
    trials = hm.read(str(modules / "run"))
    clean = trials.frame.filter(trials.frame["attack"] == "clean")
    wanted = exclusive(arrays_of(modules / "x.npz")["x"])
    assert 1 / (1 + np.exp(-clean["score"].to_numpy().reshape(N, CLASSES))) == pytest.approx(wanted, abs=1e-4)


@pytest.mark.extras
def test_the_gradient_of_probabilities_of_exclusive_classes_is_that_of_their_logits(modules: Path) -> None:
    signals = []
    for name in ("logits", "by_hand"):
        hm.attack(
            f"{modules}/nets.py:{name}", modules / "x.npz", modules / name, families=["fgsm"], strengths=[0.5],
            single_label=True, save_signals=True, control=False,
        )  # fmt: skip
        signals.append(read_signals(modules / name, attack="fgsm", strength=0.5)[1])
    assert np.mean(np.sign(signals[0]) == np.sign(signals[1])) > 0.99
    assert signals[0] == pytest.approx(signals[1], abs=1e-3)


@pytest.mark.extras
def test_a_randomised_model_is_not_attacked(modules: Path) -> None:
    with pytest.raises(UsageError, match="is randomised") as refused:
        attacked(f"{modules}/nets.py:dropped", modules)
    assert refused.value.code == "randomised-model"


def test_an_answer_that_depends_on_the_batch_is_refused(data: Path) -> None:
    def over_the_batch(x: np.ndarray) -> np.ndarray:
        e = np.exp(logits(x))
        return np.asarray(e / e.sum(axis=0))

    with pytest.raises(UsageError, match="alone and in a batch") as refused:
        attacked(over_the_batch, data)
    assert refused.value.code == "batch-dependent"


@pytest.mark.extras
def test_gradients_of_another_network_are_refused(data: Path) -> None:
    torch = pytest.importorskip("torch")

    class Model:
        __name__ = "model"

        def __call__(self, x: Any) -> Any:
            return exclusive(x)

        def differentiable(self, x: Any) -> Any:
            return (x.mean(dim=2) - 0.3) @ torch.tensor(weights(), dtype=torch.float32)

    with pytest.raises(DataError, match="is not the model") as refused:
        attacked(Model(), data, families=["fgsm"])
    assert refused.value.code == "other-gradients"


def test_raw_scores_are_not_attacked(data: Path) -> None:
    with pytest.raises(UsageError, match="one of 'auto', 'logit', 'probability'; found 'raw'"):
        attacked(logits, data, outputs="raw")
    with pytest.raises(UsageError, match="needs decisions"):
        as_classifier(logits, outputs="raw")


# ----------------------------------------------------------------------
# Leads by their names.


def by_lead(x: np.ndarray) -> np.ndarray:
    """Two probabilities that look at leads III and V1 of the standard order."""
    z = np.asarray(x, dtype=np.float64)[:, :, [2, 6]].mean(axis=1) * 8
    return np.asarray(1 / (1 + np.exp(-z)))


@pytest.fixture
def twelve(tmp_path: Path) -> Path:
    """Records of twelve leads in the standard order and in another, with names."""
    rng = np.random.default_rng(1)
    eight = rng.normal(size=(N, SAMPLES, 12)) * 0.2 + rng.normal(size=(N, 1, 12)) * 0.3
    x = eight.copy()
    x[..., 2] = x[..., 1] - x[..., 0]
    y = (by_lead(x) > 0.5).astype(int)
    y[0] = 1
    same = {"y": y, "classes": ["a", "b"], "fs": 100.0}
    np.savez(tmp_path / "standard.npz", x=x, leads=LEADS, **same)
    usual = [name.casefold() for name in LEADS]
    turned = x[..., [usual.index(name.casefold()) for name in TURNED]]
    np.savez(tmp_path / "turned.npz", x=turned, leads=TURNED, **same)
    return tmp_path


def scores(model: Any, path: Path, **options: Any) -> np.ndarray:
    trials = hm.attack(model, path, families=["band_noise"], strengths=[0.5], **options)
    return np.asarray(trials.frame["score"].to_numpy())


def test_leads_are_ordered_by_their_names(twelve: Path) -> None:
    wanted = scores(by_lead, twelve / "standard.npz")
    with pytest.raises(UsageError, match="not in the usual order") as refused:
        scores(by_lead, twelve / "turned.npz")
    assert refused.value.code == "leads-unknown"
    assert scores(by_lead, twelve / "turned.npz", leads="standard") == pytest.approx(wanted, abs=1e-9)

    def other(x: np.ndarray) -> np.ndarray:
        back = [
            TURNED.index(name if name.startswith("V") or name in ("I", "II", "III") else name.upper()) for name in LEADS
        ]
        return by_lead(np.asarray(x)[:, :, back])

    assert scores(other, twelve / "turned.npz", leads=TURNED) == pytest.approx(wanted, abs=1e-9)
    assert scores(other, twelve / "standard.npz", leads=",".join(TURNED)) == pytest.approx(wanted, abs=1e-9)
    other.leads = TURNED  # type: ignore[attr-defined]
    assert scores(other, twelve / "standard.npz") == pytest.approx(wanted, abs=1e-9)
    with pytest.raises(DataError, match="takes the lead MLII"):
        scores(by_lead, twelve / "standard.npz", leads="MLII,V1")


def test_headers_of_records_may_name_the_leads_in_any_order(tmp_path: Path) -> None:
    values = np.random.default_rng(4).integers(-900, 900, (2, 100, 12))
    for at, names in enumerate((LEADS, TURNED)):
        usual = [name.casefold() for name in LEADS]
        own = values[at][:, [usual.index(name.casefold()) for name in names]]
        (tmp_path / f"r{at}.dat").write_bytes(own.astype("<i2").tobytes())
        lines = [f"r{at} 12 100 100"]
        lines += [
            f"r{at}.dat 16 1000(0)/mV 16 0 {v[0]} {int(v.sum()) % 65536} 0 {n}"
            for n, v in zip(names, own.T, strict=True)
        ]
        (tmp_path / f"r{at}.hea").write_text("\n".join([*lines, "#Dx: 1,2"]) + "\n")
    data = read_recordings(tmp_path)
    assert data.x == pytest.approx(values / 1000.0) and data.leads == LEADS
    with pytest.raises(UsageError, match="not in the usual order"):
        scores(by_lead, tmp_path)
    clean = scores(by_lead, tmp_path, leads="standard")[:4].reshape(2, 2)
    assert 1 / (1 + np.exp(-clean)) == pytest.approx(by_lead((values / 1000.0).astype(np.float32)), abs=1e-6)


def test_consistent_changes_hold_for_the_leads_as_they_are_named(twelve: Path) -> None:
    hm.attack(
        by_lead, twelve / "turned.npz", twelve / "run", families=["band_noise"], strengths=[1.0], lead_consistent=True,
        leads="standard", save_signals=True, control=False,
    )  # fmt: skip
    data = read_recordings(twelve / "turned.npz")
    _, x = read_signals(twelve / "run", attack="band_noise", strength=1.0)
    assert data.leads is not None
    first, second, third = (x[..., data.leads.index(name)] for name in ("I", "II", "III"))
    assert np.abs(x - data.x).max() > 0.05
    assert third == pytest.approx(second - first, abs=1e-5)


def test_other_leads_have_no_lead_equations(twelve: Path) -> None:
    stored = arrays_of(twelve / "standard.npz")
    np.savez(twelve / "other.npz", **{**stored, "leads": [f"chest {i}" for i in range(12)]})
    with pytest.raises(UsageError, match="lead equations"):
        scores(by_lead, twelve / "other.npz", lead_consistent=True)
    np.savez(twelve / "twice.npz", **{**stored, "leads": ["I"] * 12})
    with pytest.raises(DataError, match="each needs one of its own"):
        scores(by_lead, twelve / "twice.npz")


def test_a_model_for_another_rate_is_refused(twelve: Path) -> None:
    def model(x: np.ndarray) -> np.ndarray:
        return by_lead(x)

    model.sample_rate = 500  # type: ignore[attr-defined]
    with pytest.raises(DataError, match="takes 500 samples per second and the data has 100"):
        scores(model, twelve / "standard.npz")


def test_the_command_says_what_the_model_is_taken_for(twelve: Path, capsys: Any) -> None:
    (twelve / "mine.py").write_text(
        "import numpy as np\n\ndef model(x):\n    return 1 / (1 + np.exp(-8 * x[:, :, [2, 6]].mean(axis=1)))\n"
    )
    words = [
        "attack",
        "--detector",
        f"{twelve}/mine.py:model",
        "--data",
        f"{twelve}/turned.npz",
        "--family",
        "band_noise",
    ]
    words += ["--strengths", "0.5", "-o", f"{twelve}/run"]
    assert run(words) == 2
    assert "--leads standard" in capsys.readouterr().err
    assert run([*words, "--leads", "standard"]) == 0
    said = capsys.readouterr().err
    assert (
        "taken for: probabilities (assumed), 2 labels (its values), in the order a, b, 12 leads by their names" in said
    )


def test_a_model_that_is_never_right_gets_no_good_word(data: Path) -> None:
    def wrong(x: np.ndarray) -> np.ndarray:
        return np.roll(exclusive(x), 2, axis=1)

    trials = hm.attack(wrong, data / "x.npz", families=["band_noise"], strengths=[0.1])
    found = conclude_attacks(hm.evaluate(trials, protocol="ecg-attacks", bootstrap=100))
    assert found.code == "attack-on-nothing" and "right about no untouched record" in found.headline
