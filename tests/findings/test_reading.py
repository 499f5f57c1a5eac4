"""What the reader refuses: one small file for each code."""

from __future__ import annotations

import gzip
import io
from collections.abc import Callable, Sequence
from pathlib import Path

import polars as pl
import pytest
from tests.findings.producing import Case, assert_produces

import hitmiss as hm
from hitmiss.core import artifacts
from hitmiss.io import blocks
from hitmiss.io.diagnostics import Diagnostics, Stop
from hitmiss.io.fetch import _joined
from hitmiss.io.texts import read_texts
from hitmiss.protocols.toxicity import load_files
from hitmiss.reports.sheets import workbook

ROWS = [f"i{k},{('spoof', 'bonafide')[k % 2]},{k}" for k in range(6)]


def scored(*rows: str, head: str = "id,label,score", name: str = "a.csv", **how: object) -> Callable[[], object]:
    """Reading a table of these rows."""

    def call() -> object:
        Path(name).write_text("\n".join([head, *rows]))
        return hm.read(name, **how)  # type: ignore[arg-type]

    return call


def holding(name: str, data: bytes, command: str = "score {} -m eer") -> Callable[[], object]:
    """A command about a file of these bytes."""

    def call() -> object:
        Path(name).write_bytes(data)
        return hm.run(command.format(name).split())

    return call


def arrow() -> bytes:
    """A table in the format of Arrow."""
    out = io.BytesIO()
    pl.DataFrame({"id": ["a"]}).write_ipc(out)
    return out.getvalue()


def toxicity(*rows: str, head: str = "id,y_true,y_prob", name: str = "en.csv", more: str = "") -> Callable[[], object]:
    """Evaluating a file of predictions with these rows."""
    return holding(name, "\n".join([head, *rows]).encode(), f"toxicity {{}} --bootstrap 20 {more}")


def fetched() -> object:
    """Joining the pieces of a remote file that is larger than what is read into memory."""
    ledger = Diagnostics()
    try:
        return _joined([b"x" * 20, b"x"], "far.csv", ledger)
    except Stop:
        raise ledger.error() from None


