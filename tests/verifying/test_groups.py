"""Options are shared: what `score` can be told about a file, every verb that reads scores can be told; errors are JSON too."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest
from claims import said, write_files

from hitmiss.cli.main import find_verb, run
from hitmiss.core.convert import plain
from hitmiss.core.design import ComparisonRules, Design, Side
from hitmiss.core.errors import UnknownName, UsageError
from hitmiss.core.protocol import Gap
from hitmiss.core.read_spec import ReadSpec
from hitmiss.core.spec import Spec, options_of
from hitmiss.evaluation.evaluate import evaluate
from hitmiss.evaluation.protocol import find_protocol, protocols

READING = ("score", "compare", "report", "gate", "verify", "validate", "toxicity", "triage", "drift", "detect")
MEASURING = {"score": (), "report": ("matrix",), "gate": ("metrics", "matrix")}
FILES = {
    "--encoding": "latin.csv --encoding latin-1 --positive f\u00e4lschung",
    "--positive-value": "words.csv --positive-value yes",
    "--separator": "tilde.csv --separator ~ --positive fake",
    "--on-nan": "gaps.csv --on-nan drop --positive fake",
    "--dedupe": "twice.csv --dedupe --positive fake",
    "--decimal": "comma.csv --decimal , --column item=id --column label=kind --column score=p --positive fake",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("files")
    write_files(place)
    return place


def options(verb: str) -> set[str]:
    return {*find_verb(verb).by_spelling}


def spellings(spec: type[Spec], without: tuple[str, ...] = ()) -> set[str]:
    own = {name: option for name, option in options_of(spec).items() if option.is_flag and name not in without}
    return {option.spellings(name)[0] for name, option in own.items()}


@pytest.mark.parametrize("verb", READING)
def test_every_verb_that_reads_has_every_reading_option(verb: str) -> None:
    assert spellings(ReadSpec) <= options(verb)
    # a claim states all itself; a model has no scores
    assert ("--settings" in options(verb)) == (verb not in ("verify", "detect"))


@pytest.mark.parametrize("verb", MEASURING)
def test_every_verb_that_measures_has_every_option_of_a_question(verb: str) -> None:
    assert spellings(Design, MEASURING[verb]) <= options(verb)


@pytest.mark.parametrize("option", FILES)
@pytest.mark.parametrize("verb", ["score", "gate", "report", "compare", "validate"])
def test_what_score_reads_the_others_read_with_the_same_option(folder: Path, option: str, verb: str) -> None:
    file, *how = FILES[option].split()
    words = {
        "score": ["score", file, "-m", "eer"],
        "gate": ["gate", file, "--fail-if", "eer > 0.99"],
        "report": ["report", file, "-m", "eer", "--bootstrap", "0", "-o", "r.html"],
        "compare": ["compare", file, file, "-m", "eer", "--bootstrap", "20"],
        "validate": ["validate", file],
    }[verb]
    code, text = said([*words, *how], folder)
    assert code == 0, text
    assert said(words, folder)[0] != 0, "the option is not needed, so this shows nothing"


@pytest.fixture(scope="module")
def attacked(folder: Path) -> Path:
    made = "attack --detector detector.py:leads --data ecg.npz --outputs probability -o attacked --strengths 0.5 1"
    assert said([*made.split(), "--family", "band_noise", "--family", "baseline_wander"], folder)[0] == 0
    return folder


@pytest.mark.parametrize(
    "asked",
    [
        "--bootstrap 50",
        "--bootstrap 50 --by target",
        "-m changed -m macro_auc --by patient --where attack=clean --where attack=band_noise",
        "--threshold 0.3",
    ],
)
def test_attacks_stream_with_the_same_figures(attacked: Path, asked: str) -> None:
    """One attack at a time: figures, warnings and what holds the claim are those of the run in memory."""
    words = ["score", "attacked", "-p", "ecg-attacks", *asked.split()]
    for more in (["-o", "whole.json"], ["-o", "parts.json", "--stream", "--report", "parts.html"]):
        code, text = said([*words, *more], attacked)
        assert code == 0, text
    whole, parts = (json.loads((attacked / f"{name}.json").read_text()) for name in ("whole", "parts"))
    assert parts["estimates"] == whole["estimates"]
    assert sorted(parts["warnings"]) == sorted(whole["warnings"])
    assert "choices:" in parts["signature"] and "stream" in parts["signature"]
    assert said(["verify", "parts.json", "attacked"], attacked)[0] == 0
    plain = [e for e in whole["estimates"] if not e["slice"] and e["average"] is None]
    changed = [e["value"] for e in plain if e["metric"] == "changed"]
    for limit in (0.0, 0.5, 0.99):
        is_broken = any(value > limit for value in changed)
        assert said(["gate", "parts.json", "--fail-if", f"changed > {limit}"], attacked)[0] == int(is_broken)
    edited = json.dumps(parts).replace(f'"n": {parts["estimates"][0]["n"]}', '"n": 7')
    (attacked / "edited.json").write_text(edited)
    assert said(["verify", "edited.json", "attacked"], attacked)[0] == 1


@pytest.mark.parametrize("asked", ["--bootstrap 50", "--bootstrap 50 --unit speaker --threshold -0.4"])
def test_drift_streams_with_the_same_figures(folder: Path, asked: str) -> None:
    """One condition at a time, beside the clean clips: the units that are drawn are those of the clean clips."""
    made = "detect --detector detector.py:level --data clips/manifest.csv -p deepfake-audio --outputs logit --sample-rate 8000"
    ways = ["--manipulate", "gain(db=-6); gain(db=-20)", "-o", "drifting"]
    if not (folder / "drifting").exists():
        assert said([*made.split(), *ways], folder)[0] == 0
    for more in (["-o", "kept.json"], ["-o", "streamed.json", "--stream"]):
        code, text = said(["drift", "drifting", *asked.split(), *more], folder)
        assert code == 0, text
    kept, streamed = (json.loads((folder / f"{name}.json").read_text()) for name in ("kept", "streamed"))
    assert streamed["estimates"] == kept["estimates"] and streamed["warnings"] == kept["warnings"]
    assert len({e["slice"]["manipulation"] for e in kept["estimates"]}) == 3
    assert said(["verify", "streamed.json", "drifting"], folder)[0] == 0


def test_a_table_of_attacks_alone_is_not_streamed(attacked: Path) -> None:
    code, text = said(["score", "attacked/trials.parquet", "-p", "ecg-attacks", "--stream", "--json"], attacked)
    assert code == 2 and "needs-every-trial" in text


def test_attacks_refuse_what_no_trials_have(attacked: Path) -> None:
    folder, trials = attacked, ["score", "attacked", "-p", "ecg-attacks", "--json"]
    for more, code in (
        (["--gap", "nonsense=F"], "unknown-column"),
        (["--gap", "patient=nobody"], "unknown-gap-value"),
        (["--by", "nonsense"], "unknown-column"),
    ):
        exit_code, text = said([*trials, *more], folder)
        assert exit_code == 2 and code in text, text


def test_errors_are_json_where_json_was_asked_for(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["score", str(folder / "gaps.csv"), "-m", "eer", "--positive", "fake", "--json"]) == 3
    said_ = capsys.readouterr()
    error = json.loads(said_.out)["error"]
    assert error["code"] == "nan-score" and "NaN" in said_.err
    assert [(f["file"], f["row"]) for f in error["faults"]] == [("gaps.csv", 62)]
    assert run(["score", str(folder / "no.csv"), "-m", "eer", "--json"]) == 3
    assert json.loads(capsys.readouterr().out)["error"]["code"] == "missing-file"
    assert run(["score", str(folder / "ones.csv"), "-m", "eeer", "--positive-value", "1", "--json"]) == 2
    assert json.loads(capsys.readouterr().out)["error"]["code"] == "unknown-metric"
    # A gate that fails has its own object on stdout, and only that.
    words = ["gate", str(folder / "ones.csv"), "--positive-value", "1", "--fail-if", "eer > 0", "--json"]
    assert run(words) == 1
    assert json.loads(capsys.readouterr().out)["passed"] is False


@pytest.mark.parametrize("name", sorted(protocols()))
def test_specs_and_designs_survive_json(name: str) -> None:
    protocol = find_protocol(name)
    sides = (Side("a", ReadSpec(where={"codec": ("C01", "C02")}), float("inf"), "x"),)
    design = Design.of(
        ["eer(ties=official)"],
        by=["codec", "codec,codec_q"],
        gap=Gap("codec", ("NONE",)),
        unit="speaker,attack",
        bootstrap=10,
        protocol=protocol,
        contest=ComparisonRules(sides),
    )
    assert Design.from_plain(json.loads(json.dumps(design.to_plain()))) == design
    assert ReadSpec.from_plain(json.loads(json.dumps(protocol.read.to_plain()))) == protocol.read
    assert plain(protocol) == design.to_plain()["protocol"]


def test_what_is_said_goes_over_what_a_protocol_says() -> None:
    rules = ReadSpec(score_kind="probability", positive="toxic", columns={"item": "id"})
    said_ = ReadSpec(score_kind="raw", columns={"score": "p"}).over(rules)
    assert (said_.kind, said_.positive, dict(said_.columns)) == ("raw", "toxic", {"item": "id", "score": "p"})
    assert ReadSpec().over(rules) == rules and ReadSpec().stated == ()
    assert ReadSpec(columns={"item": "a"}, key_columns={"item": "b"}).for_key.columns == {"item": "b"}


def test_unknown_names_and_wrong_types_are_refused() -> None:
    with pytest.raises(UnknownName) as unknown:
        Design.of(["eer"], bootstraps=3)
    assert unknown.value.code == "unknown-option"
    with pytest.raises(UsageError) as wrong:
        Design.of(["eer"], level="high")
    assert wrong.value.code == "bad-option"
    with pytest.raises(UsageError) as few:
        Design.of(["eer"], bootstrap=1)
    assert few.value.code == "bad-bootstrap"


def test_attacks_have_a_gap_and_metrics_by_name(folder: Path) -> None:
    made = "attack --detector detector.py:leads --data ecg.npz --family band_noise --strengths 1 --outputs probability -o gapped"
    assert said(made.split(), folder)[0] == 0
    frame = pl.read_parquet(folder / "gapped" / "trials.parquet")
    patient = sorted(frame["patient"].unique())[0]
    words = ["score", "gapped", "-p", "ecg-attacks", "-m", "exact_match", "--gap", f"patient={patient}", "--json"]
    exit_code, text = said(words, folder)
    assert exit_code == 0, text
    found = json.loads(text)["estimates"]
    assert {e["metric"] for e in found} == {"exact_match"}
    gap = next(e for e in found if e["average"] == "gap" and e["run"]["attack"] == "band_noise")
    own = (
        frame.filter(attack="band_noise")
        .group_by("item", "patient")
        .agg(right=(pl.col("label") == pl.col("decision")).all())
    )
    inside = pl.col("patient") == patient
    assert gap["value"] == pytest.approx(own.filter(~inside)["right"].mean() - own.filter(inside)["right"].mean())


def test_no_bootstrap_switches_that_of_a_protocol_off(folder: Path) -> None:
    rule = folder / "drawn.toml"
    rule.write_text(
        'name = "drawn"\ntitle = "t"\nprimary = "f1"\nmetrics = ["eer"]\nbootstrap = 20\n[read]\n'
        'positive = "fake"\nnegative = "real"\nhigher = "fake"\n'
    )
    words = ["score", "tilde.csv", "--separator", "~", "-p", "drawn.toml", "--json"]
    drawn, undrawn = (json.loads(said([*words, *more], folder)[1]) for more in ([], ["--bootstrap", "0"]))
    assert "boot:20," in drawn["signature"] and "boot:" not in undrawn["signature"]
    assert undrawn["estimates"][0]["value"] == drawn["estimates"][0]["value"]
    spec = {"separator": "~", "positive": "fake"}
    assert "boot:" not in evaluate(str(folder / "tilde.csv"), protocol=rule, bootstrap=0, **spec).signature
    assert "boot:20," in evaluate(str(folder / "tilde.csv"), protocol=rule, **spec).signature
