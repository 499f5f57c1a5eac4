"""Options that are obeyed: one value once, several values all, and no table, file name or metric that gets lost."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from sklearn import metrics as sk

from hitmiss.cli import main
from hitmiss.cli.help import GROUPS
from hitmiss.cli.main import VERBS, run
from hitmiss.cli.options import VerbOption
from hitmiss.core.registry import add, forget

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def scores(tmp_path: Path) -> Path:
    """Write a score file with three slice columns."""
    rng = np.random.default_rng(5)
    label = rng.integers(0, 2, 600)
    score = rng.normal(label * 1.4, 1.0)
    columns = [rng.choice(list(values), 600) for values in ("uvw", "xyz", "pq")]
    rows = zip(label, score, *columns, strict=True)
    lines = [f"i{i},{('spoof', 'bonafide')[y]},{s!r},{a},{b},{c}" for i, (y, s, a, b, c) in enumerate(rows)]
    path = tmp_path / "scores.csv"
    path.write_text("\n".join(["item,label,score,a,b,b2", *lines]).replace("np.float64(", "").replace(")", "") + "\n")
    return path


def table(path: Path) -> dict[str, np.ndarray]:
    """Read the file without hitmiss."""
    head, *rows = (line.split(",") for line in path.read_text().splitlines())
    columns = {name: np.array(values) for name, values in zip(head, zip(*rows, strict=True), strict=True)}
    return {**columns, "label": columns["label"] == "bonafide", "score": columns["score"].astype(float)}


def equal_error(label: np.ndarray, score: np.ndarray) -> float:
    """Return the mean of FRR and FAR at the threshold where they are closest."""
    limits = np.append(np.unique(score), np.inf)
    frr = np.array([(score[label] < t).mean() for t in limits])
    far = np.array([(score[~label] >= t).mean() for t in limits])
    at = np.argmin(np.abs(frr - far))
    return float((frr[at] + far[at]) / 2)


def found(words: list[str], capsys: Capture) -> list[dict]:  # type: ignore[type-arg]
    capsys.readouterr()
    assert run([*words, "--json"]) == 0, capsys.readouterr().err
    return json.loads(capsys.readouterr().out)["estimates"]  # type: ignore[no-any-return]


def single_options(verb: str) -> list[str]:
    """Return the options of a verb that take one value."""
    options = [p for p in main.find_verb(verb).params if isinstance(p, VerbOption)]
    return [p.spelling for p in options if not p.is_flag and not p.multiple]


@pytest.mark.parametrize("verb", VERBS)
def test_an_option_of_one_value_is_given_once(verb: str, capsys: Capture) -> None:
    for option in single_options(verb):
        assert run([verb, option, "0.25", option, "0.75"]) == 2, option
        said = capsys.readouterr().err
        assert f"{option} takes one value and has two, '0.25' and '0.75'" in said


def test_the_second_value_may_be_written_otherwise(scores: Path, capsys: Capture) -> None:
    assert run(["score", str(scores), "-o", "a.json", "--output=b.json", "-m", "eer", "--json"]) == 2
    assert json.loads(capsys.readouterr().out)["error"]["code"] == "given-twice"
    assert run(["score", str(scores), "--score_kind", "llr", "--score-kind=raw", "-m", "eer"]) == 2
    assert run(["score", str(scores), "--stratify", "--no-stratify", "-m", "eer"]) == 2
    assert "contradict each other" in capsys.readouterr().err
    assert run(["score", str(scores), "--json", "--json", "-m", "eer"]) == 0, "a flag may be repeated"


def test_every_gap_is_measured_and_gated(scores: Path, capsys: Capture) -> None:
    own = table(scores)
    gaps = {}
    for column, inside in (("a", "u"), ("b", "x")):
        mask = own[column] == inside
        sides = [equal_error(own["label"][m], own["score"][m]) for m in (~mask, mask)]
        gaps[column] = sides[0] - sides[1]
    words = ["score", str(scores), "-m", "eer", "--gap", "a=u", "--gap", "b=x"]
    made = {next(iter(e["slice"])): e["value"] for e in found(words, capsys) if e["average"] == "gap"}
    assert made == pytest.approx(gaps)
    low, high = sorted(gaps, key=lambda name: gaps[name])
    limit = (gaps[low] + gaps[high]) / 2
    asked = ["gate", str(scores), "--fail-if", f"gap eer > {limit!r}"]
    for order in ((low, high), (high, low)):
        said = [word for name in order for word in ("--gap", {"a": "a=u", "b": "b=x"}[name])]
        assert run([*asked, *said]) == 1, "one of the two gaps is too large, wherever it stands"
    assert run([*asked, "--gap", "none", "--gap", "a=u"]) == 2


def test_several_gaps_are_verified(scores: Path, tmp_path: Path) -> None:
    results = str(tmp_path / "r.json")
    words = ["score", str(scores), "-m", "eer", "--gap", "a=u", "--gap", "b=x:y", "-o", results]
    assert run(words) == 0
    signature = json.loads(Path(results).read_text())["signature"]
    assert run(["verify", results, str(scores)]) == 0
    assert run(["verify", signature, str(scores)]) == 0


def test_units_are_a_list(scores: Path, capsys: Capture) -> None:
    words = ["score", str(scores), "-m", "eer", "--bootstrap", "20"]
    together = found([*words, "--unit", "a,b"], capsys)
    assert found([*words, "--unit", "a", "--unit", "b"], capsys) == together
    assert together[0]["units"] == 3, "the fewer of the two crossed units"


@pytest.mark.parametrize("protocol", ["asvspoof5", "deepfake-audio", "asvspoof2019"])
def test_a_metric_that_is_asked_for_is_in_every_table(protocol: str, scores: Path, capsys: Capture) -> None:
    own = table(scores)
    reading = ["--positive", "bonafide", "--negative", "spoof", "--positive-value", "bonafide"]
    words = ["score", str(scores), "-p", protocol, *reading, "--by", "a", "-m", "average_precision"]
    made = {e["slice"].get("a"): e["value"] for e in found(words, capsys) if e["average"] is None}
    for name in "uvw":
        mask = own["a"] == name
        assert made[name] == pytest.approx(sk.average_precision_score(own["label"][mask], own["score"][mask]))
    assert run(words) == 0
    signature = capsys.readouterr().out.splitlines()[-1]
    assert run(["verify", signature, str(scores)]) == 0


def test_the_protocol_still_chooses_its_slices(scores: Path, capsys: Capture) -> None:
    words = ["score", str(scores), "-p", "asvspoof5", "--score-kind", "llr", "--by", "a"]
    made = found(words, capsys)
    assert {e["metric"] for e in made if e["slice"]} < {e["metric"] for e in made if not e["slice"]}
    assert run(words) == 0
    assert run(["verify", capsys.readouterr().out.splitlines()[-1], str(scores)]) == 0


def test_a_matrix_replaces_its_own_table_alone(scores: Path, capsys: Capture) -> None:
    assert run(["score", str(scores), "-m", "eer", "--by", "a,b2", "--by", "b", "--matrix", "a,b"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if line in ("by a × b2", "by b", "by a", "by a × b")] == [
        "by a × b2",
        "by b",
        "by a",
    ]
    assert any(line.startswith("eer ↓ by a × b") for line in lines)


@pytest.mark.parametrize("name", ["attack", "score", "toxicity", "llm"])
def test_a_file_may_have_the_name_of_a_verb(
    name: str, scores: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(scores.parent)
    Path(name).write_text(scores.read_text())
    for words in (["--threshold", "0.5", name], [name, "--threshold", "0.5"], [name, "--threshold=0.5"]):
        made = found(["score", *words, "-m", "accuracy"], capsys)
        own = table(scores)
        assert made[0]["value"] == pytest.approx(((own["score"] >= 0.5) == own["label"]).mean())


def test_a_value_may_look_like_an_option_of_all_verbs(scores: Path, tmp_path: Path, capsys: Capture) -> None:
    page = tmp_path / "r.html"
    for title in ("-q", "--quiet", "--debug", "--verbose", "--json"):
        assert run(["report", str(scores), "-m", "eer", "--title", title, "-o", str(page), "--bootstrap", "0"]) == 0
        seen = capsys.readouterr()
        assert f"<title>{title}" in page.read_text() and "wrote" in seen.err and not seen.out
    assert run(["report", str(scores), "-m", "eer", "-o", str(page), "--bootstrap", "0", "-q"]) == 0
    assert not capsys.readouterr().err


@pytest.fixture
def layout() -> Iterator[str]:
    """Register a reader of JSON files, as a plug-in does."""
    add("reader", "rows_of_json", lambda path, *_: pl.DataFrame(json.loads(Path(path).read_text())), origin="lab")
    yield "rows_of_json"
    forget("rows_of_json", "reader")


def test_a_stated_layout_may_be_a_json_file(layout: str, scores: Path, tmp_path: Path, capsys: Capture) -> None:
    own, file = table(scores), tmp_path / "mine.json"
    columns = zip(own["item"], own["label"], own["score"], strict=True)
    rows = [{"item": i, "label": ("spoof", "bonafide")[int(y)], "score": str(s)} for i, y, s in columns]
    file.write_text(json.dumps(rows))
    truth = equal_error(own["label"], own["score"])
    (made,) = found(["score", str(file), "--layout", layout, "-m", "eer"], capsys)
    assert made["value"] == pytest.approx(truth)
    assert run(["report", str(file), "--layout", layout, "-m", "eer", "-o", str(tmp_path / "r.html")]) == 0
    for limit, code in ((truth + 1e-6, 0), (truth - 1e-6, 1)):
        assert run(["gate", str(file), "--layout", layout, "--fail-if", f"eer > {limit!r}"]) == code


PROTOCOL = """
name = "ours"
primary = "fpr"
metrics = ["fpr", "fnr"]
threshold = 0.7
[read]
positive = "bonafide"
negative = "spoof"
"""


def test_a_protocol_needs_no_title_and_its_threshold_holds_in_every_verb(
    scores: Path, tmp_path: Path, capsys: Capture
) -> None:
    own, protocol = table(scores), tmp_path / "ours.toml"
    protocol.write_text(PROTOCOL)
    truth = float((own["score"][~own["label"]] >= 0.7).mean())
    assert run(["score", str(scores), "-p", str(protocol)]) == 0
    assert capsys.readouterr().out.splitlines()[0] == "ours"
    other = tmp_path / "other.csv"
    other.write_text(scores.read_text())
    asked = ["compare", str(scores), str(other), "-p", str(protocol), "--bootstrap", "0", "--json"]
    assert run([*asked, "--force"]) == 0
    made = {d["metric"]: d["a"] for d in json.loads(capsys.readouterr().out)["differences"]}
    assert set(made) == {"fpr", "fnr"} and made["fpr"] == pytest.approx(truth)
    assert run(["gate", str(scores), "-p", str(protocol), "--fail-if", f"fpr > {truth - 1e-6!r}"]) == 1
    assert run(["gate", str(scores), "-p", str(protocol), "--fail-if", f"fpr > {truth + 1e-6!r}"]) == 0


def test_options_about_reading_and_asking_stand_in_their_groups(capsys: Capture) -> None:
    for verb, options in {
        "score": ("--run-column", "--negative-only", "--engine"),
        "gate": ("--regression-by",),
    }.items():
        assert run([verb, "--help-all"]) == 0
        said = capsys.readouterr().out
        first = min(said.index(f"{title}:") for title in GROUPS if f"{title}:" in said)
        assert all(said.index(f"  {option} ") > first for option in options)


def test_a_comparison_uses_the_names_and_the_derived_figures_of_a_protocol(
    scores: Path, tmp_path: Path, capsys: Capture
) -> None:
    own, protocol = table(scores), tmp_path / "pad.toml"
    derived = '[names]\nfpr = "APCER"\nacer = "ACER"\n[derived]\nacer = "(max(APCER, a) + fnr) / 2"\n'
    protocol.write_text(PROTOCOL + derived)
    rng = np.random.default_rng(9)
    moved = own["score"] + rng.normal(0, 0.5, 600)
    label = np.where(own["label"], "bonafide", "spoof")
    lines = [f"{i},{y},{float(s)!r},{a}" for i, y, s, a in zip(own["item"], label, moved, own["a"], strict=True)]
    other = tmp_path / "other.csv"
    other.write_text("\n".join(["item,label,score,a", *lines]) + "\n")

    def acer(score: np.ndarray) -> float:
        accepted = score >= 0.7
        return (
            float(
                max(accepted[~own["label"] & (own["a"] == name)].mean() for name in "uvw")
                + (~accepted[own["label"]]).mean()
            )
            / 2
        )

    words = ["compare", str(scores), str(other), "-p", str(protocol), "--bootstrap", "20"]
    for asked in ([], ["-m", "acer"], ["-m", "ACER"]):
        assert run([*words, *asked, "--json"]) == 0
        rows = {d["metric"]: d for d in json.loads(capsys.readouterr().out)["differences"]}
        assert rows["acer"]["a"] == pytest.approx(acer(own["score"]))
        assert rows["acer"]["b"] == pytest.approx(acer(moved)) and rows["acer"]["verdict"] == "not tested"
    assert run(words) == 0
    said = capsys.readouterr().out
    assert "APCER ↓" in said and "ACER ↓" in said and "fpr ↓" not in said