@pytest.fixture(autouse=True)
def small(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Refuse what unfolds beyond little, where a case is about it."""
    if "large" in request.node.name or "oversized" in request.node.name:
        monkeypatch.setattr(artifacts, "unfolded", lambda size, is_streamed=False: 10)
        monkeypatch.setattr(artifacts, "MOST_BYTES", 10)
        monkeypatch.setattr(blocks, "LONGEST_LINE", 64)


PREDICTED = [f"{k},{k % 2},0.{k % 9 + 1}" for k in range(12)]
TABLE = pl.DataFrame({"id": ["a", "b"], "label": ["spoof", "bonafide"], "score": ["1", "2"]})
CASES: Sequence[tuple[str, Case]] = [
    ("missing-file/here", "toxicity gone_en.csv"),
    ("unreadable-file/stdin", "score - -m eer --stream"),
    ("unreadable-file/cut", holding("a.csv", b"PAR1\0 and no more")),
    ("unreadable-file/suffix", holding("a.parquet", b"\xff\xfe\xfd\xfc" * 8)),
    ("unreadable-file/device", "score /dev/zero -m eer"),
    ("unreadable-encoding/half", lambda: (Path("a.csv").write_bytes(b"id\n+2AA-\n"), hm.read("a.csv", encoding="utf-7"))),
    ("unreadable-encoding/utf16", holding("a.csv", "id,label".encode("utf-16"), "score {} -m eer --stream")),
    ("unreadable-encoding/streamed", holding(
        "a.csv", "id,label,score\né,spoof,1\n".encode("latin-1"), "score {} -m eer --stream"
    )),
    ("oversized-archive/packed", holding("a.csv.gz", gzip.compress("\n".join(["id,label,score", *ROWS]).encode()))),
    ("oversized-archive/workbook", lambda: (
        Path("a.xlsx").write_bytes(workbook(TABLE, [])), hm.read("a.xlsx")
    )),
    ("oversized-archive/table", lambda: (TABLE.write_parquet("a.parquet"), hm.read("a.parquet"))),
    ("unreadable-file/large", fetched),
    ("oversized-line", holding("a.csv", b"id,label,score\n" + b"x" * 100 + b",spoof,1\n", "score {} -m eer --stream")),
    ("binary-file/arrow", holding("a.arrow", arrow(), "score {} -m eer --stream")),
    ("binary-file/tally", holding("a.tally", b"PK\x05\x06" + b"\0" * 18)),
    ("empty-file/workbook", lambda: (Path("a.xlsx").write_bytes(workbook(TABLE.clear(), [])), hm.read("a.xlsx"))),
    ("empty-file/array", holding("a.json", b"[]")),
    ("ragged-row/array", holding("a.json", b'[{"id": 1},\n oh]')),
    ("ragged-row/values", holding("a.json", b'[{"id": 1}, 3]')),
    ("no-rows/condition", lambda: (
        Path("key.csv").write_text("id,label,codec\n" + "\n".join(f"{r[:-2]},wav" for r in ROWS) + "\nx,spoof,ogg\n"),
        Path("a.csv").write_text("id,score\n" + "\n".join(f"i{k},{k}" for k in range(6))),
        hm.read("a.csv", "key.csv", where={"codec": ["ogg"]}, allow_missing=True),
    )),
    ("duplicate-id/files", lambda: (
        Path("a.csv").write_text("id,language,y_true,y_prob\n1,en,1,0.5\n2,en,0,0.4\n"),
        Path("b.csv").write_text("id,language,y_true,y_prob\n1,en,1,0.5\n3,en,0,0.4\n"),
        hm.run(["toxicity", "a.csv", "b.csv"]),
    )),
    ("empty-group", toxicity("1,,1,0.5", "2,en,0,0.4", head="id,language,y_true,y_prob", name="a.csv")),
    ("several-runs/predictions", lambda: (
        Path("en.csv").write_text("id,y_true,y_prob,system\n1,1,0.5,m\n1,1,0.4,n\n2,0,0.2,m\n2,0,0.1,n\n"), load_files(["en.csv"])
    )),
    ("language-spelling", toxicity("1,en,1,0.5", "2,EN,0,0.4", head="id,language,y_true,y_prob", name="a.csv")),
    ("thresholds-differ", toxicity("1,1,0.5,0.4", "2,0,0.4,0.3", head="id,y_true,y_prob,best_threshold")),
    ("missing-threshold", toxicity("1,1,0.5,0.4", "2,0,0.4,", "3,0,0.2,0.3", head="id,y_true,y_prob,best_threshold",
                                   more="--threshold_rule per-row --scores any")),
    ("missing-column/weight", scored(*ROWS, weight="wieght", weight_kind="frequency")),
    ("did-you-mean/weight", scored(*(f"{r},1" for r in ROWS), head="id,label,score,weight",
                                   weight="wieght", weight_kind="frequency")),
    ("missing-column/texts", lambda: (Path("t.csv").write_text("a,b\n1,2\n"), read_texts(["t.csv"]))),
    ("column-conflict/language", toxicity("1,de,1,0.5", "2,en,0,0.4", head="id,language,y_true,y_prob")),
    ("if-decimal-comma", scored("a;0,5;1", "b;0,2;0", head="id;label;score", label_cut=0.5, positive="1")),
    ("bad-threshold/outside", toxicity("1,1,0.5,1.4", "2,0,0.4,1.4", head="id,y_true,y_prob,best_threshold")),
    ("share-outside", toxicity(*(f"{r},3" for r in PREDICTED), head="id,y_true,y_prob,women", more="--identity women")),
    ("bad-share/labels", scored("a,1.5,1", "b,0.2,0", label_cut=0.5, positive="1")),
    ("declare-class", scored("a,perhaps,1", "b,perhaps,0")),
    ("unknown-label/several", scored("a,one,1", "b,two,2", "c,three,3")),
    ("missing-decision", toxicity("1,1,0.5,1", "2,0,0.4,", head="id,y_true,y_prob,y_pred")),
    ("unknown-decision/word", scored("a,spoof,maybe", "b,bonafide,bonafide", head="id,label,decision")),
    ("unknown-decision/several", scored("a,one,one", "b,two,two", "c,three,three", head="id,label,decision")),
    ("unknown-decision/many", scored(*(f"i{k},{('spoof', 'bonafide')[k % 2]},w{k}x" for k in range(60)),
                                     head="id,label,decision")),
    ("unknown-decision/number", scored("a,spoof,7", "b,bonafide,1", head="id,label,decision")),
    ("bad-weight/cells", scored(*(f"{r},-1" for r in ROWS), head="id,label,score,w", weight="w", weight_kind="frequency")),
    ("ambiguous-verdict", lambda: (
        Path("r.jsonl").write_text('{"id": "a", "label": "fake", "prediction": 1, "confidence": 0.5}'),
        hm.read("r.jsonl", layout="triage"),
    )),
    ("repeated-group", holding("c.csv", b"label,score,n\nspoof,1,3\nspoof,1,3\nbonafide,2,4\n", "score {} -m eer --counts")),
    ("bad-count/rows", holding("c.csv", b"label,score,n\nspoof,1,3\nspoof,0,x\nbonafide,2,4\n", "score {} -m eer --counts")),
]  # fmt: skip


@pytest.mark.parametrize(("code", "case"), [pytest.param(*case, id=case[0]) for case in CASES])
def test_files_that_cannot_be_read(code: str, case: Case, tmp_path: Path) -> None:
    assert_produces(code, case, tmp_path)
