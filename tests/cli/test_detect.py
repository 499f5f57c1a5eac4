"""`hitmiss detect` and `hitmiss score` on its run folder, from the command line."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from hitmiss.cli.main import run
from hitmiss.io.reader import read
from hitmiss.runs.manifest import load_manifest

SCORER = """
import numpy as np

def odds(batch):
    return 4.0 * np.array([text.count("!") for text in batch]) - 2.0 + 0.01 * np.array([len(t) for t in batch])

def slow(batch):
    import time
    from pathlib import Path
    here = Path(__file__).parent
    while not (here / "go").exists() and any(p.stat().st_size for p in (here / "run" / "items").glob("*.jsonl")):
        time.sleep(0.01)  # after the first item, until the test says so
    return odds(batch)

def reversed_(batch):
    return -odds(batch)
"""


class Command:
    """Runs the command in-process and keeps what it printed."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self.capsys = capsys

    def __call__(self, *words: object, code: int = 0) -> str:
        got = run([str(w) for w in words])
        self.text, self.errors = self.capsys.readouterr()
        assert got == code, self.errors
        return self.text


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(capsys)


@pytest.fixture
def words(tmp_path: Path) -> list[object]:
    """The arguments that run the scorer over a table of texts."""
    (tmp_path / "scorer.py").write_text(SCORER)
    rng = np.random.default_rng(0)
    toxic = rng.random(80) < 0.4
    marks = rng.integers(0, 2, 80) + 2 * toxic
    rows = [
        f"t{i}\t{'hm' * (i % 7)}{'!' * m}\t{'toxic' if t else 'non-toxic'}\t{'en' if i % 3 else 'no'}"
        for i, (m, t) in enumerate(zip(marks, toxic, strict=True))
    ]
    (tmp_path / "texts.tsv").write_text("\n".join(["id\ttext\tlabel\tlanguage", *rows]) + "\n")
    return arguments(tmp_path, "odds")


def arguments(tmp_path: Path, name: str) -> list[object]:
    return [
        "detect",
        "--detector",
        f"{tmp_path / 'scorer.py'}:{name}",
        "--data",
        tmp_path / "texts.tsv",
        "--input",
        "text",
        "-o",
        tmp_path / "run",
    ]


def test_detect_then_score(command: Command, words: list[object], tmp_path: Path) -> None:
    out = command(*words)
    assert "80 scored, 0 failed" in out and "at most 0" in out and "hitmiss score" in out
    got = json.loads(command("score", tmp_path / "run", "-m", "roc_auc", "-m", "eer", "--by", "language", "--json"))
    table = pl.read_parquet(tmp_path / "run" / "trials.parquet")
    rows = {(e["metric"], e["slice"].get("language"), e["average"]): e for e in got["estimates"]}
    assert [rows["roc_auc", language, None]["n"] for language in (None, "en", "no")] == [80, 53, 27]
    from hitmiss.metrics import roc_auc

    wanted = roc_auc((table["label"] == "toxic").to_numpy(), table["score"].to_numpy())
    assert rows["roc_auc", None, None]["value"] == pytest.approx(wanted) and "kind:logit" in got["signature"]
    command("verify", got["signature"], tmp_path / "run")


def test_json_and_score_files(command: Command, words: list[object], tmp_path: Path) -> None:
    got = json.loads(command(*words, "--json", "--scores", tmp_path / "s.tsv"))
    assert got["schema"] == 1 and got["complete"] and (got["scored"], got["failed"]) == (80, 0)
    assert set(got["shares"]) == {"decode", "augment", "model", "write", "wait"}
    assert (tmp_path / "s.tsv").read_text().splitlines()[0].split("\t")[:3] == ["item", "label", "logit"]
    stored, whole = read(str(tmp_path / "s.tsv")), read(str(tmp_path / "run"))
    assert stored.header.score_kind == "logit" and stored.score.tolist() == pytest.approx(whole.score.tolist())
    command(*words, "--resume", "--scores", tmp_path / "s.txt", "--score-form", "unpaired")
    assert "no ids" in command.errors and (tmp_path / "s.txt").read_text().startswith("- - ")


def test_a_folder_in_use_and_a_changed_configuration(command: Command, words: list[object]) -> None:
    command(*words)
    command(*words, code=2)
    assert "finished run" in command.errors
    command(*words, "--resume", "--text-column", "language", code=4)
    assert 'text_column: "text" before, "language" now' in command.errors
    command(*words, "--resume", "--where", "language=en", code=4)
    assert "items" in command.errors


def test_a_blind_set_is_scored_with_a_key(command: Command, words: list[object], tmp_path: Path) -> None:
    table = pl.read_csv(tmp_path / "texts.tsv", separator="\t", infer_schema=False)
    table.drop("label").write_csv(tmp_path / "texts.tsv", separator="\t")
    table.select("id", "label").write_csv(tmp_path / "key.tsv", separator="\t")
    command(*words)
    command("score", tmp_path / "run", "-m", "roc_auc", code=3)
    out = command("score", tmp_path / "run", "--key", tmp_path / "key.tsv", "-m", "roc_auc", "--positive", "toxic")
    assert "80 trials" in out and "toxic" in out


@pytest.mark.usefixtures("words")
def test_reversed_scores_are_called_so_and_turned_on_request(command: Command, tmp_path: Path) -> None:
    wrong = arguments(tmp_path, "reversed_")
    command(*wrong)
    assert "REVERSED" in command.errors
    right = [*wrong[:-1], tmp_path / "right"]
    command(*right, "--higher", "non-toxic")
    assert "REVERSED" not in command.errors
    command(*right[:-1], tmp_path / "x", "--higher", "toxin", code=2)
    assert "did you mean 'toxic'" in command.errors


