"""Rows are chosen in a stream as in memory: the same figures, the same signature, the same refusals."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

import hitmiss as hm
from hitmiss.core.errors import HitmissError
from hitmiss.core.read_spec import ReadSpec
from hitmiss.outofcore.stream import evaluate_streamed


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str, str]:
    rng = random.Random(5)
    rows = [
        (
            f"u{i}",
            f"{rng.gauss(i % 2, 1):.3f}",
            ("spoof", "bonafide")[i % 2],
            f"C{i % 3}" if i % 4 else "-",
            f"S{i % 7}",
        )
        for i in range(300)
    ]
    whole, scores, key = (tmp_path / name for name in ("whole.tsv", "scores.tsv", "key.tsv"))
    whole.write_text("id\tscore\tlabel\tcodec\tsplit\n" + "".join("\t".join(row) + "\n" for row in rows))
    scores.write_text("id\tscore\n" + "".join(f"{row[0]}\t{row[1]}\n" for row in rows))
    key.write_text("id\tlabel\tcodec\tsplit\n" + "".join(f"{r[0]}\t{r[2]}\t{r[3]}\t{r[4]}\n" for r in rows[::-1]))
    return str(whole), str(scores), str(key)


def told(signature: str) -> list[str]:
    return [part.replace("+stream", "") for part in signature.split("|") if not part.startswith("data")]


@pytest.mark.parametrize("has_key", [False, True])
@pytest.mark.parametrize(
    ("where", "rename"),
    [
        ({"codec": ("C1",)}, {}),
        ({"codec": ("C1", "C2"), "split": ("S1", "S2", "S3")}, {}),
        ({"codec": ("NONE",)}, {"codec": {"-": "NONE"}}),
        ({"codec": ("-",)}, {"codec": {"-": "NONE"}}),
    ],
)
def test_the_rows_are_those_of_memory(
    files: tuple[str, str, str], has_key: bool, where: dict[str, tuple[str, ...]], rename: dict[str, dict[str, str]]
) -> None:
    scores, key = (files[1], files[2]) if has_key else (files[0], None)
    said: dict[str, Any] = {"where": where, "rename": rename}
    memory = hm.evaluate(scores, key=key, metrics=["eer", "roc_auc"], by="codec", **said)
    streamed = evaluate_streamed(scores, key=key, metrics=["eer", "roc_auc"], by="codec", reading=said).results
    assert [(e.metric, e.slice, e.value, e.n) for e in streamed] == [(e.metric, e.slice, e.value, e.n) for e in memory]
    assert told(streamed.signature) == told(memory.signature)


@pytest.mark.parametrize("where", [{"codec": ("C9",)}, {"kodec": ("C1",)}])
def test_an_unknown_value_or_column_is_refused(files: tuple[str, str, str], where: dict[str, tuple[str, ...]]) -> None:
    with pytest.raises(HitmissError) as caught:
        evaluate_streamed(files[0], metrics=["eer"], reading=ReadSpec(where=where))
    assert caught.value.code.startswith("unknown-")


def test_a_word_for_no_answer_is_one_in_a_stream(tmp_path: Path) -> None:
    path = tmp_path / "d.csv"
    rows = [(f"u{i}", ("spoof", "bonafide")[i % 2], ("spoof", "bonafide", "hm")[i % 3]) for i in range(60)]
    path.write_text("id,label,score,decision\n" + "".join(f"{i},{t},{n % 5},{d}\n" for n, (i, t, d) in enumerate(rows)))
    said = {"abstain": ("hm",)}
    memory = hm.evaluate(str(path), metrics=["accuracy", "abstain_rate"], **said)
    streamed = evaluate_streamed(str(path), metrics=["accuracy", "abstain_rate"], reading=said).results
    assert [(e.metric, e.value) for e in streamed] == [(e.metric, e.value) for e in memory]


@pytest.mark.parametrize("kind", ["raw", "probability"])
@pytest.mark.parametrize("higher", [None, "spoof"])
def test_the_worst_score_is_the_worst_whatever_a_higher_one_means(
    tmp_path: Path, kind: str, higher: str | None
) -> None:
    path = tmp_path / "s.csv"
    rows = ["a,0.2,spoof", "b,0.9,bonafide", "c,nan,bonafide", "d,nan,spoof", "e,0.7,bonafide", "f,0.1,spoof"]
    if higher:  # the same scores the other way round
        turned = [(r.split(",")[0], float(r.split(",")[1]), r.split(",")[2]) for r in rows]
        rows = [f"{i},{1 - s if kind == 'probability' else -s},{t}" for i, s, t in turned]
    path.write_text("id,score,label\n" + "\n".join(rows) + "\n")
    said: dict[str, Any] = {"on_nan": "worst", "score_kind": kind, "higher": higher, "positive": "bonafide"}
    # b and e beat a and f, and c and d are on the wrong side of everything: 4 of the 9 pairs are in order.
    assert hm.evaluate(str(path), metrics=["roc_auc"], **said).one("roc_auc").value == pytest.approx(4 / 9)
    streamed = evaluate_streamed(str(path), metrics=["roc_auc"], reading=said).results
    assert streamed.one("roc_auc").value == pytest.approx(4 / 9)
