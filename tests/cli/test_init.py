"""`hitmiss init`: what files mean, recognised or asked for once, and written down for every later command."""

from __future__ import annotations

import json
import os
import pty
import random
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path

import polars as pl
import pytest
from sklearn.metrics import roc_auc_score

import hitmiss as hm
from hitmiss import run
from hitmiss.core import progress

N = 80


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def drawn() -> tuple[list[bool], list[float]]:
    """Which of the trials are fakes, and a score that is higher for them."""
    rng = random.Random(7)
    fake = [rng.random() < 0.4 for _ in range(N)]
    return fake, [round(is_fake + rng.gauss(0, 0.8), 4) for is_fake in fake]


def own_csv(name: str = "own.csv", score: str = "output", sign: int = 1) -> tuple[list[bool], list[float]]:
    """A table with names of its author's own."""
    fake, scores = drawn()
    pl.DataFrame(
        {
            "clip": [f"c{i}" for i in range(N)],
            "what": ["fake" if is_fake else "real" for is_fake in fake],
            score: [sign * value for value in scores],
            "speaker": [f"s{i % 16}" for i in range(N)],
        }
    ).write_csv(name)
    return fake, scores


def tried(capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> tuple[str, str]:
    """What a command prints to stdout and to stderr."""
    assert run(words) == code
    shown = capsys.readouterr()
    return shown.out, shown.err


def area(capsys: pytest.CaptureFixture[str], *words: str) -> float:
    """The area under the ROC curve that the next command finds."""
    made = json.loads(tried(capsys, *words, "--json")[0])
    return float(next(e["value"] for e in made["estimates"] if e["metric"] == "roc_auc"))


def written() -> dict[str, object]:
    """The settings file."""
    return tomllib.loads(Path("hitmiss.toml").read_text())


def at_a_terminal(folder: Path, typed: Sequence[str], *words: str) -> tuple[int, str]:
    """Run the command at a pseudo-terminal, type a line at each question, and return its code and what was shown."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "NO_COLOR": "1", "TERM": "dumb", "COLUMNS": "200"}
    with subprocess.Popen(
        [sys.executable, "-m", "hitmiss", *words],
        cwd=folder,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env=environment,
    ) as process:
        os.close(theirs)
        for line in typed:
            os.write(ours, f"{line}\n".encode())
        os.write(ours, b"\x04")  # the end of what is typed: a further question finds no answer
        seen = b""
        while True:
            try:
                piece = os.read(ours, 4096)
            except OSError:  # the other end is closed
                break
            if not piece:
                break
            seen += piece
        code = process.wait(timeout=30)
    os.close(ours)
    return code, seen.decode()


@pytest.mark.usefixtures("here")
def test_own_csv(capsys: pytest.CaptureFixture[str]) -> None:
    """The first try names what is undecided with complete commands, the second writes the file."""
    fake, scores = own_csv()
    shown, told = tried(capsys, "init", "own.csv", code=2)
    assert not Path("hitmiss.toml").exists()
    assert shown.splitlines()[1].split() == ["clip", "what", "output", "speaker"]
    assert len(shown.splitlines()) == 5  # the name, the columns and three rows
    assert "--column label=what" in told
    assert "--column score=output" in told
    shown, told = tried(capsys, "init", "own.csv", "--yes", "--positive", "fake")
    assert shown.rstrip().endswith("hitmiss score own.csv")
    assert written() == {
        "read": {
            "columns": {"item": "clip", "label": "what", "score": "output"},
            "positive": "fake",
            "negative": "real",
            "higher": "fake",
        },
        "ask": {"metrics": ["eer", "roc_auc"], "unit": ["speaker"], "bootstrap": 1000},
    }
    assert area(capsys, "score", "own.csv") == pytest.approx(roc_auc_score(fake, scores), abs=1e-12)


@pytest.mark.usefixtures("here")
def test_kaggle_pair(capsys: pytest.CaptureFixture[str]) -> None:
    """The submission calls its probabilities as the solution calls its labels."""
    fake, scores = drawn()
    ids = [f"im{i}" for i in range(N)]
    pl.DataFrame({"image_id": ids, "label": scores}).write_csv("submission.csv")
    usage = ["Public" if i % 3 else "Private" for i in range(N)]
    pl.DataFrame({"image_id": ids, "label": [int(f) for f in fake], "Usage": usage}).write_csv("solution.csv")
    shown, _ = tried(capsys, "init", "submission.csv", "solution.csv", "--yes")
    assert shown.rstrip().endswith("hitmiss score submission.csv --by Usage")
    assert written()["key"] == "solution.csv"
    assert area(capsys, "score", "submission.csv") == pytest.approx(roc_auc_score(fake, scores), abs=1e-12)
    assert area(capsys, "score", "submission.csv", "--stream") == pytest.approx(roc_auc_score(fake, scores), abs=1e-12)


@pytest.mark.usefixtures("here")
def test_answers_of_language_models(capsys: pytest.CaptureFixture[str]) -> None:
    """Verdicts of two models: the runs are named, and the next command is `triage`."""
    fake, scores = drawn()
    rows = [
        {
            "question_id": f"q{i}",
            "model_name": model,
            "ground_truth": "fake" if fake[i] else "real",
            "verdict": "fake" if (scores[i] > 0.5) ^ (model == "b" and i % 7 == 0) else "real",
            "confidence": 0.5 + (i % 5) / 10,
        }
        for model in ("a", "b")
        for i in range(N)
    ]
    Path("answers.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    shown, _ = tried(capsys, "init", "answers.jsonl")
    assert shown.rstrip().endswith("hitmiss triage answers.jsonl")
    made = json.loads(tried(capsys, "triage", "answers.jsonl", "--bootstrap", "0", "--json")[0])
    for model in ("a", "b"):
        right = [row["verdict"] == row["ground_truth"] for row in rows if row["model_name"] == model]
        found = [e for e in made["estimates"] if e["metric"] == "accuracy" and e["run"] == {"model_name": model}]
        assert found[0]["value"] == pytest.approx(sum(right) / N, abs=1e-12)


@pytest.mark.usefixtures("here")
def test_files_of_asvspoof_2019(capsys: pytest.CaptureFixture[str]) -> None:
    """No header and no option: the layout shows the protocol, and the second file the labels."""
    fake, scores = drawn()
    ids = [f"LA_E_{i:07d}" for i in range(N)]
    Path("scores.txt").write_text("".join(f"{i} {-s}\n" for i, s in zip(ids, scores, strict=True)))
    Path("eval.trl.txt").write_text(
        "".join(
            f"LA_{n % 9:04d} {i} - {f'A{7 + n % 3:02d} spoof' if f else '- bonafide'}\n"
            for n, (i, f) in enumerate(zip(ids, fake, strict=True))
        )
    )
    shown, _ = tried(capsys, "init", "scores.txt", "eval.trl.txt")
    assert shown.rstrip().endswith("hitmiss score scores.txt")
    assert written()["protocol"] == "asvspoof2019"
    assert written()["key"] == "eval.trl.txt"
    assert area(capsys, "score", "scores.txt", "--bootstrap", "0") == pytest.approx(
        roc_auc_score([not f for f in fake], [-s for s in scores]), abs=1e-12
    )


@pytest.mark.usefixtures("here")
def test_a_frame_after_init() -> None:
    """What was written for the file holds for the frame that is read from it."""
    fake, scores = own_csv()
    assert run(["init", "own.csv", "--yes", "--positive", "fake", "--unit", "none"]) == 0
    results = hm.evaluate(pl.read_csv("own.csv").to_pandas())
    assert results.one("roc_auc").value == pytest.approx(roc_auc_score(fake, scores), abs=1e-12)


@pytest.mark.parametrize("form", ["tsv", "parquet", "jsonl"])
@pytest.mark.usefixtures("here")
def test_other_forms_of_tables(form: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The same table, however it is stored."""
    fake, scores = own_csv()
    table = pl.read_csv("own.csv")
    name = f"own.{form}"
    if form == "parquet":
        table.write_parquet(name)
    elif form == "jsonl":
        table.write_ndjson(name)
    else:
        table.write_csv(name, separator="\t")
    tried(capsys, "init", name, "--yes", "--positive", "fake")
    assert area(capsys, "score", name) == pytest.approx(roc_auc_score(fake, scores), abs=1e-12)


@pytest.mark.usefixtures("here")
def test_a_score_that_names_a_class_proposes_it(capsys: pytest.CaptureFixture[str]) -> None:
    """`fake_probability` beside labels real and fake."""
    own_csv(score="fake_probability")
    share = 1 / (1 + (-pl.col("fake_probability")).exp())
    pl.read_csv("own.csv").with_columns(fake_probability=share).write_csv("own.csv")
    tried(capsys, "init", "own.csv", "--yes")
    assert written()["read"]["positive"] == "fake"  # type: ignore[index]


@pytest.mark.usefixtures("here")
def test_numbers_that_are_called_probabilities_and_are_none(capsys: pytest.CaptureFixture[str]) -> None:
    """They are refused with what settles it, and the declared kind is written down."""
    fake, scores = own_csv(score="fake_probability")
    _, told = tried(capsys, "init", "own.csv", "--yes", code=3)
    assert "scores outside 0..1" in told and "declare another score kind (raw, logit or llr)" in told
    assert not Path("hitmiss.toml").exists()
    tried(capsys, "init", "own.csv", "--yes", "--score-kind", "raw")
    assert written()["read"]["positive"] == "fake"  # type: ignore[index]
    assert area(capsys, "score", "own.csv") == pytest.approx(roc_auc_score(fake, scores), abs=1e-12)


@pytest.mark.usefixtures("here")
def test_scores_that_are_lower_for_the_positive_class_are_asked_about(capsys: pytest.CaptureFixture[str]) -> None:
    """Neither --yes nor anything else guesses the direction."""
    fake, scores = own_csv(sign=-1)
    options = ("init", "own.csv", "--yes", "--positive", "fake")
    _, told = tried(capsys, *options, code=2)
    assert "--higher real" in told
    assert not Path("hitmiss.toml").exists()
    tried(capsys, *options, "--higher", "real")
    assert area(capsys, "score", "own.csv") == pytest.approx(roc_auc_score(fake, scores), abs=1e-12)


@pytest.mark.usefixtures("here")
def test_several_columns_may_be_the_score(capsys: pytest.CaptureFixture[str]) -> None:
    """Everything that is undecided is said at once, and --yes does not choose between equals."""
    own_csv()
    pl.read_csv("own.csv").with_columns(other=pl.col("output") * 2).write_csv("own.csv")
    _, told = tried(capsys, "init", "own.csv", "--yes", code=2)
    assert "--column score=output or --column score=other" in told


def test_a_terminal_is_asked_once_for_each_thing(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Enter takes the proposal; a number chooses."""
    fake, scores = own_csv()
    code, shown = at_a_terminal(here, ["", "", "2"], "init", "own.csv")
    assert code == 0, shown
    assert shown.count("which column is the label?") == 1
    assert shown.count("which column is the score?") == 1
    assert shown.count("which class is the positive one") == 1
    assert "(proposed)" in shown
    assert "hitmiss score own.csv" in shown
    assert written()["read"]["positive"] == "fake"  # type: ignore[index]
    assert area(capsys, "score", "own.csv") == pytest.approx(roc_auc_score(fake, scores), abs=1e-12)


def test_a_terminal_asks_again_where_it_was_not_answered(here: Path) -> None:
    """Without a proposal, Enter is no answer; a class may be typed instead of its number."""
    own_csv()
    code, shown = at_a_terminal(here, ["", "nonsense", "", "", "real", "fake"], "init", "own.csv")
    assert code == 0, shown
    assert written()["read"]["positive"] == "real"  # type: ignore[index]


@pytest.mark.usefixtures("here")
def test_a_settings_file_is_not_replaced(capsys: pytest.CaptureFixture[str]) -> None:
    """Only with --force; the old one has no say in what the new one says."""
    own_csv()
    Path("hitmiss.toml").write_text('[read]\npositive = "real"\n')
    _, told = tried(capsys, "init", "own.csv", "--yes", "--positive", "fake", code=2)
    assert "--force" in told
    assert written() == {"read": {"positive": "real"}}
    tried(capsys, "init", "own.csv", "--yes", "--positive", "fake", "--force")
    assert written()["read"]["positive"] == "fake"  # type: ignore[index]
    shown, _ = tried(capsys, "init", "own.csv", "--yes", "--positive", "fake", "-o", "other.toml")
    assert shown.rstrip().endswith("hitmiss score own.csv --settings other.toml")


@pytest.mark.usefixtures("here")
def test_faulty_data_are_refused_as_elsewhere(capsys: pytest.CaptureFixture[str]) -> None:
    """A score that is not a number is no question of meaning."""
    Path("bad.csv").write_text("id,label,score\na,spoof,0.1\nb,bonafide,nan\nc,spoof,0.3\n")
    _, told = tried(capsys, "init", "bad.csv", code=3)
    assert "NaN" in told
    assert not Path("hitmiss.toml").exists()
    assert tried(capsys, "init", "nothing.csv", code=3)


@pytest.mark.parametrize(
    "words",
    [
        ("score", "own.csv", "-m", "eer"),
        ("score", "known.csv", "-m", "eer"),
        ("score", "known.csv", "-m", "eer", "--stream"),
    ],
    ids=["columns", "classes", "streamed"],
)
@pytest.mark.usefixtures("here")
def test_refusals_of_meaning_name_it(words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    """A way out for whoever does not know the options."""
    own_csv()
    pl.read_csv("own.csv").rename({"clip": "id", "what": "label", "output": "score"}).write_csv("known.csv")
    assert "`hitmiss init FILE`" in tried(capsys, *words, code=3)[1]


def test_answers_in_words_are_proposed_before_how_sure_they_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A language model's answers: taken as a score, its certainty would give a number of something else."""
    monkeypatch.chdir(tmp_path)
    rows = [
        {"question_id": i, "model_name": m, "gold": ("fake", "real")[i % 2], "answer": said, "certainty": 50 + i}
        for m in ("a", "b")
        for i, said in enumerate(["fake", "real", "unsure", "real", "fake", "fake"])
    ]
    Path("answers.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    assert run(["init", "answers.jsonl", "--yes"]) == 0
    assert "hitmiss triage answers.jsonl" in "".join(capsys.readouterr())
    assert run(["triage", "answers.jsonl", "--bootstrap", "0", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["estimates"]
    accuracy = {e["run"]["model_name"]: e["value"] for e in found if e["metric"] == "accuracy" and not e["slice"]}
    assert accuracy == {"a": pytest.approx(4 / 6), "b": pytest.approx(4 / 6)}


def test_the_progress_bar_is_hidden_while_somebody_types() -> None:
    calls: list[str] = []

    class Bar:
        def update(self, *_: object) -> None:
            calls.append("update")

        def clear(self) -> None:
            calls.append("clear")

        def close(self) -> None:
            calls.append("close")

    with progress.listen(Bar()), progress.paused():
        calls.append("typing")
    assert calls == ["close", "typing", "clear"]
    with progress.paused():
        pass


def test_a_german_file_takes_two_tries(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Semicolons, decimal commas and cp1252; a column of three devices is not proposed as the label."""
    monkeypatch.chdir(tmp_path)
    fake, scores = drawn()
    rows = [
        f"a{i}.wav;{'gefälscht' if f else 'echt'};{s:.4f}".replace(".", ",").replace(",wav", ".wav")
        + f";{'HLS'[i % 3]}"
        for i, (f, s) in enumerate(zip(fake, scores, strict=True))
    ]
    Path("werte.csv").write_bytes("\r\n".join(["Datei;Klasse;Wert;Gerät", *rows]).encode("cp1252"))
    _, told = tried(capsys, "init", "werte.csv", code=2)
    assert "hitmiss init werte.csv --positive 'gefälscht' --yes" in told
    tried(capsys, "init", "werte.csv", "--positive", "gefälscht", "--yes")
    assert written()["read"]["decimal"] == ","
    rounded = [float(f"{s:.4f}") for s in scores]
    assert area(capsys, "score", "werte.csv") == pytest.approx(roc_auc_score(fake, rounded), abs=1e-12)


def test_seconds_are_never_proposed_as_the_score(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Answers as JSON in a text beside times: the answers are the decisions, and the times are left alone."""
    monkeypatch.chdir(tmp_path)
    answers = ["fake", "real", "uncertain", "real", "fake", "fake"]
    rows = [
        {
            "question_id": f"q{i}",
            "ground_truth": ("fake", "real")[i % 2],
            "answer": json.dumps({"verdict": said}),
            "latency_ms": 300 + i,
        }
        for i, said in enumerate(answers)
    ]
    Path("answers.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    tried(capsys, "init", "answers.jsonl", "--yes")
    assert written()["read"]["columns"]["decision"] == "answer"
    assert run(["triage", "answers.jsonl", "--bootstrap", "0", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["estimates"]
    assert [e["value"] for e in found if e["metric"] == "accuracy" and not e["slice"]] == [pytest.approx(4 / 6)]


def test_a_word_of_ones_own_beside_a_known_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """AI and human: each of the commands that are offered works."""
    monkeypatch.chdir(tmp_path)
    fake, scores = drawn()
    table = {
        "id": [f"i{k}" for k in range(len(fake))],
        "label": ["AI" if f else "human" for f in fake],
        "score": scores,
    }
    pl.DataFrame(table).write_csv("own.csv")
    _, told = tried(capsys, "score", "own.csv", "-m", "roc_auc", code=3)
    offered = [shlex.split(line)[1:] for line in told.splitlines() if line.startswith("  hitmiss score")]
    found = [area(capsys, *words) for words in offered]
    assert sorted(found) == pytest.approx(sorted((1 - (a := roc_auc_score(fake, scores)), a)), abs=1e-12)


@pytest.mark.usefixtures("here")
def test_nothing_need_be_asked_to_measure(capsys: pytest.CaptureFixture[str]) -> None:
    fake, scores = own_csv(score="score")
    said = ("--column", "label=what", "--positive", "fake")
    assert area(capsys, "score", "own.csv", *said) == pytest.approx(roc_auc_score(fake, scores))
    assert area(capsys, "score", "own.csv", "--stream", *said) == pytest.approx(roc_auc_score(fake, scores))


@pytest.mark.usefixtures("here")
def test_a_score_in_per_cent_is_a_share(capsys: pytest.CaptureFixture[str]) -> None:
    cells = ["12.5%", "80 %", "7,5%".replace(",", "."), "55%"]
    rows = [f"f{i},{'fake' if i % 2 else 'real'},{cell}" for i, cell in enumerate(cells)]
    Path("p.csv").write_text("\n".join(["file,label,prob", *rows, ""]))
    trials = hm.read("p.csv", positive="fake")
    assert trials.score.tolist() == pytest.approx([0.125, 0.8, 0.075, 0.55])
    assert "12.5% is 0.125" in " ".join(trials.header.notes)
    Path("p.csv").write_text("\n".join(["file,label,prob", *rows, "f9,fake,0.4", ""]))
    assert "write all of them in one way" in tried(capsys, "score", "p.csv", "--positive", "fake", code=3)[1]


@pytest.mark.usefixtures("here")
def test_a_column_called_score_that_holds_words_is_none(capsys: pytest.CaptureFixture[str]) -> None:
    fake, scores = drawn()
    table = pl.DataFrame(
        {
            "file": [f"c{i}" for i in range(N)],
            "label": ["fake" if is_fake else "real" for is_fake in fake],
            "score": ["high" if value > 0.5 else "low" for value in scores],
        }
    )
    table.with_columns(p_fake=pl.Series(scores)).write_csv("both.csv")
    table.write_csv("words.csv")
    said = ("--positive", "fake", "--score-kind", "raw")
    assert area(capsys, "score", "both.csv", *said) == pytest.approx(roc_auc_score(fake, scores))
    assert "unreadable scores" in tried(capsys, "score", "words.csv", "--positive", "fake", code=3)[1]
    assert "verdict=NAME, if one holds decisions" in tried(capsys, "init", "words.csv", code=2)[1]


@pytest.mark.usefixtures("here")
def test_fields_of_nested_objects_are_columns(capsys: pytest.CaptureFixture[str]) -> None:
    fake, scores = drawn()
    rows = [
        {"id": f"x{i}", "gold": {"label": "ai" if is_fake else "human"}, "out": {"scores": {"ai": value}}}
        for i, (is_fake, value) in enumerate(zip(fake, scores, strict=True))
    ]
    Path("out.json").write_text(json.dumps({"meta": {"model": "m"}, "results": rows}))
    shown, asked = tried(capsys, "init", "out.json", code=2)
    assert "gold.label" in shown and "out.scores.ai" in shown
    assert "--positive ai --negative human" in asked
    tried(capsys, "init", "out.json", "--yes", "--positive", "ai", "--negative", "human")
    assert area(capsys, "score", "out.json") == pytest.approx(roc_auc_score(fake, scores))


@pytest.mark.usefixtures("here")
def test_more_than_two_words_are_named_once(capsys: pytest.CaptureFixture[str]) -> None:
    Path("a.csv").write_text("id,label,score\n" + "".join(f"{i},{w},{i}\n" for i, w in enumerate(["yes", "ja", "no"])))
    refused = tried(capsys, "init", "a.csv", code=3)[1]
    assert "the labels are 'ja', 'no', 'yes', and a detector has two classes" in refused and len(refused) < 400


@pytest.mark.usefixtures("here")
def test_names_with_spaces_are_quoted_and_slices_are_offered(capsys: pytest.CaptureFixture[str]) -> None:
    fake, scores = drawn()
    pl.DataFrame(
        {
            "file": [f"c{i}" for i in range(N)],
            "Is it (really)": ["fake" if is_fake else "real" for is_fake in fake],
            "Codec Used": [["opus", "mp3"][i % 2] for i in range(N)],
            "score": scores,
        }
    ).write_csv("odd.csv")
    asked = tried(capsys, "init", "odd.csv", code=2)[1]
    assert "--column 'label=Is it (really)'" in asked
    out = tried(capsys, "init", "odd.csv", "--yes", "--positive", "fake")[0]
    following = shlex.split(out.strip().splitlines()[-1])
    assert following == ["hitmiss", "score", "odd.csv", "--by", "Codec Used"]
    assert "codec used" in tried(capsys, *following[1:])[0].lower()


@pytest.mark.usefixtures("here")
def test_a_kaggle_pair_with_other_columns(capsys: pytest.CaptureFixture[str]) -> None:
    fake, scores = drawn()
    ids = [f"test_{i}" for i in range(N)]
    pl.DataFrame({"ID_code": ids, "var_0": scores[::-1], "target": list(map(int, fake))}).write_csv("train.csv")
    pl.DataFrame({"ID_code": ids, "target": scores}).write_csv("sub.csv")
    truth = pytest.approx(roc_auc_score(fake, scores))
    assert area(capsys, "score", "sub.csv", "--key", "train.csv") == truth
    assert "side by side" not in tried(capsys, "init", "train.csv", "sub.csv", "--yes")[0]
    assert area(capsys, "score", "sub.csv") == truth
