"""What bridges, probes, media, attacks, language models and pages refuse: one small case for each code."""

from __future__ import annotations

import socket
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pytest
from tests.findings.producing import Case, assert_produces, without

import hitmiss as hm
from hitmiss.attacks import audio, codec_plan, ecg, image, recordings, windows
from hitmiss.attacks.batched import Records, as_numbers
from hitmiss.attacks.codec_engines import _sound
from hitmiss.bridges import learning, sinks
from hitmiss.bridges.accumulator import Accumulator
from hitmiss.bridges.arrays import asked_metrics, figures
from hitmiss.core.header import Header
from hitmiss.core.trials import Trials
from hitmiss.llm import addresses, canaries, items, picture
from hitmiss.llm.plan import CallPlan
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


def records(**more: object) -> Records:
    return Records(np.zeros((1, 100, 2)), np.array([1.0]), [RNG], np.ones((1, 100)), 100.0, **more)  # type: ignore[arg-type]


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


BRIDGES: Mapping[str, Case] = {
    "nothing-counted-yet-call": lambda: Accumulator("eer").compute(),
    "not-metric-scores-accumulated": lambda: Accumulator("f1"),
    "accumulators-other-metrics-cannot": lambda: Accumulator("eer").merge(Accumulator("roc_auc")),
    "judge-decisions-give-threshold": lambda: figures(asked_metrics("f1"), [1, 0], [1.0, 0.0]),
    "logits-shape-classes": lambda: learning.log_odds(np.zeros((2, 2, 2))),
    "prediction-pair-logits-labels": lambda: learning._parts(3),
    "cannot-log-known-mlflow": lambda: sinks.log(hm.measure(trials(), "eer", bootstrap=0), "sheet"),
    "logging-needs-package-pip": without(
        "mlflow", lambda: sinks.log(hm.measure(trials(), "eer", bootstrap=0), "mlflow")
    ),
    "scorer-needs-sklearn": without("sklearn", lambda: learning.scorer("eer")),
}

PROBES: Mapping[str, Case] = {
    "probe-needs-sklearn": without(
        "sklearn", lambda: domain.probe_layers({"a": RNG.normal(size=(4, 2))}, list("aabb"), folds=2)
    ),
    "no-layer-probe": lambda: domain.probe_layers({}, []),
    "embeddings-items-dimensions": lambda: domain.probe_layers({"a": np.zeros(4)}, list("aabb")),
    "flat-found-shape": lambda: domain.probe_layers({"a": RNG.normal(size=(4, 2))}, [list("aabb")]),
    "folds-least": lambda: domain.probe_layers({"a": RNG.normal(size=(4, 2))}, list("aabb"), folds=1),
    "probe-needs-least-classes": lambda: domain.probe_layers({"a": RNG.normal(size=(4, 2))}, list("aaaa"), folds=2),
    "class-needs-least-many": lambda: domain.probe_layers({"a": RNG.normal(size=(4, 2))}, list("aaab"), folds=2),
}

MEDIA: Mapping[str, Case] = {
    "wfdb-header/first": header("r\n"),
    "wfdb-segments": header("r/3 2 100 10\n"),
    "wfdb-header/signals": header("r 2 100 10\nr.dat 16 200\n"),
    "wfdb-header/line": header("r 1 100 10\nr.dat\n"),
    "wfdb-format": header("r 1 100 10\nr.dat 99 200\n"),
    "wfdb-format/several": header("r 1 100 10\nr.dat 16x2 200\n"),
    "wfdb-units": header("r 1 100 10\nr.dat 16 200/degrees\n"),
    "wfdb-file": header("r 1 100 10\n../r.dat 16 200\n"),
    "wfdb-file/no": header("r 1 100 10\nr.dat 16 200\n"),
    "wfdb-format/mixes": header("r 2 100 10\nr.dat 16 200\nr.dat 80 200\n", "r.dat"),
    "pictures-need-pillow-pip": without("PIL", lambda: picture.open_picture(b"")),
    "unusable-audio": lambda: load_audio("nowhere.wav"),
}

