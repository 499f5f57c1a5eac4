"""What bridges, probes, media, attacks, language models and pages refuse: one small case for each code."""

from __future__ import annotations

import socket
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from tests.findings.producing import Case, assert_produces, without

import hitmiss as hm
from hitmiss.attacks import audio, codec_plan, ecg, image, recordings
from hitmiss.attacks.batched import RecordBatch, as_numbers
from hitmiss.attacks.codec_engines import _sound
from hitmiss.bridges import learning, sinks
from hitmiss.bridges.accumulator import Accumulator
from hitmiss.bridges.arrays import asked_metrics, figures
from hitmiss.core.header import Header
from hitmiss.core.trials import Trials
from hitmiss.llm import addresses, canaries, items, picture
from hitmiss.llm import run as llm_run
from hitmiss.llm.plan import CallPlan
from hitmiss.llm.prices import Prices
from hitmiss.media.audio import load_audio
from hitmiss.media.wfdb import read_record
from hitmiss.outofcore import databases, engines, shard_tally, statements
from hitmiss.probes import domain
from hitmiss.reports import attack_figures, html, pictures, probe_figure, sheets
from hitmiss.reports.displays.det import DetDisplay
from hitmiss.reports.displays.risk_coverage import RiskCoverageDisplay
from hitmiss.reports.error_dumps import dump_errors
from hitmiss.review import library, server, sessions

RNG = np.random.default_rng(0)
HEAD = Header("bonafide", "spoof", "raw")


def trials() -> Trials:
    return Trials(Trials.of([1, 0, 1, 0], [3.0, 1.0, 2.0, 2.5], item=list("abcd")).frame, HEAD)


def header(text: str, samples: str | None = None) -> Callable[[], object]:
    """Read a record of WFDB with this header."""

    def read() -> object:
        Path("r.hea").write_text(text)
        if samples is not None:
            Path(samples).write_bytes(b"\0" * 64)
        return read_record("r.hea")

    return read


def dataset(text: str | bytes) -> Callable[[], object]:
    """Read a data set for language models."""

    def read() -> object:
        Path("items.jsonl").write_bytes(text if isinstance(text, bytes) else text.encode())
        return items.read_items("items.jsonl")

    return read


def records(**more: object) -> RecordBatch:
    return RecordBatch(np.zeros((1, 100, 2)), np.array([1.0]), [RNG], np.ones((1, 100)), 100.0, **more)  # type: ignore[arg-type]


def occupied() -> object:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        return server._bound("127.0.0.1", taken.getsockname()[1])


def one_class() -> Trials:
    made = trials()
    return Trials(made.frame.filter(made.frame["label"] == 1), made.header)


def short_token() -> object:
    Path("token").write_text("abc\n")
    return sessions.token_of(Path("token"))


BRIDGES: Sequence[tuple[str, Case]] = [
    ("nothing-counted", lambda: Accumulator("eer").compute()),
    ("not-accumulated", lambda: Accumulator("f1")),
    ("unlike-accumulators", lambda: Accumulator("eer").merge(Accumulator("roc_auc"))),
    ("no-threshold", lambda: figures(asked_metrics("f1"), [1, 0], [1.0, 0.0])),
    ("wrong-shape", lambda: learning.log_odds(np.zeros((2, 2, 2)))),
    ("bad-prediction", lambda: learning._parts(3)),
    ("unknown-tracker", lambda: sinks.log(hm.measure(trials(), "eer", bootstrap=0), "sheet")),
    ("missing-package", without("mlflow", lambda: sinks.log(hm.measure(trials(), "eer", bootstrap=0), "mlflow"))),
    ("missing-package", without("sklearn", lambda: learning.scorer("eer"))),
]

PROBES: Sequence[tuple[str, Case]] = [
    (
        "missing-package",
        without("sklearn", lambda: domain.probe_layers({"a": RNG.normal(size=(4, 2))}, list("aabb"), folds=2)),
    ),
    ("no-layers/probe", lambda: domain.probe_layers({}, [])),
    ("wrong-shape", lambda: domain.probe_layers({"a": np.zeros(4)}, list("aabb"))),
    ("not-flat", lambda: domain.probe_layers({"a": RNG.normal(size=(4, 2))}, [list("aabb")])),
    ("out-of-range/least", lambda: domain.probe_layers({"a": RNG.normal(size=(4, 2))}, list("aabb"), folds=1)),
    ("one-class/probe", lambda: domain.probe_layers({"a": RNG.normal(size=(4, 2))}, list("aaaa"), folds=2)),
    ("too-many-folds", lambda: domain.probe_layers({"a": RNG.normal(size=(4, 2))}, list("aaab"), folds=2)),
]

