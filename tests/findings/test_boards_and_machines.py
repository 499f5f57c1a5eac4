"""What boards, pages, machines and undefined numbers are refused for, or what is noted: one small case for each code."""

from __future__ import annotations

import contextlib
import os
import wave
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import polars as pl
import pytest
from tests.findings.producing import Case, assert_produces

import hitmiss as hm
from hitmiss.attacks.onnx_gradients import _convolution
from hitmiss.boards.board import make_board
from hitmiss.boards.exchange import write_arena
from hitmiss.boards.plan import read_plan
from hitmiss.cluster.ray import Cluster
from hitmiss.core.design import Design
from hitmiss.core.errors import DataError
from hitmiss.core.expressions import Derived
from hitmiss.core.read_spec import ReadSpec
from hitmiss.core.trials import Trials
from hitmiss.detection.cluster import ClusterWorker, needs
from hitmiss.detection.on_device import pick_precision
from hitmiss.detection.scorer import Scorer
from hitmiss.engine.counted import TalliedColumns
from hitmiss.engine.measure import measure_design
from hitmiss.engine.rank import Field
from hitmiss.engine.regression import check_regression, parse_regression
from hitmiss.io.addresses import TableAddress
from hitmiss.io.logs.inspect_ai import read_log
from hitmiss.outofcore import disk
from hitmiss.outofcore.coarse_cells import CoarseCells
from hitmiss.outofcore.warehouse import evaluate_table
from hitmiss.reports.displays.display import tally_of
from hitmiss.reports.html import print_pdf
from hitmiss.review.library import _check_picture


def trials(n: int = 40, apart: float = 1.0, **columns: object) -> Trials:
    """Trials of two classes."""
    label = [k % 2 for k in range(n)]
    score = apart * np.array(label) + np.random.default_rng(0).normal(size=n)
    return Trials.of(label, score, item=[f"i{k}" for k in range(n)], **columns)  # type: ignore[arg-type]


def negatives() -> Trials:
    made = trials()
    return Trials(made.frame.filter(pl.col("label") == 0), made.header)


def same_slugs() -> object:
    """Two systems whose names differ by a sign that no file name keeps."""
    Path("keys").mkdir()
    Path("keys/one.csv").write_text("id,label\n" + "\n".join(f"i{k},{('spoof', 'bonafide')[k % 2]}" for k in range(20)))
    for name in ("a", "b"):
        Path(f"{name}.csv").write_text("id,score\n" + "\n".join(f"i{k},{k * 7 % 20}" for k in range(20)))
    Path("board.toml").write_text(
        '[datasets.main]\nkey = "keys/one.csv"\nid = "own/data"\n'
        '[systems."sys a"]\nmain = "a.csv"\n[systems."sys-a"]\nmain = "b.csv"\n'
    )
    board = make_board(read_plan("board.toml"), Design(metrics=("eer",), bootstrap=0))
    return write_arena(board, "out", arena_url="https://a.example", scores_url="https://b.example")


def without_programs(*scripts: str) -> Callable[[], object]:
    """Printing a page on a machine that has no programs but these, which fail."""

    def call() -> object:
        Path("bin").mkdir()
        for name in scripts:
            Path(f"bin/{name}").write_text("#!/bin/sh\nexit 1\n")
            Path(f"bin/{name}").chmod(0o755)
        Path("page.html").write_text("<p>a</p>")
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("PATH", f"{Path('bin').resolve()}{os.pathsep if scripts else ''}{'/bin' if scripts else ''}")
            return print_pdf("page.html", "page.pdf")

    return call


def detected(function: str, more: str = "") -> Callable[[], object]:
    """Running a detector on two sounds."""

    def call() -> object:
        for name in ("a", "b"):
            with wave.open(f"{name}.wav", "wb") as file:
                file.setnchannels(1)
                file.setsampwidth(2)
                file.setframerate(16000)
                file.writeframes((np.random.default_rng(1).normal(size=16000) * 3000).astype("<i2").tobytes())
        Path("m.csv").write_text("file,label\na.wav,real\nb.wav,fake\n")
        Path("f.py").write_text(f"def f(batch):\n    {function}\n")
        words = f"detect --data m.csv --detector f.py:f --output run --positive fake {more}"
        return hm.run(words.split())

    return call


def two_sided() -> object:
    """A regression of a number of which neither direction is worse."""
    decided = hm.decide(trials(), 0.5)
    results = hm.measure(decided, "flag_rate", bootstrap=0)
    return check_regression(parse_regression("flag_rate=0.1"), results, results)


def repeated_items() -> object:
    """Each item is asked about two targets."""
    n = 40
    made = trials(n, target=[f"t{k // 2 % 2}" for k in range(n)])
    frame = made.frame.with_columns(item=pl.Series([f"i{k // 4}-{k % 2}" for k in range(n)]))
    return hm.measure(Trials(frame, made.header), "eer", by="target", bootstrap=50)


