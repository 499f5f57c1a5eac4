"""`hitmiss.toml`: one layer between a protocol and what a command or a call states, shown, stored, never in silence."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from sklearn.metrics import roc_auc_score

import hitmiss as hm
from hitmiss import run

SETTINGS = """
[read]
positive = "fake"
columns = {item = "clip", label = "what", score = "p_of_fake"}

[ask]
metrics = ["roc_auc"]
level = 0.9
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with a table of unusual names, and settings that say what they mean."""
    rng = np.random.default_rng(5)
    fake = rng.random(200) < 0.4
    score = fake + rng.normal(0, 0.8, 200)
    table = pl.DataFrame(
        {
            "clip": [f"c{i}" for i in range(200)],
            "what": np.where(fake, "fake", "real").tolist(),
            "p_of_fake": score,
            "speaker": [f"s{i % 20}" for i in range(200)],
        }
    )
    table.write_csv(tmp_path / "mine.csv")
    (tmp_path / "hitmiss.toml").write_text(SETTINGS)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def auc(folder: Path, positive: str = "fake") -> float:
    """The area that scikit-learn finds for a class whose scores are the higher ones."""
    table = pl.read_csv(folder / "mine.csv")
    sign = 1 if positive == "fake" else -1
    return float(roc_auc_score(table["what"] == positive, sign * table["p_of_fake"]))


def printed(capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> str:
    """What a command prints to stdout; where it fails, its message."""
    assert run(words) == code
    shown = capsys.readouterr()
    return shown.err if code else shown.out


def measured(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, object]:
    """The JSON that a command prints."""
    return json.loads(printed(capsys, *words, "--json"))


def test_a_command_takes_what_the_folder_states_and_says_so(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """No option is needed; the first line names the file and the values."""
    first = printed(capsys, "score", "mine.csv").splitlines()[0]
    assert first.startswith("from hitmiss.toml: ")
    assert "positive = fake" in first
    assert "columns.score = p_of_fake" in first
    assert "level = 0.9" in first
    made = measured(capsys, "score", "mine.csv")
    assert made["estimates"][0]["value"] == pytest.approx(auc(folder), abs=1e-12)  # type: ignore[index]
    assert made["design"]["level"] == 0.9  # type: ignore[index]
    assert made["reading"]["positive"] == "fake"  # type: ignore[index]
    assert made["design"]["taken"] == {  # type: ignore[index]
        "file": "hitmiss.toml",
        "values": {
            "columns.item": "clip",
            "columns.label": "what",
            "columns.score": "p_of_fake",
            "positive": "fake",
            "metrics": "roc_auc",
            "level": "0.9",
        },
    }


def test_an_option_comes_first(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Also one that repeats a default: it stands in the command."""
    made = measured(capsys, "score", "mine.csv", "--level", "0.95", "--positive", "real", "--higher", "fake")
    assert made["design"]["level"] == 0.95  # type: ignore[index]
    assert made["estimates"][0]["value"] == pytest.approx(auc(folder, "real"), abs=1e-12)  # type: ignore[index]
    assert not {"level", "positive"} & {*made["design"]["taken"]["values"]}  # type: ignore[index]