MEDIA: Sequence[tuple[str, Case]] = [
    ("wfdb-header/first", header("r\n")),
    ("wfdb-segments", header("r/3 2 100 10\n")),
    ("wfdb-header/signals", header("r 2 100 10\nr.dat 16 200\n")),
    ("wfdb-header/line", header("r 1 100 10\nr.dat\n")),
    ("wfdb-format", header("r 1 100 10\nr.dat 99 200\n")),
    ("wfdb-format/several", header("r 1 100 10\nr.dat 16x2 200\n")),
    ("wfdb-units", header("r 1 100 10\nr.dat 16 200/degrees\n")),
    ("wfdb-file", header("r 1 100 10\n../r.dat 16 200\n")),
    ("wfdb-file/no", header("r 1 100 10\nr.dat 16 200\n")),
    ("wfdb-format/mixes", header("r 2 100 10\nr.dat 16 200\nr.dat 80 200\n", "r.dat")),
    ("missing-package", without("PIL", lambda: picture.open_picture(b""))),
    ("unusable-audio", lambda: load_audio("nowhere.wav")),
]

ATTACKS: Sequence[tuple[str, Case]] = [
    ("wrong-shape", lambda: _sound(np.zeros((2, 3)), "own.py")),
    ("labels-unused", lambda: recordings.read_recordings("x.npz", labels="labels.csv")),
    ("bad-burst", lambda: audio.packet_loss(np.zeros(100), 1.0, RNG, rate=2.0)),
    ("out-of-range/least", lambda: audio.speed(np.zeros(100), 1.0, RNG, rate=10)),
    ("not-numeric", lambda: as_numbers([[1.0], [1.0, 2.0]])),
    ("missing-file", lambda: codec_plan.read_codec_plan("nowhere.csv")),
    ("out-of-range", lambda: ecg.lead_loss(records(), leads=9)),
    ("no-frequency", lambda: ecg._noise(records(), 0.001, 0.002, np.array([1.0]))),
    ("bad-band", lambda: ecg._check_band(9.0, 3.0, 100.0)),
    ("out-of-range/least", lambda: image.contrast(np.zeros((4, 4, 3)), 1.0, RNG, factor=-1.0)),
    ("missing-package", without("PIL", lambda: image.jpeg(np.zeros((8, 8, 3)), 1.0, RNG))),
]

LLM: Sequence[tuple[str, Case]] = [
    ("bad-models", lambda: CallPlan([], ("a", "a"))),
    ("out-of-range/least", lambda: items.read_items("x.jsonl", limit=0)),
    ("no-items", dataset("")),
    ("not-utf8", dataset(b"\xff\xfe\xfd")),
    ("unusable-rows", dataset('{"id": "a"}\n')),
    ("no-price", lambda: llm_run._require_prices(CallPlan([], ("a",)), Prices({}))),
    ("no-canaries", lambda: canaries.make_canaries([], 3)),
    ("bad-canaries", lambda: canaries.make_canaries([], -1)),
    ("bad-url/variable", lambda: addresses.require_plain_environment()),
]

PAGES: Sequence[tuple[str, Case]] = [
    ("malformed-pictures", lambda: pictures.read_pictures([{"plate": 3}])),
    ("no-probe", lambda: probe_figure.probe_plate(hm.measure(trials(), "eer", bootstrap=0))),
    ("mixed-runs", lambda: html.report([hm.measure(trials(), "eer", bootstrap=0), "a.csv"], "r.html")),
    ("option-count/names", lambda: html.report([hm.measure(trials(), "eer", bootstrap=0)], "r.html", names=["a", "b"])),
    (
        "no-confidence",
        lambda: RiskCoverageDisplay.from_trials(
            Trials.of([1, 0], [1.0, 0.0], decision=[-1, -1], confidence=[0.5, 0.5])
        ),
    ),
    ("no-curve", lambda: DetDisplay.from_trials(one_class())),
    ("no-figure", lambda: hm.measure(trials(), "eer", bootstrap=0).plot("teapot")),
    ("missing-package", without("xlsxwriter", lambda: sheets.workbook(trials().frame, []))),
    ("nothing-to-draw/metrics", lambda: attack_figures.classwise_metric_bars({})),
    ("out-of-range/least", lambda: dump_errors(None, Path(), most=-1)),  # type: ignore[arg-type]
    ("port-taken", occupied),
    ("bad-token", short_token),
    ("missing-package", without("PIL", lambda: library._check_picture(Path()))),
]

SCALE: Sequence[tuple[str, Case]] = [
    ("no-tally", lambda: shard_tally.merge_tallies([])),
    ("missing-package", without("duckdb", lambda: databases.open_duckdb("x.db").__enter__())),
    ("missing-package", without("pyspark", lambda: databases.open_spark("").__enter__())),
    ("missing-package", without("duckdb", engines._database.__wrapped__)),
    ("missing-package", without("sqlglot", lambda: statements.compiled("SELECT 1", "bigquery"))),
]

CASES = [*BRIDGES, *PROBES, *MEDIA, *ATTACKS, *LLM, *PAGES, *SCALE]


@pytest.mark.parametrize(("code", "case"), CASES, ids=[case[0] for case in CASES])
def test_produced(code: str, case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTHER_BASE_URL", "http://user:word@proxy.example")
    assert_produces(code, case, tmp_path)
