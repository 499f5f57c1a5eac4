"""What models, recordings, runs and people are refused for: each code made by the function that finds it."""

from __future__ import annotations

import socket
import sys
from collections.abc import Callable, Sequence
from contextlib import closing
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tests.findings.producing import Case, assert_produces

import hitmiss as hm
from hitmiss.attacks.model import Classifier, as_classifier
from hitmiss.attacks.perform import Records
from hitmiss.attacks.recordings import Recordings, read_recordings
from hitmiss.attacks.signals import _read
from hitmiss.attacks.worker import _probe, agree_on_leads
from hitmiss.conclude.checks import _complete, _costs
from hitmiss.conclude.people import _added, agreement
from hitmiss.core.header import Header
from hitmiss.core.results import Estimate, Results
from hitmiss.detection.classifier_contract import agree, exclusive_classes
from hitmiss.detection.detector import arrays_of
from hitmiss.detection.embeddings import EmbeddingWriter
from hitmiss.detection.layers import time_axis
from hitmiss.detection.outputs import Extraction
from hitmiss.detection.program import ProgramDetector
from hitmiss.detection.table import Answers
from hitmiss.llm.addresses import require_server
from hitmiss.llm.detectors import Model
from hitmiss.llm.failures import stopped
from hitmiss.llm.items import Item
from hitmiss.llm.secrets import Secrets
from hitmiss.media.wfdb import read_record
from hitmiss.review.ecg_paper import Ecg
from hitmiss.review.library import Library
from hitmiss.simulate.spectral_baseline import SpectralBaseline, features

SIGNALS = np.random.default_rng(0).normal(size=(3, 200, 2))


def records(y: object = None, model: Classifier | None = None) -> Records:
    """Three records of two leads."""
    return Records(SIGNALS, y, 100.0, model)  # type: ignore[arg-type]


def recordings(y: Sequence[Sequence[int]] = ((1,), (0,), (1,)), classes: tuple[str, ...] = ("a",)) -> Recordings:
    """Three recordings of two leads without names."""
    return Recordings(SIGNALS, np.array(y), 100.0, classes, ["r0", "r1", "r2"])


def arrays(**named: object) -> Callable[[], object]:
    """Reading an archive that holds these arrays."""

    def call() -> object:
        np.savez("data.npz", **named)  # type: ignore[arg-type]
        return read_recordings("data.npz")

    return call


def wfdb(comment: str = "", labels: str | None = None) -> Callable[[], object]:
    """Reading a folder with one WFDB record, and a table of labels if there is one."""

    def call() -> object:
        Path("set").mkdir(exist_ok=True)
        Path("set/r1.hea").write_text(f"r1 1 100 4\nr1.dat 16 200/mV 16 0 1 10 0 I\n{comment}")
        np.array([1, 2, 3, 4], "<i2").tofile("set/r1.dat")
        if labels is None:
            return read_recordings("set")
        Path("labels.csv").write_text(labels)
        return read_recordings("set", labels="labels.csv")

    return call


class Forest:
    """An estimator of which one class was learned from three values."""

    def fit(self) -> None:
        """Learn, which it has done already."""

    def predict(self, x: np.ndarray) -> np.ndarray:
        return np.zeros((len(x), 1))

    def predict_proba(self, x: np.ndarray) -> list[np.ndarray]:
        return [np.full((len(x), 3), 1 / 3)]


RNG = np.random.default_rng(1)


def noisy(x: np.ndarray) -> np.ndarray:
    """A model that answers by chance."""
    return RNG.random((len(x), 1))


@cache
def embeddings() -> EmbeddingWriter:
    """The writer of the embeddings of a run."""
    return EmbeddingWriter(SimpleNamespace(folder=Path(), items=["a", "b"], has_error=[], segment=0))  # type: ignore


SIGNAL_CASES: Sequence[tuple[str, Case]] = [
    ("bad-truth/rows", lambda: records([[1.0], [0.0]])),
    ("bad-truth/table", lambda: recordings(((1, 0), (0, 1), (1, 1)))),
    ("needs-model", lambda: records().clean),
    ("no-array", arrays(x=SIGNALS, fs=100.0)),
    ("no-records", lambda: (Path("empty").mkdir(), read_recordings("empty"))),
    ("no-labels", wfdb()),
    ("no-record-column", wfdb(labels="name,MI\nr1,1\n")),
    ("label-rows", wfdb(labels="record,MI\nr2,1\n")),
    ("no-labels/column", wfdb(labels="record,MI\nr1,many\n")),
    ("wfdb-header", lambda: read_record("gone.hea")),
    ("class-values", lambda: as_classifier(Forest()).proba(SIGNALS)),
    ("one-output", lambda: Classifier(lambda x: np.zeros((len(x), 1)), single_label=True, outputs="logit").proba(SIGNALS)),
    ("outputs-unknown", lambda: Classifier(lambda x: np.full((len(x), 2), 0.2)).proba(SIGNALS)),
    ("leads-missing/takes", lambda: agree_on_leads(Classifier(noisy, leads=("I", "II", "III")), recordings())),
    ("randomised-model", lambda: _probe(Classifier(noisy, outputs="multilabel"), recordings(), [0, 1, 2])),
    ("exclusive-unknown", lambda: exclusive_classes(
        None, None, "logit", np.array([[3.0, -2.0]]), np.array([[1, 0]]), "m"
    )),
    ("other-gradients", lambda: agree(np.array([[5.0]]), np.array([[0.0]]), "m")),
    ("damaged-run/signals", lambda: _read(Path(), "signals-0.npy", {})),
    ("lead-names/count", lambda: Ecg(np.zeros((2, 10)), 100.0, ("I",))),
    ("short-clip/frames", lambda: features(np.zeros(10))),
    ("unreadable-file", lambda: (np.savez("w.npz", weight=np.zeros(3)), SpectralBaseline.load("w.npz"))),
    ("layer-changed", lambda: [embeddings()._write({"layer": np.zeros((1, width), np.float32)}) for width in (3, 4)]),
    ("output-widths", lambda: Answers(outputs=[[0.1], [0.2, 0.3]]).window_scores(Extraction())),
    ("which-axis", lambda: time_axis("block", (4, 24, 100), None, 4, None)),
    ("not-arrays", lambda: arrays_of(["a text"])),
]  # fmt: skip


