"""Options as hostile users combine them: in the stream the same output as in memory, or one sentence and exit code 2."""

from __future__ import annotations

import json
import re
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from tests.nightly import by_day
from tests.outofcore.conftest import simulated, write_shards

from hitmiss.cli.main import run

N = 700
GROUPING = {
    "whole": (),
    "codec": ("--by", "codec"),
    "codec and codec x quality": ("--by", "codec", "--by", "codec,codec_q"),
    "attack": ("--by", "attack"),
    "matrix": ("--matrix", "attack,codec"),
    "absent": ("--by", "codex"),
}
DRAWING = {
    "points": (),
    "bootstrap": ("--bootstrap", "15", "--seed", "7", "--level", "0.9"),
    "percentile": ("--bootstrap", "15", "--interval", "percentile"),
    "unit": ("--bootstrap", "15", "--unit", "speaker"),
    "two units": ("--bootstrap", "15", "--unit", "speaker,attack"),
}
MEASURING = {
    "nothing": (),
    "protocol": ("-p", "asvspoof5"),
    "llr": ("-p", "asvspoof5", "--score-kind", "llr"),
    "metrics": ("-m", "eer", "-m", "min_dcf(p_target=0.5)", "-m", "roc_auc", "-m", "eer(ties=interpolated)"),
    "decisions": ("-m", "f1", "-m", "accuracy", "-m", "eer", "--threshold", "0.2"),
    "gap": ("-p", "asvspoof5", "--gap", "codec=NONE:C01", "--by", "codec"),
    "no gap": ("-p", "asvspoof5", "--gap", "none", "--by", "codec"),
    "own classes": ("-m", "eer", "--positive", "spoof", "--negative", "bonafide", "--higher", "bonafide"),
}
OF_ROWS = {
    "dedupe": ("-p", "asvspoof5", "--dedupe"),
    "threshold of the eer": ("-m", "eer_threshold", "--by", "codec"),
    "unit that is itself": ("-p", "asvspoof5", "--unit", "codec_seed", "--bootstrap", "20"),
    "by item": ("-m", "accuracy", "--threshold", "0.2", "--by", "item"),
    "where beside rows left out": ("-p", "asvspoof5", "--where", "codec=C01", "--allow-missing"),
}
"""What counts do not answer, and rows that are kept do."""
REFUSED = {
    "seeds": ("-p", "asvspoof5", "--seeds"),
    "calibration": ("-p", "asvspoof5", "--calibrate-on", "x.tsv"),
    "calibration error": ("-m", "ece"),
    "whole files": ("-p", "toxicity"),
    "by label": ("-p", "asvspoof5", "--by", "label"),
    "latin": ("-p", "asvspoof5", "--encoding", "latin-1"),
    "one replicate": ("-p", "asvspoof5", "--bootstrap", "1"),
    "level": ("-p", "asvspoof5", "--level", "2"),
    "interval": ("-p", "asvspoof5", "--interval", "exact", "--bootstrap", "20"),
    "no such metric": ("-m", "eeer"),
    "three units": ("-m", "eer", "--unit", "a,b,c", "--bootstrap", "20"),
    "higher": ("-p", "asvspoof5", "--higher", "toxic"),
}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[str, ...]]:
    """The same trials with their labels, and as scores with a key."""
    folder, rng = tmp_path_factory.mktemp("matrix"), np.random.default_rng(3)
    frame = simulated(N, kind="tied").with_columns(
        codec_q=pl.Series(rng.choice(["0", "1", "-"], N)),
        codec_seed=pl.Series(rng.choice(["-", "a1", "b2"], N)),
        speaker=pl.Series([f"S{i}" for i in rng.integers(0, 17, N)]),
    )
    labelled = write_shards(frame, folder / "labelled", ".parquet", 3)
    scores = write_shards(frame.select("item", "score"), folder / "scores", ".tsv", 2)
    frame.drop("score").sample(fraction=1, shuffle=True, seed=1).write_csv(folder / "key.tsv", separator="\t")
    return {"labelled": tuple(map(str, labelled)), "keyed": (*map(str, scores), "--key", str(folder / "key.tsv"))}


def outcome(capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...]) -> tuple[int, Any, str]:
    """The exit code, the JSON less what names the way it was counted, and what was said."""
    code = run(["score", *arguments, "--json"])
    out, err = capsys.readouterr()
    if code:
        return code, out, err
    found = json.loads(out)
    found["signature"] = found["signature"].replace("+stream", "").replace("choices:stream|", "")
    del found["digest"]  # it is over the signature too
    found.pop("content", None)  # a stream does not keep the rows that these would be over
    found.pop("questions", None)
    for name in ("warning_values", "verdict"):  # they hold what units would change
        found.pop(name, None)
    kept = [(w, c) for w, c in zip(found["warnings"], found["warning_codes"], strict=True) if c != "unit-not-used"]
    found["warnings"], found["warning_codes"] = (
        [w for w, _ in kept],
        [c for _, c in kept],
    )  # units are not counted unasked
    return code, found, err