def test_a_changed_run_is_not_scored(command: Command, words: list[object], tmp_path: Path) -> None:
    command(*words)
    segment = next((tmp_path / "run" / "items").glob("*.jsonl"))
    segment.write_bytes(segment.read_bytes().replace(b"0.0", b"9.9", 1).replace(b"-2", b"-3", 1))
    command("score", tmp_path / "run", "-m", "eer", code=3)
    assert "items/000001.jsonl was changed" in command.errors


@pytest.mark.parametrize(
    ("extra", "code", "message"),
    [
        (["--detector", "nowhere:x"], 2, "cannot be imported"),
        (["--input", "video"], 2, "unknown value of --input 'video'"),
        (["--data", "missing.tsv"], 3, "there is no file"),
        (["--where", "split=eval"], 2, "unknown column to choose rows by"),
        (["--input", "audio", "--detector", "program:no-such-program"], 5, "there is no program"),
        (["--positive-index", "1", "--outputs", "logits"], 2, "did you mean 'logit'"),
        (["--only", "toxic"], 2, "--only goes with --manipulate"),
        (["--manipulate", ""], 2, "no manipulation is named"),
        (["--hop", "1"], 2, "--hop goes with --window"),
        (["--pooling", "min"], 2, "--pooling goes with --window"),
        (["--window", "1"], 2, "--window goes with --input audio"),
        (["--cut-length", "9"], 2, "--cut-length goes with --input audio"),
        (["--length-rule", "zero"], 2, "--length-rule goes with --cut-length"),
        (["--retry"], 2, "--retry goes with --resume"),
        (["--score-form", "official"], 2, "--score-form goes with --scores"),
    ],
)
def test_wrong_commands(command: Command, words: list[object], extra: list[str], code: int, message: str) -> None:
    given = [str(word) for word in words]
    for option in extra[::2]:  # an option is given once
        if option in given and option not in ("--where", "--only"):
            del given[given.index(option) : given.index(option) + 2]
    command(*given, *extra, code=code)
    assert message in command.errors


@pytest.mark.usefixtures("words")
def test_interrupted_it_says_so_and_resumes(tmp_path: Path, command: Command) -> None:
    slow = [str(w) for w in arguments(tmp_path, "slow")]
    hitmiss = [sys.executable, "-m", "hitmiss"]
    process = subprocess.Popen(
        [*hitmiss, *slow, "--batch-items", "1"], stderr=subprocess.PIPE, text=True, env={**os.environ}
    )
    while not any(p.stat().st_size for p in (tmp_path / "run" / "items").glob("*.jsonl")):
        assert process.poll() is None
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate()
    (tmp_path / "go").touch()
    assert process.returncode == 130 and "interrupted" in errors
    assert load_manifest(tmp_path / "run")["state"] == "interrupted"
    command("score", tmp_path / "run", "-m", "eer", code=4)
    assert "--resume" in command.errors
    assert "80 scored" in command(*slow, "--resume")


def test_progress_goes_to_stderr_in_plain_lines(
    command: Command, words: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hitmiss.cli.progress_bar.EVERY_SECONDS", 0.0)
    command(*words, "--batch-items", "10")
    lines = [line for line in command.errors.splitlines() if " of 80, " in line]
    assert len(lines) >= 8 and "decode" in lines[0] and "model" in lines[0] and "/s" in lines[0]
    assert "of 80" not in command.text.splitlines()[0]


SHARED = """
import os, time
from pathlib import Path

def score(batch):
    (Path(__file__).parent / f"pid{os.getpid()}").touch()
    for _ in range(600 if len(list(Path(__file__).parent.glob("pid*"))) < 2 else 0):  # until the other has come, or 30 s
        if len(list(Path(__file__).parent.glob("pid*"))) > 1:
            break
        time.sleep(0.05)
    return [text.count("!") - 0.5 for text in batch]
"""


def test_several_devices_have_a_process_each(command: Command, tmp_path: Path) -> None:
    (tmp_path / "scorer.py").write_text(SHARED)
    rows = [{"id": f"t{i}", "text": "hey" + "!" * (i % 3), "label": "toxic" if i % 2 else "fine"} for i in range(400)]
    pl.DataFrame(rows).write_csv(tmp_path / "texts.csv")
    words = [
        "detect",
        "--detector",
        f"{tmp_path}/scorer.py:score",
        "--data",
        f"{tmp_path}/texts.csv",
        "--input",
        "text",
    ]
    words += ["--positive", "toxic", "--negative", "fine", "--batch-items", "4", "--outputs", "logit", "--check", "2"]
    command(*words, "--device", "cpu,cpu", "-o", f"{tmp_path}/run")
    assert len({p.name for p in tmp_path.glob("pid*")} - {f"pid{os.getpid()}"}) == 2
    manifest = load_manifest(tmp_path / "run")
    assert manifest["state"] == "complete"
    scores = pl.read_parquet(tmp_path / "run" / "trials.parquet").sort("item")
    wanted = {f"t{i}": i % 3 - 0.5 for i in range(400)}
    assert scores.height == 400 and all(wanted[i] == s for i, s in scores.select("item", "score").iter_rows())
    command(*words, "--device", "cpu,cpu", "-o", f"{tmp_path}/run", code=2)  # a run that is there is not begun again