def test_settings_come_before_a_protocol(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A protocol says that real is positive and a higher score means real; the folder says otherwise."""
    turned = SETTINGS.replace("[read]", '[read]\nhigher = "fake"')
    Path("hitmiss.toml").write_text('protocol = "deepfake-audio"\n' + turned)
    made = measured(capsys, "score", "mine.csv")
    assert made["protocol"] == "deepfake-audio"
    assert made["estimates"][0]["value"] == pytest.approx(auc(folder), abs=1e-12)  # type: ignore[index]
    assert {e["metric"] for e in made["estimates"]} == {"roc_auc"}  # type: ignore[attr-defined]
    assert measured(capsys, "score", "mine.csv", "-p", "asvspoof5", "--score-kind", "raw")["protocol"] == "asvspoof5"


def test_a_class_of_the_command_keeps_no_value_of_the_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """1 is fake, says the folder; a call about real then means 0."""
    monkeypatch.chdir(tmp_path)
    Path("s.csv").write_text("id,label,score\na,1,0.9\nb,1,0.8\nc,0,0.1\n")
    Path("hitmiss.toml").write_text('[read]\npositive = "fake"\npositive_value = 1\n')
    assert hm.read("s.csv").n_positive == 2
    assert hm.read("s.csv", positive="real", higher="real").n_positive == 1


@pytest.mark.usefixtures("folder")
def test_another_file_or_none(capsys: pytest.CaptureFixture[str]) -> None:
    """`--settings` names another file, or switches the folder's off."""
    Path("other.toml").write_text(SETTINGS.replace("roc_auc", "eer"))
    made = measured(capsys, "score", "mine.csv", "--settings", "other.toml")
    assert [e["metric"] for e in made["estimates"]] == ["eer"]  # type: ignore[attr-defined]
    assert made["design"]["taken"]["file"] == "other.toml"  # type: ignore[index]
    told = printed(capsys, "score", "mine.csv", "-m", "eer", "--settings", "none", code=3)
    assert "hitmiss.toml" not in told
    assert "no settings file nowhere.toml" in printed(capsys, "score", "mine.csv", "--settings", "nowhere.toml", code=2)


@pytest.mark.parametrize(
    "words",
    [
        ("score", "mine.csv", "--stream"),
        ("compare", "mine.csv", "mine.csv", "--force"),
        ("gate", "mine.csv", "--fail-if", "roc_auc < 0.1"),
        ("validate", "mine.csv"),
        ("plan", "mine.csv", "--width", "0.1"),
    ],
    ids=lambda words: f"{words[0]}{words[-1] if words[-1] == '--stream' else ''}",
)
@pytest.mark.usefixtures("folder")
def test_every_verb_that_reads_scores_takes_them(words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    """The headline says so in each, and the JSON holds it."""
    assert printed(capsys, *words).startswith("from hitmiss.toml: ")
    assert "hitmiss.toml" in json.dumps(measured(capsys, *words))


def test_counting_gives_the_same(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Streaming reads by the same layer."""
    made = measured(capsys, "score", "mine.csv", "--stream")
    assert made["estimates"][0]["value"] == pytest.approx(auc(folder), abs=1e-12)  # type: ignore[index]


def test_the_key_is_beside_the_settings(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its path is relative to the settings file, not to where the command runs."""
    table = pl.read_csv("mine.csv")
    Path("set").mkdir()
    table.select("clip", "p_of_fake").write_csv("scores.csv")
    table.select("clip", "what").write_csv("set/labels.csv")
    Path("set/own.toml").write_text('key = "labels.csv"\n' + SETTINGS)
    made = measured(capsys, "score", "scores.csv", "--settings", "set/own.toml")
    assert made["estimates"][0]["value"] == pytest.approx(auc(folder), abs=1e-12)  # type: ignore[index]


@pytest.mark.usefixtures("folder")
def test_a_column_that_a_file_lacks_is_refused_with_the_setting(capsys: pytest.CaptureFixture[str]) -> None:
    """Settings of one file never change another in silence."""
    Path("other.csv").write_text("id,label,score\na,real,0.1\nb,fake,0.9\n")
    told = printed(capsys, "score", "other.csv", code=3)
    assert "there is no column 'clip'" in told
    assert "from hitmiss.toml: columns.item = clip" in told
    assert "--settings none" in told
    with pytest.raises(hm.DataError, match=r"hitmiss.toml: columns.item = clip.*settings='none'"):
        hm.read("other.csv")
    Path("hitmiss.toml").write_text(SETTINGS + 'unit = "patient"\nbootstrap = 20\n')
    assert "hitmiss.toml: unit = patient" in printed(capsys, "score", "mine.csv", code=2)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('[read]\npostive = "fake"\n', "hitmiss.toml, [read]: unknown read option 'postive'; did you mean 'positive'?"),
        ("[ask]\nmetric = ['eer']\n", "hitmiss.toml, [ask]: unknown key 'metric'; did you mean 'metrics'?"),
        ("protocoll = 'asvspoof5'\n", "hitmiss.toml: unknown key 'protocoll'; did you mean 'protocol'?"),
        ("unit = 'speaker'\n", "hitmiss.toml: unit belongs into the table [ask]"),
        ("[ask]\nlevel = 'high'\n", "hitmiss.toml, [ask]: "),
        ("[read]\non_nan = 'maybe'\n", "hitmiss.toml, [read]: "),
        ("key = 3\n", "hitmiss.toml: key must be a text"),
        ("not toml", "hitmiss.toml is not a TOML file"),
    ],
    ids=["read", "ask", "top", "table", "level", "rule", "key", "toml"],
)
def test_what_is_not_understood_is_refused(
    text: str, told: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With the file, the table and the nearest name; also in Python."""
    (folder / "hitmiss.toml").write_text(text)
    assert told in printed(capsys, "score", "mine.csv", "-m", "eer", code=2)
    with pytest.raises(hm.UsageError):
        hm.read("mine.csv")


def test_python_takes_them_too(folder: Path) -> None:
    """A note says what was taken; keywords come first; a design holds everything itself."""
    results = hm.evaluate("mine.csv")
    assert results.one("roc_auc").value == pytest.approx(auc(folder), abs=1e-12)
    assert results.design is not None
    assert results.design.level == 0.9
    assert any(text.startswith("from hitmiss.toml: ") for text in results.warnings)
    wider, narrower = (hm.evaluate("mine.csv", level=level).one("roc_auc") for level in (0.95, None))
    assert wider.low < narrower.low < narrower.high < wider.high  # type: ignore[operator]
    trials = hm.read("mine.csv")
    assert trials.header.positive == "fake"
    assert trials.header.notes[0].startswith("from hitmiss.toml: ")
    whole = hm.evaluate(trials, protocol=hm.Design(metrics=("roc_auc",)))
    assert (whole.one("roc_auc").low, whole.one("roc_auc").high) == (wider.low, wider.high)
    with pytest.raises(hm.DataError, match="no column is the label"):
        hm.read("mine.csv", settings="none")


def test_a_frame_is_read_by_them(folder: Path) -> None:
    """A table in memory is one of the folder's tables."""
    frame = pl.read_csv(folder / "mine.csv")
    assert hm.evaluate(frame).one("roc_auc").value == pytest.approx(auc(folder), abs=1e-12)


def test_stored_results_and_verify_need_no_file(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A result states everything itself: it is replayed without the file, and with one that says the opposite."""
    assert run(["score", "mine.csv", "-o", "r.json"]) == 0
    (folder / "hitmiss.toml").write_text('[read]\npositive = "real"\nweight = "w"\nweight_kind = "sampling"\n')
    capsys.readouterr()
    assert printed(capsys, "verify", "r.json", "mine.csv").startswith("verified: ")
    assert printed(capsys, "gate", "r.json", "--fail-if", "roc_auc < 0.1").startswith("run r.json")
    assert run(["report", "r.json", "-o", "r.html"]) == 0
    assert "hitmiss.toml" not in capsys.readouterr().err
    (folder / "hitmiss.toml").unlink()
    assert printed(capsys, "verify", "r.json", "mine.csv").startswith("verified: ")


def test_the_repository_has_none() -> None:
    """Tests that run in its root would take it."""
    assert not (Path(__file__).parents[2] / "hitmiss.toml").exists()