@pytest.mark.parametrize("side", ["labelled", "keyed"])
@pytest.mark.parametrize("measuring", by_day("protocol", "gap", "decisions", of=MEASURING))
def test_options_together_give_what_memory_gives(
    files: dict[str, tuple[str, ...]], capsys: pytest.CaptureFixture[str], measuring: str, side: str
) -> None:
    for (i, (grouping, by)), (j, (drawing, how)) in product(enumerate(GROUPING.items()), enumerate(DRAWING.items())):
        if (i + j) % 2 != (side == "keyed"):  # every pair once, with the labels here or there
            continue
        asked = (*files[side], *MEASURING[measuring], *by, *how)
        memory, stream = outcome(capsys, asked), outcome(capsys, (*asked, "--stream"))
        about = f"{grouping}, {drawing}"
        if memory[0]:
            assert stream[0] in (2, 3) and len(stream[2].splitlines()) == 1, f"{about}: {stream}"
        else:
            assert stream[0] == 0, f"{about}: {stream[2]}"
            assert stream[1] == memory[1], about


@pytest.mark.usefixtures("few_are_many")
@pytest.mark.parametrize(
    "measuring", by_day("gap", "decisions", of=["protocol", "llr", "metrics", "decisions", "gap", "own classes"])
)
def test_bins_give_what_memory_gives(
    files: dict[str, tuple[str, ...]], capsys: pytest.CaptureFixture[str], measuring: str
) -> None:
    for grouping, drawing in product(("whole", "codec and codec x quality", "attack"), ("points", "bootstrap")):
        asked = (*files["labelled"], *MEASURING[measuring], *GROUPING[grouping], *DRAWING[drawing])
        memory, stream = outcome(capsys, asked), outcome(capsys, (*asked, "--stream", "--memory", "10MB"))
        assert stream[0] == memory[0] == 0, stream[2]
        assert without_last_places(stream[1]) == without_last_places(memory[1]), f"{grouping}, {drawing}"


def without_last_places(found: dict[str, Any]) -> Any:
    """Figures whose last places may differ (see docs/scale.md) rounded; the rest as it is."""
    loose = {e["metric"] for e in found["estimates"]} & {"min_cllr", "roc_auc"}
    for e in found["estimates"]:
        if e["metric"] in loose:
            e |= {k: round(e[k], 10) for k in ("value", "low", "high") if e[k] is not None}
    return found


@pytest.mark.parametrize("side", ["labelled", "keyed"])
@pytest.mark.parametrize("asked", OF_ROWS)
def test_what_needs_rows_gives_the_same_json(
    files: dict[str, tuple[str, ...]], capsys: pytest.CaptureFixture[str], asked: str, side: str
) -> None:
    words = ["score", *files[side], *OF_ROWS[asked], "--json"]
    found = [(run([*words, *how]), capsys.readouterr().out) for how in ((), ("--stream",))]
    assert found[0][0] == 0 and found[1] == found[0]
    code, out, said = outcome(capsys, (*files[side], *OF_ROWS[asked], "--counts"))
    assert code == 2 and json.loads(out)["error"]["code"], said


@pytest.mark.parametrize("side", ["labelled", "keyed"])
@pytest.mark.parametrize("asked", REFUSED)
@pytest.mark.parametrize("how", ["--stream", "--counts"])
def test_what_is_refused_is_refused_in_one_sentence(
    files: dict[str, tuple[str, ...]], capsys: pytest.CaptureFixture[str], asked: str, side: str, how: str
) -> None:
    code, out, said = outcome(capsys, (*files[side], *REFUSED[asked], how))
    assert code == 2 and json.loads(out)["error"]["code"], said
    assert said.startswith("hitmiss: ") and len(said.splitlines()) == 1 and "bug" not in said


def without_advice(printed: str) -> str:
    """What is printed, less what drawing whole units would change: that is not known from counts."""
    return re.sub(r"(independence: trials were drawn one by one)[^✓✗?]*", r"\1 …", printed)


def without_bands(pictures: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Curves without what their bands over units need: the rows, which counts do not hold."""
    bands = {"over", "worth_positive", "worth_negative", "low", "high"}
    return [
        {**run, "displays": [{k: v for k, v in display.items() if k not in bands} for display in run["displays"]]}
        for run in pictures
    ]


@pytest.mark.parametrize("side", ["labelled", "keyed"])
def test_files_that_are_written_are_those_of_memory(
    files: dict[str, tuple[str, ...]], tmp_path: Path, capsys: pytest.CaptureFixture[str], side: str
) -> None:
    written = {}
    for how in ((), ("--stream",)):
        out = tmp_path / f"r{len(how)}.json"
        asked = (
            "-p",
            "asvspoof5",
            "--by",
            "codec",
            "--score-kind",
            "llr",
            "-o",
            str(out),
            "--report",
            str(out.with_suffix(".html")),
        )
        assert run(["score", *files[side], *asked, *how]) == 0
        printed = capsys.readouterr().out.replace("choices:stream|", "").replace(str(out), "FILE")
        written[how] = printed, json.loads(out.read_text()), out.with_suffix(".html").read_text()
    (shown, memory, page), (streamed, stream, other) = written.values()
    assert without_advice(streamed) == without_advice(shown)
    assert without_bands(stream["pictures"]) == without_bands(memory["pictures"])
    assert stream["estimates"] == memory["estimates"]
    assert "the trials were counted, not kept" in other and "the trials were counted, not kept" not in page
    assert "Drawn from counts" not in other