def full_disk() -> object:
    """Writing to a disk that is full."""
    with disk.writing("folder"):
        raise OSError(28, "No space left on device")


def packed_log() -> object:
    """An archive whose members are packed by a method that no Python knows (PPMd)."""
    return read_log(archive(98, b"{}"))


def archive(method: int, held: bytes) -> Path:
    """Write an archive that says of its header that it is packed by this method."""
    with zipfile.ZipFile("a.eval", "w") as file:
        file.writestr("header.json", held)
    data = bytearray(Path("a.eval").read_bytes())
    data[8:10] = method.to_bytes(2, "little")
    at = data.index(b"PK\x01\x02") + 10
    data[at : at + 2] = method.to_bytes(2, "little")
    Path("a.eval").write_bytes(bytes(data))
    return Path("a.eval")


CASES: Sequence[tuple[str, Case]] = [
    ("same-name/systems", same_slugs),
    ("no-chromium", without_programs()),
    ("no-chromium/not", without_programs("chromium")),
    ("all-failed/stopped", detected("raise ValueError('no')")),
    ("clad-without-noise", detected("return [[0.1]] * len(batch)", "--manipulate clad --input audio")),
    ("vain-rule", two_sided),
    ("no-interval/shared-items", repeated_items),
    ("undefined/zero-denominator", lambda: measure_design(
        trials(apart=50.0), Design.of(["eer"], bootstrap=0), derived=[Derived.parse("ratio", "eer / eer")]
    )),
    ("nothing-to-draw", lambda: hm.compare(negatives(), negatives(), "eer", bootstrap=0).plot()),
    ("no-curve/scores", lambda: tally_of(Trials(trials().frame.head(0), trials().header))),

    ("unreadable-table", lambda: hm.read(pl.LazyFrame({"id": ["a"]}).select(pl.col("id").str.to_integer()))),
    ("no-room", full_disk),
    ("several-scores/table", lambda: evaluate_table(
        TableAddress("duckdb", "none.db", "t"), reading=ReadSpec(score_columns=("a",)), design=Design.of(["eer"])
    )),
    ("no-gradients/convolution", lambda: _convolution(ModuleType("torch"), 5)),
    ("incomparable/many", lambda: Field.refuse(Field.__new__(Field), ["a and b cannot be compared", "a and c neither"], False)),
    ("int8-on-cpu/runs", lambda: pick_precision("int8", "cuda")),
    ("no-cuda/cluster", lambda: needs(Cluster("auto", cpus=8, gpus=0, machines=1), None, 0, "cuda")),
    ("log-packed", packed_log),
    ("worker-not-open", lambda: Scorer()._begun(None)),  # type: ignore[arg-type]
    ("worker-records", lambda: ClusterWorker._write_down(
        ClusterWorker.__new__(ClusterWorker), SimpleNamespace(positions=[0, 1]), SimpleNamespace(records=[{}])  # type: ignore
    )),
    ("needs-every-trial/column", lambda: TalliedColumns.named(TalliedColumns.__new__(TalliedColumns), "seconds")),
    ("needs-every-trial/units", lambda: CoarseCells.unit_sample(CoarseCells.__new__(CoarseCells), *[None] * 3, 0)),  # type: ignore
    ("key-of-runs/stream", "score a.csv -m eer --stream --key k.csv --run-column system"),
]  # fmt: skip


@pytest.mark.parametrize(("code", "case"), [pytest.param(*case, id=case[0]) for case in CASES])
def test_boards_pages_runs_and_undefined_numbers(code: str, case: Case, tmp_path: Path) -> None:
    (tmp_path / "a2.csv").write_text("id,label,score\n" + "\n".join(f"i{k},{k % 2},{k}" for k in range(20)))
    (tmp_path / "a.csv").write_text("id,system,score\n" + "\n".join(f"i{k},{s},{k}" for k in range(20) for s in "mn"))
    (tmp_path / "k.csv").write_text("id,label\n" + "\n".join(f"i{k},{('spoof', 'bonafide')[k % 2]}" for k in range(20)))
    assert_produces(code, case, tmp_path)


@pytest.mark.filterwarnings("ignore:Image size")
def test_a_picture_of_too_many_pixels_is_not_shown(tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image")
    file = tmp_path / "large.png"
    image.new("1", (11_000, 10_000)).save(file)
    assert_produces("picture-too-large/shown", lambda: _check_picture(file), tmp_path, "large.png")


@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, pytest.param(93, id="zstd", marks=pytest.mark.extras)])
def test_a_log_whose_archive_is_damaged_is_refused_by_name(method: int, tmp_path: Path) -> None:
    with contextlib.chdir(tmp_path), pytest.raises(DataError, match=r"a\.eval") as caught:
        read_log(archive(method, b"neither packed nor JSON"))
    assert caught.value.code == "broken-log"