@pytest.mark.parametrize(("code", "case"), [pytest.param(*case, id=case[0]) for case in SIGNAL_CASES])
def test_models_and_recordings_that_cannot_be_used_are_refused(code: str, case: Case, tmp_path: Path) -> None:
    assert_produces(code, case, tmp_path)


def closed_port() -> str:
    """The address of a port at which nothing listens."""
    with socket.socket() as own:
        own.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{own.getsockname()[1]}/v1"


def item() -> Item:
    """An item whose file was there when the dataset was read."""
    return Item("i1", "file", "fake", "0" * 64, "image/png", Path("gone.png"))


ANSWERS: Sequence[tuple[str, Case]] = [
    ("unreachable/server", lambda: require_server(closed_port())),
    ("inspect-stopped", lambda: (_ for _ in ()).throw(stopped("RuntimeError: it fell over", Secrets()))),
    ("unreadable-file/item", lambda: item().load()),
    ("raw-outputs/verdict", lambda: Model(lambda x: 0.5, extraction=Extraction(kind="raw"))),  # type: ignore
    ("not-a-verdict", lambda: Model(lambda x: None)._understood(None)),  # type: ignore
    ("no-folder/media", lambda: Library(None).file("a.png")),
    ("media-changed", lambda: (Path("a.png").write_text("no picture"), Library(Path()).file("a.png"))),
    ("no-such-record/media", lambda: Library(None, recordings=recordings()).ecg("r9")),  # type: ignore[call-arg]
]


@pytest.mark.parametrize(("code", "case"), [pytest.param(*case, id=case[0]) for case in ANSWERS])
def test_answers_and_media_that_cannot_be_used_are_refused(code: str, case: Case, tmp_path: Path) -> None:
    assert_produces(code, case, tmp_path)


def test_a_program_that_answers_about_another_clip_is_refused(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import json, sys\nfor line in sys.stdin:\n"
        "    print(json.dumps({'id': json.loads(line)['id'] + 5, 'output': [0.1]}), flush=True)\n"
    )
    detector = ProgramDetector(f"{sys.executable} {program}")
    with closing(detector):
        assert_produces("program-ids", lambda: detector.outputs([np.zeros(16, np.float32)]), tmp_path)


def kept(attack: str, run: str) -> Estimate:
    return Estimate("robust_accuracy", 0.5, 0.4, 0.6, run={"run": run, "attack": attack, "strength": "0.1"}, n=100)


def people(low: float, high: float) -> Any:
    """The agreement of people, with its interval."""
    return SimpleNamespace(
        agreement=SimpleNamespace(alpha=(low + high) / 2, low=low, high=high, n_items=200, note=None)
    )


VERDICTS: Sequence[tuple[str, Callable[[], object], str]] = [
    ("people-disagree", lambda: agreement(people(0.1, 0.3)), "0.20"),
    ("people-not-tested", lambda: _added("accuracy", "people", "m", kept("a", "m"), kept("a", "m"), None, None), "people"),
    ("more-runs", lambda: _costs(
        [
            (Estimate("min_dcf", 0.1, 0.09, 0.11, run={"run": name}), Estimate("act_dcf", 0.5, 0.4, 0.6, run={"run": name}))
            for name in "ab"
        ],
        many=True,
    ), "1 more run"),
    ("trials-unanswered", lambda: _complete(
        [], Results((Estimate("accuracy", 0.5, 0.4, 0.6, n=75),), behind=hm.Trials.of(
            [1, 0], [1.0, 0.0], item=["a", "b"], header=Header("spoof", "bonafide", coverage=(75, 100))
        ))
    ), "25 of 100"),
]  # fmt: skip


@pytest.mark.parametrize(("code", "case", "named"), [pytest.param(*case, id=case[0]) for case in VERDICTS])
def test_conclusions_that_a_verdict_draws(code: str, case: Case, named: str, tmp_path: Path) -> None:
    assert_produces(code, case, tmp_path, named)