ATTACKS: Mapping[str, Case] = {
    "codec-output": lambda: _sound(np.zeros((2, 3)), "own.py"),
    "labels-unused": lambda: recordings.read_recordings("x.npz", labels="labels.csv"),
    "rate-lies-burst-packet": lambda: audio.packet_loss(np.zeros(100), 1.0, RNG, rate=2.0),
    "rate-1000-more": lambda: audio.speed(np.zeros(100), 1.0, RNG, rate=10),
    "signals-numbers-regular-array": lambda: as_numbers([[1.0], [1.0, 2.0]]),
    "no-codec-plan": lambda: codec_plan.read_codec_plan("nowhere.csv"),
    "leads-lost": lambda: ecg.lead_loss(records(), leads=9),
    "record-samples-no-frequency": lambda: ecg._noise(records(), 0.001, 0.002, np.array([1.0])),
    "band-runs-low-high": lambda: ecg._check_band(9.0, 3.0, 100.0),
    "factor-contrast-more": lambda: image.contrast(np.zeros((4, 4, 3)), 1.0, RNG, factor=-1.0),
    "jpeg-needs-pillow-pip": without("PIL", lambda: image.jpeg(np.zeros((8, 8, 3)), 1.0, RNG)),
    "windows-overlap-more-less": lambda: windows.center_times(100, 100.0, 1.0, overlap=1.0),
}

LLM: Mapping[str, Case] = {
    "takes-more-different-names": lambda: CallPlan([], ("a", "a")),
    "takes-more-2": lambda: items.read_items("x.jsonl", limit=0),
    "holds-no-item": dataset(""),
    "not-utf-text-byte": dataset(b"\xff\xfe\xfd"),
    "unusable-rows": dataset('{"id": "a"}\n'),
    "no-canaries": lambda: canaries.make_canaries([], 3),
    "bad-canaries": lambda: canaries.make_canaries([], -1),
    "environment-variable-holds-user": lambda: addresses.require_plain_environment(),
}

PAGES: Mapping[str, Case] = {
    "malformed-pictures": lambda: pictures.read_pictures([{"plate": 3}]),
    "no-probe": lambda: probe_figure.probe_plate(hm.measure(trials(), "eer", bootstrap=0)),
    "mixed-runs": lambda: html.report([hm.measure(trials(), "eer", bootstrap=0), "a.csv"], "r.html"),
    "option-count/names": lambda: html.report([hm.measure(trials(), "eer", bootstrap=0)], "r.html", names=["a", "b"]),
    "no-answered-trial-confidence": lambda: RiskCoverageDisplay.from_trials(
        Trials.of([1, 0], [1.0, 0.0], decision=[-1, -1], confidence=[0.5, 0.5])
    ),
    "no-curve": lambda: DetDisplay.from_trials(one_class()),
    "no-3": lambda: hm.measure(trials(), "eer", bootstrap=0).plot("teapot"),
    "xlsx-needs-package-xlsxwriter": without("xlsxwriter", lambda: sheets.workbook(trials().frame, [])),
    "no-metrics-draw": lambda: attack_figures.classwise_metric_bars({}),
    "not-negative": lambda: dump_errors(None, Path(), most=-1),  # type: ignore[arg-type]
    "cannot-listen-port": occupied,
    "token-line-least-plain": short_token,
    "pictures-need-package-pillow": without("PIL", lambda: library._need_pillow()),
}

SCALE: Mapping[str, Case] = {
    "no-tally-merge": lambda: shard_tally.merge_tallies([]),
    "duckdb-needs-package-duckdb": without("duckdb", lambda: databases.open_duckdb("x.db").__enter__()),
    "spark-needs-package-pyspark": without("pyspark", lambda: databases.open_spark("").__enter__()),
    "duckdb-needs-package-pip": without("duckdb", engines._database.__wrapped__),
    "sql-other-dialects-needs": without("sqlglot", lambda: statements.compiled("SELECT 1", "bigquery")),
}

CASES = {**BRIDGES, **PROBES, **MEDIA, **ATTACKS, **LLM, **PAGES, **SCALE}


@pytest.mark.parametrize("code", CASES)
def test_produced(code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTHER_BASE_URL", "http://user:word@proxy.example")
    assert_produces(code, CASES[code], tmp_path)
